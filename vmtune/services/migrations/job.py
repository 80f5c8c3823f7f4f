"""The durable phases of a migration: prepare, run, finalize. Each is thin around the engine's
session, and can be repeated after the service died: the session reads the record, queries QEMU or
libvirt, and continues from there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Container, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import cast
from uuid import UUID

import structlog
from structlog.contextvars import bind_contextvars, bound_contextvars

from vmtune.engine.end_state import removed, with_report
from vmtune.engine.observed import Observed
from vmtune.engine.recovery import recover
from vmtune.engine.session import MigrationSession, Origin, Started
from vmtune.errors import Conflict, NotFound, OutcomeUnknown, TakenOver, VmtuneError
from vmtune.hypervisor.protocol import Driver
from vmtune.jobs.base import JobEngine, Phase
from vmtune.jobs.kinds import MIGRATION_KIND, OBSERVED_KIND
from vmtune.model.host.facts import Connection
from vmtune.model.migration.record import Migration, MigrationFields, MigrationState, Trigger
from vmtune.model.plan.plan import Plan, refuse
from vmtune.services.events import EventBus
from vmtune.services.hosts.hosts import HostService
from vmtune.services.metrics import telemetry
from vmtune.services.migrations.admission import Admission
from vmtune.services.migrations.departures import Departures
from vmtune.services.migrations.records import DurableNotes, MigrationRecords
from vmtune.services.retry import retry_until_available
from vmtune.services.tuning.applications import ApplyService
from vmtune.services.tuning.planning import PlanService
from vmtune.services.tuning.profiles import DesiredValues
from vmtune.storage import Store
from vmtune.storage.repositories.since import Since

log = structlog.get_logger(__name__)

_STARTED = (MigrationState.STARTING, MigrationState.ACTIVE, MigrationState.POSTCOPY_PAUSED)
_SUPERSEDED = (
    "its end was not seen, and the VM has migrated again since: its hosts can no longer say how it "
    "ended, and nothing of it is restored"
)


@dataclass(slots=True)
class _Run:
    """What this process knows of a migration; lost when it dies.

    :param error: the first one, with which the record is completed.
    """

    notes: DurableNotes
    session: MigrationSession
    plan: Plan | None = None
    error: VmtuneError | None = None


@dataclass(frozen=True, slots=True)
class _Followed:
    """A migration whose job is over, and which is not."""

    source: str
    task: asyncio.Task[None]


class MigrationJob:
    """Runs migrations, phase by phase.

    :param trigger: who starts them. Of observed ones, :attr:`departed` is filled by the observer.
    """

    def __init__(
        self,
        store: Store,
        bus: EventBus,
        hosts: HostService,
        plans: PlanService,
        applications: ApplyService,
        admission: Admission,
        sample_hz: float,
        trigger: Trigger = Trigger.VMTUNE,
    ) -> None:
        self._store = store
        self._hosts = hosts
        self._plans = plans
        self._applications = applications
        self._admission = admission
        self._sample_hz = sample_hz
        self._trigger = trigger
        self.departed = Departures()
        self._records = MigrationRecords(store, bus, retries=True)
        self._runs: dict[UUID, _Run] = {}
        self._orphans: set[UUID] = set()
        self._followed: dict[UUID, _Followed] = {}

    def register(self, jobs: JobEngine) -> None:
        """Give the job engine the phases."""
        phases: Sequence[tuple[str, Phase]] = (("run", self.run), ("finalize", self.finalize))
        if self._trigger is Trigger.OBSERVED:
            jobs.register(OBSERVED_KIND, phases)
        else:
            jobs.register(MIGRATION_KIND, (("prepare", self.prepare), *phases))

    def remember(self, migration: UUID, plan: Plan) -> None:
        """Keep a fresh plan, so that the first phase need not probe again."""
        self._of(migration).plan = plan

    def share(self, migration: UUID) -> float:
        """How far a migration is, from 0 to 1; 0 where this process does not run it."""
        run = self._runs.get(migration)
        return run.notes.share if run is not None else 0.0

    async def prepare(self, job_id: str) -> None:
        """Wait for its turn; then journal and set what goes through the monitor, on the source."""
        async with self._phase(job_id) as (record, run):
            if record.state.ended:
                return
            if record.state is MigrationState.QUEUED:
                await self._in_turn(record, run)
            await run.session.prepare(await self._plan(record, run))

    async def _in_turn(self, record: Migration, run: _Run) -> None:
        """Return once it may begin. After a wait it is planned again: much may have changed."""
        if await self._admission.wait(record.id):
            run.plan = None

    async def run(self, job_id: str) -> None:
        """Start the migration, or find it again, and observe it to its end."""
        async with self._phase(job_id) as (record, run):
            session = run.session
            if record.state is MigrationState.PREPARING:
                plan = await self._plan(record, run)
                async with session.controlled():
                    await session.start(plan)
                    await session.observe()
            elif not record.state.ended and await session.find_running():
                async with session.controlled():
                    await session.observe()

    async def finalize(self, job_id: str) -> None:
        """Determine how it ended, restore what was set for it, complete the record."""
        id = UUID(job_id)
        try:
            await retry_until_available(lambda: self._finalize(id))
        finally:
            self._runs.pop(id, None)
            self._admission.changed()

    async def _finalize(self, id: UUID) -> None:
        run = self._of(id)
        await run.notes.store_samples(run.session.controllers)
        if (await run.notes.record()).state.ended:
            return
        fields = await self._end(run)
        changed = _changed(await run.notes.record(), fields)
        if changed:
            await run.notes.save(changed)

    async def _end(self, run: _Run, stays: Container[str] = ()) -> MigrationFields:
        record = await run.notes.record()
        if not record.destination:
            found = await self._hosts.find_other(record)
            if found:
                await run.notes.save(MigrationFields(destination=found))
        return await run.session.finalize(self._applications.reapply, run.error, stays)

    async def settle_unknown(self) -> None:
        """Look again at migrations whose end could not be seen when they ended."""
        for record in await asyncio.to_thread(self._store.migrations.unsettled):
            if self._hosts.drives(record.source):
                with _by_itself(record):
                    await self._settle(record)

    async def _settle(self, record: Migration) -> None:
        """Look again at one whose end is unknown, and which no longer has the VM to itself: what an
        application has set since stays."""
        since = await asyncio.to_thread(self._store.migrations.since, record)
        if since.busy:
            return
        run = self._new(record.id)
        why = await self._why_not_asked(record, since)
        if why:
            fields = MigrationFields(state=record.state, failure=why)
        else:
            fields = await self._end(run, since.applied)
        if fields["state"] not in (MigrationState.POSTCOPY_PAUSED, MigrationState.UNKNOWN):
            await run.notes.save(fields)
            return
        # It has ended for its job, so its state stays: what it is now is said.
        told = {name: fields[name] for name in ("failure", "problems") if name in fields}
        told["failure"] = with_report(record.failure, str(told["failure"]))
        if told["failure"] != record.failure or "problems" in told:
            await run.notes.save(cast(MigrationFields, told))

    async def _why_not_asked(self, record: Migration, since: Since) -> str:
        """Why its hosts cannot tell any more how it ended; empty where they may."""
        if since.migration is not None:
            return _SUPERSEDED
        if record.source in {host.name for host in await self._hosts.all()}:
            return ""
        return f"the source cannot be asked: {removed(record.source)}"

    async def settle_orphans(self, jobs: JobEngine) -> None:
        """Follow, or finalize, migrations that no job runs any more: its own record could not be
        written (a full disk), or it ended while post-copy was paused. Seen so twice, since a job
        may just be going from one service to another."""
        before, self._orphans = self._orphans, set()
        for followed in self._followed.values():
            if not self._hosts.drives(followed.source):
                followed.task.cancel()
        for record in await asyncio.to_thread(self._store.migrations.unfinished):
            if record.trigger is not self._trigger or not self._hosts.drives(record.source):
                continue
            if record.id in self._followed or await jobs.is_active(str(record.id)):
                continue
            if record.id not in before:
                self._orphans.add(record.id)
            elif record.state in _STARTED:
                self._follow(record)
            else:
                with _by_itself(record):
                    log.warning("a migration without its job is finalized")
                    await self.finalize(str(record.id))

    def _follow(self, record: Migration) -> None:
        """Run a job's phases again, beside the looks at others: it may last."""

        async def follow() -> None:
            with _by_itself(record):
                log.info("a migration without its job is followed", state=record.state.value)
                with suppress(Exception):  # known to its last phase, as in a job
                    await self.run(str(record.id))
                await self.finalize(str(record.id))

        task = asyncio.create_task(follow(), name=f"follow {record.id}")
        self._followed[record.id] = _Followed(record.source, task)

        def over(task: asyncio.Task[None]) -> None:
            del self._followed[record.id]
            if not task.cancelled():
                task.exception()  # who took over has its hosts

        task.add_done_callback(over)

    async def close(self) -> None:
        """Leave alone what is followed; the next service finds it."""
        tasks = [followed.task for followed in self._followed.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def recover(self, record: Migration, reason: str, address: str) -> None:
        """Recover a migration that is paused in post-copy, whoever runs its job.

        :raise VmtuneError: see :func:`vmtune.engine.recovery.recover`.
        """
        notes = DurableNotes(self._records, record.id)
        hosts = _RecordedHosts(self._hosts, notes)
        destination = await self._hosts.driver(record.destination)
        await recover(hosts, notes, destination, reason, address)

    @asynccontextmanager
    async def _phase(self, job_id: str) -> AsyncIterator[tuple[Migration, _Run]]:
        """The record and this process's knowledge of it. Keeps the first error for the last phase,
        which completes the record with it; each log line of the phase, which is a task of its own,
        names the VM and its host."""
        run = self._of(UUID(job_id))
        try:
            record = await run.notes.record()
            bind_contextvars(vm=str(record.vm), host=record.source)
            yield record, run
        except VmtuneError as error:
            run.error = error
            raise
        except Exception as error:
            # A fault of ours: the record is completed all the same, by asking the hosts.
            run.error = OutcomeUnknown(f"internal error: {error!r}")
            log.exception("migration broke", migration_id=job_id)
            raise

    def _of(self, migration: UUID) -> _Run:
        if migration not in self._runs:
            self._runs[migration] = self._new(migration)
        return self._runs[migration]

    def _new(self, migration: UUID) -> _Run:
        notes = DurableNotes(self._records, migration)
        hosts = _RecordedHosts(self._hosts, notes)
        session = MigrationSession(
            hosts, notes, self._plans.tunables, self._sample_hz, self._origin()
        )
        return _Run(notes, session)

    def _origin(self) -> Origin:
        if self._trigger is Trigger.VMTUNE:
            return Started()
        return Observed(self._plan_observed, self._hosts.find_other, self.departed)

    async def _plan(self, record: Migration, run: _Run) -> Plan:
        """The plan: the one just made, or a new one after a wait or a restart.

        :raise Blocked: the preflight finds blockers now.
        :raise Conflict: the VM is now on another host.
        """
        if run.plan is None:
            planned = await self._plans.plan(
                record.vm, destination=record.destination, exact=_chosen(record)
            )
            check_source(planned.plan, record.source)
            refuse(planned.plan.blockers(frozenset(record.overrides)))
            run.plan = planned.plan
        return run.plan

    async def _plan_observed(self, record: Migration) -> Plan:
        return (await self._plans.plan_on(record.source, record.vm, _chosen(record))).plan


class _RecordedHosts:
    """The :class:`~vmtune.engine.notes.Hosts` that a record names."""

    def __init__(self, hosts: HostService, notes: DurableNotes) -> None:
        self._hosts = hosts
        self._notes = notes
        self._source = ""

    async def _source_name(self) -> str:
        """It stays the same: it is looked up once."""
        self._source = self._source or (await self._notes.record()).source
        return self._source

    async def connection(self) -> Connection:
        return (await self._hosts.get(await self._source_name())).connection

    async def source(self) -> Driver:
        return await self._hosts.driver(await self._source_name())

    async def destination(self) -> Driver | None:
        """None, too, if it was removed since."""
        record = await self._notes.record()
        if not record.destination:
            return None
        try:
            return await self._hosts.driver(record.destination)
        except NotFound:
            return None


@contextmanager
def _by_itself(record: Migration) -> Iterator[None]:
    """Look at one record of several: what goes wrong with it must not keep the others from it."""
    with bound_contextvars(migration_id=str(record.id)):
        try:
            yield
        except TakenOver:
            raise  # nor may this service settle the others
        except VmtuneError as error:
            log.warning("a migration is not settled", reason=error.message)
        except Exception:
            telemetry.task_failed()
            log.exception("a migration is not settled")


def _changed(record: Migration, fields: MigrationFields) -> MigrationFields:
    """Of *fields* what differs: a state that stays is not told again."""
    changed = {name: value for name, value in fields.items() if getattr(record, name) != value}
    return cast(MigrationFields, changed)


def _chosen(record: Migration) -> DesiredValues:
    return DesiredValues(record.profile, record.revision, record.wanted, record.steps)


def check_source(plan: Plan, source: str) -> None:
    """:raise Conflict: the VM is not on *source*."""
    if plan.host != source:
        raise Conflict(
            f"the VM is on {plan.host} by now, not on {source}",
            field="vm",
            code="vm_elsewhere",
            remedy="look where it is, and order its migration from there",
        )
