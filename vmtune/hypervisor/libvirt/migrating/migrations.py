"""Migrations of VMs that libvirt manages, from the source's side and after their end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from uuid import UUID

from vmtune.errors import CommandRefused, NotFound, TooLate
from vmtune.hypervisor.asking import done_meanwhile
from vmtune.hypervisor.libvirt.calls.connection import Connection
from vmtune.hypervisor.libvirt.daemon import LibvirtDaemon
from vmtune.hypervisor.libvirt.domain_xml import manager_in
from vmtune.hypervisor.libvirt.domain_xml_edit import edit_destination_xml
from vmtune.hypervisor.libvirt.errors import OPERATION_INVALID, LibvirtRefused
from vmtune.hypervisor.libvirt.migrating import recovery
from vmtune.hypervisor.libvirt.migrating.migration import (
    LibvirtMigration,
    MigrationArguments,
    migration_arguments,
    migration_flags,
)
from vmtune.hypervisor.libvirt.monitor import NOT_RUNNING
from vmtune.hypervisor.libvirt.vm import read_totals
from vmtune.hypervisor.protocol import Driver, MigrateOrder, MigrationHandle
from vmtune.hypervisor.qemu import control as qemu_control
from vmtune.hypervisor.qemu.replies import reading_reply
from vmtune.model.host.facts import Postcopy
from vmtune.model.migration.postcopy import not_arrived, not_paused
from vmtune.model.migration.postcopy_figures import PostcopyFigures, read_postcopy_figures
from vmtune.model.migration.prior import Prior
from vmtune.model.migration.record import QemuStatus, Snapshot, Totals

_RESETS_WITHIN_S = 10.0
_LOOK_AGAIN_S = 0.05


class LibvirtMigrations(LibvirtDaemon):
    """The calls of a :class:`~vmtune.hypervisor.protocol.Driver` that concern migrations."""

    async def start_migration(self, order: MigrateOrder, destination: Driver) -> MigrationHandle:
        """Begin a peer-to-peer migration: the source's daemon runs it by itself.

        Values of the destination alone go into its QEMU's command line, which marks the guest
        as tainted (``custom-argv``); the persistent configuration does not get them.

        :raise CommandRefused: it could not be begun. The handle reports what libvirt refuses later.
        """
        other = _managed(destination)
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
            order.vm, other.peer_uri, prepared, lambda: self._open(self._uri), self._guard
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
        other = _managed(destination)
        status = (await self.migration(vm)).status
        connected = status is QemuStatus.POSTCOPY_ACTIVE and gives_up
        if status is not QemuStatus.POSTCOPY_PAUSED and not connected:
            raise not_paused(status)
        facts = [await driver.host_facts() for driver in (other, self)]
        recovery.check_version(facts[0].libvirt, facts[1].libvirt)

        def persistence(connection: Connection) -> bool:
            return connection.domain(vm).is_persistent()

        arguments = recovery.resume_arguments(await self._link.ask(persistence), address)

        async def resume() -> None:
            for driver in (other, self):
                await driver._pause_postcopy(vm)
            migration = LibvirtMigration()
            await migration.begin(
                vm, other.peer_uri, arguments, lambda: self._open(self._uri), self._guard
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


def _managed(destination: Driver) -> LibvirtMigrations:
    """The other side's driver: libvirt's, and reachable for this one's daemon.

    :raise CommandRefused: it is not.
    """
    if not isinstance(destination, LibvirtMigrations):
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
