"""A fleet that is not there: hosts as libvirt drives them, and VMs that move between them in
as much time as a test wants. What it counts tells whether limits were kept."""

from __future__ import annotations

import asyncio
import functools
from collections import Counter
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from tests.support.examples.facts import host as host_facts
from tests.support.examples.facts import vm as vm_facts
from vmtune.errors import CommandRefused, HostUnreachable, NotFound, TooLate
from vmtune.hypervisor.event_hub import EventHub
from vmtune.hypervisor.protocol import Driver, DriverEvent, MigrateOrder, MigrationHandle
from vmtune.model.host.dirty_rates import DirtyRates
from vmtune.model.host.disks import Disk, DiskAtHost
from vmtune.model.host.facts import HostFacts, Reading, VmFacts, VmState, VmSummary
from vmtune.model.host.hardware import Hardware, Offer
from vmtune.model.host.page_contents import PageSample
from vmtune.model.migration.disks import CopiedDisk, Mirrored
from vmtune.model.migration.record import QemuStatus, Sample, Snapshot, Totals
from vmtune.model.plan.changes import Change

ROOM = 64 << 30
_FACTS = functools.cache(vm_facts)


@dataclass
class SimVm:
    """One VM, wherever it is."""

    uuid: UUID
    name: str
    memory_bytes: int = 1 << 30
    state: VmState = VmState.RUNNING
    blocked: str = ""
    handle: SimHandle | None = None
    cancelled: bool = False
    disks: tuple[Disk, ...] = ()


class SimHandle:
    """A migration under way."""

    def __init__(self) -> None:
        self._end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.task: asyncio.Task[None] | None = None

    @property
    def begun(self) -> bool:
        return True

    @property
    def done(self) -> bool:
        return self._end.done()

    async def wait(self) -> None:
        await asyncio.shield(self._end)

    def finish(self, error: str = "") -> None:
        if self._end.done():
            return
        if error:
            self._end.set_exception(CommandRefused(error))
            self._end.exception()  # nobody need ask
        else:
            self._end.set_result(None)


@dataclass
class Fleet:
    """All hosts, and the most that was ever under way at once.

    :param lasts_s: how long a migration takes.
    :param fails: UUIDs of VMs whose migrations fail, with what QEMU says.
    :param sent: how often each VM was ordered to leave each host.
    :param go: while it is clear, migrations begin and do not end.
    """

    lasts_s: float = 0.01
    hosts: dict[str, SimHost] = field(default_factory=dict)
    fails: dict[UUID, str] = field(default_factory=dict)
    go: asyncio.Event = field(default_factory=asyncio.Event)
    leaving: Counter[str] = field(default_factory=Counter)
    arriving: Counter[str] = field(default_factory=Counter)
    most: Counter[str] = field(default_factory=Counter)
    ordered: Counter[UUID] = field(default_factory=Counter)
    sent: Counter[tuple[UUID, str]] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.go.set()

    def add(self, name: str, vms: int = 0, room: int = ROOM, memory_bytes: int = 1 << 30) -> None:
        """A host with so many VMs."""
        number = len(self.hosts)
        made = SimHost(self, name, room)
        for index in range(vms):
            uuid = UUID(int=(number << 64) | (index + 1))
            made.vms[uuid] = SimVm(uuid, f"{name}-{index}", memory_bytes)
        self.hosts[name] = made

    def driver(self, name: str) -> Driver:
        """The host's driver."""
        return self.hosts[name]

    def where(self, vm: UUID) -> list[str]:
        """The hosts that have it: one, always."""
        return [name for name, host in self.hosts.items() if vm in host.vms]

    def begin(self, source: str, destination: str) -> None:
        """Count a migration that begins."""
        self.leaving[source] += 1
        self.arriving[destination] += 1
        self.most["outgoing"] = max(self.most["outgoing"], self.leaving[source])
        self.most["incoming"] = max(self.most["incoming"], self.arriving[destination])
        self.most["all"] = max(self.most["all"], self.leaving.total())

    def end(self, source: str, destination: str) -> None:
        """And one that ends."""
        self.leaving[source] -= 1
        self.arriving[destination] -= 1


class SimHost:
    """Implements :class:`vmtune.hypervisor.protocol.Driver`."""

    def __init__(self, fleet: Fleet, name: str, room: int) -> None:
        self.name = name
        self.vms: dict[UUID, SimVm] = {}
        self.reachable = True
        self.files: dict[str, DiskAtHost] = {}
        self.nothing = DiskAtHost(present=False, folder=True, free_bytes=10 << 30, file_system="1")
        self.made: dict[UUID, list[str]] = {}
        self.facts: HostFacts = host_facts(name)
        self._fleet = fleet
        self.room = room
        self._hub = EventHub()

    @property
    def uri(self) -> str:
        return f"qemu+tcp://{self.name}/system"

    async def close(self) -> None:
        self._hub.close()

    async def host_facts(self) -> HostFacts:
        self._call("host_facts")
        used = sum(vm.memory_bytes for vm in self.vms.values())
        return replace(self.facts, memory_bytes=0, memory_available_bytes=self.room - used)

    async def list_vms(self) -> Sequence[VmSummary]:
        self._call("list_vms")
        return [VmSummary(vm.uuid, vm.name, vm.state) for vm in self.vms.values()]

    async def vm_facts(self, vm: UUID) -> VmFacts:
        self._call("vm_facts")
        found = self._find(vm)
        return replace(
            _FACTS(),
            uuid=found.uuid,
            name=found.name,
            memory_bytes=found.memory_bytes,
            state=found.state,
            blocked_reasons=(found.blocked,) if found.blocked else (),
            hardware=Hardware(disks=found.disks) if found.disks else None,
        )

    async def disks(self, vm: UUID) -> Sequence[Disk]:
        return self._find(vm).disks

    async def offer(self, vm: VmFacts) -> Offer:
        disks = vm.hardware.disks if vm.hardware else ()
        return Offer(
            machine=True,
            cpu=True,
            disks={disk.target: self.files.get(disk.path, self.nothing) for disk in disks},
        )

    async def prepare_images(
        self, vm: UUID, disks: Sequence[CopiedDisk], *, incremental: bool
    ) -> Sequence[CopiedDisk]:
        self.made[vm] = [disk.target for disk in disks]
        return [replace(disk, created=True) for disk in disks]

    async def release_images(
        self, vm: UUID, remove: Collection[CopiedDisk] = ()
    ) -> Collection[str]:
        return [disk.path for disk in remove]

    async def mirrored(self, vm: UUID, targets: Collection[str]) -> Mapping[str, Mirrored]:
        return {}

    async def resident_bytes(self, vm: UUID) -> int | None:
        return self._find(vm).memory_bytes

    async def sample_pages(
        self, vm: UUID, memory_bytes: int, before: PageSample | None = None
    ) -> PageSample | None:
        return None

    async def read(self, vm: UUID, tunables: Collection[str]) -> dict[str, Reading]:
        self._find(vm)
        return {name: _FACTS().readings.get(name, Reading(None)) for name in tunables}

    async def write(self, vm: UUID, changes: Sequence[Change]) -> None:
        self._find(vm)

    async def write_boot(self, vm: UUID, changes: Sequence[Change]) -> None:
        self._find(vm)

    async def start_migration(self, order: MigrateOrder, destination: Driver) -> MigrationHandle:
        assert isinstance(destination, SimHost)
        if order.meanwhile is not None:
            await order.meanwhile()
        vm = self._find(order.vm)
        assert vm.handle is None, "it migrates already"
        self._fleet.ordered[vm.uuid] += 1
        self._fleet.sent[vm.uuid, self.name] += 1
        vm.handle = handle = SimHandle()
        self._fleet.begin(self.name, destination.name)
        handle.task = asyncio.create_task(self._carry(vm, destination, handle))
        return handle

    async def _carry(self, vm: SimVm, destination: SimHost, handle: SimHandle) -> None:
        aborted = False
        try:
            await asyncio.sleep(self._fleet.lasts_s)
            await self._fleet.go.wait()
        except asyncio.CancelledError:
            aborted = True
        why = "operation aborted" if aborted else self._fleet.fails.get(vm.uuid, "")
        if not why:
            del self.vms[vm.uuid]
            destination.vms[vm.uuid] = vm
        vm.handle, vm.cancelled = None, aborted
        self._fleet.end(self.name, destination.name)
        handle.finish(why)

    async def migration(self, vm: UUID, at_ms: int = 0) -> Snapshot:
        found = self._find(vm)
        if found.handle is None:
            return Snapshot(QemuStatus.CANCELLED if found.cancelled else QemuStatus.NONE)
        sample = Sample(
            at_ms, QemuStatus.ACTIVE, 1, False, found.memory_bytes // 2, found.memory_bytes // 2,
            found.memory_bytes, 0, 0, 4096, 0, 0, 0, 0, None, 0, 0, 0, 0,
        )  # fmt: skip
        return Snapshot(QemuStatus.ACTIVE, sample)

    async def managed_by(self, vm: UUID) -> str:
        return ""

    async def outgoing(self) -> Sequence[UUID]:
        self._call("outgoing")
        return [vm.uuid for vm in self.vms.values() if vm.handle is not None]

    async def migrating_ms(self, vm: UUID) -> int | None:
        return 0 if self._find(vm).handle is not None else None

    async def completed(self, vm: UUID) -> Totals | None:
        self._find(vm)
        return Totals(10, 5, 1, 1 << 20, 2)

    async def abort_migration(self, vm: UUID) -> None:
        found = self._find(vm)
        if found.handle is None or found.handle.task is None:
            raise TooLate("no migration is active")
        found.handle.task.cancel()

    async def start_postcopy(self, vm: UUID) -> None:
        raise CommandRefused("not here")

    async def recover_postcopy(
        self, vm: UUID, destination: Driver, address: str = "", *, gives_up: bool = False
    ) -> None:
        raise CommandRefused("not here")

    async def vm_state(self, vm: UUID) -> VmState:
        return self._find(vm).state

    async def pause(self, vm: UUID) -> None:
        self._find(vm).state = VmState.PAUSED

    async def resume(self, vm: UUID) -> None:
        self._find(vm).state = VmState.RUNNING

    async def measure_dirty_rates(self, vm: UUID, over_ms: int) -> None:
        raise CommandRefused("not here")

    async def dirty_rates(self, vm: UUID) -> DirtyRates:
        raise CommandRefused("not here")

    async def lift_dirty_limit(self, vm: UUID) -> None:
        self._find(vm)

    async def reset_after_migration(self, vm: UUID, prior: object = None) -> None:
        self._find(vm)

    def daemon_lost_since(self, moment: float) -> bool:
        return False

    def events(self) -> AsyncGenerator[DriverEvent, None]:
        return self._hub.events()

    def _call(self, name: str) -> None:
        self._fleet.calls[name] += 1
        if not self.reachable:
            raise HostUnreachable(f"{self.name} cannot be reached")

    def _find(self, vm: UUID) -> SimVm:
        if vm not in self.vms:
            raise NotFound(f"no VM {vm} on {self.name}", field="vm")
        return self.vms[vm]


def loads(fleet: Fleet) -> Mapping[str, int]:
    """How many VMs each host has."""
    return {name: len(host.vms) for name, host in fleet.hosts.items()}
