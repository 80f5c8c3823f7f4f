"""Rows of a dataclass, packed for storage: by column, as JSON, compressed.

A column of whole numbers is stored as differences, each less the one before; so is one of
fractions that are exact in tenths or in thousandths, in which those of tuples are stored too.
Unpacking is lossless, and possible without this program::

    SELECT packed FROM sample_chunks ...   then: zlib-flate -uncompress
"""

from __future__ import annotations

import functools
import json
import math
import operator
import typing
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from enum import StrEnum
from itertools import accumulate, chain
from typing import Any, TypeVar

from pydantic_core import from_json

from vmtune.errors import InvalidInput

_T = TypeVar("_T")
_FAST = 1  # zlib's level: the best one takes thrice the time and saves 6 %
_PERS = (10, 1000)
_EXACT = 1 << 53  # up to here floats represent each whole number

Column = Any  # any: a list as it is, or {"by": differences or "lists": numbers, "per": n}


def pack(kind: type[_T], rows: Sequence[_T], onto: bytes | None = None) -> bytes:
    """*rows*, all of them *kind*, as a chunk.

    :param onto: a chunk to append to; the result has its rows too.
    """
    names = list(_restorers(_any(kind)))
    by_field = zip(*map(operator.attrgetter(*names), rows), strict=True)
    columns = dict(zip(names, map(list, by_field), strict=True)) if rows else {n: [] for n in names}
    if onto is None:
        packed = {name: _packed(column) for name, column in columns.items()}
    else:
        before = _current(onto)
        packed = {name: _extended(before[name], column) for name, column in columns.items()}
    return zlib.compress(json.dumps(packed, separators=(",", ":")).encode(), _FAST)


def unpack(kind: type[_T], packed: bytes, after_ms: int | None = None) -> list[_T]:
    """The rows of a chunk.

    :param after_ms: only those whose ``at_ms`` is later: rows are in the order of time.
    :raise InvalidInput: it is damaged.
    """
    restorers = _restorers(_any(kind))
    try:
        columns = {n: _unpacked(column) for n, column in _current(packed).items()}
        wrong = (_required(_any(kind)) - columns.keys()) | (columns.keys() - restorers.keys())
        if wrong or len(set(map(len, columns.values()))) > 1:
            raise ValueError(f"columns are missing, unknown or cut short: {sorted(wrong)}")
        start = bisect_right(columns["at_ms"], after_ms) if after_ms is not None else 0
        rows = {name: restorers[name](column[start:]) for name, column in columns.items()}
    except (ValueError, KeyError, TypeError, zlib.error) as error:
        raise InvalidInput(f"a chunk of a stored series is damaged: {error}") from error
    if list(rows) == list(restorers):
        return list(map(kind, *rows.values()))
    return [kind(**dict(zip(rows, row, strict=True))) for row in zip(*rows.values(), strict=True)]


def _any(kind: type[Any]) -> Any:
    """*kind*, of which mypy does not believe that it can be a key."""
    return kind


@functools.cache
def _restorers(kind: type[Any]) -> Mapping[str, Callable[[list[Any]], Sequence[Any]]]:
    """By field of *kind*, what makes its values of a column of JSON."""
    hints = typing.get_type_hints(kind)
    return {each.name: _restorer(hints[each.name]) for each in fields(kind)}


def _restorer(hint: Any) -> Callable[[list[Any]], Sequence[Any]]:  # any type
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        words = {word.value: word for word in hint}
        return lambda column: [words[value] for value in column]
    if typing.get_origin(hint) is tuple:
        return lambda column: list(map(tuple, column))
    return lambda column: column


@functools.cache
def _required(kind: type[Any]) -> frozenset[str]:
    return frozenset(each.name for each in fields(kind) if each.default is MISSING)


def _extended(stored: Column, more: list[Any]) -> Column:  # any: a field's values
    """A packed column, continued."""
    added = _packed(more)
    if isinstance(stored, list) or isinstance(added, list) or stored["per"] != added["per"]:
        return _packed(_unpacked(stored) + more)
    if "lists" in stored:
        stored["lists"] += added["lists"]
    else:
        added["by"][0] -= sum(stored["by"])
        stored["by"] += added["by"]
    return stored


def _packed(column: list[Any]) -> Column:  # any: a field's values
    kinds = set(map(type, column))
    if kinds == {int}:
        return {"by": _differences(column), "per": 1}
    lists = kinds <= {tuple, list}
    values = list(chain.from_iterable(column)) if lists else column
    if set(map(type, values)) != {float}:
        return column
    for per in _PERS:
        if all(_exact(value, per) for value in values):
            if lists:
                return {"lists": [_in_whole(each, per) for each in column], "per": per}
            return {"by": _differences(_in_whole(column, per)), "per": per}
    return column


def _differences(column: list[int]) -> list[int]:
    return list(map(operator.sub, column, (0, *column)))


def _in_whole(values: Iterable[float], per: int) -> list[int]:
    return [round(value * per) for value in values]


def _exact(value: float, per: int) -> bool:
    """Whether it comes back exactly; minus zero would not."""
    if not math.isfinite(value) or abs(value) * per >= _EXACT:
        return False
    whole = round(value * per)
    return whole / per == value and (whole != 0 or math.copysign(1, value) > 0)


def _current(packed: bytes) -> dict[str, Column]:
    """The packed columns of a chunk."""
    stored: dict[str, Column] = from_json(zlib.decompress(packed))
    if isinstance(stored.get("at_ms"), list) and stored.keys() & {"iteration", "fills_per_mille"}:
        return _earlier(stored)
    return stored


def _unpacked(column: Column) -> list[Any]:  # any: a field's values
    if isinstance(column, list):
        return column
    if "lists" in column:
        return [[value / column["per"] for value in values] for values in column["lists"]]
    whole = list(accumulate(column["by"]))
    return whole if column["per"] == 1 else [value / column["per"] for value in whole]


def _earlier(stored: dict[str, list[Any]]) -> dict[str, Column]:  # any: a field's values
    """A chunk of migrations' samples, or of reapers' rounds, as earlier releases packed them."""
    if "iteration" in stored:
        as_is = ("status", "boundary", "expected_downtime_ms")
        return {n: c if n in as_is else {"by": c, "per": 1} for n, c in stored.items()}
    return {
        "at_ms": {"by": stored["at_ms"], "per": 1},
        "interval_ms": _packed(stored["interval_ms"]),
        "elapsed_ms": _packed([tenths / 10 for tenths in stored["elapsed_tenths_ms"]]),
        "cost_ms": _packed([tenths / 10 for tenths in stored["cost_tenths_ms"]]),
        "fills": _packed([[fill / 1000 for fill in fills] for fills in stored["fills_per_mille"]]),
    }
