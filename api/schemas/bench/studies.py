"""Studies: requests, trials, results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from statistics import median
from typing import Any
from uuid import UUID

from pydantic import Field

from vmtune.api.schemas.common import Model, Page, Texts, Values, texts_of
from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.settable import settable
from vmtune.bench.model.tune import file as study_file
from vmtune.bench.model.tune.analysis import Analysis
from vmtune.bench.model.tune.kept import StudyState
from vmtune.bench.model.tune.records import TrialOutcome, TrialRecord, TrialRun
from vmtune.bench.model.tune.result import Finding
from vmtune.bench.model.tune.spec import StudySpec
from vmtune.bench.services.tune.reading import Study

Json = dict[str, Any]  # any JSON


class StudyPlan(Model):
    """A study with its defaults filled in."""

    study: Json
    space: list[str] = Field(description="The tunables that it varies.")
    seeds: list[str] = Field(description="What it begins with, besides the default.")
    confirm_runs: int = Field(description="Most runs of the confirmation.")

    @classmethod
    def of(cls, spec: StudySpec) -> StudyPlan:
        return cls(
            study=study_file.to_json(spec),
            space=list(spec.space or ()),
            seeds=[one.name for one in spec.seeds],
            confirm_runs=spec.confirm_runs,
        )


class UsedView(Model):
    """What the search has used of its budget, the confirmation aside."""

    runs: int
    seconds: float


class EvidenceView(Model):
    """A finalist compared with the default or the current profile in fresh runs."""

    trial: int
    baseline: str
    metric: str
    verdict: str = Field(description="About the finalist; empty if there is none.")
    estimate: float | None = Field(description="The finalist's values by the baseline's.")
    low: float | None
    high: float | None
    ratio: bool = Field(description="False: the estimate is a difference.")
    broken_share: float = Field(
        description="Share of the finalist's runs that break a constraint of the objective."
    )
    reason: str


class DraftView(Model):
    """The profile revision made of the winner. It is assigned to nothing."""

    profile: str
    revision: int


class ResultView(Model):
    """What a study found. Only the confirming campaign's verdicts count."""

    finding: Finding
    reason: str
    trial: int | None = Field(description="The winner's number.")
    settings: Values
    texts: Texts
    gain_percent: float | None = Field(
        description="By how much the first goal is better than the best baseline, as the "
        "campaign estimates it."
    )
    within_percent: float | None = Field(
        description="Without a winner: larger gains would most likely have been found."
    )
    evidence: list[EvidenceView]
    draft: DraftView | None
    environments: list[str] = Field(description="Fingerprints of where it was confirmed.")

    @classmethod
    def of(cls, result: Mapping[str, Any] | None) -> ResultView | None:
        if result is None:
            return None
        found = result["found"]
        return cls(
            **found,
            texts=texts_of(found["settings"], settable()),
            draft=result.get("draft"),
            environments=result["environments"],
        )


class StudyView(Model):
    """A study and its progress."""

    id: UUID
    name: str
    title: str
    kind: ScenarioKind
    scenario: str
    state: StudyState
    ended: bool
    reason: str = Field(description="Why it is paused or failed; empty if a user paused it.")
    host: str
    objective: str
    space: list[str] = Field(description="The tunables that it varies.")
    budget_runs: int | None = Field(description="Including the confirmation.")
    budget_seconds: int | None = Field(description="Including the confirmation.")
    used: UsedView
    trials: int = Field(description="Number of settings that were tried.")
    pruned: int = Field(description="Number of them that cannot run.")
    breaches: dict[str, int] = Field(description="How often runs broke each limit.")
    finalists: list[int] = Field(description="Numbers of the trials that are confirmed.")
    campaign: UUID | None = Field(description="The campaign that confirms; null before.")
    result: ResultView | None = Field(description="Null before its end.")
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None

    @classmethod
    def of(cls, study: Study) -> StudyView:
        return cls(**_fields(study))


def _fields(study: Study) -> dict[str, Any]:  # any: StudyView's
    kept, spec = study.kept, study.spec
    breaches: dict[str, int] = {}
    for each in kept.breaches:
        breaches[each["limit"]] = breaches.get(each["limit"], 0) + 1
    return {
        "id": kept.id,
        "name": kept.name,
        "title": spec.title,
        "kind": spec.kind,
        "scenario": spec.scenario.name,
        "state": kept.state,
        "ended": kept.state.ended,
        "reason": kept.reason,
        "host": kept.host,
        "objective": spec.objective,
        "space": list(spec.space or ()),
        "budget_runs": spec.budget.runs,
        "budget_seconds": spec.budget.seconds,
        "used": UsedView(runs=study.used.runs, seconds=round(study.used.seconds, 1)),
        "trials": len(study.trials),
        "pruned": sum(map(_is_pruned, study.trials)),
        "breaches": breaches,
        "finalists": list(kept.finalists or ()),
        "campaign": kept.campaign,
        "result": ResultView.of(kept.result),
        "created_at": kept.created_at,
        "started_at": kept.started_at,
        "ended_at": kept.ended_at,
    }


def _is_pruned(trial: TrialRecord) -> bool:
    return any(run.outcome is TrialOutcome.PRUNED for run in trial.runs)


class StudyDetail(StudyView):
    """A study with its full definition."""

    study: Json = Field(description="The definition, with defaults filled in.")

    @classmethod
    def of_study(cls, study: Study) -> StudyDetail:
        return cls(**_fields(study), study=study_file.to_json(study.spec))


class StudyPage(Page[StudyView]):
    """Studies, newest first."""


class TrialRunView(Model):
    """One run of a trial."""

    run: UUID | None = Field(description="Null for a trial that cannot run.")
    block: int
    outcome: TrialOutcome
    metrics: dict[str, float] = Field(description="Those that the objective names.")
    host_load: float | None = Field(
        description="Share of time, in percent, in which something waited for a CPU before it."
    )
    reason: str

    @classmethod
    def of(cls, run: TrialRun, metrics: tuple[str, ...]) -> TrialRunView:
        return cls(
            run=UUID(run.run_id) if run.run_id else None,
            block=run.block,
            outcome=run.outcome,
            metrics={name: run.metrics[name] for name in metrics if name in run.metrics},
            host_load=run.host_load,
            reason=run.reason,
        )


class TrialView(Model):
    """Settings that a study tried. What its runs show is the search's own, and no verdict."""

    number: int
    origin: str = Field(description="`default`, `current`, `rival NAME` or `sampled`.")
    settings: Values
    texts: Texts
    medians: dict[str, float] = Field(description="Of the objective's metrics, over its runs.")
    completed: int = Field(description="Number of runs that completed.")
    finalist: bool
    runs: list[TrialRunView]

    @classmethod
    def of(cls, trial: TrialRecord, study: Study) -> TrialView:
        metrics = study.spec.goal.metrics
        return cls(
            number=trial.number,
            origin=trial.origin,
            settings=dict(trial.settings),
            texts=texts_of(trial.settings, settable()),
            medians=_medians(trial, metrics),
            completed=sum(run.outcome is TrialOutcome.COMPLETED for run in trial.runs),
            finalist=trial.number in (study.kept.finalists or ()),
            runs=[TrialRunView.of(run, metrics) for run in trial.runs],
        )


class ImportanceView(Model):
    """How much of what makes trials good or bad a tunable explains."""

    tunable: str
    share: float = Field(
        ge=0, le=1, description="Of all tunables together. By PED-ANOVA, for the first goal."
    )


class TrialPointView(Model):
    """Where a trial is in the plane of the goals."""

    trial: int = Field(description="Its number.")
    values: dict[str, float] = Field(description="Medians of the goals' metrics over its runs.")
    front: bool = Field(
        description="It keeps the constraints, and no other such trial is better in every goal."
    )


class StudyAnalysisView(Model):
    """What the trials of a study say so far: the search's own figures, and no verdict."""

    goals: list[str] = Field(description="The metrics that the objective minimises or maximises.")
    importance: list[ImportanceView] = Field(
        description="The most important first; empty until enough trials have run."
    )
    points: list[TrialPointView] = Field(description="Trials with a value of each goal.")

    @classmethod
    def of(cls, study: Study, found: Analysis) -> StudyAnalysisView:
        goals = [goal.metric for goal in study.spec.goal.goals]
        return cls(
            goals=goals,
            importance=[
                ImportanceView(tunable=name, share=round(share, 4))
                for name, share in found.importance.items()
            ],
            points=[
                TrialPointView(trial=trial.number, values=values, front=trial.number in found.front)
                for trial in study.trials
                if len(values := _medians(trial, goals)) == len(goals)
            ],
        )


def _medians(trial: TrialRecord, metrics: Iterable[str]) -> dict[str, float]:
    values = {
        name: [run.metrics[name] for run in trial.runs if name in run.metrics] for name in metrics
    }
    return {name: median(found) for name, found in values.items() if found}


class TrialPage(Page[TrialView]):
    """The trials of a study in the order of their numbers."""
