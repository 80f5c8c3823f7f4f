"""The migrations that libvirt was asked for and that QEMU does not know of yet."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any
from uuid import UUID

from vmtune.hypervisor.libvirt.migrating.migration import LibvirtMigration
from vmtune.hypervisor.qemu.replies import reading_reply
from vmtune.model.migration.record import QemuStatus, Snapshot, read_query_migrate


class NotBegun:
    """While libvirt prepares the destination, QEMU still reports the migration before.

    Looks may overlap: each waits for QEMU and for libvirt, and another may see the beginning, or
    a later migration may be added, meanwhile.
    """

    def __init__(self) -> None:
        self._migrations: dict[UUID, LibvirtMigration] = {}

    @property
    def known(self) -> set[UUID]:
        """The VMs of which one is noted."""
        return set(self._migrations)

    def add(self, vm: UUID, migration: LibvirtMigration) -> None:
        """Note that libvirt was asked for *migration*."""
        self._migrations[vm] = migration

    def remove(self, vm: UUID) -> None:
        """Forget that of *vm*: libvirt was asked to cancel it."""
        self._migrations.pop(vm, None)

    def keep(self, present: Collection[UUID]) -> None:
        """Forget those that ended of VMs that are not *present*: nobody looks at them."""
        for vm, migration in list(self._migrations.items()):
            if migration.done and vm not in present:
                del self._migrations[vm]

    async def look(
        self,
        vm: UUID,
        query: Callable[[], Awaitable[Mapping[str, Any]]],  # any JSON: a QMP reply
        job_ms: Callable[[], Awaitable[int | None]],
        at_ms: int,
    ) -> Snapshot:
        """What QEMU says of *vm*'s migration; ``setup`` as long as libvirt has one, its own or
        another's, that QEMU does not report yet.

        :param query: asks QEMU's query-migrate.
        :param job_ms: asks libvirt for how long its job has been a migration, None if it is none.
        :param at_ms: the time that a sample is given.
        """
        own = self._migrations.get(vm)
        over = own is not None and own.done  # before QEMU is asked: it may end in between
        reply = await query()
        with reading_reply("its migration"):
            snapshot = read_query_migrate(reply, at_ms)
        if own is None:
            earlier = _may_be_an_earlier_one(snapshot) and await job_ms() is not None
            return Snapshot(QemuStatus.SETUP) if earlier else snapshot
        if own.is_not(read_query_migrate(reply), await job_ms()):
            if not over:
                return Snapshot(QemuStatus.SETUP)
            own.begun = False
        if self._migrations.get(vm) is own:
            del self._migrations[vm]
        return snapshot


def _may_be_an_earlier_one(snapshot: Snapshot) -> bool:
    """Whether a migration of which libvirt has the job is not the one that QEMU reports. One that
    brought the VM here is completed, without figures of its memory."""
    if snapshot.status is QemuStatus.COMPLETED:
        return snapshot.sample is None
    return not snapshot.status.running
