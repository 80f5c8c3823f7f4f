"""How fast disks are copied, and whether the copies catch up, by looks at them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples.migrations import make_migration
from vmtune.model.migration.copy_progress import (
    WINDOW_MS,
    CopyProgress,
    Look,
    MigrationPhase,
    behind,
    paced,
    phase_of,
    remembered,
)
from vmtune.model.migration.disks import CopiedDisk, Mirrored, progressed
from vmtune.model.migration.record import MigrationState

MIB = 1 << 20
COPIED = CopiedDisk("vda", "/x", copied_bytes=9, total_bytes=9, ready_ms=5)
COMING = CopiedDisk("vdb", "/y", copied_bytes=1, total_bytes=9)


def watched(copied: int, written: int, seconds: int, size: int = 1000) -> CopiedDisk:
    """A disk after so many looks, one a second, at rates in MiB a second."""
    disks: tuple[CopiedDisk, ...] = (CopiedDisk("vda", "/x"),)
    looks: tuple[Look, ...] = ()
    for second in range(seconds + 1):
        total = (size + written * second) * MIB
        now = Mirrored(total, min(total, (1 + copied * second) * MIB), False)
        look = Look(second * 1000, {"vda": now})
        looks = remembered(looks, look)
        disks = paced(progressed(disks, look.seen, look.at_ms), looks)
    return disks[0]


def test_the_rates_and_the_time_left_are_those_of_the_last_seconds() -> None:
    disk = watched(copied=50, written=10, seconds=10)
    assert (disk.bytes_per_s, disk.written_bytes_per_s) == (50 * MIB, 10 * MIB)
    assert disk.converges is True
    left = 1000 + 100 - 501
    assert disk.left_ms == pytest.approx(left / 40 * 1000, abs=1)


def test_nothing_is_told_of_the_first_moments() -> None:
    disk = watched(copied=50, written=10, seconds=1)
    assert (disk.bytes_per_s, disk.left_ms, disk.converges) == (0, None, None)


@pytest.mark.parametrize("written", [50, 60])
def test_a_guest_that_writes_faster_than_is_copied_is_told_after_a_window(written: int) -> None:
    assert watched(50, written, seconds=9).converges is None
    disk = watched(50, written, seconds=WINDOW_MS // 1000)
    assert (disk.converges, disk.left_ms) == (False, None)
    assert behind((disk, COPIED)) == (disk,)


def test_a_copy_that_stands_does_not_catch_up() -> None:
    disk = watched(copied=0, written=0, seconds=WINDOW_MS // 1000)
    assert (disk.converges, disk.bytes_per_s) == (False, 0)


def test_a_slow_copy_that_stands_between_bursts_is_not_taken_for_one_that_stays_behind() -> None:
    """At 1 MiB/s QEMU sent 16 MiB at once, and nothing for 16 s."""
    looks: tuple[Look, ...] = ()
    for second in range(64):
        copied = 16 * MIB * (1 + second // 16)
        looks = remembered(looks, Look(second * 1000, {"vda": Mirrored(99 * MIB, copied, False)}))
        (disk,) = paced((CopiedDisk("vda", "/x"),), looks)
        assert disk.converges is not False


def test_it_is_told_no_more_once_it_catches_up_again() -> None:
    looks = (
        Look(0, {"vda": Mirrored(100, 1, False)}),
        Look(20_000, {"vda": Mirrored(100, 51, False)}),
    )
    (disk,) = paced((CopiedDisk("vda", "/x", converges=False),), looks)
    assert disk.converges is True


@given(st.lists(st.tuples(st.integers(0, 1 << 40), st.integers(0, 1 << 40)), max_size=30))
def test_whatever_is_seen_rates_and_times_are_no_less_than_nothing(
    seen: list[tuple[int, int]],
) -> None:
    disks: tuple[CopiedDisk, ...] = (CopiedDisk("vda", "/x"),)
    looks: tuple[Look, ...] = ()
    for second, (total, copied) in enumerate(seen):
        looks = remembered(looks, Look(second * 1000, {"vda": Mirrored(total, copied, False)}))
        assert len(looks) <= WINDOW_MS // 1000 + 1
        (disk,) = disks = paced(disks, looks)
        assert min(disk.bytes_per_s, disk.written_bytes_per_s, disk.left_ms or 0) >= 0
        assert disk.left_ms is None or disk.converges


def test_the_time_left_is_that_of_the_slowest() -> None:
    one, other = (CopiedDisk("vda", "/x", left_ms=5), CopiedDisk("vdb", "/y", left_ms=9))
    assert CopyProgress((one, other, COPIED), 1).left_ms == 9
    assert CopyProgress((one, COMING), 1).left_ms is None
    assert CopyProgress((COPIED,), 1).left_ms is None


def test_the_share_counts_the_memory_that_comes_after() -> None:
    progress = CopyProgress((COPIED, COMING), 1)
    assert progress.share(None) == pytest.approx(10 / 18)
    assert progress.share(2) == pytest.approx(10 / 20)
    assert CopyProgress((COPIED,), 1).share(None) == 0.99


@pytest.mark.parametrize(
    ("state", "disks", "phase"),
    [
        (MigrationState.QUEUED, (), None),
        (MigrationState.STARTING, (), None),
        (MigrationState.STARTING, (COPIED, COMING), MigrationPhase.DISKS),
        (MigrationState.STARTING, (COPIED,), MigrationPhase.MEMORY),
        (MigrationState.ACTIVE, (COMING,), MigrationPhase.MEMORY),
        (MigrationState.ACTIVE, (), MigrationPhase.MEMORY),
        (MigrationState.COMPLETED, (COPIED,), None),
    ],
)
def test_disks_come_before_the_memory(
    state: MigrationState, disks: tuple[CopiedDisk, ...], phase: MigrationPhase | None
) -> None:
    assert phase_of(make_migration(state=state, disks=disks)) is phase
