"""What a study does next, over a machine that is simulated."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.benchmarks.studies import DEFAULT_MS, study_json, total_ms
from vmtune.bench.model.tune.estimates import estimates
from vmtune.bench.model.tune.file import from_json
from vmtune.bench.model.tune.policy import finalists_of, next_step
from vmtune.bench.model.tune.records import TrialOutcome, TrialRecord, TrialRun, with_run
from vmtune.bench.model.tune.result import Finding
from vmtune.bench.model.tune.space import settle
from vmtune.bench.model.tune.spec import Seed, StudySpec, Used
from vmtune.bench.model.tune.steps import Confirm, Finish, PlannedTrial, RunBlock, Step

Trials = tuple[TrialRecord, ...]


def spec_of(**changes: object) -> StudySpec:
    return from_json(study_json(**changes), {})


def ran(
    spec: StudySpec, one: PlannedTrial, block: int, best: float, chance: random.Random
) -> TrialRun:
    time = total_ms({**spec.base, **one.settings}, best) * chance.uniform(0.97, 1.03)
    metrics = {"total_time_ms": time, "guest_silence_ms": 100.0}
    return TrialRun(f"{block}/{one.number}", block, TrialOutcome.COMPLETED, metrics, 0.0)


def searched(
    spec: StudySpec, best: float = 0.6, seed: int = 1
) -> tuple[Step, Trials, list[RunBlock]]:
    """The step that ends the search, and all that was before."""
    chance = random.Random(seed)
    trials: Trials = ()
    blocks: list[RunBlock] = []
    while True:
        used = Used(sum(len(one.runs) for one in trials), 0.0)
        step = next_step(spec, trials, used)
        if not isinstance(step, RunBlock):
            return step, trials, blocks
        blocks.append(step)
        for one in step.trials:
            new = TrialRecord(one.number, one.origin, one.settings)
            trials = with_run(trials, new, ran(spec, one, step.block, best, chance))


def test_the_default_and_the_seeds_are_first() -> None:
    current = Seed("current", {"multifd": True})
    step = next_step(
        spec_of(seeds=[{"name": "current", "settings": {"multifd": True}}]), (), Used()
    )
    assert isinstance(step, RunBlock)
    assert step.block == 1
    assert {(one.number, one.origin) for one in step.trials} == {(0, "default"), (1, "current")}
    assert next(one for one in step.trials if one.number).settings == current.settings


def test_every_block_runs_a_trial_once_and_keeps_the_rules() -> None:
    spec = spec_of(space={"multifd": {}, "multifd_channels": {"low": 1, "high": 8}, "xbzrle": {}})
    step, trials, blocks = searched(spec)
    for block in blocks:
        numbers = [one.number for one in block.trials]
        assert len(numbers) == len(set(numbers))
    assert [one.number for one in trials] == list(range(len(trials)))
    for one in trials:
        settled, broken = settle(one.settings, spec.base)
        assert (settled, broken) == (dict(one.settings), [])
    assert isinstance(step, Confirm)


def test_the_search_stays_within_its_budget_of_runs() -> None:
    spec = spec_of(budget={"runs": 60})
    _, trials, _ = searched(spec)
    assert sum(len(one.runs) for one in trials) + spec.confirm_runs <= 60


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_is_better_is_found(seed: int) -> None:
    step, _, _ = searched(spec_of(seed=seed), seed=seed)
    assert isinstance(step, Confirm)
    (finalist,) = step.finalists
    assert total_ms(finalist.settings, 0.6) < 0.75 * DEFAULT_MS


def test_settings_that_break_a_constraint_are_no_finalists() -> None:
    spec = spec_of(objective="minimise total_time_ms where guest_silence_ms <= 50 and completed")
    step, _, _ = searched(spec)
    assert isinstance(step, Finish)
    assert step.finding is Finding.NOTHING_FEASIBLE


@settings(max_examples=15, deadline=None)
@given(blocks=st.integers(1, 4), cut=st.integers(0, 5), seed=st.integers(0, 99))
def test_the_same_records_give_the_same_step_and_a_cut_block_comes_back(
    blocks: int, cut: int, seed: int
) -> None:
    spec = replace(spec_of(), seed=seed)
    chance = random.Random(seed)
    trials: Trials = ()
    for _ in range(blocks):
        step = next_step(spec, trials, Used())
        if not isinstance(step, RunBlock):
            return
        assert next_step(spec, trials, Used()) == step
        done: Trials = trials
        for place, one in enumerate(step.trials):
            if place == cut and place:
                rest = next_step(spec, done, Used())
                assert isinstance(rest, RunBlock)
                assert (rest.block, rest.trials) == (step.block, step.trials[place:])
            new = TrialRecord(one.number, one.origin, one.settings)
            done = with_run(done, new, ran(spec, one, step.block, 0.6, chance))
        trials = done


def test_what_was_pruned_ends_its_block_and_is_not_tried_again() -> None:
    spec = spec_of(space={"multifd": {}, "xbzrle": {}})
    trials: Trials = ()
    for _ in range(12):
        step = next_step(spec, trials, Used())
        if not isinstance(step, RunBlock):
            break
        for one in step.trials:
            new = TrialRecord(one.number, one.origin, one.settings)
            run = ran(spec, one, step.block, 1.0, random.Random(1))
            if one.settings:
                run = TrialRun("", step.block, TrialOutcome.PRUNED, reason="not here")
            trials = with_run(trials, new, run)
    assert isinstance(step, Finish)
    assert all(len(one.runs) == 1 for one in trials if one.settings)


WIDE = {"multifd": {}, "multifd_channels": {"low": 1, "high": 200}}


def refused(
    spec: StudySpec, of: Callable[[PlannedTrial], bool], most_blocks: int = 60
) -> tuple[Step, Trials]:
    """What a search comes to where the trials of which *of* holds cannot run."""
    chance = random.Random(1)
    trials: Trials = ()
    step: Step
    for _ in range(most_blocks):
        runs = [run for one in trials for run in one.runs if run.run_id]
        step = next_step(spec, trials, Used(len(runs), 8.0 * len(runs)))
        if not isinstance(step, RunBlock):
            return step, trials
        for one in step.trials:
            new = TrialRecord(one.number, one.origin, one.settings)
            run = ran(spec, one, step.block, 1.0, chance)
            if of(one):
                run = TrialRun("", step.block, TrialOutcome.PRUNED, reason="it lacks rdma")
            trials = with_run(trials, new, run)
    pytest.fail(f"the search goes on after {most_blocks} blocks")


@pytest.mark.parametrize("budget", [{"seconds": 7200}, {"runs": 60}])
def test_a_search_ends_where_nothing_can_run(budget: dict[str, int]) -> None:
    step, trials = refused(spec_of(space=WIDE, budget=budget), lambda _: True)
    assert isinstance(step, Finish)
    assert step.finding is Finding.NOTHING_FEASIBLE
    assert len(trials) == 1 + 32
    assert step.reason == "none of 33 settings can run here: it lacks rdma"
    assert all(len(one.runs) == 1 for one in trials)  # what is refused is not tried again


def test_it_says_what_was_refused_of_a_small_space() -> None:
    step, trials = refused(spec_of(space={"multifd": {}}), lambda _: True)
    assert isinstance(step, Finish)
    assert len(trials) == 2
    assert step.reason == "none of 2 settings can run here: it lacks rdma"


def test_a_search_by_time_alone_goes_on_from_what_can_run() -> None:
    spec = spec_of(space=WIDE, budget={"seconds": 7200})
    step, trials = refused(spec, lambda one: one.origin == "default")
    assert isinstance(step, Confirm)
    assert len(trials[0].runs) == 1


def test_what_is_refused_from_some_time_on_ends_the_search() -> None:
    """A host that changes meanwhile: the best are not planned without end."""
    spec = spec_of(space=WIDE, budget={"runs": 400})
    made: list[int] = []

    def of(one: PlannedTrial) -> bool:
        made.append(one.number)
        return len(made) > 30

    step, _ = refused(spec, of)
    assert isinstance(step, Confirm)
    assert step.reason.endswith("for 16 trials; 9 cannot run here: it lacks rdma")


def test_a_search_ends_early_where_nothing_new_is_better() -> None:
    spec = spec_of(space=WIDE, budget={"runs": 400})
    step, trials, _ = searched(spec, best=1.0)
    assert "nothing new was better by more than 5 % for 16 trials" in getattr(step, "reason", "")
    assert sum(len(one.runs) for one in trials) < 100


def sampled(many: int, newest_ms: float, spec: StudySpec) -> Step:
    """What follows on so many new settings, all as good as the default but for the newest; each in
    a block of its own beside the default, by which the noise is known."""
    chance = random.Random(3)
    trials: Trials = ()

    def add(number: int, block: int, origin: str, time: float) -> Trials:
        settings = {"multifd": True, "multifd_channels": number} if number else {}
        metrics = {"total_time_ms": time, "guest_silence_ms": 100.0}
        run = TrialRun(f"{number}/{block}", block, TrialOutcome.COMPLETED, metrics, 0.0)
        return with_run(trials, TrialRecord(number, origin, settings), run)

    for number in range(1, many + 1):
        trials = add(0, number, "default", DEFAULT_MS * chance.uniform(0.995, 1.005))
        time = newest_ms if number == many else DEFAULT_MS * chance.uniform(0.995, 1.005)
        trials = add(number, number, "sampled", time)
    return next_step(spec, trials, Used(2 * many, 0.0))


@pytest.mark.parametrize(
    ("many", "newest_ms", "why"),
    [
        (30, DEFAULT_MS, "more runs of the best"),
        (30, DEFAULT_MS * 0.7, "search"),  # the newest is better: there may be more
        (19, DEFAULT_MS, "search"),  # that was not long yet
        (20, DEFAULT_MS, "more runs of the best"),
    ],
)
def test_it_goes_on_while_something_new_was_better(many: int, newest_ms: float, why: str) -> None:
    step = sampled(many, newest_ms, spec_of(space=WIDE, budget={"runs": 400}))
    assert isinstance(step, RunBlock)
    assert step.why == why


TWO_GOALS = "minimise total_time_ms, minimise guest_silence_ms where completed"


def traded(figures: dict[int, tuple[float, float]]) -> Trials:
    """Trials of (total time, silence), three runs each; 0 is the default."""
    trials: Trials = ()
    for number, (time, silence) in figures.items():
        for block in (1, 2, 3):
            metrics = {"total_time_ms": time, "guest_silence_ms": silence}
            run = TrialRun(f"{number}/{block}", block, TrialOutcome.COMPLETED, metrics, 0.0)
            settings = {"multifd_channels": number} if number else {}
            origin = "sampled" if number else "default"
            trials = with_run(trials, TrialRecord(number, origin, settings), run)
    return trials


def test_of_several_goals_the_best_together_and_of_each_are_confirmed() -> None:
    trials = traded(
        {0: (900, 900), 1: (100, 800), 2: (800, 100), 3: (200, 200), 4: (300, 300), 5: (150, 500)}
    )
    spec = spec_of(objective=TWO_GOALS, finalists=3)
    assert finalists_of(spec, trials, estimates(spec.goal, trials)) == [3, 1, 2]
    # 5 is on the front, too; 4 is not, however good it is in the first goal.
    spec = spec_of(objective=TWO_GOALS, finalists=6, budget={"runs": 90})
    assert finalists_of(spec, trials, estimates(spec.goal, trials)) == [3, 1, 2, 5]
    one = spec_of(finalists=3)
    assert finalists_of(one, trials, estimates(one.goal, trials)) == [1, 5, 3]


def test_what_often_fails_is_no_finalist_even_if_nothing_has_to_hold() -> None:
    spec = spec_of(objective="minimise total_time_ms", finalists=2)
    trials = traded({0: (900, 900), 1: (100, 800), 2: (200, 800)})
    failed = TrialRun("1/4", 4, TrialOutcome.FAILED)
    assert finalists_of(spec, trials, estimates(spec.goal, trials)) == [1, 2]
    trials = with_run(trials, trials[1], failed)
    assert finalists_of(spec, trials, estimates(spec.goal, trials)) == [1, 2]
    trials = with_run(trials, trials[1], failed)
    assert finalists_of(spec, trials, estimates(spec.goal, trials)) == [2]


def test_a_search_of_several_goals_confirms_what_nothing_beats() -> None:
    space = {"multifd": {}, "multifd_channels": {"low": 1, "high": 40}}
    spec = spec_of(objective=TWO_GOALS, space=space, finalists=3, budget={"runs": 90})
    chance = random.Random(2)
    trials: Trials = ()
    step = next_step(spec, trials, Used())
    while isinstance(step, RunBlock):
        for one in step.trials:
            channels = one.settings.get("multifd_channels", 2)
            assert isinstance(channels, int)
            worse = 1.0 if one.settings else 1.4  # the default, in both
            metrics = {  # the more channels, the faster, and the longer the silence
                "total_time_ms": 8000 * worse / channels**0.5 * chance.uniform(0.98, 1.02),
                "guest_silence_ms": 20 * worse * channels**0.5 * chance.uniform(0.98, 1.02),
            }
            run = TrialRun(
                f"{step.block}/{one.number}", step.block, TrialOutcome.COMPLETED, metrics, 0.0
            )
            trials = with_run(trials, TrialRecord(one.number, one.origin, one.settings), run)
        step = next_step(spec, trials, Used(sum(len(one.runs) for one in trials)))
    assert isinstance(step, Confirm)
    assert len(step.finalists) == 3
    found = estimates(spec.goal, trials)
    chosen = [found[one.number] for one in step.finalists]
    others = [one for one in found.values() if trials[one.number].origin == "sampled"]
    for goal in (0, 1):  # each end of the front is among them
        assert min(one.values[goal] for one in chosen) == min(one.values[goal] for one in others)
