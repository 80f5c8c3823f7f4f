"""What a study does next, from its records alone: the same records give the same step.

Runs come in blocks. Each block has the default and the best settings so far besides new ones, and
a trial is judged by its values against the default's of the same block: the machine's drift is in
both. New settings are drawn by Optuna's TPE, which is built anew from the records at each step.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import mean, median

from vmtune.bench.model.tune.objective import Sense
from vmtune.bench.model.tune.records import (
    DEFAULT,
    RIVAL,
    SAMPLED,
    TrialOutcome,
    TrialRecord,
    TrialRun,
)
from vmtune.bench.model.tune.result import Finding
from vmtune.bench.model.tune.sampling import sampled
from vmtune.bench.model.tune.space import ordered, same, settle
from vmtune.bench.model.tune.spec import CURRENT, Settings, StudySpec, Used
from vmtune.bench.model.tune.steps import Confirm, Finish, PlannedTrial, RunBlock, Step
from vmtune.model.tunables.built_in import BUILT_IN

NEW = 3
"""New settings in a block."""
REPEATED = 2
"""The best so far that run again in each block."""
_STALLED = 8
"""Blocks in a row without a better incumbent, after which the search ends."""
_DRAWS = 50
WORST = 3.0
"""The score of settings that fail, or break a constraint: 20 times as bad as the default."""
_LEAST_RUNS = 2


def next_step(spec: StudySpec, trials: Sequence[TrialRecord], used: Used) -> Step:
    """What to do next.

    :param trials: all that there are, in the order of their numbers.
    :param used: of the budget, the confirmation aside.
    """
    last = max((run.block for one in trials for run in one.runs), default=0)
    if last:
        left = _missing(_plan(spec, _before(trials, last), last), trials, last)
        if left:
            return RunBlock(last, left, "the rest of the block")
    if last and (reason := _ends(spec, trials, used, last)):
        return _end(spec, trials, reason)
    block = last + 1
    planned = _plan(spec, trials, block)
    return RunBlock(block, planned, "first" if block == 1 else "new settings, and the best so far")


def scores(spec: StudySpec, trials: Iterable[TrialRecord]) -> dict[int, float]:
    """How each trial compares with the default, as the mean logarithm of ratios within blocks:
    below 0 is better. Without those that were pruned."""
    known = tuple(trials)
    base = {run.block: run for run in _default(known).runs} if known else {}
    usual = _usual(spec, base.values())
    found = {}
    for one in known:
        values = [_score(spec, run, base.get(run.block), usual) for run in one.runs]
        kept = [value for value in values if value is not None]
        if kept:
            found[one.number] = mean(kept)
    return found


def _default(trials: Sequence[TrialRecord]) -> TrialRecord:
    return next(one for one in trials if one.origin == DEFAULT)


def _usual(spec: StudySpec, runs: Iterable[TrialRun]) -> float | None:
    name = spec.goal.primary.metric
    values = [run.metrics[name] for run in runs if name in run.metrics]
    return median(values) if values else None


def _score(
    spec: StudySpec, run: TrialRun, base: TrialRun | None, usual: float | None
) -> float | None:
    goal = spec.goal
    name = goal.primary.metric
    if run.outcome is TrialOutcome.PRUNED:
        return None
    if (run.outcome is not TrialOutcome.COMPLETED and goal.completed) or name not in run.metrics:
        return WORST
    worst = 0.0
    for each in goal.constraints:
        if each.metric not in run.metrics:
            return WORST
        excess = each.excess(run.metrics[each.metric])
        if excess > 0:
            worst = max(worst, 1 + min(excess / max(abs(each.bound), 1e-9), 1))
    if worst:
        return worst
    value = run.metrics[name]
    other = base.metrics.get(name) if base is not None else None
    other = usual if other is None else other
    if other is None or other <= 0 or value <= 0:
        return 0.0 if other is None else (value - other) / max(abs(other), 1e-9)
    change = math.log(value / other)
    return change if goal.primary.sense is Sense.MINIMISE else -change


def _before(trials: Sequence[TrialRecord], block: int) -> tuple[TrialRecord, ...]:
    """The records as they were before *block* began."""
    found = []
    for one in trials:
        runs = tuple(run for run in one.runs if run.block < block)
        if runs:
            found.append(TrialRecord(one.number, one.origin, one.settings, runs))
    return tuple(found)


def _missing(
    plan: Sequence[PlannedTrial], trials: Sequence[TrialRecord], block: int
) -> tuple[PlannedTrial, ...]:
    done = {one.number for one in trials for run in one.runs if run.block == block}
    return tuple(one for one in plan if one.number not in done)


def _plan(spec: StudySpec, trials: Sequence[TrialRecord], block: int) -> tuple[PlannedTrial, ...]:
    if not trials:
        planned = [PlannedTrial(0, DEFAULT)]
        for one in spec.seeds:
            origin = CURRENT if one.name == CURRENT else RIVAL + one.name
            planned.append(PlannedTrial(len(planned), origin, one.settings))
        return _shuffled(spec, planned, block)
    default = _default(trials)
    planned = [PlannedTrial(default.number, default.origin, default.settings)]
    for each in _best(spec, trials)[:REPEATED]:
        planned.append(PlannedTrial(each.number, each.origin, each.settings))
    number = max(one.number for one in trials) + 1
    for settings in _new(spec, trials, block):
        planned.append(PlannedTrial(number, SAMPLED, settings))
        number += 1
    return _shuffled(spec, planned, block)


def _shuffled(
    spec: StudySpec, planned: Sequence[PlannedTrial], block: int
) -> tuple[PlannedTrial, ...]:
    import random  # noqa: PLC0415

    order = list(planned)
    random.Random(f"{spec.seed}/{block}").shuffle(order)  # noqa: S311 - no secret
    return tuple(order)


def _best(spec: StudySpec, trials: Sequence[TrialRecord]) -> list[TrialRecord]:
    """Those that look better than the default, the best first; few runs count for less."""
    found = scores(spec, trials)
    known = {one.number: one for one in trials}
    shrunk = {
        number: score * (count := len(known[number].runs)) / (count + 1)
        for number, score in found.items()
        if known[number].origin != DEFAULT and score < 0
    }
    return [known[number] for number in sorted(shrunk, key=lambda each: (shrunk[each], each))]


def _new(spec: StudySpec, trials: Sequence[TrialRecord], block: int) -> list[Settings]:
    space = ordered(spec.space or {}, BUILT_IN)
    found: list[Settings] = []
    tried = [one.settings for one in trials]
    values = scores(spec, trials)
    told = [(one.settings, values.get(one.number, WORST)) for one in trials]
    for settings in sampled(space, told, hash_of(spec, block), _DRAWS):
        settled, broken = settle(settings, spec.base)
        if broken or any(same(settled, one, spec.base, BUILT_IN) for one in (*tried, *found)):
            continue
        found.append(settled)
        if len(found) == NEW:
            break
    return found


def hash_of(spec: StudySpec, block: int) -> int:
    """A seed for a block, below 2^31."""
    return ((spec.seed or 0) * 1_000_003 + block) % (1 << 31)


def _ends(spec: StudySpec, trials: Sequence[TrialRecord], used: Used, last: int) -> str:
    """Why the search is over; empty where it is not."""
    budget = spec.budget
    size = 1 + REPEATED + NEW
    if budget.runs is not None and used.runs + size + spec.confirm_runs > budget.runs:
        return "the budget of runs is used"
    if budget.seconds is not None and used.runs:
        each = used.seconds / used.runs
        if used.seconds + (size + spec.confirm_runs) * each > budget.seconds:
            return "the budget of time is used"
    best = _best(spec, trials)
    since = min((run.block for run in best[0].runs), default=0) if best else 0
    if last - since >= _STALLED:
        return f"nothing better was found in {_STALLED} blocks"
    return "" if _new(spec, trials, last + 1) else "every setting of the space was tried"


def _end(spec: StudySpec, trials: Sequence[TrialRecord], reason: str) -> Step:
    best = [one for one in _best(spec, trials) if len(one.runs) >= _LEAST_RUNS]
    best = best or _best(spec, trials)
    finalists = [one for one in best if one.origin != CURRENT][: spec.finalists]
    if finalists:
        planned = tuple(PlannedTrial(one.number, one.origin, one.settings) for one in finalists)
        return Confirm(planned, reason)
    if all(score >= 1 for score in scores(spec, trials).values()):
        return Finish(Finding.NOTHING_FEASIBLE, f"{reason}; no settings keep the constraints")
    return Finish(
        Finding.NO_BETTER,
        f"{reason}; none of {len(trials)} settings looked better than the default",
        spec.margin_percent,
    )
