"""The trials of a study. The search is computed anew from them at every step, so that a service
that was killed goes on where it was. :mod:`vmtune.bench.model.tune.kept` has the study itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.tune.spec import Settings

DEFAULT, SAMPLED, RIVAL = "default", "sampled", "rival "
"""Origins of trials; besides them ``current``. A rival's has its name behind: ``rival wan``."""


class TrialOutcome(StrEnum):
    """What a trial's run gave."""

    COMPLETED = "completed"
    NOT_CONVERGED = "not converged"
    FAILED = "failed"
    PRUNED = "pruned"
    """Preflight said that it cannot run: it was not started."""


OUTCOMES: Mapping[RunState, TrialOutcome] = {
    RunState.COMPLETED: TrialOutcome.COMPLETED,
    RunState.PLANNED: TrialOutcome.COMPLETED,
    RunState.NOT_CONVERGED: TrialOutcome.NOT_CONVERGED,
    RunState.FAILED: TrialOutcome.FAILED,
}
"""Of runs that count; others say nothing, and are run again."""
assert set(OUTCOMES) == {state for state in RunState if state.counts}


@dataclass(frozen=True, slots=True)
class TrialRun:
    """One run of a trial, or that it was pruned.

    :param run_id: empty where nothing was started.
    :param block: of the study, from 1.
    :param metrics: by the names of the table; what could not be had is missing.
    :param host_load: for which share of the last ten seconds something waited for a CPU as the
        run began, in percent (``cpu_pressure_percent`` of its conditions); None where unknown.
    :param reason: why it was pruned, or failed.
    """

    run_id: str
    block: int
    outcome: TrialOutcome
    metrics: Mapping[str, float] = field(default_factory=dict)
    host_load: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """Settings that were tried.

    :param number: from 0, in the order in which they were first planned.
    :param origin: ``default``, ``current``, ``rival NAME`` or ``sampled``.
    :param settings: laid over the scenario's values.
    """

    number: int
    origin: str
    settings: Settings = field(default_factory=dict)
    runs: tuple[TrialRun, ...] = ()


def with_run(
    trials: Sequence[TrialRecord], trial: TrialRecord, run: TrialRun
) -> tuple[TrialRecord, ...]:
    """*trials* with *run* added to *trial*, which is added itself where it is new."""
    runs = {one.number: one for one in trials}
    known = runs.get(trial.number, trial)
    runs[trial.number] = TrialRecord(known.number, known.origin, known.settings, (*known.runs, run))
    return tuple(runs[number] for number in sorted(runs))
