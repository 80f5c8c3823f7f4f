"""Published measurements, with their ratios and changes recomputed."""

from __future__ import annotations

from pydantic import Field

from vmtune.api.schemas.common import Model, Page
from vmtune.bench.model.metrics.table import Direction
from vmtune.reference.changes import Compared, compared, held
from vmtune.reference.facts import FACTS, Facts, in_order
from vmtune.reference.matching import Agreement
from vmtune.reference.results import Cell, Compare, OwnFigure, ReferenceVerdict, cells, measurements
from vmtune.reference.tables import Form, Measured, Reference, Table


class ReferenceSourceView(Model):
    """Where a measurement was published."""

    place: str = Field(description="Mailing list, project or document.")
    title: str
    date: str = Field(description="ISO date; empty if unknown.")
    author: str
    key: str = Field(description="Message id, pull request or path.")
    url: str
    checked: bool = Field(description="The figures were checked against the original text.")


class FactView(Model):
    """A condition of a measurement."""

    name: str
    title: str
    value: bool | int | str
    text: str

    @classmethod
    def all(cls, facts: Facts) -> list[FactView]:
        """*facts* in the order in which people should read them."""
        return [
            cls(
                name=name,
                title=FACTS[name].title,
                value=facts[name],
                text=FACTS[name].render(facts[name]),
            )
            for name in in_order(facts)
        ]


class PublishedRatioView(Model):
    """The ratio of a figure to its base under the same conditions."""

    title: str = Field(description="The arm's name for this base.")
    base: str = Field(description="The base's arm; an arm may be its own.")
    low: float | None = Field(description="Null if one of the two has no number.")
    high: float | None = Field(description="The same as `low` unless a range was printed.")
    approximate: bool
    text: str

    @classmethod
    def of(cls, one: Compared) -> PublishedRatioView:
        ratio = one.ratio
        return cls(
            title=one.title,
            base=one.base,
            low=None if ratio is None else float(ratio.low),
            high=None if ratio is None else float(ratio.high),
            approximate=ratio is not None and ratio.approximate,
            text="" if ratio is None else ratio.text,
        )


class PrintedChangeView(Model):
    """A change that the source printed, and the one computed from its figures."""

    printed: str
    recomputed: str
    agrees: bool


class RepeatView(Model):
    """How a figure is measured with vmtune."""

    measured: Measured = Field(description="Whether one machine can measure it.")
    command: str = Field(description="What measures it; empty if nothing does.")
    why: str = Field(description="What differs from the source, or what is missing here.")


class OwnMeasurementView(Model):
    """Where figures that were measured with vmtune come from."""

    key: str
    date: str = Field(description="ISO date.")
    machine: str
    qemu: str
    how: str = Field(description="Runs, load of the machine, and what differs from the source.")
    command: str = Field(description="What measures the same again.")
    recorded: str = Field(description="The page of the documentation that has it; may be empty.")


class OwnFigureView(Model):
    """What was measured with vmtune under the conditions of a published figure."""

    measurement: str = Field(description="The `key` of one of the measurements.")
    text: str
    value: float | None = Field(
        description="In the table's unit. Null if only ratios were recorded."
    )

    @classmethod
    def of(cls, own: OwnFigure) -> OwnFigureView:
        value = own.figure.value
        return cls(
            measurement=own.measurement.key,
            text=own.figure.printed,
            value=None if value is None else float(value),
        )


class OwnRatioView(Model):
    """A published ratio with the measured one of the same two arms."""

    title: str
    base: str
    low: float | None = Field(
        description="Null if it was not measured, or a value of 0 leaves a difference only."
    )
    high: float | None = Field(description="The same as `low` for a ratio of medians.")
    agreement: Agreement | None = Field(description="Null if it was not measured.")
    interval: bool = Field(description="The ratio has an interval; else it is that of medians.")
    text: str

    @classmethod
    def of(cls, one: Compare) -> OwnRatioView:
        return cls(
            title=one.title,
            base=one.base,
            low=None if one.own is None else float(one.own.low),
            high=None if one.own is None else float(one.own.high),
            agreement=one.agreement,
            interval=one.sure,
            text=one.text,
        )


class ReferenceRowView(Model):
    """One figure."""

    arm: str
    at: list[FactView] = Field(description="The conditions by which rows differ.")
    printed: str = Field(description="As printed in the source.")
    low: float | None = Field(description="Null if there is no number, such as `never`.")
    high: float | None = Field(description="The same as `low` unless a range was printed.")
    approximate: bool
    ratios: list[PublishedRatioView]
    change: PrintedChangeView | None = Field(description="Null if none was printed.")
    repeat: RepeatView
    own: OwnFigureView | None = Field(description="Null if it was not measured.")
    own_ratios: list[OwnRatioView]
    verdict: ReferenceVerdict = Field(
        description="How the measured figure stands to the published one."
    )
    standing: str = Field(description="The verdict, and what it follows from.")

    @classmethod
    def of(cls, reference: Reference, table: Table, cell: Cell) -> ReferenceRowView:
        row = cell.row
        change = held(table, row)
        figure = row.figure
        return cls(
            arm=row.arm,
            at=FactView.all(row.at),
            printed=figure.printed,
            low=None if figure.low is None else float(figure.low),
            high=None if figure.high is None else float(figure.high),
            approximate=figure.approximate,
            ratios=[PublishedRatioView.of(one) for one in compared(reference, table, row)],
            change=None if change is None else PrintedChangeView.from_record(change),
            repeat=RepeatView.from_record(cell.repeat),
            own=None if cell.own is None else OwnFigureView.of(cell.own),
            own_ratios=[OwnRatioView.of(each) for each in cell.comparisons],
            verdict=cell.verdict,
            standing=cell.text,
        )


class ReferenceTableView(Model):
    """Figures of one kind."""

    name: str
    title: str
    form: Form
    unit: str = Field(description="As printed.")
    better: Direction
    metric: str | None = Field(description="The comparable metric of own runs.")
    metric_note: str = Field(
        description="How the two differ, or why there is no comparable metric."
    )
    note: str
    rows: list[ReferenceRowView]
    measurements: list[OwnMeasurementView] = Field(description="Of the measured figures.")

    @classmethod
    def of(cls, reference: Reference, table: Table) -> ReferenceTableView:
        found = cells(reference, table)
        return cls.from_record(
            table,
            rows=[ReferenceRowView.of(reference, table, cell) for cell in found],
            measurements=[OwnMeasurementView.from_record(each) for each in measurements(found)],
        )


class ReferenceArmView(Model):
    """One of the compared variants."""

    name: str
    facts: list[FactView]


class ReferenceConstantView(Model):
    """A constant of the source."""

    name: str
    values: list[float]


class ReferenceView(Model):
    """One source's measurements."""

    id: str
    title: str
    source: ReferenceSourceView
    setup: list[FactView] = Field(description="Conditions of all figures.")
    arms: list[ReferenceArmView]
    tables: list[ReferenceTableView]
    constants: list[ReferenceConstantView]
    notes: list[str]
    scenarios: list[str] = Field(description="Campaign files that repeat its matrix.")

    @classmethod
    def of(cls, reference: Reference, table: Table | None = None) -> ReferenceView:
        """All of *reference*, or that *table* alone."""
        tables = reference.tables.values() if table is None else (table,)
        return cls.from_record(
            reference,
            setup=FactView.all(reference.setup),
            arms=[
                ReferenceArmView(name=arm.name, facts=FactView.all(arm.facts))
                for arm in reference.arms.values()
            ],
            tables=[ReferenceTableView.of(reference, each) for each in tables],
            constants=[
                ReferenceConstantView(name=name, values=[float(value) for value in values])
                for name, values in reference.constants.items()
            ],
        )


class TableSummary(Model):
    """Summary of a table."""

    name: str
    title: str
    unit: str
    rows: int
    metric: str | None


class ReferenceSummary(Model):
    """Summary of a source."""

    id: str
    title: str
    source: ReferenceSourceView
    tables: list[TableSummary]

    @classmethod
    def of(cls, reference: Reference) -> ReferenceSummary:
        return cls.from_record(
            reference,
            tables=[
                TableSummary(
                    name=each.name,
                    title=each.title,
                    unit=each.unit,
                    rows=len(each.rows),
                    metric=each.metric,
                )
                for each in reference.tables.values()
            ],
        )


class ReferencePage(Page[ReferenceSummary]):
    """Sources, sorted by id."""
