"""A run's migration: started, watched, ended at its limits, and judged."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from vmtune.bench.migration.order import RunOrder
from vmtune.bench.migration.proof import Proof
from vmtune.bench.migration.recorder import Recorder
from vmtune.bench.migration.stage import Stage
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.scenario.migration import Scenario
from vmtune.engine.controllers import Controllers
from vmtune.engine.reaper.settings import wanted_reaper
from vmtune.engine.watch import WatchEnd, watch
from vmtune.errors import CommandRefused, NotFound, TooLate, VmtuneError
from vmtune.hypervisor.protocol import MigrationHandle
from vmtune.model.migration.controller_record import StepEffect
from vmtune.model.migration.record import QemuStatus, Sample, Snapshot
from vmtune.model.migration.steps import Deed

_ENDS_WITHIN_S = 60.0
"""How long a migration may take to end once it was told to."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the migration ended."""

    state: RunState
    failure: str = ""


class Trip:
    """One migration from the stage's source to its destination.

    :param told: is told each look at it.
    """

    def __init__(
        self,
        order: RunOrder,
        scenario: Scenario,
        stage: Stage,
        recorder: Recorder,
        told: Callable[[Sample], None],
    ) -> None:
        self.overrides = order.overrides
        self.controllers: Controllers | None = None
        self._hz = order.sample_hz
        self._scenario = scenario
        self._stage = stage
        self._recorder = recorder
        self._told = told
        self._limit = ""
        self._runs_since: float | None = None

    async def make(self, proof: Proof) -> Verdict:
        """Migrate; how it ended.

        :raise VmtuneError: it could not be begun.
        """
        source, vm = self._stage.source.driver, self._stage.vm
        await proof.set_what_can_be()
        reaper = wanted_reaper(self._scenario.values)
        steps = self._scenario.steps
        controllers = self.controllers = Controllers(source, vm, reaper=reaper, steps=steps)
        try:
            async with self._counting(), controllers:
                started = self._recorder.migration_starts()
                controllers.migration_starts(started)
                handle = await source.start_migration(proof.order(), self._stage.destination.driver)
                end = await self._watch(proof, controllers, handle, started)
                self._recorder.migration_ends()
            verdict = await self._judge(end, handle)
            arrived = verdict.state is RunState.COMPLETED
            if controllers.paused:
                await self._resume(arrived)
            await proof.when_it_has_ended(arrived, controllers.report)
        finally:
            self._recorder.migration_ends()
            self._recorder.outcomes = proof.outcomes
        return verdict

    @asynccontextmanager
    async def _counting(self) -> AsyncIterator[None]:
        """Have full rings counted, where the scenario wants that."""
        if not self._scenario.count_ring_full:
            yield
            return
        await self._stage.trace_full_rings(on=True)
        try:
            yield
        finally:
            with contextlib.suppress(VmtuneError):  # its QEMU has ended, and the trace with it
                await self._stage.trace_full_rings(on=False)
            self._recorder.ring_full_exits = await self._stage.full_rings()

    async def _watch(
        self, proof: Proof, controllers: Controllers, handle: MigrationHandle, started: float
    ) -> WatchEnd | None:
        """Watch to the end; None when it does not come to one."""

        async def on_snapshot(snapshot: Snapshot) -> None:
            if snapshot.final:
                self._recorder.migration_ends()
            sample = snapshot.sample
            if sample is not None:
                self._recorder.add(sample)
                self._told(sample)
            if snapshot.totals is not None:
                self._recorder.totals = snapshot.totals
            if snapshot.status.running:
                await proof.while_it_runs(snapshot.status is not QemuStatus.SETUP)
                if sample is not None:
                    await controllers.on_sample(sample)
                await self._keep_limits(snapshot)

        within_s = self._scenario.most_seconds + _ENDS_WITHIN_S
        source, vm = self._stage.source.driver, self._stage.vm
        try:
            async with asyncio.timeout(within_s):
                return await watch(source, vm, self._hz, on_snapshot, handle, started)
        except TimeoutError:
            return None

    async def _keep_limits(self, snapshot: Snapshot) -> None:
        """Cancel the migration when it has reached a limit. Its time counts from when QEMU begins
        to send: before that, libvirt prepares for a second or more."""
        if self._limit or snapshot.status.in_postcopy or snapshot.status is QemuStatus.SETUP:
            return
        now = time.monotonic()
        if self._runs_since is None:
            self._runs_since = now
        scenario, sample = self._scenario, snapshot.sample
        seconds = now - self._runs_since
        if seconds > scenario.most_seconds:
            self._limit = f"it did not converge within {scenario.most_seconds} s"
        elif sample is not None and sample.iteration > scenario.most_iterations:
            self._limit = f"it did not converge within {scenario.most_iterations} iterations"
        if self._limit:
            # Ended in the meantime: then its end is what counts.
            with contextlib.suppress(TooLate, NotFound, CommandRefused):
                await self._stage.source.driver.abort_migration(self._stage.vm)

    async def _judge(self, end: WatchEnd | None, handle: MigrationHandle) -> Verdict:
        if end is None:
            seconds = self._scenario.most_seconds + _ENDS_WITHIN_S
            return Verdict(RunState.FAILED, f"it has not ended within {seconds:g} s")
        status = end.snapshot.status if end.snapshot else QemuStatus.NONE
        if status is QemuStatus.COMPLETED:
            return Verdict(RunState.COMPLETED)
        problem = await _problem_of(handle)
        if problem is None and await self._has_arrived():
            return Verdict(RunState.COMPLETED)
        if status is QemuStatus.CANCELLED or (self._limit and status is not QemuStatus.FAILED):
            return self._cancelled()
        reason = end.snapshot.error if end.snapshot else ""
        return Verdict(RunState.FAILED, reason or problem or "the source's QEMU has ended")

    def _cancelled(self) -> Verdict:
        """By whom."""
        if self._limit:
            return Verdict(RunState.NOT_CONVERGED, self._limit)
        records = self.controllers.step_records if self.controllers else ()
        for record in records:
            number = record.number
            if number is None or record.effect is StepEffect.REFUSED:
                continue
            if self._scenario.steps[number].action is Deed.ABORT:
                return Verdict(RunState.NOT_CONVERGED, f"a step aborted it: {record.reason}")
        return Verdict(RunState.FAILED, "somebody cancelled the migration")

    async def _has_arrived(self) -> bool:
        """Whether the VM runs on the destination, whose figures are then the migration's."""
        try:
            totals = await self._stage.destination.driver.completed(self._stage.vm)
        except VmtuneError:
            return False
        self._recorder.totals = totals
        return totals is not None

    async def _resume(self, arrived: bool) -> None:
        """Let a guest that a step has paused go on, where it now is."""
        side = self._stage.destination if arrived else self._stage.source
        with contextlib.suppress(VmtuneError):
            await side.driver.resume(self._stage.vm)


async def _problem_of(handle: MigrationHandle) -> str | None:
    """What its starter says went wrong; None where it succeeded."""
    if not handle.done:
        return "its end was not seen"
    try:
        await handle.wait()
    except VmtuneError as error:
        return error.message
    return None
