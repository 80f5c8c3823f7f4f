"""Images that a destination makes for the disks of a migration, and what its record says of them
at each moment."""

from __future__ import annotations

from uuid import UUID

from vmtune.engine.notes import Hosts, Notes
from vmtune.errors import CommandRefused
from vmtune.hypervisor.leftovers import ImagesLeft
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.facts import Connection
from vmtune.model.migration.disks import about_to_be_made, to_copy
from vmtune.model.migration.record import MigrationFields
from vmtune.model.plan.plan import Plan


async def make_images(
    hosts: Hosts, notes: Notes, vm: UUID, destination: Driver, plan: Plan
) -> None:
    """Make them on the destination. What is going to be made is noted before, and what was made
    before the migration is called: it is removed if the VM stays here.

    :raise CommandRefused: an image cannot be made.
    """
    incremental = plan.migrate_values().get("copy_storage_incremental") is True
    disks = to_copy(plan.disks)
    creates = await hosts.connection() is Connection.LIBVIRT and not incremental
    noted = about_to_be_made(disks) if creates else disks
    await notes.save(MigrationFields(disks=noted))
    try:
        made = await destination.prepare_images(vm, disks, incremental=incremental)
    except ImagesLeft as refusal:
        await notes.save(MigrationFields(disks=refusal.left))  # it is tried again
        raise
    except CommandRefused:
        await notes.save(MigrationFields(disks=()))  # nothing is left of it
        raise
    await notes.save(MigrationFields(disks=tuple(made)))
