"""The room that the copies of a VM's disks take at the destination. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from vmtune.model.findings.table import Finding
from vmtune.model.host.disks import DISK_NOT_SEEN, Disk, DiskAtHost, DiskKind, DiskRoom
from vmtune.model.plan.situation import Situation
from vmtune.model.preflight.copied_disks import (
    DETECT_ZEROES,
    copied_disks,
    copying,
    seen_there,
)
from vmtune.model.tunables.texts import targets


def room_for_copies(situation: Situation) -> tuple[DiskRoom, ...]:
    """What the images take that are written at the destination, by file system; without those of
    which nobody can say how much room there is."""
    return tuple(room for room, _ in _rooms(situation) if room is not None)


def check_room(situation: Situation) -> Iterator[Finding]:
    """Whether there is room for the images that are created, or grow."""
    tunable = copying(situation)
    for room, group in _rooms(situation):
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
            yield Finding("copy_no_room", tunable, evidence | needed)
        elif may_grow_to > room.available_bytes:
            grown: dict[str, str | int] = {"capacity_bytes": may_grow_to}
            yield Finding("copy_may_fill", tunable, evidence | grown)
        unknown = [disk for disk in group if disk.copy_bytes() is None]
        if unknown:
            names: dict[str, str | int] = {
                "target": ", ".join(disk.target for disk in unknown),
                "path": ", ".join(disk.path for disk in unknown),
            }
            yield Finding("copy_size_unknown", tunable, names)


def _rooms(situation: Situation) -> Iterator[tuple[DiskRoom | None, list[Disk]]]:
    """The images that are created in one file system, or grow there, share its room; where it is
    not known which that is, those of one folder do. None where nobody can say how much that is."""
    there = seen_there(situation)
    named = situation.values.get(DETECT_ZEROES)
    zeroes = targets(named) if isinstance(named, str) else ()
    onto = situation.on("copy_storage_incremental")
    groups: dict[str, list[Disk]] = {}
    for disk in copied_disks(situation):
        at = there.get(disk.target, DISK_NOT_SEEN)
        if at.present is onto and at.folder and disk.kind is DiskKind.FILE and not disk.is_device:
            where = at.file_system or str(PurePosixPath(disk.path).parent)
            groups.setdefault(where, []).append(disk)
    for where, group in groups.items():
        free = [there[disk.target].free_bytes for disk in group]
        known = [each for each in free if each is not None]
        if len(known) < len(free):
            yield None, group
            continue
        needed = sum(_needed(disk, there, disk.target in zeroes) for disk in group)
        promised = max(there[disk.target].promised_bytes for disk in group)
        folders = sorted({str(PurePosixPath(disk.path).parent) for disk in group})
        yield DiskRoom(where, needed, min(known), promised, tuple(folders)), group


def _needed(disk: Disk, there: Mapping[str, DiskAtHost], looks_for_zeroes: bool) -> int:
    """What the copy takes for certain: an image that is there may have the room already."""
    takes = disk.copy_bytes(looks_for_zeroes=looks_for_zeroes) or 0
    return max(0, takes - (there[disk.target].allocated_bytes or 0))
