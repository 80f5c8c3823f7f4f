"""The preflight of a VM's disks without libvirt: the QEMU that waits has opened its own. Pure.

Nothing but this keeps a guest from going on with another image than the one that it has written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vmtune.model.findings.table import Finding
from vmtune.model.host.disks import DISK_NOT_SEEN, Disk, DiskAtHost
from vmtune.model.plan.situation import Situation
from vmtune.model.preflight.copied_disks import (
    DETECT_ZEROES,
    TARGET_ZERO,
    check_targets,
    copied_disks,
    copying,
    disks_of,
    seen_there,
)
from vmtune.model.tunables.rows.storage import COPIES


def check_direct_disks(situation: Situation) -> Iterator[Finding]:
    """What of the VM's disks stands against a migration to the QEMU that waits."""
    there = seen_there(situation)
    copied = copied_disks(situation)
    if any(situation.on(name) for name in COPIES):
        yield from check_targets(situation)
        for name in (DETECT_ZEROES, TARGET_ZERO):
            if situation.values.get(name):
                yield Finding("zeroes_are_sent", name)
        if not copied:
            yield Finding("nothing_to_copy", copying(situation))
        for disk in copied:
            yield from _copied(disk, there.get(disk.target), copying(situation))
    if there or (situation.destination is not None and situation.destination.vm is not None):
        yield from _shared([disk for disk in disks_of(situation) if disk not in copied], there)


def _copied(disk: Disk, at: DiskAtHost | None, tunable: str) -> Iterator[Finding]:
    """A disk that is copied needs an image of its own there. Its format is free, since the guest's
    view of it is copied."""
    evidence: dict[str, str | int] = {"target": disk.target, "path": disk.path}
    if not disk.path:
        yield Finding("disk_cannot_be_copied", tunable, evidence)
    elif disk.read_only or disk.device == "cdrom":
        yield Finding("copy_of_read_only", tunable, evidence)
    elif at is None or not at.present:
        yield Finding("copy_not_waited_for", tunable, evidence)
    elif at.is_same(disk):
        yield Finding("copy_onto_itself", tunable, evidence)
    else:
        if at.is_same(disk) is None:
            yield Finding("copy_may_be_onto_itself", tunable, evidence)
        if at.writable is False:
            yield Finding("copy_target_read_only", tunable, evidence)
        here, other = disk.capacity_bytes, at.capacity_bytes
        if here is not None and other is not None and here != other:
            sizes: dict[str, str | int] = {"needed_bytes": here, "capacity_bytes": other}
            yield Finding("copy_other_size", tunable, evidence | sizes)


def _shared(disks: list[Disk], there: Mapping[str, DiskAtHost]) -> Iterator[Finding]:
    """A disk that is not copied has to be the same file in both QEMUs."""
    found: dict[str, list[str]] = {}
    for disk in disks:
        for code in _of_shared(disk, there):
            found.setdefault(code, []).append(disk.path)
    for code, paths in found.items():
        yield Finding(code, evidence={"paths": ", ".join(paths)})


def _of_shared(disk: Disk, there: Mapping[str, DiskAtHost]) -> Iterator[str]:
    if not disk.path or disk.read_only or disk.device == "flash":
        return
    at = there.get(disk.target) or _same_file(disk, there)
    same = at.is_same(disk)
    if same is None:
        yield "disk_may_differ"
    elif not same:
        yield "disk_differs" if at.present else "disk_missing"
    if at.writable is False:
        yield "disk_read_only"


def _same_file(disk: Disk, there: Mapping[str, DiskAtHost]) -> DiskAtHost:
    """What the QEMU that waits has of a disk that it names otherwise."""
    answers = [at.is_same(disk) for at in there.values()]
    for at, same in zip(there.values(), answers, strict=True):
        if same:
            return at
    unknown = not there or None in answers
    return DISK_NOT_SEEN if unknown else DiskAtHost(present=False)
