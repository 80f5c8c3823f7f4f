"""Samples of a migration, packed for storage.

A sample has 19 numbers of which few change from one to the next. A chunk keeps them by
column, as differences where the column is a number, written as JSON and compressed: about
a quarter of what one row a sample would take, and readable without this program::

    SELECT packed FROM sample_chunks ...   then: zlib-flate -uncompress
"""

from __future__ import annotations

import json
import operator
import zlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import fields
from itertools import accumulate
from typing import Any

from pydantic_core import from_json

from vmtune.model.migration.record import QemuStatus, Sample

_AS_IS = ("status", "boundary", "expected_downtime_ms")  # a word, a truth value, or None
_NAMES = tuple(field.name for field in fields(Sample))
_COLUMNS = operator.attrgetter(*_NAMES)
_FAST = 1  # zlib's level: the best one takes thrice the time and saves 6 %
_STATUSES = {status.value: status for status in QemuStatus}
assert set(_AS_IS) < set(_NAMES), "a column that samples do not have"


def pack(samples: Sequence[Sample], onto: bytes | None = None) -> bytes:
    """*samples* as a chunk.

    :param onto: a chunk that they continue; the result has its samples too.
    """
    stored: dict[str, list[Any]] = {name: [] for name in _NAMES}
    if onto is not None:
        stored = from_json(zlib.decompress(onto))
    for name, column in zip(_NAMES, zip(*map(_COLUMNS, samples), strict=True), strict=True):
        if name in _AS_IS:
            stored[name].extend(column)
        else:
            # Each less the one before it; the differences so far add up to the last.
            stored[name].extend(map(operator.sub, column, (sum(stored[name]), *column)))
    return zlib.compress(json.dumps(stored, separators=(",", ":")).encode(), _FAST)


def unpack(packed: bytes, after_ms: int | None = None) -> list[Sample]:
    """The samples of a chunk.

    :param after_ms: only those that were taken later.
    """
    stored: dict[str, list[Any]] = from_json(zlib.decompress(packed))
    stored["status"] = [_STATUSES[status] for status in stored["status"]]
    columns = [
        stored[name] if name in _AS_IS else list(accumulate(stored[name])) for name in _NAMES
    ]
    if after_ms is not None:  # they are in the order of time
        start = bisect_right(columns[_NAMES.index("at_ms")], after_ms)
        columns = [column[start:] for column in columns]
    assert len({len(column) for column in columns}) == 1, "columns of different lengths"
    return list(map(Sample, *columns))
