"""Whole comparisons: what they say about arms of every kind."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.stats.arms import STEADY, TIME, arm, times
from vmtune.errors import InvalidInput
from vmtune.stats.compare import compare
from vmtune.stats.model import (
    Bound,
    Comparison,
    Criterion,
    Design,
    Direction,
    Observation,
    Sample,
    Scale,
    Verdict,
)


@pytest.mark.parametrize("blocks", [True, False])
@pytest.mark.parametrize(
    ("factor", "direction", "verdict"),
    [
        (0.8, Direction.LOWER, Verdict.BETTER),
        (1.3, Direction.LOWER, Verdict.WORSE),
        (0.8, Direction.HIGHER, Verdict.WORSE),
        (1.3, Direction.HIGHER, Verdict.BETTER),
        (1.0, Direction.LOWER, Verdict.EQUIVALENT),
        (1.3, Direction.NONE, None),
    ],
)
def test_clear_cases(
    blocks: bool, factor: float, direction: Direction, verdict: Verdict | None
) -> None:
    b = times(STEADY[3:] + STEADY[:3], factor)
    found = compare(
        arm("stock", STEADY, blocks=blocks),
        arm("tuned", b, blocks=blocks),
        replace(TIME, direction=direction),
    )
    assert found.verdict == verdict
    assert found.design is (Design.PAIRED if blocks else Design.UNPAIRED)
    assert found.effect is not None
    assert found.effect.scale is Scale.RATIO
    assert found.effect.estimate == pytest.approx(factor, rel=0.01)
    assert found.effect.bound is Bound.EXACT
    assert found.test is not None
    assert found.test.exact
    assert (found.test.p < 0.01) == (factor != 1)
    if factor != 1:
        assert found.cliffs_delta == math.copysign(1, factor - 1)
    share = None if verdict is None else 1.0 if verdict is Verdict.BETTER else 0.0
    if verdict is not Verdict.EQUIVALENT:
        assert found.better_share == share
    assert ("neither direction is better" in found.reason) == (verdict is None)


def test_the_reason_says_it_in_words() -> None:
    found = compare(arm("stock", STEADY), arm("tuned", times(STEADY, 0.8)), TIME)
    assert found.reason == (
        "tuned is 20 % lower: beyond the margin of a factor of 1.05 (4.8 % lower to 5 % higher)"
    )
    found = compare(arm("stock", STEADY), arm("tuned", STEADY), TIME)
    assert found.reason == (
        "tuned is no different: within the margin of a factor of 1.05 (4.8 % lower to 5 % higher)"
    )


def test_an_inconclusive_one_says_how_many_blocks_would_settle_it() -> None:
    random = np.random.default_rng(4)
    a, b = 1000 * np.exp(0.1 * random.normal(size=(2, 10)))
    found = compare(arm("stock", a.tolist()), arm("tuned", (b * 0.9).tolist()), TIME)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.blocks_needed is not None
    assert f"A new campaign of about {found.blocks_needed} blocks would settle it" in found.reason
    assert found.reason.startswith("tuned may be from ")


@pytest.mark.parametrize(
    ("size", "blocks", "enough"),
    [(5, True, False), (6, True, True), (5, False, False), (6, False, True)],
)
def test_too_few_runs_have_values_and_no_verdict(size: int, blocks: bool, enough: bool) -> None:
    found = compare(
        arm("stock", STEADY[:size], blocks=blocks),
        arm("tuned", times(STEADY[:size], 0.5), blocks=blocks),
        TIME,
    )
    assert (found.verdict is not Verdict.INSUFFICIENT_DATA) == enough
    assert found.effect is not None
    assert found.effect.estimate == pytest.approx(0.5)
    assert (found.effect.low is not None) == enough
    assert found.a.median is not None
    if not enough:
        assert "at least" in found.reason


@pytest.mark.parametrize("blocks", [True, False])
def test_a_reader_can_find_the_interval_among_the_differences(blocks: bool) -> None:
    b = times(STEADY[4:] + STEADY[:4], 0.9)
    found = compare(arm("a", STEADY, blocks=blocks), arm("b", b, blocks=blocks), TIME).effect
    assert found is not None
    if blocks:
        d = [math.log(y / x) for x, y in zip(STEADY, b, strict=True)]
        every = [(p + q) / 2 for n, p in enumerate(d) for q in d[n:]]
    else:
        every = [math.log(y / x) for x in STEADY for y in b]
    ordered = [math.exp(each) for each in sorted(every)]
    assert len(ordered) == found.differences
    assert ordered[found.rank - 1] == pytest.approx(found.low)
    assert ordered[-found.rank] == pytest.approx(found.high)


def test_blocks_take_out_what_the_host_does() -> None:
    slow_hours = np.exp(np.linspace(0, 1, 10))
    a = (slow_hours * STEADY).tolist()
    b = (slow_hours * times(STEADY[::-1], 0.9)).tolist()
    assert compare(arm("a", a), arm("b", b), TIME).verdict is Verdict.BETTER
    apart = compare(arm("a", a, blocks=False), arm("b", b, blocks=False), TIME)
    assert apart.verdict is Verdict.INCONCLUSIVE


def test_a_block_that_only_one_arm_finished_is_left_out_and_counted() -> None:
    b = arm("tuned", times(STEADY, 0.8))
    failed = replace(b.observations[3], value=None, failure="QEMU died")
    b = Sample("tuned", (*b.observations[:3], failed, *b.observations[4:]))
    found = compare(arm("stock", STEADY), b, TIME)
    assert found.size == 9
    assert found.verdict is Verdict.BETTER
    assert (found.b.runs, found.b.measured, found.b.missing) == (10, 9, 1)
    assert "1 of 10 runs of tuned have no value" in found.notes
    assert any("left out" in note for note in found.notes)
    assert found.measured is not None
    assert (found.measured.b_count, found.measured.b_runs) == (9, 10)


def test_too_many_failed_runs_make_a_verdict_impossible() -> None:
    b = Sample(
        "tuned",
        tuple(
            Observation(None if block <= 3 else 500.0 + block, block=block, failure="QEMU died")
            for block in range(1, 11)
        ),
    )
    found = compare(arm("stock", STEADY), b, TIME)
    assert found.verdict is Verdict.INSUFFICIENT_DATA
    assert found.reason == (
        "3 of 10 runs of tuned have no value; a verdict needs at least 80 % of them"
    )


def test_an_arm_without_values() -> None:
    nothing = Sample("tuned", tuple(Observation(None, block=n) for n in range(1, 7)))
    found = compare(arm("stock", STEADY), nothing, TIME)
    assert (found.verdict, found.effect, found.b.median) == (Verdict.INSUFFICIENT_DATA, None, None)
    assert found.reason == "tuned has no value in 6 runs"
    assert compare(Sample("a", ()), Sample("b", ()), TIME).reason == "a has no value"


def test_equal_numbers_of_blocks_need_not_be_the_same_blocks() -> None:
    found = compare(arm("a", STEADY), arm("b", STEADY), TIME, design=Design.UNPAIRED)
    assert found.design is Design.UNPAIRED
    none_shared = Sample("b", tuple(Observation(v, block=50 + n) for n, v in enumerate(STEADY)))
    assert compare(arm("a", STEADY), none_shared, TIME).design is Design.UNPAIRED


# values that have no ratio ---------------------------------------------------------------


def test_values_of_zero_are_compared_by_difference() -> None:
    misses = Criterion("missed_zero_copy")
    none, some = [0.0] * 8, [0.0, 512, 498, 530, 505, 520, 511, 500]
    found = compare(arm("a", none), arm("b", some), misses)
    assert found.effect is not None
    assert (found.effect.scale, found.verdict) == (Scale.DIFFERENCE, Verdict.WORSE)
    assert "a value is 0" in found.scale_reason
    assert found.scale_reason in found.notes
    equal = compare(arm("a", none), arm("b", none), misses)
    assert (equal.verdict, equal.reason) == (
        Verdict.EQUIVALENT,
        "b is no different: within the margin of 0",
    )


def test_the_margin_of_a_difference_is_of_the_larger_median() -> None:
    a, b = [0.0, 98, 99, 100, 101, 102, 103, 104], [0.0, 99, 98, 101, 100, 103, 102, 105]
    found = compare(arm("a", a), arm("b", b), Criterion("m", unit="ms"))
    assert found.effect is not None
    assert found.effect.margin_high == pytest.approx(0.05 * 100.5)
    assert found.verdict is Verdict.EQUIVALENT


@pytest.mark.parametrize(("least", "margin_ms"), [(None, 5.025), (0.5, 5.025), (8.0, 8.0)])
def test_the_least_difference_widens_the_margin_of_a_difference_and_never_narrows_it(
    least: float | None, margin_ms: float
) -> None:
    """One value of 0 makes no difference of 1 ms in 100 matter, where 5 % is what does."""
    a, b = [0.0, 98, 99, 100, 101, 102, 103, 104], [0.0, 99, 98, 101, 100, 103, 102, 105]
    criterion = Criterion("m", unit="ms", least_difference=least)
    found = compare(arm("a", a), arm("b", b), criterion)
    assert found.effect is not None
    assert (found.effect.margin_low, found.effect.margin_high) == pytest.approx(
        (-margin_ms, margin_ms)
    )
    assert found.verdict is Verdict.EQUIVALENT


def test_a_value_of_0_leaves_a_verdict_as_it_is() -> None:
    """Twelve blocks in which B is 2 % higher."""
    levels = [1000.3 + 7 * n for n in range(12)]
    criterion = Criterion("m", unit="ms", least_difference=0.1)
    for a in (levels, [*levels[:-1], 0.0]):
        b = [1.02 * level + place % 3 for place, level in enumerate(levels)]
        found = compare(Sample.of("a", a, blocks=True), Sample.of("b", b, blocks=True), criterion)
        assert found.verdict is Verdict.EQUIVALENT, found.reason


def test_negative_values() -> None:
    a, b = [-5.0, -4, -6, -5, -4.5, -5.5], [5.0, 4, 6, 5, 4.5, 5.5]
    found = compare(arm("a", a), arm("b", b), Criterion("m", Direction.HIGHER))
    assert found.verdict is Verdict.BETTER
    assert "less than 0" in found.scale_reason


# shares ----------------------------------------------------------------------------------


def test_a_metric_of_yes_and_no_is_compared_by_its_share() -> None:
    criterion = Criterion("converged", Direction.HIGHER, share=True)
    found = compare(arm("a", [0.0] * 9 + [1.0]), arm("b", [1.0] * 10), criterion)
    assert found.verdict is Verdict.BETTER
    assert found.effect is not None
    assert found.effect.scale is Scale.SHARE
    assert found.effect.estimate == pytest.approx(0.9)
    assert found.shares is not None
    assert (found.shares.a_count, found.shares.b_count) == (1, 10)
    assert "percentage points" in found.reason
    some = [1.0] + [0.0] * 6, [1.0] * 5 + [0.0] * 2
    few = compare(arm("a", some[0]), arm("b", some[1]), criterion)
    assert few.verdict is Verdict.INCONCLUSIVE
    assert "the exact test does not bear that out" in few.reason
    alike = compare(arm("a", [1.0] * 10), arm("b", [1.0] * 10), criterion)
    assert alike.verdict is Verdict.INCONCLUSIVE
    with pytest.raises(InvalidInput, match="0 and 1"):
        compare(arm("a", STEADY), arm("b", STEADY), criterion)


# what holds of every comparison ----------------------------------------------------------

VALUES = st.one_of(st.floats(-50, 1e6), st.integers(0, 5).map(float), st.none())
OBSERVATIONS = st.lists(
    st.builds(
        lambda value, censored: Observation(value, censored and value is not None),
        VALUES,
        st.booleans(),
    ),
    max_size=9,
)


def numbered(name: str, observations: list[Observation], *, blocks: bool) -> Sample:
    return Sample(
        name,
        tuple(
            replace(o, block=block if blocks else None) for block, o in enumerate(observations, 1)
        ),
    )


def test_a_ratio_beyond_all_numbers_is_the_largest() -> None:
    found = compare(arm("a", [5e-324]), arm("b", [1.0]), TIME)
    assert found.effect
    assert 1e300 < found.effect.estimate < math.inf
    back = compare(arm("b", [1.0]), arm("a", [5e-324]), TIME)
    assert back.effect
    assert 0 <= back.effect.estimate < 1e-300


@settings(max_examples=80, deadline=None)
@given(OBSERVATIONS, OBSERVATIONS, st.booleans(), st.sampled_from([0.0, 1.0]))
def test_whatever_the_runs_are_there_is_an_answer(
    a: list[Observation], b: list[Observation], blocks: bool, resolution: float
) -> None:
    criterion = replace(TIME, resolution=resolution)
    found = compare(numbered("a", a, blocks=blocks), numbered("b", b, blocks=blocks), criterion)
    assert found.verdict is not None
    assert found.reason
    assert (found.a.runs, found.b.runs) == (len(a), len(b))
    assert json.loads(json.dumps(asdict(found), allow_nan=False))["verdict"] == found.verdict
    back = compare(numbered("b", b, blocks=blocks), numbered("a", a, blocks=blocks), criterion)
    exchanged = {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}
    assert back.verdict == exchanged.get(found.verdict, found.verdict)
    effect = found.effect
    if effect and found.verdict is not Verdict.INSUFFICIENT_DATA:
        low = -math.inf if effect.low is None else effect.low
        high = math.inf if effect.high is None else effect.high
        assert low <= effect.estimate * (1 + 1e-9) + 1e-9
        assert effect.estimate <= high * (1 + 1e-9) + 1e-9 or high == math.inf


def test_the_same_runs_always_come_to_the_same() -> None:
    def once() -> Comparison:
        return compare(arm("a", [1.0, 2, 2, 3, 3, 3]), arm("b", [2.0, 2, 3, 3, 4, 4]), TIME)

    assert once() == once()


# bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_is_refused(value: float) -> None:
    with pytest.raises(InvalidInput, match="not a finite number") as caught:
        Observation(value, run="r1")
    assert caught.value.problems[0].field == "value"


def test_a_censored_run_needs_its_limit() -> None:
    with pytest.raises(InvalidInput, match="limit is not given"):
        Observation(None, censored=True)


def test_a_block_holds_each_arm_once() -> None:
    with pytest.raises(InvalidInput, match="more than one run in block 2"):
        Sample("a", (Observation(1.0, block=2), Observation(2.0, block=2)))


def test_too_many_runs_are_refused() -> None:
    with pytest.raises(InvalidInput, match="2,001 values"):
        arm("a", [1.0] * 2001)


@pytest.mark.parametrize(
    ("field", "value"),
    [("margin", -0.1), ("margin", 5.0), ("margin", math.nan), ("resolution", -1.0),
     ("least_difference", -1.0)],
)  # fmt: skip
def test_a_criterion_that_is_none_is_refused(field: str, value: float) -> None:
    with pytest.raises(InvalidInput) as caught:
        replace(TIME, **{field: value})
    assert caught.value.problems[0].field == field
