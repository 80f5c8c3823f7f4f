"""What a study does next, over a machine that is simulated."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.studies import DEFAULT_MS, study_json, total_ms
from vmtune.bench.model.tune.file import from_json
from vmtune.bench.model.tune.policy import next_step
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
