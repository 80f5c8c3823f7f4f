"""`vmtune tune` over simulated scenarios: do its winners last, and how many runs does it take?

Twenty studies (:mod:`tests.support.benchmarks.tune_simulation`): the service's own policy searches,
the project's own comparison confirms, and 200 fresh runs of each arm say what is left of the
claimed gain. Beside it the same policy with settings that are drawn at random. ``SEED=`` draws
other scenarios, ``STUDIES=`` sets how many.
"""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from tests.perf.report import Check, environment, finish
from tests.support.benchmarks.tune_simulation import Landscape, confirmed, spec_of, steps_of
from vmtune.bench.model.tune import sampler
from vmtune.bench.model.tune.estimates import estimates
from vmtune.bench.model.tune.records import TrialRecord
from vmtune.bench.model.tune.spec import Settings, StudySpec
from vmtune.bench.model.tune.steps import Confirm

SEED = int(os.environ.get("SEED", "1"))
STUDIES = int(os.environ.get("STUDIES", "20"))
FRESH = 200
NEAR = math.log(1.05)
KEPT = 0.7


@dataclass(frozen=True)
class Ended:
    """One study.

    :param near_after: runs until the best by its own estimates was within 5 % of the grid's best.
    :param regret_percent: of the best by its own estimates at the end of the search.
    :param claimed_percent: the gain that it reports; *fresh_percent* what 200 fresh runs show.
    """

    seed: int
    runs: int
    grid: int
    near_after: int | None
    regret_percent: float
    possible_percent: float
    found: str
    claimed_percent: float | None = None
    fresh_percent: float | None = None
    worse: bool = False


def best_of(spec: StudySpec, trials: Sequence[TrialRecord]) -> TrialRecord | None:
    """The best so far by its own estimates."""
    found = [one for one in estimates(spec.goal, trials).values() if one.feasible]
    if not found:
        return None
    number = min(found, key=lambda one: (one.score, one.number)).number
    return next(one for one in trials if one.number == number)


def study(seed: int) -> Ended:
    """Search, confirm, and run what won again."""
    spec, scene = spec_of(seed), Landscape(seed)
    near, end, trials = None, None, ()
    regret = math.inf
    for trials, end in steps_of(spec, scene):  # noqa: B007 - the last is used
        best = best_of(spec, trials)
        if best is not None and scene.feasible(best.settings):
            regret = scene.log_time(best.settings) - scene.best
            runs = sum(len(one.runs) for one in trials)
            near = (near or runs) if regret <= NEAR else None
    runs = sum(len(one.runs) for one in trials)
    possible = 100 * (1 - math.exp(scene.best - scene.log_time({})))
    said = Ended(seed, runs, len(scene.grid), near, 100 * math.expm1(regret), possible, "")
    if not isinstance(end, Confirm):
        return Ended(**{**asdict(said), "found": end.finding.value if end else ""})
    won = confirmed(spec, scene, end.finalists)
    if won is None:
        return Ended(**{**asdict(said), "found": "no better settings found"})
    winner, gain = won
    fresh = gain_of(scene, winner.settings)
    return Ended(
        **{
            **asdict(said),
            "found": "better",
            "claimed_percent": 100 * gain,
            "fresh_percent": fresh,
            "worse": fresh < 0 or (scene.feasible({}) and not scene.feasible(winner.settings)),
        }
    )


def gain_of(scene: Landscape, settings: Settings) -> float:
    """Of fresh runs of both in turn, by the ratio of the medians."""
    times: dict[bool, list[float]] = {False: [], True: []}
    for block in range(FRESH):
        for won in (False, True):
            run = scene.run(0, block, settings if won else {})
            times[won].append(run.metrics.get("total_time_ms", math.inf))
    return 100 * (1 - statistics.median(times[True]) / statistics.median(times[False]))


def row(one: Ended) -> str:
    """Of the table."""
    near = "never" if one.near_after is None else str(one.near_after)
    gains = (
        ""
        if one.claimed_percent is None
        else (f"claimed {one.claimed_percent:5.1f} %, fresh {one.fresh_percent:5.1f} %")
    )
    return (
        f"{one.seed:5} {one.runs:4} runs, near after {near:>5} of a grid of {one.grid}; short by "
        f"{one.regret_percent:5.1f} % of {one.possible_percent:4.1f} %; {one.found:25} {gains}"
    )


def studies(kind: str) -> list[Ended]:
    """All of them, with a line for each."""
    print(kind)
    found = []
    for number in range(STUDIES):
        found.append(study(SEED * 1000 + number))
        print(row(found[-1]), flush=True)
    return found


def main() -> None:
    """Simulate and report."""
    where = environment()
    ours = studies("TPE, seeded and repeated in blocks")
    sampler.STARTUP = 10**9  # all settings are drawn at random
    random = studies("drawn at random, all else the same")
    won = [one for one in ours if one.claimed_percent is not None]
    kept = [one for one in won if (one.fresh_percent or 0) >= KEPT * (one.claimed_percent or 0)]
    checks = [
        Check("winners worse than the default", sum(one.worse for one in won), "", 0, "max"),
        Check("winners that keep 70 % of their gain", len(kept) / max(len(won), 1), "", 0.9, "min"),
        Check(
            "runs to within 5 % of the grid's best, by the grid's", share(ours), "", 1 / 3, "max"
        ),
        Check("studies that come within 5 %", near_share(ours), "", 0.5, "min"),
    ]
    print(
        f"within 5 % of the grid's best: TPE {near_share(ours):.0%} of studies, median share of "
        f"the grid's runs {share(ours):.2f}; "
        f"at random {near_share(random):.0%}, {share(random):.2f}"
    )
    raw = {"tpe": [asdict(one) for one in ours], "random": [asdict(one) for one in random]}
    finish("tune", checks, raw, where)


def share(found: Sequence[Ended]) -> float:
    """The median share of the grid's runs; what never came near counts as all of them."""
    return statistics.median((one.near_after or one.grid) / one.grid for one in found)


def near_share(found: Sequence[Ended]) -> float:
    """The share of studies that came within 5 % of the grid's best, and stayed there."""
    return sum(one.near_after is not None for one in found) / len(found)


if __name__ == "__main__":
    main()
