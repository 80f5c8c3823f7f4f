"""Watches every host for migrations that vmtune did not start: ``virsh migrate``, Nova,
virt-manager. Finds them by the events of libvirt or QEMU, and starts a job for each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from datetime import UTC, datetime
from uuid import UUID

import structlog

from vmtune.errors import (
    Conflict,
    HostUnreachable,
    NotFound,
    OperationInProgress,
    VmtuneError,
)
from vmtune.hypervisor.protocol import Driver, DriverEvent, EventKind
from vmtune.intent.choosing import unmeasured
from vmtune.jobs.base import JobEngine
from vmtune.jobs.kinds import OBSERVED_KIND
from vmtune.model.host.facts import VmState
from vmtune.model.migration.record import Migration, MigrationFields, QemuStatus, Snapshot, Trigger
from vmtune.model.migration.stated_intent import StatedIntent
from vmtune.services.forecasts.forecasts import ForecastService
from vmtune.services.hosts.hosts import HostService
from vmtune.services.metrics import telemetry
from vmtune.services.migrations.departures import STARTED, Departures, started_at
from vmtune.services.migrations.records import MigrationRecords
from vmtune.services.tuning.profiles import UNTUNED, AssignmentService, DesiredValues
from vmtune.storage import Store

log = structlog.get_logger(__name__)

_BEGINNINGS = frozenset({QemuStatus.SETUP.value, QemuStatus.ACTIVE.value})
_RUNNING = frozenset(status.value for status in QemuStatus if status.running)
_ENDS = frozenset({QemuStatus.COMPLETED.value, QemuStatus.FAILED.value, QemuStatus.CANCELLED.value})
_WITHOUT_FIGURES = (QemuStatus.SETUP, QemuStatus.WAIT_UNPLUG, QemuStatus.CANCELLING)
_TRY_AGAIN_S = 0.5
_HOST_AGAIN_S = 10.0

_Where = tuple[str, UUID]
"""A VM on a host."""


class Observer:
    """Finds migrations on all hosts, from :meth:`start` to :meth:`close`.

    Hosts are not queried until they report a migration, so watching costs nothing. A VM with an
    open operation is ignored: that is usually a migration of vmtune's own.

    :param ignored: whether to ignore VMs of that name: those of benchmark runs.
    """

    def __init__(
        self,
        store: Store,
        hosts: HostService,
        assignments: AssignmentService,
        jobs: JobEngine,
        departed: Departures,
        records: MigrationRecords,
        forecasts: ForecastService,
        ignored: Callable[[str], bool] = lambda name: False,
    ) -> None:
        self._store = store
        self._hosts = hosts
        self._assignments = assignments
        self._jobs = jobs
        self._departed = departed
        self._records = records
        self._forecasts = forecasts
        self._ignored = ignored
        self._watching: dict[str, asyncio.Task[None]] = {}
        self._inspecting: dict[_Where, asyncio.Task[None]] = {}
        self._arrivals = 0
        self._news: dict[_Where, Callable[[], None]] = {}
        self._others: set[asyncio.Task[None]] = set()
        self._arriving: dict[UUID, str] = {}
        self._found_arriving: set[UUID] = set()
        """Those of which no event said so: they were looked at."""
        self._seen: set[_Where] = set()
        self._closed = False

    async def start(self) -> None:
        """Watch the known hosts, and those added later. Migrations that an earlier process found
        are resumed by their jobs."""
        for record in await asyncio.to_thread(self._store.migrations.unfinished):
            if record.trigger is Trigger.OBSERVED and self._hosts.drives(record.source):
                await self._jobs.submit(OBSERVED_KIND, str(record.id))
        self._hosts.follow(self._watch, self._leave)
        for host in await self._hosts.all():
            if self._hosts.drives(host.name):
                self._watch(host.name)

    async def close(self) -> None:
        """Stop watching. Running jobs continue."""
        self._closed = True
        tasks = [*self._watching.values(), *self._inspecting.values(), *self._others]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _watch(self, host: str) -> None:
        if not self._closed and host not in self._watching:
            self._watching[host] = asyncio.create_task(self._listen(host), name=f"watch {host}")

    def _leave(self, host: str) -> None:
        task = self._watching.pop(host, None)
        if task is not None:
            task.cancel()
            telemetry.host_left(host)

    async def _listen(self, host: str) -> None:
        while True:
            try:
                driver = await self._hosts.driver(host)
            except NotFound:
                return
            except VmtuneError as error:
                log.warning("not watched", host=host, reason=error.message)
                telemetry.host_seen(host, up=False)
                await asyncio.sleep(_HOST_AGAIN_S)
                continue
            async with aclosing(driver.events()) as events:
                self._in_background(self._scan(host, driver))
                async for event in events:
                    self._on_event(host, driver, event)
            return  # the driver was closed

    def _on_event(self, host: str, driver: Driver, event: DriverEvent) -> None:
        """Never waits: what comes next must be handled at once."""
        reported_at = datetime.now(UTC)
        if event.kind is EventKind.CONNECTED:
            # What was reported before may be outdated.
            self._seen = {where for where in self._seen if where[0] != host}
            self._arriving = {vm: to for vm, to in self._arriving.items() if to != host}
            self._in_background(self._scan(host, driver))
        if event.vm is None:
            telemetry.host_seen(host, up=event.kind is not EventKind.CONNECTION_LOST)
            return
        where = host, event.vm
        match event.kind:
            case EventKind.VM_STATE if event.detail == VmState.INCOMING.value:
                self._arriving[event.vm] = host
                self._found_arriving.discard(event.vm)
            case EventKind.VM_STATE if event.detail == VmState.RUNNING.value:
                self._runs(where)
            case EventKind.VM_STATE if event.detail == VmState.MIGRATED.value:
                self._departed.add(where)
            case EventKind.VM_STATE if event.detail == VmState.SHUT_OFF.value:
                self._arrived(where)
            case EventKind.MIGRATION_STATUS if event.detail in _ENDS:
                self._ended(where, event.detail)
            case EventKind.MIGRATION_STATUS if event.detail in _RUNNING:
                self._goes_on(where, driver, event.detail, reported_at)
            case EventKind.MIGRATION_ITERATION | EventKind.DISK_COPY:
                self._goes_on(where, driver, "", reported_at)

    def _goes_on(self, where: _Where, driver: Driver, status: str, reported_at: datetime) -> None:
        host, vm = where
        if self._arriving.get(vm) == host:
            return
        first = status == QemuStatus.SETUP.value
        if first:
            self._seen.discard(where)
            self._departed.discard(where)
        began = status in _BEGINNINGS
        if where in self._seen:
            return

        def look() -> None:
            self._inspect_soon(where, driver, reported_at, began, first)

        if where in self._inspecting:
            self._news[where] = look  # what is being looked at may be older than this
        else:
            look()

    def _ended(self, where: _Where, status: str) -> None:
        host, vm = where
        if self._arriving.get(vm) == host:
            self._arrived(where)
            return
        self._seen.discard(where)
        if status == QemuStatus.COMPLETED.value:
            self._departed.add(where)

    def _arrived(self, where: _Where) -> None:
        host, vm = where
        self._arrivals += 1
        if self._arriving.get(vm) == host:
            del self._arriving[vm]

    def _runs(self, where: _Where) -> None:
        """libvirt says it later than QEMU says that the migration completed: who looked in between
        has found the VM arriving still."""
        self._arrivals += 1
        if where[1] in self._found_arriving:
            self._found_arriving.discard(where[1])
            self._arrived(where)

    def _inspect_soon(
        self, where: _Where, driver: Driver, reported_at: datetime, began: bool, first: bool
    ) -> None:
        inspecting = self._inspect(where, driver, reported_at, began, first)
        task = asyncio.create_task(inspecting, name=f"inspect {where[1]}")
        self._inspecting[where] = task
        task.add_done_callback(lambda _: self._inspected(where))

    def _inspected(self, where: _Where) -> None:
        """Look once more where an event came meanwhile and nothing was found."""
        self._inspecting.pop(where, None)
        again = self._news.pop(where, None)
        if again is not None and where not in self._seen and not self._closed:
            again()

    def _in_background(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._others.add(task)
        task.add_done_callback(self._others.discard)

    async def _scan(self, host: str, driver: Driver) -> None:
        """Find migrations that began while the service did not watch."""
        try:
            leaving = await driver.outgoing()
            telemetry.host_seen(host, up=True)
            unsettled = await asyncio.to_thread(self._store.migrations.unsettled)
        except VmtuneError as error:
            log.info("not scanned", host=host, reason=error.message)
            if isinstance(error, HostUnreachable):
                telemetry.host_seen(host, up=False)
            return
        waiting = {record.vm for record in unsettled}
        for vm in leaving:
            # An unsettled one may be this one: it is settled when this one has ended.
            if (host, vm) not in self._inspecting and vm not in waiting:
                self._inspect_soon((host, vm), driver, datetime.now(UTC), began=False, first=False)

    async def _inspect(
        self, where: _Where, driver: Driver, reported_at: datetime, began: bool, first: bool
    ) -> None:
        try:
            newest = await self._newest(where[1])
            if newest is not None and not newest.state.ended and newest.started_at is not None:
                self._seen.add(where)  # it is recorded already, as vmtune's own or as observed
                return
            while True:
                snapshot = await self._outgoing(where, driver)
                running = snapshot is not None and snapshot.status.running
                if not running and not (
                    began and await self._was_missed(where, snapshot, reported_at)
                ):
                    return
                try:
                    begun = started_at(reported_at, snapshot, first)
                    await self._begin(where, driver, begun)
                except OperationInProgress:
                    # vmtune's own migration, most often; or an application that ends soon, or a
                    # benchmark of the VM.
                    if not await self._freed(where[1], reported_at):
                        self._seen.add(where)
                        return
                    began = first = False
                    continue
                self._seen.add(where)
                return
        except VmtuneError as error:
            log.info("not observed", host=where[0], vm=str(where[1]), reason=error.message)
        except Exception:
            # A fault of ours must not end the watching.
            log.exception("not observed", host=where[0], vm=str(where[1]))

    async def _outgoing(self, where: _Where, driver: Driver) -> Snapshot | None:
        """The VM's outgoing migration: none began where the VM is arriving here. None where
        it has left already."""
        host, vm = where
        before = self._arrivals
        try:
            if await driver.vm_state(vm) is VmState.INCOMING:
                if self._arrivals == before and self._arriving.get(vm) != host:
                    self._arriving[vm] = host  # else it may be there by now
                    self._found_arriving.add(vm)
                return Snapshot(QemuStatus.NONE)
            snapshot = await driver.migration(vm)
        except NotFound:
            return None
        # A destination reports the same states, but no RAM.
        arriving = snapshot.sample is None and snapshot.status not in _WITHOUT_FIGURES
        if arriving and snapshot.status is QemuStatus.COMPLETED:
            return Snapshot(QemuStatus.NONE)  # that was how the VM came here
        return None if snapshot.status.running and arriving else snapshot

    async def _was_missed(
        self, where: _Where, snapshot: Snapshot | None, reported_at: datetime
    ) -> bool:
        """Whether its start was reported, it is over, and it was not recorded."""
        host, vm = where
        if self._arriving.get(vm) == host:
            return False
        if snapshot is not None and snapshot.status is QemuStatus.NONE:
            return False
        newest = await self._newest(vm)
        return newest is None or not _covers(newest, reported_at)

    async def _freed(self, vm: UUID, reported_at: datetime) -> bool:
        """Wait until the VM's open operation has ended; False where that was the migration."""
        while True:
            newest = await self._newest(vm)
            if newest is not None and not newest.state.ended:
                if newest.started_at is not None:
                    return False
            else:
                page = await asyncio.to_thread(self._store.applications.list, vm=vm, limit=1)
                applied = any(record.state.open for record in page.items)
                if not applied and not await asyncio.to_thread(self._store.runs.have, vm):
                    return (
                        newest is None
                        or newest.started_at is None
                        or not _covers(newest, reported_at)
                    )
            await asyncio.sleep(_TRY_AGAIN_S)

    async def _newest(self, vm: UUID) -> Migration | None:
        page = await asyncio.to_thread(self._store.migrations.list, vm=vm, limit=1)
        return page.items[0] if page.items else None

    async def _begin(self, where: _Where, driver: Driver, begun: datetime) -> None:
        """Record it, and give it to a job.

        :raise OperationInProgress: the VM has an open application or migration.
        """
        host, vm = where
        name = await self._name(vm, host)
        if self._ignored(name):
            return
        chosen, why_none = await self._choose(vm, host)
        record = await asyncio.to_thread(
            self._store.migrations.begin,
            vm=vm,
            vm_name=name,
            source=host,
            destination=self._arriving.get(vm, ""),
            trigger=Trigger.OBSERVED,
            profile=chosen.profile,
            revision=chosen.revision,
            wanted=chosen.values,
            steps=chosen.steps,
            state=STARTED,
            started_at=begun,
            intent=_intent(chosen),
        )
        log.info("observed", migration_id=str(record.id), vm=str(vm), host=host)
        if why_none is not None:
            await self._records.save(record.id, MigrationFields(problems=tuple(why_none.problems)))
        await self._jobs.submit(OBSERVED_KIND, str(record.id))
        await self._records.publish(record)
        self._in_background(self._forecasts.keep_observed(record, driver))

    async def _choose(self, vm: UUID, host: str) -> tuple[DesiredValues, VmtuneError | None]:
        """The assigned profile; where assignments tie it is only recorded, with the reason."""
        try:
            return await self._assignments.choose(vm, host, None), None
        except (Conflict, NotFound) as error:
            return UNTUNED, error

    async def _name(self, vm: UUID, host: str) -> str:
        """Its name; one that nobody has listed yet is known from now on."""
        try:
            return (await asyncio.to_thread(self._store.vms.get, vm)).name
        except NotFound:
            pass
        listing = await self._hosts.list_vms(host)
        names = {found.summary.uuid: found.summary.name for found in listing.vms}
        return names.get(vm, "")


def _intent(chosen: DesiredValues) -> StatedIntent | None:
    """The profile's, in shadow: who started the migration decides what is done to it."""
    return None if chosen.intent is None else unmeasured(chosen.intent, chosen.values)


def _covers(record: Migration, moment: datetime) -> bool:
    """Whether a migration was under way at that moment."""
    return record.created_at <= moment and (record.ended_at is None or moment <= record.ended_at)
