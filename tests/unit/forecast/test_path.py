"""What a path carries, from what earlier migrations sent over it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples.migrations import make_migration
from vmtune.forecast.limits import limit_on_wire
from vmtune.forecast.path import Sent, expect_throughput, sent
from vmtune.forecast.ranges import Range
from vmtune.model.migration.record import MigrationState, Totals
from vmtune.model.tunables.tunable import Value

MIB = 1 << 20
rates = st.floats(1e5, 1e11)
any_sent = st.builds(Sent, rates, st.booleans(), st.none() | rates, st.none() | rates)


def completed(sent_mib: int, total_ms: int, downtime_ms: int, limit_mib: int | None) -> Sent | None:
    wanted = {} if limit_mib is None else {"max_bandwidth_bytes_per_s": limit_mib * MIB}
    totals = Totals(total_ms, downtime_ms, 0, sent_mib * MIB, 4)
    return sent(make_migration(state=MigrationState.COMPLETED, totals=totals, wanted=wanted))


def test_a_migration_at_its_limit_says_what_the_switchover_carried() -> None:
    """990 ms at 100 MiB/s are 99 MiB; the other 41 went in 10 ms."""
    found = completed(140, 1000, 10, 100)
    assert found is not None
    assert found.held_by_limit
    assert found.switchover_bytes_per_s == pytest.approx(4100 * MIB)


def test_a_migration_below_its_limit_says_what_the_path_carries() -> None:
    found = completed(500, 10_000, 0, 100)
    assert found == Sent(50 * MIB, held_by_limit=False)


ZSTD = {
    "max_bandwidth_bytes_per_s": 100 * MIB,
    "multifd": True,
    "multifd_channels": 2,
    "multifd_compression": "zstd",
}


def packed(sent_mib: int, of_mib: int, **values: Value) -> Sent | None:
    """Of 10 s."""
    totals = Totals(10_000, 0, 0, sent_mib * MIB, 4, normal_bytes=of_mib * MIB)
    wanted = {**ZSTD, **values}
    return sent(make_migration(state=MigrationState.COMPLETED, totals=totals, wanted=wanted))


def test_compressing_that_takes_all_the_time_says_how_fast_it_is() -> None:
    assert packed(500, 2000) == Sent(50 * MIB, False, packed_bytes_per_s=200 * MIB)
    at_its_limit = packed(1000, 2000)
    assert at_its_limit is not None
    assert (at_its_limit.held_by_limit, at_its_limit.packed_bytes_per_s) == (True, None)
    assert packed(500, 2000, multifd_compression="none") == Sent(50 * MIB, False)
    deltas = packed(500, 2000, multifd=False, xbzrle=True)
    assert deltas == Sent(50 * MIB, False), "by what changed in a page"


def test_how_fast_pages_are_compressed_says_nothing_of_the_path() -> None:
    """Another guest's pages may take more or less room."""
    slow = Sent(5e7, False, packed_bytes_per_s=2e8)
    found = expect_throughput([slow, slow], 1e9)
    assert found is not None
    assert (found.bytes_per_s.likely, found.limited) == (1e9, True)
    assert found.packed_bytes_per_s == Range(1.8e8, 2e8, pytest.approx(2.2e8))
    unlimited = expect_throughput([slow], None)
    assert unlimited is not None
    assert (unlimited.bytes_per_s.likely, unlimited.packed_bytes_per_s) == (5e7, None)


@pytest.mark.parametrize("sent_mib", [1, 31])
def test_too_little_says_nothing(sent_mib: int) -> None:
    assert completed(sent_mib, 1000, 10, 100) is None


def test_one_that_failed_says_nothing() -> None:
    record = make_migration(state=MigrationState.FAILED, totals=Totals(1000, 1, 0, 1 << 30, 4))
    assert sent(record) is None


def test_multifd_exceeds_its_limit_by_a_packet_of_each_channel() -> None:
    values = {"max_bandwidth_bytes_per_s": 31 * MIB, "multifd": True, "multifd_channels": 4}
    assert limit_on_wire(values) == 51 * MIB
    assert limit_on_wire(values | {"multifd": False}) == 31 * MIB
    assert limit_on_wire({"max_bandwidth_bytes_per_s": 0}) is None


def test_without_limit_and_history_nothing_is_known() -> None:
    assert expect_throughput([], None) is None
    assert expect_throughput([Sent(1e8, True)], None) is None


def test_a_limit_that_was_reached_before_is_believed() -> None:
    found = expect_throughput([Sent(1e8, True, 1e9)], 1e8)
    assert found is not None
    assert (found.bytes_per_s.low, found.bytes_per_s.high) == (1e8, 1e8)
    assert found.switchover_bytes_per_s.likely == 1e9


def test_a_limit_that_nothing_proves_may_not_be_reached() -> None:
    found = expect_throughput([], 1e8)
    assert found is not None
    assert found.bytes_per_s.low < 1e8 / 3
    assert found.records == 0


def test_one_that_something_else_held_up_says_nothing_of_the_path() -> None:
    found = expect_throughput([Sent(2e7, False), Sent(1e8, True)], 1e8)
    assert found is not None
    assert found.bytes_per_s.likely == 1e8


@given(st.lists(any_sent, max_size=8), st.none() | rates)
def test_no_throughput_exceeds_its_limit(past: list[Sent], limit: float | None) -> None:
    found = expect_throughput(past, limit)
    if found is None:
        assert limit is None
        return
    for range_ in (found.bytes_per_s, found.switchover_bytes_per_s):
        assert 0 < range_.low <= range_.likely <= range_.high
    assert limit is None or found.bytes_per_s.high <= limit
