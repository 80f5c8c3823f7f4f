"""Findings of a VM's disks before a migration."""

from __future__ import annotations

from vmtune.model.findings.kinds import blocker, warning

_COPY = "copy the disk along (copy_storage=on), or put it on storage that both hosts have"

DISK_ROWS = (
    blocker("disk_missing", "the destination does not have {paths}", _COPY),
    blocker(
        "disk_differs",
        "the destination has another file at {paths}: the guest would run on with that one",
        "remove or rename the file there, then copy the disk along (copy_storage=on)",
    ),
    warning(
        "disks_not_seen",
        "nobody can be asked whether the destination has the same {paths}",
        "check that they are on storage that both hosts have, or copy them (copy_storage=on)",
    ),
    blocker(
        "copy_needs_libvirt",
        "a QEMU without libvirt copies no disks",
        "use shared storage, or unset it",
    ),
    blocker(
        "no_such_disk",
        "the VM has no disk {targets}; it has {known}",
        "name disks by their targets, as `virsh domblklist` shows them",
    ),
    blocker(
        "nothing_to_copy",
        "all of the VM's disks are read-only, shareable or empty",
        "unset it, or name disks (copy_disks)",
    ),
    blocker(
        "disk_cannot_be_copied",
        "the disk {target} is not a file or block device of the host",
        "leave it out: name the others (copy_disks)",
    ),
    blocker(
        "copy_onto_itself",
        "both hosts see the same {path} ({target}): the copy would destroy it",
        "unset it: the disk is on shared storage",
    ),
    blocker(
        "copy_may_be_onto_itself",
        "the destination has a {path} ({target}), and it is not known whether it is the same file: "
        "then the copy would destroy it",
        "if the hosts share it, unset this; if it is another file, override this finding",
    ),
    blocker(
        "copy_target_exists",
        "the destination has a file {path} already ({target}), which the copy would overwrite",
        "if nothing needs that file, remove it there; if it is the same one, unset this",
    ),
    blocker(
        "copy_base_missing",
        "the destination has no {path} ({target}), and an incremental copy creates none",
        "copy the backing files there and create the image on top of them, or use copy_storage",
    ),
    blocker(
        "copy_device_missing",
        "the destination has no device {path} ({target})",
        "create it there with at least the same size (lvcreate, say)",
    ),
    blocker(
        "copy_folder_missing",
        "the destination has no folder for {path} ({target})",
        "create it there, with the owner that it has here",
    ),
    blocker(
        "copy_no_room",
        "{path} ({target}) takes {needed_bytes}; the destination has {free_bytes} free there",
        "make room on the destination, or choose another one",
    ),
    warning(
        "copy_may_fill",
        "{path} ({target}) may grow to {capacity_bytes}; the destination has {free_bytes} free "
        "there",
        "make room on the destination before the guest needs it",
    ),
    warning(
        "copy_target_not_seen",
        "whether {path} ({target}) exists on the destination, and how much is free there, is not "
        "known: no active storage pool of its libvirt is that folder",
        "define a pool there: virsh pool-create-as NAME dir --target FOLDER",
    ),
)
