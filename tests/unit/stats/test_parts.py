"""Shares, censored times, summaries and verdicts, each by itself."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from vmtune.stats.model import Bound, Direction, Effect, Figure, Observation, Sample, Scale, Verdict
from vmtune.stats.rates import rates
from vmtune.stats.summary import summarise
from vmtune.stats.survival import logrank
from vmtune.stats.verdict import (
    MarginPosition,
    blocks_needed,
    extent,
    margin_words,
    position_of,
    verdict_of,
)

# rates -----------------------------------------------------------------------------------


def test_boschloo_is_scipys() -> None:
    found = rates("converged", (3, 10), (9, 10), 0.95)
    expected = stats.boschloo_exact([[3, 9], [7, 1]])
    assert found.p == pytest.approx(expected.pvalue)
    assert found.p < stats.fisher_exact([[3, 9], [7, 1]]).pvalue
    assert found.difference == pytest.approx(0.6)


def test_newcombes_interval_is_the_published_one() -> None:
    # Newcombe (1998), table II, method 10: 56/70 - 48/80 is 0.2, from 0.0524 to 0.3339.
    found = rates("x", (48, 80), (56, 70), 0.95)
    assert (found.low, found.high) == pytest.approx((0.0524, 0.3339), abs=1e-4)
    # And 10/10 - 0/10: from 0.6075 to 1.
    found = rates("x", (0, 10), (10, 10), 0.95)
    assert (found.low, found.high) == pytest.approx((0.6075, 1.0), abs=1e-4)


@pytest.mark.parametrize(("a", "b"), [((10, 10), (10, 10)), ((0, 5), (0, 9)), ((2, 4), (5, 10))])
def test_equal_shares_do_not_differ(a: tuple[int, int], b: tuple[int, int]) -> None:
    assert rates("x", a, b, 0.95).p == 1


def test_many_runs_take_fishers_test() -> None:
    found = rates("x", (100, 200), (130, 200), 0.95)
    assert found.p == pytest.approx(stats.fisher_exact([[100, 130], [100, 70]]).pvalue)


@pytest.mark.parametrize("size", [6, 10])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.8])
def test_equal_shares_are_seldom_called_different(size: int, share: float) -> None:
    counts = np.arange(size + 1)
    likely = stats.binom.pmf(counts, size, share)
    wrong = sum(
        likely[x] * likely[y]
        for x in counts
        for y in counts
        if rates("x", (int(x), size), (int(y), size), 0.95).p <= 0.05
    )
    assert wrong <= 0.05


# survival --------------------------------------------------------------------------------


def flags(*values: int) -> np.ndarray:
    return np.array(values, dtype=bool)


def test_who_ends_sooner() -> None:
    a, b = np.array([5.0, 6, 7, 8, 8, 8]), np.array([1.0, 2, 3, 4, 5, 8])
    found = logrank(a, flags(0, 0, 0, 1, 1, 1), b, flags(0, 0, 0, 0, 0, 1))
    assert found.b_sooner is True
    expected = stats.logrank(
        stats.CensoredData(uncensored=[5, 6, 7], right=[8, 8, 8]),
        stats.CensoredData(uncensored=[1, 2, 3, 4, 5], right=[8]),
    )
    assert found.p == pytest.approx(expected.pvalue)
    back = logrank(b, flags(0, 0, 0, 0, 0, 1), a, flags(0, 0, 0, 1, 1, 1))
    assert (back.b_sooner, back.p) == (False, pytest.approx(found.p))


def test_when_none_ends_nothing_can_be_told() -> None:
    limits = np.array([8.0, 8, 8])
    found = logrank(limits, flags(1, 1, 1), limits, flags(1, 1, 1))
    assert (found.p, found.b_sooner) == (1.0, None)


# summary ---------------------------------------------------------------------------------


def sample(*values: float | None, limit: float = math.inf) -> Sample:
    return Sample(
        "a",
        tuple(
            Observation(None if v is None else min(v, limit), v is not None and v > limit)
            for v in values
        ),
    )


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
@example([0.0, 0.0, 0.0, 0.0, 0.0, 2.2250738585e-313])
def test_quartiles_are_numpys(values: list[float]) -> None:
    found = summarise(sample(*values))
    figures = (
        found.minimum, found.lower_quartile, found.median, found.upper_quartile, found.maximum,
    )  # fmt: skip
    shown = [figure.value for figure in figures if figure]
    assert shown == pytest.approx(np.quantile(values, [0, 0.25, 0.5, 0.75, 1]).tolist())


def test_a_figure_that_censored_values_reach_is_more_than_it() -> None:
    found = summarise(sample(1, 2, 3, 500, 600, None, limit=100))
    assert (found.runs, found.measured, found.censored, found.missing) == (6, 3, 2, 1)
    assert found.median == Figure(3)
    assert found.upper_quartile == Figure(100, above=True)
    assert found.lower_quartile == Figure(2)
    half = summarise(sample(1, 2, 500, 600, limit=100))
    assert half.median == Figure(51, above=True)


def test_no_values_have_no_figures() -> None:
    found = summarise(sample(None, None))
    assert (found.runs, found.missing, found.median, found.multimodal) == (2, 2, None, None)


# verdict ---------------------------------------------------------------------------------


def effect(
    low: float | None, estimate: float, high: float | None, scale: Scale = Scale.RATIO
) -> Effect:
    margin = (1 / 1.05, 1.05) if scale is Scale.RATIO else (-0.5, 0.5)
    return Effect(scale, estimate, Bound.EXACT, low, high, 0.95, *margin)


@pytest.mark.parametrize(
    ("low", "high", "place"),
    [
        (1.06, 1.2, MarginPosition.ABOVE),
        (1.06, None, MarginPosition.ABOVE),
        (1.05, 1.2, MarginPosition.ACROSS),
        (0.99, 1.06, MarginPosition.ACROSS),
        (0.99, None, MarginPosition.ACROSS),
        (None, None, MarginPosition.ACROSS),
        (1 / 1.05, 1.05, MarginPosition.WITHIN),
        (math.exp(math.log(105) - math.log(100)), 1.05, MarginPosition.WITHIN),
        (1.0, 1.0, MarginPosition.WITHIN),
        (None, 0.9, MarginPosition.BELOW),
        (0.5, 0.95, MarginPosition.BELOW),
        (0.5, 0.953, MarginPosition.ACROSS),
    ],
)
def test_where_an_interval_lies(
    low: float | None, high: float | None, place: MarginPosition
) -> None:
    assert position_of(effect(low, 1.0, high)) is place


def test_what_a_place_means() -> None:
    assert verdict_of(MarginPosition.BELOW, Direction.LOWER) is Verdict.BETTER
    assert verdict_of(MarginPosition.BELOW, Direction.HIGHER) is Verdict.WORSE
    assert verdict_of(MarginPosition.ABOVE, Direction.LOWER) is Verdict.WORSE
    assert verdict_of(MarginPosition.ABOVE, Direction.HIGHER) is Verdict.BETTER
    assert verdict_of(MarginPosition.ABOVE, Direction.NONE) is None
    assert verdict_of(MarginPosition.WITHIN, Direction.LOWER) is Verdict.EQUIVALENT
    assert verdict_of(MarginPosition.ACROSS, Direction.HIGHER) is Verdict.INCONCLUSIVE


def test_four_times_the_blocks_halve_an_interval() -> None:
    # It reaches 0.2 below the estimate, and may reach 0.1 to stay above the margin: 40 blocks for
    # half of the campaigns, and (1 + 0.84 / 1.96) ** 2 times as many for 80 %.
    found = effect(-0.1, 1.0, 2.0, Scale.DIFFERENCE)
    found = Effect(found.scale, 0.6, found.bound, 0.4, 0.9, 0.95, -0.5, 0.5)
    assert blocks_needed(found, 10) == 82


@pytest.mark.parametrize(
    ("low", "estimate", "high", "more"),
    [
        (0.90, 1.0, 1.11, 128),  # to be found equivalent it has to shrink to half on both sides
        (0.99, 1.0501, 1.2, None),  # at the border: no number of blocks would do
        (0.99, 1.05, 1.2, None),
        (None, 0.8, 1.2, None),
        (0.7, 0.8, 1.0, 34),
        (0.7, 0.8, 0.9525, 21),
    ],
)
def test_how_many_blocks_needed(
    low: float | None, estimate: float, high: float, more: int | None
) -> None:
    assert blocks_needed(effect(low, estimate, high), 10) == more


@pytest.mark.parametrize(
    ("low", "high", "scale", "words"),
    [
        (0.71, 0.83, Scale.RATIO, "17 % to 29 % lower"),
        (0.998, 1.3, Scale.RATIO, "from 0.2 % lower to 30 % higher"),
        (1.0, 1.0, Scale.RATIO, "no different"),
        (1.0, 16.3, Scale.RATIO, "from no different to 1,530 % higher"),
        (1.2, None, Scale.RATIO, "at least 20 % higher"),
        (None, 0.9, Scale.RATIO, "at least 10 % lower"),
        (None, None, Scale.RATIO, "anything"),
        (-12.34, 5.0, Scale.DIFFERENCE, "from 12 ms lower to 5 ms higher"),
        (0.5, 0.9, Scale.SHARE, "50 percentage points to 90 percentage points higher"),
    ],
)
def test_an_interval_in_words(
    low: float | None, high: float | None, scale: Scale, words: str
) -> None:
    found = Effect(scale, 1.0, Bound.EXACT, low, high, 0.95, -1, 1)
    assert extent(found, "ms") == words


def test_a_margin_in_words() -> None:
    assert margin_words(effect(1, 1, 1), "ms") == "a factor of 1.05 (4.8 % lower to 5 % higher)"
    assert margin_words(effect(1, 1, 1, Scale.DIFFERENCE), "ms") == "0.5 ms"
    assert margin_words(effect(1, 1, 1, Scale.DIFFERENCE), "") == "0.5"
    assert margin_words(effect(1, 1, 1, Scale.SHARE), "") == "50 percentage points"


def ratio(low: float, high: float, margin: float = 0.2) -> Effect:
    return Effect(Scale.RATIO, low, Bound.EXACT, low, high, 0.95, 1 / (1 + margin), 1 + margin)


def test_what_is_beyond_a_margin_is_told_apart_from_it() -> None:
    found = ratio(0.82, 0.8333)
    assert margin_words(found, "") == "a factor of 1.2 (16.667 % lower to 20 % higher)"
    assert extent(found, "") == "16.67 % to 18 % lower"


@given(st.floats(1e-6, 1e6), st.floats(0, 3), st.floats(0.001, 0.99))
def test_an_end_beyond_the_margin_never_reads_like_the_margin(
    low: float, wide: float, margin: float
) -> None:
    found = ratio(low, low * (1 + wide), margin)
    words = margin_words(found, "").partition("(")[2]
    least, most = words.rstrip(")").split(" to ")
    told = extent(found, "")
    for border, named in ((found.margin_low, least), (found.margin_high, most)):
        for end in (found.low, found.high):
            assert end is not None
            if abs(end / border - 1) > 1e-4 and abs(end - 1) > 1e-6:
                assert f" {named}" not in f" {told}"


def test_a_thousandth_is_not_nothing() -> None:
    assert extent(ratio(0.0003, 0.0004), "") == "99.96 % to 99.97 % lower"


def test_what_rounding_leaves_open_no_number_of_blocks_settles() -> None:
    found = replace(ratio(0.9, 1.3, 0.05), estimate=1.1)
    assert blocks_needed(found, 10) is not None
    assert blocks_needed(replace(found, sure_low=1.04, sure_high=1.16), 10) is None
