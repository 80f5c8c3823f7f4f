"""Evacuations: planned, started, followed, paused, resumed, cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

import structlog

from vmtune.errors import Conflict, InvalidInput, Problem, TooLate
from vmtune.jobs.base import JobEngine
from vmtune.jobs.kinds import EVACUATION_KIND
from vmtune.model.access.scopes import EVERYTHING, Reach
from vmtune.model.evacuation.evacuation import (
    Evacuation,
    EvacuationPlan,
    EvacuationState,
    EvacuationVm,
    EvacuationVmState,
    Tally,
)
from vmtune.model.host.inventory import EventTopic
from vmtune.model.migration.admission import MAX_PRIORITY, MIN_PRIORITY
from vmtune.services.evacuations.job import EvacuationJob
from vmtune.services.evacuations.plan import EvacuationPlanner, EvacuationRequest
from vmtune.services.evacuations.progress import event_data
from vmtune.services.events import EventBus
from vmtune.services.migrations.admission import Admission
from vmtune.services.migrations.migrations import check_overrides
from vmtune.storage import Page, Store

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class EvacuationStatus:
    """An evacuation, and how far it is."""

    record: Evacuation
    tally: Tally


class EvacuationService:
    """Starts, pauses, resumes and cancels evacuations, and reads their records."""

    def __init__(
        self,
        store: Store,
        bus: EventBus,
        planner: EvacuationPlanner,
        admission: Admission,
        jobs: JobEngine,
        job: EvacuationJob,
    ) -> None:
        self._store = store
        self._bus = bus
        self._planner = planner
        self._admission = admission
        self._jobs = jobs
        self._job = job

    async def plan(self, request: EvacuationRequest) -> EvacuationPlan:
        """The plan: what would move where, and the findings. Changes nothing.

        :raise NotFound: no such host, destination or profile.
        :raise InvalidInput: an invalid request.
        :raise HostUnreachable: the host does not answer.
        """
        _check(request)
        await self._planner.check(request)
        return await self._planner.plan(request)

    async def start(self, request: EvacuationRequest) -> EvacuationStatus:
        """Start an evacuation. It runs as a job. VMs that the preflight blocks are listed, not
        moved.

        :raise Conflict: the host or a destination is being evacuated.
        """
        plan = await self.plan(request)
        chosen = request.destinations
        if not chosen and request.among is not None:
            chosen = tuple(sorted(request.among - {request.host}))
        record = await asyncio.to_thread(
            self._store.evacuations.begin,
            request.host,
            plan.vms,
            destinations=chosen,
            order=request.order,
            priority=request.priority,
            max_outgoing=request.max_outgoing,
            stop_after_failures=request.stop_after_failures,
            profile=request.profile or "",
            intent=request.intent,
            local_disks=request.local_disks,
        )
        await self._publish(record)
        await self._jobs.submit(EVACUATION_KIND, str(record.id))
        return await self._status(record)

    async def resume_all(self) -> None:
        """At the service's start: see to it that each that has not ended has its job."""
        for record in await asyncio.to_thread(self._store.evacuations.unfinished):
            await self._jobs.submit(EVACUATION_KIND, str(record.id))
            if (await self._jobs.state(str(record.id))).status.ended:
                log.warning(
                    "an evacuation's job has ended without it", evacuation_id=str(record.id)
                )
                await asyncio.to_thread(
                    self._store.evacuations.enter,
                    record.id,
                    EvacuationState.FAILED,
                    "the service could not record how it ended",
                )

    async def get(self, host: str | None, id: UUID) -> EvacuationStatus:
        """:param host: None for any.
        :raise NotFound: the host has no such evacuation.
        """
        record = await asyncio.to_thread(self._store.evacuations.get, id, host)
        return await self._status(record)

    async def vms(self, host: str, id: UUID, after: str | None, limit: int) -> Page[EvacuationVm]:
        """Its VMs in the order of moving.

        :raise NotFound: the host has no such evacuation.
        """
        await asyncio.to_thread(self._store.evacuations.get, id, host)
        return await asyncio.to_thread(self._store.evacuations.vm_page, id, after, limit)

    async def list(
        self,
        host: str | None,
        states: Collection[EvacuationState],
        after: str | None,
        limit: int,
        reach: Reach = EVERYTHING,
    ) -> Page[EvacuationStatus]:
        """Evacuations, newest first."""
        page = await asyncio.to_thread(
            self._store.evacuations.list, host, states, after, limit, reach
        )
        ids = [record.id for record in page.items]
        tallies = await asyncio.to_thread(self._store.evacuations.tallies, ids)
        return Page(tuple(EvacuationStatus(r, tallies[r.id]) for r in page.items), page.next)

    async def pause(self, host: str, id: UUID) -> EvacuationStatus:
        """Begin no more migrations; those that are under way run to their end.

        :raise NotFound: the host has no such evacuation.
        :raise TooLate: it has ended.
        """
        return await self._change(host, id, EvacuationState.PAUSED)

    async def resume(self, host: str, id: UUID) -> EvacuationStatus:
        """Resume one that was paused.

        :raise NotFound: the host has no such evacuation.
        :raise TooLate: it has ended.
        """
        return await self._change(host, id, EvacuationState.RUNNING)

    async def _change(self, host: str, id: UUID, state: EvacuationState) -> EvacuationStatus:
        record = await asyncio.to_thread(self._store.evacuations.get, id, host)
        if record.state.ended:
            raise _ended(record)
        if record.state is not state:
            try:
                record = await asyncio.to_thread(self._store.evacuations.enter, id, state)
            except Conflict as error:
                latest = await asyncio.to_thread(self._store.evacuations.get, id)
                raise (_ended(latest) if latest.state.ended else error) from error
            await self._publish(record)
        # Also where it was in that state: what a service that died left undone is done now.
        await asyncio.to_thread(self._hold, id, state is EvacuationState.PAUSED)
        self._admission.changed()
        self._job.wake(id)
        return await self._status(record)

    def _hold(self, id: UUID, held: bool) -> None:
        """Hold its queued migrations, or release them."""
        vms = self._store.evacuations.vms(id)
        ordered = [
            vm.migration for vm in vms if vm.state is EvacuationVmState.REQUESTED and vm.migration
        ]
        self._store.slots.hold(ordered, held)

    async def cancel(self, host: str, id: UUID) -> EvacuationStatus:
        """End it: what waits never begins, and migrations that are under way are aborted.

        :raise NotFound: the host has no such evacuation.
        :raise TooLate: it has ended.
        """
        record = await asyncio.to_thread(self._store.evacuations.get, id, host)
        if record.state.ended or not await self._jobs.cancel(str(record.id)):
            raise _ended(record)
        return await self.get(host, id)

    async def _status(self, record: Evacuation) -> EvacuationStatus:
        tallies = await asyncio.to_thread(self._store.evacuations.tallies, [record.id])
        return EvacuationStatus(record, tallies[record.id])

    async def _publish(self, record: Evacuation) -> None:
        await self._bus.publish(EventTopic.EVACUATION, record.id, event_data(record))


def _check(request: EvacuationRequest) -> None:
    """:raise InvalidInput: with a problem for each part that cannot be accepted."""
    problems: list[Problem] = []
    if not MIN_PRIORITY <= request.priority <= MAX_PRIORITY:
        problems.append(
            Problem("priority", "invalid", f"{request.priority} is not a valid priority",
                    f"give {MIN_PRIORITY} to {MAX_PRIORITY}; higher goes first")
        )  # fmt: skip
    for name in ("max_outgoing", "stop_after_failures"):
        value = getattr(request, name)
        if value is not None and value < 1:
            problems.append(
                Problem(name, "invalid", f"{value} is too few", "give 1 or more, or leave it out")
            )
    try:
        check_overrides(request.overrides)
        for vm, codes in request.vm_overrides.items():
            check_overrides(codes, f"vm_overrides.{vm}")
    except InvalidInput as error:
        problems += error.problems
    if problems:
        raise InvalidInput("the evacuation cannot be accepted", problems=problems)


def _ended(record: Evacuation) -> TooLate:
    state = record.state.value if record.state.ended else "ending"
    return TooLate(
        f"the evacuation is {state}",
        field="evacuation",
        remedy="read it again, or start another",
    )
