"""Why images of the source stay, in words."""

from __future__ import annotations

import pytest

from tests.support.examples.migrations import make_migration
from vmtune.model.migration.disks import CopiedDisk, SourceImage
from vmtune.model.migration.record import MigrationState, Trigger
from vmtune.model.migration.source_image import why_it_stays

DISK = CopiedDisk("vda", "/x")
REMOVED = {"copy_source_images": "remove"}


@pytest.mark.parametrize(
    ("state", "trigger", "wanted", "why"),
    [
        (MigrationState.ACTIVE, Trigger.VMTUNE, {}, ""),
        (MigrationState.COMPLETED, Trigger.VMTUNE, {}, "copy_source_images is keep"),
        (MigrationState.COMPLETED, Trigger.OBSERVED, {}, "others started the migration"),
        (MigrationState.CANCELLED, Trigger.VMTUNE, REMOVED, "the migration did not complete"),
        (MigrationState.UNKNOWN, Trigger.VMTUNE, {}, "it is not known how the migration ended"),
    ],
)
def test_an_image_stays_for_a_reason(
    state: MigrationState, trigger: Trigger, wanted: dict[str, str], why: str
) -> None:
    record = make_migration(state=state, trigger=trigger, wanted=wanted, disks=(DISK,))
    assert why_it_stays(record, DISK) == why


def test_what_was_found_out_comes_first_and_what_is_gone_needs_no_reason() -> None:
    record = make_migration(state=MigrationState.COMPLETED, wanted=REMOVED)
    kept = CopiedDisk("vda", "/x", source_image_reason="web2 names it")
    assert why_it_stays(record, kept) == "web2 names it"
    assert why_it_stays(record, CopiedDisk("vda", "/x", source_image=SourceImage.REMOVED)) == ""
