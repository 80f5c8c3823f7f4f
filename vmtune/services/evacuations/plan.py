"""What an evacuation would do: where each VM could go, and what its preflight finds.

Hosts are probed a few at a time, until there is room for all VMs: the cost of a plan depends on the
VMs that move, not on the number of hosts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar
from uuid import UUID, uuid4, uuid5

from vmtune.errors import InvalidInput, NotFound, Problem, VmtuneError
from vmtune.model.evacuation.evacuation import (
    NOT_MOVED,
    RUNNING_STATES,
    EvacuationPlan,
    EvacuationVm,
    EvacuationVmState,
    LocalDisks,
    Order,
    RoomLeft,
    ordinal,
    priority_of,
)
from vmtune.model.evacuation.image_room import ImageRoom
from vmtune.model.evacuation.placement import Candidate, Placement, place, room_of, why_not
from vmtune.model.findings.table import Finding
from vmtune.model.host.disks import Disk, DiskRoom
from vmtune.model.host.facts import Connection, HostFacts, VmState
from vmtune.model.migration.controls import migrates_already
from vmtune.model.migration.intent import Intent
from vmtune.model.migration.open_migration import OpenMigration
from vmtune.model.tunables.rows.storage import COPIES, COPY, COPY_DISKS
from vmtune.model.tunables.tunable import Value
from vmtune.services.hosts.hosts import HostService, SeenVm
from vmtune.services.tuning.planning import Planned, PlanService
from vmtune.storage import Store

_T = TypeVar("_T")
_R = TypeVar("_R")
AT_ONCE = 8
"""Hosts and VMs that are asked at the same time."""
_HOSTS_AT_ONCE = 16
MAX_TRIES = 3
"""Hosts that a VM is tried with whose preflight refuses it."""
_HOST_TIMEOUT_S = 10.0
_EVACUATING = "it is being evacuated"


@dataclass(frozen=True, slots=True)
class EvacuationRequest:
    """A request for an evacuation.

    :param destinations: names of hosts; empty for any that is eligible.
    :param overrides: codes of blockers that are overridden for all VMs; *vm_overrides* for one.
    :param profile: None for the one assigned to each VM.
    :param priority: of its migrations in the queue.
    :param among: the caller's hosts; None for all.
    :param intent: that each migration has to keep; None for that of each VM's profile.
    :param local_disks: what becomes of VMs that have some.
    """

    host: str
    destinations: tuple[str, ...] = ()
    order: Order = Order.PRIORITY
    overrides: tuple[str, ...] = ()
    vm_overrides: Mapping[UUID, tuple[str, ...]] = field(default_factory=dict)
    profile: str | None = None
    priority: int = 0
    max_outgoing: int | None = None
    stop_after_failures: int | None = None
    among: frozenset[str] | None = None
    intent: Intent | None = None
    local_disks: LocalDisks = LocalDisks.PROFILE


class EvacuationPlanner:
    """Plans an evacuation. Changes nothing."""

    def __init__(self, store: Store, hosts: HostService, plans: PlanService) -> None:
        self._store = store
        self._hosts = hosts
        self._plans = plans

    async def plan(
        self, request: EvacuationRequest, exclude: Collection[UUID] = ()
    ) -> EvacuationPlan:
        """All VMs of the host with a destination and its preflight, or the reason why none. What
        the request names need not be there any more: see :meth:`check`.

        :param exclude: VMs that are left out.
        :raise NotFound: no such host.
        :raise HostUnreachable: the host does not answer.
        """
        source = await self._hosts.facts(request.host)
        listing = await self._hosts.list_vms(request.host)
        listed = [vm for vm in listing.vms if vm.summary.uuid not in exclude]
        uuids = [vm.summary.uuid for vm in listed]
        moving = await asyncio.to_thread(self._store.migrations.open_of, uuids)
        found = await gathered(
            listed, lambda vm: self._leaving(request, vm, moving.get(vm.summary.uuid))
        )
        search = _DestinationSearch(self, request, source)
        waiting = [vm for vm in found if vm.state is EvacuationVmState.WAITING]
        placed = {vm.vm: vm for vm in await search.settle(waiting)}
        vms = sorted(
            (placed.get(vm.vm, vm) for vm in found),
            key=lambda vm: ordinal(vm, request.order),
        )
        return EvacuationPlan(
            request.host,
            request.order,
            tuple(vms),
            tuple(sorted(host.name for host in search.hosts)),
            search.refused,
            search.rooms,
        )

    async def find_other_destination(
        self, request: EvacuationRequest, vm: EvacuationVm, tried: Collection[str]
    ) -> EvacuationVm:
        """Another destination for one VM, where those that were *tried* cannot take it now."""
        source = await self._hosts.facts(request.host)
        search = _DestinationSearch(self, request, source)
        for name in tried:
            search.refusals[vm.vm, name] = "it could not be used any more"
        (placed,) = await search.settle([vm])
        return placed

    async def room(self, host: str, exclude: EvacuationVm) -> int | None:
        """A host's remaining capacity, without what is reserved for others than *exclude*."""
        facts = await self._hosts.facts(host)
        promised = await asyncio.to_thread(self._store.evacuations.promised, [host])
        return room_of(facts, max(0, promised.get(host, 0) - exclude.memory_bytes))

    async def check(self, request: EvacuationRequest) -> None:
        """Whether all is there that a new request names. One that was accepted is not checked
        again: a profile, a destination or a VM may be gone by then.

        :raise NotFound: no such host, destination or profile.
        :raise InvalidInput: the host itself as a destination, or overrides for a VM that it does
            not have.
        :raise HostUnreachable: the host does not answer.
        """
        await self._hosts.get(request.host)
        problems: list[Problem] = []
        for index, name in enumerate(request.destinations):
            where = f"destinations.{index}"
            if name == request.host:
                problems.append(
                    Problem(where, "destination_is_source", f"{name} is the host to be emptied",
                            "name other hosts, or none for any that is eligible")
                )  # fmt: skip
                continue
            try:
                await self._hosts.get(name)
            except NotFound as error:
                raise NotFound(
                    error.message, problems=[replace(p, field=where) for p in error.problems]
                ) from error
        if problems:
            raise InvalidInput("the destinations cannot be accepted", problems=problems)
        if request.profile is not None:
            await asyncio.to_thread(self._store.profiles.get, request.profile)
        await self._check_overridden(request)

    async def _check_overridden(self, request: EvacuationRequest) -> None:
        """An override that concerns no VM is a mistake: the VM that was meant would stay."""
        if not request.vm_overrides:
            return
        listing = await self._hosts.list_vms(request.host)
        strangers = request.vm_overrides.keys() - {vm.summary.uuid for vm in listing.vms}
        if strangers:
            raise InvalidInput(
                "the overrides cannot be accepted",
                problems=[
                    Problem(f"vm_overrides.{vm}", "not_on_host", f"{vm} is not on {request.host}",
                            f"leave it out; `vmtune vm list --host {request.host}` lists its VMs")
                    for vm in request.vm_overrides if vm in strangers
                ],
            )  # fmt: skip

    async def _leaving(
        self, request: EvacuationRequest, seen: SeenVm, migration: OpenMigration | None
    ) -> EvacuationVm:
        uuid, name, state = seen.summary.uuid, seen.summary.name, seen.summary.state
        wanted = (*request.overrides, *request.vm_overrides.get(uuid, ()))
        vm = EvacuationVm(
            uuid,
            name,
            0,
            priority_of(seen.labels),
            EvacuationVmState.WAITING,
            overrides=tuple(dict.fromkeys(wanted)),
        )
        if state not in RUNNING_STATES:
            return replace(vm, state=EvacuationVmState.NOT_RUNNING, reason=NOT_MOVED[state])
        try:
            driver = await self._hosts.driver(request.host)
            facts = await driver.vm_facts(uuid)
        except VmtuneError as error:
            return replace(vm, state=EvacuationVmState.BLOCKED, reason=error.message)
        vm = replace(vm, memory_bytes=facts.memory_bytes)
        if migration is not None:  # which cannot be overridden, as what is against a setting can
            record = await asyncio.to_thread(self._store.migrations.get, migration.id)
            return replace(vm, state=EvacuationVmState.BLOCKED, reason=migrates_already(record))
        return vm

    async def candidates(
        self, names: Sequence[str], source: HostFacts
    ) -> tuple[list[Candidate], dict[str, str]]:
        """The capacity of these hosts, and why others have none."""
        promised = await asyncio.to_thread(self._store.evacuations.promised, names)
        looked = await gathered(names, lambda name: self._candidate(name, source, promised))
        hosts = [one for one in looked if isinstance(one, Candidate)]
        refused = {
            name: one for name, one in zip(names, looked, strict=True) if isinstance(one, str)
        }
        return hosts, refused

    async def _candidate(
        self, name: str, source: HostFacts, promised: Mapping[str, int]
    ) -> Candidate | str:
        try:
            async with asyncio.timeout(_HOST_TIMEOUT_S):
                facts = await self._hosts.facts(name)
                against = why_not(facts, source)
                if against:
                    return against
                expected: frozenset[UUID] | None = None
                if facts.connection is Connection.QMP:
                    driver = await self._hosts.driver(name)
                    vms = await driver.list_vms()
                    expected = frozenset(vm.uuid for vm in vms if vm.state is VmState.INCOMING)
        except TimeoutError:
            return f"it did not answer within {_HOST_TIMEOUT_S:g} s"
        except VmtuneError as error:
            return error.message
        return Candidate(name, room_of(facts, promised.get(name, 0)), expected)

    async def eligible(self, request: EvacuationRequest) -> tuple[list[str], dict[str, str]]:
        """The hosts to probe, in an order of this request's own, and why named ones are not among
        them. So evacuations that start at the same time spread over the hosts."""
        unfinished = await asyncio.to_thread(self._store.evacuations.unfinished)
        evacuating = {each.host for each in unfinished} - {request.host}
        if request.destinations:
            refused = {n: _EVACUATING for n in request.destinations if n in evacuating}
            return [name for name in request.destinations if name not in evacuating], refused
        mix = uuid4()
        usable = [
            host.name
            for host in await self._hosts.all()
            if host.name != request.host
            and host.name not in evacuating
            and host.maintenance_since is None
            and (request.among is None or host.name in request.among)
        ]
        return sorted(usable, key=lambda name: uuid5(mix, name).int), {}

    async def preflight(
        self, request: EvacuationRequest, vm: EvacuationVm
    ) -> tuple[EvacuationVm, tuple[DiskRoom, ...]]:
        """*vm* with what the preflight for its destination finds, and what its disks take there."""
        try:
            planned, values = await self._planned(request, vm)
        except _LocalDisksStay as stay:
            return replace(vm, state=EvacuationVmState.BLOCKED, reason=str(stay)), ()
        except VmtuneError as error:
            return replace(vm, state=EvacuationVmState.BLOCKED, reason=error.message), ()
        if planned.plan.host != request.host:
            why = f"it is on {planned.plan.host} by now"
            return replace(vm, state=EvacuationVmState.HANDLED_BY_OTHERS, reason=why), ()
        findings = planned.plan.findings
        blockers = planned.plan.blockers(frozenset(vm.overrides))
        if blockers:
            why = "; ".join(f"{each.message} ({each.code})" for each in blockers)
            state = EvacuationVmState.BLOCKED
            return replace(vm, state=state, reason=why, findings=findings), ()
        going = replace(vm, findings=findings, disks=planned.plan.disks, values=values)
        return going, planned.plan.disk_room

    async def _planned(
        self, request: EvacuationRequest, vm: EvacuationVm
    ) -> tuple[Planned, Mapping[str, Value]]:
        """The plan of a VM's migration, and what was added to its profile for it.

        :raise _LocalDisksStay: it lives on local disks, and those are to stay.
        """

        async def plan(values: Mapping[str, Value]) -> Planned:
            return await self._plans.plan(
                vm.vm, request.profile, destination=vm.destination, values=values or None
            )

        planned = await plan({})
        copies = any(planned.desired.values.get(name) is True for name in COPIES)
        if request.local_disks is LocalDisks.PROFILE:
            return planned, {}
        if request.local_disks is LocalDisks.COPY and copies:
            return planned, {}
        local = planned.plan.local_disks
        if not local:
            return planned, {}
        if request.local_disks is LocalDisks.LEAVE:
            raise _LocalDisksStay(local)
        values: dict[str, Value] = {
            COPY: True,
            COPY_DISKS: ",".join(disk.target for disk in local),
        }
        return await plan(values), values


class _LocalDisksStay(Exception):
    """Why a VM with local disks stays."""

    def __init__(self, disks: Sequence[Disk]) -> None:
        named = ", ".join(f"{disk.target} ({disk.path})" for disk in disks)
        super().__init__(f"it lives on local disks, and this evacuation leaves those: {named}")


class _DestinationSearch:
    """Places the VMs of one request: probes more hosts until there is room for all."""

    def __init__(
        self, planner: EvacuationPlanner, request: EvacuationRequest, source: HostFacts
    ) -> None:
        self._planner = planner
        self._request = request
        self._source = source
        self._rest: list[str] | None = None
        self.hosts: list[Candidate] = []
        self.refused: dict[str, str] = {}
        self.refusals: dict[tuple[UUID, str], str] = {}
        self._images = ImageRoom()

    @property
    def rooms(self) -> tuple[RoomLeft, ...]:
        """What the images of those that are settled leave at their destinations."""
        return self._images.left()

    async def settle(self, vms: Sequence[EvacuationVm]) -> list[EvacuationVm]:
        """Each with its destination, or blocked, or not placed."""
        settled: dict[UUID, EvacuationVm] = {}
        open_vms = {vm.vm: vm for vm in vms}
        tries = dict.fromkeys(open_vms, 0)
        taken: list[EvacuationVm] = []
        while open_vms:
            placement = await self._assign(list(open_vms.values()), taken)
            for uuid, why in placement.unplaced.items():
                vm = open_vms.pop(uuid)
                tried = settled.get(uuid)  # refused by the hosts that had room, with findings
                settled[uuid] = tried or replace(vm, state=EvacuationVmState.NOT_PLACED, reason=why)
            pairs = [replace(open_vms[u], destination=name) for u, name in placement.placed.items()]
            for found, rooms in await gathered(pairs, self._preflight):
                vm = self._images.placed(found, rooms)
                tries[vm.vm] += 1
                settled[vm.vm] = vm
                refused = vm.state is EvacuationVmState.BLOCKED
                if refused and tries[vm.vm] < MAX_TRIES and not _same_anywhere(vm.findings):
                    self.refusals[vm.vm, vm.destination] = vm.reason
                    continue
                del open_vms[vm.vm]
                if not refused:
                    taken.append(vm)
        return [settled[vm.vm] for vm in vms]

    async def _preflight(self, vm: EvacuationVm) -> tuple[EvacuationVm, tuple[DiskRoom, ...]]:
        return await self._planner.preflight(self._request, vm)

    async def _assign(
        self, vms: Sequence[EvacuationVm], taken: Sequence[EvacuationVm]
    ) -> Placement:
        while True:
            placement = place(vms, _room_left(self.hosts, taken), self.refusals)
            if not placement.unplaced or not await self._load_candidates():
                return placement

    async def _load_candidates(self) -> bool:
        """Probe more hosts; False when none are left."""
        if self._rest is None:
            self._rest, self.refused = await self._planner.eligible(self._request)
        now = self._rest[:_HOSTS_AT_ONCE]
        self._rest = self._rest[_HOSTS_AT_ONCE:]
        if not now:
            return False
        found, refused = await self._planner.candidates(now, self._source)
        self.hosts += found
        self.refused |= refused
        return True


def _room_left(hosts: Sequence[Candidate], taken: Iterable[EvacuationVm]) -> list[Candidate]:
    """The hosts with the room that *taken* leaves."""
    room = {host.name: host.room_bytes for host in hosts}
    for vm in taken:
        left = room.get(vm.destination)
        if left is not None:
            room[vm.destination] = left - vm.memory_bytes
    return [replace(host, room_bytes=room[host.name]) for host in hosts]


_ANYWHERE = frozenset({"vm_cannot_migrate", "vm_not_running", "migration_active"})


def _same_anywhere(findings: Iterable[Finding]) -> bool:
    """Whether another destination would make no difference."""
    return any(finding.code in _ANYWHERE for finding in findings)


async def gathered(items: Iterable[_T], work: Callable[[_T], Awaitable[_R]]) -> list[_R]:
    """*work* for each, a few at a time; in the order of *items*."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(item: _T) -> _R:
        async with turn:
            return await work(item)

    return await asyncio.gather(*map(one, items))
