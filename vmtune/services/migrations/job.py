"""The phases of a migration: prepare, carry, settle. Each can be repeated: it reads the
record, asks QEMU or libvirt what is true, and goes on from there."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

import structlog
from structlog.contextvars import bind_contextvars, bound_contextvars

from vmtune.engine.controllers import Controllers
from vmtune.engine.watch import fraction, watch
from vmtune.errors import (
    CommandRefused,
    Conflict,
    NotFound,
    OutcomeUnknown,
    Problem,
    SetupError,
    TooLate,
    VmtuneError,
)
from vmtune.hypervisor.protocol import Driver, MigrateOrder, MigrationHandle
from vmtune.jobs.base import JobEngine
from vmtune.jobs.kinds import MIGRATION_KIND
from vmtune.model.host.facts import Connection
from vmtune.model.host.inventory import EventTopic
from vmtune.model.migration.record import (
    AbortState,
    Migration,
    MigrationState,
    QemuStatus,
    Sample,
    Snapshot,
    Trigger,
)
from vmtune.model.plan.changes import in_order, undo
from vmtune.model.plan.plan import Plan, refuse
from vmtune.model.plan.readback import before_migrating, in_setup
from vmtune.model.tunables.tunable import Route
from vmtune.services.events import EventBus
from vmtune.services.hosts.hosts import HostService
from vmtune.services.migrations.admission import Admission
from vmtune.services.migrations.controllers import Controlling, reaper_progress
from vmtune.services.migrations.end_state import Evidence
from vmtune.services.migrations.finalize import Settler
from vmtune.services.migrations.reading_back import read_back
from vmtune.services.migrations.records import Fields, MigrationRecords
from vmtune.services.retry import patiently
from vmtune.services.tuning.planning import Planned, PlanService
from vmtune.services.tuning.profiles import Chosen
from vmtune.storage import Store

log = structlog.get_logger(__name__)

_FLUSH_SAMPLES = 20
CANCELS_WITHIN_S = 30.0
"""QEMU ended what it was to cancel within a tenth of a second (medians of 20 and more). With
multifd, 7.2 was seen not to in two minutes: its migration thread waited for channels that had ended
(multifd_send_sync_main in QEMU's migration/multifd.c)."""

_HANGS = Problem(
    "vm",
    "cancel_hangs",
    f"QEMU has been told to cancel, and has not ended the migration within {CANCELS_WITHIN_S:g} s; "
    "the guest runs on, on the source",
    "wait; where it stays so, only another QEMU process frees it: shut the VM down and start it "
    "again when that suits",
)


@dataclass(slots=True)
class Run:
    """What this process knows of a migration that it carries; lost when it dies."""

    planned: Planned | None = None
    handle: MigrationHandle | None = None
    started: float = field(default_factory=time.monotonic)
    snapshot: Snapshot | None = None
    samples: list[Sample] = field(default_factory=list)
    store_at: int = _FLUSH_SAMPLES
    read_back: bool = False
    active: bool = False
    shown: float = 0.0
    cancelling_since: float | None = None
    controllers: Controllers | None = None
    error: VmtuneError | None = None


class MigrationJob:
    """Carries migrations out, phase by phase."""

    _trigger = Trigger.VMTUNE

    def __init__(
        self,
        store: Store,
        bus: EventBus,
        hosts: HostService,
        plans: PlanService,
        settler: Settler,
        admission: Admission,
        sample_hz: float,
    ) -> None:
        self._store = store
        self._bus = bus
        self._hosts = hosts
        self._plans = plans
        self._settler = settler
        self._admission = admission
        self._sample_hz = sample_hz
        self._records = MigrationRecords(store, bus, patient=True)
        self._controlling = Controlling(store, self._records)
        self._runs: dict[UUID, Run] = {}
        self._orphans: set[UUID] = set()

    def register(self, jobs: JobEngine) -> None:
        """Give the job engine the phases."""
        phases = (("prepare", self.prepare), ("carry", self.carry), ("settle", self.settle))
        jobs.register(MIGRATION_KIND, phases)

    def remember(self, migration: UUID, planned: Planned) -> None:
        """Keep a fresh plan, so that the first phase need not probe again."""
        self._runs[migration] = Run(planned)

    @asynccontextmanager
    async def _keeping_error(self, job_id: str) -> AsyncIterator[None]:
        """Keep the first error for the settle phase, which completes the record with it."""
        try:
            yield
        except VmtuneError as error:
            self._run(UUID(job_id)).error = error
            raise
        except Exception as error:
            # A fault of ours: the record is completed all the same, by looking.
            self._run(UUID(job_id)).error = OutcomeUnknown(f"internal error: {error!r}")
            log.exception("migration broke", migration_id=job_id)
            raise

    def share(self, migration: UUID) -> float:
        """How far a migration is, from 0 to 1; 0 where this process does not carry it."""
        run = self._runs.get(migration)
        return run.shown if run is not None else 0.0

    async def prepare(self, job_id: str) -> None:
        """Wait for its turn; then journal and set what goes through the monitor, on the source."""
        async with self._keeping_error(job_id):
            await self._prepare(job_id)

    async def _prepare(self, job_id: str) -> None:
        record = await self._get(job_id)
        _tell_whose(record)
        if record.state.ended:
            return
        if record.state is MigrationState.QUEUED:
            await self._in_turn(record)
        planned = await self._planned(record)
        changes = planned.plan.changes_now()
        if record.state is MigrationState.QUEUED:
            journal = undo(changes, planned.facts.readings)
            fields = Fields(state=MigrationState.PREPARING, journal=tuple(journal))
            fields["outcomes"] = tuple(
                before_migrating(item, planned.plan) for item in planned.plan.items
            )
            await self._records.save(record.id, fields)
        if changes:
            await planned.driver.write(record.vm, in_order(changes, planned.facts.readings))

    async def _in_turn(self, record: Migration) -> None:
        """Return once it may begin. What was planned before it waited is planned again: much
        may have changed since.

        :raise Blocked: the preflight finds blockers now.
        :raise Conflict: the VM is on another host by now.
        """
        if not await self._admission.wait(record.id):
            return
        self._run(record.id).planned = None
        plan = (await self._planned(record)).plan
        check_source(plan, record.source)
        refuse(plan.blockers(frozenset(record.overrides)))

    async def carry(self, job_id: str) -> None:
        """Start the migration, or find it again, and watch it to its end."""
        async with self._keeping_error(job_id):
            await self._carry(job_id)

    async def _carry(self, job_id: str) -> None:
        record = await self._get(job_id)
        _tell_whose(record)
        if record.state.ended:
            return
        run = self._run(record.id)
        source = await self._hosts.driver(record.source)
        begun = record.state is not MigrationState.PREPARING
        if begun and not await self._still_runs(source, record.vm):
            return  # it ended, or never began, while nobody looked: settle finds out
        if begun and run.handle is None and record.started_at is not None:
            # Begun by a service that died: samples go on counting from its start.
            since = datetime.now(UTC) - record.started_at
            run.started = time.monotonic() - since.total_seconds()
        run.controllers = self._controlling.begin(record, source)
        if begun:
            run.controllers.migration_starts(run.started)
        async with run.controllers as controllers:
            if not begun:
                record = await self._records.save(
                    record.id, Fields(state=MigrationState.STARTING, started_at=datetime.now(UTC))
                )
                await self._start(record, run, controllers)
            async with self._beside(record, source):
                await watch(
                    source,
                    record.vm,
                    self._sample_hz,
                    lambda snapshot: self._on_snapshot(record, run, source, snapshot),
                    run.handle,
                    run.started,
                )

    @asynccontextmanager
    async def _beside(self, record: Migration, source: Driver) -> AsyncIterator[None]:
        """What goes on while it is watched."""
        yield

    async def _start(self, record: Migration, run: Run, controllers: Controllers) -> None:
        planned = await self._planned(record)
        assert planned.destination is not None
        values = {c.tunable: c.value for c in planned.plan.changes(Route.MIGRATE)}
        run.started = time.monotonic()
        controllers.migration_starts(run.started)
        # Whoever takes over from now on knows that the reaper ran already.
        await self._flush(record.id, run)
        order = MigrateOrder(record.vm, values, planned.plan.destination_values())
        run.handle = await planned.driver.start_migration(order, planned.destination)
        if (await self._hosts.get(record.source)).connection is not Connection.LIBVIRT:
            # All is set by now, and stays until it is reset: proven however soon it ends.
            await self._prove(record, planned.driver, final=False)

    async def _still_runs(self, source: Driver, vm: UUID) -> bool:
        try:
            return (await source.migration(vm)).status.running
        except NotFound:
            return False

    async def _on_snapshot(
        self, record: Migration, run: Run, source: Driver, snapshot: Snapshot
    ) -> None:
        run.snapshot = snapshot
        if snapshot.status.running:
            await self._on_running(record, run, source, snapshot)
        unseen = snapshot.status is QemuStatus.COMPLETED and not run.active
        if unseen and self._trigger is Trigger.VMTUNE:
            # Nothing of one that has arrived is reset until it is settled.
            await self._prove(record, source, final=False)
        if snapshot.status is QemuStatus.CANCELLING:
            await self._on_cancelling(record, run)
        if snapshot.sample is None:
            return
        run.samples.append(snapshot.sample)
        if len(run.samples) >= run.store_at:
            await self._flush(record.id, run)
        run.shown = max(run.shown, min(fraction(snapshot.sample), 0.99))
        controllers = run.controllers
        assert controllers is not None, "they were begun before it was watched"
        shown = progress_data(snapshot.sample, run.shown)
        shown |= reaper_progress(controllers.latest_round)
        self._bus.progress(EventTopic.MIGRATION, record.id, shown)
        await controllers.on_sample(snapshot.sample)

    async def _on_running(
        self, record: Migration, run: Run, source: Driver, snapshot: Snapshot
    ) -> None:
        """At QEMU's first sign, and again once it is active: read back. With libvirt, a short
        migration is proven by the first, every other by the second: libvirt is still setting
        values when its job is already in setup."""
        active = snapshot.status is not QemuStatus.SETUP
        if run.active or (run.read_back and not active):
            return
        run.read_back = True
        run.active = active
        if active:
            await self._became_active(record, source)
        await self._prove(record, source, final=active)

    async def _on_cancelling(self, record: Migration, run: Run) -> None:
        """Say so, once, where QEMU does not end what it was told to cancel."""
        now = time.monotonic()
        if run.cancelling_since is None:
            run.cancelling_since = now
        if now - run.cancelling_since < CANCELS_WITHIN_S:
            return
        run.cancelling_since = math.inf
        problems = (await self._get(str(record.id))).problems
        if _HANGS not in problems:
            await self._records.save(record.id, Fields(problems=(*problems, _HANGS)))

    async def _prove(self, record: Migration, source: Driver, *, final: bool) -> None:
        """Read back what QEMU runs with, and record it.

        :param final: the migration is active: nothing sets values any more.
        """
        before = (await self._get(str(record.id))).outcomes
        outcomes = await read_back(self._hosts, record, before, source, self._plans.tunables)
        if not final:
            outcomes = [in_setup(outcome) for outcome in outcomes]
        await self._records.save(record.id, Fields(outcomes=tuple(outcomes)))

    async def _became_active(self, record: Migration, source: Driver) -> None:
        """Record it; and abort, if that was asked for before there was anything to abort."""
        current = await self._get(str(record.id))
        if current.state is MigrationState.STARTING:
            fields = Fields(state=MigrationState.ACTIVE, active_at=datetime.now(UTC))
            current = await self._records.save(record.id, fields)
        if current.abort is AbortState.REQUESTED:
            await self._abort(source, record.vm)

    async def _abort(self, source: Driver, vm: UUID) -> None:
        try:
            await source.abort_migration(vm)
        except (TooLate, NotFound, CommandRefused) as error:
            log.info("abort came too late", vm=str(vm), reason=str(error))

    async def settle(self, job_id: str) -> None:
        """Find out how it ended, put back what was set for it, complete the record."""
        id = UUID(job_id)
        try:
            await patiently(lambda: self._settle(job_id, self._run(id)))
        finally:
            self._runs.pop(id, None)
            self._admission.changed()

    async def _settle(self, job_id: str, run: Run) -> None:
        id = UUID(job_id)
        await self._store_samples(id, run)
        record = await self._controlling.close(await self._get(job_id))
        if not record.state.ended:
            evidence = self._evidence(record, run)
            await self._records.save(id, await self._settler.settle(record, evidence))

    def _evidence(self, record: Migration, run: Run) -> Evidence:
        return Evidence(run.handle, run.snapshot, run.error)

    async def settle_unknown(self) -> None:
        """Look again at migrations whose end could not be seen when they ended."""
        for record in await asyncio.to_thread(self._store.migrations.unsettled):
            if not self._hosts.drives(record.source):
                continue
            fields = await self._settler.settle(record, Evidence())
            if fields.get("state") is not MigrationState.UNKNOWN:
                await self._records.save(record.id, fields)

    async def settle_orphans(self, jobs: JobEngine) -> None:
        """Settle migrations that no job carries any more: its own record could not be written (a
        full disk). Seen so twice, since a job may just be going from one service to another."""
        before, self._orphans = self._orphans, set()
        for record in await asyncio.to_thread(self._store.migrations.unfinished):
            if record.trigger is not self._trigger or not self._hosts.drives(record.source):
                continue
            if await jobs.is_active(str(record.id)):
                continue
            if record.id not in before:
                self._orphans.add(record.id)
                continue
            with bound_contextvars(migration_id=str(record.id)):
                log.warning("a migration without its job is settled")
                await self.settle(str(record.id))

    def _run(self, migration: UUID) -> Run:
        return self._runs.setdefault(migration, Run())

    async def _get(self, job_id: str) -> Migration:
        get = self._store.migrations.get
        return await patiently(lambda: asyncio.to_thread(get, UUID(job_id)))

    async def _planned(self, record: Migration) -> Planned:
        """The plan: the one that was just made, or one made anew after a restart."""
        run = self._run(record.id)
        if run.planned is None:
            wanted = Chosen(record.profile, record.revision, record.wanted, record.steps)
            run.planned = await self._plans.plan(
                record.vm, destination=record.destination, exact=wanted
            )
        return run.planned

    async def _flush(self, migration: UUID, run: Run) -> None:
        try:
            await self._store_samples(migration, run)
        except SetupError as error:
            # Kept for the next time; the migration goes on, and is watched on.
            run.store_at = len(run.samples) + _FLUSH_SAMPLES
            log.info("samples are not stored yet", migration_id=str(migration), reason=str(error))

    async def _store_samples(self, migration: UUID, run: Run) -> None:
        """:raise SetupError: the database cannot be used; nothing is lost by it."""
        samples, run.samples = run.samples, []
        try:
            if samples:
                await asyncio.to_thread(self._store.migrations.add_samples, migration, samples)
        except SetupError:
            run.samples = samples + run.samples
            raise
        run.store_at = _FLUSH_SAMPLES
        if run.controllers is not None:
            await self._controlling.flush(migration, run.controllers)


def _tell_whose(record: Migration) -> None:
    """Have each log line of the phase, which is a task of its own, name the VM and its host."""
    bind_contextvars(vm=str(record.vm), host=record.source)


def check_source(plan: Plan, source: str) -> None:
    """:raise Conflict: the VM is not on *source*, from where it was to migrate."""
    if plan.host != source:
        raise Conflict(
            f"the VM is on {plan.host} by now, not on {source}",
            field="vm",
            code="vm_elsewhere",
            remedy="look where it is, and order its migration from there",
        )


def progress_data(sample: Sample, share: float) -> dict[str, object]:
    """What a progress bar shows: the share done (0 to 1, never going back) and the rates."""
    return {
        "share": round(share, 4),
        "at_ms": sample.at_ms,
        "status": sample.status.value,
        "iteration": sample.iteration,
        "transferred_bytes": sample.transferred_bytes,
        "remaining_bytes": sample.remaining_bytes,
        "total_bytes": sample.total_bytes,
        "dirty_bytes_per_s": sample.dirty_pages_per_s * sample.page_size_bytes,
        "throughput_bytes_per_s": sample.throughput_bytes_per_s,
        "throttle_percent": sample.throttle_percent,
        "expected_downtime_ms": sample.expected_downtime_ms,
    }
