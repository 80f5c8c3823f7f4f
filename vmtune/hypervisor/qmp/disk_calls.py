"""The disks of QEMUs without libvirt: their images, copies and exports."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from vmtune.errors import CommandRefused, NotFound
from vmtune.hypervisor.qemu import block_export, copy_jobs
from vmtune.hypervisor.qemu.block_export import BlockNode, Export
from vmtune.hypervisor.qmp import copies, source_images
from vmtune.hypervisor.qmp.disks import as_seen
from vmtune.hypervisor.qmp.host import QmpHost
from vmtune.hypervisor.qmp.pairs import disks_of
from vmtune.model.host.disks import Disk
from vmtune.model.host.facts import VmFacts
from vmtune.model.host.hardware import UNKNOWN_OFFER, Offer
from vmtune.model.migration.disks import CopiedDisk, Mirrored


class QmpDisks(QmpHost):
    """The calls of a :class:`~vmtune.hypervisor.protocol.Driver` that concern disks."""

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
