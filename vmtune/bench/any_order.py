"""What a run of any kind of benchmark is told."""

from vmtune.bench.block_order import BlockOrder
from vmtune.bench.boot_order import BootOrder
from vmtune.bench.live_order import GuestOrder, LiveOrder
from vmtune.bench.order import RunOrder

AnyOrder = RunOrder | BlockOrder | LiveOrder | GuestOrder | BootOrder
