from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.forecast.dirty_curve import DirtyCurve, concave, fitted
from vmtune.model.host.dirty_rates import DirtyPoint

POINTS = st.lists(
    st.builds(DirtyPoint, st.floats(1, 1e5), st.floats(0, 1e9)), min_size=1, max_size=8
)
MS = st.floats(0, 1e6)


@given(POINTS, MS, MS)
def test_it_never_falls_and_never_gets_steeper(
    points: list[DirtyPoint], one: float, other: float
) -> None:
    curve = concave(points)
    low, high = sorted((one, other))
    slack = 1 + curve.dirty_bytes(high) * 1e-6
    assert curve.dirty_bytes(low) <= curve.dirty_bytes(high) + slack
    middle = curve.dirty_bytes((low + high) / 2)
    assert middle >= (curve.dirty_bytes(low) + curve.dirty_bytes(high)) / 2 - slack


@given(POINTS)
def test_no_observation_is_above_it(points: list[DirtyPoint]) -> None:
    curve = concave(points)
    for point in points:
        assert curve.dirty_bytes(point.after_ms) >= point.dirty_bytes * (1 - 1e-6) - 1e-3


def test_nothing_is_dirty_at_once_or_without_observations() -> None:
    assert DirtyCurve(()).dirty_bytes(1000) == 0
    assert concave([DirtyPoint(0, 500)]).points == ()
    assert concave([DirtyPoint(100, 500)]).dirty_bytes(0) == 0


def test_a_working_set_flattens_it() -> None:
    curve = concave([DirtyPoint(100, 400), DirtyPoint(200, 600), DirtyPoint(400, 600)])
    assert [curve.dirty_bytes(ms) for ms in (100, 150, 300, 4000)] == [400, 500, 600, 600]


def test_before_the_first_observation_it_bends_as_between_the_first_two() -> None:
    steady = concave([DirtyPoint(100, 400), DirtyPoint(200, 800)]).bent()
    assert steady.dirty_bytes(50) == pytest.approx(200)
    bending = concave([DirtyPoint(100, 400), DirtyPoint(400, 800)]).bent()
    assert bending.dirty_bytes(25) == pytest.approx(200)
    flat = concave([DirtyPoint(100, 400), DirtyPoint(200, 400)]).bent()
    assert flat.dirty_bytes(1) == pytest.approx(400)


def test_one_observation_does_not_bend_it() -> None:
    curve = concave([DirtyPoint(100, 400)])
    assert curve.bent() == curve


def test_beyond_one_observation_its_rate_goes_on() -> None:
    curve = concave([DirtyPoint(100, 400)])
    assert curve.dirty_bytes(1000) == pytest.approx(4000)


def test_what_contradicts_the_form_is_averaged() -> None:
    """The curve would get steeper after the first point, and after the third."""
    seen = [DirtyPoint(10, 10), DirtyPoint(20, 30), DirtyPoint(30, 30), DirtyPoint(40, 35)]
    assert fitted(seen).points == (DirtyPoint(20, 30), DirtyPoint(40, 35))


@given(st.lists(st.tuples(st.floats(1, 1e4), st.floats(0, 1e9)), min_size=1, max_size=12))
def test_a_fitted_curve_has_the_form(seen: list[tuple[float, float]]) -> None:
    points = [DirtyPoint(*point) for point in {point[0]: point for point in seen}.values()]
    curve = fitted(points)
    spans = [DirtyPoint(0.0, 0.0), *curve.points]
    slopes = [
        (b.dirty_bytes - a.dirty_bytes) / (b.after_ms - a.after_ms) for a, b in pairwise(spans)
    ]
    assert all(slope >= 0 for slope in slopes)
    assert all(later <= sooner * (1 + 1e-6) + 1e-6 for sooner, later in pairwise(slopes))
    assert curve.points[-1].after_ms == pytest.approx(max(point.after_ms for point in points))
