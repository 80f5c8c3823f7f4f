"""Whole comparisons: what they say about arms of every kind."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from vmtune.errors import InvalidInput
from vmtune.stats.compare import Contrast, adjusted, compare, compare_many
from vmtune.stats.model import (
    Bound,
    Comparison,
    Criterion,
    Design,
    Direction,
    Figure,
    Observation,
    Sample,
    Scale,
    Verdict,
)

TIME = Criterion("total_time_ms", unit="ms")
STEADY = [1000.0, 1004, 1011, 997, 990, 1002, 1008, 995, 1001, 1006]


def arm(name: str, values: list[float], *, blocks: bool = True) -> Sample:
    return Sample.of(name, values, blocks=blocks)


def times(values: list[float], factor: float) -> list[float]:
    return [value * factor for value in values]


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


def test_the_margin_of_a_difference_is_of_the_larger_median_unless_it_is_given() -> None:
    a, b = [0.0, 98, 99, 100, 101, 102, 103, 104], [0.0, 99, 98, 101, 100, 103, 102, 105]
    found = compare(arm("a", a), arm("b", b), Criterion("m", unit="ms"))
    assert found.effect is not None
    assert found.effect.margin_high == pytest.approx(0.05 * 100.5)
    assert found.verdict is Verdict.EQUIVALENT
    strict = compare(arm("a", a), arm("b", b), Criterion("m", unit="ms", least_difference=0.5))
    assert strict.verdict is Verdict.INCONCLUSIVE
    assert "against the margin of 0.5 ms" in strict.reason


def test_negative_values() -> None:
    a, b = [-5.0, -4, -6, -5, -4.5, -5.5], [5.0, 4, 6, 5, 4.5, 5.5]
    found = compare(arm("a", a), arm("b", b), Criterion("m", Direction.HIGHER))
    assert found.verdict is Verdict.BETTER
    assert "less than 0" in found.scale_reason


# runs that did not converge --------------------------------------------------------------


def limited(name: str, values: list[float], limit: float) -> Sample:
    return Sample(
        name,
        tuple(
            Observation(min(value, limit), censored=value > limit, block=block)
            for block, value in enumerate(values, 1)
        ),
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


# many ------------------------------------------------------------------------------------


def test_among_many_metrics_a_small_p_is_not_enough_but_for_the_primary_one() -> None:
    random = np.random.default_rng(1)
    cells = []
    for number in range(12):
        a, b = 1000 * np.exp(0.02 * random.normal(size=(2, 6)))
        factor = 0.85 if number in (0, 5) else 1.0
        cells.append(
            Contrast(
                arm("stock", a.tolist()),
                arm("tuned", (b * factor).tolist()),
                Criterion(f"m{number}", primary=number == 0),
            )
        )
    primary, *others = compare_many(cells)
    assert primary.verdict is Verdict.BETTER
    assert primary.adjusted_p is None
    alone = compare(cells[5].a, cells[5].b, cells[5].criterion)
    assert alone.verdict is Verdict.BETTER
    among = others[4]
    assert among.verdict is Verdict.INCONCLUSIVE
    assert among.blocks_needed is None
    assert among.adjusted_p is not None
    assert among.adjusted_p > 0.05 >= (among.test.p if among.test else 1)
    assert "cannot decide this for a secondary metric" in among.reason


def test_enough_blocks_bear_out_a_difference_among_many() -> None:
    cells = [
        Contrast(arm("a", STEADY), arm("b", times(STEADY[::-1], f)), Criterion(f"m{n}"))
        for n, f in enumerate((0.8, 1, 1, 1))
    ]
    found = compare_many(cells)
    assert [c.verdict for c in found] == [Verdict.BETTER, *[Verdict.EQUIVALENT] * 3]
    assert found[0].adjusted_p == pytest.approx(4 * 2 / 1024)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_p_values_are_adjusted_as_scipy_does(p_values: list[float]) -> None:
    assert adjusted(p_values) == pytest.approx(stats.false_discovery_control(p_values).tolist())


def test_a_comparison_of_plain_runs_does_not_wait_for_scipy() -> None:
    program = (
        "import sys\n"
        "from vmtune.stats.compare import Contrast, compare_many\n"
        "from vmtune.stats.model import Criterion, Sample\n"
        "a = Sample.of('a', [1.0, 2, 2, 4, 5, 6], blocks=True)\n"
        "compare_many([Contrast(a, a, Criterion(name)) for name in 'xyz'])\n"
        "assert 'numpy' in sys.modules and 'scipy.stats' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_records_need_neither_scipy_nor_numpy() -> None:
    program = (
        "import sys, vmtune.stats.model, vmtune.stats.schedule; assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_gets_no_verdict_is_none_of_the_many() -> None:
    cells = [
        Contrast(arm("a", STEADY), arm("b", times(STEADY[::-1], 0.8)), Criterion("m0")),
        Contrast(arm("a", STEADY), arm("b", STEADY), Criterion("m1", Direction.NONE)),
        Contrast(arm("a", STEADY[:3]), arm("b", STEADY[:3]), Criterion("m2")),
    ]
    assert [comparison.adjusted_p for comparison in compare_many(cells)] == [None] * 3
    both = compare_many([*cells, replace(cells[0], criterion=Criterion("m3"))])
    assert both[0].adjusted_p == pytest.approx(2 / 1024)


def test_false_discoveries_are_kept_at_their_rate() -> None:
    random = np.random.default_rng(2)
    criteria = [Criterion(f"m{n}", margin=0.0) for n in range(10)]
    wrong = 0
    for _ in range(200):
        a, b = np.exp(0.1 * random.normal(size=(2, 10, 10)))
        cells = [
            Contrast(arm("a", x.tolist()), arm("b", y.tolist()), criterion)
            for x, y, criterion in zip(a, b, criteria, strict=True)
        ]
        verdicts = {comparison.verdict for comparison in compare_many(cells)}
        wrong += bool(verdicts & {Verdict.BETTER, Verdict.WORSE})
    assert wrong / 200 <= 0.08  # 5 %, and two standard deviations of 200 campaigns


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
