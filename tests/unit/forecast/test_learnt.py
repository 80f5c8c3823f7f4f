"""Bounds that are learnt from what happened."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.forecast.learnt import FEWEST, Case, factors, learnt
from vmtune.forecast.ranges import Range

PRIOR = Range(0.1, 1.0, 10.0)
BOUNDS = st.tuples(*[st.floats(1, 1e6)] * 3).map(lambda three: Range(*sorted(three)))
CASES = st.lists(st.tuples(BOUNDS, st.floats(1, 1e6)), min_size=FEWEST, max_size=60)


def cases(count: int, ratio: float) -> list[Case]:
    return [(Range(90, 100, 110), 100 * ratio)] * count


def test_those_alike_count_then_all_then_the_prior() -> None:
    few, enough = cases(FEWEST - 1, 2), cases(FEWEST, 3)
    assert learnt(enough, cases(50, 1), PRIOR).likely == pytest.approx(3)
    assert learnt(few, enough, PRIOR).likely == pytest.approx(3)
    assert learnt(few, few, PRIOR) is PRIOR
    assert factors(few) is None


@given(CASES)
def test_bounds_hold_nine_tenths_of_those_they_are_learnt_from(seen: list[Case]) -> None:
    found = factors(seen)
    assert found is not None
    beyond = sum(
        not bounds.low * found.low * (1 - 1e-9) <= value <= bounds.high * found.high * (1 + 1e-9)
        for bounds, value in seen
    )
    assert beyond <= 0.1 * (len(seen) + 1)


@given(CASES, st.randoms(use_true_random=False), st.floats(0.5, 100))
def test_neither_the_order_nor_the_unit_counts(
    seen: list[Case], chance: random.Random, unit: float
) -> None:
    mixed = [(Range(r.low * unit, r.likely * unit, r.high * unit), v * unit) for r, v in seen]
    chance.shuffle(mixed)
    one, other = factors(seen), factors(mixed)
    assert one is not None and other is not None
    assert (other.low, other.likely, other.high) == pytest.approx((one.low, one.likely, one.high))


@pytest.mark.parametrize("count", [FEWEST, 39, 120])
def test_the_next_is_within_as_often_as_is_meant(count: int) -> None:
    chance = random.Random(count)
    within, tries = 0, 3000

    def case() -> Case:
        return Range(80, 100, 130), 100 * chance.lognormvariate(0.2, 0.7)

    for _ in range(tries):
        found = factors([case() for _ in range(count)])
        assert found is not None
        bounds, value = case()
        within += bounds.scaled(found).holds(value)
    assert 0.88 <= within / tries <= 0.93
