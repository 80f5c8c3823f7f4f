"""Frozen dataclasses as JSON, and back, by the types of their fields.

No field is named here: one that is added to a class is written and read from then on. What is
read is checked, since it may come from a file or from another machine. A field says its bounds,
its length and its unit in its type::

    memory_bytes: Annotated[int, Interval(ge=MIB, le=GIB), Unit.BYTES] = 512 * MIB
    title: Annotated[str, MaxLen(100)] = ""
"""

from __future__ import annotations

import functools
import json
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import datetime
from enum import Enum, StrEnum
from operator import attrgetter
from typing import Annotated, Any, TypeVar, Union
from uuid import UUID

from annotated_types import Interval, MaxLen

from vmtune.documents.strict import Reader, join, short
from vmtune.errors import InvalidInput
from vmtune.units import Unit

_T = TypeVar("_T")
Json = Any  # any JSON
_Decoder = Callable[[Reader, object, str], Any]  # any: what the type says

_LARGEST = (1 << 63) - 1  # what databases and other programs count in
_MAX_CHARACTERS = 1 << 20
_MAX_ENTRIES = 10_000_000


@dataclass(frozen=True, slots=True)
class Written:
    """How a part of a document is written whose form its type does not say.

    :param read: what reads it, and tells the reader of problems.
    :param write: JSON of it; None for as its type says.
    """

    read: _Decoder
    write: Callable[[Any], Json] | None = None  # any: what the type says


_AS_IT_IS = frozenset({str, int, float, bool, types.NoneType})


def to_json(value: object) -> Json:
    """*value*, dataclasses or containers of them, ready for JSON."""
    if type(value) in _AS_IT_IS:  # most of what there is
        return value
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {
            name: write(getattr(value, name)) for name, write in _writers(_any(type(value))).items()
        }
    if isinstance(value, Mapping):
        return {str(key): to_json(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [to_json(part) for part in value]
    if isinstance(value, frozenset):
        return sorted(map(to_json, value))
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, UUID) else value


def from_json(kind: type[_T], raw: object, where: str = "", what: str = "the document") -> _T:
    """The *kind* that :func:`to_json` made *raw* of. What has a default may be left out.

    :param where: what problems call the document; its parts follow.
    :param what: what a person calls it.
    :raise InvalidInput: with a problem for each part that cannot be accepted.
    """
    reader = Reader()
    made = read(reader, kind, raw, where)
    reader.done(f"{what} cannot be accepted")
    assert isinstance(made, kind)
    return made


def read(reader: Reader, kind: type[_T], raw: object, where: str) -> _T | None:
    """The same with a reader that gathers problems of several documents; None with problems."""
    before = reader.refused
    made: _T = decoder(_any(kind))(reader, raw, where)
    return made if reader.refused == before else None


def check_storable(raw: Json, field: str) -> None:
    """Refuse JSON that Python reads and others do not: NaN, and half a surrogate pair.

    :raise InvalidInput: naming *field*.
    """
    try:
        json.dumps(raw, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InvalidInput(
            f"it holds what no JSON can: {why}",
            field=field,
            code="no_json",
            remedy="leave out NaN, infinities and broken characters",
        ) from None


def to_columns(kind: type[_T], rows: Sequence[_T]) -> dict[str, list[Json]]:
    """*rows* of one dataclass by column: a list of values for each field."""
    names = [each.name for each in fields(kind)]  # type: ignore[arg-type]  # a dataclass
    assert len(names) > 1, "attrgetter gives no tuple for one name"
    if not rows:
        return {name: [] for name in names}
    columns = zip(*map(attrgetter(*names), rows), strict=True)
    hints = typing.get_type_hints(kind)
    return {
        name: list(column) if hints[name] in _PLAIN else [to_json(value) for value in column]
        for name, column in zip(names, columns, strict=True)
    }


def from_columns(reader: Reader, kind: type[_T], raw: object, where: str) -> tuple[_T, ...]:
    """The rows that :func:`to_columns` made *raw* of; empty with problems, of which it tells
    one a column."""
    before = reader.refused
    names, required = _names(_any(kind))
    columns = reader.mapping(raw, where, [n for n in names if n not in required], required)
    hints = typing.get_type_hints(kind)
    read_in: dict[str, list[Any]] = {}
    for name, column in columns.items():
        if name in names:
            read_in[name] = _column(reader, hints[name], column, join(where, name))
    if reader.refused > before:
        return ()
    lengths = {len(column) for column in read_in.values()}
    if len(lengths) > 1:
        listed = ", ".join(f"{name} {len(column)}" for name, column in read_in.items())
        reader.refuse(
            where, "unequal_columns", f"its columns differ in length: {listed}", "repair the file"
        )
        return ()
    given = [name for name in names if name in read_in]
    rows = zip(*(read_in[name] for name in given), strict=True)
    if given == names:
        return tuple(kind(*row) for row in rows)
    return tuple(kind(**dict(zip(given, row, strict=True))) for row in rows)


def _column(reader: Reader, kind: Any, raw: object, where: str) -> list[Any]:  # any type
    if not isinstance(raw, list):
        reader.refuse(where, "not_a_list", f"{short(raw)} is not a list", "give a list")
        return []
    if kind in _PLAIN and set(map(type, raw)) <= {kind} and kind is not float:
        if kind is not int or not raw or (max(raw) <= _LARGEST and min(raw) >= -_LARGEST):
            return raw
    decode = decoder(kind)
    before = reader.refused
    values = []
    for index, value in enumerate(raw):
        values.append(decode(reader, value, f"{where}.{index}"))
        if reader.refused > before:
            break
    return values


def _any(kind: type[Any]) -> Any:
    """*kind*, of which mypy does not believe that it can be a key."""
    return kind


@functools.cache
def _names(kind: type[Any]) -> tuple[list[str], list[str]]:
    """All fields of a dataclass, and those that have no default."""
    required = [
        each.name
        for each in fields(kind)
        if each.default is MISSING and each.default_factory is MISSING
    ]
    return [each.name for each in fields(kind)], required


@functools.cache
def _hints(kind: type[Any]) -> Mapping[str, Any]:  # any type
    """The types of a dataclass's fields, with what they say beside."""
    return typing.get_type_hints(kind, include_extras=True)


@functools.cache
def _writers(kind: type[Any]) -> Mapping[str, Callable[[Any], Json]]:
    """What makes JSON of each field of a dataclass."""
    found = {}
    for each in fields(kind):
        said = getattr(_hints(_any(kind))[each.name], "__metadata__", ())
        own = [one.write for one in said if isinstance(one, Written) and one.write is not None]
        found[each.name] = own[0] if own else to_json
    return found


@functools.cache
def decoder(kind: Any) -> _Decoder:  # any type
    """The function that reads a *kind* and reports problems to a reader."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return lambda _reader, raw, _where: raw
    if origin is Annotated:
        return _annotated(parts[0], parts[1:])
    if origin in (Union, types.UnionType):
        return _union(parts)
    if origin is frozenset:
        several = decoder(types.GenericAlias(tuple, (parts[0], ...)))
        return lambda reader, raw, where: frozenset(several(reader, raw, where))
    if origin is tuple:
        each = decoder(parts[0])
        return lambda reader, raw, where: reader.sequence(
            raw, where, lambda part, at: each(reader, part, at), _MAX_ENTRIES
        )
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(decoder(parts[1]))
    if isinstance(kind, type) and is_dataclass(kind):
        return _dataclass(kind)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return _choice(kind)
    return _PLAIN[kind] if kind in _PLAIN else _WORDED[kind]


def _union(parts: tuple[Any, ...]) -> _Decoder:
    others = [part for part in parts if part is not types.NoneType]
    optional = len(others) < len(parts)
    if len(others) == 1:
        one = decoder(others[0])
        return lambda reader, raw, where: (
            None if optional and raw is None else one(reader, raw, where)
        )
    assert all(part in _PLAIN for part in others), "of several types only plain ones"

    def read_union(reader: Reader, raw: object, where: str) -> object:
        if optional and raw is None:
            return None
        if type(raw) in others:
            return _PLAIN[type(raw)](reader, raw, where)
        names = ", ".join(part.__name__ for part in others)
        reader.refuse(where, "invalid_value", f"{short(raw)} is not one of {names}", f"use {names}")
        return None

    return read_union


def _annotated(kind: Any, said: tuple[object, ...]) -> _Decoder:  # any type
    unit = next((each for each in said if isinstance(each, Unit)), Unit.NONE)
    for each in said:
        match each:
            case Written():
                return each.read
            case Interval(ge=int() | float() as least, le=int() | float() as most):
                if kind is int:
                    assert isinstance(least, int)
                    assert isinstance(most, int)
                    return functools.partial(_bounded_integer, least, most, unit)
                return functools.partial(_bounded_number, least, most)
            case MaxLen():
                if kind is str:
                    return functools.partial(_bounded_text, each.max_length)
                return functools.partial(_few, each.max_length, decoder(kind))
    return decoder(kind)


def _bounded_integer(
    least: int, most: int, unit: Unit, reader: Reader, raw: object, where: str
) -> int:
    return reader.integer(raw, where, least, most, unit=unit)


def _bounded_number(least: float, most: float, reader: Reader, raw: object, where: str) -> float:
    return float(reader.number(raw, where, least, most))


def _bounded_text(most: int, reader: Reader, raw: object, where: str) -> str:
    return reader.text(raw, where, most)


def _few(most: int, inner: _Decoder, reader: Reader, raw: object, where: str) -> Any:  # any type
    """At most so many entries, of a list or of an object."""
    if isinstance(raw, list | tuple | Mapping) and len(raw) > most:
        reader.refuse(
            where,
            "too_many",
            f"there are {len(raw):,} entries, and {most:,} are the most",
            "leave some out",
        )
        return ()
    return inner(reader, raw, where)


def _mapping(part: _Decoder) -> _Decoder:
    return lambda reader, raw, where: {
        name: part(reader, value, join(where, name))
        for name, value in reader.mapping(raw, where).items()
    }


def _choice(kind: type[StrEnum]) -> _Decoder:
    words = {word.value: word for word in kind}

    def read_choice(reader: Reader, raw: object, where: str) -> object:
        known = words.get(raw) if isinstance(raw, str) else None
        return known or reader.choice(raw, where, kind, next(iter(kind)))

    return read_choice


def _dataclass(kind: type[Any]) -> _Decoder:
    def read_dataclass(reader: Reader, raw: object, where: str) -> object:
        names, required = _names(_any(kind))
        hints = _hints(_any(kind))
        before = reader.refused
        optional = [name for name in names if name not in required]
        given = reader.mapping(raw, where, optional, required)
        read_in = {
            name: decoder(hints[name])(reader, given[name], join(where, name))
            for name in names
            if name in given
        }
        if reader.refused > before:
            return None
        return reader.part(where, lambda: kind(**read_in), None)

    return read_dataclass


def _float(reader: Reader, raw: object, where: str) -> float:
    return float(reader.number(raw, where, -sys.float_info.max, sys.float_info.max))


def _boolean(reader: Reader, raw: object, where: str) -> bool:
    return reader.boolean(raw, where)


def _integer(reader: Reader, raw: object, where: str) -> int:
    return reader.integer(raw, where, -_LARGEST, _LARGEST)


def _text(reader: Reader, raw: object, where: str) -> str:
    return reader.text(raw, where, _MAX_CHARACTERS)


def _uuid(reader: Reader, raw: object, where: str) -> UUID | None:
    try:
        return UUID(str(raw))
    except ValueError:
        reader.refuse(where, "invalid_value", f"{short(raw)} is not a UUID", "give a UUID")
        return None


def _moment(reader: Reader, raw: object, where: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(raw))
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        reader.refuse(
            where, "invalid_value", f"{short(raw)} is not a time with a time zone",
            "write it like 2026-11-21T04:30:00+00:00",
        )  # fmt: skip
        return None
    return found


_PLAIN: Mapping[Any, _Decoder] = {bool: _boolean, int: _integer, float: _float, str: _text}
_WORDED: Mapping[Any, _Decoder] = {UUID: _uuid, datetime: _moment}
