"""Which disks of a VM a migration copies, and what the destination has in their places. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vmtune.model.findings.table import Finding
from vmtune.model.host.disks import DISK_NOT_SEEN, Disk, DiskAtHost
from vmtune.model.host.hardware import UNKNOWN_OFFER
from vmtune.model.plan.situation import Situation
from vmtune.model.tunables.rows.storage import COPIES, COPY_DISKS
from vmtune.model.tunables.texts import targets
from vmtune.model.tunables.tunable import Value

TARGET_ZERO = "copy_target_zero_disks"
DETECT_ZEROES = "copy_detect_zeroes_disks"
_NAMING = (COPY_DISKS, DETECT_ZEROES, TARGET_ZERO)


def disks_of(situation: Situation) -> tuple[Disk, ...]:
    """The disks of the VM, as far as they are known."""
    return situation.vm.hardware.disks if situation.vm.hardware else ()


def copied_disks(situation: Situation) -> tuple[Disk, ...]:
    """The disks of the VM that the migration copies, as libvirt chooses them."""
    if situation.destination is None or not any(situation.on(name) for name in COPIES):
        return ()
    named = situation.values.get(COPY_DISKS)
    if isinstance(named, str):
        return tuple(disk for disk in disks_of(situation) if disk.target in targets(named))
    return tuple(disk for disk in disks_of(situation) if disk.is_copied)


def local_disks(situation: Situation) -> tuple[Disk, ...]:
    """The disks that the guest writes to and the destination is seen not to share, as far as they
    can be copied."""
    there = seen_there(situation)
    return tuple(
        disk
        for disk in disks_of(situation)
        if disk.is_copied
        and disk.path
        and disk.volume is None
        and disk.device != "flash"
        and there.get(disk.target, DISK_NOT_SEEN).is_same(disk) is False
    )


def seen_there(situation: Situation) -> Mapping[str, DiskAtHost]:
    """What the destination has in the places of the VM's disks, by their targets."""
    destination = situation.destination
    offer = destination.offer if destination is not None else None
    return (offer or UNKNOWN_OFFER).disks


def copying(situation: Situation) -> str:
    """The tunable that switches the copy on."""
    on = situation.on("copy_storage_incremental")
    return "copy_storage_incremental" if on else "copy_storage"


def check_targets(situation: Situation) -> Iterator[Finding]:
    """Disks that are named and that the VM does not have."""
    known = {disk.target for disk in disks_of(situation)}
    for name in _NAMING:
        value: Value | None = situation.values.get(name)
        unknown = [t for t in targets(value) if t not in known] if isinstance(value, str) else []
        if unknown:
            yield Finding(
                "no_such_disk",
                name,
                {"targets": ", ".join(unknown), "known": ", ".join(sorted(known)) or "none"},
            )
