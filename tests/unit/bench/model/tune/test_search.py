"""The search is a function of its records, keeps its budget, and finds what is there."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.benchmarks.tune_simulation import SPACE, Landscape, confirmed, spec_of, steps_of
from vmtune.bench.model.tune.estimates import distrusted, estimates
from vmtune.bench.model.tune.policy import next_step
from vmtune.bench.model.tune.records import TrialOutcome, TrialRecord, TrialRun, with_run
from vmtune.bench.model.tune.result import Finding
from vmtune.bench.model.tune.space import settle
from vmtune.bench.model.tune.spec import Budget, Used
from vmtune.bench.model.tune.steps import Confirm, Finish, RunBlock


def used(trials: tuple[TrialRecord, ...]) -> Used:
    return Used(sum(len(one.runs) for one in trials))


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 1000), st.integers(0, 200))
def test_a_killed_search_goes_on_with_the_same_block(seed: int, kill: int) -> None:
    spec, scene = spec_of(seed, runs=60), Landscape(seed)
    trials: tuple[TrialRecord, ...] = ()
    for _ in range(4):
        step = next_step(spec, trials, used(trials))
        if not isinstance(step, RunBlock):
            break
        assert next_step(spec, trials, used(trials)) == step
        done = kill % len(step.trials)
        for place, one in enumerate(step.trials):
            if place == done and place:
                left = next_step(spec, trials, used(trials))
                assert isinstance(left, RunBlock)
                assert (left.block, left.trials) == (step.block, step.trials[place:])
            run = scene.run(one.number, step.block, one.settings)
            trials = with_run(trials, TrialRecord(one.number, one.origin, one.settings), run)


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 1000))
def test_it_ends_within_the_budget_and_breaks_no_rule(seed: int) -> None:
    spec = spec_of(seed, runs=55)
    *_, (trials, end) = steps_of(spec, Landscape(seed))
    assert sum(len(one.runs) for one in trials) + spec.confirm_runs <= 55
    assert [one.number for one in trials] == list(range(len(trials)))
    assert all(settle(one.settings, spec.base) == (one.settings, []) for one in trials)
    assert all(SPACE[n].holds(v) for one in trials for n, v in one.settings.items())
    assert isinstance(end, Confirm | Finish)
    if isinstance(end, Confirm):
        assert 1 <= len(end.finalists) <= spec.finalists
        assert all(one.origin == "sampled" for one in end.finalists)


def test_a_budget_of_time_ends_it() -> None:
    spec = spec_of(1)
    spec = type(spec)(
        **{**{f: getattr(spec, f) for f in spec.__slots__}, "budget": Budget(None, 600)}
    )
    *_, (trials, end) = steps_of(spec, Landscape(1), seconds_of_a_run=10)
    assert sum(len(one.runs) for one in trials) + spec.confirm_runs <= 61
    assert end is not None


def test_what_never_succeeds_is_nothing_feasible() -> None:
    spec = spec_of(3, runs=45)
    trials: tuple[TrialRecord, ...] = ()
    while isinstance(step := next_step(spec, trials, used(trials)), RunBlock):
        for one in step.trials:
            run = TrialRun(f"{one.number}-{step.block}", step.block, TrialOutcome.FAILED)
            trials = with_run(trials, TrialRecord(one.number, one.origin, one.settings), run)
    assert isinstance(step, Finish)
    assert step.finding is Finding.NOTHING_FEASIBLE


def test_a_run_under_an_outlying_load_is_not_trusted() -> None:
    runs = [
        TrialRun(f"r{n}", n, TrialOutcome.COMPLETED, {"total_time_ms": 100.0}, 5.0 + n)
        for n in range(1, 6)
    ]
    slow = TrialRun("slow", 6, TrialOutcome.COMPLETED, {"total_time_ms": 900.0}, 80.0)
    trials = [TrialRecord(0, "default", {}, (*runs, slow))]
    assert distrusted(trials) == {"slow"}
    assert estimates(spec_of(1).goal, trials)[0].trusted == 5


@pytest.mark.parametrize("seed", [1002, 1004])
def test_a_gain_that_is_there_is_found_and_confirmed(seed: int) -> None:
    spec, scene = spec_of(seed), Landscape(seed)
    *_, (_, end) = steps_of(spec, scene)
    assert isinstance(end, Confirm)
    won = confirmed(spec, scene, end.finalists)
    assert won is not None
    winner, _ = won
    assert scene.log_time(winner.settings) < scene.log_time({})
