"""One measurement of the block benchmark, from a fresh QEMU to a record."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace

from vmtune.bench.block.command_lines import fio_line
from vmtune.bench.block.fio_json import fio_report
from vmtune.bench.block.load import MAPS_EVERY_S, Load, Watch, load
from vmtune.bench.block.order import BlockOrder, BlockPhase, BlockResult
from vmtune.bench.block.stage import BlockStage, block_stage
from vmtune.bench.migration.order import RunProgress
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.scenario.block import BlockRecord, LoadPhase, PoolForecast

_AROUND_S = 0.75
"""For how long QEMU is sampled before the load, and after it."""
_DIES_WITHIN_S = 2.0


async def run_block(order: BlockOrder, on_progress: Callable[[RunProgress], None]) -> BlockResult:
    """Start QEMU, export its node, load it with fio, and take all down.

    A QEMU that dies and a fio that fails are results, with all that was recorded. Cancelling
    the task ends the run: everything is taken down, and the cancellation is re-raised.

    :param on_progress: called several times a second, from the event loop.
    :raise VmtuneError: the run cannot be done here (no QEMU, no fio, no room for the node, a
        value that this QEMU refuses); nothing was left behind.
    """
    scenario = order.effective
    reporter = Reporter(scenario.longest_s, on_progress)
    reporter.report(BlockPhase.STARTING)
    async with block_stage(order, scenario) as stage:
        watch = Watch(stage.pid)
        reporter.start(watch)
        await around(watch, LoadPhase.BEFORE, reporter)
        output = stage.folder / "fio.json"
        done = await load(
            fio_line(scenario, stage.export.uri, output),
            stage.folder,
            output,
            scenario.ramp_s + scenario.runtime_s,
            watch,
            stage.alive,
            lambda: reporter.report(BlockPhase.LOADING),
        )
        died = await _died(stage, done)
        if not died:
            await around(watch, LoadPhase.AFTER, reporter)
        reporter.report(BlockPhase.CLEANING_UP)
        return _result(stage, watch, done)


async def around(watch: Watch, phase: LoadPhase, reporter: Reporter) -> None:
    """Sample QEMU for a while."""
    until = time.monotonic() + _AROUND_S
    while (left := until - time.monotonic()) > 0:
        await watch.look(phase)
        reporter.report(BlockPhase.LOADING)
        await asyncio.sleep(min(MAPS_EVERY_S, left))
    await watch.look(phase)


async def _died(stage: BlockStage, done: Load) -> bool:
    """Whether QEMU has died. Where fio failed, that may come a little after."""
    if done.status == 0:
        return not stage.alive()
    with contextlib.suppress(subprocess.TimeoutExpired):
        await asyncio.to_thread(stage.qemu.process.wait, _DIES_WITHIN_S)
    return not stage.alive()


def _result(stage: BlockStage, watch: Watch, done: Load) -> BlockResult:
    words = stage.qemu.last_words() if not stage.alive() else ""
    result = block_result(watch, done, stage.version, words, stage.pool_forecast)
    ended = words.removeprefix("QEMU ").partition(":")[0]
    record = replace(result.record, qemu_output=stage.qemu.errors.said(), qemu_ended=ended)
    return replace(result, record=record)


def block_result(
    watch: Watch, done: Load, version: str, death: str, pool_forecast: PoolForecast | None = None
) -> BlockResult:
    """How a measurement ended.

    :param version: QEMU's.
    :param death: how QEMU ended, in words; empty where it still runs.
    """
    record = BlockRecord(
        qemu=version,
        load_ms=done.begun_ms,
        load_ended_ms=done.ended_ms,
        measured_ms=done.measured_ms,
        ended_ms=watch.at_ms(),
        fio=done.document,
        fio_output=done.said,
        fio_status=done.status,
        processes=tuple(watch.processes),
        cpu=tuple(watch.cpu),
        pool_forecast=pool_forecast,
        qemu_ended="ended" if death else "",
    )
    failure = death or fio_failure(done)
    return BlockResult(RunState.FAILED if failure else RunState.COMPLETED, record, failure)


def fio_failure(done: Load) -> str:
    """Why a load is no result of a whole measurement; empty where it is."""
    if done.overdue:
        return "fio did not end in time"
    last = done.said.splitlines()[-1:] or ["it gives no reason"]
    if done.status != 0:
        how = f"status {done.status}" if done.status > 0 else f"signal {-done.status}"
        return f"fio ended with {how}: {last[0]}"
    if done.document is None:
        return f"fio wrote no report: {last[0]}"
    return f"fio failed: {last[0]}" if fio_report(done.document).failed else ""


class Reporter:
    """Reports the progress of a measurement. The share never goes back.

    :param lasts_s: about how long it takes from QEMU's start on.
    """

    def __init__(self, lasts_s: float, to: Callable[[RunProgress], None]) -> None:
        self._lasts_s = lasts_s
        self._to = to
        self._watch: Watch | None = None

    def start(self, watch: Watch) -> None:
        """QEMU is up."""
        self._watch = watch

    def report(self, phase: BlockPhase) -> None:
        """It is in *phase*."""
        watch = self._watch
        at_ms = watch.at_ms() if watch else 0.0
        share = 1.0 if phase is BlockPhase.CLEANING_UP else min(0.99, at_ms / 1000 / self._lasts_s)
        sample = watch.processes[-1] if watch and watch.processes else None
        self._to(RunProgress(phase, share, round(at_ms), process=sample))
