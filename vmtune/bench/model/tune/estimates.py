"""What the runs of a search say about its trials so far.

A machine drifts, so a run counts by how it compares with others of its block: what trials that ran
in several blocks show of a block is taken from all of its runs, shrunk towards none since few runs
show it. Values are logarithms where all are above 0, so that a machine that is slower by a tenth is
so for every trial. Runs under an outlying load of the host are not trusted. None of this is a
verdict: that is the confirming campaign's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vmtune.bench.model.tune.objective import Constraint, Goal, Objective
from vmtune.bench.model.tune.records import TrialOutcome, TrialRecord, TrialRun

USUAL_SIGMA = 0.08
"""Of a run's logarithm, until runs show it; what quiet hosts show."""
_SIGMA_WEIGHT = 4
_LEAST_SIGMA = 0.005
_ROUNDS = 15
_BLOCK_PRIOR = 1.0
_LEAST_LOADS = 5
_FAR = 4 * 1.4826
_LEAST_EXCESS_PERCENT = 15.0
_MAY_FAIL = 0.1
_MAY_FAIL_UNSAID = 0.5
_MISSING = 1.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """A trial so far.

    :param trusted: runs that were completed under a usual load.
    :param runs: that count, failed ones too.
    :param values: of each goal: less is better, on the goal's scale; empty without a value.
    :param error: the standard error of the first one.
    :param violation: by how much it is beyond the constraints, in shares of their bounds; 0 keeps
        all of them.
    :param broken_share: of its runs, those that break what has to hold.
    :param failed_share: those that did not succeed.
    :param pruned: it cannot run.
    """

    number: int
    trusted: int
    runs: int
    values: tuple[float, ...]
    error: float
    violation: float
    broken_share: float
    failed_share: float
    pruned: bool = False

    @property
    def feasible(self) -> bool:
        """It has a value, and keeps the constraints."""
        return bool(self.values) and not self.pruned and self.violation <= 0

    @property
    def score(self) -> float:
        """The goals together, each weighing the same; infinite without a value."""
        return sum(self.values) / len(self.values) if self.values else math.inf

    @property
    def hoped(self) -> float:
        """The score, were it a standard error better."""
        return self.score - self.error

    @property
    def feared(self) -> float:
        """The score, were it a standard error worse."""
        return self.score + self.error


def distrusted(trials: Sequence[TrialRecord]) -> frozenset[str]:
    """The runs that began under a load of the host that is far from the study's usual one."""
    loads = {
        run.run_id: run.host_load
        for trial in trials
        for run in trial.runs
        if run.host_load is not None and run.run_id
    }
    if len(loads) < _LEAST_LOADS:
        return frozenset()
    values = np.array(list(loads.values()))
    middle = float(np.median(values))
    spread = float(np.median(np.abs(values - middle)))
    most = middle + max(_FAR * spread, _LEAST_EXCESS_PERCENT)
    return frozenset(run for run, load in loads.items() if load > most)


def estimates(objective: Objective, trials: Sequence[TrialRecord]) -> Mapping[int, Estimate]:
    """Each trial that has a run, by its number."""
    bad = distrusted(trials)
    used = {
        trial.number: [
            run
            for run in trial.runs
            if run.outcome is TrialOutcome.COMPLETED and run.run_id not in bad
        ]
        for trial in trials
    }
    fits = [_fit(goal, used) for goal in objective.goals]
    sigma = max(fit.sigma for fit in fits)
    found = {}
    for trial in trials:
        if not trial.runs:
            continue
        counted = [run for run in trial.runs if run.outcome is not TrialOutcome.PRUNED]
        values = tuple(fit.effects.get(trial.number, math.inf) for fit in fits)
        known = all(map(math.isfinite, values))
        trusted = len(used[trial.number])
        found[trial.number] = Estimate(
            number=trial.number,
            trusted=trusted,
            runs=len(counted),
            values=values if known else (),
            error=sigma / math.sqrt(max(trusted, 1)),
            violation=_violation(objective, counted, used[trial.number]),
            broken_share=broken_share(objective, counted),
            failed_share=_failed_share(counted),
            pruned=not counted,
        )
    return found


def broken_share(objective: Objective, runs: Sequence[TrialRun]) -> float:
    """The share of *runs* that break what has to hold (:meth:`Objective.broken_by`)."""
    if not runs:
        return 0.0
    broken = sum(objective.broken_by(run.metrics, succeeded=_succeeded(run)) for run in runs)
    return broken / len(runs)


def _failed_share(runs: Sequence[TrialRun]) -> float:
    return sum(not _succeeded(run) for run in runs) / len(runs) if runs else 0.0


def _succeeded(run: TrialRun) -> bool:
    return run.outcome is TrialOutcome.COMPLETED


def _excess(constraint: Constraint, run: TrialRun) -> float:
    value = run.metrics.get(constraint.metric)
    if value is None:
        return _MISSING
    return constraint.excess(value) / max(abs(constraint.bound), 1e-9)


def _violation(
    objective: Objective, counted: Sequence[TrialRun], used: Sequence[TrialRun]
) -> float:
    if not counted:
        return 1.0
    may = _MAY_FAIL if objective.completed else _MAY_FAIL_UNSAID
    beyond = max(0.0, _failed_share(counted) - may)
    for one in objective.constraints:
        if used:
            beyond += max(0.0, float(np.median([_excess(one, run) for run in used])))
    return beyond


@dataclass(frozen=True, slots=True)
class _Fit:
    effects: Mapping[int, float]
    sigma: float


def _fit(goal: Goal, used: Mapping[int, Sequence[TrialRun]]) -> _Fit:
    """Trials' and blocks' effects, in turns until they settle."""
    raw = [
        (number, run.block, run.metrics[goal.metric])
        for number, runs in used.items()
        for run in runs
        if goal.metric in run.metrics
    ]
    if not raw:
        return _Fit({}, USUAL_SIGMA)
    if all(value > 0 for _, _, value in raw):
        rows = [(number, block, goal.sign * math.log(value)) for number, block, value in raw]
    else:
        sizes = [abs(value) for _, _, value in raw]
        scale = float(np.median(sizes)) or max(sizes) or 1.0
        rows = [(number, block, goal.sign * value / scale) for number, block, value in raw]
    by_trial: dict[int, list[tuple[int, float]]] = {}
    for number, block, value in rows:
        by_trial.setdefault(number, []).append((block, value))
    blocks = dict.fromkeys(sorted({block for _, block, _ in rows}), 0.0)
    effects: dict[int, float] = {}
    for _ in range(_ROUNDS):
        effects = {
            number: float(np.median([value - blocks[block] for block, value in seen]))
            if len(seen) > 2
            else sum(value - blocks[block] for block, value in seen) / len(seen)
            for number, seen in by_trial.items()
        }
        rest: dict[int, list[float]] = {block: [] for block in blocks}
        for number, seen in by_trial.items():
            if len(seen) > 1:
                for block, value in seen:
                    rest[block].append(value - effects[number])
        blocks = {b: sum(each) / (len(each) + _BLOCK_PRIOR) for b, each in rest.items()}
    residuals = [
        (value - blocks[block] - effects[number]) * math.sqrt(len(seen) / (len(seen) - 1))
        for number, seen in by_trial.items()
        if len(seen) > 1
        for block, value in seen
    ]
    return _Fit(effects, _sigma(residuals))


def _sigma(residuals: Sequence[float]) -> float:
    if not residuals:
        return USUAL_SIGMA
    seen = 1.4826 * float(np.median(np.abs(residuals)))
    weight = len(residuals) / (len(residuals) + _SIGMA_WEIGHT)
    squares = weight * seen**2 + (1 - weight) * USUAL_SIGMA**2
    return max(_LEAST_SIGMA, math.sqrt(squares))


def dominates(one: Estimate, other: Estimate) -> bool:
    """Whether it is nowhere worse, and somewhere better."""
    pairs = list(zip(one.values, other.values, strict=True))
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


def pareto_front(found: Sequence[Estimate]) -> tuple[Estimate, ...]:
    """The feasible ones that no other feasible one dominates, the best score first."""
    feasible = sorted((one for one in found if one.feasible), key=lambda one: one.score)
    return tuple(one for one in feasible if not any(dominates(other, one) for other in feasible))
