"""Hosts that libvirt manages: ``qemu:///system``, ``qemu+ssh://...`` and their kin."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Collection, Sequence
from uuid import UUID

from vmtune.errors import CommandRefused, NotFound
from vmtune.hypervisor.libvirt.agent import LibvirtChannel
from vmtune.hypervisor.libvirt.calls.connection import Connection
from vmtune.hypervisor.libvirt.calls.domain import VmStatus
from vmtune.hypervisor.libvirt.configuration import change_configuration
from vmtune.hypervisor.libvirt.disk_calls import LibvirtDisks
from vmtune.hypervisor.libvirt.errors import LibvirtRefused
from vmtune.hypervisor.libvirt.iothreads import is_iothread_call, names_to_read, set_iothreads
from vmtune.hypervisor.libvirt.migrating.migrations import LibvirtMigrations
from vmtune.hypervisor.libvirt.monitor import NOT_RUNNING
from vmtune.hypervisor.libvirt.vm import RING, add_libvirt, facts_by_xml, with_ring
from vmtune.hypervisor.protocol import DriverEvent
from vmtune.hypervisor.qemu import control as qemu_control
from vmtune.hypervisor.qemu import write as qemu_write
from vmtune.hypervisor.qemu.guest_agent import GuestAgent
from vmtune.hypervisor.qemu.virtio_queues import virtio_queues
from vmtune.model.host.dirty_rates import DirtyPoint, DirtyRates
from vmtune.model.host.facts import Reading, VmFacts, VmState, VmSummary
from vmtune.model.host.page_contents import PageSample
from vmtune.model.host.virtio_queues import VirtioQueue
from vmtune.model.plan.changes import Change


class LibvirtDriver(LibvirtMigrations, LibvirtDisks):
    """A :class:`~vmtune.hypervisor.protocol.Driver` for a libvirt daemon's QEMUs.

    Reading a QEMU goes through libvirt's monitor passthrough, which marks the guest as
    tainted (``custom-monitor``). What libvirt must know goes through its own calls:
    migrations, iothreads, the configuration. The downtime limit could too, but then it would
    not be set or refused as a whole with the other parameters.

    While a VM arrives by a migration, libvirt answers no question to its QEMU, nor gives its
    XML: its facts are then few, and its readings say why they are missing.

    For its parameters see :class:`~vmtune.hypervisor.libvirt.daemon.LibvirtDaemon`.
    """

    async def close(self) -> None:
        """Close the connection. Migrations continue; callers that wait for one get an unknown
        end."""
        for migration in self._migrations.values():
            migration.let_go()
        await self._link.close()

    async def list_vms(self) -> Sequence[VmSummary]:
        """The VMs that libvirt knows."""

        def call(connection: Connection) -> list[VmSummary]:
            vms: list[VmSummary] = []
            for domain in connection.domains():
                try:
                    status = domain.status()
                except NotFound:
                    continue  # it has just gone
                vms.append(VmSummary(status.uuid, status.name, status.state, status.postcopy))
            return sorted(vms, key=lambda vm: (vm.name, vm.uuid))

        found = await self._link.ask(call)
        for gone in {*self._monitors, *self._probes} - {vm.uuid for vm in found}:
            self._monitors.pop(gone, None)
            self._probes.pop(gone, None)
        self._migrations = {vm: one for vm, one in self._migrations.items() if not one.done}
        self._not_begun.keep({vm.uuid for vm in found})
        return found

    async def vm_facts(self, vm: UUID) -> VmFacts:
        """Probe a VM. One that does not run is described by its configuration."""
        record = await self._look_up(vm)
        if not record.status.has_monitor:
            return facts_by_xml(record)
        try:
            facts = await self._probe(vm, record).facts(vm, record.status.name)
        except CommandRefused as refusal:
            if refusal.problems[0].code != NOT_RUNNING:
                raise
            return facts_by_xml(await self._look_up(vm))
        return add_libvirt(facts, record)

    async def read(self, vm: UUID, tunables: Collection[str]) -> dict[str, Reading]:
        """What the named tunables are set to right now."""
        status, run_id = await self._status(vm)
        if not status.has_monitor:
            why = _why_no_monitor(status)
            return {name: Reading(None, why_unknown=why) for name in tunables}
        probe = self._known_probe(vm, run_id) or self._probe(vm, await self._look_up(vm))
        readings = await probe.read(tunables)
        if RING in readings and readings[RING].value is None:
            readings = with_ring(readings, (await self._look_up(vm)).live)
        return readings

    async def write(self, vm: UUID, changes: Sequence[Change]) -> None:
        """Set values in the order given; iothreads' through libvirt, so that it knows of
        them and hands them to a destination."""
        if not changes:
            return
        status, _ = await self._status(vm)
        if not status.has_monitor:
            raise CommandRefused(_why_no_monitor(status), field="vm", code=NOT_RUNNING)
        for by_libvirt, group in itertools.groupby(changes, is_iothread_call):
            neighbours = list(group)
            if by_libvirt:
                await self._set_iothreads(vm, neighbours)
            else:
                await qemu_write.write(self._monitor(vm), neighbours, self._tunables)

    async def _set_iothreads(self, vm: UUID, changes: Sequence[Change]) -> None:
        before = await self.read(vm, names_to_read(changes))
        await self._link.change(
            lambda connection: set_iothreads(connection.domain(vm), changes, before)
        )

    async def write_and_read(
        self, vm: UUID, changes: Sequence[Change], tunables: Collection[str]
    ) -> dict[str, Reading]:
        """One after the other, as libvirt lends the monitor."""
        await self.write(vm, changes)
        return await self.read(vm, tunables)

    async def write_boot(self, vm: UUID, changes: Sequence[Change]) -> None:
        """Set values in the persistent configuration. A disk's owner is its target (``vda``).

        :raise CommandRefused: as :func:`change_configuration` does.
        """
        if not changes:
            return

        try:
            await self._link.change(lambda each: change_configuration(each, vm, changes))
        except LibvirtRefused as refusal:
            raise qemu_write.blamed(refusal, changes) from refusal

    async def vm_state(self, vm: UUID) -> VmState:
        """What the VM is doing."""
        return (await self._status(vm))[0].state

    async def pause(self, vm: UUID) -> None:
        """Stop the guest; libvirt resumes it when its migration has ended."""

        def call(connection: Connection) -> None:
            domain = connection.domain(vm)
            if domain.status().state is not VmState.PAUSED:
                domain.suspend()

        await self._link.change(call)

    async def resume(self, vm: UUID) -> None:
        """Resume the guest."""

        def call(connection: Connection) -> None:
            domain = connection.domain(vm)
            if domain.status().state is VmState.PAUSED:
                domain.resume()

        await self._link.change(call)

    async def measure_dirty_rates(self, vm: UUID, over_ms: int) -> None:
        """Begin a measurement that ends with emptied rings. libvirt has a call for it too, which
        takes whole seconds."""
        await qemu_control.measure_dirty_rates(self._monitor(vm), over_ms)

    async def dirty_rates(self, vm: UUID) -> DirtyRates:
        """How far the last measurement is."""
        return await qemu_control.dirty_rates(self._monitor(vm))

    async def sample_dirtied(self, vm: UUID, over_ms: int, pages_per_gib: int) -> DirtyPoint:
        """What the guest changes in a time. libvirt's own call takes whole seconds."""
        return await qemu_control.sample_dirtied(self._monitor(vm), over_ms, pages_per_gib)

    async def resident_bytes(self, vm: UUID) -> int | None:
        """As libvirt says, so on a remote host too."""
        return await self._link.ask(lambda connection: connection.domain(vm).resident_bytes())

    async def sample_pages(
        self, vm: UUID, memory_bytes: int, before: PageSample | None = None
    ) -> PageSample | None:
        """Of a QEMU on this machine."""
        process = (await self._look_up(vm)).process
        if process is None:
            return None
        return await asyncio.to_thread(process.sample_pages, memory_bytes, before)

    async def objects(self, vm: UUID) -> Collection[str]:
        """The ids of its QEMU's objects."""
        return await qemu_control.objects(self._monitor(vm))

    async def takes_postcopy_with_multifd(self, vm: UUID) -> bool | None:
        """Whether its QEMU takes post-copy together with multifd."""
        return await qemu_control.takes_postcopy_with_multifd(self._monitor(vm))

    async def virtio_queues(self, vm: UUID) -> Sequence[VirtioQueue]:
        """The first queue of each of its virtio devices."""
        return await virtio_queues(self._monitor(vm))

    async def lift_dirty_limit(self, vm: UUID) -> None:
        """Hold its vCPUs back no longer."""
        await qemu_control.lift_dirty_limit(self._monitor(vm))

    async def guest_agent(self, vm: UUID) -> GuestAgent:
        """The agent in its guest, by libvirt's call."""
        return GuestAgent(LibvirtChannel(self._link, vm))

    def events(self) -> AsyncGenerator[DriverEvent, None]:
        """What happens on the host from now on."""
        return self._link.events()


def _why_no_monitor(status: VmStatus) -> str:
    if status.arriving:
        return "libvirt lets nobody ask the destination's QEMU before the migration has ended"
    return f"{status.name} does not run: it is {status.state.value}"
