"""Live migrations: start, refusal on blockers, reading, abort."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from vmtune.engine.steps.executor import execute, prior_values
from vmtune.errors import (
    CommandRefused,
    Conflict,
    InvalidInput,
    NotFound,
    OperationInProgress,
    OutcomeUnknown,
    Problem,
    TooLate,
    VmtuneError,
)
from vmtune.hypervisor.protocol import Driver
from vmtune.jobs.base import JobEngine
from vmtune.jobs.kinds import MIGRATION_KIND
from vmtune.model.findings.table import FINDINGS, Lifted, Severity
from vmtune.model.host.uri import check_address
from vmtune.model.migration.admission import MAX_PRIORITY, MIN_PRIORITY
from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.controls import ACTIONS, why_not
from vmtune.model.migration.copy_progress import MigrationPhase, phase_of
from vmtune.model.migration.intent import Intent, parse_intent
from vmtune.model.migration.postcopy import way_out
from vmtune.model.migration.record import (
    ABORT_WAITS,
    AbortState,
    Migration,
    MigrationFields,
    MigrationState,
    QemuStatus,
    Trigger,
)
from vmtune.model.migration.stated_intent import StatedIntent
from vmtune.model.migration.step_text import describe, values_of
from vmtune.model.migration.steps import SetValues, StepAction
from vmtune.model.plan.plan import refuse
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.model.tunables.rules import accept_values
from vmtune.model.tunables.tunable import Value
from vmtune.services.events import EventBus
from vmtune.services.forecasts.intents import IntentService
from vmtune.services.hosts.connections import HostElsewhere
from vmtune.services.hosts.hosts import HostService
from vmtune.services.migrations.copies import BY_USER, accept_for_copies, change_copies
from vmtune.services.migrations.job import MigrationJob, check_source
from vmtune.services.migrations.records import MigrationRecords
from vmtune.services.migrations.settled import settled
from vmtune.services.tuning.planning import Planned, PlanService
from vmtune.services.tuning.profiles import RawSteps
from vmtune.storage import Store


class MigrationService:
    """Starts migrations and answers for them."""

    def __init__(
        self,
        store: Store,
        bus: EventBus,
        hosts: HostService,
        plans: PlanService,
        jobs: JobEngine,
        job: MigrationJob,
        intents: IntentService,
    ) -> None:
        self._store = store
        self._hosts = hosts
        self._plans = plans
        self._jobs = jobs
        self._job = job
        self.intents = intents
        self._records = MigrationRecords(store, bus)

    async def start(
        self,
        vm: UUID,
        destination: str,
        profile: str | None = None,
        revision: int | None = None,
        *,
        overrides: Collection[str] = (),
        values: Mapping[str, object] | None = None,
        steps: RawSteps | None = None,
        priority: int = 0,
        source: str | None = None,
        id: UUID | None = None,
        intent: object = None,
        shadow: bool = False,
    ) -> Migration:
        """Start a migration; it runs as a job, also across a restart of the service.

        :param profile: None for the assigned one; without an assignment the VM migrates untuned.
        :param overrides: codes of blockers that are overridden; what they concern is left out.
        :param values: added to or replacing the profile's, this time; *steps* replace its steps.
        :param priority: among queued migrations; higher goes first.
        :param source: the host on which it has to be; None for any.
        :param id: given by a caller that must know it beforehand; else a new one.
        :param intent: as JSON, what to steer it towards; None for the profile's, if it has one. The
            VM is then measured first.
        :param shadow: record what would be done for the intent, and do nothing of it: neither
            choose values nor refuse nor steer.
        :raise Blocked: the preflight found blockers that *overrides* does not name, or the intent
            cannot be kept.
        :raise InvalidInput: an override that is no blocker's code.
        :raise Conflict: the VM is not on *source*.
        :raise OperationInProgress: another application or migration of the VM is open.
        :raise DuplicateName: there is a migration of that *id* already.
        """
        _check_priority(priority)
        check_overrides(overrides)
        given: Mapping[str, object] | None = values
        stated: StatedIntent | None = None

        def checked(planned: Planned) -> Planned:
            if source is not None:
                check_source(planned.plan, source)
            refuse(planned.plan.blockers(frozenset(overrides)))
            return planned

        async def plan() -> Planned:
            return checked(
                await self._plans.plan(
                    vm, profile, revision, destination, values=given, steps=steps
                )
            )

        def begin(planned: Planned) -> Migration:
            return self._store.migrations.begin(
                vm=vm,
                vm_name=planned.plan.vm_name,
                source=planned.plan.host,
                destination=destination,
                trigger=Trigger.VMTUNE,
                profile=planned.plan.profile,
                revision=planned.plan.revision,
                wanted=planned.desired.values,
                steps=planned.desired.steps,
                overrides=tuple(overrides),
                priority=priority,
                id=id,
                intent=stated,
                copies=bool(planned.plan.disks),
            )

        async def choose(goals: Intent, planned: Planned | None = None) -> Planned | None:
            """The plan with what was chosen; None where it is the one without."""
            nonlocal given, stated
            if shadow:
                told = await self.intents.consider(
                    goals, vm, destination, profile, revision, values, steps, planned
                )
                stated = replace(told.stated, shadow=True)
                return None
            found = await self.intents.choose(
                goals, vm, destination, profile, revision, values, steps, planned
            )
            given, stated = found.values, found.stated
            return checked(found.planned)

        if intent is not None:
            planned = await choose(parse_intent(intent)) or await plan()
        else:
            planned = await plan()
            if planned.desired.intent is not None:
                planned = await choose(planned.desired.intent, planned) or planned
        if shadow and stated is None:
            raise InvalidInput(
                "there is no intent whose actions could be told",
                field="shadow",
                code="no_intent",
                remedy="state an intent, or leave out shadow",
            )
        try:
            record = await asyncio.to_thread(begin, planned)
        except OperationInProgress:
            if planned.facts.migrating or not await settled(self._store, vm):
                raise
            planned = await plan()  # its end has changed what is set
            record = await asyncio.to_thread(begin, planned)
        await self.intents.forecasts.keep_known(record.id, planned)
        await self._records.publish(record)
        if self._hosts.drives(record.source):
            self._job.remember(record.id, planned.plan)
        await self._jobs.submit(MIGRATION_KIND, str(record.id), on=record.source)
        return record

    async def abort(self, migration: UUID) -> Migration:
        """Request an abort; the record shows whether it came in time.

        :raise NotFound: no such migration.
        :raise TooLate: it has ended, or the guest runs on the destination already.
        """
        record = await asyncio.to_thread(self._store.migrations.get, migration)
        if record.state.ended:
            raise TooLate(
                f"the migration has ended: {record.state.value}",
                field="migration",
                remedy="migrate the VM back if it should not be there",
            )
        if record.state is MigrationState.POSTCOPY_PAUSED:
            raise TooLate(
                "the guest runs on the destination, and part of its memory is on the source",
                field="migration",
                remedy=f"shut down neither host; {way_out(record)}",
            )
        record = await asyncio.to_thread(self._store.migrations.request_abort, migration)
        await self._records.publish(record)
        if record.state in (MigrationState.QUEUED, MigrationState.PREPARING):
            await self._jobs.cancel(str(migration))
        else:
            await self._abort_on_source(record)
        return record

    async def change(
        self, migration: UUID, values: Mapping[str, object], do: StepAction | None = None
    ) -> Migration:
        """Set values now that QEMU heeds while it migrates, or switch to post-copy, or pause the
        guest. While disks are copied: the bandwidth of each copy, and that the guest's writes wait.
        It is recorded like a step; values are restored if the migration does not complete,
        and a paused guest is resumed at the end.

        :param do: one of :data:`~vmtune.model.migration.controls.ACTIONS`, instead of *values*.
        :raise InvalidInput: a value that is refused, or can no longer change.
        :raise Conflict: the migration is not active yet, or was started without what *do* needs.
        :raise TooLate: it has ended.
        :raise CommandRefused: with QEMU's message.
        """
        record = await asyncio.to_thread(self._store.migrations.get, migration)
        if do is None and phase_of(record) is MigrationPhase.DISKS:
            of_copies = accept_for_copies(values, self._plans.tunables)
            source = await self._hosts.driver(record.source)
            return await change_copies(self._records, record, source, of_copies)
        accepted = (
            _accept_running(values, record.wanted, self._plans.tunables)
            if do is None
            else _accept_action(do, values)
        )
        if record.state.ended:
            raise TooLate(f"the migration has ended: {record.state.value}", field="migration")
        if record.state is not MigrationState.ACTIVE:
            raise Conflict(
                f"the migration is {record.state.value}",
                field="migration",
                code="migration_not_active",
                remedy="wait until it is active, or set it in the profile",
            )
        if do is not None and (why := why_not(ACTIONS[do], record)):
            raise Conflict(
                f"{describe(do)}: {why}",
                field="do",
                code="not_possible",
                remedy="change a value instead, or set it in the profile for the next migration",
            )
        source = await self._hosts.driver(record.source)
        try:
            snapshot = await source.migration(record.vm)
        except NotFound as error:
            raise TooLate("the VM has left the source", field="migration") from error
        if not snapshot.status.running:
            raise TooLate(f"QEMU says that it is {snapshot.status.value}", field="migration")
        since = datetime.now(UTC) - (record.started_at or record.created_at)
        step = StepRecord(
            number=None,
            at_ms=round(since.total_seconds() * 1000),
            iteration=snapshot.sample.iteration if snapshot.sample else 0,
            action=describe(accepted),
            reason=BY_USER,
            effect=StepEffect.PENDING,
            values=values_of(accepted),
        )
        before = await prior_values(source, record.vm, accepted)
        await self._records.step(record.id, step, before)
        effect, detail = await execute(source, record.vm, accepted)
        step = replace(step, effect=effect, detail=detail)
        changed = await self._records.step(record.id, step, ())
        if effect is StepEffect.REFUSED:
            raise CommandRefused(detail, field="values", remedy="set something else")
        return changed

    async def recover(self, migration: UUID, address: str = "") -> Migration:
        """Give a migration that is paused in post-copy a new connection; the attempt is recorded
        like a step.

        :param address: of the destination, to connect to instead of the usual one; a connection
            that QEMU has not given up yet is given up then.
        :raise TooLate: it is not paused in post-copy.
        :raise CommandRefused: it stays paused; with QEMU's or libvirt's reason.
        """
        address = check_address(address, "address")
        record = await asyncio.to_thread(self._store.migrations.get, migration)
        if not record.destination:
            raise Conflict(
                "it is not known to which host it goes",
                field="migration",
                code="no_destination",
                remedy="add that host: vmtune host add",
            )
        await self._job.recover(record, BY_USER, address)
        return await asyncio.to_thread(self._store.migrations.get, migration)

    async def _abort_on_source(self, record: Migration) -> None:
        try:
            driver = await self._hosts.driver(record.source)
        except HostElsewhere:
            # Its job's last phase aborts a migration that still runs despite the request.
            await self._jobs.cancel(str(record.id))
            return
        try:
            await driver.abort_migration(record.vm)
        except OutcomeUnknown as error:
            waits = [problem for problem in error.problems if problem.code == ABORT_WAITS]
            if waits and waits[0] not in record.problems:
                problems = (*record.problems, *waits)
                await self._records.save(record.id, MigrationFields(problems=problems))
            raise
        except (NotFound, TooLate) as error:
            # Between the start and QEMU's first status there is nothing to cancel: the request is
            # stored, and the job aborts as soon as possible.
            # Its job may have aborted it meanwhile, as was requested.
            if record.state is MigrationState.STARTING or await _is_cancelled(driver, record.vm):
                return
            await self._records.save(record.id, MigrationFields(abort=AbortState.TOO_LATE))
            gone = isinstance(error, NotFound)
            raise TooLate(
                "the VM has left the source" if gone else error.message,
                field="migration",
                remedy="wait until it has ended, then migrate the VM back if it should not be "
                "there",
            ) from error


async def _is_cancelled(driver: Driver, vm: UUID) -> bool:
    try:
        return (await driver.migration(vm)).status in (QemuStatus.CANCELLING, QemuStatus.CANCELLED)
    except VmtuneError:
        return False


def _accept_action(do: StepAction, values: Mapping[str, object]) -> StepAction:
    """:raise InvalidInput: it comes with values, or is none that a user can request."""
    if values:
        raise InvalidInput(
            "values and an action are given", field="do", remedy="request one after the other"
        )
    if do not in ACTIONS:
        known = ", ".join(each.value for each in ACTIONS)
        raise InvalidInput(f"{do.value} cannot be requested", field="do", remedy=f"use {known}")
    return do


def _accept_running(
    values: Mapping[str, object], wanted: Mapping[str, Value], tunables: TunableRegistry
) -> SetValues:
    """*values* as a step that sets them.

    :raise InvalidInput: with a problem for each that is unknown, refused, or heeded no more.
    """
    if not values:
        raise InvalidInput(
            "no value is given", field="values", remedy=f"set one or more of {_RUNNING}"
        )
    problems = [
        Problem(
            f"values.{name}",
            "not_settable",
            "it cannot be unset while the migration runs"
            if value is None
            else "QEMU ignores it while it migrates, or would crash",
            f"set one or more of {_RUNNING}",
        )
        for name, value in values.items()
        if name in tunables and (value is None or not tunables[name].running)
    ]
    merged = {**wanted, **{n: v for n, v in values.items() if v is not None}}
    try:
        accepted = accept_values(merged, tunables)
    except InvalidInput as error:
        blamed = {problem.field for problem in problems}
        others = [p for p in error.problems if p.field not in blamed]
        problems += [_as_begun(problem, values, tunables) for problem in others]
    if problems:
        raise InvalidInput("some values cannot be set now", problems=problems)
    return SetValues(tuple((name, accepted[name]) for name in accepted if name in values))


def _as_begun(problem: Problem, values: Mapping[str, object], tunables: TunableRegistry) -> Problem:
    """A contradiction, without the advice to set what can no longer be set."""
    switch = problem.code.removeprefix("needs_")
    if switch == problem.code or switch not in tunables or tunables[switch].running:
        return problem
    message = f"{problem.message}, and the migration was begun without it"
    return replace(problem, message=message, remedy=f"leave it out; set {switch} next time")


_RUNNING = ", ".join(name for name, row in BUILT_IN.items() if row.running)


def _check_priority(priority: int) -> None:
    if not MIN_PRIORITY <= priority <= MAX_PRIORITY:
        raise InvalidInput(
            f"{priority} is not a valid priority",
            field="priority",
            remedy=f"give {MIN_PRIORITY} to {MAX_PRIORITY}; higher goes first",
        )


def check_overrides(codes: Collection[str], field: str = "overrides") -> None:
    """:raise InvalidInput: with a problem for each that is no code of a blocker which can be
    overridden."""
    blockers = {c: kind for c, kind in FINDINGS.items() if kind.severity is Severity.BLOCKER}
    known = [code for code, kind in blockers.items() if kind.lifted is not Lifted.NEVER]
    problems = [
        Problem(f"{field}.{index}", "final_code", f"{code} cannot be overridden", "do its remedy")
        if code in blockers
        else Problem(
            f"{field}.{index}",
            "unknown_code",
            f"{code[:60]!r} is not the code of a blocker",
            f"blockers are {', '.join(known)}",
        )
        for index, code in enumerate(codes)
        if code not in known
    ]
    if problems:
        raise InvalidInput("an override is unknown", problems=problems)
