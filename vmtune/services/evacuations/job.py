"""The job of an evacuation: moves VMs, a few at a time.

The store has the state of each VM, from which a service that restarts resumes. Only few migrations
are requested ahead: the queue holds those that may begin soon, not all.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import replace
from uuid import UUID

import structlog
from structlog.contextvars import bind_contextvars

from vmtune.engine.end_state import harms_guest
from vmtune.errors import (
    HostUnreachable,
    NotFound,
    VmtuneError,
)
from vmtune.jobs.base import JobEngine
from vmtune.jobs.kinds import EVACUATION_KIND
from vmtune.model.evacuation.evacuation import (
    Evacuation,
    EvacuationState,
    EvacuationVm,
    EvacuationVmState,
    end_of,
    migration_id,
)
from vmtune.model.host.inventory import EventTopic
from vmtune.services.evacuations.plan import EvacuationPlanner
from vmtune.services.evacuations.progress import Progress, event_data
from vmtune.services.evacuations.vm_mover import VmMover, request_of
from vmtune.services.events import EventBus
from vmtune.services.migrations.admission import Admission
from vmtune.storage import Store

log = structlog.get_logger(__name__)

_TELL_EVERY_S = 1.0
_AHEAD = 2
"""This many times the host's limit of outgoing migrations are requested: another can start if the
first ones wait for a busy destination."""


class EvacuationJob:
    """Runs evacuations."""

    def __init__(
        self,
        store: Store,
        bus: EventBus,
        planner: EvacuationPlanner,
        mover: VmMover,
        admission: Admission,
        jobs: JobEngine,
    ) -> None:
        self._store = store
        self._bus = bus
        self._planner = planner
        self._mover = mover
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
            stopped = await self._move_all(record)
        except VmtuneError as error:
            self._broken[record.id] = str(error)
            raise
        except Exception as error:
            log.exception("evacuation failed", evacuation_id=job_id)
            self._broken[record.id] = f"internal error: {error!r}"
            raise
        finally:
            self._woken.pop(record.id, None)
        if stopped:
            await self._skip_waiting(record, stopped)
            await self._enter(record.id, EvacuationState.FAILED, stopped)
        else:
            tallies = await asyncio.to_thread(self._store.evacuations.tallies, [record.id])
            await self._enter(record.id, end_of(tallies[record.id]))

    async def _move_all(self, record: Evacuation) -> str:
        """Why it stopped before its end; empty where it did not."""
        vms = await asyncio.to_thread(self._store.evacuations.vms, record.id)
        failures = sum(vm.state is EvacuationVmState.FAILED for vm in vms)
        harmed = next(filter(None, map(_harm, vms)), "")
        waiting = deque(vm for vm in vms if vm.state is EvacuationVmState.WAITING)
        begun = [vm for vm in vms if vm.state is EvacuationVmState.REQUESTED]
        most = record.max_outgoing or _AHEAD * self._admission.limits.outgoing
        progress = Progress(self._bus, record, vms)
        woken = self._woken[record.id]
        moving: dict[asyncio.Task[EvacuationVm], EvacuationVm] = {}
        try:
            for vm in begun:
                moving[asyncio.create_task(self._mover.move(record, vm))] = vm
            while True:
                woken.clear()
                stopped = harmed or _too_many(failures, record.stop_after_failures)
                paused = (await self._get(str(record.id))).state is EvacuationState.PAUSED
                while waiting and not paused and not stopped and len(moving) < most:
                    vm = waiting.popleft()
                    moving[asyncio.create_task(self._mover.move(record, vm))] = vm
                if not moving and (stopped or not waiting):
                    if stopped:
                        return stopped
                    found = await self._added_vms(record, progress.known)
                    if found is not None and not found:
                        return ""
                    for vm in found or ():
                        progress.ended(vm)
                        if not vm.state.ended:
                            waiting.append(vm)
                    if found:
                        continue
                await _first_done(moving, woken)
                for task in [task for task in moving if task.done()]:
                    del moving[task]
                    vm = task.result()
                    failures += vm.state is EvacuationVmState.FAILED
                    harmed = harmed or _harm(vm)
                    progress.ended(vm)
                progress.publish({vm.vm: self._mover.share(record, vm) for vm in moving.values()})
        finally:
            await _cancel_all(moving)

    async def _added_vms(
        self, record: Evacuation, known: Collection[UUID]
    ) -> Sequence[EvacuationVm] | None:
        """VMs that have arrived on the host since the plan, planned now; None while some are still
        arriving."""
        if await asyncio.to_thread(self._store.evacuations.arriving, record.host):
            return None
        try:
            plan = await self._planner.plan(request_of(record), known)
        except (HostUnreachable, NotFound) as error:
            log.info("cannot look for added VMs", host=record.host, reason=str(error))
            return ()
        if plan.vms:
            await asyncio.to_thread(self._store.evacuations.add, record.id, plan.vms)
        return plan.vms

    async def settle(self, job_id: str) -> None:
        """End running migrations, and complete the record of an evacuation that was cancelled or
        failed."""
        record = await self._get(job_id)
        broken = self._broken.pop(record.id, None)
        if record.state.ended:
            return
        vms = await asyncio.to_thread(self._store.evacuations.vms, record.id)
        ordered: list[EvacuationVm] = []
        for vm in vms:
            if not vm.state.ended and await self._mover.is_known(migration_id(record.id, vm.vm)):
                ordered.append(replace(vm, migration=migration_id(record.id, vm.vm)))
        await asyncio.gather(*(self._mover.abort(record, vm) for vm in ordered))
        cancelled = broken is None
        why = "the evacuation was cancelled" if cancelled else "the evacuation broke off"
        await self._skip_waiting(record, why)
        state = EvacuationState.CANCELLED if cancelled else EvacuationState.FAILED
        await self._enter(record.id, state, broken or "")

    async def _skip_waiting(self, record: Evacuation, why: str) -> None:
        for vm in await asyncio.to_thread(self._store.evacuations.vms, record.id):
            if not vm.state.ended:
                await self._mover.note(record, vm, EvacuationVmState.NOT_STARTED, why)

    async def _enter(self, id: UUID, state: EvacuationState, reason: str = "") -> None:
        record = await asyncio.to_thread(self._store.evacuations.enter, id, state, reason)
        await self._bus.publish(EventTopic.EVACUATION, id, event_data(record))

    async def _get(self, job_id: str) -> Evacuation:
        return await asyncio.to_thread(self._store.evacuations.get, UUID(job_id))


def _too_many(failures: int, most: int | None) -> str:
    if most is None or failures < most:
        return ""
    return f"{failures} migration{'s' if failures > 1 else ''} failed, the stated maximum"


def _harm(vm: EvacuationVm) -> str:
    """Why no other VM may follow; empty where nothing stands against it. What ended one guest's
    QEMU in post-copy may end the next one's."""
    if vm.state is EvacuationVmState.FAILED and harms_guest(vm.reason):
        return f"{vm.name}: {vm.reason}"
    return ""


async def _first_done(moving: Collection[asyncio.Task[EvacuationVm]], woken: asyncio.Event) -> None:
    """Wait until one has ended, the evacuation has changed, or a second has passed."""
    looking = asyncio.create_task(woken.wait())
    try:
        await asyncio.wait(
            {*moving, looking}, timeout=_TELL_EVERY_S, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)


async def _cancel_all(tasks: Collection[asyncio.Task[EvacuationVm]]) -> None:
    """Cancel the tasks; the migrations that they wait for continue."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
