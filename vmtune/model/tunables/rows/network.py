"""Rows of the migration network: the addresses of one migration. A host can have its own."""

from __future__ import annotations

from vmtune.model.tunables.rows.names import LIBVIRT_RESETS, libvirt_parameter
from vmtune.model.tunables.texts import TextForm
from vmtune.model.tunables.tunable import Kind, Route, Side, Tunable

NETWORK = (
    Tunable(
        "migrate_uri", "Address that the source connects to",
        "The destination's address on the migration network. Without it libvirt takes the "
        "destination's host name, or migration_host of its qemu.conf.",
        Kind.TEXT, Route.MIGRATE, Side.SOURCE,
        libvirt=libvirt_parameter("migrate_uri", "--migrateuri"),
        overwriter=LIBVIRT_RESETS, form=TextForm.URI,
    ),
    Tunable(
        "listen_address", "Address that the destination listens on",
        "Where the destination's QEMU takes the migration. Without it libvirt listens on all of "
        "its addresses, or on migration_address of its qemu.conf.",
        Kind.TEXT, Route.MIGRATE, Side.BOTH,
        libvirt=libvirt_parameter("listen_address", "--listen-address"),
        overwriter=LIBVIRT_RESETS, form=TextForm.ADDRESS,
    ),
    Tunable(
        "disks_uri", "Address that disks are copied to",
        "The destination's address for the copy of disks (copy_storage). Without it they go to "
        "that of migrate_uri.",
        Kind.TEXT, Route.MIGRATE, Side.SOURCE,
        libvirt=libvirt_parameter("disks_uri", "--disks-uri"),
        overwriter=LIBVIRT_RESETS, form=TextForm.URI,
    ),
)  # fmt: skip
NETWORK_NAMES = tuple(row.name for row in NETWORK)
