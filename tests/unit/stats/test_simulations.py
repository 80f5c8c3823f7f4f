"""What the statistics promise, on 2,000 simulated experiments a cell of which the truth is known.

`python -m tests.perf.verdicts.stats_sim` prints the whole table, with more cells.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.support.benchmarks.stats_simulation import (
    EXPERIMENTS,
    SHAPES,
    SIZES,
    Batch,
    batch,
    covered,
    drifting,
    false_verdicts,
    limited,
    positions_of,
)
from vmtune.stats.compare import compare
from vmtune.stats.model import Criterion, Verdict
from vmtune.stats.verdict import MarginPosition, verdict_of

pytestmark = pytest.mark.integration

MAX_FALSE = 0.06
LEAST_COVERED = 0.93
DESIGNS = pytest.mark.parametrize("paired", [True, False], ids=["paired", "unpaired"])
CELLS = pytest.mark.parametrize(
    ("shape", "size"), [(shape, size) for shape in SHAPES for size in SIZES]
)


@CELLS
@DESIGNS
def test_equal_arms_are_seldom_called_different(shape: str, size: int, paired: bool) -> None:
    found = batch(shape, size, paired=paired).shift()
    assert false_verdicts(found, 1.0, margin=0.0) <= MAX_FALSE
    assert false_verdicts(found, 1.0, margin=0.05) <= MAX_FALSE
    assert covered(found, 1.0) >= LEAST_COVERED


@CELLS
@DESIGNS
@pytest.mark.parametrize("ratio", [1.05, 1 / 1.05, 1.051, 1 / 1.051, 1.1, 0.8])
def test_a_difference_at_or_beyond_the_margin_is_seldom_told_wrong(
    shape: str, size: int, paired: bool, ratio: float
) -> None:
    found = batch(shape, size, paired=paired, ratio=ratio, seed=1).shift()
    assert false_verdicts(found, ratio, margin=0.05) <= MAX_FALSE
    assert covered(found, ratio) >= LEAST_COVERED


@pytest.mark.parametrize("size", SIZES)
@DESIGNS
def test_the_margin_is_kept_where_arms_can_be_found_equivalent(size: int, paired: bool) -> None:
    equal = batch("steady", size, paired=paired)
    beyond = batch("steady", size, paired=paired, ratio=1.0501)
    within = positions_of(equal.shift(), 0.05) == MarginPosition.WITHIN
    assert within.mean() > (0.5 if paired or size > 6 else 0.25)
    assert 0 < false_verdicts(beyond.shift(), 1.0501, margin=0.05) <= MAX_FALSE


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("drift", [0.15, 0.5])
def test_randomised_blocks_withstand_a_drifting_host(size: int, drift: float) -> None:
    in_blocks = drifting(size, blocks=True, drift=drift).shift()
    one_after_the_other = drifting(size, blocks=False, drift=drift).shift()
    assert false_verdicts(in_blocks, 1.0, margin=0.0) <= MAX_FALSE
    assert covered(in_blocks, 1.0) >= LEAST_COVERED
    if size > 6:  # which is why arms that did not take turns get no verdict
        assert false_verdicts(one_after_the_other, 1.0, margin=0.0) > 1.5 * MAX_FALSE


@pytest.mark.parametrize("size", SIZES)
@DESIGNS
@pytest.mark.parametrize("step_ms", [10.0, 100.0])
def test_a_coarse_clock_widens_the_interval_enough(size: int, paired: bool, step_ms: float) -> None:
    ratio = 1.051
    exact = batch("steady", size, paired=paired, ratio=ratio)
    a, b = (np.round(values / step_ms) * step_ms for values in (exact.a, exact.b))
    rounded = Batch(a, b, ratio, paired)
    found = rounded.shift(resolution=step_ms)
    assert covered(found, ratio) >= LEAST_COVERED
    assert false_verdicts(found, ratio, margin=0.05) <= MAX_FALSE


def test_without_its_resolution_a_coarse_clock_would_mislead() -> None:
    exact = batch("steady", 10, paired=False, ratio=1.051)
    rounded = Batch(np.round(exact.a, -2), np.round(exact.b, -2), 1.051, paired=False)
    assert covered(rounded.shift(), 1.051) < LEAST_COVERED


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", SIZES)
@DESIGNS
def test_a_comparison_comes_to_what_its_experiment_came_to(
    shape: str, size: int, paired: bool
) -> None:
    experiments = batch(shape, size, paired=paired, ratio=0.93)
    found = experiments.shift()
    places = positions_of(found, 0.05)
    criterion = Criterion("total_time_ms")
    for number in range(0, EXPERIMENTS, 40):
        comparison = compare(*experiments.samples(number), criterion)
        effect = comparison.effect
        assert effect is not None
        assert effect.low == pytest.approx(math.exp(found.low[number]))
        assert effect.high == pytest.approx(math.exp(found.high[number]))
        place = MarginPosition(int(places[number]))
        if "differ in shape" in comparison.reason:
            assert comparison.verdict is Verdict.INCONCLUSIVE
            continue
        assert comparison.verdict == verdict_of(place, criterion.direction)


@pytest.mark.parametrize(
    ("size", "share", "paired"),
    [(6, 0.3, True), (10, 0.7, False), (10, 0.3, False)],
    ids=["6 in blocks, most censored", "10, few censored", "10, most censored"],
)
def test_equal_arms_of_which_some_never_converge_are_seldom_called_different(
    size: int, share: float, paired: bool
) -> None:
    experiments = batch("lognormal", size, paired=paired)
    limit = float(np.quantile(experiments.a, share))
    criterion = Criterion("total_time_ms", margin=0.0)
    verdicts = [
        compare(*limited(experiments, limit, number), criterion).verdict
        for number in range(EXPERIMENTS)
    ]
    wrong = sum(v in (Verdict.BETTER, Verdict.WORSE) for v in verdicts)
    assert wrong / EXPERIMENTS <= MAX_FALSE


def test_a_limit_makes_no_arms_equivalent_that_differ() -> None:
    # Cut off where most of B would go on, they look alike.
    experiments = batch("steady", 10, paired=True, ratio=1.1)
    limit = float(np.quantile(experiments.a, 0.7))
    criterion = Criterion("total_time_ms")
    verdicts = [
        compare(*limited(experiments, limit, number), criterion).verdict
        for number in range(0, EXPERIMENTS, 4)
    ]
    assert Verdict.EQUIVALENT not in verdicts
