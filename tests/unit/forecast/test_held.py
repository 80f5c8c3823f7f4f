"""What happened, as forecasts are held against it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from tests.support.examples.samples import make_samples
from vmtune.forecast.held import Figures, by_throughput_ms, hold, last_expected_ms
from vmtune.forecast.ranges import Range
from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.disks import CopiedDisk
from vmtune.model.migration.forecast_basis import Figure, Position
from vmtune.model.migration.postcopy_figures import PostcopyFigures
from vmtune.model.migration.record import (
    Migration,
    MigrationState,
    QemuStatus,
    Totals,
    Trigger,
)

S = MigrationState
AT = datetime(2026, 11, 21, 4, 30, tzinfo=UTC)
SAMPLES = make_samples(100)  # some 9 s, 6 iterations
SOON = Figures(True, Range(1_000, 2_000, 3_000), Range(10, 20, 30), Range(1, 2, 3))
LATE = replace(SOON, total_ms=Range(60_000, 70_000, 80_000))
NEVER = Figures(False)


def migrated(state: MigrationState = S.COMPLETED, *steps: StepRecord) -> Migration:
    return Migration(
        UUID(int=1), UUID(int=2), "vm", "a", "b", Trigger.VMTUNE, "p", 1, {}, (), state, AT,
        totals=Totals(9_000, 40, 7, 1 << 30, 6) if state is S.COMPLETED else None,
        step_records=steps,
    )  # fmt: skip


def step(at_ms: int, effect: StepEffect = StepEffect.DONE) -> StepRecord:
    return StepRecord(0, at_ms, 3, "set downtime_limit_ms to 900 ms", "5 s passed", effect)


def test_what_completed_by_itself_is_held_with_what_users_had() -> None:
    found = hold(migrated(), SOON, SAMPLES)
    assert found.ended is True
    assert [found.of(figure) for figure in Figure] == [9_000, 40, 1 << 30]
    first = SAMPLES[0]
    assert found.others(Figure.TOTAL) == pytest.approx(
        first.at_ms + first.remaining_bytes / first.throughput_bytes_per_s * 1000
    )
    assert found.others(Figure.SILENCE) == SAMPLES[-2].expected_downtime_ms
    assert found.others(Figure.SENT) is None


def test_copies_of_disks_count() -> None:
    disks = (
        CopiedDisk("vda", "/x", copied_bytes=100, ready_ms=5_000),
        CopiedDisk("vdb", "/y", copied_bytes=50, ready_ms=2_000),
    )
    found = hold(replace(migrated(), disks=disks), SOON, SAMPLES)
    assert (found.total_ms, found.sent_bytes) == (14_000, (1 << 30) + 150)
    assert found.others_total_ms is None


@pytest.mark.parametrize(
    ("figures", "record", "ended"),
    [
        (SOON, migrated(S.COMPLETED, step(2_000, StepEffect.REFUSED)), True),
        (SOON, migrated(S.COMPLETED, step(2_000)), None),  # helped before it could be late
        (SOON, migrated(S.COMPLETED, step(4_000)), False),
        (NEVER, migrated(S.COMPLETED, step(1_000)), None),  # after too few passes
        (NEVER, migrated(S.COMPLETED, step(8_000)), False),
        (NEVER, migrated(S.COMPLETED), True),
        (SOON, migrated(S.CANCELLED), False),
        (LATE, migrated(S.CANCELLED), None),
        (NEVER, migrated(S.CANCELLED), False),
        (NEVER, migrated(S.FAILED), None),
    ],
)
def test_whether_it_ended_by_itself(
    figures: Figures, record: Migration, ended: bool | None
) -> None:
    found = hold(record, figures, SAMPLES)
    assert found.ended is ended
    assert (found.total_ms is not None) == bool(ended)


def test_postcopy_is_help() -> None:
    switched = [*SAMPLES[:-1], replace(SAMPLES[-1], status=QemuStatus.POSTCOPY_ACTIVE)]
    assert hold(migrated(), LATE, switched).ended is None
    counted = replace(migrated(), postcopy=PostcopyFigures(1, (1,), None, ()))
    assert hold(counted, LATE, SAMPLES).ended is None


def test_what_users_have_may_be_nothing() -> None:
    quiet = [replace(one, throughput_bytes_per_s=0) for one in SAMPLES]
    assert by_throughput_ms(quiet) is None
    assert last_expected_ms(SAMPLES[:5]) is None
    assert last_expected_ms(()) is None


@pytest.mark.parametrize(
    ("value", "position"),
    [(9, Position.BELOW), (10, Position.WITHIN), (30, Position.WITHIN), (31, Position.ABOVE)],
)
def test_where_what_happened_lies(value: float, position: Position) -> None:
    assert Range(10, 20, 30).position(value) is position
