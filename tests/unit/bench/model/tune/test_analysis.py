"""What trials say of the tunables and of the goals."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from tests.support.benchmarks.tune_simulation import spec_of
from vmtune.bench.model.tune.analysis import LEAST_TRIALS, analyse
from vmtune.bench.model.tune.records import TrialOutcome, TrialRecord, TrialRun
from vmtune.model.tunables.tunable import Value

Metrics = Callable[[dict[str, Value]], dict[str, float]]


def tried(many: int, metrics: Metrics, **more: float) -> tuple[TrialRecord, ...]:
    """Trials with settings at random, one run each."""
    chance = random.Random(3)
    trials = []
    for number in range(many):
        settings: dict[str, Value] = {
            "multifd": True,
            "multifd_channels": chance.randint(1, 16),
            "multifd_compression": chance.choice(["none", "zlib", "zstd"]),
            "downtime_limit_ms": chance.choice(range(100, 1000, 50)),
        }
        values = {**metrics(settings), **more}
        run = TrialRun(f"{number}", number // 5 + 1, TrialOutcome.COMPLETED, values)
        trials.append(TrialRecord(number, "sampled", settings, (run,)))
    return tuple(trials)


def by_channels(settings: dict[str, Value]) -> dict[str, float]:
    channels = settings["multifd_channels"]
    assert isinstance(channels, int)
    return {"total_time_ms": 9000.0 / channels}


def test_the_tunable_that_matters_is_the_most_important() -> None:
    found = analyse(spec_of(1), tried(40, by_channels, guest_silence_ms=50))
    name, share = next(iter(found.importance.items()))
    assert name == "multifd_channels"
    assert share > 0.5
    assert sum(found.importance.values()) == 1
    assert found.importance["multifd"] == 0  # it was the same in all


def test_few_trials_tell_no_importance() -> None:
    trials = tried(LEAST_TRIALS - 1, by_channels, guest_silence_ms=50)
    assert analyse(spec_of(1), trials).importance == {}
    failed = replace(trials[0].runs[0], outcome=TrialOutcome.FAILED, metrics={})
    more = (*trials, TrialRecord(99, "sampled", trials[0].settings, (failed,)))
    assert analyse(spec_of(1), more).importance == {}


def test_the_front_has_what_nothing_beats_in_every_goal() -> None:
    figures = ((10, 90), (20, 50), (30, 60), (40, 10), (5, 999))

    def metrics(_settings: dict[str, Value]) -> dict[str, float]:
        time, silence = next(left)
        return {"total_time_ms": time, "downtime_ms": silence}

    left = iter(figures)
    objective = (
        "minimise total_time_ms, minimise downtime_ms where downtime_ms <= 500 and completed"
    )
    spec = replace(spec_of(1), objective=objective)
    assert len(spec.goal.goals) == 2
    assert sorted(analyse(spec, tried(5, metrics)).front) == [0, 1, 3]
    left = iter(figures)
    one = replace(spec, objective="minimise total_time_ms where downtime_ms <= 500")
    assert analyse(one, tried(5, metrics)).front == (0,)
