"""The preflight of a VM's disks: which the destination has, and which are copied there. Pure.

libvirt starts the destination's QEMU with the same paths. A file that is there and is another one
would be taken for the disk; a copy onto the same file would destroy it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from vmtune.model.findings.table import Finding
from vmtune.model.host.disks import DISK_NOT_SEEN, Disk, DiskAtHost, DiskKind, DiskRoom
from vmtune.model.host.hardware import UNKNOWN_OFFER
from vmtune.model.plan.situation import Situation
from vmtune.model.tunables.rows.storage import COPIES, REMOVE, SOURCE_IMAGES
from vmtune.model.tunables.texts import targets
from vmtune.model.tunables.tunable import Value

_SEEN_FORMATS = ("raw", "qcow2")
"""Formats that are told apart at the destination."""
_ZERO = "copy_target_zero_disks"
_NAMING = ("copy_disks", "copy_detect_zeroes_disks", _ZERO)


def copied_disks(situation: Situation) -> tuple[Disk, ...]:
    """The disks of the VM that the migration copies, as libvirt chooses them."""
    if situation.destination is None or not any(situation.on(name) for name in COPIES):
        return ()
    disks = situation.vm.hardware.disks if situation.vm.hardware else ()
    named = situation.values.get("copy_disks")
    if isinstance(named, str):
        return tuple(disk for disk in disks if disk.target in targets(named))
    return tuple(disk for disk in disks if disk.is_copied)


def check_disks(situation: Situation) -> Iterator[Finding]:
    """What of the VM's disks stands against a migration."""
    destination = situation.destination
    if destination is None:
        return
    yield from _after_it(situation)
    if not situation.libvirt:
        yield from _direct(situation)
        return
    needs = situation.vm.hardware
    if needs is None:
        return
    yield from _unknown_targets(needs.disks, situation)
    there = (destination.offer or UNKNOWN_OFFER).disks
    copied = copied_disks(situation)
    if not copied:
        for name in COPIES:
            if situation.on(name):
                yield Finding("nothing_to_copy", name)
    for disk in copied:
        yield from _copied(disk, there.get(disk.target, DISK_NOT_SEEN), situation)
    yield from _one_image(copied, situation)
    yield from _not_zero(copied, situation)
    yield from _room(copied, there, situation)
    yield from _shared([disk for disk in needs.disks if disk not in copied], there)


def _after_it(situation: Situation) -> Iterator[Finding]:
    paths = [disk.path for disk in copied_disks(situation) if disk.path]
    if situation.values.get(SOURCE_IMAGES) == REMOVE and paths:
        yield Finding("source_images_go", SOURCE_IMAGES, {"paths": ", ".join(paths)})


def _direct(situation: Situation) -> Iterator[Finding]:
    """Of QEMUs without libvirt: the one that waits has a disk for each that is copied."""
    name = next((name for name in COPIES if situation.on(name)), None)
    if name is None or situation.destination is None:
        return
    there = (situation.destination.offer or UNKNOWN_OFFER).disks
    yield from _unknown_targets(
        situation.vm.hardware.disks if situation.vm.hardware else (), situation
    )
    copied = copied_disks(situation)
    if not copied:
        yield Finding("nothing_to_copy", name)
    for disk in copied:
        at = there.get(disk.target, DISK_NOT_SEEN)
        evidence: dict[str, str | int] = {"target": disk.target, "path": disk.path}
        if not disk.path:
            yield Finding("disk_cannot_be_copied", name, evidence)
        elif not at.present:
            yield Finding("copy_not_waited_for", name, evidence)
        elif at.is_same(disk):
            yield Finding("copy_onto_itself", name, evidence)
        elif at.is_same(disk) is None:
            yield Finding("copy_may_be_onto_itself", name, evidence)


def _unknown_targets(disks: tuple[Disk, ...], situation: Situation) -> Iterator[Finding]:
    known = {disk.target for disk in disks}
    for name in _NAMING:
        value: Value | None = situation.values.get(name)
        unknown = [t for t in targets(value) if t not in known] if isinstance(value, str) else []
        if unknown:
            yield Finding(
                "no_such_disk",
                name,
                {"targets": ", ".join(unknown), "known": ", ".join(sorted(known)) or "none"},
            )


def _copied(disk: Disk, at: DiskAtHost, situation: Situation) -> Iterator[Finding]:
    """A disk that is copied needs a file or device of its own there."""
    tunable = _copying(situation)
    evidence: dict[str, str | int] = {"target": disk.target, "path": disk.path}
    if not disk.path:
        yield Finding("disk_cannot_be_copied", tunable, evidence)
    elif disk.read_only:
        yield Finding("copy_of_read_only", tunable, evidence)
    elif at.is_same(disk):
        yield Finding("copy_onto_itself", tunable, evidence)
    elif at.present is None:
        yield Finding("copy_target_not_seen", tunable, evidence)
    elif at.used_by:
        yield Finding("copy_target_in_use", tunable, evidence | {"vm": at.used_by})
    elif at.present:
        yield from _onto(disk, at, situation, evidence)
    else:
        yield from _created(disk, at, situation, evidence)


def _copying(situation: Situation) -> str:
    on = situation.on("copy_storage_incremental")
    return "copy_storage_incremental" if on else "copy_storage"


def _onto(
    disk: Disk, at: DiskAtHost, situation: Situation, evidence: dict[str, str | int]
) -> Iterator[Finding]:
    """A copy onto what is there."""
    tunable = _copying(situation)
    incremental = tunable == "copy_storage_incremental"
    device = disk.kind is DiskKind.BLOCK
    if not incremental and not device:
        yield Finding("copy_target_exists", tunable, evidence)
        return
    if at.is_same(disk) is None:
        yield Finding("copy_may_be_onto_itself", tunable, evidence)
    elif device and not incremental:
        named = situation.values.get("copy_disks")
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
    tunable = _copying(situation)
    if tunable == "copy_storage_incremental":
        yield Finding("copy_base_missing", tunable, evidence)
    elif disk.kind is DiskKind.BLOCK:
        yield Finding("copy_device_missing", tunable, evidence)
    elif not at.folder:
        yield Finding("copy_folder_missing", tunable, evidence)
    else:
        if at.writable is False:
            yield Finding("copy_target_read_only", tunable, evidence)
        if at.reachable is False:
            yield Finding("copy_folder_closed", tunable, evidence)
        if disk.backing:
            yield Finding("copy_flattens", tunable, evidence | {"count": len(disk.backing)})


def _not_zero(disks: tuple[Disk, ...], situation: Situation) -> Iterator[Finding]:
    """Only an image that is created is all zeroes, for certain."""
    named = situation.values.get(_ZERO)
    if not isinstance(named, str):
        return
    incremental = situation.on("copy_storage_incremental")
    for disk in disks:
        if disk.target in targets(named) and (incremental or disk.kind is not DiskKind.FILE):
            yield Finding("copy_target_not_zero", _ZERO, {"target": disk.target, "path": disk.path})


def _one_image(disks: tuple[Disk, ...], situation: Situation) -> Iterator[Finding]:
    """Two disks of the VM that write one image."""
    by_path: dict[str, list[str]] = {}
    for disk in disks:
        if disk.path and not disk.read_only:
            by_path.setdefault(disk.path, []).append(disk.target)
    for path, names in by_path.items():
        if len(names) > 1:
            evidence: dict[str, str | int] = {"targets": ", ".join(names), "path": path}
            yield Finding("copy_same_image", _copying(situation), evidence)


def room_for_copies(situation: Situation) -> tuple[DiskRoom, ...]:
    """What the images take that are created at the destination, by file system; without those of
    which nobody can say how much room there is."""
    there = _there(situation)
    rooms = _rooms(copied_disks(situation), there, situation)
    return tuple(room for room, _ in rooms if room is not None)


def local_disks(situation: Situation) -> tuple[Disk, ...]:
    """The disks that the guest writes to and the destination is seen not to share."""
    disks = situation.vm.hardware.disks if situation.vm.hardware else ()
    there = _there(situation)
    return tuple(
        disk
        for disk in disks
        if disk.is_copied
        and disk.path
        and there.get(disk.target, DISK_NOT_SEEN).is_same(disk) is False
    )


def _there(situation: Situation) -> Mapping[str, DiskAtHost]:
    destination = situation.destination
    offer = destination.offer if destination is not None else None
    return (offer or UNKNOWN_OFFER).disks


def _rooms(
    disks: tuple[Disk, ...], there: Mapping[str, DiskAtHost], situation: Situation
) -> Iterator[tuple[DiskRoom | None, list[Disk]]]:
    """The images that are created in one file system share its room; where it is not known which
    that is, those of one folder do. None where nobody can say how much that is."""
    named = situation.values.get("copy_detect_zeroes_disks")
    zeroes = targets(named) if isinstance(named, str) else ()
    groups: dict[str, list[Disk]] = {}
    for disk in disks:
        at = there.get(disk.target, DISK_NOT_SEEN)
        if at.present is False and at.folder and disk.kind is DiskKind.FILE:
            where = at.file_system or str(PurePosixPath(disk.path).parent)
            groups.setdefault(where, []).append(disk)
    for where, group in groups.items():
        free = [there[disk.target].free_bytes for disk in group]
        known = [each for each in free if each is not None]
        needed = sum(d.copy_bytes(looks_for_zeroes=d.target in zeroes) or 0 for d in group)
        if len(known) < len(free):
            yield None, group
            continue
        promised = max(there[disk.target].promised_bytes for disk in group)
        folders = sorted({str(PurePosixPath(disk.path).parent) for disk in group})
        yield DiskRoom(where, needed, min(known), promised, tuple(folders)), group


def _room(
    disks: tuple[Disk, ...], there: Mapping[str, DiskAtHost], situation: Situation
) -> Iterator[Finding]:
    """Whether there is room for the images that are created."""
    for room, group in _rooms(disks, there, situation):
        if room is None:
            continue
        may_grow_to = sum(max(d.allocated_bytes or 0, d.capacity_bytes or 0) for d in group)
        evidence: dict[str, str | int] = {
            "target": ", ".join(disk.target for disk in group),
            "path": ", ".join(disk.path for disk in group),
            "free_bytes": room.available_bytes,
        }
        if room.needed_bytes > room.available_bytes:
            needed: dict[str, str | int] = {"needed_bytes": room.needed_bytes}
            yield Finding("copy_no_room", _copying(situation), evidence | needed)
        elif may_grow_to > room.available_bytes:
            grown: dict[str, str | int] = {"capacity_bytes": may_grow_to}
            yield Finding("copy_may_fill", _copying(situation), evidence | grown)


def _shared(disks: list[Disk], there: Mapping[str, DiskAtHost]) -> Iterator[Finding]:
    """A disk that is not copied has to be the same file on both hosts."""
    found: dict[str, list[str]] = {}
    for disk in disks:
        if not disk.path:
            continue
        at = there.get(disk.target, DISK_NOT_SEEN)
        for code in _of_shared(disk, at):
            found.setdefault(code, []).append(disk.path)
        if at.in_use and not (disk.read_only or disk.shareable):
            evidence: dict[str, str | int] = {
                "target": disk.target, "path": disk.path, "vm": at.used_by
            }  # fmt: skip
            yield Finding("disk_in_use", evidence=evidence)
    for code, paths in found.items():
        yield Finding(code, evidence={"paths": ", ".join(paths)})


def _of_shared(disk: Disk, at: DiskAtHost) -> Iterator[str]:
    same = at.is_same(disk)
    if at.present is None:
        yield "disks_not_seen"
        return
    if not at.present:
        yield "image_missing" if disk.read_only else "disk_missing"
        return
    if at.reachable is False:
        yield "disk_closed"
    if disk.read_only:
        return
    if not same:
        yield "disks_not_seen" if same is None else "disk_differs"
        if same is None and disk.cache == "unsafe":
            yield "disk_cache_unsafe"
    if at.writable is False:
        yield "disk_read_only"
