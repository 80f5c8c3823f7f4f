"""Comparisons of runs, and histories."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from typing import Any, Literal, get_type_hints
from uuid import UUID

from pydantic import Field, create_model

from vmtune.api.schemas.common import Model, Page, TextOrNone, Texts, texts_of
from vmtune.bench.model.runs.run import Place
from vmtune.bench.report.report import FORMAT, VERSION, Report
from vmtune.bench.services.comparisons.history import History, SetupHistory
from vmtune.model.tunables.built_in import BUILT_IN

_HINTS = get_type_hints(Report)
_PARTS: dict[str, Any] = {  # any: pydantic's own way to say a field
    "format": (Literal[FORMAT], ...),
    "version": (Literal[VERSION], ...),
    **{each.name: (_HINTS[each.name], ...) for each in fields(Report)},
}
ComparisonView = create_model(
    "ComparisonView",
    __base__=Model,
    __doc__="A comparison as one document, complete enough to recompute every number.",
    **_PARTS,
)


class PointView(Model):
    """A run's value."""

    run: UUID
    at: datetime
    value: float
    fingerprint: str | None


class ShiftView(Model):
    """A change point."""

    at: int = Field(description="Index of the first point after it.")
    run: UUID
    since: datetime
    ratio: float | None = Field(description="Ratio of after to before; null if undefined.")
    low: float | None
    high: float | None
    matters: bool = Field(description="The values before and after differ by more than the margin.")
    text: str
    environment: list[str] = Field(description="What changed in the environment there.")


class SetupHistoryView(Model):
    """Runs of one setup, oldest first."""

    host: str
    place: Place
    qemu: str
    profile: TextOrNone
    texts: Texts
    points: list[PointView]
    changes: list[ShiftView] | None = Field(description="Null if there are too few points.")
    reason: str = Field(description="Why change points were not computed; empty if they were.")

    @classmethod
    def of(cls, entry: SetupHistory) -> SetupHistoryView:
        return cls.from_record(
            entry,
            texts=texts_of(entry.values, BUILT_IN),
            points=[
                PointView(run=p.run, at=p.at, value=p.value, fingerprint=p.fingerprint or None)
                for p in entry.points
            ],
            changes=None
            if entry.changes is None
            else [ShiftView.from_record(shift) for shift in entry.changes],
        )


class HistoryView(Page[SetupHistoryView]):
    """A metric of a scenario over time, separately for each setup."""

    scenario: str
    metric: str
    unit: str

    @classmethod
    def of(cls, history: History) -> HistoryView:
        return cls(
            scenario=history.scenario,
            metric=history.metric.name,
            unit=history.metric.unit.value,
            items=[SetupHistoryView.of(entry) for entry in history.strands],
            next=history.next,
        )
