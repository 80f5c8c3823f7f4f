"""Frozen dataclasses as rows of a table, and back, by the names and types of their fields.

A field is in the column of its name: words of an enumeration as text, dataclasses, tuples and
mappings as JSON. A mapper gets the exceptions. Nothing is checked: stored values were checked
before.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from operator import attrgetter
from typing import Any, Generic, TypeVar, Union

from sqlalchemy import Row
from sqlalchemy.orm import DeclarativeBase

from vmtune.documents.dataclass_json import to_json
from vmtune.model.access.scopes import Identity, Kind

_T = TypeVar("_T")
_R = TypeVar("_R", bound=DeclarativeBase)
_Convert = Callable[..., Any]  # any: from and to what a column has


@dataclass(frozen=True, slots=True)
class Stored:
    """How a field is stored.

    :param dump: makes the stored value, a tuple for several columns; *load* makes the field from
        it. None for the type's default.
    :param columns: their names; empty for the field's name.
    """

    dump: _Convert | None = None
    load: _Convert | None = None
    columns: tuple[str, ...] = ()


def stored_identity(column: str) -> Stored:
    """An identity without its rights, in three columns with a common prefix."""
    return Stored(
        lambda who: (who.kind, who.id, who.name),
        lambda kind, id, name: Identity(Kind(kind), id, name),
        (f"{column}_kind", column, f"{column}_name"),
    )


class Mapper(Generic[_T, _R]):
    """Between records of one *kind* and the rows of a table.

    :param stored: by field, exceptions from the type's default. Fields without a column are
        given to :meth:`record`, and columns without a field to :meth:`row`.
    """

    def __init__(self, kind: type[_T], table: type[_R], **stored: Stored) -> None:
        self._kind, self._table = kind, table
        hints = typing.get_type_hints(kind)
        self._dump: dict[str, tuple[tuple[str, ...], _Convert | None]] = {}
        self._names: list[str] = []
        self._load: list[tuple[int, _Convert]] = []
        self._joined: list[tuple[str, _Convert, _Convert]] = []
        for each in fields(kind):  # type: ignore[arg-type]  # a dataclass
            how = stored.get(each.name, Stored())
            columns = how.columns or (each.name,)
            if not all(hasattr(table, name) for name in columns):
                continue
            self._dump[each.name] = columns, how.dump or _dumper(hints[each.name])
            load = how.load or _loader(hints[each.name])
            if how.columns:
                assert load is not None, "several columns make a field"
                self._joined.append((each.name, attrgetter(*columns), load))
            else:
                if load is not None:
                    self._load.append((len(self._names), load))
                self._names.append(each.name)
        assert stored.keys() <= self._dump.keys(), "a field that there is not"
        self._get = attrgetter(*self._names)

    @property
    def selected(self) -> tuple[Any, ...]:  # any: columns
        """The columns that a record is made of, to be selected without the others."""
        names = [name for columns, _ in self._dump.values() for name in columns]
        return tuple(getattr(self._table, name) for name in names)

    def record(self, row: _R | Row[Any], **others: Any) -> _T:  # any: fields without a column
        """The record of a row, or of its columns alone."""
        values = list(self._get(row))
        for index, load in self._load:
            values[index] = load(values[index])
        for name, columns, load in self._joined:
            others[name] = load(*columns(row))
        return self._kind(**dict(zip(self._names, values, strict=True)), **others)

    def row(self, record: _T, **others: Any) -> _R:  # any: columns without a field
        """A row for a record."""
        return self._table(**self.columns(record), **others)

    def columns(self, record: _T) -> dict[str, Any]:  # any: a stored value
        """A record's stored values, by column."""
        return self.stored({name: getattr(record, name) for name in self._dump})

    def change(self, row: _R, changed: Mapping[str, Any]) -> None:  # any: fields of the record
        """Set the fields that are named; None leaves one as it is."""
        given = {name: value for name, value in changed.items() if value is not None}
        for name, value in self.stored(given).items():
            setattr(row, name, value)

    def stored(self, named: Mapping[str, Any]) -> dict[str, Any]:  # any: a stored value
        """The stored values of some fields, by column."""
        found: dict[str, Any] = {}
        for name, value in named.items():
            columns, dump = self._dump[name]
            stored = dump(value) if dump is not None else value
            found.update(zip(columns, stored if len(columns) > 1 else (stored,), strict=True))
        return found


def converter(hint: Any) -> _Convert:  # any type
    """The function that loads a stored value."""
    return _loader(hint) or (lambda stored: stored)


def _loader(hint: Any) -> _Convert | None:  # any type
    """The function that loads a stored value; None if they are equal."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        made = [_loader(part) for part in parts if part is not types.NoneType]
        inner = made[0] if len(made) == 1 else None
        return (lambda raw: None if raw is None else inner(raw)) if inner else None
    if origin is tuple:
        # Null in rows of before the column was there.
        each = _loader(parts[0])
        return (lambda raw: tuple(map(each, raw or ()))) if each else lambda raw: tuple(raw or ())
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return {word.value: word for word in hint}.__getitem__
    if isinstance(hint, type) and is_dataclass(hint):
        return _part(hint)
    return None


def _part(kind: type[Any]) -> _Convert:
    hints = typing.get_type_hints(kind)
    found = {each.name: _loader(hints[each.name]) for each in fields(kind)}
    loaders = {name: load for name, load in found.items() if load is not None}
    if not loaders:
        return lambda raw: kind(**raw)

    def load_part(raw: Mapping[str, Any]) -> Any:  # any JSON
        loaded = {name: load(raw[name]) for name, load in loaders.items() if name in raw}
        return kind(**{**raw, **loaded})

    return load_part


def _dumper(hint: Any) -> _Convert | None:  # any type
    """What makes JSON of a value; None where the column takes it as it is."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return next(filter(None, map(_dumper, parts)), None)
    mapping = isinstance(origin, type) and issubclass(origin, Mapping)
    dataclass_ = isinstance(hint, type) and is_dataclass(hint)
    return to_json if origin is tuple or mapping or dataclass_ else None
