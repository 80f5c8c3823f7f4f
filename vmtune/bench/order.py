"""The parameters of a run of any kind of benchmark."""

from vmtune.bench.block.live_order import GuestOrder, LiveOrder
from vmtune.bench.block.order import BlockOrder
from vmtune.bench.boot.order import BootOrder
from vmtune.bench.migration.order import RunOrder
from vmtune.bench.srcu.order import SrcuOrder

AnyOrder = RunOrder | BlockOrder | LiveOrder | GuestOrder | BootOrder | SrcuOrder
