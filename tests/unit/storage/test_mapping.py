"""Records as rows, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

import pytest
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from vmtune.storage.mapping import Mapper, Stored
from vmtune.storage.tables.core import Base, JsonList, JsonObject


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    colour: Colour | None = None


@dataclass(frozen=True, slots=True)
class Size:
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Thing:
    name: str
    colour: Colour
    parts: tuple[Part, ...]
    main: Part | None
    labels: Mapping[str, str]
    size: Size | None = None
    elsewhere: int = 0


class Tables(DeclarativeBase):
    type_annotation_map: ClassVar = Base.type_annotation_map


class ThingRow(Tables):
    __tablename__ = "things"

    number: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    colour: Mapped[str]
    parts: Mapped[JsonList]
    main: Mapped[JsonObject | None]
    labels: Mapped[JsonObject]
    width: Mapped[int | None]
    height: Mapped[int | None]


THINGS = Mapper(
    Thing,
    ThingRow,
    name=Stored(str.lower, str.upper),
    size=Stored(
        lambda size: (size.width, size.height) if size else (None, None),
        lambda width, height: Size(width, height) if width is not None else None,
        ("width", "height"),
    ),
)
THING = Thing(
    "A", Colour.RED, (Part("x"), Part("y", Colour.RED)), Part("z"), {"k": "v"}, Size(2, 3)
)


def test_a_record_comes_back_from_its_row() -> None:
    row = THINGS.row(THING, number=7)
    assert (row.number, row.name, row.width, row.height) == (7, "a", 2, 3)
    assert row.parts == [{"name": "x", "colour": None}, {"name": "y", "colour": "red"}]
    assert THINGS.record(row) == THING
    assert isinstance(THINGS.record(row).parts[1].colour, Colour)


def test_what_is_none_comes_back_and_what_has_no_column_is_given() -> None:
    thing = Thing("A", Colour.RED, (), None, {})
    row = THINGS.row(thing)
    assert (row.main, row.width, row.parts) == (None, None, [])
    assert THINGS.record(row, elsewhere=4) == Thing("A", Colour.RED, (), None, {}, elsewhere=4)


def test_a_part_of_an_earlier_release_lacks_what_has_a_default() -> None:
    row = THINGS.row(THING)
    row.parts = [{"name": "x"}]
    assert THINGS.record(row).parts == (Part("x"),)


def test_fields_are_changed_and_none_leaves_one_as_it_is() -> None:
    row = THINGS.row(THING)
    THINGS.change(row, {"name": "B", "parts": [Part("q")], "labels": None, "size": Size(5, 6)})
    changed = THINGS.record(row)
    assert (changed.name, changed.parts, changed.size) == ("B", (Part("q"),), Size(5, 6))
    assert changed.labels == {"k": "v"}


def test_only_the_columns_of_a_record_are_selected() -> None:
    names = [column.key for column in THINGS.selected]
    assert names == ["name", "colour", "parts", "main", "labels", "width", "height"]


def test_exceptions_are_of_fields() -> None:
    with pytest.raises(AssertionError, match="there is not"):
        Mapper(Thing, ThingRow, colours=Stored(str))
