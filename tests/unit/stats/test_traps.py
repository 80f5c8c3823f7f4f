"""What does not fit the model: order in time, shapes, sizes, whole milliseconds, many metrics."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.support.benchmarks.stats_simulation import BASE_MS
from vmtune.stats.coarse import spread_out
from vmtune.stats.compare import Contrast, compare, compare_many
from vmtune.stats.medians import difference_of_medians
from vmtune.stats.model import Criterion, Observation, Sample, Scale, Verdict
from vmtune.stats.schedule import schedule
from vmtune.stats.shift import Spans, shift
from vmtune.stats.studentised import studentised_p
from vmtune.stats.turns import took_turns

TIME = Criterion("total_time_ms", unit="ms")
EXPERIMENTS = 400


def timed(name: str, values: list[float], at: list[float | None]) -> Sample:
    return Sample(
        name,
        tuple(Observation(v, at_s=moment) for v, moment in zip(values, at, strict=True)),
    )


# order in time ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "turns"),
    [
        ("ab" * 8, True),
        ("abba" * 4, True),
        ("a" * 8 + "b" * 8, False),
        ("aaaabbbb" * 2, False),
        ("a" * 4 + "b" * 8 + "a" * 4, False),
        ("aaa" + "ab" * 5 + "bbb", False),  # often enough, but B is the later one
    ],
)
def test_who_took_turns(order: str, turns: bool) -> None:
    a, b = ([float(n) for n, arm in enumerate(order) if arm == which] for which in "ab")
    assert took_turns(a, b) is turns
    assert took_turns(b, a) is turns


def test_nobody_takes_turns_with_nobody() -> None:
    assert not took_turns([], [1.0])


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_arms_one_after_the_other_are_confounded_whatever_they_show(factor: float) -> None:
    values = [1000.0 + n % 3 for n in range(10)]
    a = timed("a", values, [float(n) for n in range(10)])
    b = timed("b", [factor * v for v in values], [float(n) for n in range(10, 20)])
    found = compare(a, b, TIME, in_time=True)
    assert (found.verdict, found.in_turns) == (Verdict.CONFOUNDED, False)
    assert found.effect is not None
    assert compare(a, b, TIME).verdict is not Verdict.CONFOUNDED


def test_unknown_times_are_no_turns() -> None:
    values = [1000.0 + n for n in range(10)]
    a = timed("a", values, [2.0 * n for n in range(10)])
    b = timed("b", [v / 2 for v in values], [None] + [2.0 * n + 1 for n in range(1, 10)])
    assert compare(a, b, TIME, in_time=True).verdict is Verdict.CONFOUNDED


def test_arms_in_blocks_are_not_asked_when_they_ran() -> None:
    a, b = (Sample.of(n, [f * (1000.0 + v) for v in range(8)], blocks=True)
            for n, f in (("a", 1), ("b", 0.5)))  # fmt: skip
    found = compare(a, b, TIME, in_time=True)
    assert (found.verdict, found.in_turns) == (Verdict.BETTER, None)


# unequal arms ----------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "m"), [(6, 6), (20, 6), (10, 40)])
@pytest.mark.parametrize("spread", [0.25, 4.0, 1000.0])
def test_arms_of_unequal_spread_and_size_are_seldom_told_apart(
    n: int, m: int, spread: float
) -> None:
    random = np.random.default_rng([n, m, int(spread * 4)])
    a = random.normal(size=(EXPERIMENTS * 5, n))
    b = spread * random.normal(size=(EXPERIMENTS * 5, m))
    found = shift(Spans.known(a), Spans.known(b), paired=False, confidence=0.95)
    assert ((found.low > 0) | (found.high < 0)).mean() <= 0.06


@given(st.integers(0, 10_000))
def test_the_studentised_p_is_brunners_and_munzels(seed: int) -> None:
    random = np.random.default_rng(seed)
    a, b = random.normal(size=8), 0.5 + 2 * random.normal(size=11)
    expected = stats.brunnermunzel(a, b, alternative="less").pvalue
    assert studentised_p(a, b) == pytest.approx(float(expected))


# shapes ----------------------------------------------------------------------------------


def test_a_steady_arm_and_one_with_two_modes_of_the_same_median_are_not_told_apart() -> None:
    random = np.random.default_rng(5)
    wrong = 0
    for _ in range(EXPERIMENTS):
        a = BASE_MS * np.exp(0.02 * random.normal(size=20))
        b = (
            BASE_MS
            * np.where(random.random(20) < 0.4, 1.5, 1)
            * np.exp(0.02 * random.normal(size=20))
        )
        b /= np.exp(0.02 * 0.967)
        arms = (Sample.of("a", a.tolist(), blocks=True), Sample.of("b", b.tolist(), blocks=True))
        wrong += compare(*arms, TIME).verdict in (Verdict.BETTER, Verdict.WORSE)
    assert wrong / EXPERIMENTS <= 0.06


def test_where_shapes_differ_both_ratios_are_shown_and_it_is_said() -> None:
    a = [1000.0 + n / 10 for n in range(20)]
    b = [1000.5 + n / 10 if n < 11 else 1600.0 + n for n in range(20)]
    found = compare(Sample.of("a", a), Sample.of("b", b), TIME)
    assert found.effect is not None and found.medians is not None
    assert found.medians.low is not None and found.medians.high is not None
    assert found.medians.low <= found.medians.estimate <= found.medians.high
    assert found.medians.estimate == pytest.approx(np.median(b) / np.median(a))


@pytest.mark.parametrize("size", [6, 10, 20])
def test_the_interval_of_the_ratio_of_medians_holds_it(size: int) -> None:
    random = np.random.default_rng(size)
    a = random.normal(size=(4000, size))
    b = random.exponential(size=(4000, size)) - np.log(2)
    _, low, high = difference_of_medians(a, b, 0.95)
    assert ((low <= 0) & (high >= 0)).mean() >= 0.93


# whole milliseconds ----------------------------------------------------------------------


def test_values_within_a_step_keep_their_widest_spans_and_others_are_dithered() -> None:
    same = Sample.of("a", [3.0] * 10), Sample.of("b", [3.0] * 10)
    assert spread_out(*same, 1.0) == (*same, (1.0, 1.0))
    apart = Sample.of("a", [2.0, 3, 4, 3, 3, 2, 4, 3]), Sample.of("b", [4.0, 5, 6, 5, 5, 4, 6, 5])
    a, b, steps = spread_out(*apart, 1.0)
    assert steps == (0, 0)
    for before, after in zip(apart, (a, b), strict=True):
        moved = [
            abs((o.value or 0) - (was.value or 0))
            for was, o in zip(before.observations, after.observations, strict=True)
        ]
        assert max(moved) <= 0.5
    assert spread_out(*apart, 1.0) == (a, b, (0.0, 0.0))  # the same data, the same figures
    wide = Sample.of("a", [300.0, 340, 380, 420]), Sample.of("b", [310.0, 345, 385, 425])
    assert spread_out(*wide, 1.0) == (*wide, (0.0, 0.0))
    # Each arm by itself: what one does not show does not count against the other.
    assert spread_out(same[0], apart[1], 1.0) == (same[0], b, (1.0, 0.0))


@pytest.mark.parametrize(
    "values",
    [
        [3.0] * 9 + [8],  # one run of another kind
        [3.0] * 17 + [8, 9, 8],
        [3.0] * 8 + [8, 9],
        [3.0] * 8 + [4] * 2,  # of 3.48 to 3.51, or of 2.9 to 3.9
    ],
)
def test_runs_that_may_lie_within_a_step_keep_their_widest_spans(values: list[float]) -> None:
    arms = Sample.of("a", values), Sample.of("b", values)
    assert spread_out(*arms, 1.0) == (*arms, (1.0, 1.0))


def test_limits_show_nothing_of_the_spread() -> None:
    """Of runs that were given up, or count as the worst."""
    known = [Observation(3.0)] * 8
    for lost in (Observation(9.0, censored=True), Observation(1.0, below=True)):
        arms = Sample("a", (*known, *[lost] * 8)), Sample("b", (*known, *[lost] * 8))
        assert spread_out(*arms, 1.0) == (*arms, (1.0, 1.0))


@pytest.mark.parametrize(
    ("a_ms", "spread", "outliers"),
    [(2.45, 0.01, 0.1), (2.45, 0.02, 0.0), (2.45, 0.02, 0.1), (3.45, 0.006, 0.1)],
)
@pytest.mark.parametrize("blocks", [True, False])
def test_rounding_to_two_milliseconds_is_no_verdict(
    blocks: bool, a_ms: float, spread: float, outliers: float
) -> None:
    """Arms 0.1 ms apart, within the margin, that are read a whole millisecond apart; one run in ten
    takes more than twice as long."""
    random = np.random.default_rng(11)
    criterion = Criterion("downtime_ms", resolution=1.0, least_difference=0.1)
    wrong = 0
    for _ in range(40):
        values = np.array([[a_ms], [a_ms + 0.1]]) * np.exp(spread * random.normal(size=(2, 20)))
        a, b = np.rint(np.where(random.random((2, 20)) < outliers, 2.2 * values, values))
        arms = (
            Sample.of("a", a.tolist(), blocks=blocks),
            Sample.of("b", b.tolist(), blocks=blocks),
        )
        wrong += compare(*arms, criterion).verdict is Verdict.WORSE
    assert wrong <= 2


def test_half_as_much_again_of_3_ms_is_found_in_whole_milliseconds() -> None:
    random = np.random.default_rng(3)
    criterion = Criterion("downtime_ms", resolution=1.0)
    found = 0
    for _ in range(100):
        middle = random.uniform(2.5, 3.5)
        a, b = np.rint(middle * np.exp(0.15 * random.normal(size=(2, 20))) * [[1], [1.5]])
        arms = (Sample.of("a", a.tolist(), blocks=True), Sample.of("b", b.tolist(), blocks=True))
        found += compare(*arms, criterion).verdict is Verdict.WORSE
    assert found >= 85


@pytest.mark.parametrize(("a", "b"), [(0.0, 0.02), (0.01, 0.03)])
def test_what_nobody_notices_is_not_worse(a: float, b: float) -> None:
    arms = Sample.of("a", [a] * 10, blocks=True), Sample.of("b", [b] * 10, blocks=True)
    least = Criterion("throttled_ms", least_difference=0.1)
    found = compare(*arms, least)
    assert found.verdict is Verdict.EQUIVALENT
    assert compare(*arms, Criterion("throttled_ms")).verdict is Verdict.WORSE
    assert found.effect is not None
    assert (found.effect.scale is Scale.DIFFERENCE) == (a == 0)


# many metrics ----------------------------------------------------------------------------


def at_the_edge(random: np.random.Generator) -> tuple[Sample, Sample]:
    a, b = 1000 * np.exp(0.1 * random.normal(size=(2, 20)))
    return Sample.of("a", a.tolist(), blocks=True), Sample.of("b", (1.05 * b).tolist(), blocks=True)


def test_among_twenty_metrics_at_the_margins_edge_hardly_ever_one_is_beyond_it() -> None:
    random = np.random.default_rng(9)
    wrong = 0
    for _ in range(100):
        many = [Contrast(*at_the_edge(random), Criterion(f"m{n}")) for n in range(20)]
        wrong += any(c.verdict in (Verdict.BETTER, Verdict.WORSE) for c in compare_many(many))
    assert wrong <= 9


def test_where_nobody_declared_a_primary_metric_it_is_adjusted_like_the_others() -> None:
    random = np.random.default_rng(2)
    primary = Criterion("total_time_ms", primary=True)
    many = [Contrast(*at_the_edge(random), primary)]
    many += [Contrast(*at_the_edge(random), Criterion(f"m{n}")) for n in range(5)]
    assert compare_many(many)[0].adjusted_p is None
    assert compare_many(many, declared=False)[0].adjusted_p is not None


# the order of conditions -----------------------------------------------------------------


@given(st.integers(0, 2**32), st.integers(2, 4), st.integers(2, 5))
def test_arms_of_a_condition_run_side_by_side(seed: int, arms: int, conditions: int) -> None:
    names, under = [f"a{n}" for n in range(arms)], [f"c{n}" for n in range(conditions)]
    slots = schedule(names, 3, seed, conditions=under)
    for block in (1, 2, 3):
        of = [slot for slot in slots if slot.block == block]
        assert Counter((s.arm, s.condition) for s in of) == Counter(
            (arm, condition) for arm in names for condition in under
        )
        for start in range(0, len(of), arms):
            assert len({slot.condition for slot in of[start : start + arms]}) == 1


def test_conditions_and_arms_are_shuffled_in_every_block() -> None:
    slots = schedule(["a", "b"], 400, 7, warm_ups=0, conditions=["x", "y"])
    first = Counter((slots[n].arm, slots[n].condition) for n in range(0, len(slots), 4))
    assert set(first) == {("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")}
    assert min(first.values()) > 60
