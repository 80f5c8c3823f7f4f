"""Hosts that libvirt manages: ``qemu:///system``, ``qemu+ssh://...`` and their kin."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from uuid import UUID

from vmtune.errors import CommandRefused, NotFound, TooLate
from vmtune.hypervisor.asking import done_meanwhile
from vmtune.hypervisor.guard import OPEN, Guard
from vmtune.hypervisor.libvirt import images, recovery, source_images
from vmtune.hypervisor.libvirt.agent import LibvirtChannel
from vmtune.hypervisor.libvirt.calls import Connection, VmStatus, open_connection
from vmtune.hypervisor.libvirt.configuration import change_configuration
from vmtune.hypervisor.libvirt.connection import Link
from vmtune.hypervisor.libvirt.disks import copy_jobs_of, measured_disks
from vmtune.hypervisor.libvirt.domain_xml import manager_in
from vmtune.hypervisor.libvirt.domain_xml_edit import edit_destination_xml
from vmtune.hypervisor.libvirt.errors import OPERATION_INVALID, LibvirtRefused
from vmtune.hypervisor.libvirt.hardware import read_offer
from vmtune.hypervisor.libvirt.host import (
    LocalDaemon,
    derive_peer_uri,
    find_local_daemon,
    read_host,
)
from vmtune.hypervisor.libvirt.iothreads import is_iothread_call, names_to_read, set_iothreads
from vmtune.hypervisor.libvirt.leaving import Leaving
from vmtune.hypervisor.libvirt.migration import (
    LibvirtMigration,
    MigrationArguments,
    migration_arguments,
    migration_flags,
)
from vmtune.hypervisor.libvirt.monitor import NOT_RUNNING, LibvirtMonitor
from vmtune.hypervisor.libvirt.not_begun import NotBegun
from vmtune.hypervisor.libvirt.vm import (
    RING,
    VmRecord,
    add_libvirt,
    facts_by_xml,
    look_up,
    read_totals,
    with_ring,
)
from vmtune.hypervisor.protocol import Driver, DriverEvent, MigrateOrder, MigrationHandle
from vmtune.hypervisor.qemu import block_export, copy_jobs
from vmtune.hypervisor.qemu import control as qemu_control
from vmtune.hypervisor.qemu import write as qemu_write
from vmtune.hypervisor.qemu.block_export import BlockNode, Export
from vmtune.hypervisor.qemu.guest_agent import GuestAgent
from vmtune.hypervisor.qemu.probe import QemuProbe
from vmtune.hypervisor.qemu.replies import reading_reply
from vmtune.model.host.dirty_rates import DirtyPoint, DirtyRates
from vmtune.model.host.disks import Disk
from vmtune.model.host.facts import HostFacts, Postcopy, Reading, VmFacts, VmState, VmSummary
from vmtune.model.host.hardware import Offer
from vmtune.model.migration.disks import CopiedDisk, Mirrored
from vmtune.model.migration.postcopy import not_arrived, not_paused
from vmtune.model.migration.postcopy_figures import PostcopyFigures, read_postcopy_figures
from vmtune.model.migration.prior import Prior
from vmtune.model.migration.record import QemuStatus, Snapshot, Totals
from vmtune.model.plan.changes import Change
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.registry import TunableRegistry

_RESETS_WITHIN_S = 10.0
_LOOK_AGAIN_S = 0.05


class LibvirtDriver:
    """A :class:`~vmtune.hypervisor.protocol.Driver` for a libvirt daemon's QEMUs.

    Reading a QEMU goes through libvirt's monitor passthrough, which marks the guest as
    tainted (``custom-monitor``). What libvirt must know goes through its own calls:
    migrations, iothreads, the configuration. The downtime limit could too, but then it would
    not be set or refused as a whole with the other parameters.

    While a VM arrives by a migration, libvirt answers no question to its QEMU, nor gives its
    XML: its facts are then few, and its readings say why they are missing.

    :param uri: ``qemu:///system``, ``qemu+unix://...?socket=``, ``qemu+tcp://``,
        ``qemu+tls://``, ``qemu+ssh://``.
    :param peer_uri: how other hosts' daemons reach this one; empty to derive it from *uri*.
    :param more_commands: see :func:`vmtune.hypervisor.qemu.allowlist.check`.
    :param guard: lets through what changes something.
    :param tunables: what it reads and sets, packs included.
    """

    def __init__(
        self,
        uri: str,
        *,
        peer_uri: str = "",
        more_commands: Collection[str] = (),
        open_: Callable[[str], Connection] = open_connection,
        guard: Guard = OPEN,
        tunables: TunableRegistry = BUILT_IN,
    ) -> None:
        self._uri = uri
        self._tunables = tunables
        self._more_commands = more_commands
        self._open = open_
        self._guard = guard
        self._link = Link(uri, open_, guard)
        self._peer_uri = peer_uri or derive_peer_uri(uri)
        self._daemon: tuple[int, LocalDaemon | None] | None = None
        self._monitors: dict[UUID, LibvirtMonitor] = {}
        self._probes: dict[UUID, tuple[tuple[int, int], QemuProbe]] = {}
        self._migrations: dict[UUID, LibvirtMigration] = {}
        self._not_begun = NotBegun()
        self._leaving = Leaving()

    @property
    def uri(self) -> str:
        """The daemon's address, as given."""
        return self._uri

    @property
    def peer_uri(self) -> str:
        """How other hosts' daemons reach this one; empty where that is not known."""
        return self._peer_uri

    def daemon_lost_since(self, moment: float) -> bool:
        """Whether the connection was lost since *moment*."""
        return self._link.lost_at_s >= moment

    async def close(self) -> None:
        """Close the connection. Migrations continue; callers that wait for one get an unknown
        end."""
        for migration in self._migrations.values():
            migration.let_go()
        await self._link.close()

    async def host_facts(self) -> HostFacts:
        """Probe the host. Sysctls, and whether memory can be locked beyond QEMU's limit, are
        known where the daemon runs on this machine."""
        return await self._link.ask(
            lambda connection: read_host(connection, self._local(), self._peer_uri)
        )

    def _local(self) -> LocalDaemon | None:
        """The daemon's process; looked for once for each connection. In a thread."""
        generation = self._link.generation
        if self._daemon is None or self._daemon[0] != generation:
            self._daemon = generation, find_local_daemon(self._uri)
        return self._daemon[1]

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

    async def _look_up(self, vm: UUID) -> VmRecord:
        """What libvirt says of it. Its XML may have to wait for what the VM is at."""

        def call(connection: Connection) -> VmRecord:
            return look_up(connection, vm, self._local())

        return await self._monitor(vm).in_turn(lambda: self._link.ask(call, waits=True))

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

    async def _status(self, vm: UUID) -> tuple[VmStatus, int]:
        def call(connection: Connection) -> tuple[VmStatus, int]:
            domain = connection.domain(vm)
            return domain.status(), domain.run_id()

        return await self._link.ask(call)

    def _monitor(self, vm: UUID) -> LibvirtMonitor:
        if vm not in self._monitors:
            self._monitors[vm] = LibvirtMonitor(self._link, vm, self._more_commands)
        return self._monitors[vm]

    def _known_probe(self, vm: UUID, run_id: int) -> QemuProbe | None:
        key, probe = self._probes.get(vm, (None, None))
        return probe if key == (self._link.generation, run_id) else None

    def _probe(self, vm: UUID, record: VmRecord) -> QemuProbe:
        """The VM's probe, which remembers what stays the same while QEMU lives."""
        probe = self._known_probe(vm, record.run_id)
        if probe is None:
            probe = QemuProbe(self._monitor(vm), self._tunables, record.process)
            self._probes[vm] = (self._link.generation, record.run_id), probe
        return probe

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

    async def start_migration(self, order: MigrateOrder, destination: Driver) -> MigrationHandle:
        """Begin a peer-to-peer migration: the source's daemon runs it by itself.

        Values of the destination alone go into its QEMU's command line, which marks the guest
        as tainted (``custom-argv``); the persistent configuration does not get them.

        :raise CommandRefused: it could not be begun. The handle reports what libvirt refuses later.
        """
        destination = _managed(destination)
        arguments = migration_arguments(order.values)

        def prepare(connection: Connection) -> MigrationArguments:
            domain = connection.domain(order.vm)
            persistent = domain.is_persistent()
            live = domain.xml("VIR_DOMAIN_XML_MIGRATABLE", "VIR_DOMAIN_XML_SECURE")
            boot = None
            if persistent:
                boot = domain.xml("VIR_DOMAIN_XML_INACTIVE", "VIR_DOMAIN_XML_SECURE")
            xml = edit_destination_xml(live, boot, order.destination_values)
            parameters = dict(arguments.parameters)
            if xml is not None:
                parameters["destination_xml"] = xml
                if boot is not None:
                    parameters["persistent_xml"] = boot
            flags = (*migration_flags(persistent), *arguments.flags)
            return MigrationArguments(flags, parameters)

        async with done_meanwhile(order.meanwhile):
            prepared = await self._monitor(order.vm).in_turn(
                lambda: self._link.ask(prepare, waits=True)
            )
            before = await self.migration(order.vm)
        if before.status.running:
            raise qemu_control.already_migrating()
        migration = LibvirtMigration(before)
        await migration.begin(
            order.vm, destination.peer_uri, prepared, lambda: self._open(self._uri), self._guard
        )
        self._migrations[order.vm] = migration
        self._not_begun.add(order.vm, migration)
        return migration

    async def migration(self, vm: UUID, at_ms: int = 0) -> Snapshot:
        """The VM's outgoing migration; on its destination there is none.

        It is ``setup`` while libvirt prepares the destination, no matter who started it:
        QEMU does not know of it yet and still reports the previous one.
        """
        name = self._leaving.name(vm)
        if name is None:
            status, _ = await self._status(vm)
            name = status.name
            if status.arriving:
                return Snapshot(QemuStatus.NONE)
            if not status.has_monitor:
                raise _gone(name, vm)
        snapshot = None
        try:
            snapshot = await self._not_begun.look(
                vm,
                lambda: self._monitor(vm).execute("query-migrate"),
                lambda: self.migrating_ms(vm),
                at_ms,
            )
        except CommandRefused as refusal:
            if refusal.problems[0].code == NOT_RUNNING:
                raise _gone(name, vm) from refusal
            raise
        finally:
            self._leaving.seen(vm, name, snapshot)
        return snapshot

    async def migrating_ms(self, vm: UUID) -> int | None:
        """For how long libvirt's job has been a migration of it."""
        return await self._link.ask(lambda connection: connection.domain(vm).migrating_out_ms())

    async def outgoing(self) -> Sequence[UUID]:
        """The VMs whose job is a migration to another host. Asks no QEMU, so none is tainted."""

        def call(connection: Connection) -> list[UUID]:
            leaving: list[UUID] = []
            for domain in connection.domains():
                with contextlib.suppress(NotFound, CommandRefused):  # it has just gone
                    status = domain.status()
                    if status.has_monitor and domain.is_migrating_out():
                        leaving.append(status.uuid)
            return leaving

        return await self._link.ask(call, waits=True)

    async def managed_by(self, vm: UUID) -> str:
        """By the metadata in its XML."""
        return await self._link.ask(lambda connection: manager_in(connection.domain(vm).xml()))

    async def completed(self, vm: UUID) -> Totals | None:
        """The figures of the VM's last completed migration, asked on its destination."""
        try:
            job = await self._link.ask(lambda connection: connection.domain(vm).completed_job())
        except LibvirtRefused as refusal:
            if refusal.number == OPERATION_INVALID:
                return None  # it does not run, or is still arriving
            raise
        return read_totals(job)

    async def postcopy_figures(self, vm: UUID) -> PostcopyFigures | None:
        """What the post-copy that brought the VM here cost its guest. libvirt lets nobody switch
        the counting on while the VM arrives: there are figures where something else did."""
        reply = await self._monitor(vm).execute("query-migrate")
        with reading_reply("its migration"):
            return read_postcopy_figures(reply)

    async def abort_migration(self, vm: UUID) -> None:
        """Cancel it, no matter what started it.

        :raise TooLate: in post-copy, or ended already.
        """

        def call(connection: Connection) -> None:
            domain = connection.domain(vm)
            if domain.status().arriving or not domain.is_migrating_out():
                raise TooLate("no migration to another host is active")
            domain.abort_job()

        try:
            await self._link.change(call)
        except LibvirtRefused as refusal:
            if refusal.number == OPERATION_INVALID:
                raise TooLate(refusal.message) from refusal
            raise
        self._not_begun.remove(vm)

    async def start_postcopy(self, vm: UUID) -> None:
        """Switch to post-copy, by libvirt, which has to know when it ends.

        :raise TooLate: no migration is active.
        """

        def call(connection: Connection) -> None:
            domain = connection.domain(vm)
            if domain.status().arriving or not domain.is_migrating_out():
                raise TooLate("no migration to another host is active")
            domain.start_postcopy()

        await self._link.change(call)

    async def recover_postcopy(
        self, vm: UUID, destination: Driver, address: str = "", *, gives_up: bool = False
    ) -> None:
        """Give a migration that is paused in post-copy a new connection, with libvirt's resume
        flag, and return once QEMU goes on.

        :raise CommandRefused: code ``recovery_not_offered`` where the destination's libvirt is not
            known to survive it.
        """
        destination = _managed(destination)
        status = (await self.migration(vm)).status
        connected = status is QemuStatus.POSTCOPY_ACTIVE and gives_up
        if status is not QemuStatus.POSTCOPY_PAUSED and not connected:
            raise not_paused(status)
        facts = [await driver.host_facts() for driver in (destination, self)]
        recovery.check_version(facts[0].libvirt, facts[1].libvirt)

        def persistence(connection: Connection) -> bool:
            return connection.domain(vm).is_persistent()

        arguments = recovery.resume_arguments(await self._link.ask(persistence), address)

        async def resume() -> None:
            for driver in (destination, self):
                await driver._pause_postcopy(vm)
            migration = LibvirtMigration()
            await migration.begin(
                vm, destination.peer_uri, arguments, lambda: self._open(self._uri), self._guard
            )
            self._migrations[vm] = migration
            await recovery.until_connected(migration, lambda: self.migration(vm))

        await recovery.in_two_tries(resume, lambda: self.migration(vm))

    async def _pause_postcopy(self, vm: UUID) -> None:
        """Give up the connection to the other host, where this one still believes in it.

        :raise TooLate: the guest is just being started on the destination.
        """

        async def is_paused() -> bool:
            postcopy = (await self._status(vm))[0].postcopy
            if postcopy is Postcopy.NONE:
                raise not_arrived()
            return postcopy is Postcopy.FAILED

        if not await is_paused():
            await self._link.change(lambda connection: connection.domain(vm).pause_postcopy())
            await recovery.until_paused(is_paused)

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

    async def offer(self, vm: VmFacts) -> Offer:
        """What this host offers, by the capabilities of its domains."""
        return await self._link.ask(lambda connection: read_offer(connection, vm, self._local()))

    async def disks(self, vm: UUID) -> Sequence[Disk]:
        """Its disks, by its XML, with the sizes that libvirt knows."""
        return await self._link.ask(
            lambda each: measured_disks(each, each.domain(vm), self._local()), waits=True
        )

    async def prepare_images(
        self, vm: UUID, disks: Sequence[CopiedDisk], *, incremental: bool
    ) -> Sequence[CopiedDisk]:
        """As :func:`~vmtune.hypervisor.libvirt.images.make_ready`."""
        return await self._link.change(
            lambda connection: images.make_ready(connection, vm, disks, incremental=incremental)
        )

    async def release_images(
        self, vm: UUID, remove: Collection[CopiedDisk] = ()
    ) -> Collection[str]:
        """As :func:`~vmtune.hypervisor.libvirt.images.remove_images`."""

        def call(connection: Connection) -> Collection[str]:
            if remove:
                return images.remove_images(connection, vm, remove)
            images.forget_pools(connection, vm)
            return ()

        return await self._link.change(call)

    async def remove_source_images(
        self, vm: UUID, disks: Collection[CopiedDisk]
    ) -> Mapping[str, str]:
        """As :func:`~vmtune.hypervisor.libvirt.source_images.remove`."""
        return await self._link.change(
            lambda connection: source_images.remove(connection, vm, disks, self._local())
        )

    async def mirrored(self, vm: UUID, targets: Collection[str]) -> Mapping[str, Mirrored]:
        """The disks' jobs that copy, as libvirt says."""

        def call(connection: Connection) -> dict[str, Mirrored]:
            domain = connection.domain(vm)
            jobs = {target: domain.copying(target) for target in targets}
            return {target: job for target, job in jobs.items() if job is not None}

        return await self._link.ask(call, waits=True)

    async def help_copies(
        self,
        vm: UUID,
        targets: Collection[str],
        bytes_per_s: int | None = None,
        *,
        synchronous: bool = False,
    ) -> None:
        """Change libvirt's jobs over its monitor: virDomainBlockJobSetSpeed waits for the end of
        the migration, and there is no call for the rest."""
        jobs = await self._link.ask(lambda each: copy_jobs_of(each.domain(vm), targets))
        await copy_jobs.help_copies(self._monitor(vm), jobs, bytes_per_s, synchronous=synchronous)

    async def objects(self, vm: UUID) -> Collection[str]:
        """The ids of its QEMU's objects."""
        return await qemu_control.objects(self._monitor(vm))

    async def takes_postcopy_with_multifd(self, vm: UUID) -> bool | None:
        """Whether its QEMU takes post-copy together with multifd."""
        return await qemu_control.takes_postcopy_with_multifd(self._monitor(vm))

    async def block_nodes(self, vm: UUID) -> Sequence[BlockNode]:
        """The block nodes that have a name: libvirt gives one to each."""
        return await block_export.list_nodes(self._monitor(vm))

    async def export_node(self, vm: UUID, export: Export) -> None:
        """Export a block node by NBD. libvirt does not know: a backup or a copy of storage that is
        requested meanwhile fails."""
        await block_export.add_export(self._monitor(vm), export)

    async def remove_export(self, vm: UUID) -> None:
        """Remove it again."""
        await block_export.remove_export(self._monitor(vm), scratch=True)

    async def guest_agent(self, vm: UUID) -> GuestAgent:
        """The agent in its guest, by libvirt's call."""
        return GuestAgent(LibvirtChannel(self._link, vm))

    async def reset_after_migration(self, vm: UUID, prior: Prior | None = None) -> None:
        """Wait until libvirt has restored what it set, which it does on both sides however the
        migration ends. It does so after QEMU has said that it is over, and would overwrite
        what is set in between.

        :raise NotFound: the host does not have the VM.
        """
        await self._status(vm)
        deadline = asyncio.get_running_loop().time() + _RESETS_WITHIN_S
        while await self.migrating_ms(vm) is not None:
            if asyncio.get_running_loop().time() > deadline:
                return
            await asyncio.sleep(_LOOK_AGAIN_S)

    def events(self) -> AsyncGenerator[DriverEvent, None]:
        """What happens on the host from now on."""
        return self._link.events()


def _managed(destination: Driver) -> LibvirtDriver:
    """The other side's driver: libvirt's, and reachable for this one's daemon.

    :raise CommandRefused: it is not.
    """
    if not isinstance(destination, LibvirtDriver):
        raise CommandRefused(
            "a VM of a libvirt host can only migrate to another libvirt host",
            field="destination",
            code="destination_not_libvirt",
            remedy="choose a host that is driven through libvirt",
        )
    if not destination.peer_uri:
        raise CommandRefused(
            f"nothing says how other hosts reach {destination.uri}",
            field="destination",
            code="no_peer_uri",
            remedy="set the host's peer_uri, such as qemu+tls://NAME/system",
        )
    return destination


def _gone(name: str, vm: UUID) -> NotFound:
    return NotFound(f"{name} ({vm}) does not run on this host", field="vm")


def _why_no_monitor(status: VmStatus) -> str:
    if status.arriving:
        return "libvirt lets nobody ask the destination's QEMU before the migration has ended"
    return f"{status.name} does not run: it is {status.state.value}"
