"""Own figures next to published ones, cell by cell, and how each stands to its published one.

The files of ``measured/`` have what was measured with vmtune, when, where and how. A published
figure without an own one says why: it has not been measured yet, or cannot be here
(:attr:`~vmtune.reference.tables.Table.repeats`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from functools import cache, partial
from importlib.resources import files
from types import MappingProxyType

from vmtune.documents.strict import Reader, join, short
from vmtune.reference.changes import Compared, Ratio, compared, ratio
from vmtune.reference.facts import FACTS, Facts
from vmtune.reference.loading import MAX_ROWS, read_decimal, read_facts, read_text, references
from vmtune.reference.matching import Agreement, agreement
from vmtune.reference.tables import Figure, Measured, Reference, Repeat, Row, Table

_ALIKE = Decimal("1.05")
"""Ratios that are no further apart than this factor are of like size."""


_Key = tuple[str, frozenset[tuple[str, object]]]


class ReferenceVerdict(StrEnum):
    """How a published figure and what was measured here stand to each other."""

    SAME = Agreement.SAME.value
    OPPOSITE = Agreement.OPPOSITE.value
    NEITHER = Agreement.NEITHER.value
    VALUE = "value only"
    """A base of ratios, or a figure whose base was not measured here."""
    NOT_YET = "not measured yet"
    NOT_HERE = "not reproducible here"


@dataclass(frozen=True, slots=True)
class Measurement:
    """Where own figures come from.

    :param date: ISO date, or as much of it as is known.
    :param how: runs, blocks, load of the machine, and what differs from the source.
    :param command: what measures the same again.
    :param recorded: the page of the documentation that had the figures first; empty if none.
    """

    key: str
    date: str
    machine: str
    qemu: str
    how: str
    command: str
    recorded: str = ""


@dataclass(frozen=True, slots=True)
class OwnFigure:
    """What was measured here under the conditions of a published figure.

    :param figure: in the unit of the published table; in words if only ratios were recorded.
    :param ratios: to the arms that the published one has ratios to, where they were measured with
        an interval: their ends.
    :param differences: likewise from those arms, in the unit of the table, where a value of 0
        leaves no ratio.
    """

    measurement: Measurement
    figure: Figure
    ratios: Mapping[str, Ratio] = field(default_factory=dict)
    differences: Mapping[str, tuple[Decimal, Decimal]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Compare:
    """A published ratio and the own one of the same two arms.

    :param own: None where it was not measured, or has no ratio.
    :param sure: the own ratio has an interval; else it is that of two medians.
    :param difference: in words, where there is no own ratio.
    """

    title: str
    base: str
    published: Ratio
    own: Ratio | None = None
    agreement: Agreement | None = None
    sure: bool = False
    difference: str = ""

    @property
    def text(self) -> str:
        """``old: 0.800 to 0.900 here, 1.03 published: opposite direction, other size``."""
        there = f"{self.published.text} published"
        if self.difference and self.agreement is not None:
            return f"{self.title}: {self.difference} here, {there}: {self.agreement.value}"
        if self.own is None or self.agreement is None:
            return f"{self.title}: {there}, not measured here"
        medians = "" if self.sure else " (of medians)"
        size = "" if self.agreement is Agreement.NEITHER else f", {_size(self.own, self.published)}"
        return f"{self.title}: {self.own.text}{medians} here, {there}: {self.agreement.value}{size}"


@dataclass(frozen=True, slots=True)
class Cell:
    """A published figure, with what there is of it here.

    :param own: None where it was not measured.
    :param comparisons: one for each of its published ratios, where it was measured.
    :param repeat: how it is measured here, or why it cannot be.
    """

    row: Row
    own: OwnFigure | None
    comparisons: tuple[Compare, ...]
    repeat: Repeat

    @property
    def verdict(self) -> ReferenceVerdict:
        """Of all its ratios: one that is opposite counts before one that is the same."""
        if self.own is None:
            no = self.repeat.measured is Measured.NO
            return ReferenceVerdict.NOT_HERE if no else ReferenceVerdict.NOT_YET
        found = {each.agreement for each in self.comparisons}
        for each in (Agreement.OPPOSITE, Agreement.SAME, Agreement.NEITHER):
            if each in found:
                return ReferenceVerdict(each.value)
        return ReferenceVerdict.VALUE

    @property
    def text(self) -> str:
        """The verdict, and what it follows from."""
        if self.own is not None:
            shown = [each.text for each in self.comparisons]
            if not shown:
                shown = [f"{ReferenceVerdict.VALUE.value}: no ratio is published"]
            if self.repeat.measured is Measured.NO:
                shown.append(f"{ReferenceVerdict.NOT_HERE.value}: {self.repeat.why}")
            return "; ".join(shown)
        because = f"{self.verdict.value}: {self.repeat.why}"
        return f"{because}; run: {self.repeat.command}" if self.repeat.command else because


def _size(own: Ratio, published: Ratio) -> str:
    apart = own.low > published.high * _ALIKE or own.high * _ALIKE < published.low
    return "other size" if apart else "like size"


def cells(of: Reference, table: Table) -> tuple[Cell, ...]:
    """Every figure of *table*, in its order."""
    owns = {_key(arm, at): own for arm, at, own in own_figures().get((of.id, table.name), ())}
    return tuple(_cell(of, table, row, owns) for row in table.rows)


def measurements(found: Iterable[Cell]) -> tuple[Measurement, ...]:
    """Those of the own figures, each once."""
    used = {cell.own.measurement.key: cell.own.measurement for cell in found if cell.own}
    return tuple(used.values())


def _cell(of: Reference, table: Table, row: Row, owns: Mapping[_Key, OwnFigure]) -> Cell:
    own = owns.get(_key(row.arm, row.at))
    comparisons = []
    for each in compared(of, table, row):
        if own is None or each.base == row.arm or each.ratio is None:
            continue
        if each.base in own.differences:
            comparisons.append(_by_difference(table, each, own.differences[each.base]))
            continue
        base = owns.get(_key(each.base, row.at))
        here = own.ratios.get(each.base)
        sure = here is not None
        if here is None and base is not None and base.measurement is own.measurement:
            here = ratio(own.figure, base.figure)
        stands = None if here is None else agreement(table, each.ratio, here.low, here.high)
        comparisons.append(Compare(each.title, each.base, each.ratio, here, stands, sure))
    return Cell(row, own, tuple(comparisons), table.repeat_of(row))


def _by_difference(table: Table, each: Compared, ends: tuple[Decimal, Decimal]) -> Compare:
    """Only the direction can be compared: whether more or less than the base."""
    assert each.ratio is not None
    low, high = (Decimal(1) + end.compare(Decimal(0)) / 2 for end in ends)
    words = f"{ends[0]:+,} to {ends[1]:+,} {table.unit}"
    stands = agreement(table, each.ratio, low, high)
    return Compare(each.title, each.base, each.ratio, None, stands, True, words)


def _key(arm: str, at: Facts) -> _Key:
    return arm, frozenset(at.items())


Results = Mapping[tuple[str, str], tuple[tuple[str, Facts, OwnFigure], ...]]
"""By reference and table: arm, conditions and figure."""


@cache
def own_figures() -> Results:
    """All that ship.

    :raise InvalidInput: a file is damaged, or has a figure of what no source has published.
    """
    found: dict[tuple[str, str], tuple[tuple[str, Facts, OwnFigure], ...]] = {}
    for file in (files("vmtune.reference") / "measured").iterdir():
        if file.name.endswith(".json"):
            name = file.name.removesuffix(".json")
            for table, rows in read_results(json.loads(file.read_text("utf-8")), name).items():
                found[name, table] = rows
    return MappingProxyType(found)


def read_results(raw: object, name: str) -> Mapping[str, tuple[tuple[str, Facts, OwnFigure], ...]]:
    """The own figures of one reference by table, from the JSON of its file.

    :param name: the reference's id.
    :raise InvalidInput: with a problem for each part that cannot be accepted.
    """
    reader = Reader()
    given = reader.mapping(raw, "", (), ("measurements", "tables"))
    of = references().get(name)
    if of is None:
        reader.refuse("", "unknown_reference", f"there is no reference {short(name)}",
                      f"known are {', '.join(references())}")  # fmt: skip
    known = {
        key: _measurement(reader, key, value, f"measurements.{key}")
        for key, value in reader.mapping(given.get("measurements", {}), "measurements").items()
    }
    found = {}
    for table, rows in reader.mapping(given.get("tables", {}), "tables").items():
        where = f"tables.{table}"
        if of is None or table not in of.tables:
            reader.refuse(where, "unknown_table", f"{name} has no table {short(table)}",
                          "name one of its tables")  # fmt: skip
            continue
        published = of.tables[table]
        read = reader.sequence(
            rows, where, partial(_row, reader, known=known, unit=published.unit), MAX_ROWS
        )
        _check_rows(reader, of, published, read, where)
        found[table] = read
    reader.done(f"the own figures of {name} cannot be accepted")
    return found


def _measurement(reader: Reader, key: str, raw: object, where: str) -> Measurement:
    required = ("date", "machine", "qemu", "how", "command")
    parts = reader.mapping(raw, where, ("recorded",), required)
    texts = {each: read_text(reader, parts.get(each, ""), join(where, each)) for each in required}
    recorded = reader.text(parts.get("recorded", ""), join(where, "recorded"), 200)
    return Measurement(key, **texts, recorded=recorded)


def _row(
    reader: Reader,
    raw: object,
    where: str,
    *,
    known: Mapping[str, Measurement],
    unit: str,
) -> tuple[str, Facts, OwnFigure]:
    parts = reader.mapping(
        raw,
        where,
        ("at", "value", "low", "high", "text", "ratios", "differences"),
        ("arm", "measurement"),
    )
    key = read_text(reader, parts.get("measurement", ""), f"{where}.measurement")
    if key not in known:
        reader.refuse(f"{where}.measurement", "unknown_measurement",
                      f"there is no measurement {short(key)}",
                      f"known are {', '.join(known)}")  # fmt: skip
    numbers = {
        each: read_decimal(reader, parts[each], f"{where}.{each}")
        for each in ("value", "low", "high")
        if each in parts
    }
    text = reader.text(parts.get("text", ""), f"{where}.text", 200)
    ratios = {
        base: _ratio(reader, each, f"{where}.ratios.{base}")
        for base, each in reader.mapping(parts.get("ratios", {}), f"{where}.ratios").items()
    }
    where_apart = f"{where}.differences"
    differences = {
        base: _ends(reader, each, f"{where_apart}.{base}")
        for base, each in reader.mapping(parts.get("differences", {}), where_apart).items()
    }
    if not numbers and not text:
        reader.refuse(where, "missing", "there is neither a value nor a text", "give one")
    value = numbers.get("value")
    unknown = Measurement(key, *[""] * 5)
    printed = text or _printed(numbers, unit)
    own = OwnFigure(known.get(key, unknown), Figure(printed, value, value), ratios, differences)
    return (
        read_text(reader, parts.get("arm", ""), f"{where}.arm"),
        read_facts(reader, parts.get("at", {}), f"{where}.at"),
        own,
    )


def _printed(numbers: Mapping[str, Decimal], unit: str) -> str:
    if "value" not in numbers:
        return ""
    spread = (
        f" ({numbers['low']:,} to {numbers['high']:,})" if {"low", "high"} <= set(numbers) else ""
    )
    return f"{numbers['value']:,}{spread} {unit}"


def _ratio(reader: Reader, raw: object, where: str) -> Ratio:
    low, high = _ends(reader, raw, where)
    if low <= 0:
        reader.refuse(f"{where}.low", "no_ratio", f"{low} is not a ratio", "give one above 0")
        return Ratio(Decimal(1), Decimal(1))
    return Ratio(low, high)


def _ends(reader: Reader, raw: object, where: str) -> tuple[Decimal, Decimal]:
    """Of an interval."""
    parts = reader.mapping(raw, where, (), ("low", "high"))
    low = read_decimal(reader, parts.get("low"), f"{where}.low")
    high = read_decimal(reader, parts.get("high"), f"{where}.high")
    if low > high:
        reader.refuse(f"{where}.low", "no_interval", f"{low} to {high} is not an interval",
                      "give its lower end first")  # fmt: skip
    return low, high


def _check_rows(
    reader: Reader,
    of: Reference,
    table: Table,
    rows: tuple[tuple[str, Facts, OwnFigure], ...],
    where: str,
) -> None:
    """That each is of one published figure, and none is given twice."""
    known = {_key(row.arm, row.at) for row in table.rows}
    for index, (arm, at, own) in enumerate(rows):
        field_name = f"{where}.{index}"
        key = _key(arm, at)
        if key not in known:
            shown = ", ".join(f"{FACTS[name].title} {FACTS[name].render(at[name])}" for name in at)
            reader.refuse(field_name, "not_published",
                          f"no figure is published of {arm} {shown}".rstrip(),
                          "give the arm and conditions of a published one, once")  # fmt: skip
        known.discard(key)
        bases = set(of.arms[arm].bases.values()) if arm in of.arms else set()
        for base in {*own.ratios, *own.differences} - bases:
            reader.refuse(f"{field_name}.{base}", "unknown_base",
                          f"no ratio of {arm} to {base} is published",
                          f"known are {', '.join(sorted(bases))}")  # fmt: skip
