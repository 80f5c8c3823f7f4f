"""Moves one VM of an evacuation: through the migration service and its queue.

A migration's id follows from the evacuation and the VM, so that none is requested twice, also after
a resume.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from uuid import UUID

import structlog

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
from vmtune.jobs.kinds import MIGRATION_KIND
from vmtune.model.evacuation.evacuation import (
    Evacuation,
    EvacuationState,
    EvacuationVm,
    EvacuationVmState,
    migration_id,
)
from vmtune.model.host.inventory import EventTopic
from vmtune.model.migration.intent import dump_intent
from vmtune.model.migration.record import Migration, MigrationState
from vmtune.services.evacuations.plan import MAX_TRIES, EvacuationPlanner, EvacuationRequest
from vmtune.services.events import EventBus
from vmtune.services.migrations.job import MigrationJob
from vmtune.services.migrations.migrations import MigrationService
from vmtune.storage import Store

log = structlog.get_logger(__name__)

_BUSY_RETRY_S = 1.0
_BUSY_TRIES = 30
"""How often a VM is tried that has another operation open."""
_STORE_RETRY_S, _STORE_TRIES = 2.0, 60
_UNKNOWN_RETRY_S, _UNKNOWN_TRIES = 5.0, 24
"""How long to wait for the end of a migration whose hosts do not answer."""
_STOPPING = "jobs_not_running"
_GONE = ("vm_elsewhere", "destination_is_source")


class VmMover:
    """Requests the migration of a VM, and waits for its end.
    :param job: knows the progress of migrations that run here.
    """

    def __init__(
        self,
        store: Store,
        bus: EventBus,
        planner: EvacuationPlanner,
        migrations: MigrationService,
        job: MigrationJob,
        jobs: JobEngine,
    ) -> None:
        self._store = store
        self._bus = bus
        self._planner = planner
        self._migrations = migrations
        self._job = job
        self._jobs = jobs

    def share(self, record: Evacuation, vm: EvacuationVm) -> float:
        """How far its migration is, from 0 to 1."""
        return self._job.share(migration_id(record.id, vm.vm))

    async def move(self, record: Evacuation, vm: EvacuationVm) -> EvacuationVm:
        """Migrate one VM; return its state. Retries while the database is unavailable: what was
        done until then is found again."""
        for _ in range(_STORE_TRIES):
            try:
                if vm.state is EvacuationVmState.WAITING:
                    vm = await self._order(record, vm)
                return vm if vm.state.ended else await self._follow(record, vm)
            except SetupError as error:
                if any(problem.code == _STOPPING for problem in error.problems):
                    raise
                log.warning(
                    "database away, will retry", evacuation_id=str(record.id), reason=str(error)
                )
                await asyncio.sleep(_STORE_RETRY_S)
        return await self._follow(record, vm)

    async def abort(self, record: Evacuation, vm: EvacuationVm) -> None:
        """End its migration, and note how it ended."""
        assert vm.migration is not None, "it was ordered"
        with suppress(TooLate, NotFound):
            await self._migrations.abort(vm.migration)
        await self._follow(record, vm)

    async def note(
        self,
        record: Evacuation,
        vm: EvacuationVm,
        state: EvacuationVmState,
        reason: str = "",
        migration: UUID | None = None,
    ) -> EvacuationVm:
        """Store a VM's state, and publish it."""
        noted = await asyncio.to_thread(
            self._store.evacuations.note,
            record.id,
            vm.vm,
            state,
            reason=reason,
            destination=vm.destination,
            findings=vm.findings,
            migration=migration,
            disks=vm.disks,
            values=vm.values,
        )
        data = {"vm": str(vm.vm), "vm_state": state.value, "reason": reason, "host": record.host}
        self._bus.publish_soon(EventTopic.EVACUATION, record.id, data)
        return noted

    async def is_known(self, migration: UUID) -> bool:
        """Whether a migration was requested."""
        try:
            await asyncio.to_thread(self._store.migrations.get, migration)
        except NotFound:
            return False
        return True

    async def _order(self, record: Evacuation, vm: EvacuationVm) -> EvacuationVm:
        """Order its migration, unless that was done; or say why it cannot be."""
        id = migration_id(record.id, vm.vm)
        if not await self.is_known(id):
            try:
                vm = await self._submit(record, vm, id)
            except _DestinationRefused as against:
                return await self.note(record, vm, against.state, against.reason)
        known = await asyncio.to_thread(self._store.migrations.get, id)
        vm = replace(vm, destination=known.destination)
        ordered = await self.note(record, vm, EvacuationVmState.REQUESTED, migration=id)
        if (await self._current(record)).state is EvacuationState.PAUSED:
            await asyncio.to_thread(self._store.slots.hold, [id], True)
            if (await self._current(record)).state is not EvacuationState.PAUSED:
                await asyncio.to_thread(self._store.slots.hold, [id], False)
        return ordered

    async def _submit(self, record: Evacuation, vm: EvacuationVm, id: UUID) -> EvacuationVm:
        """:raise _DestinationRefused: it cannot start."""
        vm = await self._with_room(record, vm)
        tried: set[str] = set()
        for tries in range(_BUSY_TRIES):
            try:
                await self._migrations.start(
                    vm.vm,
                    vm.destination,
                    record.profile or None,
                    overrides=vm.overrides,
                    values=vm.values or None,
                    priority=record.priority,
                    source=record.host,
                    id=id,
                    intent=None if record.intent is None else dump_intent(record.intent),
                )
            except DuplicateName:
                return vm
            except OperationInProgress as error:
                # An application ends soon; a migration that is not ours takes it elsewhere.
                if tries == _BUSY_TRIES - 1:
                    raise _DestinationRefused(EvacuationVmState.FAILED, str(error)) from error
                await asyncio.sleep(_BUSY_RETRY_S)
            except Blocked as error:
                tried.add(vm.destination)
                if len(tried) >= MAX_TRIES:
                    raise _DestinationRefused(EvacuationVmState.BLOCKED, str(error)) from error
                vm = await self._replace_destination(record, vm, str(error), tried)
            except (Conflict, NotFound, InvalidInput) as error:
                gone = any(p.code in _GONE for p in error.problems) or isinstance(error, NotFound)
                state = EvacuationVmState.HANDLED_BY_OTHERS if gone else EvacuationVmState.BLOCKED
                raise _DestinationRefused(state, str(error)) from error
            except SetupError:
                raise
            except VmtuneError as error:
                raise _DestinationRefused(EvacuationVmState.FAILED, str(error)) from error
            else:
                return vm
        raise AssertionError("its last try either succeeds or raises")

    async def _with_room(self, record: Evacuation, vm: EvacuationVm) -> EvacuationVm:
        """*vm* with a destination that can take it now; much may have changed since the plan."""
        unfinished = await asyncio.to_thread(self._store.evacuations.unfinished)
        if vm.destination and vm.destination not in {other.host for other in unfinished}:
            try:
                room = await self._planner.room(vm.destination, vm)
            except (NotFound, HostUnreachable) as error:
                return await self._replace_destination(record, vm, str(error))
            if room is None or room >= vm.memory_bytes:
                return vm
        return await self._replace_destination(
            record, vm, f"{vm.destination} has no room for it any more"
        )

    async def _replace_destination(
        self, record: Evacuation, vm: EvacuationVm, why: str, tried: Collection[str] = ()
    ) -> EvacuationVm:
        """*vm* with another destination.

        :raise _DestinationRefused: it can go nowhere."""
        request = request_of(record)
        try:
            found = await self._planner.find_other_destination(
                request, vm, {vm.destination, *tried}
            )
        except HostUnreachable as error:
            raise _DestinationRefused(EvacuationVmState.FAILED, str(error)) from error
        if found.state is not EvacuationVmState.WAITING:
            known = found.state is EvacuationVmState.NOT_PLACED
            raise _DestinationRefused(found.state, why if known else found.reason)
        return await self.note(record, replace(found, reason=""), EvacuationVmState.WAITING)

    async def _follow(self, record: Evacuation, vm: EvacuationVm) -> EvacuationVm:
        """Wait for the end of its migration."""
        assert vm.migration is not None, "it was ordered"
        id = str(vm.migration)
        await self._jobs.submit(MIGRATION_KIND, id, on=record.host)  # empty where it is known
        await self._jobs.wait(id)
        for _ in range(_UNKNOWN_TRIES):
            known = await asyncio.to_thread(self._store.migrations.get, vm.migration)
            if known.state is not MigrationState.UNKNOWN:
                break
            await asyncio.sleep(_UNKNOWN_RETRY_S)  # it is settled as soon as its hosts answer
        return await self._result(record, vm, known)

    async def _result(self, record: Evacuation, vm: EvacuationVm, known: Migration) -> EvacuationVm:
        match known.state:
            case MigrationState.COMPLETED:
                return await self.note(record, vm, EvacuationVmState.MOVED)
            case MigrationState.CANCELLED:
                return await self.note(
                    record, vm, EvacuationVmState.ABORTED, "its migration was aborted"
                )
        why = known.failure or known.state.value
        return await self.note(record, vm, EvacuationVmState.FAILED, why)

    async def _current(self, record: Evacuation) -> Evacuation:
        return await asyncio.to_thread(self._store.evacuations.get, record.id)


class _DestinationRefused(Exception):
    """Why a VM's migration cannot start."""

    def __init__(self, state: EvacuationVmState, reason: str) -> None:
        super().__init__(reason)
        self.state = state
        self.reason = reason


def request_of(record: Evacuation) -> EvacuationRequest:
    """The request, to place a VM later."""
    return EvacuationRequest(
        record.host,
        record.destinations,
        record.order,
        profile=record.profile or None,
        local_disks=record.local_disks,
    )
