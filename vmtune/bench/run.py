"""A run of any kind of benchmark, done by the one that can."""

from __future__ import annotations

from collections.abc import Callable

from vmtune.bench.block.disks_run import run_disks
from vmtune.bench.block.guest import run_in_guest
from vmtune.bench.block.live import run_live
from vmtune.bench.block.live_order import GuestOrder, LiveOrder
from vmtune.bench.block.order import BlockOrder
from vmtune.bench.block.run import run_block
from vmtune.bench.boot.order import BootOrder
from vmtune.bench.boot.run import run_boot
from vmtune.bench.migration.order import RunProgress, RunResult
from vmtune.bench.migration.runner import run_migration
from vmtune.bench.model.runs.run import RunRecord
from vmtune.bench.order import AnyOrder
from vmtune.bench.srcu.order import SrcuOrder
from vmtune.bench.srcu.run import run_srcu


async def run_any(order: AnyOrder, on_progress: Callable[[RunProgress], None]) -> RunResult:
    """Do a run.

    :param on_progress: called several times a second, from the event loop.
    :raise VmtuneError: the run cannot be done here; nothing was left behind.
    """
    if isinstance(order, BlockOrder | LiveOrder | GuestOrder):
        return await _block(order, on_progress)
    if isinstance(order, BootOrder):
        return await _boot(order, on_progress)
    if isinstance(order, SrcuOrder):
        return await _srcu(order, on_progress)
    return await run_migration(order, on_progress)


async def _block(
    order: BlockOrder | LiveOrder | GuestOrder, on_progress: Callable[[RunProgress], None]
) -> RunResult:
    if isinstance(order, LiveOrder):
        done = await run_live(order, on_progress)
    elif isinstance(order, GuestOrder):
        try:
            done = await run_in_guest(order, on_progress)
        finally:
            await order.agent.close()
    elif order.scenario.driver is not None:
        done = await run_disks(order, order.scenario.driver, on_progress)
    else:
        done = await run_block(order, on_progress)
    record = RunRecord(ended_ms=round(done.record.ended_ms), block=done.record)
    kvm = isinstance(order, BlockOrder) and order.scenario.driver is not None and order.kvm
    return RunResult(done.state, record, done.failure, kvm)


async def _boot(order: BootOrder, on_progress: Callable[[RunProgress], None]) -> RunResult:
    done = await run_boot(order, on_progress)
    record = RunRecord(ended_ms=round(done.record.ended_ms), boot=done.record)
    return RunResult(done.state, record, done.failure, done.kvm)


async def _srcu(order: SrcuOrder, on_progress: Callable[[RunProgress], None]) -> RunResult:
    done = await run_srcu(order, on_progress)
    record = RunRecord(ended_ms=round(done.record.ended_ms), srcu=done.record)
    return RunResult(done.state, record, kvm=True)
