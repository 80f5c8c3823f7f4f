"""The job of a run: it waits for its turn, measures, and is recorded whole.

A run that was interrupted by the end of the service is not repeated, since half a measurement
cannot be resumed. It is recorded as interrupted, and its remaining processes are ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from uuid import UUID

import structlog

from vmtune.bench.machine.environment import Environment, conditions, fingerprint
from vmtune.bench.machine.load import LoadEnded, loaded
from vmtune.bench.migration.order import RunProgress, RunResult
from vmtune.bench.model.campaign.campaign import HostLoad
from vmtune.bench.model.runs.run import Run, RunRecord, RunState
from vmtune.bench.model.scenario.any_kind import from_json
from vmtune.bench.model.scenario.block import BlockScenario
from vmtune.bench.order import AnyOrder
from vmtune.bench.reduce import reduce
from vmtune.bench.services.runs.live import LiveRuns
from vmtune.bench.services.runs.queue import RunQueue
from vmtune.bench.services.runs.sites import Testbeds
from vmtune.errors import SetupError, VmtuneError
from vmtune.jobs.base import JobEngine
from vmtune.jobs.kinds import RUN_KIND
from vmtune.model.host.inventory import EventTopic
from vmtune.services.events import EventBus
from vmtune.services.migrations.records import progress_data
from vmtune.storage import Store

log = structlog.get_logger(__name__)

_INTERRUPTED = "the service ended in the middle of the run"
_CANCELLED = "cancelled before its end"
_WRITE_ATTEMPTS = 5
_WRITE_AGAIN_AFTER_S = 2.0

Runner = Callable[[AnyOrder, Callable[[RunProgress], None]], Awaitable[RunResult]]
"""Does a run: :func:`vmtune.bench.run.run_any`."""


class RunJob:
    """Runs benchmark runs, one at a time."""

    def __init__(
        self,
        store: Store,
        bus: EventBus,
        testbeds: Testbeds,
        live: LiveRuns,
        runner: Runner,
        write_again_after_s: float = _WRITE_AGAIN_AFTER_S,
    ) -> None:
        self._store = store
        self._bus = bus
        self._testbeds = testbeds
        self._live = live
        self._runner = runner
        self._write_again_after_s = write_again_after_s
        self._queue = RunQueue()
        self._broken: dict[UUID, str] = {}

    def register(self, jobs: JobEngine) -> None:
        """Give the job engine the phases."""
        jobs.register(RUN_KIND, (("measure", self.measure), ("settle", self.settle)))

    async def measure(self, job_id: str) -> None:
        """Wait for its turn, run, and record what came of it."""
        run = await self._get(job_id)
        if run.state is RunState.RUNNING:
            await self._sweep()
            await self._finish(run, RunState.INTERRUPTED, _INTERRUPTED)
        if run.state is not RunState.QUEUED:
            return
        try:
            async with self._queue.turn(run):
                await self._measure(run)
        except VmtuneError as error:
            # In the way of the record itself (a full disk): the settle phase tries once more.
            self._broken[run.id] = str(error)
            raise

    async def _measure(self, run: Run) -> None:
        try:
            order = await self._begin(run)
            with loaded(HostLoad(run.options.get("host_load", HostLoad.IDLE))) as loads:
                result = await self._runner(order, lambda progress: self._progress(run, progress))
                loads_did = await asyncio.to_thread(loads.check)
        except LoadEnded as error:
            # The machine was idler than asked for: it says nothing about the arm.
            record = replace(result.record, loads=error.record)
            await self._finish(run, RunState.INTERRUPTED, str(error), record)
        except VmtuneError as error:
            await self._finish(run, RunState.FAILED, str(error))
        except Exception as error:
            # A fault of ours: the run is recorded all the same.
            log.exception("a run broke", run_id=str(run.id))
            await self._sweep()
            await self._finish(run, RunState.FAILED, f"internal error: {error!r}")
        else:
            if loads_did.processes:
                result = replace(result, record=replace(result.record, loads=loads_did))
            await self._record(run, result)

    async def _begin(self, run: Run) -> AnyOrder:
        """Record that it runs, and where.

        :raise VmtuneError: its QEMU is gone, or its scenario can no longer be read.
        """
        scenario = from_json(run.setup, "setup")
        order: AnyOrder
        environment_of: Callable[[], Environment]
        if isinstance(scenario, BlockScenario) and scenario.target is not None:
            order, vm = await self._live.order(run, scenario)
            environment_of = partial(self._live.environment, vm, scenario)
        else:
            kvm = self._testbeds.kvm(run.options.get("kvm"), scenario)
            order = self._testbeds.order(run, scenario)
            environment_of = partial(
                self._testbeds.environment, run.testbed, run.qemu, scenario, kvm
            )

        def look_and_record() -> Run:
            environment = environment_of()
            now = conditions()
            return self._store.runs.start(run.id, environment, fingerprint(environment), now)

        await self._publish(await asyncio.to_thread(look_and_record))
        return order

    async def _record(self, run: Run, result: RunResult) -> None:
        metrics = reduce(result.record, result.state, run.values)
        await self._finish(run, result.state, result.failure, result.record, metrics)

    async def settle(self, job_id: str) -> None:
        """Complete the record of a run that was cut short."""
        run = await self._get(job_id)
        broken = self._broken.pop(run.id, None)
        if run.state.ended:
            return
        await self._sweep()
        state = RunState.CANCELLED if broken is None else RunState.FAILED
        await self._finish(run, state, broken or _CANCELLED)

    async def _finish(
        self,
        run: Run,
        state: RunState,
        failure: str,
        record: RunRecord | None = None,
        metrics: Mapping[str, float] | None = None,
    ) -> None:
        """Write the end, also when that is cancelled: what was measured cannot be measured
        again."""
        writing = asyncio.create_task(self._write(run.id, state, failure, record, metrics))
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            await writing
            raise

    async def _write(
        self,
        run: UUID,
        state: RunState,
        failure: str,
        record: RunRecord | None,
        metrics: Mapping[str, float] | None,
    ) -> None:
        for attempt in range(1, _WRITE_ATTEMPTS + 1):
            try:
                ended = await asyncio.to_thread(
                    self._store.runs.finish, run, state, record, metrics, failure
                )
            except SetupError:  # the database is locked or full, and may not be for long
                if attempt == _WRITE_ATTEMPTS:
                    raise
                await asyncio.sleep(self._write_again_after_s)
            else:
                await self._publish(ended)
                return

    async def _sweep(self) -> None:
        """End what runs left that did not live to their end."""
        try:
            await asyncio.to_thread(self._testbeds.clear_left_behind)
        except OSError as error:
            log.warning("something of a run is still there", reason=str(error))
        try:
            await self._live.clear()
        except (OSError, VmtuneError) as error:
            log.warning("an export of a run may still be there", reason=str(error))

    async def _get(self, job_id: str) -> Run:
        return await asyncio.to_thread(self._store.runs.get, UUID(job_id))

    async def _publish(self, run: Run) -> None:
        await self._bus.publish(EventTopic.RUN, run.id, event_data(run))

    def _progress(self, run: Run, progress: RunProgress) -> None:
        self._bus.progress(EventTopic.RUN, run.id, run_progress_data(progress))


def event_data(run: Run) -> dict[str, object]:
    """An event's data about a run."""
    return {
        "state": run.state.value,
        "scenario": run.scenario,
        "kind": run.kind.value,
        "profile": run.profile,
        "failure": run.failure,
        "campaign": str(run.slot.campaign) if run.slot else None,
        "arm": run.slot.arm if run.slot else None,
    }


def run_progress_data(progress: RunProgress) -> dict[str, object]:
    """What a progress bar shows: the share done, the phase, and the migration's own figures, or
    those of the QEMU that serves blocks, while there is one."""
    of_migration = progress_data(progress.sample, progress.share) if progress.sample else {}
    process = progress.process
    of_process = {"maps": process.maps, "rss_bytes": process.rss_bytes} if process else {}
    return {
        **of_migration,
        **of_process,
        "share": round(progress.share, 4),
        "phase": progress.phase.value,
        "at_ms": progress.at_ms,
    }
