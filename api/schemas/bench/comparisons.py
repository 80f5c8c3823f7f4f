"""Comparisons of runs, and histories."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from typing import Any, Literal, get_type_hints
from uuid import UUID

from pydantic import Field, create_model

from vmtune.api.schemas.common import Model, Page, TextOrNone, Texts, texts_of
from vmtune.bench.model.metrics.table import Direction
from vmtune.bench.model.runs.run import RunState, Testbed
from vmtune.bench.model.settable import settable
from vmtune.bench.model.trend.change import ChangeKind, SignStrength, Triage
from vmtune.bench.report.report import FORMAT, VERSION, Report
from vmtune.bench.report.words import ResultText
from vmtune.bench.services.comparisons.setup_history import History, SetupHistory, Shift, Sign

_HINTS = get_type_hints(Report)
_PARTS: dict[str, Any] = {  # any: pydantic's own way to say a field
    "format": (Literal[FORMAT], ...),
    "version": (Literal[VERSION], ...),
    **{each.name: (_HINTS[each.name], ...) for each in fields(Report)},
    "texts": (
        tuple[tuple[ResultText, ...], ...],
        Field(
            description="Each comparison in words and rounded figures, as the command line and the "
            "report have them: of each of `cells`, in the order of its `comparisons`."
        ),
    ),
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
    at_limit: bool = Field(description="The run was given up then: the true value is greater.")


class LostRunView(Model):
    """A run that failed or was given up, and has no value."""

    run: UUID
    at: datetime
    state: RunState


class CompletionShiftView(Model):
    """A change of the share of runs that complete."""

    run: UUID = Field(description="The first run after it.")
    since: datetime
    before: float = Field(description="Share of runs that completed before, 0 to 1.")
    after: float


class FoundChangeView(Model):
    """A change that was found and is kept, and what people made of it."""

    id: UUID
    scenario: str
    metric: str
    setup: str = Field(description="Id of the setup in the history.")
    run: UUID = Field(description="The first run after it.")
    since: datetime
    kind: ChangeKind
    text: str
    worse: bool
    found_at: datetime
    triage: Triage
    note: str
    triaged_by: str
    triaged_at: datetime | None


class FoundChangePage(Page[FoundChangeView]):
    """Found changes, the latest first."""


class TriageOrder(Model):
    """What somebody decides about a change."""

    triage: Triage
    note: str = Field(default="", max_length=2000)


class ShiftView(Model):
    """A change point."""

    at: int = Field(description="Index of the first point after it.")
    run: UUID
    since: datetime
    kind: ChangeKind = Field(
        description="`step`: from one run to the next. `ramp`: gradually. `spread`: the level "
        "stayed, the runs lie wider apart or less wide."
    )
    until: datetime | None = Field(description="When a ramp reached its last level.")
    spread: float | None = Field(description="The spread since by the spread before, if judged.")
    worse: bool
    environment_after: int = Field(
        description="How many runs after the change point the environment changed; negative: "
        "before it. At most 5."
    )
    found: FoundChangeView | None = Field(
        description="The change as it is kept, with its triage; null if it is not kept yet."
    )
    ratio: float | None = Field(description="Ratio of after to before; null if undefined.")
    low: float | None
    high: float | None
    matters: bool = Field(description="The values before and after differ by more than the margin.")
    text: str
    environment: list[str] = Field(description="What changed in the environment near it.")

    @classmethod
    def of(cls, shift: Shift) -> ShiftView:
        found = shift.found
        return cls.from_record(
            shift, found=None if found is None else FoundChangeView.from_record(found)
        )


class SignView(Model):
    """An early, provisional sign of a change in the newest runs. Histories without a change show
    one, too."""

    at: int = Field(description="Index of the first of these points; they are the last ones.")
    run: UUID
    since: datetime
    ratio: float | None
    strength: SignStrength
    false_at_most: float = Field(
        description="Of histories without a change, the share that shows such a sign at a look."
    )
    text: str

    @classmethod
    def of(cls, sign: Sign) -> SignView:
        return cls.from_record(sign)


class SetupHistoryView(Model):
    """Runs of one setup, oldest first."""

    id: str = Field(description="The same for the same setup.")
    host: str
    testbed: Testbed
    qemu: str
    profile: TextOrNone
    texts: Texts
    points: list[PointView]
    changes: list[ShiftView] | None = Field(description="Null if there are too few points.")
    reason: str = Field(description="Why change points were not computed; empty if they were.")
    lost: list[LostRunView] = Field(
        description="Runs that failed or were given up, without a value, oldest first."
    )
    completion: list[CompletionShiftView] | None = Field(
        description="Changes of the share that completes; null if there are too few runs."
    )
    sign: SignView | None

    @classmethod
    def of(cls, entry: SetupHistory) -> SetupHistoryView:
        return cls.from_record(
            entry,
            texts=texts_of(entry.values, settable()),
            points=[
                PointView(
                    run=p.run,
                    at=p.at,
                    value=p.value,
                    fingerprint=p.fingerprint or None,
                    at_limit=p.at_limit,
                )
                for p in entry.points
            ],
            lost=[LostRunView.from_record(each) for each in entry.lost],
            completion=None
            if entry.completion is None
            else [CompletionShiftView.from_record(each) for each in entry.completion],
            changes=None
            if entry.changes is None
            else [ShiftView.of(shift) for shift in entry.changes],
            sign=None if entry.sign is None else SignView.of(entry.sign),
        )


class HistoryView(Page[SetupHistoryView]):
    """A metric of a scenario over time, separately for each setup."""

    scenario: str
    metric: str
    unit: str
    direction: Direction = Field(description="Which values are better.")

    @classmethod
    def of(cls, history: History) -> HistoryView:
        return cls(
            scenario=history.scenario,
            metric=history.metric.name,
            unit=history.metric.unit.value,
            direction=history.metric.direction,
            items=[SetupHistoryView.of(entry) for entry in history.strands],
            next=history.next,
        )
