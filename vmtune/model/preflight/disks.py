"""The preflight of a VM's disks: which the destination has, and which are copied there. Pure.

libvirt starts the destination's QEMU with the same paths. A file that is there and is another one
would be taken for the disk; a copy onto the same file would destroy it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vmtune.model.findings.table import Finding
from vmtune.model.host.disks import DISK_NOT_SEEN, Disk, DiskAtHost, DiskKind
from vmtune.model.host.hardware import UNKNOWN_OFFER
from vmtune.model.plan.situation import Situation
from vmtune.model.tunables.rows.storage import COPIES
from vmtune.model.tunables.texts import targets
from vmtune.model.tunables.tunable import Value

_NAMING = ("copy_disks", "copy_detect_zeroes_disks")


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
    if not situation.libvirt:
        for name in COPIES:
            if situation.on(name):
                yield Finding("copy_needs_libvirt", name)
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
    yield from _shared([disk for disk in needs.disks if disk not in copied], there)


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
    """A disk that is copied needs a file of its own there, and room."""
    incremental = situation.on("copy_storage_incremental")
    tunable = "copy_storage_incremental" if incremental else "copy_storage"
    evidence: dict[str, str | int] = {"target": disk.target, "path": disk.path}
    if not disk.path:
        yield Finding("disk_cannot_be_copied", tunable, evidence)
    elif at.is_same(disk):
        yield Finding("copy_onto_itself", tunable, evidence)
    elif at.present is None:
        yield Finding("copy_target_not_seen", tunable, evidence)
    elif incremental and not at.present:
        yield Finding("copy_base_missing", tunable, evidence)
    elif at.present and not incremental:
        yield Finding("copy_target_exists", tunable, evidence)
    elif not at.present and disk.kind is DiskKind.BLOCK:
        yield Finding("copy_device_missing", tunable, evidence)
    elif at.present and at.is_same(disk) is None:
        yield Finding("copy_may_be_onto_itself", tunable, evidence)
    elif not at.folder:
        yield Finding("copy_folder_missing", tunable, evidence)
    needed, free = disk.allocated_bytes, at.free_bytes
    if at.present is False and needed is not None and free is not None:
        sizes: dict[str, str | int] = {"needed_bytes": needed, "free_bytes": free}
        if needed > free:
            yield Finding("copy_no_room", tunable, evidence | sizes)
        elif disk.capacity_bytes is not None and disk.capacity_bytes > free:
            sizes = {"capacity_bytes": disk.capacity_bytes, "free_bytes": free}
            yield Finding("copy_may_fill", tunable, evidence | sizes)


def _shared(disks: list[Disk], there: Mapping[str, DiskAtHost]) -> Iterator[Finding]:
    """A disk that is not copied has to be the same file on both hosts."""
    missing: list[str] = []
    other: list[str] = []
    unknown: list[str] = []
    for disk in disks:
        if not disk.path:
            continue
        at = there.get(disk.target, DISK_NOT_SEEN)
        if at.present is False:
            missing.append(disk.path)
        elif at.present is None:
            unknown.append(disk.path)
        elif not disk.read_only and not at.is_same(disk):
            (unknown if at.is_same(disk) is None else other).append(disk.path)
    for code, paths in (
        ("disk_missing", missing), ("disk_differs", other), ("disks_not_seen", unknown)
    ):  # fmt: skip
        if paths:
            yield Finding(code, evidence={"paths": ", ".join(paths)})
