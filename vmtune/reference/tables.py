"""Published measurements: tables as their sources printed them, with source, units and setup.

Figures are exact decimals, as printed. What a source left open is missing, never guessed. The
files are in ``vmtune/reference/data``; :mod:`vmtune.reference.loading` reads them,
:mod:`vmtune.reference.changes` computes ratios and changes from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from vmtune.bench.model.metrics.table import Direction
from vmtune.reference.facts import Facts, in_order
from vmtune.units import Unit


class Form(StrEnum):
    """What the figures of a table are."""

    VALUES = "values"
    """A value for each arm; ratios and changes follow from them."""
    STAMPS = "time stamps"
    """Times of day: only their differences mean something."""
    REDUCTION = "reduction"
    """By how many percent an arm is below its base; the values were not printed."""
    TIMES_LESS = "times less"
    """By which factor an arm is below its base; the values were not printed."""


PRINTED_UNITS: Mapping[str, tuple[Unit, Decimal]] = {
    "1/s": (Unit.COUNT, Decimal(1)),
    "s": (Unit.MS, Decimal(1000)),
    "ms": (Unit.MS, Decimal(1)),
    "KB": (Unit.BYTES, Decimal(1024)),
    "MiB/s": (Unit.BYTES_PER_S, Decimal(1 << 20)),
    "Mbit/s": (Unit.BYTES_PER_S, Decimal(125_000)),
    "ms/GB": (Unit.MS_PER_GIB, Decimal(1)),
    "%": (Unit.PERCENT, Decimal(1)),
    "times less": (Unit.NONE, Decimal(1)),
}
"""Units as the sources print them: our unit, and how many of ours one of theirs is.

The KB of a process's size are /proc's, 1024 bytes. The GB of guestperf's ms/GB are GiB: its
stress program counts 1024 times 1 MiB.
"""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a measurement was published.

    :param place: mailing list, project or document.
    :param date: ISO date of publication, or as much of it as is known; empty if nothing is.
    :param key: message id, pull request or path, which finds it in that place.
    :param checked: the figures were compared with the source's own text.
    """

    place: str
    title: str
    date: str = ""
    author: str = ""
    key: str = ""
    url: str = ""
    checked: bool = True

    @property
    def text(self) -> str:
        """Testbed, date and key in one line."""
        return ", ".join(part for part in (self.place, self.date, self.key) if part)


@dataclass(frozen=True, slots=True)
class Figure:
    """A printed figure: a value (*low* is *high*), a range, or none (*low* is None).

    :param printed: as it stands in the source: ``48.8K``, ``~25%``, ``never``.
    :param approximate: the source says so, or the print is rounded.
    """

    printed: str
    low: Decimal | None
    high: Decimal | None
    approximate: bool = False

    @property
    def value(self) -> Decimal | None:
        """The figure where it is one number."""
        return self.low if self.low == self.high else None


class ChangeKind(StrEnum):
    """How a source printed a change."""

    PERCENT = "percent"
    DIFFERENCE = "difference"


@dataclass(frozen=True, slots=True)
class PrintedChange:
    """A change that the source printed with its figures.

    :param printed: as printed: ``+3.3%``, ``+ ~100 MB``.
    :param value: in percent, or for a difference in the table's unit.
    :param against: the arm that it is a change from.
    """

    printed: str
    kind: ChangeKind
    value: Decimal
    against: str
    approximate: bool = False


@dataclass(frozen=True, slots=True)
class Arm:
    """One of the things that were compared.

    :param facts: what sets it apart from the other arms.
    :param bases: by the title of a column of ratios, the arm that this one's figures are divided
        by there.
    """

    name: str
    facts: Facts
    bases: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: *arm* under the conditions *at*."""

    arm: str
    at: Facts
    figure: Figure
    change: PrintedChange | None = None


class Measured(StrEnum):
    """Whether a published figure can be measured on one machine without special hardware."""

    YES = "yes"
    OTHER_SIZE = "other size"
    """The same thing, in another size or by another way: directions compare, figures do not."""
    NO = "no"


@dataclass(frozen=True, slots=True)
class Repeat:
    """How figures are measured with vmtune.

    :param command: what measures them; with :attr:`Measured.NO` on the machines that have what is
        missing here, empty if there is none.
    :param why: what differs from the source, or what is missing here.
    :param arms: of the figures that this is about; empty for all.
    :param at: the conditions that they have.
    """

    measured: Measured
    command: str
    why: str
    arms: tuple[str, ...] = ()
    at: Facts = field(default_factory=dict)

    def concerns(self, row: Row) -> bool:
        """Whether it is about that figure."""
        return (not self.arms or row.arm in self.arms) and self.at.items() <= row.at.items()


@dataclass(frozen=True, slots=True)
class Table:
    """Figures of one kind.

    :param unit: as printed, one of :data:`PRINTED_UNITS`.
    :param metric: the metric of :data:`vmtune.bench.model.metrics.table.METRICS` that it matches;
        None if there is none.
    :param metric_note: how the two differ, or why there is none.
    :param repeats: how its figures are measured here; the first that concerns a figure holds.
    :param note: what a reader has to know.
    """

    name: str
    title: str
    form: Form
    unit: str
    better: Direction
    metric: str | None
    metric_note: str
    rows: tuple[Row, ...]
    repeats: tuple[Repeat, ...]
    note: str = ""

    def repeat_of(self, row: Row) -> Repeat:
        """How that figure is measured here."""
        return next(each for each in self.repeats if each.concerns(row))

    @property
    def conditions(self) -> tuple[str, ...]:
        """The facts by which its rows differ, besides the arm."""
        return in_order(name for row in self.rows for name in row.at)


@dataclass(frozen=True, slots=True)
class Reference:
    """One source's measurements.

    :param setup: what holds for all of its figures, as far as the source says.
    :param constants: figures that are no measurements, by a name with their unit; a list where
        there are several.
    :param notes: what else a reader should know of how the source's figures came about.
    :param scenarios: the shipped files that repeat its matrix.
    """

    id: str
    title: str
    source: Source
    setup: Facts
    arms: Mapping[str, Arm]
    tables: Mapping[str, Table]
    constants: Mapping[str, tuple[Decimal, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()

    def facts_of(self, row: Row) -> Facts:
        """Everything that is known of the conditions of one figure."""
        return {**self.setup, **self.arms[row.arm].facts, **row.at}
