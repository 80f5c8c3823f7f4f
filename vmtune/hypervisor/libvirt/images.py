"""The images that a migration copies, on the hosts: looked for, made room for, and removed.

libvirt creates an image that the destination lacks by itself, with the source's format and size,
where an active storage pool is its folder (qemuMigrationDstPrecreateStorage of
src/qemu/qemu_migration.c). Where none is, there is one of vmtune's own during the migration. All
calls block.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import PurePosixPath
from uuid import UUID
from xml.etree.ElementTree import Element, SubElement, tostring

from vmtune.errors import CommandRefused, NotFound
from vmtune.hypervisor.libvirt.calls import Connection, Pool
from vmtune.hypervisor.libvirt.errors import LibvirtRefused
from vmtune.model.migration.disks import CopiedDisk

_DEVICES = PurePosixPath("/dev")


def make_ready(
    connection: Connection, vm: UUID, disks: Sequence[CopiedDisk], *, incremental: bool
) -> tuple[CopiedDisk, ...]:
    """Have a pool for the folder of each image, and say which images are going to be created.

    :raise CommandRefused: an image exists that must not, or lacks that must exist, or its folder
        cannot be used; no pool of vmtune's stays.
    """
    try:
        return tuple(_ready(connection, vm, disk, incremental=incremental) for disk in disks)
    except CommandRefused:
        forget_pools(connection, vm)
        raise


def _ready(connection: Connection, vm: UUID, disk: CopiedDisk, *, incremental: bool) -> CopiedDisk:
    path = PurePosixPath(disk.path)
    if path.is_relative_to(_DEVICES):
        return disk  # a device: libvirt creates none, and says so where it is missing
    try:
        names, _ = _pool(connection, vm, path.parent).look()
    except LibvirtRefused as refusal:
        raise CommandRefused(
            f"the destination cannot use the folder of {disk.path}: {refusal.message}",
            field="values.copy_storage",
            code="copy_folder_missing",
            remedy="create it there, with the owner that it has on the source",
        ) from refusal
    if path.name in names and not incremental:
        raise CommandRefused(
            f"the destination has a file {disk.path} already, which the copy would overwrite",
            field="values.copy_storage",
            code="copy_target_exists",
            remedy="if nothing needs that file, remove it there; if it is the same one, unset this",
        )
    if path.name not in names and incremental:
        raise CommandRefused(
            f"the destination has no {disk.path}, and an incremental copy creates none",
            field="values.copy_storage_incremental",
            code="copy_base_missing",
            remedy="copy the backing files there and create the image on top of them",
        )
    return replace(disk, created=not incremental)


def _pool(connection: Connection, vm: UUID, folder: PurePosixPath) -> Pool:
    pool = connection.pool_at(str(folder))
    if pool is not None:
        return pool
    number = len(connection.pools_named(_prefix(vm)))
    root = Element("pool", type="dir")
    SubElement(root, "name").text = f"{_prefix(vm)}{number}"
    SubElement(SubElement(root, "target"), "path").text = str(folder)
    return connection.create_pool(tostring(root, encoding="unicode"))


def _prefix(vm: UUID) -> str:
    return f"vmtune-{vm}-"


def forget_pools(connection: Connection, vm: UUID) -> None:
    """Let libvirt forget the pools of vmtune's for *vm*. Harmless when repeated."""
    for pool in connection.pools_named(_prefix(vm)):
        with suppress(LibvirtRefused):
            pool.deactivate()


def remove_images(connection: Connection, vm: UUID, paths: Collection[str]) -> tuple[str, ...]:
    """Remove images of a VM that does not run on this host; and forget the pools. Harmless when
    repeated.

    :return: those that are gone now, that were gone before included.
    :raise CommandRefused: the VM runs here; nothing is removed.
    """
    with suppress(NotFound):
        if connection.domain(vm).is_active():
            raise CommandRefused(
                "the VM runs on this host, with these images",
                field="vm",
                code="images_in_use",
                remedy="look at where the VM is",
            )
    with _forgotten(connection, vm):
        return tuple(path for path in paths if _removed(connection, vm, PurePosixPath(path)))


@contextmanager
def _forgotten(connection: Connection, vm: UUID) -> Iterator[None]:
    try:
        yield
    finally:
        forget_pools(connection, vm)


def _removed(connection: Connection, vm: UUID, path: PurePosixPath) -> bool:
    try:
        pool = _pool(connection, vm, path.parent)
        names, _ = pool.look()
        if path.name in names:
            pool.delete(path.name)
    except LibvirtRefused:
        return False
    return True
