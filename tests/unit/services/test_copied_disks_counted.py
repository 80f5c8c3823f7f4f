"""What ``/metrics`` counts of the disks that migrations copy."""

from __future__ import annotations

from tests.support.examples.migrations import make_migration
from vmtune.model.migration.disks import CopiedDisk
from vmtune.model.migration.record import MigrationState, Totals
from vmtune.services.metrics import telemetry

BYTES = "vmtune_migration_disk_bytes_total"
TIME = "vmtune_migration_disk_copy_seconds"
TOTALS = Totals(9000, 10, 1, 1 << 20, 3)


def counted() -> tuple[float, float, float]:
    def value(name: str) -> float:
        return telemetry.REGISTRY.get_sample_value(name) or 0.0

    return value(BYTES), value(f"{TIME}_count"), value(f"{TIME}_sum")


def ended(state: MigrationState, *disks: CopiedDisk) -> tuple[float, float, float]:
    before = counted()
    totals = TOTALS if state is MigrationState.COMPLETED else None
    telemetry.migration_ended(make_migration(state=state, disks=disks, totals=totals))
    after = counted()
    return (after[0] - before[0], after[1] - before[1], round(after[2] - before[2], 6))


def test_bytes_and_the_time_until_the_last_had_caught_up_are_counted() -> None:
    two = (
        CopiedDisk("vda", "/x", copied_bytes=700, ready_ms=2000),
        CopiedDisk("vdb", "/y", copied_bytes=300, ready_ms=5000),
    )
    assert ended(MigrationState.COMPLETED, *two) == (1000, 1, 5)


def test_no_time_is_made_up_and_what_failed_does_not_count() -> None:
    unseen = CopiedDisk("vda", "/x", copied_bytes=700)
    assert ended(MigrationState.COMPLETED, unseen) == (700, 0, 0)
    assert ended(MigrationState.FAILED, unseen) == (0, 0, 0)
    assert ended(MigrationState.COMPLETED) == (0, 0, 0)
