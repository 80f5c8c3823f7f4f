"""Each finding about a VM's disks, with a situation that it comes up in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.support.examples.facts import direct_host, host, migrating, situation, vm
from vmtune.model.host.disks import DISK_NOT_SEEN, Disk, DiskAtHost, DiskKind, Qcow2, Volume
from vmtune.model.host.hardware import Hardware, Offer
from vmtune.model.plan.situation import Destination, Situation

LOCAL = Disk(
    "vda", path="/x", identity="device:1", format="qcow2", capacity_bytes=200, allocated_bytes=100
)
DEVICE = replace(LOCAL, kind=DiskKind.BLOCK, path="/dev/x", format="raw")
UNIT = replace(DEVICE, path="/dev/disk/by-id/wwn-0x600140512345678901234567890abcde")
LV = replace(DEVICE, path="/dev/vg0/web", volume=Volume("vg0", "web"))
LOST_LV = replace(LV, path="", kind=DiskKind.OTHER)
CD = Disk("sda", path="/cd.iso", device="cdrom", read_only=True, format="raw")
LAYERED = replace(LOCAL, backing=("/base",))
MISSING = DiskAtHost(present=False, folder=True, free_bytes=1 << 40, file_system="1")
SAME, OTHER = (
    DiskAtHost(True, f"device:{number}", True, 1 << 40, "1", writable=True, capacity_bytes=200)
    for number in "12"
)
UNSEEN = replace(OTHER, identity="")
COPIED: dict[str, Any] = {"copy_storage": True}
ON_TOP: dict[str, Any] = {"copy_storage_incremental": True}


def disks_on(*pairs: tuple[Disk, DiskAtHost], **values: Any) -> Situation:
    """A VM with disks, about to go to a host that has something at each one's path."""
    disks = tuple(disk for disk, _ in pairs)
    offer = Offer(disks={disk.target: at for disk, at in pairs})
    goal = Destination("b", host("b"), offer=offer)
    return migrating(values, vm=vm(hardware=Hardware(disks=disks)), destination=goal)


def disks_at(at: DiskAtHost, disk: Disk = LOCAL, **values: Any) -> Situation:
    """A VM with one disk."""
    return disks_on((disk, at), **values)


def direct_on(*disks: Disk, there: dict[str, DiskAtHost], **values: Any) -> Situation:
    """A VM without libvirt with some disks, and what the QEMU that waits has, by target."""
    goal = Destination("b", direct_host("b"), vm(), offer=Offer(disks=there))
    facts = vm(hardware=Hardware(disks=disks))
    return situation(values, host=direct_host(), destination=goal, vm=facts)


def direct_at(at: DiskAtHost, disk: Disk = LOCAL, **values: Any) -> Situation:
    """A VM with one disk, of which the QEMU that waits has something."""
    return direct_on(disk, there={disk.target: at}, **values)


SECOND = replace(LOCAL, target="vdb", path="/y")
_SMALL = replace(MISSING, free_bytes=150)
"""Room for one of the two, not for both."""

DISK_EXAMPLES: list[tuple[str, str, Situation]] = [
    ("disk_missing", "", disks_at(MISSING)),
    ("image_missing", "", disks_at(MISSING, CD)),
    ("disk_differs", "", disks_at(OTHER)),
    ("disk_read_only", "", disks_at(replace(SAME, writable=False))),
    ("disk_closed", "", disks_at(replace(SAME, reachable=False))),
    ("disk_in_use", "", disks_at(replace(SAME, used_by="other", in_use=True))),
    ("disk_cache_unsafe", "", disks_at(UNSEEN, replace(LOCAL, cache="unsafe"))),
    ("disks_not_seen", "", disks_at(DiskAtHost())),
    ("disk_may_differ", "", disks_at(DISK_NOT_SEEN, DEVICE)),
    ("disk_may_differ", "", disks_at(UNSEEN, DEVICE)),
    ("disk_may_differ", "", disks_at(replace(UNSEEN, path="/dev/vg0/web"), LV)),
    ("disk_may_differ", "", disks_at(replace(UNSEEN, path="/dev/x"), replace(
        UNIT, volume=Volume("vg0", "web")))),
    ("disk_missing", "", disks_at(DiskAtHost(present=False), LOST_LV)),
    ("volume_not_copied", "copy_storage", disks_at(OTHER, LV, **COPIED)),
    ("disk_missing", "", direct_on(LOCAL, there={"vdx": OTHER})),
    ("disk_differs", "", direct_at(OTHER)),
    ("disk_may_differ", "", direct_at(UNSEEN)),
    ("disk_may_differ", "", direct_on(LOCAL, there={})),
    ("disk_read_only", "", direct_at(replace(SAME, writable=False))),
    ("copy_not_waited_for", "copy_storage", direct_on(LOCAL, there={}, **COPIED)),
    ("copy_of_read_only", "copy_storage", direct_at(OTHER, CD, **COPIED, copy_disks="sda")),
    ("copy_target_read_only", "copy_storage", direct_at(
        replace(OTHER, writable=False), **COPIED)),
    ("copy_may_be_onto_itself", "copy_storage", direct_at(UNSEEN, **COPIED)),
    ("copy_onto_itself", "copy_storage", direct_at(SAME, **COPIED)),
    ("copy_other_size", "copy_storage", direct_at(replace(OTHER, capacity_bytes=201), **COPIED)),
    ("zeroes_are_sent", "copy_detect_zeroes_disks", direct_at(
        OTHER, **COPIED, copy_detect_zeroes_disks="vda")),
    ("no_such_disk", "copy_disks", disks_at(MISSING, **COPIED, copy_disks="vda,vdz")),
    ("nothing_to_copy", "copy_storage", disks_at(MISSING, CD, **COPIED)),
    ("disk_cannot_be_copied", "copy_storage", disks_at(
        MISSING, Disk("vda", DiskKind.NETWORK), **COPIED)),
    ("copy_of_read_only", "copy_storage", disks_at(MISSING, CD, **COPIED, copy_disks="sda")),
    ("copy_same_image", "copy_storage", disks_on(
        (LOCAL, MISSING), (replace(LOCAL, target="vdb"), MISSING), **COPIED)),
    ("copy_onto_itself", "copy_storage", disks_at(SAME, **COPIED)),
    ("copy_may_be_onto_itself", "copy_storage_incremental", disks_at(UNSEEN, **ON_TOP)),
    ("copy_may_be_onto_itself", "copy_storage", disks_at(UNSEEN, DEVICE, **COPIED)),
    ("copy_target_exists", "copy_storage", disks_at(OTHER, **COPIED)),
    ("copy_target_in_use", "copy_storage", disks_at(
        replace(MISSING, used_by="other"), **COPIED)),
    ("copy_target_read_only", "copy_storage", disks_at(
        replace(MISSING, writable=False), **COPIED)),
    ("copy_target_read_only", "copy_storage", disks_at(
        replace(OTHER, writable=False), DEVICE, **COPIED)),
    ("copy_folder_closed", "copy_storage", disks_at(
        replace(MISSING, reachable=False), **COPIED)),
    ("copy_folder_closed", "copy_storage_incremental", disks_at(
        replace(OTHER, reachable=False), **ON_TOP)),
    ("copy_device_exists", "copy_storage", disks_at(OTHER, DEVICE, **COPIED)),
    ("copy_overwrites", "copy_storage", disks_at(OTHER, DEVICE, **COPIED, copy_disks="vda")),
    ("copy_target_format", "copy_storage_incremental", disks_at(
        replace(OTHER, format="raw"), **ON_TOP)),
    ("copy_target_too_small", "copy_storage", disks_at(
        replace(OTHER, capacity_bytes=199), DEVICE, **COPIED)),
    ("copy_target_too_small", "copy_storage_incremental", disks_at(
        replace(OTHER, capacity_bytes=199), **ON_TOP)),
    ("copy_backing_missing", "copy_storage_incremental", disks_at(
        replace(OTHER, backing_missing=("/base",)), LAYERED, **ON_TOP)),
    ("copy_flattens", "copy_storage", disks_at(MISSING, LAYERED, **COPIED)),
    ("copy_base_missing", "copy_storage_incremental", disks_at(MISSING, **ON_TOP)),
    ("copy_device_missing", "copy_storage", disks_at(MISSING, DEVICE, **COPIED)),
    ("copy_folder_missing", "copy_storage", disks_at(
        DiskAtHost(present=False, folder=False), **COPIED)),
    ("copy_no_room", "copy_storage", disks_at(replace(MISSING, free_bytes=99), **COPIED)),
    ("copy_no_room", "copy_storage", disks_on((LOCAL, _SMALL), (SECOND, _SMALL), **COPIED)),
    ("copy_may_fill", "copy_storage", disks_at(replace(MISSING, free_bytes=100), **COPIED)),
    ("copy_target_not_zero", "copy_target_zero_disks", disks_at(
        OTHER, DEVICE, **COPIED, copy_disks="vda", copy_target_zero_disks="vda")),
    ("copy_target_not_zero", "copy_target_zero_disks", disks_at(
        OTHER, **ON_TOP, copy_target_zero_disks="vda")),
    ("source_images_go", "copy_source_images", disks_at(
        MISSING, **COPIED, copy_source_images="remove")),
    ("copy_target_not_seen", "copy_storage", disks_at(DISK_NOT_SEEN, **COPIED)),
    ("copy_may_overwrite", "copy_storage", disks_at(DISK_NOT_SEEN, DEVICE, **COPIED)),
    ("copy_may_overwrite", "copy_storage", disks_at(
        DISK_NOT_SEEN, DEVICE, **COPIED, copy_disks="vda")),
    ("copy_may_overwrite", "copy_storage", disks_at(
        DISK_NOT_SEEN, replace(DEVICE, kind=DiskKind.FILE), **COPIED)),
    ("copy_may_overwrite", "copy_storage_incremental", disks_at(DISK_NOT_SEEN, **ON_TOP)),
    ("copy_target_in_use", "copy_storage", disks_at(
        replace(DISK_NOT_SEEN, used_by="other"), DEVICE, **COPIED)),
    ("copy_onto_itself", "copy_storage", disks_at(DISK_NOT_SEEN, UNIT, **COPIED)),
    ("copy_not_encrypted", "copy_storage", disks_at(
        MISSING, replace(LOCAL, encrypted=True), **COPIED)),
    ("copy_no_room", "copy_storage_incremental", disks_at(replace(OTHER, free_bytes=1), **ON_TOP)),
    ("copy_size_unknown", "copy_storage", disks_at(
        MISSING, replace(LOCAL, capacity_bytes=None, allocated_bytes=None), **COPIED)),
    ("copy_loses_options", "copy_storage", disks_at(
        MISSING, replace(LOCAL, qcow2=Qcow2(compression="zstd")), **COPIED)),
]  # fmt: skip
