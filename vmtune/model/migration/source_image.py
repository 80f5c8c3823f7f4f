"""Why the source's image of a disk that was copied is still there, in words. Pure."""

from __future__ import annotations

from vmtune.model.migration.disks import CopiedDisk, SourceImage
from vmtune.model.migration.record import Migration, MigrationState, Trigger
from vmtune.model.tunables.rows.storage import REMOVE, SOURCE_IMAGES


def why_it_stays(record: Migration, disk: CopiedDisk) -> str:
    """What is known of it; empty while the migration runs, and where the image was removed."""
    if disk.source_image_reason:
        return disk.source_image_reason
    if disk.source_image is not SourceImage.KEPT or not record.state.ended:
        return ""
    if record.state is MigrationState.UNKNOWN:
        return "it is not known how the migration ended"
    if record.state is not MigrationState.COMPLETED:
        return "the migration did not complete"
    if record.trigger is not Trigger.VMTUNE:
        return "others started the migration"
    return "" if record.wanted.get(SOURCE_IMAGES) == REMOVE else f"{SOURCE_IMAGES} is keep"
