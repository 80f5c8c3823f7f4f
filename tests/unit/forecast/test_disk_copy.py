"""How long the copy of disks takes, from their sizes and from earlier copies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples.migrations import make_migration
from vmtune.forecast.disk_copy import (
    Copied,
    CopyProspect,
    copied,
    expect_copy,
    limit_of,
    with_copy,
)
from vmtune.forecast.path import Throughput
from vmtune.forecast.prospect import Prospect
from vmtune.forecast.ranges import Range
from vmtune.model.host.disks import Disk
from vmtune.model.migration.disks import CopiedDisk
from vmtune.model.migration.record import MigrationState

MIB = 1 << 20
HALF_FULL = Disk("vda", path="/x", capacity_bytes=4000 * MIB, allocated_bytes=2000 * MIB)
PATH = Throughput(Range.exactly(100 * MIB), Range(800 * MIB, 1000 * MIB, 1100 * MIB), 3)
rates = st.floats(1e5, 1e11)


def test_what_the_image_takes_is_copied_at_the_pace_of_earlier_copies() -> None:
    found = expect_copy([HALF_FULL], [Copied(500 * MIB, False)], PATH, None)
    assert found.bytes.likely == 2000 * MIB
    assert found.ms is not None
    assert found.ms.likely == 4000
    assert found.ms.low == pytest.approx(4000 / 1.2)
    assert found.ms.high == pytest.approx(5000 * 1.05)
    assert found.records == 1


def test_the_limit_holds_for_each_disk() -> None:
    two = [HALF_FULL, HALF_FULL]
    found = expect_copy(two, [Copied(500 * MIB, False)], PATH, 100 * MIB)
    assert found.ms is not None
    assert found.ms.likely == 4000 * MIB / (200 * MIB) * 1000


@pytest.mark.parametrize(
    ("memory", "disks", "limit"),
    [(None, None, None), (9, None, 9), (9, 5, 5), (9, 0, None), (0, 5, 5), (0, None, None)],
)
def test_disks_have_a_limit_of_their_own_or_the_memorys(
    memory: int | None, disks: int | None, limit: int | None
) -> None:
    given = {"max_bandwidth_bytes_per_s": memory, "copy_bandwidth_bytes_per_s": disks}
    assert limit_of({name: value for name, value in given.items() if value is not None}) == limit


def test_storage_that_nobody_knows_may_be_slower_than_the_network() -> None:
    found = expect_copy([HALF_FULL], [], PATH, None)
    assert found.bytes_per_s is not None
    assert found.bytes_per_s.low == pytest.approx(240 * MIB)
    assert found.bytes_per_s.likely == 1000 * MIB
    assert expect_copy([HALF_FULL], [], None, None).ms is None


def test_a_copy_that_was_held_by_its_limit_says_that_the_same_limit_is_kept() -> None:
    found = expect_copy([HALF_FULL], [Copied(99 * MIB, True)], PATH, 100 * MIB)
    assert found.bytes_per_s == Range(99 * MIB, 100 * MIB, 100 * MIB)


def test_a_disk_whose_size_is_not_known_may_be_copied_whole() -> None:
    unknown = Disk("vdb", path="/y", capacity_bytes=1000 * MIB)
    found = expect_copy([unknown], [], PATH, None)
    assert (found.bytes, found.sizes_known) == (Range(0, 1000 * MIB, 1000 * MIB), False)


def test_what_lies_beneath_is_copied_along_but_incrementally() -> None:
    chained = Disk("vda", path="/x", capacity_bytes=1000, allocated_bytes=10, backing=("/base",))
    assert expect_copy([chained], [], PATH, None).bytes.high == 1000
    assert expect_copy([chained], [], PATH, None, incremental=True).bytes.high < 11


@pytest.mark.parametrize(
    ("state", "disks", "said"),
    [
        (MigrationState.COMPLETED, (200, 2000), Copied(100 * MIB, False)),
        (MigrationState.COMPLETED, (200, 1000), Copied(200 * MIB, True)),
        (MigrationState.FAILED, (200, 2000), None),
        (MigrationState.COMPLETED, (10, 2000), None),
        (MigrationState.COMPLETED, (200, None), None),
        (MigrationState.COMPLETED, None, None),
    ],
)
def test_what_a_record_says(
    state: MigrationState, disks: tuple[int, int | None] | None, said: Copied | None
) -> None:
    copies: tuple[CopiedDisk, ...] = ()
    if disks is not None:
        mib, ready_ms = disks
        copies = (CopiedDisk("vda", "/x", copied_bytes=mib * MIB, ready_ms=ready_ms),)
    wanted = {"max_bandwidth_bytes_per_s": 200 * MIB}
    assert copied(make_migration(state=state, disks=copies, wanted=wanted)) == said


@given(
    st.lists(st.builds(Copied, rates, st.booleans()), max_size=5),
    st.none() | rates,
    st.none() | st.integers(1 << 20, 1 << 36),
)
def test_bounds_stay_in_order_and_below_the_limit(
    past: list[Copied], carried: float | None, limit: int | None
) -> None:
    path = None
    if carried is not None:
        path = Throughput(Range.exactly(carried), Range(carried * 0.9, carried, carried * 1.1), 1)
    found = expect_copy([HALF_FULL], past, path, limit)
    for each in (found.bytes, found.bytes_per_s, found.ms):
        assert each is None or 0 <= each.low <= each.likely <= each.high
    if limit is not None and found.bytes_per_s is not None:
        assert found.bytes_per_s.high <= limit


def test_time_and_bytes_of_both_are_added() -> None:
    memory = Prospect(True, Range(1, 2, 3), Range(4, 5, 6), Range(7, 8, 9), None, None, None)
    both = with_copy(memory, CopyProspect(Range(10, 20, 30), Range(100, 200, 300), None, 0, True))
    assert (both.total_ms, both.sent_bytes) == (Range(101, 202, 303), Range(17, 28, 39))
    assert both.silence_ms == memory.silence_ms
