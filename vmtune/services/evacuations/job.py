"""How an evacuation is carried out: a few migrations at a time, each through the migration
service and its queue.

Where each VM stands is in the store, and its migration's id follows from the evacuation and the
VM. So a service that died goes on where it was, and none is ordered twice. Only few are ordered
beforehand: the queue holds what may begin soon, not all that will.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from uuid import UUID

import structlog
from structlog.contextvars import bind_contextvars

from vmtune.errors import (
    Blocked,
    Conflict,
    DuplicateName,
    HostUnreachable,
    InvalidInput,
    NotFound,
    OperationInProgress,
    SetupError,
    TooLate,
    VmtuneError,
)
from vmtune.jobs.base import JobEngine
from vmtune.jobs.kinds import EVACUATION_KIND, MIGRATION_KIND
from vmtune.model.evacuation.evacuation import (
    Evacuation,
    EvacuationState,
    LeavingState,
    LeavingVm,
    end_of,
    migration_id,
)
from vmtune.model.host.inventory import EventTopic
from vmtune.model.migration.record import Migration, MigrationState
from vmtune.services.evacuations.plan import MOST_TRIES, EvacuationPlanner, EvacuationRequest
from vmtune.services.evacuations.progress import Progress, event_data
from vmtune.services.events import EventBus
from vmtune.services.migrations.admission import Admission
from vmtune.services.migrations.job import MigrationJob
from vmtune.services.migrations.migrations import MigrationRequest, MigrationService
from vmtune.storage import Store

log = structlog.get_logger(__name__)

_TELL_EVERY_S = 1.0
_AHEAD = 2
"""Of the most that may leave a host at once, so many times as many are ordered: another one is
at hand where the first ones wait for a destination that is busy."""
_BUSY_AGAIN_S = 1.0
_BUSY_TRIES = 30
"""How often a VM is tried with which somebody else is busy."""
_STORE_AGAIN_S, _STORE_TRIES = 2.0, 60
_UNKNOWN_AGAIN_S, _UNKNOWN_TRIES = 5.0, 24
"""How long the end of a migration whose hosts are silent is waited for."""
_STOPPING = "jobs_not_running"
_GONE = ("vm_elsewhere", "destination_is_source")


class EvacuationJob:
    """Carries evacuations out."""

    def __init__(
        self,
        store: Store,
        bus: EventBus,
        planner: EvacuationPlanner,
        migrations: MigrationService,
        carrier: MigrationJob,
        admission: Admission,
        jobs: JobEngine,
    ) -> None:
        self._store = store
        self._bus = bus
        self._planner = planner
        self._migrations = migrations
        self._carrier = carrier
        self._admission = admission
        self._jobs = jobs
        self._woken: dict[UUID, asyncio.Event] = {}
        self._broken: dict[UUID, str] = {}

    def register(self) -> None:
        """Give the job engine the phases."""
        self._jobs.register(EVACUATION_KIND, (("run", self.run), ("settle", self.settle)))

    def wake(self, id: UUID) -> None:
        """Let an evacuation look whether it is still paused."""
        if id in self._woken:
            self._woken[id].set()

    async def run(self, job_id: str) -> None:
        """Move all VMs that have not moved yet."""
        record = await self._get(job_id)
        if record.state.ended:
            return
        self._woken[record.id] = asyncio.Event()
        bind_contextvars(host=record.host)
        try:
            stopped = await self._all(record)
        except VmtuneError as error:
            self._broken[record.id] = str(error)
            raise
        except Exception as error:
            log.exception("an evacuation broke", evacuation_id=job_id)
            self._broken[record.id] = f"internal error: {error!r}"
            raise
        finally:
            self._woken.pop(record.id, None)
        if stopped:
            await self._never_begin(record, stopped)
            await self._enter(record.id, EvacuationState.FAILED, stopped)
        else:
            tallies = await asyncio.to_thread(self._store.evacuations.tallies, [record.id])
            await self._enter(record.id, end_of(tallies[record.id]))

    async def _all(self, record: Evacuation) -> str:
        """Why it stopped before its end; empty where it did not."""
        vms = await asyncio.to_thread(self._store.evacuations.vms, record.id)
        failures = sum(vm.state is LeavingState.FAILED for vm in vms)
        waiting = deque(vm for vm in vms if vm.state is LeavingState.WAITING)
        begun = [vm for vm in vms if vm.state is LeavingState.ORDERED]
        most = record.max_outgoing or _AHEAD * self._admission.limits.outgoing
        progress = Progress(self._bus, record, vms)
        woken = self._woken[record.id]
        moving: dict[asyncio.Task[LeavingVm], LeavingVm] = {}
        try:
            for vm in begun:
                moving[asyncio.create_task(self._move(record, vm))] = vm
            while True:
                woken.clear()
                stopped = _too_many(failures, record.stop_after_failures)
                paused = (await self._get(str(record.id))).state is EvacuationState.PAUSED
                while waiting and not paused and not stopped and len(moving) < most:
                    vm = waiting.popleft()
                    moving[asyncio.create_task(self._move(record, vm))] = vm
                if not moving and (stopped or not waiting):
                    if stopped:
                        return stopped
                    found = await self._newcomers(record, progress.known)
                    if found is not None and not found:
                        return ""
                    for vm in found or ():
                        progress.over(vm)
                        if not vm.state.over:
                            waiting.append(vm)
                    if found:
                        continue
                await _something(moving, woken)
                for task in [task for task in moving if task.done()]:
                    del moving[task]
                    vm = task.result()
                    failures += vm.state is LeavingState.FAILED
                    progress.over(vm)
                progress.tell({vm.vm: self._share(record, vm) for vm in moving.values()})
        finally:
            await _end_all(moving)

    async def _newcomers(
        self, record: Evacuation, known: Collection[UUID]
    ) -> Sequence[LeavingVm] | None:
        """VMs that have come to the host since it was planned, planned now too; None while some
        are still on their way there."""
        if await asyncio.to_thread(self._store.evacuations.arriving, record.host):
            return None
        try:
            plan = await self._planner.plan(_request_of(record), known)
        except (HostUnreachable, NotFound) as error:
            log.info("not looked for newcomers", host=record.host, reason=str(error))
            return ()
        if plan.vms:
            await asyncio.to_thread(self._store.evacuations.add, record.id, plan.vms)
        return plan.vms

    def _share(self, record: Evacuation, vm: LeavingVm) -> float:
        return self._carrier.share(migration_id(record.id, vm.vm))

    async def _move(self, record: Evacuation, vm: LeavingVm) -> LeavingVm:
        """Migrate one VM; how it then stands. A database that is away is asked again: what was
        done by then is found again."""
        for _ in range(_STORE_TRIES):
            try:
                if vm.state is LeavingState.WAITING:
                    vm = await self._order(record, vm)
                return vm if vm.state.over else await self._follow(record, vm)
            except SetupError as error:
                if any(problem.code == _STOPPING for problem in error.problems):
                    raise
                log.warning("tried again soon", evacuation_id=str(record.id), reason=str(error))
                await asyncio.sleep(_STORE_AGAIN_S)
        return await self._follow(record, vm)

    async def _order(self, record: Evacuation, vm: LeavingVm) -> LeavingVm:
        """Order its migration, unless that was done; or say why it cannot be."""
        id = migration_id(record.id, vm.vm)
        if not await self._is_known(id):
            try:
                vm = await self._ordered(record, vm, id)
            except _Against as against:
                return await self._note(record, vm, against.state, against.reason)
        known = await asyncio.to_thread(self._store.migrations.get, id)
        vm = replace(vm, destination=known.destination)
        ordered = await self._note(record, vm, LeavingState.ORDERED, migration=id)
        if (await self._get(str(record.id))).state is EvacuationState.PAUSED:
            await asyncio.to_thread(self._store.slots.hold, [id], True)
            if (await self._get(str(record.id))).state is not EvacuationState.PAUSED:
                await asyncio.to_thread(self._store.slots.hold, [id], False)
        return ordered

    async def _is_known(self, migration: UUID) -> bool:
        try:
            await asyncio.to_thread(self._store.migrations.get, migration)
        except NotFound:
            return False
        return True

    async def _ordered(self, record: Evacuation, vm: LeavingVm, id: UUID) -> LeavingVm:
        """:raise _Against: it cannot be ordered."""
        vm = await self._where_it_fits(record, vm)
        tried: set[str] = set()
        for tries in range(_BUSY_TRIES):
            request = MigrationRequest(
                vm.vm,
                vm.destination,
                record.profile or None,
                overrides=vm.overrides,
                priority=record.priority,
                source=record.host,
                id=id,
            )
            try:
                await self._migrations.start(request)
            except DuplicateName:
                return vm
            except OperationInProgress as error:
                # An application ends soon; a migration that is not ours takes it elsewhere.
                if tries == _BUSY_TRIES - 1:
                    raise _Against(LeavingState.FAILED, str(error)) from error
                await asyncio.sleep(_BUSY_AGAIN_S)
            except Blocked as error:
                tried.add(vm.destination)
                if len(tried) >= MOST_TRIES:
                    raise _Against(LeavingState.BLOCKED, str(error)) from error
                vm = await self._elsewhere(record, vm, str(error), tried)
            except (Conflict, NotFound, InvalidInput) as error:
                gone = any(p.code in _GONE for p in error.problems) or isinstance(error, NotFound)
                state = LeavingState.GONE if gone else LeavingState.BLOCKED
                raise _Against(state, str(error)) from error
            except SetupError:
                raise
            except VmtuneError as error:
                raise _Against(LeavingState.FAILED, str(error)) from error
            else:
                return vm
        raise AssertionError("its last try either succeeds or raises")

    async def _where_it_fits(self, record: Evacuation, vm: LeavingVm) -> LeavingVm:
        """*vm* with a destination that can take it now; much may have changed since the plan."""
        unfinished = await asyncio.to_thread(self._store.evacuations.unfinished)
        if vm.destination and vm.destination not in {other.host for other in unfinished}:
            try:
                room = await self._planner.room(vm.destination, vm)
            except (NotFound, HostUnreachable) as error:
                return await self._elsewhere(record, vm, str(error))
            if room is None or room >= vm.memory_bytes:
                return vm
        return await self._elsewhere(record, vm, f"{vm.destination} has no room for it any more")

    async def _elsewhere(
        self, record: Evacuation, vm: LeavingVm, why: str, tried: Collection[str] = ()
    ) -> LeavingVm:
        """*vm* with another destination.

        :raise _Against: it can go nowhere."""
        request = _request_of(record)
        try:
            found = await self._planner.place_again(request, vm, {vm.destination, *tried})
        except HostUnreachable as error:
            raise _Against(LeavingState.FAILED, str(error)) from error
        if found.state is not LeavingState.WAITING:
            known = found.state is LeavingState.NOT_PLACED
            raise _Against(found.state, why if known else found.reason)
        return await self._note(record, replace(found, reason=""), LeavingState.WAITING)

    async def _follow(self, record: Evacuation, vm: LeavingVm) -> LeavingVm:
        """Wait for the end of its migration."""
        assert vm.migration is not None, "it was ordered"
        id = str(vm.migration)
        await self._jobs.submit(MIGRATION_KIND, id, on=record.host)  # nothing where it is known
        await self._jobs.wait(id)
        for _ in range(_UNKNOWN_TRIES):
            known = await asyncio.to_thread(self._store.migrations.get, vm.migration)
            if known.state is not MigrationState.UNKNOWN:
                break
            await asyncio.sleep(_UNKNOWN_AGAIN_S)  # it is settled as soon as its hosts answer
        return await self._came_to(record, vm, known)

    async def _came_to(self, record: Evacuation, vm: LeavingVm, known: Migration) -> LeavingVm:
        match known.state:
            case MigrationState.COMPLETED:
                return await self._note(record, vm, LeavingState.MOVED)
            case MigrationState.CANCELLED:
                return await self._note(
                    record, vm, LeavingState.ABORTED, "its migration was aborted"
                )
        why = known.failure or known.state.value
        return await self._note(record, vm, LeavingState.FAILED, why)

    async def settle(self, job_id: str) -> None:
        """End what is under way, and complete the record of an evacuation that was cut short."""
        record = await self._get(job_id)
        broken = self._broken.pop(record.id, None)
        if record.state.ended:
            return
        vms = await asyncio.to_thread(self._store.evacuations.vms, record.id)
        ordered: list[LeavingVm] = []
        for vm in vms:
            if not vm.state.over and await self._is_known(migration_id(record.id, vm.vm)):
                ordered.append(replace(vm, migration=migration_id(record.id, vm.vm)))
        await asyncio.gather(*(self._abort(record, vm) for vm in ordered))
        cancelled = broken is None
        why = "the evacuation was cancelled" if cancelled else "the evacuation broke off"
        await self._never_begin(record, why)
        state = EvacuationState.CANCELLED if cancelled else EvacuationState.FAILED
        await self._enter(record.id, state, broken or "")

    async def _abort(self, record: Evacuation, vm: LeavingVm) -> None:
        assert vm.migration is not None, "it was ordered"
        with suppress(TooLate, NotFound):
            await self._migrations.abort(vm.migration)
        await self._follow(record, vm)

    async def _never_begin(self, record: Evacuation, why: str) -> None:
        for vm in await asyncio.to_thread(self._store.evacuations.vms, record.id):
            if not vm.state.over:
                await self._note(record, vm, LeavingState.NOT_BEGUN, why)

    async def _note(
        self,
        record: Evacuation,
        vm: LeavingVm,
        state: LeavingState,
        reason: str = "",
        migration: UUID | None = None,
    ) -> LeavingVm:
        noted = await asyncio.to_thread(
            self._store.evacuations.note,
            record.id,
            vm.vm,
            state,
            reason=reason,
            destination=vm.destination,
            findings=vm.findings,
            migration=migration,
        )
        data = {"vm": str(vm.vm), "vm_state": state.value, "reason": reason, "host": record.host}
        self._bus.tell_soon(EventTopic.EVACUATION, record.id, data)
        return noted

    async def _enter(self, id: UUID, state: EvacuationState, reason: str = "") -> None:
        record = await asyncio.to_thread(self._store.evacuations.enter, id, state, reason)
        await self._bus.tell(EventTopic.EVACUATION, id, event_data(record))

    async def _get(self, job_id: str) -> Evacuation:
        return await asyncio.to_thread(self._store.evacuations.get, UUID(job_id))


class _Against(Exception):
    """Why a VM's migration cannot be ordered."""

    def __init__(self, state: LeavingState, reason: str) -> None:
        super().__init__(reason)
        self.state = state
        self.reason = reason


def _request_of(record: Evacuation) -> EvacuationRequest:
    """What was asked for, for what has to be placed later."""
    return EvacuationRequest(
        record.host, record.destinations, record.order, profile=record.profile or None
    )


def _too_many(failures: int, most: int | None) -> str:
    if most is None or failures < most:
        return ""
    return f"{failures} migration{'s' if failures > 1 else ''} failed, and it was to stop then"


async def _something(moving: Collection[asyncio.Task[LeavingVm]], woken: asyncio.Event) -> None:
    """Wait until one has ended, somebody has changed something, or a second has passed."""
    looking = asyncio.create_task(woken.wait())
    try:
        await asyncio.wait(
            {*moving, looking}, timeout=_TELL_EVERY_S, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)


async def _end_all(tasks: Collection[asyncio.Task[LeavingVm]]) -> None:
    """Let go of them; what they wait for goes on."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
