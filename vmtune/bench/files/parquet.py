"""A run as a Parquet file, for programs that read tables by column; it is read back to the same
values. Needs the extra ``parquet`` (pyarrow).

The table is that of :mod:`vmtune.bench.files.exchange`: ``part`` says what a row is, and columns
that do not concern it are null. A column has the type of its values: whole numbers, floating-point
numbers (also where series differ in that), truth, or text, which has JSON where values consist of
several.
"""

from __future__ import annotations

import functools
import io
import json
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from vmtune.bench.files.exchange import (
    MAX_BYTES,
    OWN,
    assembled,
    from_document,
    table_columns,
    table_rows,
    to_document,
)
from vmtune.bench.model.runs.run import Run
from vmtune.bench.model.runs.series import KINDS, Series
from vmtune.errors import InvalidInput, SetupError

MARK = b"PAR1"
"""What such a file begins with, and ends."""
Json = Any  # any JSON
_EXACT = 1 << 53
"""Whole numbers below are exact as floating-point ones."""
_PLAIN = (bool, int, float)


def to_parquet(run: Run) -> bytes:
    """All of *run* as a Parquet table.

    :raise SetupError: pyarrow is not installed.
    """
    arrow, parquet = _library()
    rows = list(table_rows(to_document(run)))
    made = {"part": arrow.array([part for part, _ in rows], arrow.string())}
    for name in table_columns()[1:]:
        made[name] = _column(arrow, [cells.get(name) for _, cells in rows], _hints(name))
    out = io.BytesIO()
    parquet.write_table(arrow.table(made), out)
    return out.getvalue()


def from_parquet(content: bytes) -> Run:
    """The run that :func:`to_parquet` made *content* of.

    :raise InvalidInput: it is no such table, naming what is wrong with it.
    :raise SetupError: pyarrow is not installed.
    """
    arrow, parquet = _library()
    try:
        file = parquet.ParquetFile(io.BytesIO(content))
        groups = [file.metadata.row_group(n) for n in range(file.metadata.num_row_groups)]
        if sum(group.total_byte_size for group in groups) > MAX_BYTES:
            raise _no_table(f"it holds more than {MAX_BYTES >> 20} MiB")
        columns = file.read().to_pydict()
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise _no_table(f"it cannot be read: {str(error)[:200]}") from error
    missing = [name for name in OWN if name not in columns]
    if missing:
        raise _no_table(f"it has no column {missing[0]}")
    parts: dict[str, list[int]] = {}
    for row, part in enumerate(columns["part"]):
        parts.setdefault(str(part), []).append(row)
    unknown = parts.keys() - {"run", "metric", *Series}
    if unknown:
        raise _no_table(f"a row of it is a {min(unknown)[:20]!r}")
    try:
        document = json.loads(columns["json"][parts["run"][0]]) if "run" in parts else None
        metrics = {columns["name"][row]: columns["value"][row] for row in parts.get("metric", ())}
        series = {
            each.value: _series(KINDS[each], columns, parts.get(each.value, ())) for each in Series
        }
    except (ValueError, TypeError, RecursionError) as error:
        raise _no_table(str(error)[:200]) from error
    return from_document(assembled(document, metrics, series))


@functools.cache
def _hints(name: str) -> frozenset[Any]:  # any types
    """The types that a column has in all series, None aside."""
    if name == "value":
        return frozenset({float})
    found = frozenset(_plain(typing.get_type_hints(kind).get(name)) for kind in KINDS.values())
    return found - {None}


def _plain(hint: Any) -> Any:  # any type
    """What a value can be other than None: one of the plain types, text, or JSON of several."""
    if isinstance(hint, types.UnionType):
        (hint, *more) = [each for each in typing.get_args(hint) if each is not type(None)]
        if more:
            return dict
    if hint is None or hint in _PLAIN:
        return hint
    return str if isinstance(hint, type) and issubclass(hint, str) else dict


def _column(arrow: Any, values: Sequence[Json], hints: frozenset[Any]) -> Any:  # any: pyarrow's
    if hints <= {str}:
        return arrow.array(values, arrow.string())
    try:
        if hints == {bool}:
            return arrow.array(values, arrow.bool_())
        if hints == {int}:
            return arrow.array(values, arrow.int64())
        exact = all(not isinstance(each, int) or abs(each) < _EXACT for each in values)
        if hints <= {int, float} and exact:
            floats = [None if each is None else float(each) for each in values]
            return arrow.array(floats, arrow.float64())
    except (arrow.ArrowException, OverflowError):
        pass  # a number that no such column can hold
    texts = [None if each is None else json.dumps(each) for each in values]
    return arrow.array(texts, arrow.string())


def _series(
    kind: type[Any], columns: Mapping[str, Sequence[Json]], rows: Sequence[int]
) -> dict[str, list[Json]]:
    """The rows of a series, by column. A value that is none of its type's is refused by the
    caller's checks."""
    hints = typing.get_type_hints(kind)
    found = {}
    for name in (each.name for each in fields(kind)):
        stored = columns.get(name)
        texts, whole = _hints(name) <= {str}, _plain(hints[name]) is int
        values = [None if stored is None else stored[row] for row in rows]
        found[name] = [_value(each, texts, whole) for each in values]
    return found


def _value(stored: Json, texts: bool, whole: bool) -> Json:
    """The original value: the inverse of :func:`_column`.

    :param texts: the column is one of texts; else a text is JSON.
    :param whole: it is a whole number.
    """
    if whole and isinstance(stored, float) and stored.is_integer():
        return int(stored)
    return json.loads(stored) if isinstance(stored, str) and not texts else stored


def _library() -> tuple[Any, Any]:  # any: pyarrow and its Parquet part
    try:
        import pyarrow  # noqa: PLC0415 - of the extra, which need not be installed
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError as error:
        raise SetupError(
            f"Parquet files take pyarrow, which cannot be imported: {error}",
            field="format",
            code="extra_missing",
            remedy="install vmtune with its extra: `pip install vmtune[parquet]`; or use csv.gz",
        ) from error
    return pyarrow, parquet


def _no_table(why: str) -> InvalidInput:
    return InvalidInput(
        f"this is not a table of a run: {why}",
        field="file",
        code="unknown_format",
        remedy="give a Parquet file that vmtune exported",
    )
