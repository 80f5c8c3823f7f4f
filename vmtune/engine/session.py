"""One migration, from its plan to its restored hosts: prepare, start, observe, finalize.

The service's durable job, migrations that others started, and benchmark runs all use it. Each
records to its :class:`~vmtune.engine.notes.Notes`. Each part can be repeated by a new process: it
reads the record, queries QEMU or libvirt, and continues from there.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Container
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Protocol
from uuid import UUID

import structlog

from vmtune.engine.context import Clock, Monotonic
from vmtune.engine.controllers import Controllers, Past
from vmtune.engine.copy_watch import CopyWatch
from vmtune.engine.end_state import Evidence
from vmtune.engine.expectation import Expectation
from vmtune.engine.finalize import CarryOver, finalize
from vmtune.engine.made_images import make_images
from vmtune.engine.notes import Hosts, Notes
from vmtune.engine.ownership import Ownership
from vmtune.engine.postcopy_watch import GuestLost, PostcopyWatch
from vmtune.engine.read_back import read_running
from vmtune.engine.reaper.of_record import full_rings_kill, reaper_of, refuse_without_reaper
from vmtune.engine.recovery import RecoverySettings
from vmtune.engine.source_images import settle_source_images
from vmtune.engine.steered import Begin
from vmtune.engine.steering import begin_steering
from vmtune.engine.undo import THROTTLES
from vmtune.engine.watch import watch
from vmtune.errors import CommandRefused, NotFound, Problem, TooLate, VmtuneError
from vmtune.forecast.outlook import Outlook
from vmtune.hypervisor.protocol import Driver, MigrateOrder, MigrationHandle
from vmtune.intent.felt import Felt, with_kept
from vmtune.intent.steering import Steering
from vmtune.model.host.facts import Connection
from vmtune.model.host.managers import Manager
from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.disks import caught_up_ms
from vmtune.model.migration.prior import PriorSettings
from vmtune.model.migration.record import (
    AbortState,
    Migration,
    MigrationFields,
    MigrationState,
    QemuStatus,
    Snapshot,
    Trigger,
)
from vmtune.model.plan.changes import Change, in_order, undo
from vmtune.model.plan.plan import Plan
from vmtune.model.plan.readback import before_starting, in_setup
from vmtune.model.tunables.registry import TunableRegistry

log = structlog.get_logger(__name__)

CANCELS_WITHIN_S = 30.0
"""QEMU ended what it was to cancel within a tenth of a second (medians of 20 and more). With
multifd, 7.2 was seen not to in two minutes: its migration thread waited for channels that had ended
(multifd_send_sync_main in QEMU's migration/multifd.c)."""

_HANGS = Problem(
    "vm",
    "cancel_hangs",
    f"QEMU was asked to cancel, and has not ended the migration within {CANCELS_WITHIN_S:g} s; "
    "the guest runs on, on the source",
    "wait; where it stays so, only another QEMU process frees it: shut the VM down and start it "
    "again when that suits",
)


class Origin(Protocol):
    """What depends on who started the migration."""

    @property
    def reads_back(self) -> bool:
        """Whether the session reads back what QEMU runs with, as soon as QEMU shows it."""

    @property
    def holds_steps(self) -> bool:
        """Whether convergence steps wait for :meth:`MigrationSession.let_steps_act`."""

    def left(self, record: Migration) -> bool:
        """Whether the source has reported that the VM has migrated away."""

    def alongside(self, session: MigrationSession) -> AbstractAsyncContextManager[None]:
        """What else is done while the session observes."""

    async def afterwards(self, session: MigrationSession) -> None:
        """What else is recorded once it has ended, before the record is completed."""


class Started:
    """A migration that vmtune itself starts."""

    reads_back = True
    holds_steps = False

    def left(self, record: Migration) -> bool:
        """False: its handle says so."""
        return False

    def alongside(self, session: MigrationSession) -> AbstractAsyncContextManager[None]:
        """Nothing."""
        return nullcontext()

    async def afterwards(self, session: MigrationSession) -> None:
        """Nothing."""


class MigrationSession:
    """One migration as this process knows it; what has to outlive the process is in its record.

    :param tunables: packs included.
    :param sample_hz: how often the source is asked while the migration runs.
    :param forecasts: whether to tell what is expected of the migration; it reads some settings of
        QEMU every few seconds.
    """

    def __init__(
        self,
        hosts: Hosts,
        notes: Notes,
        tunables: TunableRegistry,
        sample_hz: float,
        origin: Origin | None = None,
        clock: Clock | None = None,
        forecasts: bool = True,
    ) -> None:
        self.hosts = hosts
        self.notes = notes
        self.tunables = tunables
        self.handle: MigrationHandle | None = None
        self.snapshot: Snapshot | None = None
        self.controllers: Controllers | None = None
        self._origin = origin or Started()
        self._clock = clock or Monotonic()
        self._forecasts = forecasts
        self._expectation: Expectation | None = None
        self._sample_hz = sample_hz
        self._started = self._clock.now()
        self._read_back = False
        self._active = False
        self._cancelling_since: float | None = None
        self._switched = False
        self._refused: CommandRefused | None = None
        self._felt = Felt()
        self._ownership = Ownership(hosts, self._clock)
        self._postcopy = PostcopyWatch(hosts, notes, self._clock)
        self._disks = CopyWatch(hosts, notes)

    async def prepare(self, plan: Plan) -> None:
        """Journal what is set on the source, then set what goes through its monitor. Repeated, it
        keeps the journal and sets again.

        :raise VmtuneError: QEMU refuses, or does not answer.
        """
        record = await self.notes.record()
        changes = plan.changes_now()
        if record.state is MigrationState.QUEUED:
            noted = changes if record.intent is None else [*changes, *_throttles(plan)]
            journal = tuple(undo(noted, plan.readings))
            outcomes = tuple(before_starting(item, plan) for item in plan.items)
            fields = MigrationFields(
                state=MigrationState.PREPARING, journal=journal, outcomes=outcomes
            )
            await self.notes.save(fields)
        if changes:
            source = await self.hosts.source()
            await source.write(record.vm, in_order(changes, plan.readings))

    async def find_running(self) -> bool:
        """Whether a migration that was started before runs; samples then keep counting from its
        start. False if it ended unobserved, or never began, or if what runs is another client's;
        see :meth:`~vmtune.engine.ownership.Ownership.runs`."""
        record = await self.notes.record()
        if self.handle is None and record.started_at is not None:
            since = datetime.now(UTC) - record.started_at
            self._started = self._clock.now() - since.total_seconds()
        return await self._ownership.runs(record, called_here=self.handle is not None)

    @asynccontextmanager
    async def controlled(self) -> AsyncIterator[None]:
        """Run the record's reaper and convergence steps during the block. Continues an earlier
        process's work. A blocked tunable blocks its controller."""
        record = await self.notes.record()
        reaper = reaper_of(record)
        resumed = self.handle is None and record.started_at is not None and record.steps
        controllers = self.controllers = Controllers(
            await self.hosts.source(),
            record.vm,
            reaper=reaper,
            steps=record.steps,
            past=Past(
                record.reaper, record.step_records, await self.notes.samples() if resumed else ()
            ),
            note_step=self.notes.step,
            unpaused=reaper is not None and await full_rings_kill(self.hosts),
            steering=await self._steering(),
            shadow=record.intent is not None and record.intent.shadow,
            held=self._origin.holds_steps,
            recorded=self._recorded,
        )
        self._expectation = None
        if self._forecasts:
            known = self.notes.dirtied_before
            self._expectation = Expectation(record.vm, self.hosts.source, known, self._clock)
        if record.state not in (MigrationState.QUEUED, MigrationState.PREPARING):
            controllers.migration_starts(self._started)
        async with controllers:
            yield

    async def _steering(self) -> Steering | Begin | None:
        """Where to steer it from; how to find that out while the source does not answer."""
        try:
            return await self._begin_steering()
        except VmtuneError:
            return self._begin_steering

    async def _begin_steering(self) -> Steering | None:
        return await begin_steering(await self.notes.record(), await self.hosts.source())

    async def _recorded(self) -> tuple[StepRecord, ...]:
        return (await self.notes.record()).step_records

    def let_steps_act(self, manager: Manager | None) -> None:
        """Let convergence steps act that were held until it was known who manages the VM.

        :param manager: what is its own no step changes; None for nobody.
        """
        self._controllers.let_steps_act(manager)

    async def start(self, plan: Plan) -> None:
        """Start the migration that was prepared. Call it while :meth:`controlled`.

        :raise VmtuneError: it could not be started. Not without the reaper either, where a full
            ring can end the guest and nobody has accepted that.
        """
        if self._controllers.unprotected:
            refuse_without_reaper(await self.notes.record(), self._controllers.report)
        source, destination = await self.hosts.source(), await self.hosts.destination()
        if destination is None:
            raise NotFound("the destination was removed", field="destination")
        fields = MigrationFields(state=MigrationState.STARTING, started_at=datetime.now(UTC))
        record = await self.notes.save(fields)
        self._started = self._clock.now()
        controllers = self._controllers
        controllers.migration_starts(self._started)
        # After this, a takeover knows that the reaper ran already.
        await self.notes.flush(controllers)
        images = partial(make_images, self.hosts, self.notes, record.vm, destination, plan)
        order = MigrateOrder(
            record.vm,
            plan.migrate_values(),
            plan.destination_values(),
            self._note_prior,
            images if plan.disks else None,
        )
        try:
            self.handle = await source.start_migration(order, destination)
        except CommandRefused as refusal:
            self._refused = refusal
            raise
        if await self.hosts.connection() is not Connection.LIBVIRT:
            # All is set by now, and stays until it is reset: proven however soon it ends.
            await self.read_back(final=False)

    async def _note_prior(self, prior: PriorSettings) -> None:
        await self.notes.save(MigrationFields(prior=prior))

    async def observe(self, within_s: float | None = None) -> bool:
        """Watch the migration to its end, read back what it runs with, and run the steps that come
        due. Call it while :meth:`controlled`.

        :param within_s: how long to wait for its end.
        :return: whether it has ended by then.
        """
        record = await self.notes.record()
        source = await self.hosts.source()
        try:
            async with asyncio.timeout(within_s) as limit, self._origin.alongside(self):
                await watch(
                    source,
                    record.vm,
                    self._sample_hz,
                    self._on_snapshot,
                    self.handle,
                    self._started,
                    copies=bool(record.disks) or record.trigger is Trigger.OBSERVED,
                )
        except GuestLost:
            log.warning("guest lost", migration_id=str(record.id), vm=str(record.vm))
        except TimeoutError:
            if not limit.expired():
                raise
            return False
        finally:
            await self._postcopy.end()
        return True

    async def read_back(self, *, final: bool) -> None:
        """Read back what QEMU runs with, and record it.

        :param final: the migration is active: nothing sets values any more.
        """
        record = await self.notes.record()
        outcomes = await read_running(self.hosts, record.vm, record.outcomes, self.tunables)
        if not final:
            outcomes = [in_setup(outcome) for outcome in outcomes]
        await self.notes.save(MigrationFields(outcomes=tuple(outcomes)))

    async def finalize(
        self,
        reapply: CarryOver,
        error: VmtuneError | None = None,
        stays: Container[str] = (),
    ) -> MigrationFields:
        """What completes the record; see :func:`vmtune.engine.finalize.finalize`. A step that was
        under way when the process ended is unknown from now on.

        :param error: why a part of the session broke off.
        :param stays: tunables that something newer has set: they are not restored.
        """
        await self._origin.afterwards(self)
        record = await self.notes.record()
        for step in record.step_records:
            if step.effect is StepEffect.PENDING:
                why = "vmtune ended before it could observe the effect"
                await self.notes.step(replace(step, effect=StepEffect.UNKNOWN, detail=why), ())
        # What an earlier process saw is stored; what this one saw may not be yet.
        paused = record.state is MigrationState.POSTCOPY_PAUSED
        earlier = await self.notes.samples() if self.handle is None or paused else ()
        evidence = Evidence(
            self.handle,
            self.snapshot,
            error,
            left=self._origin.left(record),
            interrupted=await self._was_interrupted(),
            anothers=await self._ownership.is_anothers(record, called_here=self.handle is not None),
            switched=self._switched or any(sample.status.in_postcopy for sample in earlier),
            may_abort=await self._ownership.may_abort(record),
            recovers=RecoverySettings.of(record).last_for(record, earlier),
            refused=self._refused,
        )
        record = await self.notes.record()
        ours = tuple(change for change in record.journal if change.tunable not in stays)
        record = replace(record, journal=ours)
        end = await finalize(record, self.hosts, evidence, self.tunables, reapply)
        totals = end.get("totals")
        if record.intent is not None and totals is not None:
            stated = with_kept(record, totals, Felt(earlier) | self._felt)
            end |= MigrationFields(intent=stated or record.intent)
        return await settle_source_images(record, end, self.hosts, self.notes.save)

    async def _was_interrupted(self) -> bool:
        """Whether a libvirt of either side went away since the migration began."""
        drivers = (await self.hosts.source(), await self.hosts.destination())
        return any(d.daemon_lost_since(self._started) for d in drivers if d is not None)

    @property
    def _controllers(self) -> Controllers:
        assert self.controllers is not None, "controlled() comes first"
        return self.controllers

    async def _on_snapshot(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._switched |= snapshot.status.in_postcopy
        await self.notes.sampled(snapshot, self._controllers, await self._expected(snapshot))
        await self._postcopy.on_snapshot(snapshot)
        if snapshot.status.running:
            await self._on_running(snapshot)
        missed = snapshot.status is QemuStatus.COMPLETED and not self._active
        if missed and self._origin.reads_back:
            # Nothing of one that has arrived is reset until it is finalized.
            await self.read_back(final=False)
        if snapshot.status is QemuStatus.CANCELLING:
            await self._on_cancelling()
        memory = snapshot.sample is not None
        await self._disks.look(self._clock.now(), self._started, memory=memory)
        if snapshot.sample is not None:
            self._felt.add(snapshot.sample)
            await self._controllers.on_sample(snapshot.sample)
        elif snapshot.status is QemuStatus.SETUP:
            await self._controllers.waiting(round((self._clock.now() - self._started) * 1000))

    async def _expected(self, snapshot: Snapshot) -> Outlook | None:
        if self._expectation is None:
            return None
        return await self._expectation.after(snapshot)

    async def _on_running(self, snapshot: Snapshot) -> None:
        """At QEMU's first sign, and again once it is active: read back. With libvirt, a short
        migration is proven by the first, every other by the second: libvirt is still setting
        values when its job is already in setup."""
        active = snapshot.status is not QemuStatus.SETUP
        if self._active or (self._read_back and not active):
            return
        self._read_back, self._active = True, active
        if active:
            await self._on_active()
        await self._abort_if_requested()
        if self._origin.reads_back:
            await self.read_back(final=active)

    async def _on_active(self) -> None:
        """Record the state."""
        record = await self.notes.record()
        if record.state is MigrationState.STARTING:
            fields = MigrationFields(state=MigrationState.ACTIVE, active_at=datetime.now(UTC))
            await self.notes.save(fields)
        if record.disks:
            await self._disks.memory_begins(self._clock.now(), self._started)
            record = await self.notes.record()
            self._controllers.memory_begins(caught_up_ms(record.disks))

    async def _abort_if_requested(self) -> None:
        """Abort what was to be before QEMU knew of it. In its setup already: a link that fails
        while multifd's channels connect can keep it there."""
        record = await self.notes.record()
        if record.abort is AbortState.REQUESTED:
            await _abort(await self.hosts.source(), record.vm)

    async def _on_cancelling(self) -> None:
        """Record, once, that QEMU does not end a cancelled migration."""
        now = self._clock.now()
        if self._cancelling_since is None:
            self._cancelling_since = now
        if now - self._cancelling_since < CANCELS_WITHIN_S:
            return
        self._cancelling_since = math.inf
        problems = (await self.notes.record()).problems
        if _HANGS not in problems:
            await self.notes.save(MigrationFields(problems=(*problems, _HANGS)))


def _throttles(plan: Plan) -> list[Change]:
    """What is set with the start, and steering may bound meanwhile."""
    return [Change(n, v) for n, v in plan.migrate_values().items() if n in THROTTLES]


async def _abort(source: Driver, vm: UUID) -> None:
    try:
        await source.abort_migration(vm)
    except (TooLate, NotFound, CommandRefused) as error:
        log.info("abort came too late", vm=str(vm), reason=str(error))
