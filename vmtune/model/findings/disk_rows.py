"""Findings of a VM's disks before a migration."""

from __future__ import annotations

from vmtune.model.findings.kinds import FindingKind, Lifted, blocker, warning

_COPY = "copy the disk along (copy_storage=on), or put it on storage that both hosts have"


def _final(code: str, why: str, remedy: str) -> FindingKind:
    """A blocker of a copy that would fail, or destroy what nobody can have looked at."""
    return blocker(code, why, remedy, Lifted.NEVER)


DISK_ROWS = (
    blocker("disk_missing", "the destination does not have {paths}", _COPY),
    blocker(
        "disk_differs",
        "the destination has another file at {paths}: the guest would run on with that one",
        "copy the disk along (copy_storage=on); with libvirt, remove or rename that file first",
    ),
    blocker(
        "disk_may_differ",
        "it is not known whether the destination has the same {paths}, or others of these names: "
        "then the guest would run on with what is on them",
        "look on both hosts (lsblk -o NAME,WWN,SERIAL, ls -li); where they are the same, override "
        "disk_may_differ, or name them in the VM by /dev/disk/by-id/wwn-...; else copy them "
        "(copy_storage=on)",
    ),
    blocker(
        "image_missing",
        "the destination does not have {paths}, which the VM only reads",
        "copy it there yourself, or eject it (virsh change-media VM TARGET --eject)",
    ),
    blocker(
        "disk_read_only",
        "the destination can only read {paths}: its file system or device is read-only",
        "mount it there so that it can be written to",
    ),
    blocker(
        "disk_closed",
        "the user that QEMU runs as on the destination does not get through the folders of {paths}",
        "let that user through each of them (chmod o+x), as on the source",
    ),
    blocker(
        "disk_in_use",
        "{path} ({target}) is a disk of {vm}, which runs on the destination: both would write it",
        "shut {vm} down, or give it a disk of its own",
    ),
    blocker(
        "disk_cache_unsafe",
        "cache=unsafe lets QEMU leave out what the destination has to read from {paths} at once",
        "give these disks cache=none, and start the VM anew; or copy them (copy_storage=on)",
    ),
    warning(
        "disks_not_seen",
        "vmtune cannot ask the destination whether it has the same {paths}",
        "check that they are on storage that both hosts have, or copy them (copy_storage=on)",
    ),
    _final(
        "copy_not_waited_for",
        "the QEMU that waits on the destination has no disk {target}",
        "start it with the same devices, and an image of the same size for each disk",
    ),
    blocker(
        "no_such_disk",
        "the VM has no disk {targets}; it has {known}",
        "name disks by their targets, as `virsh domblklist` shows them",
    ),
    _final(
        "nothing_to_copy",
        "all of the VM's disks are read-only, shareable or empty",
        "unset it, or name disks (copy_disks)",
    ),
    _final(
        "disk_cannot_be_copied",
        "the disk {target} is not a file or block device of the host",
        "leave it out: name the others (copy_disks)",
    ),
    _final(
        "volume_not_copied",
        "{target} is the volume {volume} of the pool {pool}: only disks that the VM names by "
        "their paths are copied",
        "leave it out: name the others (copy_disks); or name it by its path in the VM: virsh "
        "vol-path --pool {pool} {volume}, then virsh edit VM, and start the VM anew",
    ),
    _final(
        "copy_of_read_only",
        "{path} ({target}) is read-only: no copy of it can be written through the VM",
        "leave it out (copy_disks), and copy the image there yourself, or eject it",
    ),
    _final(
        "copy_same_image",
        "{targets} are all {path}: their copies would write one image",
        "give each disk an image of its own",
    ),
    _final(
        "copy_target_in_use",
        "{path} ({target}) belongs to the VM {vm} of the destination: both would write it",
        "move or rename the image of {vm}, or choose another host",
    ),
    blocker(
        "copy_target_read_only",
        "the destination can only read what is at {path} ({target})",
        "mount its file system there so that it can be written to, make the device writable, or "
        "start the QEMU that waits with a disk that it may write",
        Lifted.GOES_ON,
    ),
    blocker(
        "copy_target_not_zero",
        "{path} ({target}) is not created for the migration: what it holds where the guest has "
        "zeroes would stay",
        "leave {target} out of copy_target_zero_disks",
    ),
    blocker(
        "copy_folder_closed",
        "the user that QEMU runs as on the destination does not get through the folders of {path} "
        "({target})",
        "let that user through each of them (chmod o+x), as on the source",
        Lifted.GOES_ON,
    ),
    _final(
        "copy_device_exists",
        "the copy would overwrite the destination's device {path} ({target})",
        "if nothing needs what is on it, name the disk: copy_disks={target}",
    ),
    warning(
        "copy_overwrites",
        "what is on the destination's device {path} ({target}) is overwritten",
        "look at what it holds before you go on",
    ),
    _final(
        "copy_target_format",
        "{path} ({target}) is {format} here, and {there} on the destination",
        "create an image of the same format there",
    ),
    _final(
        "copy_target_too_small",
        "{path} ({target}) has {needed_bytes}; the one on the destination has {capacity_bytes}",
        "make it as large there (qemu-img resize, lvextend)",
    ),
    _final(
        "copy_backing_missing",
        "the destination lacks what {path} ({target}) lies on: {missing}",
        "copy these files there, or use copy_storage, which copies all of it into one image",
    ),
    warning(
        "copy_flattens",
        "{path} ({target}) lies on {count} other images: there it becomes one image, and takes "
        "more room",
        "to keep the chain, use copy_storage_incremental with the same files on the destination",
    ),
    _final(
        "copy_onto_itself",
        "both hosts see the same {path} ({target}): the copy would destroy it",
        "unset it: the disk is on shared storage",
    ),
    blocker(
        "copy_may_be_onto_itself",
        "the destination has a {path} ({target}), and it is not known whether it is the same file: "
        "then the copy would destroy it",
        "look on both hosts (ls -li, lsblk -o NAME,WWN,SERIAL); if they share it, unset this; if "
        "it is another one and nothing needs what is on it, override copy_may_be_onto_itself",
        Lifted.GOES_ON,
    ),
    blocker(
        "copy_may_overwrite",
        "vmtune cannot look at {path} ({target}) on the destination, and the copy is written onto "
        "it: what it holds would be lost, also where it is the same one, or another VM's",
        "define a storage pool for it there, which tells more; or look yourself (lsblk, virsh "
        "domblklist), and where nothing needs what is on it, override copy_may_overwrite",
        Lifted.GOES_ON,
    ),
    _final(
        "copy_other_size",
        "{path} ({target}) has {needed_bytes}; that of the QEMU that waits has {capacity_bytes}",
        "start it with an image of the same size",
    ),
    _final(
        "copy_not_encrypted",
        "{path} ({target}) is encrypted, and the image that libvirt creates for it would not be",
        "shut the VM down, and move it with its image; or put it on storage that both hosts have",
    ),
    _final(
        "copy_target_exists",
        "the destination has a file {path} already ({target}), which the copy would overwrite",
        "if nothing needs that file, remove it there; if it is the same one, unset this",
    ),
    _final(
        "copy_base_missing",
        "the destination has no {path} ({target}), and an incremental copy creates none",
        "copy the backing files there and create the image on top of them, or use copy_storage",
    ),
    _final(
        "copy_device_missing",
        "the destination has no device {path} ({target})",
        "create it there with at least the same size (lvcreate, say)",
    ),
    _final(
        "copy_folder_missing",
        "the destination has no folder for {path} ({target})",
        "create it there, with the owner that it has here",
    ),
    blocker(
        "copy_no_room",
        "{path} ({target}) takes {needed_bytes}; the destination has {free_bytes} free there, "
        "next to what other copies will take",
        "make room on the destination, or choose another one",
        Lifted.GOES_ON,
    ),
    warning(
        "copy_may_fill",
        "{path} ({target}) may grow to {capacity_bytes}; the destination has {free_bytes} free "
        "there, next to what other copies will take",
        "make room on the destination before the guest needs it",
    ),
    warning(
        "copy_size_unknown",
        "nothing says how much room {path} ({target}) takes: it was not counted",
        "look at it (qemu-img info -U), and at the room on the destination",
    ),
    warning(
        "copy_loses_options",
        "{path} ({target}) has {options}; the image that libvirt creates for it has not",
        "nothing to do where that does not matter; else convert it after the migration",
    ),
    warning(
        "zeroes_are_sent",
        "copies without libvirt look for no zeroes: it has no effect",
        "unset it",
    ),
    warning(
        "source_images_go",
        "once the VM runs on the destination, {paths} are removed here",
        "set copy_source_images to keep, and remove them yourself when you are sure",
    ),
    warning(
        "copy_target_not_seen",
        "whether {path} ({target}) exists on the destination, and how much is free there, is not "
        "known: no active storage pool of its libvirt is that folder",
        "define a pool there: virsh pool-create-as NAME dir --target FOLDER",
    ),
)
