"""Comparisons of runs that did not converge within their limit."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.unit.stats.arms import STEADY, TIME, arm, limited, times
from vmtune.stats.compare import Contrast, compare, compare_many
from vmtune.stats.model import (
    Bound,
    Criterion,
    Figure,
    Observation,
    Sample,
    Verdict,
)


def test_a_run_that_did_not_converge_took_longer_than_its_limit() -> None:
    b = times(STEADY[::-1], 1.5)
    b[2] = b[7] = math.inf
    found = compare(arm("stock", STEADY), limited("tuned", b, 1520), TIME)
    assert found.verdict is Verdict.WORSE
    assert found.effect is not None
    assert found.effect.low is not None
    assert found.effect.low > 1.4
    assert found.effect.high is None
    assert found.effect.bound is Bound.AT_LEAST
    assert " % higher: beyond the margin of a factor of 1.05 " in found.reason
    assert found.b.maximum == Figure(1520, above=True)
    assert found.converged is not None
    assert (found.converged.b_count, found.converged.b_runs) == (8, 10)
    assert "2 of 10 runs of tuned did not end within their limit" in found.notes
    # A limit so far off that the median does not depend on what is beyond it.
    far = compare(arm("stock", STEADY), limited("tuned", b, 3000), TIME)
    assert far.effect is not None
    assert far.effect.bound is Bound.EXACT
    back = compare(limited("tuned", b, 1520), arm("stock", STEADY), TIME)
    assert (back.verdict, back.effect and back.effect.bound) == (Verdict.BETTER, Bound.AT_MOST)


def test_runs_that_did_not_converge_are_never_found_equivalent_to_the_limit() -> None:
    a = times(STEADY, 0.3)
    b = [*times(STEADY[:6], 0.3), *[math.inf] * 4]
    found = compare(limited("a", a, 310), limited("b", b, 310), TIME)
    assert found.verdict is Verdict.INCONCLUSIVE


def test_an_arm_that_mostly_does_not_converge_is_judged_by_how_many_do() -> None:
    b = [*times(STEADY[:3], 1.1), *[math.inf] * 7]
    found = compare(arm("stock", STEADY), limited("tuned", b, 2000), TIME)
    assert found.verdict is Verdict.WORSE
    assert found.reason.startswith(
        "3 of 10 runs of tuned ended within their limit, and 10 of 10 of stock (logrank p = "
    )
    assert found.survival is not None
    assert found.survival.b_sooner is False
    assert found.b.median == Figure(2000, above=True)
    back = compare(limited("tuned", b, 2000), arm("stock", STEADY), TIME)
    assert back.verdict is Verdict.BETTER


def test_how_many_converge_tells_nothing_of_a_metric_whose_limits_lie_among_its_values() -> None:
    # Sent: those that were cancelled had not come far, and nobody knows how far they had to go.
    a = Sample(
        "a",
        tuple(Observation(1.0 if n > 2 else 3.0 + n % 2, n > 2, block=n) for n in range(10)),
    )
    b = Sample("b", tuple(Observation(3.0 + n % 2, block=n) for n in range(10)))
    found = compare(a, b, Criterion("transferred_bytes"))
    assert found.converged is not None
    assert found.converged.p < 0.01
    assert found.survival is not None
    assert not found.survival.limits_highest
    assert found.survival.p > 0.05
    assert found.verdict is Verdict.INCONCLUSIVE


def test_where_limits_lie_among_the_values_the_logrank_test_alone_decides() -> None:
    a = Sample(
        "a", tuple(Observation(900.0 if n > 2 else 1000.0 + n, n > 2, block=n) for n in range(10))
    )
    found = compare(a, arm("b", [50.0 + n for n in range(10)], blocks=False), TIME)
    assert found.verdict is Verdict.BETTER
    assert found.survival is not None
    assert not found.survival.limits_highest
    assert found.survival.p < 0.001
    assert "shares" not in found.reason


def test_how_many_converge_decides_where_times_do_not() -> None:
    # Those of B that converge do so early: the curves cross, and the logrank test sees nothing.
    a = arm("a", [1990.0 + n for n in range(10)], blocks=False)
    b = Sample("b", tuple(Observation(100.0 + n if n < 4 else 2000, n >= 4) for n in range(10)))
    found = compare(a, b, TIME)
    assert found.survival is not None
    assert found.survival.p > 0.025
    assert found.verdict is Verdict.WORSE


def test_two_primary_comparisons_are_two() -> None:
    primary = replace(TIME, primary=True)
    one, other = (
        Contrast(arm("a", STEADY), arm("b", times(STEADY[::-1], factor)), primary)
        for factor in (0.8, 1.0)
    )
    found = compare_many([one, other])
    assert found[0].adjusted_p == pytest.approx(2 * 2 / 1024)


def test_the_primary_metric_in_several_cells_is_not_called_secondary() -> None:
    """It is told how many blocks would do, as where it is alone; other metrics are not."""
    up, down = (arm("b", times(STEADY[:6], factor)) for factor in (1.1, 0.8))
    unsettled = arm("b", [value * (0.8 if n else 0.97) for n, value in enumerate(STEADY[:6])])
    for is_primary in (True, False):
        made = Criterion("m", primary=is_primary)
        cells = [Contrast(arm("a", STEADY[:6]), each, made) for each in (unsettled, up, down, up)]
        found = compare_many(cells)[0]
        assert found.adjusted_p is not None
        assert found.verdict is Verdict.INCONCLUSIVE
        assert ("secondary" in found.reason) is not is_primary
        assert (found.blocks_needed is not None) is is_primary
    halved = Contrast(arm("a", STEADY[:6]), arm("b", times(STEADY[:6], 0.5)), cells[0].criterion)
    for is_primary, told in ((True, "in one of several cells"), (False, "a secondary metric")):
        made = Criterion("m", primary=is_primary)
        among = [replace(each, criterion=made) for each in (halved, *[cells[0]] * 3)]
        assert told in compare_many(among)[0].reason


@pytest.mark.parametrize("blocks", [True, False])
def test_a_run_at_its_limit_is_above_one_that_ended_there(blocks: bool) -> None:
    at_limit = [Observation(100.0, True, block=n if blocks else None) for n in range(6)]
    ended = arm("b", [100.0] * 6, blocks=blocks)
    if blocks:
        ended = Sample("b", tuple(replace(o, block=n) for n, o in enumerate(ended.observations)))
    found = compare(Sample("a", tuple(at_limit)), ended, TIME)
    assert (found.better_share, found.equal_share, found.cliffs_delta) == (1.0, 0.0, -1.0)
    back = compare(ended, Sample("a", tuple(at_limit)), TIME)
    assert (back.better_share, back.cliffs_delta) == (0.0, 1.0)
    both = compare(Sample("a", tuple(at_limit)), Sample("b", tuple(at_limit)), TIME)
    assert both.equal_share == 1.0


def test_among_many_metrics_a_survival_verdict_needs_its_adjusted_p_too() -> None:
    stock = arm("stock", STEADY[:6])
    tuned = limited("tuned", [1100.0, *[math.inf] * 5], 2000)
    alone = compare(stock, tuned, Criterion("m"))
    assert alone.verdict is Verdict.WORSE
    many = [Contrast(stock, tuned if n == 0 else stock, Criterion(f"m{n}")) for n in range(12)]
    among = compare_many(many)[0]
    assert among.verdict is Verdict.INCONCLUSIVE
    assert "cannot decide this for a secondary metric" in among.reason


def test_two_arms_that_never_converge_are_not_told_apart_and_not_equivalent() -> None:
    never = [math.inf] * 10
    found = compare(limited("a", never, 500), limited("b", never, 500), TIME)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.test is not None
    assert found.test.p == 1
    assert found.effect is not None
    assert found.effect.bound is Bound.UNKNOWN


def test_runs_with_other_limits_are_tested_up_to_the_lowest() -> None:
    a = [*limited("a", times(STEADY, 1.0), 995).observations]
    found = compare(Sample("a", tuple(a)), arm("b", times(STEADY, 2)), TIME)
    # Above 995 nothing is known to differ: what remains are the three of A below it.
    assert found.test is not None
    assert found.test.p > 0.05
