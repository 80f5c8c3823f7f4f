"""The Hodges-Lehmann shift and its interval, held against their definitions."""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vmtune.stats.ranks import paired_p, unpaired_p
from vmtune.stats.shift import Shift, Spans, shift

VALUES = st.floats(0.5, 2.0).map(lambda value: round(value, 3))
EIGHT = st.lists(VALUES, min_size=8, max_size=8).map(np.array)


def plain(a: np.ndarray, b: np.ndarray, *, paired: bool) -> Shift:
    return shift(Spans.known(a), Spans.known(b), paired=paired, confidence=0.95)


@settings(max_examples=50, deadline=None)
@given(EIGHT, EIGHT)
def test_the_estimate_is_the_median_of_what_it_is_said_to_be(a: np.ndarray, b: np.ndarray) -> None:
    pairwise = [y - x for x, y in product(a, b)]
    walsh = [(p + q) / 2 for p, q in combinations_with_replacement(b - a, 2)]
    assert plain(a, b, paired=False).estimate == pytest.approx(median(pairwise))
    assert plain(a, b, paired=True).estimate == pytest.approx(median(walsh))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_the_interval_is_what_the_exact_test_does_not_reject(seed: int, paired: bool) -> None:
    random = np.random.default_rng(seed)
    a, b = random.normal(size=(2, 9))
    found = plain(a, b, paired=paired)

    def p(by: float) -> float:
        return paired_p(b - by - a)[0] if paired else unpaired_p(a, b - by)[0]

    tiny = 1e-9
    if found.rank < found.cut.rank:
        assert p(float(found.low) - tiny) <= 0.05 >= p(float(found.high) + tiny)
        return
    assert p(float(found.low) + tiny) > 0.05 >= p(float(found.low) - tiny)
    assert p(float(found.high) - tiny) > 0.05 >= p(float(found.high) + tiny)


@settings(max_examples=50, deadline=None)
@given(EIGHT, EIGHT, st.booleans(), VALUES)
def test_what_moves_b_moves_estimate_and_interval(
    a: np.ndarray, b: np.ndarray, paired: bool, by: float
) -> None:
    before, after = plain(a, b, paired=paired), plain(a, b + by, paired=paired)
    for name in ("estimate", "low", "high"):
        assert getattr(after, name) == pytest.approx(getattr(before, name) + by)


@settings(max_examples=50, deadline=None)
@given(EIGHT, EIGHT, st.booleans())
def test_exchanging_the_arms_exchanges_the_signs(
    a: np.ndarray, b: np.ndarray, paired: bool
) -> None:
    forth, back = plain(a, b, paired=paired), plain(b, a, paired=paired)
    assert (back.estimate, back.low, back.high) == pytest.approx(
        (-forth.estimate, -forth.high, -forth.low)
    )


@settings(max_examples=80, deadline=None)
@given(EIGHT, EIGHT, st.booleans(), st.integers(0, 10_000))
def test_whatever_the_values_are_their_interval_lies_within_that_of_their_spans(
    a: np.ndarray, b: np.ndarray, paired: bool, seed: int
) -> None:
    random = np.random.default_rng(seed)

    def spans(values: np.ndarray) -> tuple[Spans, np.ndarray]:
        low, high = values - random.uniform(0, 0.3, 8), values + random.uniform(0, 0.3, 8)
        high[random.random(8) < 0.2] = np.inf
        truth = low + random.random(8) * np.minimum(high - low, 5.0)
        return Spans(values, low, high), truth

    (span_a, true_a), (span_b, true_b) = spans(a), spans(b)
    wide = shift(span_a, span_b, paired=paired, confidence=0.95)
    true = plain(true_a, true_b, paired=paired)
    if wide.rank > true.rank:  # the spread of values that are not known may be larger
        return
    assert wide.low <= true.low + 1e-12
    assert wide.high >= true.high - 1e-12
    assert wide.estimate_low <= true.estimate + 1e-12
    assert wide.estimate_high >= true.estimate - 1e-12


@pytest.mark.parametrize("paired", [True, False])
def test_the_interval_of_spans_is_no_wider_than_the_farthest_values_make_it(paired: bool) -> None:
    a, b = np.random.default_rng(3).normal(size=(2, 9))
    spans = [Spans(values, values - 0.1, values + 0.2) for values in (a, b)]
    wide = shift(*spans, paired=paired, confidence=0.95)
    assert wide.high == pytest.approx(plain(a - 0.1, b + 0.2, paired=paired).high)
    assert wide.low == pytest.approx(plain(a + 0.2, b - 0.1, paired=paired).low)
    assert wide.estimate == plain(a, b, paired=paired).estimate


def test_a_span_that_reaches_down_to_zero_has_no_logarithm_below() -> None:
    spans = Spans(np.array([1.0, 2.0]), np.array([-0.5, 1.0]), np.array([2.5, 3.0])).log()
    assert spans.low[0] == -np.inf
    assert spans.high[0] == pytest.approx(np.log(2.5))


def test_too_few_values_have_an_estimate_and_no_interval() -> None:
    found = plain(np.array([1.0, 2.0]), np.array([2.0, 4.0]), paired=True)
    assert (found.estimate, found.low, found.high) == (1.5, -np.inf, np.inf)


def test_many_experiments_at_once_come_to_the_same_as_each_alone() -> None:
    a, b = np.random.default_rng(1).normal(size=(2, 30, 7))
    for paired in (True, False):
        together = plain(a, b, paired=paired)
        for number in range(30):
            alone = plain(a[number], b[number], paired=paired)
            assert (alone.estimate, alone.low, alone.high) == (
                together.estimate[number],
                together.low[number],
                together.high[number],
            )
