"""Studies and their trials as the store keeps them, read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from vmtune.bench.model.scenario.any_kind import to_json as scenario_to_json
from vmtune.bench.model.tune import file as study_file
from vmtune.bench.model.tune.kept import KeptStudy
from vmtune.bench.model.tune.records import TrialRecord
from vmtune.bench.model.tune.spec import Settings, StudySpec, Used
from vmtune.bench.services.runs.runs import RunRequest
from vmtune.documents import dataclass_json as documents
from vmtune.model.tunables.tunable import Value
from vmtune.storage import Store
from vmtune.storage.repositories.bench.studies import RunSpan


@dataclass(frozen=True, slots=True)
class Study:
    """A study with its trials.

    :param used: of its budget, its confirmation aside.
    """

    kept: KeptStudy
    spec: StudySpec
    trials: tuple[TrialRecord, ...]
    used: Used


def read_study(store: Store, kept: KeptStudy) -> Study:
    """*kept* with all that there is of it. Blocks."""
    trials = tuple(map(read_trial, store.studies.trials(kept.id)))
    return Study(kept, spec_of(kept), trials, used_by(store.studies.spans(kept.id)))


def spec_of(kept: KeptStudy) -> StudySpec:
    """What it is asked to do."""
    return study_file.from_json(kept.spec, {})


def read_trial(raw: object) -> TrialRecord:
    """A trial as the store keeps it."""
    return documents.from_json(TrialRecord, raw, "", "the trial")


def write_trial(trial: TrialRecord) -> dict[str, Any]:  # any JSON
    """*trial* as the store keeps it."""
    written: dict[str, Any] = documents.to_json(trial)
    return written


def used_by(runs: Iterable[RunSpan]) -> Used:
    """What runs took of a budget; those that were cut short took their time."""
    found = tuple(runs)
    seconds = sum(
        (run.ended_at - run.started_at).total_seconds()
        for run in found
        if run.started_at and run.ended_at
    )
    return Used(sum(run.state.counts for run in found), seconds)


def values_of(spec: StudySpec, settings: Settings) -> dict[str, Value]:
    """The tunables of a run with *settings*: the scenario's own beneath, within the limits."""
    return spec.limits.kept({**spec.scenario.values, **settings})


def request_of(
    spec: StudySpec, settings: Settings, study: UUID | None = None, id: UUID | None = None
) -> RunRequest:
    """The request to the run service."""
    return RunRequest(
        scenario=scenario_to_json(spec.scenario),
        values=values_of(spec, settings),
        testbed=spec.testbed,
        qemu=spec.qemu,
        kvm=spec.kvm,
        host_load=spec.host_load,
        id=id,
        study=study,
    )
