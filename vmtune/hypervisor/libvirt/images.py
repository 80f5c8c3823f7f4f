"""The images that a migration copies, on the hosts: looked for, made room for, and removed.

An image that the destination lacks is created with the source's format and size before the
migration is called. libvirt would do so by itself (qemuMigrationDstPrecreateStorage of
src/qemu/qemu_migration.c), but copies onto a file that somebody else has made meanwhile. Where no
active storage pool is the folder, there is one of vmtune's own during the migration. All calls
block.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePosixPath
from uuid import UUID
from xml.etree.ElementTree import Element, SubElement, tostring

from vmtune.errors import CommandRefused, NotFound
from vmtune.hypervisor.leftovers import ImagesLeft
from vmtune.hypervisor.libvirt.calls.connection import Connection
from vmtune.hypervisor.libvirt.calls.pool import Pool
from vmtune.hypervisor.libvirt.domain_xml import parse
from vmtune.hypervisor.libvirt.errors import LibvirtRefused
from vmtune.hypervisor.libvirt.host import LocalDaemon
from vmtune.hypervisor.libvirt.naming import find_user
from vmtune.hypervisor.libvirt.pools import PoolInactive, folder_pool, forgotten_pools
from vmtune.model.host.disks import Qcow2
from vmtune.model.migration.disks import CopiedDisk, fresh_qcow2_bytes

DEVICES = PurePosixPath("/dev")
_AT_ONCE = 4
_CREATED = ("raw", "qcow2")
"""Formats of images that vmtune creates."""


def make_ready(
    connection: Connection, vm: UUID, disks: Sequence[CopiedDisk], *, incremental: bool
) -> tuple[CopiedDisk, ...]:
    """Create the images that are to be copied to, a few at once, and say which these are.

    :raise CommandRefused: an image exists that must not, or lacks that must exist, or its folder
        cannot be used; nothing that was made stays, nor a pool of vmtune's.
    :raise ImagesLeft: likewise, and what was made could not be removed again.
    """
    made: list[CopiedDisk] = []
    try:
        pools = [_pool_of(connection, vm, disk, incremental=incremental) for disk in disks]
        to_make = [
            (disk, pool)
            for disk, pool in zip(disks, pools, strict=True)
            if pool is not None and not incremental and _is_known(disk)
        ]
        _create_all(to_make, made)
    except CommandRefused as refusal:
        left = _undone(connection, vm, [replace(disk, created=True) for disk in made])
        if left:
            raise ImagesLeft(refusal, left) from refusal
        raise
    return tuple(
        disk if pool is None or incremental else _to_be(disk)
        for disk, pool in zip(disks, pools, strict=True)
    )


def _to_be(disk: CopiedDisk) -> CopiedDisk:
    """*disk* whose image was created; or libvirt is about to create it, and nobody knows yet
    whether it does before somebody else."""
    known = _is_known(disk)
    return replace(disk, created=known, intended=not known)


def _undone(connection: Connection, vm: UUID, made: list[CopiedDisk]) -> tuple[CopiedDisk, ...]:
    """Remove what was just made; what stays of it."""
    gone: Collection[str] = ()
    with suppress(CommandRefused):
        gone = remove_images(connection, vm, made)
    return tuple(disk for disk in made if disk.path not in gone)


def _create_all(to_make: Sequence[tuple[CopiedDisk, Pool]], made: list[CopiedDisk]) -> None:
    """Create images; *made* gets those that were, also where another was not."""
    failed: list[BaseException] = []
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        making = [(disk, threads.submit(_create, pool, disk)) for disk, pool in to_make]
    for disk, each in making:
        error = each.exception()
        if error is None:
            made.append(disk)
        else:
            failed.append(error)
    if failed:
        # Where one is lost, it is not known what was made: that is not to be taken for a refusal.
        raise next((e for e in failed if not isinstance(e, CommandRefused)), failed[0])


def _pool_of(
    connection: Connection, vm: UUID, disk: CopiedDisk, *, incremental: bool
) -> Pool | None:
    """The pool that an image is in, where it may be created or copied onto; None for a device."""
    path = PurePosixPath(disk.path)
    if path.is_relative_to(DEVICES):
        return None  # libvirt creates none, and says so where it is missing
    try:
        pool = folder_pool(connection, vm, path.parent)
        names, _ = pool.look()
    except PoolInactive as refusal:
        raise CommandRefused(
            f"the destination cannot use the folder of {disk.path}: {refusal.message}",
            field="values.copy_storage",
            code=refusal.problems[0].code,
            remedy=refusal.problems[0].remedy,
        ) from refusal
    except LibvirtRefused as refusal:
        raise CommandRefused(
            f"the destination cannot use the folder of {disk.path}: {refusal.message}",
            field="values.copy_storage",
            code="copy_folder_missing",
            remedy="create it there, with the owner that it has on the source",
        ) from refusal
    if path.name in names and not incremental:
        raise _exists(disk)
    if path.name not in names and incremental:
        raise CommandRefused(
            f"the destination has no {disk.path}, and an incremental copy creates none",
            field="values.copy_storage_incremental",
            code="copy_base_missing",
            remedy="copy the backing files there and create the image on top of them",
        )
    return pool


def _exists(disk: CopiedDisk) -> CommandRefused:
    return CommandRefused(
        f"the destination has a file {disk.path} already, which the copy would overwrite",
        field="values.copy_storage",
        code="copy_target_exists",
        remedy="if nothing needs that file, remove it there; if it is the same one, unset this",
    )


def _is_known(disk: CopiedDisk) -> bool:
    """Whether enough is known of the image to create it; of others libvirt creates it."""
    return disk.format in _CREATED and disk.total_bytes > 0


def _create(pool: Pool, disk: CopiedDisk) -> None:
    """Create an image, which libvirt refuses where there is one by now: it would copy onto it."""
    root = Element("volume", type="file")
    SubElement(root, "name").text = PurePosixPath(disk.path).name
    SubElement(root, "capacity", unit="bytes").text = str(disk.total_bytes)
    SubElement(root, "allocation").text = "0"
    target = SubElement(root, "target")
    SubElement(target, "format", type=disk.format)
    if disk.format == "qcow2":
        _as_made(target, disk.qcow2 or Qcow2())
    try:
        pool.create(tostring(root, encoding="unicode"))
    except LibvirtRefused as refusal:
        if "already exists" in refusal.message or "exists already" in refusal.message:
            raise _exists(disk) from refusal
        raise CommandRefused(
            f"the destination could not create {disk.path}: {refusal.message}",
            field="values.copy_storage",
            code="copy_not_created",
            remedy="look at the room and the rights of its folder there",
        ) from refusal


def _as_made(target: Element, made: Qcow2) -> None:
    """The options of a qcow2 image (libvirt's formatstorage.html)."""
    SubElement(target, "compat").text = made.compat
    SubElement(target, "clusterSize", unit="bytes").text = str(made.cluster_bytes)
    features = {"lazy_refcounts": made.lazy_refcounts, "extended_l2": made.extended_l2}
    if any(features.values()):
        parent = SubElement(target, "features")
        for name, has in features.items():
            if has:
                SubElement(parent, name)


def remove_images(
    connection: Connection,
    vm: UUID,
    disks: Collection[CopiedDisk],
    daemon: LocalDaemon | None = None,
) -> tuple[str, ...]:
    """Remove images of a VM that does not run on this host; and forget the pools. Harmless when
    repeated.

    :param disks: one that was only intended is removed where nothing was written to it, and
        nothing else of the host names it.
    :param daemon: as :func:`~vmtune.hypervisor.libvirt.naming.find_user` has it.
    :return: the paths of those that are gone now, that were gone before included.
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
    with forgotten_pools(connection, vm):
        return tuple(disk.path for disk in disks if _removed(connection, vm, disk, daemon))


def _removed(
    connection: Connection, vm: UUID, disk: CopiedDisk, daemon: LocalDaemon | None
) -> bool:
    path = PurePosixPath(disk.path)
    if path.is_relative_to(DEVICES):
        return not disk.created
    try:
        pool = folder_pool(connection, vm, path.parent)
        names, _ = pool.look()
        if path.name not in names:
            return True
        if not disk.created:
            fresh = is_fresh(pool.volume_xml(path.name), disk)
            if not fresh or find_user(connection, vm, disk.path, daemon):
                return False
        pool.delete(path.name)
    except LibvirtRefused:
        return False
    return True


def is_fresh(volume: str, disk: CopiedDisk) -> bool:
    """Whether a file is as one that was created for *disk*, and nothing was written to it: then
    nothing is lost with it, whoever made it.

    :param volume: its XML by libvirt.
    """
    root = parse(volume)
    form = root.find("target/format")
    if not _is_known(disk) or form is None or form.get("type") != disk.format:
        return False
    if root.find("backingStore/path") is not None:
        return False
    if root.findtext("capacity") != str(disk.total_bytes):
        return False
    if disk.format == "raw":
        return root.findtext("allocation") == "0"
    length = root.findtext("physical") or ""
    return length.isdigit() and int(length) <= fresh_qcow2_bytes(disk.total_bytes, disk.qcow2)
