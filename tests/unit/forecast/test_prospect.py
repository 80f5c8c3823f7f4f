"""The forecast of a migration that is not begun."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.forecast.conditions import conditions_of
from vmtune.forecast.course import AutoConverge, Conditions
from vmtune.forecast.errors import Errors
from vmtune.forecast.needs import LEAST_BUSY
from vmtune.forecast.path import Throughput
from vmtune.forecast.probe import DirtyProbe, pages_per_gib
from vmtune.forecast.prospect import (
    Prospect,
    expect,
    first_share,
    later_share,
    likely_course,
    used_bytes,
)
from vmtune.forecast.ranges import Range
from vmtune.model.host.dirty_rates import DirtyPoint
from vmtune.model.host.page_contents import PageContents
from vmtune.model.tunables.tunable import Value

MIB = 1 << 20
EXACT = Errors(Range.exactly(1), Range.exactly(1), Range.exactly(1), 0.0)
LIMITS = Conditions(1.0, 300)


def probe(mib_per_s: float, region_mib: float = 10_000, used_mib: int | None = 1040) -> DirtyProbe:
    """Of a guest of 4 GiB that writes at a rate to a region, over and over."""
    points = tuple(
        DirtyPoint(ms, min(region_mib, mib_per_s * ms / 1000) * MIB) for ms in (64, 512, 4096, 8192)
    )
    used = None if used_mib is None else used_mib * MIB
    return DirtyProbe(points, 4096 * MIB, used, datetime.now(UTC), 17_000)


def path(mib_per_s: float, doubt: float = 0.0) -> Throughput:
    held = Range(mib_per_s * (1 - doubt) * MIB, mib_per_s * MIB, mib_per_s * (1 + doubt) * MIB)
    return Throughput(held, held, 3)


def test_an_idle_guest_takes_as_long_as_its_memory() -> None:
    found = expect(probe(0), path(100), LIMITS, errors=EXACT)
    assert found.ends is True
    assert found.total_ms is not None
    assert found.total_ms.likely == pytest.approx(10_000, rel=0.02)
    assert found.passes == Range.exactly(1)
    assert found.needs is None


def test_a_guest_that_wrote_nothing_and_whose_memory_cannot_be_seen_may_be_empty() -> None:
    unknown = replace(path(100), limited=False)
    found = expect(probe(0, used_mib=None), unknown, LIMITS, errors=EXACT)
    assert found.ends is True
    assert found.total_ms is not None
    assert found.total_ms.low < 5000 < found.total_ms.high


def test_the_throttle_that_it_needs_suffices_for_one_that_needs_half_of_its_time() -> None:
    busy = probe(300, region_mib=1500)
    found = expect(busy, path(100), LIMITS).needs
    assert found is not None and found.throttle_percent is not None
    needed = round(found.throttle_percent)
    for share, ends in ((LEAST_BUSY, True), (1.0, True)):
        assert likely_course(busy, path(100), LIMITS, False, needed, share).ends is ends


def test_a_guest_that_dirties_as_fast_as_is_sent_does_not_end() -> None:
    found = expect(probe(200), path(100), LIMITS)
    assert (found.ends, found.total_ms, found.silence_ms) == (False, None, None)
    assert found.needs is not None
    assert found.needs.throughput_bytes_per_s is not None
    assert 200 * MIB < found.needs.throughput_bytes_per_s < 300 * MIB
    assert expect(probe(200), path(300), LIMITS).ends is True


def test_what_it_needs_lets_it_end() -> None:
    busy = probe(200, region_mib=400)
    helps = expect(busy, path(100), LIMITS).needs
    assert helps is not None and helps.downtime_limit_ms is not None
    helped = replace(LIMITS, downtime_limit_ms=helps.downtime_limit_ms)
    assert expect(busy, path(100), helped).total_ms is not None


def test_auto_converge_lets_it_end_at_a_price() -> None:
    held = Conditions(1.0, 300, auto_converge=AutoConverge())
    found = expect(probe(150), path(100), held)
    assert found.ends is True
    assert found.throttle_percent is not None
    assert found.throttle_percent.likely >= 40


def test_where_the_bounds_of_the_path_disagree_it_may_not_end() -> None:
    found = expect(probe(80), path(100, doubt=0.5), LIMITS)
    assert found.ends is None
    assert found.total_ms is not None


def test_the_silence_is_sent_faster_where_the_limit_is_lifted() -> None:
    busy, limited = probe(50), path(100)
    lifted = replace(limited, switchover_bytes_per_s=Range.exactly(1000 * MIB))
    slow, fast = (expect(busy, each, LIMITS, errors=EXACT) for each in (limited, lifted))
    assert slow.silence_ms is not None and fast.silence_ms is not None
    assert fast.silence_ms.likely == pytest.approx(slow.silence_ms.likely / 10)


def test_compressed_pages_widen_the_bounds() -> None:
    plain, packed = (
        expect(probe(10), path(100), LIMITS, compressed=each, errors=EXACT)
        for each in (False, True)
    )
    assert plain.total_ms is not None and packed.total_ms is not None
    assert packed.total_ms.low < plain.total_ms.low / 2
    assert packed.total_ms.high >= plain.total_ms.high


def holding(
    zero_share: float, packed_share: float, changed: PageContents | None = None
) -> DirtyProbe:
    every = PageContents(1024, zero_share, packed_share)
    held = round(1000 * MIB * (1 - zero_share))
    return replace(probe(10), contents=every, changed=changed, held_bytes=held)


def test_pages_are_sent_no_faster_than_they_are_compressed() -> None:
    """1 GiB of memory at 200 MiB/s, of which a quarter is sent: the path would take 1,000 MiB/s."""
    quarter = PageContents(64, 0.0, 0.25)
    guest = replace(probe(0), contents=quarter)
    by_threads = replace(path(1000), packed_bytes_per_s=Range.exactly(200 * MIB))
    found = expect(guest, by_threads, LIMITS, compressed=True, errors=EXACT)
    assert found.total_ms is not None
    assert found.total_ms.likely == pytest.approx(5200, rel=0.05)
    for as_they_are in (
        expect(guest, by_threads, LIMITS, errors=EXACT),
        expect(guest, path(1000), LIMITS, errors=EXACT),
    ):
        assert as_they_are.total_ms is not None
        assert as_they_are.total_ms.likely == pytest.approx(1040, rel=0.05)
    fast = replace(path(10), limited=True, packed_bytes_per_s=Range.exactly(200 * MIB))
    held = expect(guest, fast, LIMITS, compressed=True, errors=EXACT)
    assert held.total_ms is not None
    assert held.total_ms.likely == pytest.approx(26_000, rel=0.05), "the limit holds it"


def test_the_likely_course_is_held_by_compression_too() -> None:
    half = PageContents(64, 0.0, 0.5)
    guest = replace(probe(10), contents=half, changed=half)
    fast = replace(path(1000), packed_bytes_per_s=Range.exactly(200 * MIB))
    held, free = (
        likely_course(guest, each, LIMITS, compressed=True) for each in (fast, path(1000))
    )
    assert held.left_ms > 4 * free.left_ms


def test_a_guest_that_writes_faster_than_is_compressed_needs_no_faster_path() -> None:
    half = PageContents(64, 0.0, 0.5)
    guest = replace(probe(300), contents=half, changed=half)
    by_threads = replace(path(1000), packed_bytes_per_s=Range.exactly(200 * MIB))
    found = expect(guest, by_threads, LIMITS, compressed=True, errors=EXACT)
    assert found.ends is False
    assert found.needs is not None
    assert found.needs.throughput_bytes_per_s is None


def test_pages_of_zeros_are_not_sent_in_the_first_pass() -> None:
    known = expect(holding(0.5, 1.0), path(100), LIMITS, errors=EXACT)
    unknown = expect(probe(10), path(100), LIMITS, errors=EXACT)
    assert known.sent_bytes is not None and unknown.sent_bytes is not None
    assert known.sent_bytes.likely < 0.6 * unknown.sent_bytes.likely
    assert known.sent_bytes.high < 0.8 * unknown.sent_bytes.high


def test_what_is_backed_is_taken_where_the_sample_does_not_contradict_it() -> None:
    """The sample errs by some percent; what the process has in memory does not."""
    sampled = holding(0.5, 1.0)
    backed = replace(sampled, used_bytes=(510 + 40) * MIB)
    assert used_bytes(backed).likely == 510 * MIB
    assert used_bytes(backed).low < 500 * MIB < used_bytes(backed).high
    zeros = replace(sampled, used_bytes=(900 + 40) * MIB)
    assert used_bytes(zeros) == used_bytes(replace(sampled, used_bytes=None))
    assert used_bytes(zeros).likely == 500 * MIB


def test_how_well_pages_are_packed_narrows_the_bounds() -> None:
    known = expect(holding(0.0, 0.1), path(100), LIMITS, compressed=True, errors=EXACT)
    unknown = expect(probe(10), path(100), LIMITS, compressed=True, errors=EXACT)
    assert known.total_ms is not None and unknown.total_ms is not None
    assert known.total_ms.likely < unknown.total_ms.low
    assert known.total_ms.high / known.total_ms.low < unknown.total_ms.high / unknown.total_ms.low


def test_what_the_guest_writes_tells_of_later_passes() -> None:
    written = PageContents(100, 0.25, 0.5)
    plain, packed = (later_share(holding(0.9, 0.1, written), each) for each in (False, True))
    assert (plain.likely, packed.likely) == (0.75, 0.375)
    too_few = PageContents(5, 0.25, 0.5)
    plain, packed = (later_share(holding(0.9, 0.1, too_few), each) for each in (False, True))
    assert (plain.likely, plain.high, packed.likely) == (1.0, 1.0, 0.1)
    assert (later_share(probe(10)), later_share(probe(10), True).likely) == (Range.exactly(1), 0.6)


def test_of_xbzrle_pages_tell_their_zeros_alone() -> None:
    xbzrle = conditions_of({"xbzrle": True})
    found = expect(holding(0.9, 0.1), path(100), xbzrle, compressed=True, errors=EXACT)
    assert found.sent_bytes is not None
    assert found.sent_bytes.likely < 400 * MIB  # of 1,000 that are in use
    packed = expect(holding(0.0, 0.1), path(100), xbzrle, compressed=True, errors=EXACT)
    assert packed.sent_bytes is not None
    assert packed.sent_bytes.likely > 1000 * MIB


@pytest.mark.parametrize(("cache", "ends"), [({}, True), ({"xbzrle_cache_size_bytes": MIB}, False)])
def test_xbzrle_helps_a_guest_whose_pages_fit_into_its_cache(
    cache: dict[str, Value], ends: bool
) -> None:
    """By QEMU's own size of it, too."""
    values = {"xbzrle": True, "downtime_limit_ms": 100} | cache
    found = expect(probe(200, 50), path(100), conditions_of(values), True, EXACT)
    assert (found.total_ms is not None) == ends
    assert expect(probe(200, 50), path(100), conditions_of(cache), errors=EXACT).ends is False


@given(st.floats(0, 1), st.floats(0.001, 1), st.integers(1, 1024), st.booleans())
def test_the_share_that_is_sent_is_one(
    zeros: float, packed: float, pages: int, compressed: bool
) -> None:
    held = holding(zeros, packed, PageContents(pages, zeros, packed))
    for share in (first_share(held, compressed), later_share(held, compressed)):
        assert 0 < share.low <= share.likely <= share.high <= 1


def test_memory_that_cannot_be_seen_may_be_all_of_it() -> None:
    assert used_bytes(probe(10, used_mib=None)).high == 4096 * MIB
    assert used_bytes(probe(10)).likely == 1000 * MIB
    assert used_bytes(probe(10, used_mib=5000)).high == 4096 * MIB
    assert used_bytes(probe(2000)) == Range.exactly(4096 * MIB)  # it dirties more than it has


@given(
    st.floats(0, 500), st.floats(1, 4000), st.floats(10, 2000), st.floats(0, 0.9),
    st.integers(0, 5000), st.booleans(),
)  # fmt: skip
def test_bounds_are_in_order(
    rate: float, region: float, pace: float, doubt: float, limit_ms: int, compressed: bool
) -> None:
    found = expect(
        probe(rate, region), path(pace, doubt), Conditions(1.0, limit_ms), compressed=compressed
    )
    ranges = (found.total_ms, found.silence_ms, found.sent_bytes, found.passes)
    assert all((each is None) == (found.total_ms is None) for each in ranges)
    assert (found.needs is None) == (found.total_ms is not None)
    for each in ranges:
        assert each is None or 0 <= each.low <= each.likely <= each.high < math.inf


@given(st.floats(1, 100), st.floats(1.05, 4))
def test_a_faster_path_is_never_expected_to_take_longer(rate: float, faster: float) -> None:
    def total(found: Prospect) -> float:
        return math.inf if found.total_ms is None else found.total_ms.likely

    slow = total(expect(probe(rate), path(120), LIMITS, errors=EXACT))
    fast = total(expect(probe(rate), path(120 * faster), LIMITS, errors=EXACT))
    assert fast <= slow * 1.02


@pytest.mark.parametrize(("gib", "pages"), [(0.25, 16384), (1, 8192), (64, 128), (4096, 128)])
def test_larger_vms_are_sampled_more_thinly(gib: float, pages: int) -> None:
    assert pages_per_gib(int(gib * (1 << 30))) == pages


def test_short_times_that_were_not_measured_widen_the_bounds() -> None:
    """A guest that may rewrite all of its region at once is as likely as one that writes evenly."""
    seconds = tuple(DirtyPoint(float(ms), 64.0 * MIB) for ms in (1000, 2000, 4000))
    short = (DirtyPoint(64.0, 4.1 * MIB), *seconds)
    at = datetime(2026, 11, 21, tzinfo=UTC)
    path = Throughput(Range.exactly(100.0 * MIB), Range.exactly(100.0 * MIB), 3)
    known, unknown = (
        expect(DirtyProbe(points, 256 * MIB, 200 * MIB, at, 1.0), path, Conditions(1.0, 300.0))
        for points in (short, seconds)
    )
    assert known.ends is True
    assert unknown.ends is None
