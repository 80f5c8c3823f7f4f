"""Migrations of QEMUs without libvirt, from the source's side and after their end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from uuid import UUID

import structlog

from vmtune.errors import CommandRefused, HostUnreachable, OutcomeUnknown, TooLate, VmtuneError
from vmtune.hypervisor.protocol import Driver, MigrateOrder, MigrationHandle
from vmtune.hypervisor.qemu import control as qemu_control
from vmtune.hypervisor.qemu.monitor import Monitor
from vmtune.hypervisor.qemu.replies import reading_reply
from vmtune.hypervisor.qmp import copies
from vmtune.hypervisor.qmp.arrival import refuse_at_switchover
from vmtune.hypervisor.qmp.host import QmpHost
from vmtune.hypervisor.qmp.migration import DirectMigration, Endpoint, as_cancelled, restore
from vmtune.hypervisor.qmp.pairs import pairs_of
from vmtune.hypervisor.qmp.recovery import recover
from vmtune.hypervisor.qmp.switchover import Switchover
from vmtune.model.host.network import direct_address
from vmtune.model.migration.postcopy_figures import PostcopyFigures, read_postcopy_figures
from vmtune.model.migration.prior import Prior
from vmtune.model.migration.record import (
    ABORT_WAITS,
    QemuStatus,
    Snapshot,
    Totals,
    read_query_migrate,
)

log = structlog.get_logger(__name__)

_HELD_UP_AFTER_S = 5.0


class QmpMigrations(QmpHost):
    """The calls of a :class:`~vmtune.hypervisor.protocol.Driver` that concern migrations."""

    async def start_migration(self, order: MigrateOrder, destination: Driver) -> MigrationHandle:
        """Begin a live migration to a QEMU of the same UUID that waits with ``-incoming
        defer`` in another folder.

        :meth:`reset_after_migration` of each side's driver restores what is set there.

        :raise CommandRefused: it could not be begun; both sides are as before, but for one
            thing: a QEMU that has begun to listen cannot be stopped from it.
        :raise OutcomeUnknown: it may have begun, so nothing was restored.
        """
        other = _direct(destination)
        if order.meanwhile is not None:
            await order.meanwhile()
        qemu = await self._folder.find(order.vm)
        if (await self.migration(order.vm)).status.running:
            raise qemu_control.already_migrating()  # before its settings are touched
        waiting = await other._folder.waiting_for(qemu)
        migration = DirectMigration(
            Endpoint("source", qemu),
            Endpoint("destination", waiting),
            order,
            self._hub.subscribe(),
            await pairs_of(qemu, waiting, order.values),
        )
        address = direct_address(order.values, other._migration_address)
        try:
            await migration.begin(address)
        finally:
            self._prior[qemu.uuid] = migration.source.prior
            other._prior[waiting.uuid] = migration.destination.prior
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
            self._take_over(vm)
        if snapshot.status is QemuStatus.SETUP:
            self._aborted.discard(vm)  # another one, whoever has begun it
        return as_cancelled(snapshot) if vm in self._aborted else snapshot

    def _own(self, vm: UUID) -> list[DirectMigration]:
        """The VM's migrations that this process has begun and that have not ended."""
        return [each for each in self._migrations if each.source.qemu.uuid == vm]

    def _take_over(self, vm: UUID) -> None:
        """Go on, in the background, with a migration that copies disks and that nobody follows any
        more: its guest stands until the copies are ended."""
        task = self._switching.get(vm)
        if task is None or task.done():
            self._switching[vm] = asyncio.create_task(self._switch_over(vm), name=f"switch {vm}")

    async def _switch_over(self, vm: UUID) -> None:
        try:
            monitor = (await self._folder.find(vm)).monitor
            switchover = Switchover(monitor)
            if not await copies.has_copies(monitor):
                return  # another's
            while not switchover.told and await _waits(monitor):
                await switchover.look()
        except VmtuneError as error:  # the next look begins anew
            log.info("not switched over", vm=str(vm), reason=error.message)

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
        other = _direct(destination)
        source, there = await self._folder.find(vm), await other._folder.find(vm)
        listens_on = address or other._migration_address
        await recover(source, there, listens_on, pause=gives_up)

    async def reset_after_migration(self, vm: UUID, prior: Prior | None = None) -> None:
        """Restore this side's values from before the migration. Where nothing says what they were,
        nothing was set, or by a release that did not note it: they stay. Harmless when repeated.

        :raise CommandRefused: a migration is still active.
        """
        qemu = await self._folder.find(vm)
        known = prior or self._prior.get(vm)
        if known is not None:
            await restore(qemu, known, self.tunables)


async def _waits(source: Monitor) -> bool:
    reply = await source.execute("query-migrate")
    with reading_reply("its migration"):
        return read_query_migrate(reply).status is QemuStatus.PRE_SWITCHOVER


def _direct(destination: Driver) -> QmpMigrations:
    """The other side's driver, of the same kind.

    :raise CommandRefused: it is libvirt's.
    """
    if not isinstance(destination, QmpMigrations):
        raise CommandRefused(
            "a QEMU that is driven by its monitor cannot migrate to libvirt",
            field="destination",
            code="destination_not_direct",
            remedy="choose a host whose address begins with qmp+unix://",
        )
    return destination
