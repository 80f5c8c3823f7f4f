"""The arithmetic of the pictures: ticks, figures, thinning and scales."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.bench.plots.points import apart, thinned, within
from vmtune.rendering.scale import Scale, decades, figure, ticks

finite = st.floats(-1e9, 1e9)


@given(finite, st.floats(1e-6, 1e9), st.integers(1, 15))
def test_ticks_are_round_even_and_within(low: float, span: float, count: int) -> None:
    span = max(span, abs(low) / 1e6)
    high = low + span
    found = ticks(low, high, count)
    slack = span * 1e-6 + abs(low) * 1e-9
    assert all(low - slack <= tick <= high + slack for tick in found)
    assert len(found) <= count + 2
    steps = [b - a for a, b in itertools.pairwise(found)]
    assert all(math.isclose(step, steps[0], rel_tol=1e-3) for step in steps)


@given(st.floats(1e-3, 1e9), st.floats(1.2, 1e6))
def test_a_logarithmic_axis_has_ticks_within(low: float, ratio: float) -> None:
    found = decades(low, low * ratio)
    assert all(low <= tick <= low * ratio for tick in found)
    assert found == sorted(found)
    assert len(found) >= 1 or ratio < 2.6


def test_figures_are_short_and_exact_enough() -> None:
    shown = [figure(v) for v in (0, 0.25, 2.5, 10, 250, 1500, 1e6, -1.5, 0.0005)]
    assert shown == ["0", "0.25", "2.5", "10", "250", "1,500", "1,000,000", "-1.5", "0.0005"]


points = st.lists(st.tuples(st.floats(0, 1000), finite), max_size=400).map(sorted)


@given(points, st.integers(1, 40))
def test_thinning_keeps_the_outline(given_points: list[tuple[float, float]], columns: int) -> None:
    kept = thinned(given_points, 0, 1000, columns)
    assert len(kept) <= max(4 * columns + 4, 4)
    assert set(kept) <= set(given_points)
    assert [p[0] for p in kept] == sorted(p[0] for p in kept)
    if given_points:
        assert min(p[1] for p in kept) == min(p[1] for p in given_points)
        assert max(p[1] for p in kept) == max(p[1] for p in given_points)
        assert (kept[0], kept[-1]) == (given_points[0], given_points[-1])


def test_lines_reach_beyond_the_window_by_one_point() -> None:
    line = [(float(n), 0.0) for n in range(10)]
    assert [p[0] for p in within(line, 3.5, 6.5)] == [3, 4, 5, 6, 7]
    assert within([], 0, 1) == []


def test_a_scale_keeps_to_its_ends() -> None:
    straight = Scale(0, 10, 100, 200)
    assert [straight(v) for v in (-5, 0, 5, 10, 50)] == [100, 100, 150, 200, 200]
    log = Scale(1, 100, 0, 2, logarithmic=True)
    assert [log(v) for v in (0, 1, 10, 100)] == pytest.approx([0, 0, 1, 2])


@given(st.lists(st.floats(0, 1000), max_size=50).map(sorted), st.floats(1, 50))
def test_marks_that_would_touch_are_left_out(places: list[float], least: float) -> None:
    kept = [places[number] for number in apart(places, least)]
    assert all(b - a >= least for a, b in itertools.pairwise(kept))
    assert bool(kept) is bool(places)
