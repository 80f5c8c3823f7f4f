"""The preflight of a VM's disks: which the destination has, and which are copied there. Pure.

libvirt starts the destination's QEMU with the same paths. A file that is there and is another one
would be taken for the disk; a copy onto the same file would destroy it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vmtune.model.findings.table import Finding
from vmtune.model.host.disks import DISK_NOT_SEEN, Disk, DiskAtHost, DiskKind
from vmtune.model.plan.situation import Situation
from vmtune.model.preflight.copied_disks import (
    TARGET_ZERO,
    check_targets,
    copied_disks,
    copying,
    seen_there,
)
from vmtune.model.preflight.direct_disks import check_direct_disks
from vmtune.model.preflight.disk_room import check_room
from vmtune.model.tunables.rows.storage import COPIES, COPY_DISKS, REMOVE, SOURCE_IMAGES
from vmtune.model.tunables.texts import targets

_SEEN_FORMATS = ("raw", "qcow2")
"""Formats that are told apart at the destination."""


def check_disks(situation: Situation) -> Iterator[Finding]:
    """What of the VM's disks stands against a migration."""
    if situation.destination is None:
        return
    yield from _after_it(situation)
    if not situation.libvirt:
        yield from check_direct_disks(situation)
        return
    needs = situation.vm.hardware
    if needs is None:
        return
    yield from check_targets(situation)
    there = seen_there(situation)
    copied = copied_disks(situation)
    if not copied:
        for name in COPIES:
            if situation.on(name):
                yield Finding("nothing_to_copy", name)
    for disk in copied:
        yield from _copied(disk, there.get(disk.target, DISK_NOT_SEEN), situation)
    yield from _one_image(copied, situation)
    yield from _not_zero(copied, situation)
    yield from check_room(situation)
    yield from _shared([disk for disk in needs.disks if disk not in copied], there)


def _after_it(situation: Situation) -> Iterator[Finding]:
    paths = [disk.path for disk in copied_disks(situation) if disk.path]
    if situation.values.get(SOURCE_IMAGES) == REMOVE and paths:
        yield Finding("source_images_go", SOURCE_IMAGES, {"paths": ", ".join(paths)})


def _copied(disk: Disk, at: DiskAtHost, situation: Situation) -> Iterator[Finding]:
    """A disk that is copied needs a file or device of its own there."""
    tunable = copying(situation)
    evidence: dict[str, str | int] = {"target": disk.target, "path": disk.path}
    if disk.volume is not None:
        named: dict[str, str | int] = {"pool": disk.volume.pool, "volume": disk.volume.name}
        yield Finding("volume_not_copied", tunable, evidence | named)
    elif not disk.path:
        yield Finding("disk_cannot_be_copied", tunable, evidence)
    elif disk.read_only:
        yield Finding("copy_of_read_only", tunable, evidence)
    elif at.is_same(disk):
        yield Finding("copy_onto_itself", tunable, evidence)
    elif at.used_by:
        yield Finding("copy_target_in_use", tunable, evidence | {"vm": at.used_by})
    elif at.present is None:
        # Of a file the destination's libvirt creates none where there is one; all else it opens.
        creates = tunable == "copy_storage" and not disk.is_device
        if creates:
            yield Finding("copy_target_not_seen", tunable, evidence)
            yield from _made(disk, tunable, evidence)
        else:
            yield Finding("copy_may_overwrite", tunable, evidence)
    elif at.present:
        yield from _onto(disk, at, situation, evidence)
    else:
        yield from _created(disk, at, situation, evidence)


def _onto(
    disk: Disk, at: DiskAtHost, situation: Situation, evidence: dict[str, str | int]
) -> Iterator[Finding]:
    """A copy onto what is there."""
    tunable = copying(situation)
    incremental = tunable == "copy_storage_incremental"
    device = disk.is_device
    if not incremental and not device:
        yield Finding("copy_target_exists", tunable, evidence)
        return
    if at.is_same(disk) is None:
        yield Finding("copy_may_be_onto_itself", tunable, evidence)
    elif device and not incremental:
        named = situation.values.get(COPY_DISKS)
        chosen = isinstance(named, str) and disk.target in targets(named)
        yield Finding("copy_overwrites" if chosen else "copy_device_exists", tunable, evidence)
    if at.writable is False:
        yield Finding("copy_target_read_only", tunable, evidence)
    if at.reachable is False:
        yield Finding("copy_folder_closed", tunable, evidence)
    known = disk.format in _SEEN_FORMATS and at.format
    if incremental and known and at.format != disk.format:
        formats: dict[str, str | int] = {"format": disk.format, "there": at.format}
        yield Finding("copy_target_format", tunable, evidence | formats)
    elif _is_smaller(at.capacity_bytes, disk.capacity_bytes):
        sizes: dict[str, str | int] = {
            "needed_bytes": disk.capacity_bytes or 0,
            "capacity_bytes": at.capacity_bytes or 0,
        }
        yield Finding("copy_target_too_small", tunable, evidence | sizes)
    if incremental and at.backing_missing:
        missing = ", ".join(at.backing_missing)
        yield Finding("copy_backing_missing", tunable, evidence | {"missing": missing})


def _is_smaller(there: int | None, here: int | None) -> bool:
    return there is not None and here is not None and there < here


def _created(
    disk: Disk, at: DiskAtHost, situation: Situation, evidence: dict[str, str | int]
) -> Iterator[Finding]:
    """An image that the destination lacks."""
    tunable = copying(situation)
    if tunable == "copy_storage_incremental":
        yield Finding("copy_base_missing", tunable, evidence)
    elif disk.is_device:
        yield Finding("copy_device_missing", tunable, evidence)
    elif not at.folder:
        yield Finding("copy_folder_missing", tunable, evidence)
    else:
        if at.writable is False:
            yield Finding("copy_target_read_only", tunable, evidence)
        if at.reachable is False:
            yield Finding("copy_folder_closed", tunable, evidence)
        yield from _made(disk, tunable, evidence)


def _made(disk: Disk, tunable: str, evidence: dict[str, str | int]) -> Iterator[Finding]:
    """How an image that is created differs from the source's."""
    if disk.encrypted:
        yield Finding("copy_not_encrypted", tunable, evidence)
    if disk.backing:
        yield Finding("copy_flattens", tunable, evidence | {"count": len(disk.backing)})
    if disk.qcow2 is not None and disk.qcow2.lost:
        options: dict[str, str | int] = {"options": ", ".join(disk.qcow2.lost)}
        yield Finding("copy_loses_options", tunable, evidence | options)


def _not_zero(disks: tuple[Disk, ...], situation: Situation) -> Iterator[Finding]:
    """Only an image that is created is all zeroes, for certain."""
    named = situation.values.get(TARGET_ZERO)
    if not isinstance(named, str):
        return
    incremental = situation.on("copy_storage_incremental")
    for disk in disks:
        created = disk.kind is DiskKind.FILE and not (incremental or disk.is_device)
        if disk.target in targets(named) and not created:
            evidence: dict[str, str | int] = {"target": disk.target, "path": disk.path}
            yield Finding("copy_target_not_zero", TARGET_ZERO, evidence)


def _one_image(disks: tuple[Disk, ...], situation: Situation) -> Iterator[Finding]:
    """Two disks of the VM that write one image."""
    by_path: dict[str, list[str]] = {}
    for disk in disks:
        if disk.path and not disk.read_only:
            by_path.setdefault(disk.path, []).append(disk.target)
    for path, names in by_path.items():
        if len(names) > 1:
            evidence: dict[str, str | int] = {"targets": ", ".join(names), "path": path}
            yield Finding("copy_same_image", copying(situation), evidence)


def _shared(disks: list[Disk], there: Mapping[str, DiskAtHost]) -> Iterator[Finding]:
    """A disk that is not copied has to be the same file on both hosts."""
    found: dict[str, list[str]] = {}
    for disk in disks:
        if not disk.where or disk.kind is DiskKind.NETWORK:
            continue
        at = there.get(disk.target, DISK_NOT_SEEN)
        path = at.path or disk.where
        for code in _of_shared(disk, at):
            found.setdefault(code, []).append(path)
        if at.in_use and not (disk.read_only or disk.shareable):
            evidence: dict[str, str | int] = {
                "target": disk.target, "path": path, "vm": at.used_by
            }  # fmt: skip
            yield Finding("disk_in_use", evidence=evidence)
    for code, paths in found.items():
        yield Finding(code, evidence={"paths": ", ".join(paths)})


def _of_shared(disk: Disk, at: DiskAtHost) -> Iterator[str]:
    same = at.is_same(disk)
    # libvirt itself refuses files on file systems that hosts do not share, and no device
    # (qemuMigrationSrcIsSafe of src/qemu/qemu_migration.c).
    unproven = "disk_may_differ" if disk.is_device and not disk.read_only else "disks_not_seen"
    if at.present is None:
        yield "disks_not_seen" if same else unproven
        return
    if not at.present:
        yield "image_missing" if disk.read_only else "disk_missing"
        return
    if at.reachable is False:
        yield "disk_closed"
    if disk.read_only:
        return
    if not same:
        yield unproven if same is None else "disk_differs"
        if same is None and disk.cache == "unsafe":
            yield "disk_cache_unsafe"
    if at.writable is False:
        yield "disk_read_only"
