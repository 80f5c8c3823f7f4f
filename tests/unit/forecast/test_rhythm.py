"""Guests that write in bursts."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vmtune.forecast.conditions import conditions_of
from vmtune.forecast.course import AutoConverge, Conditions, Moment, follow
from vmtune.forecast.dirty_curve import DirtyCurve
from vmtune.forecast.errors import AS_COMPUTED
from vmtune.forecast.path import Throughput
from vmtune.forecast.probe import WINDOWS_MS, DirtyProbe
from vmtune.forecast.prospect import Prospect, expect
from vmtune.forecast.ranges import Range
from vmtune.forecast.rhythm import GUESSES, Rhythm, bursty
from vmtune.model.host.dirty_rates import DirtyPoint

MIB = 1 << 20
Writes = Callable[[float], float]
"""Bytes dirtied by the time worked."""


def in_order(mb_per_s: float, region_mb: float) -> Writes:
    return lambda ms: min(region_mb * 1e6, mb_per_s * 1e3 * ms)


def anywhere(mb_per_s: float, region_mb: float) -> Writes:
    return lambda ms: region_mb * 1e6 * -math.expm1(-mb_per_s * ms / 1e3 / region_mb)


def skewed(mb_per_s: float, region_mb: float) -> Writes:
    """Nine of ten writes go to a tenth of the pages."""
    hot, cold = anywhere(mb_per_s * 0.9, region_mb / 10), anywhere(mb_per_s / 10, region_mb * 0.9)
    return lambda ms: hot(ms) + cold(ms)


def probed(writes: Writes, rhythm: Rhythm | None = None, seed: int = 0) -> DirtyProbe:
    """Of a guest of 256 MiB, one time after the other, by a sample of its pages."""
    memory, chance, at_ms = 256 * MIB, random.Random(seed), 0.0
    pages, points = 4096, []
    for ms in WINDOWS_MS:
        worked = ms if rhythm is None else rhythm.worked_ms(at_ms, at_ms + ms)
        share = min(1.0, writes(worked) / memory)
        found = sum(chance.random() < share for _ in range(pages))
        points.append(DirtyPoint(float(ms), found / pages * memory))
        at_ms += ms + chance.uniform(20, 60)
    return DirtyProbe(tuple(points), memory, 200 * MIB, datetime.now(UTC), 18_000)


def forecast(probe: DirtyProbe, mib_per_s: float, **values: int | bool) -> Prospect:
    held, lifted = Range.exactly(mib_per_s * MIB), Range.exactly(400.0 * MIB)
    path = Throughput(held, lifted, 3, limited=True)
    return expect(probe, path, conditions_of(values), errors=AS_COMPUTED)


@given(
    st.floats(1, 5000), st.floats(1, 5000), st.floats(0, 1e4), st.floats(0, 1e4), st.floats(0, 1e4)
)  # fmt: skip
def test_it_works_part_of_any_time(
    works: float, rests: float, phase: float, first: float, then: float
) -> None:
    rhythm = Rhythm(works, rests, phase)
    one, other = rhythm.worked_ms(0, first), rhythm.worked_ms(first, first + then)
    assert -1e-6 <= one <= first + 1e-6
    assert rhythm.worked_ms(0, first + then) == pytest.approx(one + other, abs=1e-6)
    assert rhythm.worked_ms(first, first + rhythm.period_ms) == pytest.approx(works, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "writes",
    [in_order(40, 120), in_order(5, 100), anywhere(60, 100), skewed(80, 150), skewed(20, 60)],
)
def test_a_guest_that_writes_steadily_is_none(writes: Writes, seed: int) -> None:
    assert bursty(probed(writes, seed=seed)) == ()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("writes", "rhythm"), [
    (in_order(200, 100), Rhythm(500, 1500, 300)),
    (in_order(300, 90), Rhythm(300, 1000, 100)),
    (anywhere(250, 120), Rhythm(600, 2000, 900)),
])  # fmt: skip
def test_one_that_writes_in_bursts_is_told_by_a_probe(
    writes: Writes, rhythm: Rhythm, seed: int
) -> None:
    found = bursty(probed(writes, rhythm, seed))
    assert len(found) == GUESSES
    shares = sorted(each.rhythm.works_ms / each.rhythm.period_ms for each in found)
    share = rhythm.works_ms / rhythm.period_ms
    assert share / 2.5 < shares[GUESSES // 2] < share * 2.5
    assert len({each.rhythm.phase_ms for each in found}) > GUESSES / 2


def test_a_qemu_of_whole_seconds_does_not_tell() -> None:
    probe = probed(in_order(200, 100), Rhythm(500, 1500))
    seconds = tuple(point for point in probe.points if point.after_ms > 700)
    assert bursty(probe) != ()
    assert bursty(replace(probe, points=seconds)) == ()


def test_a_migration_ends_in_a_pause() -> None:
    """By the mean of what it dirties it never would."""
    probe = probed(in_order(200, 100), Rhythm(500, 1500, 300))
    found = forecast(probe, 60, downtime_limit_ms=100)
    assert found.total_ms is not None
    assert 160 / 60 * 1000 < found.total_ms.likely < 160 / 60 * 1000 + 6000
    assert found.total_ms.low < found.total_ms.likely < found.total_ms.high
    mean = follow(probe.curve(), Moment(160.0 * MIB), Conditions(60.0 * MIB, 100, limited=True))
    assert not mean.ends


def test_one_whose_pauses_are_too_short_does_not_end() -> None:
    probe = probed(in_order(400, 150), Rhythm(400, 600, 300))
    found = forecast(probe, 10, downtime_limit_ms=30)
    assert (found.ends, found.total_ms) == (False, None)
    assert found.needs is not None
    assert found.needs.throughput_bytes_per_s is not None
    assert found.needs.throughput_bytes_per_s > 10 * MIB


@pytest.mark.parametrize("schedule", [None, AutoConverge(max_percent=30)])
def test_a_course_that_makes_no_progress_is_given_up(schedule: AutoConverge | None) -> None:
    rhythm, curve = Rhythm(2000, 10), DirtyCurve((DirtyPoint(100, 50e6), DirtyPoint(200, 50e6)))
    for limited in (False, True):
        there = Conditions(20e6, 30, auto_converge=schedule, limited=limited)
        found = follow(curve, Moment(100e6), there, rhythm)
        assert not found.ends
        assert found.left_ms < 120_000


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.floats(0, 300), min_size=4, max_size=12), st.integers(1, 400), st.integers(0, 500),
    st.booleans(),
)  # fmt: skip
def test_whatever_is_measured_gives_bounds_in_order(
    dirtied_mib: list[float], pace: int, limit_ms: int, throttled: bool
) -> None:
    points = tuple(
        DirtyPoint(ms, mib * MIB) for ms, mib in zip(WINDOWS_MS, dirtied_mib, strict=False)
    )
    probe = DirtyProbe(points, 384 * MIB, 300 * MIB, datetime.now(UTC), 18_000)
    found = forecast(probe, pace, downtime_limit_ms=limit_ms, auto_converge=throttled)
    figures = (found.total_ms, found.silence_ms, found.sent_bytes, found.passes)
    assert all(figures) or not any(figures)
    assert (found.needs is None) == all(figures)
    for figure in filter(None, figures):
        assert 0 <= figure.low <= figure.likely <= figure.high < math.inf


def test_a_guest_that_rests_is_an_idle_one() -> None:
    curve = DirtyCurve((DirtyPoint(1000, 100e6),))
    there, moment = Conditions(100e6, 300), Moment(500e6)
    resting = follow(curve, moment, there, Rhythm(1, 1e9, 2))
    assert resting == follow(DirtyCurve(()), moment, there)
    always = follow(curve, moment, there, Rhythm(1e9, 1))
    assert always.ends is follow(curve, moment, there).ends is False
