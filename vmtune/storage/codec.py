"""Parts of domain objects as JSON, and back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from vmtune.errors import Problem
from vmtune.model.migration.controller_record import ReaperEnd, ReaperReport, StepEffect, StepRecord
from vmtune.model.migration.record import Totals
from vmtune.model.migration.steps import Step, load_steps
from vmtune.model.plan.changes import Change
from vmtune.model.plan.outcome import Outcome, Status
from vmtune.storage.tables.core import JsonList, JsonObject


def dump(parts: Iterable[Change | Outcome | Problem | StepRecord]) -> JsonList:
    """Flat dataclasses as a list of objects."""
    return [asdict(part) for part in parts]


def changes(stored: JsonList) -> tuple[Change, ...]:
    """The journal that :func:`dump` made."""
    return tuple(Change(**item) for item in stored)


def outcomes(stored: JsonList) -> tuple[Outcome, ...]:
    """The outcomes that :func:`dump` made."""
    return tuple(Outcome(**{**item, "status": Status(item["status"])}) for item in stored)


def problems(stored: JsonList) -> tuple[Problem, ...]:
    """The problems that :func:`dump` made."""
    return tuple(Problem(**item) for item in stored)


def totals(stored: JsonObject | None) -> Totals | None:
    """The totals, where there are any."""
    return Totals(**stored) if stored is not None else None


def steps(stored: JsonList) -> tuple[Step, ...]:
    """The steps that :func:`vmtune.model.migration.steps.dump_steps` made."""
    return load_steps(stored)


def step_records(stored: JsonList) -> tuple[StepRecord, ...]:
    """The records that :func:`dump` made."""
    return tuple(StepRecord(**{**item, "effect": StepEffect(item["effect"])}) for item in stored)


def dump_report(report: ReaperReport) -> JsonObject:
    """The reaper's report without its rounds, which are stored in chunks."""
    stored = asdict(report)
    del stored["rounds"]
    return stored


def report(stored: JsonObject | None) -> ReaperReport | None:
    """The report that :func:`dump_report` made, where there is one."""
    if stored is None:
        return None
    return ReaperReport(**{**stored, "end": ReaperEnd(stored["end"])})
