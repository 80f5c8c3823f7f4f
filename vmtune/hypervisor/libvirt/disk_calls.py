"""The disks of VMs that libvirt manages: their images, copies and exports."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from vmtune.hypervisor.leftovers import PoolsLeft
from vmtune.hypervisor.libvirt import images, source_images
from vmtune.hypervisor.libvirt.calls.connection import Connection
from vmtune.hypervisor.libvirt.daemon import LibvirtDaemon
from vmtune.hypervisor.libvirt.disks import copy_jobs_of, measured_disks
from vmtune.hypervisor.libvirt.hardware import read_offer
from vmtune.hypervisor.libvirt.pools import forget_pools
from vmtune.hypervisor.qemu import block_export, copy_jobs, qcow2
from vmtune.hypervisor.qemu.block_export import BlockNode, Export
from vmtune.model.host.disks import Disk
from vmtune.model.host.facts import VmFacts
from vmtune.model.host.hardware import Offer
from vmtune.model.migration.disks import CopiedDisk, Mirrored


class LibvirtDisks(LibvirtDaemon):
    """The calls of a :class:`~vmtune.hypervisor.protocol.Driver` that concern disks."""

    async def offer(self, vm: VmFacts) -> Offer:
        """What this host offers, by the capabilities of its domains."""
        return await self._link.ask(lambda connection: read_offer(connection, vm, self._local()))

    async def disks(self, vm: UUID) -> Sequence[Disk]:
        """Its disks, by its XML, with the sizes that libvirt knows, and how QEMU says that qcow2
        images were made."""
        measured = await self._link.ask(
            lambda each: measured_disks(each, each.domain(vm), self._local()), waits=True
        )
        return await qcow2.with_options(self._monitor(vm), measured)

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
            gone: Collection[str] = ()
            if remove:
                gone = images.remove_images(connection, vm, remove, self._local())
            left = forget_pools(connection, vm)
            if left:
                raise PoolsLeft(left, gone)
            return gone

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
