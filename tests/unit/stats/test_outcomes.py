"""Runs that do not succeed praise no arm."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.stats.compare import Contrast, compare, compare_many
from vmtune.stats.model import Criterion, Direction, Observation, Sample, Verdict

TIME = Criterion("total_time_ms", unit="ms")
SPEED = Criterion("iops", Direction.HIGHER)
VALUES = [1000.0 + 10 * n for n in range(10)]


def sample(name: str, values: list[float | None], *, blocks: bool = True) -> Sample:
    """A run of each block; None for one that failed."""
    return Sample(
        name,
        tuple(
            Observation(value, block=n if blocks else None, failed=value is None)
            for n, value in enumerate(values, 1)
        ),
    )


def swapped(verdict: Verdict | None) -> Verdict | None:
    others = {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}
    return others.get(verdict, verdict) if verdict else None


@pytest.mark.parametrize("blocks", [True, False])
@pytest.mark.parametrize("criterion", [TIME, SPEED])
def test_an_arm_that_never_succeeds_is_worse(criterion: Criterion, blocks: bool) -> None:
    never, always = sample("b", [None] * 10, blocks=blocks), sample("a", [*VALUES], blocks=blocks)
    found = compare(always, never, criterion)
    assert found.verdict is Verdict.WORSE
    assert compare(never, always, criterion).verdict is Verdict.BETTER
    assert "10 of 10 runs of b did not succeed" in found.notes[0]


@pytest.mark.parametrize("criterion", [TIME, SPEED])
def test_the_runs_that_are_left_are_not_taken_for_all(criterion: Criterion) -> None:
    better = 0.7 if criterion is TIME else 1.4
    left = [None] * 5 + [better * value for value in VALUES[5:]]
    found = compare(sample("a", [*VALUES]), sample("b", left), criterion)
    assert found.verdict is not Verdict.BETTER


def test_a_faster_arm_that_fails_significantly_more_often_is_not_better() -> None:
    a = sample("a", [1000.0 + n for n in range(100)])
    b = sample("b", [None if n % 12 == 0 else 300.0 + n for n in range(100)])
    found = compare(a, b, TIME)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "only 91 of 100 runs of b succeeded" in found.reason


def test_how_many_succeed_is_judged_whatever_else_is() -> None:
    success = Criterion("converged", Direction.HIGHER, share=True, success=True)
    a = Sample("a", tuple(Observation(1.0) for _ in range(10)))
    b = Sample("b", tuple(Observation(0.0, failed=True) for _ in range(10)))
    many = [Contrast(sample("a", [*VALUES]), sample("b", [*VALUES]), TIME)] * 20
    found = compare_many([Contrast(a, b, success), *many])
    assert found[0].verdict is Verdict.WORSE
    assert found[0].adjusted_p is None


@pytest.mark.parametrize(("of_b", "told"), [(0, False), (7, False), (10, True)])
def test_a_rate_is_judged_only_where_both_arms_succeed_alike(of_b: int, told: bool) -> None:
    rate = Criterion("guest_write_mib_per_s", Direction.HIGHER, needs_success=True)
    b = sample("b", [2 * value if n < of_b else None for n, value in enumerate(VALUES)])
    found = compare(sample("a", [*VALUES]), b, rate)
    assert (found.verdict is Verdict.BETTER) == told
    if not told:
        assert found.verdict is None
        assert f"{of_b} of 10 runs of b succeeded, and 10 of 10 of a" in found.reason


def test_failures_of_a_metric_without_a_better_are_missing() -> None:
    neither = Criterion("guest_baseline", Direction.NONE)
    found = compare(sample("a", [*VALUES]), sample("b", [None] * 4 + VALUES[4:]), neither)
    assert found.verdict is Verdict.INSUFFICIENT_DATA


@given(
    st.lists(st.none() | st.floats(1, 1e6), min_size=6, max_size=12),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_a_failure_in_the_place_of_a_value_never_helps_an_arm(
    values: list[float | None], seed: int, higher: bool
) -> None:
    criterion = SPEED if higher else TIME
    random = np.random.default_rng(seed)
    a = sample("a", [float(v) for v in random.lognormal(5, 1, len(values))])
    fails = random.integers(len(values))
    worse = [None if n == fails else value for n, value in enumerate(values)]
    before, after = (compare(a, sample("b", each), criterion) for each in (values, worse))
    if before.effect and after.effect and before.effect.scale is after.effect.scale:
        gained = (
            after.effect.low is not None
            and (before.effect.low is None or after.effect.low > before.effect.low + 1e-9)
            if higher
            else after.effect.high is not None
            and (before.effect.high is None or after.effect.high < before.effect.high - 1e-9)
        )
        assert not gained
