"""A run's migration: planned, run by the engine's session, ended at its limits, judged."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import uuid4

from vmtune.bench.migration.order import RunOrder
from vmtune.bench.migration.recorder import Recorder
from vmtune.bench.migration.stage import Stage
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.scenario.migration import Scenario
from vmtune.bench.model.settable import settable
from vmtune.engine.controllers import Controllers
from vmtune.engine.finalize import resume_if_paused
from vmtune.engine.read_back import close_outcomes, read_on_arrival
from vmtune.engine.session import MigrationSession
from vmtune.errors import CommandRefused, NotFound, TooLate, VmtuneError
from vmtune.forecast.outlook import Outlook
from vmtune.hypervisor.protocol import Driver, MigrationHandle
from vmtune.model.host.dirty_rates import DirtyPoint
from vmtune.model.host.facts import Connection
from vmtune.model.migration.controller_record import StepRecord
from vmtune.model.migration.copy_progress import CopyProgress
from vmtune.model.migration.disks import CopiedDisk
from vmtune.model.migration.record import (
    Migration,
    MigrationFields,
    MigrationState,
    QemuStatus,
    Sample,
    Snapshot,
    Trigger,
)
from vmtune.model.migration.steps import StepAction
from vmtune.model.plan.changes import Change
from vmtune.model.plan.plan import Plan, make_plan, refuse
from vmtune.model.plan.situation import Destination, Permissions, Situation
from vmtune.model.preflight.rings import MEASURED_ALL_THE_SAME
from vmtune.model.tunables.tunable import Value

_ENDS_WITHIN_S = 60.0
"""How long a migration may take to end once it was cancelled."""
# The VM is the run's own: it does no harm that libvirt marks it as tainted.
_PERMISSIONS = Permissions(destination_command_line=True)


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the migration ended."""

    state: RunState
    failure: str = ""


async def plan_run(
    stage: Stage,
    values: Mapping[str, Value],
    overrides: frozenset[str],
    consents: frozenset[str] = frozenset(),
) -> Plan:
    """Probe both sides, and plan.

    :param consents: what the operator lets tunable packs send.
    :raise Blocked: naming every blocker that *overrides* does not; a dirty ring that can end the
        guest is none, for a QEMU that dies is a result.
    """
    source, destination = stage.source, stage.destination
    vm, host, there = await asyncio.gather(
        source.driver.vm_facts(stage.vm),
        source.driver.host_facts(),
        destination.driver.host_facts(),
    )
    direct = host.connection is Connection.QMP
    waiting = await destination.driver.vm_facts(stage.vm) if direct else None
    goal = Destination(destination.name, there, waiting)
    may = replace(_PERMISSIONS, pack_consents=consents)
    plan = make_plan(
        Situation(values, vm, host, goal, may, tunables=settable()), source.name, "", 0
    )
    refuse(plan.blockers(overrides | MEASURED_ALL_THE_SAME))
    return plan


class MeasuredMigration:
    """One migration from the stage's source to its destination.

    :param on_sample: progress callback.
    """

    def __init__(
        self,
        order: RunOrder,
        scenario: Scenario,
        stage: Stage,
        recorder: Recorder,
        on_sample: Callable[[Sample], None],
    ) -> None:
        self.overrides = order.overrides
        self.controllers: Controllers | None = None
        self._hz = order.sample_hz
        self._scenario = scenario
        self._stage = stage
        self._recorder = recorder
        self._notes = _RunNotes(scenario, stage, recorder, on_sample)

    async def run(self, plan: Plan) -> Verdict:
        """Migrate; how it ended.

        :raise VmtuneError: it could not be started.
        """
        # What reads settings while the guest is measured would be measured, too.
        session = MigrationSession(
            _StageHosts(self._stage, plan), self._notes, settable(), self._hz, forecasts=False
        )
        await session.prepare(plan)
        try:
            await self._recorder.sends_begin()
            async with self._counting(), session.controlled():
                self.controllers = session.controllers
                await session.start(plan)
                ended = await session.observe(self._scenario.max_seconds + _ENDS_WITHIN_S)
                self._recorder.migration_ends()
                await self._recorder.look_at_sends()
            verdict = await self._judge(ended, session)
            await self._finish(verdict.state is RunState.COMPLETED)
        finally:
            self._recorder.migration_ends()
            self._recorder.outcomes = (await self._notes.record()).outcomes
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

    async def _judge(self, ended: bool, session: MigrationSession) -> Verdict:
        if not ended:
            seconds = self._scenario.max_seconds + _ENDS_WITHIN_S
            return Verdict(RunState.FAILED, f"it has not ended within {seconds:g} s")
        snapshot = session.snapshot or Snapshot(QemuStatus.NONE)
        status, limit = snapshot.status, self._notes.limit
        if status is QemuStatus.COMPLETED:
            return Verdict(RunState.COMPLETED)
        problem = await _problem_of(session.handle)
        if problem is None and await self._has_arrived():
            return Verdict(RunState.COMPLETED)
        if status is QemuStatus.CANCELLED or (limit and status is not QemuStatus.FAILED):
            return await self._cancelled(limit)
        reason = snapshot.error or problem or "the source's QEMU has ended"
        return Verdict(RunState.FAILED, reason)

    async def _cancelled(self, limit: str) -> Verdict:
        """By whom."""
        if limit and self._scenario.ends_at_limit:
            return Verdict(RunState.PLANNED)
        if limit:
            return Verdict(RunState.NOT_CONVERGED, limit)
        step = (await self._notes.record()).did(StepAction.ABORT)
        if step is not None:
            return Verdict(RunState.NOT_CONVERGED, f"a step aborted it: {step.reason}")
        return Verdict(RunState.FAILED, "somebody cancelled the migration")

    async def _has_arrived(self) -> bool:
        """Whether the VM runs on the destination, whose figures are then the migration's."""
        try:
            totals = await self._stage.destination.driver.completed(self._stage.vm)
        except VmtuneError:
            return False
        self._recorder.totals = totals
        return totals is not None

    async def _finish(self, arrived: bool) -> None:
        """Resume a guest that a step has paused, and close the outcomes. Nothing is restored: the
        run's QEMUs are ended."""
        report = self.controllers.report if self.controllers else None
        record = await self._notes.save(MigrationFields(reaper=report))
        source, destination = self._stage.source.driver, self._stage.destination.driver
        await resume_if_paused(record, destination if arrived else source)
        if arrived:
            await self._note_postcopy(destination)
            outcomes = await read_on_arrival(record, destination, settable())
        else:
            outcomes = close_outcomes(record, "the migration did not complete")
        await self._notes.save(MigrationFields(outcomes=tuple(outcomes.values())))

    async def _note_postcopy(self, destination: Driver) -> None:
        """What the destination's QEMU has counted, if it was in post-copy."""
        if self._scenario.values.get("postcopy") is True:
            with contextlib.suppress(VmtuneError):
                self._recorder.postcopy = await destination.postcopy_figures(self._stage.vm)


class _StageHosts:
    """The :class:`~vmtune.engine.notes.Hosts` of a run."""

    def __init__(self, stage: Stage, plan: Plan) -> None:
        self._stage = stage
        self._connection = plan.connection

    async def connection(self) -> Connection:
        return self._connection

    async def source(self) -> Driver:
        return self._stage.source.driver

    async def destination(self) -> Driver | None:
        return self._stage.destination.driver


class _RunNotes:
    """The :class:`~vmtune.engine.notes.Notes` of a run: a record in memory, samples to the
    recorder. Cancels the migration at the scenario's limits.

    :ivar limit: the limit that was reached; empty where none was.
    """

    def __init__(
        self,
        scenario: Scenario,
        stage: Stage,
        recorder: Recorder,
        on_sample: Callable[[Sample], None],
    ) -> None:
        self.limit = ""
        self._scenario = scenario
        self._stage = stage
        self._recorder = recorder
        self._on_sample = on_sample
        self._runs_since: float | None = None
        self._record = Migration(
            id=uuid4(),
            vm=stage.vm,
            vm_name="",
            source=stage.source.name,
            destination=stage.destination.name,
            trigger=Trigger.VMTUNE,
            profile="",
            revision=0,
            wanted=scenario.values,
            overrides=(),
            state=MigrationState.QUEUED,
            created_at=datetime.now(UTC),
            steps=scenario.steps,
        )

    async def record(self) -> Migration:
        return self._record

    async def save(self, fields: MigrationFields) -> Migration:
        if fields.get("state") is MigrationState.STARTING:
            self._recorder.migration_starts()
        self._record = replace(self._record, **fields)
        return self._record

    async def step(self, step: StepRecord, undo: Sequence[Change]) -> None:
        known = [s for s in self._record.step_records if s.number != step.number]
        self._record = replace(self._record, step_records=(*known, step))

    async def samples(self) -> Sequence[Sample]:
        """None: a run is executed by one process."""
        return ()

    async def dirtied_before(self) -> Sequence[DirtyPoint]:
        return ()

    async def note_disks(self, disks: Sequence[CopiedDisk]) -> None:
        self._record = replace(self._record, disks=tuple(disks))

    async def copying(self, progress: CopyProgress, memory_bytes: int | None) -> None:
        """Nothing: the record has the disks."""

    async def flush(self, controllers: Controllers) -> None:
        """Nothing: the recorder takes all of it at the end."""

    async def sampled(
        self, snapshot: Snapshot, controllers: Controllers, outlook: Outlook | None
    ) -> None:
        if snapshot.final:
            self._recorder.migration_ends()
        if snapshot.sample is not None:
            self._recorder.add(snapshot.sample)
            await self._recorder.look_at_sends(snapshot.sample.iteration)
            self._on_sample(snapshot.sample)
        if snapshot.totals is not None:
            self._recorder.totals = snapshot.totals
        if snapshot.status.running:
            await self._keep_limits(snapshot)

    async def _keep_limits(self, snapshot: Snapshot) -> None:
        """Cancel the migration when it has reached a limit. Its time counts from when QEMU begins
        to send: before that, libvirt prepares for a second or more."""
        if self.limit or snapshot.status.in_postcopy or snapshot.status is QemuStatus.SETUP:
            return
        now = time.monotonic()
        if self._runs_since is None:
            self._runs_since = now
        scenario, sample = self._scenario, snapshot.sample
        if now - self._runs_since > scenario.max_seconds:
            self.limit = f"it did not converge within {scenario.max_seconds} s"
        elif sample is not None and sample.iteration > scenario.max_iterations:
            self.limit = f"it did not converge within {scenario.max_iterations} iterations"
        if self.limit:
            # Ended in the meantime: then its end is what counts.
            with contextlib.suppress(TooLate, NotFound, CommandRefused):
                await self._stage.source.driver.abort_migration(self._stage.vm)


async def _problem_of(handle: MigrationHandle | None) -> str | None:
    """What its starter says went wrong; None where it succeeded."""
    if handle is None or not handle.done:
        return "its end was not seen"
    try:
        await handle.wait()
    except VmtuneError as error:
        return error.message
    return None
