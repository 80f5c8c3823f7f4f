"""Rows of a dataclass, packed for storage: by column, as JSON, compressed.

A column of whole numbers is kept as differences, each less the one before; so is one of
fractions that are exact in thousandths. What comes back is what was put in, to the last digit,
and is readable without this program::

    SELECT packed FROM run_chunks ...   then: zlib-flate -uncompress
"""

from __future__ import annotations

import json
import math
import operator
import zlib
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, TypeVar

from vmtune.documents.dataclass_json import from_columns, to_columns
from vmtune.documents.strict import Reader

_T = TypeVar("_T")
_FAST = 1  # zlib's level: the best one takes thrice the time and saves 6 %
_PER = 1000
_EXACT = 1 << 53  # up to here each whole number is a float of its own

Column = Any  # any: a list as it is, or {"by": differences, "per": 1 or 1000}


def pack(kind: type[_T], rows: Sequence[_T]) -> bytes:
    """*rows*, all of them *kind*, as a chunk."""
    columns = {name: _packed(column) for name, column in to_columns(kind, rows).items()}
    return zlib.compress(json.dumps(columns, separators=(",", ":")).encode(), _FAST)


def unpack(kind: type[_T], packed: bytes) -> tuple[_T, ...]:
    """The rows of a chunk."""
    stored: dict[str, Column] = json.loads(zlib.decompress(packed))
    columns = {name: _unpacked(column) for name, column in stored.items()}
    reader = Reader()
    rows = from_columns(reader, kind, columns, "chunk")
    reader.done("a chunk of a run's record is damaged")
    return rows


def _packed(column: list[Any]) -> Column:  # any: a field's values
    kinds = set(map(type, column))
    if kinds == {int}:
        return {"by": _differences(column), "per": 1}
    if kinds == {float} and all(map(_in_thousandths, column)):
        return {"by": _differences([round(value * _PER) for value in column]), "per": _PER}
    return column


def _differences(column: list[int]) -> list[int]:
    return list(map(operator.sub, column, (0, *column)))


def _in_thousandths(value: float) -> bool:
    """Whether it comes back exactly; minus zero would not."""
    if not math.isfinite(value) or abs(value) * _PER >= _EXACT:
        return False
    whole = round(value * _PER)
    return whole / _PER == value and (whole != 0 or math.copysign(1, value) > 0)


def _unpacked(column: Column) -> list[Any]:  # any: a field's values
    if isinstance(column, list):
        return column
    whole = list(accumulate(column["by"]))
    return whole if column["per"] == 1 else [value / column["per"] for value in whole]
