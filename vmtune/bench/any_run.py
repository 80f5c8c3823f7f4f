"""A run of any kind of benchmark, done by the one that can."""

from __future__ import annotations

from collections.abc import Callable

from vmtune.bench.any_order import AnyOrder
from vmtune.bench.block_guest import run_in_guest
from vmtune.bench.block_live import run_live
from vmtune.bench.block_order import BlockOrder, BlockProgress
from vmtune.bench.block_run import run_block
from vmtune.bench.boot_order import BootOrder, BootProgress
from vmtune.bench.boot_run import run_boot
from vmtune.bench.live_order import GuestOrder, LiveOrder
from vmtune.bench.model.runs.run import RunRecord
from vmtune.bench.order import RunProgress, RunResult
from vmtune.bench.runner import run_migration


async def run_any(order: AnyOrder, on_progress: Callable[[RunProgress], None]) -> RunResult:
    """Do a run.

    :param on_progress: called several times a second, from the event loop.
    :raise VmtuneError: the run cannot be done here; nothing was left behind.
    """
    if isinstance(order, BlockOrder | LiveOrder | GuestOrder):
        return await _block(order, on_progress)
    if isinstance(order, BootOrder):
        return await _boot(order, on_progress)
    return await run_migration(order, on_progress)


async def _block(
    order: BlockOrder | LiveOrder | GuestOrder, on_progress: Callable[[RunProgress], None]
) -> RunResult:
    def tell(at: BlockProgress) -> None:
        on_progress(RunProgress(at.phase, at.share, at.at_ms, process=at.sample))

    if isinstance(order, LiveOrder):
        done = await run_live(order, tell)
    elif isinstance(order, GuestOrder):
        try:
            done = await run_in_guest(order, tell)
        finally:
            await order.agent.close()
    else:
        done = await run_block(order, tell)
    record = RunRecord(ended_ms=round(done.record.ended_ms), block=done.record)
    return RunResult(done.state, record, done.failure)


async def _boot(order: BootOrder, on_progress: Callable[[RunProgress], None]) -> RunResult:
    def tell(at: BootProgress) -> None:
        on_progress(RunProgress(at.phase, at.share, at.at_ms))

    done = await run_boot(order, tell)
    record = RunRecord(ended_ms=round(done.record.ended_ms), boot=done.record)
    return RunResult(done.state, record, done.failure, done.kvm)
