"""Reads the published tables: strictly, so that no figure is lost.

Read by hand and not by field types: a figure is kept as it was printed, as a decimal number with
its unit, and tables and arms refer to each other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from vmtune.bench.model.metrics.table import METRICS, Direction
from vmtune.documents.strict import Reader, join, short
from vmtune.errors import NotFound
from vmtune.reference.facts import FACTS, Facts, FactValue
from vmtune.reference.tables import (
    PRINTED_UNITS,
    Arm,
    ChangeKind,
    Figure,
    Form,
    Measured,
    PrintedChange,
    Reference,
    Repeat,
    Row,
    Source,
    Table,
)

_MAX_TEXT = 500
MAX_ROWS = 1000
_LARGEST = 1e15


@cache
def references() -> Mapping[str, Reference]:
    """Every published measurement that ships, by id, in the order of ids.

    :raise InvalidInput: a file is damaged.
    """
    read = [
        read_reference(json.loads(file.read_text("utf-8")), file.name.removesuffix(".json"))
        for file in (files("vmtune.reference") / "data").iterdir()
        if file.name.endswith(".json")
    ]
    return MappingProxyType({each.id: each for each in sorted(read, key=lambda each: each.id)})


def reference(name: str) -> Reference:
    """One of them.

    :raise NotFound: there is none of that id.
    """
    known = references()
    if name not in known:
        raise NotFound(
            f"there is no reference {short(name)}",
            field="id",
            remedy=f"known are {', '.join(known)}",
        )
    return known[name]


def table_of(of: Reference, name: str) -> Table:
    """One table of a reference.

    :raise NotFound: there is none of that name.
    """
    if name not in of.tables:
        raise NotFound(
            f"{of.id} has no table {short(name)}",
            field="table",
            remedy=f"it has {', '.join(of.tables)}",
        )
    return of.tables[name]


def read_reference(raw: object, name: str) -> Reference:
    """A reference from the JSON of its file.

    :param name: what its id has to be.
    :raise InvalidInput: with a problem for each part that cannot be accepted.
    """
    reader = Reader()
    given = reader.mapping(
        raw,
        "",
        ("constants", "notes", "scenarios"),
        ("id", "title", "source", "setup", "arms", "tables"),
    )
    arms = {
        key: _arm(reader, key, value, f"arms.{key}")
        for key, value in reader.mapping(given.get("arms", {}), "arms").items()
    }
    read = Reference(
        id=read_text(reader, given.get("id", ""), "id"),
        title=read_text(reader, given.get("title", ""), "title"),
        source=_source(reader, given.get("source", {})),
        setup=read_facts(reader, given.get("setup", {}), "setup"),
        arms=arms,
        tables={
            key: _table(reader, key, value, f"tables.{key}")
            for key, value in reader.mapping(given.get("tables", {}), "tables").items()
        },
        constants={
            key: _constant(reader, value, f"constants.{key}")
            for key, value in reader.mapping(given.get("constants", {}), "constants").items()
        },
        notes=_texts(reader, given.get("notes", []), "notes"),
        scenarios=_texts(reader, given.get("scenarios", []), "scenarios"),
    )
    if read.id != name:
        reader.refuse("id", "other_id", f"{read.id} is not its file's name", f"call it {name}")
    _check_names(reader, read)
    reader.done(f"the reference {name} cannot be accepted")
    return read


def _check_names(reader: Reader, read: Reference) -> None:
    """That arms are those of the reference, and that no figure is given twice."""

    def known(arm: str, field: str) -> None:
        if arm not in read.arms:
            reader.refuse(
                field, "unknown_arm", f"there is no arm {arm}", f"known: {', '.join(read.arms)}"
            )

    for arm in read.arms.values():
        for title, base in arm.bases.items():
            known(base, f"arms.{arm.name}.bases.{title}")
    for table in read.tables.values():
        seen: set[tuple[str, tuple[tuple[str, FactValue], ...]]] = set()
        for index, row in enumerate(table.rows):
            where = f"tables.{table.name}.rows.{index}"
            known(row.arm, f"{where}.arm")
            if row.change is not None:
                known(row.change.against, f"{where}.change.against")
            key = (row.arm, tuple(sorted(row.at.items())))
            if key in seen:
                reader.refuse(where, "duplicate", "this figure is given twice", "leave one out")
            seen.add(key)


def read_text(reader: Reader, raw: object, field: str) -> str:
    text = reader.text(raw, field, _MAX_TEXT)
    if not text.strip():
        reader.refuse(field, "missing", f"{field} is missing", f"give {field}")
    return text


def _texts(reader: Reader, raw: object, field: str) -> tuple[str, ...]:
    return reader.sequence(raw, field, lambda each, where: read_text(reader, each, where), MAX_ROWS)


def _optional(reader: Reader, parts: Mapping[str, object], name: str, where: str) -> str:
    return reader.text(parts.get(name, ""), join(where, name), _MAX_TEXT)


def _source(reader: Reader, raw: object) -> Source:
    parts = reader.mapping(
        raw, "source", ("date", "author", "key", "url", "checked"), ("place", "title")
    )
    return Source(
        place=read_text(reader, parts.get("place", ""), "source.place"),
        title=read_text(reader, parts.get("title", ""), "source.title"),
        date=_optional(reader, parts, "date", "source"),
        author=_optional(reader, parts, "author", "source"),
        key=_optional(reader, parts, "key", "source"),
        url=_optional(reader, parts, "url", "source"),
        checked=reader.boolean(parts.get("checked", True), "source.checked"),
    )


def read_facts(reader: Reader, raw: object, where: str) -> Facts:
    facts: dict[str, FactValue] = {}
    for name, value in reader.mapping(raw, where, tuple(FACTS)).items():
        if name in FACTS:
            try:
                facts[name] = FACTS[name].accept(value)
            except ValueError as error:
                reader.refuse(
                    join(where, name), "invalid_value", str(error), "see vmtune/reference/facts.py"
                )
    return facts


def _arm(reader: Reader, name: str, raw: object, where: str) -> Arm:
    parts = reader.mapping(raw, where, ("bases",), ("facts",))
    bases = reader.mapping(parts.get("bases", {}), f"{where}.bases")
    return Arm(
        name,
        read_facts(reader, parts.get("facts", {}), f"{where}.facts"),
        {title: read_text(reader, base, f"{where}.bases.{title}") for title, base in bases.items()},
    )


def _table(reader: Reader, name: str, raw: object, where: str) -> Table:
    parts = reader.mapping(
        raw,
        where,
        ("note",),
        ("title", "form", "unit", "better", "metric", "metric_note", "rows", "repeats"),
    )
    unit = read_text(reader, parts.get("unit", ""), f"{where}.unit")
    if unit not in PRINTED_UNITS:
        reader.refuse(f"{where}.unit", "unknown_unit", f"there is no unit {short(unit)}",
                      f"known are {', '.join(PRINTED_UNITS)}")  # fmt: skip
    metric = parts.get("metric")
    if metric is not None and metric not in METRICS:
        reader.refuse(f"{where}.metric", "unknown_metric", f"there is no metric {short(metric)}",
                      "see vmtune/bench/model/metrics/table.py")  # fmt: skip
    metric_note = _optional(reader, parts, "metric_note", where)
    if metric is None and not metric_note:
        reader.refuse(f"{where}.metric_note", "missing", "no metric, and no reason", "say why")
    rows = reader.sequence(
        parts.get("rows", []),
        f"{where}.rows",
        lambda each, field: _row(reader, each, field),
        MAX_ROWS,
    )
    repeats = reader.sequence(
        parts.get("repeats", []),
        f"{where}.repeats",
        lambda each, field: _repeat(reader, each, field),
        MAX_ROWS,
    )
    for index, row in enumerate(rows):
        if not any(each.concerns(row) for each in repeats):
            reader.refuse(f"{where}.repeats", "missing", f"none is about row {index}",
                          "say of every figure how it is measured here")  # fmt: skip
    return Table(
        name=name,
        title=read_text(reader, parts.get("title", ""), f"{where}.title"),
        form=reader.choice(parts.get("form"), f"{where}.form", Form, Form.VALUES),
        unit=unit,
        better=reader.choice(parts.get("better"), f"{where}.better", Direction, Direction.NONE),
        metric=str(metric) if metric is not None else None,
        metric_note=metric_note,
        rows=rows,
        repeats=repeats,
        note=_optional(reader, parts, "note", where),
    )


def _repeat(reader: Reader, raw: object, where: str) -> Repeat:
    parts = reader.mapping(raw, where, ("command", "arms", "at"), ("measured", "why"))
    measured = reader.choice(parts.get("measured"), f"{where}.measured", Measured, Measured.NO)
    command = _optional(reader, parts, "command", where)
    if measured is not Measured.NO and not command:
        reader.refuse(f"{where}.command", "missing", "it is measured here, by no command",
                      "name the command")  # fmt: skip
    return Repeat(
        measured=measured,
        command=command,
        why=read_text(reader, parts.get("why", ""), f"{where}.why"),
        arms=_texts(reader, parts.get("arms", []), f"{where}.arms"),
        at=read_facts(reader, parts.get("at", {}), f"{where}.at"),
    )


def _row(reader: Reader, raw: object, where: str) -> Row:
    parts = reader.mapping(
        raw, where, ("at", "value", "low", "high", "printed", "approximate", "change"), ("arm",)
    )
    return Row(
        arm=read_text(reader, parts.get("arm", ""), f"{where}.arm"),
        at=read_facts(reader, parts.get("at", {}), f"{where}.at"),
        figure=_figure(reader, parts, where),
        change=_change(reader, parts["change"], f"{where}.change") if "change" in parts else None,
    )


def _figure(reader: Reader, parts: Mapping[str, object], where: str) -> Figure:
    printed = _optional(reader, parts, "printed", where)
    approximate = reader.boolean(parts.get("approximate", False), f"{where}.approximate")
    names = [name for name in ("value", "low", "high") if name in parts]
    if names == ["value"]:
        low = high = read_decimal(reader, parts["value"], f"{where}.value")
    elif names == ["low", "high"]:
        low, high = (read_decimal(reader, parts[name], f"{where}.{name}") for name in names)
        if low > high:
            reader.refuse(f"{where}.low", "low_above_high", f"{low} is above {high}", "swap them")
    elif not names and printed:
        return Figure(printed, None, None, approximate)
    else:
        reader.refuse(f"{where}.value", "missing", "there is no figure",
                      "give value, or low and high, or printed alone")  # fmt: skip
        return Figure("", None, None)
    return Figure(printed or f"{low:,}", low, high, approximate)


def _change(reader: Reader, raw: object, where: str) -> PrintedChange:
    parts = reader.mapping(raw, where, ("approximate",), ("printed", "kind", "value", "against"))
    return PrintedChange(
        printed=read_text(reader, parts.get("printed", ""), f"{where}.printed"),
        kind=reader.choice(parts.get("kind"), f"{where}.kind", ChangeKind, ChangeKind.PERCENT),
        value=read_decimal(reader, parts.get("value"), f"{where}.value"),
        against=read_text(reader, parts.get("against", ""), f"{where}.against"),
        approximate=reader.boolean(parts.get("approximate", False), f"{where}.approximate"),
    )


def _constant(reader: Reader, raw: object, where: str) -> tuple[Decimal, ...]:
    if isinstance(raw, list):
        return reader.sequence(
            raw, where, lambda each, field: read_decimal(reader, each, field), 100
        )
    return (read_decimal(reader, raw, where),)


def read_decimal(reader: Reader, raw: object, where: str) -> Decimal:
    """*raw* exactly as written: the shortest text of a float is what stood in the file."""
    return Decimal(str(reader.number(raw, where, -_LARGEST, _LARGEST)))
