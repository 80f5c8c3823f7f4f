"""Rows of the copy of disks that a migration makes, where the hosts share no storage.

Sources: libvirt's include/libvirt/libvirt-domain.h (virDomainMigrateFlags, VIR_MIGRATE_PARAM_*) and
qemuMigrationSrcNBDStorageCopy (src/qemu/qemu_migration.c).
"""

from __future__ import annotations

from vmtune.model.tunables.rows.names import LIBVIRT_RESETS, flag, libvirt_parameter
from vmtune.model.tunables.rows.network import NETWORK_NAMES
from vmtune.model.tunables.texts import TextForm
from vmtune.model.tunables.tunable import Kind, Route, Side, Tunable
from vmtune.model.versions import Version
from vmtune.units import Unit

COPY_BANDWIDTH = "copy_bandwidth_bytes_per_s"
SOURCE_IMAGES, KEEP, REMOVE = "copy_source_images", "keep", "remove"

STORAGE = (
    Tunable(
        "copy_storage", "Copy disks to the destination",
        "Copies the VM's writable disks along with its memory, whole, for hosts that share no "
        "storage. Images that the destination lacks are created there.",
        Kind.BOOLEAN, Route.MIGRATE, Side.SOURCE, default=False,
        libvirt=flag("VIR_MIGRATE_NON_SHARED_DISK", "--copy-storage-all"),
        overwriter=LIBVIRT_RESETS,
    ),
    Tunable(
        "copy_storage_incremental", "Copy only the top images of disks",
        "As copy_storage, but only the image on top of each backing chain. The destination needs "
        "the same backing files, and an image on top of them.",
        Kind.BOOLEAN, Route.MIGRATE, Side.SOURCE, default=False,
        libvirt=flag("VIR_MIGRATE_NON_SHARED_INC", "--copy-storage-inc"),
        overwriter=LIBVIRT_RESETS,
    ),
    Tunable(
        "copy_disks", "Disks to copy",
        "The targets of the disks to copy, such as vda,vdb. Unset, libvirt copies all that are "
        "neither read-only nor shareable.",
        Kind.TEXT, Route.MIGRATE, Side.SOURCE,
        libvirt=libvirt_parameter("migrate_disks", "--migrate-disks"),
        overwriter=LIBVIRT_RESETS, form=TextForm.TARGETS,
    ),
    Tunable(
        "copy_synchronous_writes", "Write to both copies while disks are copied",
        "The guest's writes wait until the destination has them, too: the copy always catches up, "
        "and the guest writes more slowly meanwhile.",
        Kind.BOOLEAN, Route.MIGRATE, Side.SOURCE, default=False,
        libvirt=flag(
            "VIR_MIGRATE_NON_SHARED_SYNCHRONOUS_WRITES", "--copy-storage-synchronous-writes"
        ),
        overwriter=LIBVIRT_RESETS,
    ),
    Tunable(
        "copy_detect_zeroes_disks", "Disks whose zeroes are kept sparse",
        "Looks for zeroes in what is copied of these disks and leaves holes in the destination's "
        "images, in raw ones with disk_discard=unmap alone; costs CPU.",
        Kind.TEXT, Route.MIGRATE, Side.SOURCE,
        libvirt=libvirt_parameter(
            "migrate_disks_detect_zeroes", "--migrate-disks-detect-zeroes", Version(10, 9)
        ),
        overwriter=LIBVIRT_RESETS, form=TextForm.TARGETS,
    ),
    Tunable(
        "copy_target_zero_disks", "Disks that are all zeroes at the destination",
        "Does not send the zeroes of these disks. Only for images that are created for the "
        "migration: what another image holds where the guest has zeroes would stay.",
        Kind.TEXT, Route.MIGRATE, Side.SOURCE,
        libvirt=libvirt_parameter(
            "migrate_disks_target_zero", "--migrate-disks-target-zero", Version(12, 2)
        ),
        overwriter=LIBVIRT_RESETS, form=TextForm.TARGETS,
    ),
    Tunable(
        "disks_port", "Port that disks are copied to",
        "The destination's TCP port for the copy of disks. Unset, libvirt chooses one of its "
        "migration ports (49152 to 49215).",
        Kind.INTEGER, Route.MIGRATE, Side.SOURCE, minimum=1024, maximum=65535,
        libvirt=libvirt_parameter("disks_port", "--disks-port"),
        overwriter=LIBVIRT_RESETS,
    ),
    Tunable(
        COPY_BANDWIDTH, "Bandwidth of each disk's copy",
        "The most that the copy of each disk may take, set by vmtune once it has begun; 0 means "
        "no limit. Unset, it is max_bandwidth_bytes_per_s, at which the memory is sent.",
        Kind.INTEGER, Route.CONTROL, Side.SOURCE, Unit.BYTES_PER_S, minimum=0,
        maximum=1 << 62, zero="no limit",
    ),
    Tunable(
        SOURCE_IMAGES, "Source's images after the migration",
        "keep: they stay. remove: vmtune removes those that were copied once the VM is seen to run "
        "at the destination, but for those that another VM or image names.",
        Kind.CHOICE, Route.CONTROL, Side.SOURCE, default=KEEP, choices=(KEEP, REMOVE),
    ),
)  # fmt: skip
STORAGE_NAMES = tuple(row.name for row in STORAGE)
CALL_ARGUMENTS = frozenset(
    (*NETWORK_NAMES, *(row.name for row in STORAGE if row.route is Route.MIGRATE))
)
"""What is of one migration: arguments of libvirt's call, which fails where it cannot do them."""
COPY, COPY_DISKS = "copy_storage", "copy_disks"
COPIES = (COPY, "copy_storage_incremental")
"""Those that switch the copy on."""
CHOOSES_DISKS = (*COPIES, COPY_DISKS)
"""Those that say which disks are copied."""
