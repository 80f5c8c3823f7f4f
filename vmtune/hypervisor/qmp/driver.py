"""QEMUs without libvirt: a folder of QMP sockets is a host, each socket a VM."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from vmtune.errors import (
    CommandRefused,
    HostUnreachable,
    NotFound,
    OutcomeUnknown,
    TooLate,
)
from vmtune.hypervisor.event_hub import EventHub
from vmtune.hypervisor.guard import OPEN, Guard
from vmtune.hypervisor.linux.dirty_ring import ask_ring_reset
from vmtune.hypervisor.linux.local_host import read_local_host
from vmtune.hypervisor.protocol import Driver, DriverEvent, EventKind, MigrateOrder, MigrationHandle
from vmtune.hypervisor.qemu import block_export, copy_jobs
from vmtune.hypervisor.qemu import control as qemu_control
from vmtune.hypervisor.qemu.block_export import BlockNode, Export
from vmtune.hypervisor.qemu.guest_agent import GuestAgent
from vmtune.hypervisor.qemu.replies import reading_reply
from vmtune.hypervisor.qemu.write import write
from vmtune.hypervisor.qmp import copies, source_images
from vmtune.hypervisor.qmp.agent_socket import SocketChannel, find_socket
from vmtune.hypervisor.qmp.arrival import refuse_at_switchover
from vmtune.hypervisor.qmp.disks import as_seen
from vmtune.hypervisor.qmp.folder import QemuFolder, sockets_in, state_of
from vmtune.hypervisor.qmp.migration import DirectMigration, Endpoint, as_cancelled, restore
from vmtune.hypervisor.qmp.monitor import QmpMonitor
from vmtune.hypervisor.qmp.pairs import disks_of, pairs_of
from vmtune.hypervisor.qmp.qemu import Link, OnEvent, Qemu
from vmtune.hypervisor.qmp.recovery import recover
from vmtune.model.host.dirty_rates import DirtyPoint, DirtyRates
from vmtune.model.host.disks import Disk
from vmtune.model.host.facts import Connection, HostFacts, Reading, VmFacts, VmState, VmSummary
from vmtune.model.host.hardware import UNKNOWN_OFFER, Offer
from vmtune.model.host.network import direct_address
from vmtune.model.host.ring_reset import resets_end_early
from vmtune.model.migration.disks import CopiedDisk, Mirrored
from vmtune.model.migration.postcopy_figures import PostcopyFigures, read_postcopy_figures
from vmtune.model.migration.prior import Prior
from vmtune.model.migration.record import (
    ABORT_WAITS,
    QemuStatus,
    Snapshot,
    Totals,
    read_query_migrate,
)
from vmtune.model.plan.changes import Change
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.registry import TunableRegistry

_HELD_UP_AFTER_S = 5.0


class QmpDriver:
    """A :class:`~vmtune.hypervisor.protocol.Driver` for QEMUs whose ``-qmp unix:`` sockets, named
    ``*.sock`` or ``*.qmp``, are in one folder. They have to run on this machine.

    A QEMU without ``-uuid`` is known by a UUID made from its ``-name``, or else from its
    socket's path. Events come from QEMUs that were listed or queried.

    :param uri: ``qmp+unix:///FOLDER``.
    :param migration_address: where its QEMUs listen for a migration; empty for a unix
        socket in the folder, which a QEMU on the same machine reaches.
    :param more_commands: see :func:`vmtune.hypervisor.qemu.allowlist.check`.
    :param guard: lets through what changes something.
    :param tunables: what it reads and sets, packs included.
    """

    def __init__(
        self,
        uri: str,
        migration_address: str = "127.0.0.1",
        greeting_timeout_s: float = 2.0,
        more_commands: Collection[str] = (),
        guard: Guard = OPEN,
        tunables: TunableRegistry = BUILT_IN,
    ) -> None:
        self._uri = uri
        self.tunables = tunables
        self._guard = guard
        self._folder = QemuFolder(
            Path(urlsplit(uri).path),
            self._sockets,
            self._link,
            self._heard,
            self._lost,
            self._gone,
            lambda: self.tunables,
        )
        self._migration_address = migration_address
        self._greeting_timeout_s = greeting_timeout_s
        self._more_commands = more_commands
        self._hub = EventHub()
        self._prior: dict[UUID, Prior] = {}
        self._migrations: set[DirectMigration] = set()
        self._switching: set[UUID] = set()
        self._aborted: set[UUID] = set()  # whose migration QEMU was asked to cancel

    @property
    def uri(self) -> str:
        """The folder, as given."""
        return self._uri

    def daemon_lost_since(self, moment: float) -> bool:
        """There is none."""
        return False

    async def close(self) -> None:
        """Close all monitors. Migrations continue; callers that wait for one get an unknown end."""
        self._hub.close()
        await asyncio.gather(*(migration.let_go() for migration in tuple(self._migrations)))
        await self._folder.close()

    async def host_facts(self) -> HostFacts:
        """This machine. Its QEMUs may be of several versions, so it has none of its own."""
        self._sockets()
        host, reset = await asyncio.to_thread(lambda: (read_local_host(), ask_ring_reset()))
        return HostFacts(
            connection=Connection.QMP,
            hostname=host.hostname,
            uuid=host.machine_id,
            qemu=None,
            libvirt=None,
            migration_address=self._migration_address,
            kvm=host.kvm,
            cpus=host.cpus,
            memory_bytes=host.memory_bytes,
            memory_available_bytes=host.memory_available_bytes,
            kernel=host.kernel,
            sysctls=host.sysctls,
            can_lock_beyond_limits=host.can_lock_beyond_limits,
            ring_reset_ends_early=resets_end_early(reset.ends_early, host.kernel),
            cpu_idle_s=host.cpu_idle_s,
        )

    async def list_vms(self) -> Sequence[VmSummary]:
        """The QEMUs that answer. One whose monitor is taken is listed by its command line,
        in the state ``other``, where it can be seen; so is one that takes no command just now.

        :raise VmtuneError: none could be asked, for the first one's reason.
        """
        problems = await self._folder.scan()
        summaries = await asyncio.gather(*(self._summary(q) for q in self._folder.qemus))
        found: dict[UUID, VmSummary] = {}
        for summary in summaries:
            # One QEMU may have two sockets here, of which one is taken.
            if summary is not None and (
                summary.uuid not in found or found[summary.uuid].state is VmState.OTHER
            ):
                found[summary.uuid] = summary
        if not found and problems:
            raise next(iter(problems.values()))
        return sorted(found.values(), key=lambda summary: (summary.name, summary.uuid))

    async def _summary(self, qemu: Qemu) -> VmSummary | None:
        if not qemu.known:
            return None
        state = VmState.OTHER
        if qemu.monitor.connected:
            try:
                state = await state_of(qemu)
            except (OutcomeUnknown, HostUnreachable):
                if self._folder.connected(qemu.uuid) is None:
                    return None  # it has just ended
        return VmSummary(qemu.uuid, qemu.name, state)

    async def vm_facts(self, vm: UUID) -> VmFacts:
        """Probe a VM and its QEMU."""
        return await self._folder.ask(vm, lambda qemu: qemu.probe.facts(qemu.uuid, qemu.name))

    async def read(self, vm: UUID, tunables: Collection[str]) -> dict[str, Reading]:
        """What the named tunables are set to right now."""
        return await self._folder.ask(vm, lambda qemu: qemu.probe.read(tunables))

    async def write(self, vm: UUID, changes: Sequence[Change]) -> None:
        """Set values in the order given; see :func:`vmtune.hypervisor.qemu.write.write`."""
        await self._write(vm, changes, lambda: None)

    async def _write(self, vm: UUID, changes: Sequence[Change], sent: Callable[[], None]) -> None:
        qemu = await self._folder.find(vm)
        try:
            await write(qemu.monitor, changes, self.tunables, qemu.probe.known_objects, sent)
        except HostUnreachable as error:
            raise OutcomeUnknown(
                error.message, remedy="look again what of it took effect"
            ) from error

    async def write_and_read(
        self, vm: UUID, changes: Sequence[Change], tunables: Collection[str]
    ) -> dict[str, Reading]:
        """The questions are on their way before the changes are answered: QEMU executes what a
        monitor sends it one after the other."""
        sent = asyncio.Event()

        async def read() -> dict[str, Reading]:
            await sent.wait()
            return await self.read(vm, tunables)

        reading = asyncio.create_task(read(), name=f"read back {vm}")
        try:
            await self._write(vm, changes, sent.set)
            sent.set()  # where it was not known before
            return await reading
        finally:
            reading.cancel()
            await asyncio.wait([reading])

    async def write_boot(self, vm: UUID, changes: Sequence[Change]) -> None:
        """There is no persistent configuration here.

        :raise CommandRefused: always, unless nothing is to be set.
        """
        if changes:
            raise CommandRefused(
                "this QEMU was not started by libvirt, so there is no configuration to change",
                field=f"values.{changes[0].tunable}",
                code="boot_needs_owner",
                remedy="start QEMU with the option",
            )

    async def start_migration(self, order: MigrateOrder, destination: Driver) -> MigrationHandle:
        """Begin a live migration to a QEMU of the same UUID that waits with ``-incoming
        defer`` in another folder.

        :meth:`reset_after_migration` of each side's driver restores what is set there.

        :raise CommandRefused: it could not be begun; both sides are as before, but for one
            thing: a QEMU that has begun to listen cannot be stopped from it.
        :raise OutcomeUnknown: it may have begun, so nothing was restored.
        """
        destination = _direct(destination)
        if order.meanwhile is not None:
            await order.meanwhile()
        qemu = await self._folder.find(order.vm)
        if (await self.migration(order.vm)).status.running:
            raise qemu_control.already_migrating()  # before its settings are touched
        waiting = await destination._folder.waiting_for(qemu)
        migration = DirectMigration(
            Endpoint("source", qemu),
            Endpoint("destination", waiting),
            order,
            self._hub.subscribe(),
            await pairs_of(qemu, waiting, order.values),
        )
        address = direct_address(order.values, destination._migration_address)
        try:
            await migration.begin(address)
        finally:
            self._prior[qemu.uuid] = migration.source.prior
            destination._prior[waiting.uuid] = migration.destination.prior
        self._migrations.add(migration)
        self._aborted.discard(order.vm)
        migration.when_done(lambda: self._migrations.discard(migration))
        return migration

    async def migration(self, vm: UUID, at_ms: int = 0) -> Snapshot:
        """The VM's outgoing migration. QEMU keeps the last one's figures until it ends."""
        if any(each.copying and not each.done for each in self._own(vm)):
            return Snapshot(QemuStatus.SETUP)
        reply = await self._folder.ask(vm, lambda qemu: qemu.monitor.execute("query-migrate"))
        with reading_reply("its migration"):
            snapshot = read_query_migrate(reply, at_ms)
        if snapshot.status is QemuStatus.PRE_SWITCHOVER and not self._own(vm):
            await self._switch_over(vm)
        if snapshot.status is QemuStatus.SETUP:
            self._aborted.discard(vm)  # another one, whoever has begun it
        return as_cancelled(snapshot) if vm in self._aborted else snapshot

    def _own(self, vm: UUID) -> list[DirectMigration]:
        """The VM's migrations that this process has begun and that have not ended."""
        return [each for each in self._migrations if each.source.qemu.uuid == vm]

    async def _switch_over(self, vm: UUID) -> None:
        """Go on with a migration that copies disks and whose starter has died since: its guest
        stands until the copies are ended."""
        if vm in self._switching:
            return
        self._switching.add(vm)
        try:
            monitor = (await self._folder.find(vm)).monitor
            if await copies.has_copies(monitor):
                await copies.drain(monitor)
                await monitor.execute("migrate-continue", {"state": "pre-switchover"})
        except CommandRefused:
            qemu = await self._folder.find(vm)
            await qemu.monitor.execute("migrate_cancel")
        finally:
            self._switching.discard(vm)

    async def outgoing(self) -> Sequence[UUID]:
        """Of the QEMUs that are connected, those that migrate away: the others' monitors may be in
        use. A destination reports no RAM."""
        leaving: list[UUID] = []
        for qemu in self._folder.qemus:
            if qemu.known and qemu.monitor.connected:
                with contextlib.suppress(OutcomeUnknown, HostUnreachable):
                    reply = await qemu.monitor.execute("query-migrate")
                    with reading_reply("its migration"):
                        snapshot = read_query_migrate(reply)
                    if snapshot.status.running and snapshot.sample is not None:
                        leaving.append(qemu.uuid)
        return leaving

    async def managed_by(self, vm: UUID) -> str:
        """Nobody: QEMU does not know."""
        return ""

    async def migrating_ms(self, vm: UUID) -> int | None:
        """For how long it has migrated by QEMU's clock, which does not say so during setup."""
        snapshot = await self.migration(vm)
        return snapshot.elapsed_ms if snapshot.status.running else None

    async def completed(self, vm: UUID) -> Totals | None:
        """None in general: QEMU gives the figures on the source, by :meth:`migration`."""
        return (await self.migration(vm)).totals

    async def postcopy_figures(self, vm: UUID) -> PostcopyFigures | None:
        """What the post-copy that brought the VM here cost its guest."""
        reply = await self._folder.ask(vm, lambda qemu: qemu.monitor.execute("query-migrate"))
        with reading_reply("its migration"):
            return read_postcopy_figures(reply)

    async def abort_migration(self, vm: UUID) -> None:
        """Ask QEMU to cancel.

        :raise TooLate: in post-copy, or ended already; or in a switchover of which the destination
            cannot be told that it is aborted.
        :raise OutcomeUnknown: code ``abort_waits``: QEMU takes no command now, and is not asked.
        """
        status = await self._status_now(vm)
        if status.in_postcopy:
            raise TooLate(
                "the guest runs on the destination already",
                remedy="wait: post-copy can no longer be aborted without losing the guest",
            )
        if status is QemuStatus.FAILING:
            raise TooLate("the migration has failed, and QEMU is cleaning up", remedy="wait")
        if not status.running:
            ended = "there is none" if status is QemuStatus.NONE else f"it is {status.value}"
            raise TooLate(f"no migration is active: {ended}")
        qemu = await self._folder.find(vm)
        mine = [each for each in self._migrations if each.source.qemu is qemu]
        if any(each.copying for each in mine):
            for migration in mine:
                migration.aborted = True  # QEMU does not migrate yet
            return
        for migration in mine:
            await migration.arrival.hold()
            migration.aborted = True
        if not mine:
            await refuse_at_switchover(qemu)
        self._aborted.add(vm)
        await qemu.monitor.execute("migrate_cancel")

    async def _status_now(self, vm: UUID) -> QemuStatus:
        """The migration's status, from a QEMU that answers within a few seconds.

        A source holds its lock while it sends the last part, with the guest stopped
        (``migration_completion`` in QEMU's migration/migration.c). Where the link is down, that
        lasts until TCP gives up. Nothing may end it: QMP's ``yank`` would, but had the guest run
        on both hosts in a trial with QEMU 10.0.2 and multifd.
        """
        try:
            async with asyncio.timeout(_HELD_UP_AFTER_S):
                return (await self.migration(vm)).status
        except TimeoutError as error:
            raise OutcomeUnknown(
                "the abort has not reached the source's QEMU, which takes no command: if the link "
                "is down at the switchover, the guest stands still until the link is back or TCP "
                "gives up, some 15 minutes",
                field="migration",
                code=ABORT_WAITS,
                remedy="restore the link between the hosts; end neither QEMU",
            ) from error

    async def start_postcopy(self, vm: UUID) -> None:
        """Switch to post-copy.

        :raise TooLate: no migration is active.
        """
        status = (await self.migration(vm)).status
        if not status.running:
            raise TooLate(f"no migration is active: it is {status.value}")
        qemu = await self._folder.find(vm)
        await qemu.monitor.execute("migrate-start-postcopy")

    async def recover_postcopy(
        self, vm: UUID, destination: Driver, address: str = "", *, gives_up: bool = False
    ) -> None:
        """Give a migration that is paused in post-copy a new connection, and return once the two
        QEMUs have resumed."""
        destination = _direct(destination)
        source, there = await self._folder.find(vm), await destination._folder.find(vm)
        listens_on = address or destination._migration_address
        await recover(source, there, listens_on, pause=gives_up)

    async def vm_state(self, vm: UUID) -> VmState:
        """What the VM is doing."""
        return await self._folder.ask(vm, state_of)

    async def pause(self, vm: UUID) -> None:
        """Stop the guest. It stays so when it has arrived: QEMU hands its state on."""
        qemu = await self._folder.find(vm)
        await qemu.monitor.execute("stop")

    async def resume(self, vm: UUID) -> None:
        """Resume the guest."""
        qemu = await self._folder.find(vm)
        await qemu.monitor.execute("cont")

    async def measure_dirty_rates(self, vm: UUID, over_ms: int) -> None:
        """Begin a measurement that ends with emptied rings."""
        qemu = await self._folder.find(vm)
        await qemu_control.measure_dirty_rates(qemu.monitor, over_ms)

    async def dirty_rates(self, vm: UUID) -> DirtyRates:
        """How far the last measurement is."""
        return await self._folder.ask(vm, lambda qemu: qemu_control.dirty_rates(qemu.monitor))

    async def sample_dirtied(self, vm: UUID, over_ms: int, pages_per_gib: int) -> DirtyPoint:
        """What the guest changes in a time."""
        return await self._folder.ask(
            vm, lambda qemu: qemu_control.sample_dirtied(qemu.monitor, over_ms, pages_per_gib)
        )

    async def resident_bytes(self, vm: UUID) -> int | None:
        """As /proc says, where it can be seen."""
        qemu = await self._folder.find(vm)
        process = qemu.process()
        sizes = await asyncio.to_thread(process.memory_bytes) if process is not None else None
        return None if sizes is None else sizes[1]

    async def offer(self, vm: VmFacts) -> Offer:
        """The disks of the QEMU that waits, which has been started with all that it needs."""
        with contextlib.suppress(NotFound, CommandRefused):
            disks = {disk.target: as_seen(disk) for disk in await self.disks(vm.uuid)}
            return replace(UNKNOWN_OFFER, disks=disks)
        return UNKNOWN_OFFER

    async def disks(self, vm: UUID) -> Sequence[Disk]:
        """Its disks, as QEMU says; their targets are the names of their devices."""
        return tuple((await self._folder.ask(vm, disks_of)).values())

    async def prepare_images(
        self, vm: UUID, disks: Sequence[CopiedDisk], *, incremental: bool
    ) -> Sequence[CopiedDisk]:
        """The QEMU that waits has opened its images already: none is created."""
        sizes = {disk.target: disk.capacity_bytes for disk in await self.disks(vm)}
        for disk in disks:
            if sizes.get(disk.target) != disk.total_bytes:
                raise CommandRefused(
                    f"the QEMU that waits has a disk {disk.target} of {sizes.get(disk.target)} "
                    f"bytes, and the source's has {disk.total_bytes}",
                    field="values.copy_storage",
                    code="copy_other_size",
                    remedy="start it with an image of the same size",
                )
        return disks

    async def release_images(
        self, vm: UUID, remove: Collection[CopiedDisk] = ()
    ) -> Collection[str]:
        """End the copies of the source's QEMU, and remove the exports of the one that waits: it was
        started with its images, which stay."""
        with contextlib.suppress(NotFound):
            qemu = await self._folder.find(vm)
            await copies.drop(qemu.monitor)
            await copies.unexport(qemu.monitor)
        return ()

    async def remove_source_images(
        self, vm: UUID, disks: Collection[CopiedDisk]
    ) -> Mapping[str, str]:
        """As :func:`~vmtune.hypervisor.qmp.source_images.remove`; nothing where a QEMU of the host
        cannot be asked."""
        problems = await self._folder.scan()
        if problems:
            path, problem = next(iter(problems.items()))
            why = f"the QEMU of {path} cannot be asked: {problem.message}"
            return {disk.target: why for disk in disks}
        source = self._folder.connected(vm)
        others = [qemu for qemu in self._folder.qemus if qemu is not source]
        return await source_images.remove(source, others, disks, self._guard)

    async def mirrored(self, vm: UUID, targets: Collection[str]) -> Mapping[str, Mirrored]:
        """The disks' jobs that copy."""
        return await self._folder.ask(vm, lambda qemu: copies.progress(qemu.monitor, targets))

    async def help_copies(
        self,
        vm: UUID,
        targets: Collection[str],
        bytes_per_s: int | None = None,
        *,
        synchronous: bool = False,
    ) -> None:
        """Change vmtune's own jobs."""
        jobs = [copies.job_of(target) for target in targets]
        monitor = (await self._folder.find(vm)).monitor
        await copy_jobs.help_copies(monitor, jobs, bytes_per_s, synchronous=synchronous)

    async def objects(self, vm: UUID) -> Collection[str]:
        """The ids of its QEMU's objects."""
        return await self._folder.ask(vm, lambda qemu: qemu_control.objects(qemu.monitor))

    async def takes_postcopy_with_multifd(self, vm: UUID) -> bool | None:
        """Whether its QEMU takes post-copy together with multifd."""
        return await self._folder.ask(
            vm, lambda qemu: qemu_control.takes_postcopy_with_multifd(qemu.monitor)
        )

    async def block_nodes(self, vm: UUID) -> Sequence[BlockNode]:
        """The block nodes that have a name."""
        return await self._folder.ask(vm, lambda qemu: block_export.list_nodes(qemu.monitor))

    async def export_node(self, vm: UUID, export: Export) -> None:
        """Export a block node by NBD."""
        qemu = await self._folder.find(vm)
        await block_export.add_export(qemu.monitor, export)

    async def remove_export(self, vm: UUID) -> None:
        """Remove it again."""
        qemu = await self._folder.find(vm)
        await block_export.remove_export(qemu.monitor, scratch=True)

    async def guest_agent(self, vm: UUID) -> GuestAgent:
        """The agent in its guest, by the socket of its channel."""
        socket = await self._folder.ask(vm, lambda qemu: find_socket(qemu.monitor))
        return GuestAgent(SocketChannel(socket, self._guard))

    async def reset_after_migration(self, vm: UUID, prior: Prior | None = None) -> None:
        """Restore this side's values from before the migration. Where nothing says what they were,
        nothing was set, or by a release that did not note it: they stay. Harmless when repeated.

        :raise CommandRefused: a migration is still active.
        """
        qemu = await self._folder.find(vm)
        known = prior or self._prior.get(vm)
        if known is not None:
            await restore(qemu, known, self.tunables)

    def events(self) -> AsyncGenerator[DriverEvent, None]:
        """What happens from now on."""
        return self._hub.events()

    def _sockets(self) -> list[Path]:
        return sockets_in(self._folder.path)

    def _link(self, path: Path, on_event: OnEvent, on_lost: Callable[[], None]) -> Link:
        return QmpMonitor(
            path,
            on_event,
            on_lost,
            self._greeting_timeout_s,
            more_commands=self._more_commands,
            guard=self._guard,
        )

    def _gone(self, qemu: Qemu) -> None:
        self._aborted.discard(qemu.uuid)
        self._prior.pop(qemu.uuid, None)

    def _heard(self, qemu: Qemu, name: str, data: Mapping[str, Any]) -> None:  # any JSON
        translated = _EVENTS.get(name)
        if translated is not None and qemu.known:
            kind, detail = translated
            self._hub.publish(DriverEvent(kind, qemu.uuid, detail(data)))

    def _lost(self, qemu: Qemu) -> None:
        if qemu.known:
            text = f"the connection to {qemu.path} was lost"
            self._hub.publish(DriverEvent(EventKind.CONNECTION_LOST, qemu.uuid, text))


def _direct(destination: Driver) -> QmpDriver:
    """The other side's driver, of the same kind.

    :raise CommandRefused: it is libvirt's.
    """
    if not isinstance(destination, QmpDriver):
        raise CommandRefused(
            "a QEMU that is driven by its monitor cannot migrate to libvirt",
            field="destination",
            code="destination_not_direct",
            remedy="choose a host whose address begins with qmp+unix://",
        )
    return destination


_EVENTS: Mapping[str, tuple[EventKind, Callable[[Mapping[str, Any]], str]]] = {
    "MIGRATION": (EventKind.MIGRATION_STATUS, lambda data: str(data["status"])),
    "MIGRATION_PASS": (EventKind.MIGRATION_ITERATION, lambda data: str(data["pass"])),
    "STOP": (EventKind.VM_STATE, lambda data: VmState.PAUSED.value),
    "RESUME": (EventKind.VM_STATE, lambda data: VmState.RUNNING.value),
    "SHUTDOWN": (EventKind.VM_STATE, lambda data: VmState.SHUT_OFF.value),
}
