"""Apply, verify, revert: a plan applied to one VM, and read back."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar
from uuid import UUID

import structlog
from structlog.contextvars import bound_contextvars

from vmtune.engine.setting import is_put_back, set_again, set_each
from vmtune.errors import (
    Conflict,
    HostUnreachable,
    NotFound,
    OperationInProgress,
    OutcomeUnknown,
    Problem,
    VmtuneError,
)
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.facts import Reading, VmFacts
from vmtune.model.host.inventory import EventTopic
from vmtune.model.plan.changes import AT_START, OF_HOST, Change, in_order
from vmtune.model.plan.outcome import Application, ApplicationState, Outcome, Status
from vmtune.model.plan.plan import SET_NOW
from vmtune.model.plan.readback import outcomes_of
from vmtune.model.plan.tuning_state import TuningState, tuning_state
from vmtune.services.events import EventBus
from vmtune.services.hosts.hosts import HostService
from vmtune.services.hosts.limits import HostLimits
from vmtune.services.metrics import telemetry
from vmtune.services.migrations.settled import settled
from vmtune.services.tuning.planning import Planned, PlanService
from vmtune.services.tuning.setting import asker, limits_wanted, not_put_back, restore_all
from vmtune.services.tuning.verify import WAITS, Verification, publish_tuning, verification
from vmtune.services.tuning.work import Work, work_of
from vmtune.storage import Store

log = structlog.get_logger(__name__)

_LOST = (OutcomeUnknown, HostUnreachable, NotFound)
_T = TypeVar("_T")


class ApplyService:
    """Applies plans, one at a time for each VM."""

    def __init__(
        self,
        store: Store,
        bus: EventBus,
        hosts: HostService,
        plans: PlanService,
        limits: HostLimits | None = None,
    ) -> None:
        self._limits = limits
        self._store = store
        self._bus = bus
        self._hosts = hosts
        self._plans = plans

    async def apply(
        self,
        vm: UUID,
        profile: str | None = None,
        revision: int | None = None,
        best_effort: bool = False,
        boot_only: bool = False,
        may_raise_limits: bool = True,
    ) -> Application:
        """Set what can be set now, write what waits for a restart, and read everything back.

        Prior values are journaled first. At the first refusal everything is restored and the
        application ends as failed, with that error; with *best_effort* refused values are left out
        and the rest is applied. With *boot_only* only the persistent configuration is changed, for
        which the VM need not run.

        :param may_raise_limits: of the host, which all its VMs share.
        :raise Forbidden: the plan raises limits of the host, and may not.
        :raise Blocked: the plan has blockers; with *best_effort* only those of the VM itself.
        :raise InvalidInput: no profile was named and none is assigned; or, with *boot_only*, it
            has no value of the ``boot`` route.
        :raise OperationInProgress: another application or migration of the VM is open.
        """

        async def plan() -> Work:
            planned = await self._plans.plan(vm, profile, revision)
            return work_of(planned, best_effort, boot_only, may_raise_limits)

        work = await plan()
        try:
            record = await asyncio.to_thread(work.begin, self._store)
        except OperationInProgress:
            if work.planned.facts.migrating or not await settled(self._store, vm):
                raise
            work = await plan()  # its end has changed what is set
            record = await asyncio.to_thread(work.begin, self._store)
        with _named(record):
            return await _uninterrupted(self._set(record, work))

    async def _set(self, record: Application, work: Work) -> Application:
        planned, changes, boot = work.planned, work.changes, work.boot
        driver, vm = planned.driver, record.vm
        refused: dict[str, str] = {}
        try:
            if self._limits is not None:
                await self._limits.claim(asker(record), limits_wanted(planned.plan))
            now: dict[str, Reading] = {}
            names = {item.tunable for item in planned.plan.items if item.route in SET_NOW}
            if record.best_effort:
                refused = await set_each(driver, vm, changes)
            if changes and not record.best_effort:
                ordered = in_order(changes, planned.facts.readings)
                now = await driver.write_and_read(vm, ordered, names)
            elif names:
                now = await driver.read(vm, names)
            if boot:
                await driver.write_boot(vm, boot)
            outcomes = await self._judge(planned, now, bool(boot), refused)
        except VmtuneError as error:
            return await self._restore_after(record, driver, error)
        except Exception as error:
            # An internal error must not leave half of it set either.
            await self._restore_after(record, driver, VmtuneError(f"internal error: {error!r}"))
            raise
        return await self._finish(
            record, ApplicationState.APPLIED, outcomes, (), work.ends_with_machine
        )

    async def _judge(
        self, planned: Planned, now: Mapping[str, Reading], boot: bool, refused: dict[str, str]
    ) -> list[Outcome]:
        """Of each item of the plan, by what was read back just now."""
        plan, driver = planned.plan, planned.driver
        if limits_wanted(plan):
            sysctls = (await self._hosts.facts(plan.host)).sysctls
            now = {**now, **{name: Reading(value) for name, value in sysctls.items()}}
        configured = planned.facts.boot_readings
        if boot:
            configured = (await driver.vm_facts(plan.vm)).boot_readings
        return outcomes_of(plan, now, configured, refused)

    async def _restore_after(
        self, record: Application, driver: Driver, error: VmtuneError
    ) -> Application:
        """Restore the journal after *error*; failed if all is back, else unknown, so that it can
        be reverted."""
        try:
            outcomes = await restore_all(driver, record, self._limits)
        except VmtuneError as second:
            problems = (*error.problems, *second.problems)
            outcomes = _all_unknown(record, second.message)
            return await self._finish(record, ApplicationState.UNKNOWN, outcomes, problems)
        return await self._put_back(record, ApplicationState.FAILED, outcomes, error.problems)

    async def _put_back(
        self,
        record: Application,
        end: ApplicationState,
        outcomes: Sequence[Outcome],
        problems: Sequence[Problem],
    ) -> Application:
        """Record *end* if all is put back, else that it is unknown and what is not."""
        missing = not_put_back(outcomes)
        state = ApplicationState.UNKNOWN if missing else end
        return await self._finish(record, state, outcomes, (*problems, *missing))

    async def revert(self, application: UUID) -> Application:
        """Restore the values from before the application, and read them back.

        :raise NotFound: no such application.
        :raise Conflict: it is not applied, or the VM has a newer one.
        """
        record = await asyncio.to_thread(self._store.applications.get, application)
        standing = await asyncio.to_thread(self._store.applications.standing, record.vm)
        if record.state not in (ApplicationState.APPLIED, ApplicationState.UNKNOWN):
            raise Conflict(
                f"the application is {record.state.value}",
                field="application",
                code="not_applied",
                remedy="revert an application that is applied",
            )
        if standing is not None and standing.id != record.id:
            raise Conflict(
                f"this VM has a newer application: {standing.id}",
                field="application",
                code="newer_application",
                remedy="revert the newer one first",
            )
        _, driver, _ = await self._hosts.locate(record.vm)
        record = await asyncio.to_thread(self._store.applications.begin_revert, application)
        with _named(record):
            return await _uninterrupted(self._revert(record, driver))

    async def _revert(self, record: Application, driver: Driver) -> Application:
        try:
            outcomes = await restore_all(driver, record, self._limits)
        except _LOST as error:
            outcomes = _all_unknown(record, error.message)
            return await self._finish(record, ApplicationState.UNKNOWN, outcomes, error.problems)
        except VmtuneError as error:
            state = ApplicationState.APPLIED
            return await self._finish(record, state, record.outcomes, error.problems)
        if not any(outcome.status is Status.REVERTED for outcome in outcomes):
            refused = not_put_back(outcomes)  # it stands as before
            return await self._finish(record, ApplicationState.APPLIED, record.outcomes, refused)
        return await self._put_back(record, ApplicationState.REVERTED, outcomes, ())

    async def verify(self, vm: UUID) -> Verification:
        """Compare what the VM runs with to its current application, or its assignment, and store
        the result.

        :raise NotFound: the VM has neither, or is gone.
        """
        standing = await asyncio.to_thread(self._store.applications.standing, vm)
        if standing is not None:
            planned = await self._plans.plan(vm, standing.profile, standing.revision)
        else:
            planned = await self._plans.plan(vm)
        if not planned.desired.profile:
            if await asyncio.to_thread(self._store.tunings.forget, vm):
                await publish_tuning(self._bus, vm, TuningState.UNTUNED)
            raise NotFound(
                "nothing was applied to this VM and no profile is assigned to it",
                field="vm",
                remedy="apply a profile, or assign one",
            )
        found = verification(planned, standing)
        await self._note(vm, found.profile, found.revision, found.application, found.outcomes)
        return found

    async def _note(
        self,
        vm: UUID,
        profile: str,
        revision: int,
        application: UUID | None,
        outcomes: Sequence[Outcome],
    ) -> None:
        """Store a VM's tuning state, and publish it if it changed."""
        tunings = self._store.tunings
        if await asyncio.to_thread(tunings.note, vm, profile, revision, application, outcomes):
            await publish_tuning(self._bus, vm, tuning_state(outcomes, application is not None))

    async def reapply(self, vm: UUID, driver: Driver) -> list[Outcome]:
        """Set the current application's values again after a migration: QEMU does not migrate them.

        A failure becomes an outcome: the VM runs, and verify shows what it lacks.
        """
        standing = await asyncio.to_thread(self._store.applications.standing, vm)
        if standing is None:
            return []
        tunables = self._plans.tunables
        changes = [
            Change(outcome.tunable, standing.wanted[outcome.tunable])
            for outcome in standing.outcomes
            if outcome.status is Status.EFFECTIVE
            and outcome.tunable in tunables  # its pack may no longer be loaded
            and tunables[outcome.tunable].route in SET_NOW
            and outcome.tunable in standing.wanted
        ]
        carried = await set_again(driver, vm, changes) if changes else []
        if any(outcome.status is not Status.EFFECTIVE for outcome in carried):
            seen = {o.tunable: o for o in (*standing.outcomes, *carried)}
            await self._note(vm, standing.profile, standing.revision, standing.id, [*seen.values()])
        return carried

    async def reconcile(self, service: str = "") -> None:
        """Settle the applications that a service left open when it died: restore what they had
        begun to change, and record it.
        :param service: which one, if several share the work; empty for this one.
        """
        begun: frozenset[str] | None = None
        if self._store.lease is not None:
            name = service or self._store.lease.service
            begun = await asyncio.to_thread(self._store.services.operations_of, name)
        for record in await asyncio.to_thread(self._store.applications.open):
            if begun is not None and str(record.id) not in begun:
                continue
            with _named(record):
                log.info("settling an interrupted application")
                await self._settle(record)

    async def settle_unknown(self) -> None:
        """Check applications again that ended as unknown and have no newer one.

        Changes nothing on the VM: if all values are set, it was applied; if all of the journal is,
        it was reverted; anything else stays unknown, for revert to resolve.
        """
        page = await asyncio.to_thread(
            self._store.applications.list, state=ApplicationState.UNKNOWN
        )
        for record in page.items:
            if not self._hosts.drives(record.host):
                continue
            newest = await asyncio.to_thread(self._store.applications.list, vm=record.vm, limit=1)
            if newest.items[0].id != record.id:
                continue
            try:
                with _named(record):
                    await self._recheck(record)
            except VmtuneError as error:
                log.debug("still unknown", application_id=str(record.id), reason=str(error))

    async def _recheck(self, record: Application) -> None:
        planned = await self._plans.plan(record.vm, record.profile, record.revision)
        readings = planned.facts.readings
        outcomes = outcomes_of(planned.plan, readings, planned.facts.boot_readings)
        if all(outcome.status in WAITS for outcome in outcomes):
            await self._finish(record, ApplicationState.APPLIED, outcomes, record.problems)
            return
        if await self._is_back(record, planned.facts):
            state = ApplicationState.FAILED
            await self._finish(record, state, _all_unknown(record, "put back"), record.problems)

    async def _is_back(self, record: Application, facts: VmFacts) -> bool:
        """Whether all that the journal holds is set, on the host and for the next start, too."""
        configured = {name: facts.boot_readings.get(name, Reading(None)) for name in AT_START}
        seen = {**facts.readings, **configured}
        if any(change.tunable in OF_HOST for change in record.journal):
            sysctls = (await self._hosts.facts(record.host)).sysctls
            seen |= {name: Reading(value) for name, value in sysctls.items()}
        return bool(record.journal) and all(is_put_back(one, seen) for one in record.journal)

    async def _settle(self, record: Application) -> None:
        why = Problem("", "interrupted", "the service stopped while it was at work", "apply again")
        reverting = record.state is ApplicationState.REVERTING
        end = ApplicationState.REVERTED if reverting else ApplicationState.FAILED
        try:
            _, driver, _ = await self._hosts.locate(record.vm)
            outcomes = await restore_all(driver, record, self._limits)
        except VmtuneError as error:
            outcomes = _all_unknown(record, error.message)
            problems = (why, *error.problems)
            await self._finish(record, ApplicationState.UNKNOWN, outcomes, problems)
        else:
            await self._put_back(record, end, outcomes, () if reverting else (why,))

    async def _finish(
        self,
        record: Application,
        state: ApplicationState,
        outcomes: Iterable[Outcome],
        problems: Sequence[Problem],
        ends_with_machine: bool = False,
    ) -> Application:
        done = await asyncio.to_thread(
            self._store.applications.finish,
            record.id,
            state,
            tuple(outcomes),
            tuple(problems),
            ends_with_machine,
        )
        self._publish(done)
        telemetry.application_ended(done)
        log.info("application ended", state=done.state.value, profile=done.profile)
        return done

    def _publish(self, record: Application) -> None:
        data = {"state": record.state.value, "vm": str(record.vm), "profile": record.profile}
        # With it everything is on disk: of what ends with this machine nobody waits for that.
        self._bus.publish_soon(EventTopic.APPLICATION, record.id, data, durable=True)


def _named(record: Application) -> AbstractContextManager[None]:
    """Have each log line say of which application it is."""
    return bound_contextvars(application_id=str(record.id), vm=str(record.vm), host=record.host)


def _all_unknown(record: Application, why: str) -> list[Outcome]:
    return [
        Outcome(name, Status.UNKNOWN, wanted, None, why) for name, wanted in record.wanted.items()
    ]


async def _uninterrupted(work: Coroutine[Any, Any, _T]) -> _T:  # any: what a coroutine yields
    """Run *work* to its end even when the caller goes away in the middle."""
    return await asyncio.shield(asyncio.ensure_future(work))
