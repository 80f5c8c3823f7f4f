"""A run as a file: vmtune's own JSON, and a table for other programs. Both hold all of it, and
are read back to the same values. Pure.

The JSON has the run under ``run``, what its record has once under ``head``, and each of its
series by column under ``series``. The table is one for all: ``part`` says what a row is
(``run``, ``metric``, or a row of a series), and columns that do not concern it are empty::

    part,name,value,json,at_ms,status,iteration,...
    run,,,"{...}",,,
    metric,total_time_ms,1234.0,,,,
    samples,,,,2100,active,1,...
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import types
import typing
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from vmtune.bench.machine.environment import fingerprint
from vmtune.bench.model.runs.run import Run, RunRecord
from vmtune.bench.model.runs.series import KINDS, Head, Series, apart, joined
from vmtune.documents.dataclass_json import check_storable, from_columns, read, to_columns, to_json
from vmtune.documents.strict import Reader
from vmtune.errors import InvalidInput

FORMAT = "vmtune run"
VERSION = 1
MAX_BYTES = 256 << 20
"""The most that a packed table may hold."""

Json = Any  # any JSON
Document = dict[str, Json]
_METRIC = re.compile(r"[a-z][a-z0-9_]{0,79}")
_MAX_METRICS = 1000
OWN = ("part", "name", "value", "json")
"""The columns of a table in addition to those of the series."""


def is_own(raw: object) -> bool:
    """Whether *raw* claims to be a run in our own JSON."""
    return isinstance(raw, Mapping) and raw.get("format") == FORMAT


def to_document(run: Run) -> Document:
    """All of *run* as JSON."""
    head, rows = apart(run.record) if run.record is not None else (None, {})
    own = to_json(replace(run, record=None))
    del own["record"]
    return {
        "format": FORMAT,
        "version": VERSION,
        "run": own,
        "head": to_json(head),
        "series": {
            series.value: to_columns(KINDS[series], found) for series, found in rows.items()
        },
    }


def from_document(raw: object) -> Run:
    """The run that :func:`to_document` made *raw* of.

    :raise InvalidInput: with a problem for each part that cannot be accepted.
    """
    check_storable(raw, "file")
    reader = Reader()
    given = reader.mapping(raw, "", ("head", "series"), ("format", "version", "run"))
    if not is_own(raw):
        reader.refuse("format", "unknown_format", f"this is not a {FORMAT}", "export it anew")
    elif given.get("version") != VERSION:
        reader.refuse(
            "version",
            "unknown_version",
            f"version {str(given.get('version'))[:20]} is not known, only {VERSION}",
            "import it with the vmtune that exported it, or a newer one",
        )
    reader.done("this is not a run that this vmtune can read")
    record = _record(reader, given)
    run = read(reader, Run, given["run"], "run")
    if run is not None:
        _check(reader, run)
    reader.done("the run cannot be accepted")
    assert run is not None
    return replace(run, record=record)


def _record(reader: Reader, given: Mapping[str, Json]) -> RunRecord | None:
    if given.get("head") is None:
        return None
    head = read(reader, Head, given["head"], "head")
    names = [series.value for series in Series]
    columns = reader.mapping(given.get("series", {}), "series", names)
    rows = {
        series: from_columns(reader, KINDS[series], columns[series.value], f"series.{series}")
        for series in Series
        if series.value in columns
    }
    return joined(head, rows) if head is not None else None


def _check(reader: Reader, run: Run) -> None:
    """What no type says."""
    if not run.state.ended:
        reader.refuse(
            "run.state", "not_ended", f"it is {run.state.value}", "export it when it has ended"
        )
    if run.fingerprint != fingerprint(run.environment):
        reader.refuse(
            "run.fingerprint",
            "other_fingerprint",
            "the environment has another fingerprint: one of them was changed",
            "export the run anew",
        )
    if len(run.metrics) > _MAX_METRICS:
        reader.refuse("run.metrics", "too_many", "there are too many metrics", "leave some out")
    for name in run.metrics:
        if not _METRIC.fullmatch(name):
            reader.refuse(
                "run.metrics",
                "invalid_name",
                f"{name[:40]!r} is not a metric's name",
                "use lower-case letters, digits and underscores",
            )


def to_csv_gz(run: Run) -> bytes:
    """All of *run* as a packed table; the same for the same run."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    names = table_columns()
    table.writerow(names)
    for part, cells in table_rows(to_document(run)):
        table.writerow([part, *(_cell(cells.get(name)) for name in names[1:])])
    return gzip.compress(text.getvalue().encode(), mtime=0)


def table_columns() -> list[str]:
    """The columns of a table, ``part`` first."""
    found = dict.fromkeys(OWN)
    for kind in KINDS.values():
        found.update(dict.fromkeys(each.name for each in fields(kind)))
    return list(found)


def table_rows(document: Document) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """What each row of a table is, and its cells; *document* is taken apart."""
    series = document.pop("series")
    metrics = document["run"].pop("metrics")
    yield "run", {"json": json.dumps(document, separators=(",", ":"))}
    for name, value in metrics.items():
        yield "metric", {"name": name, "value": value}
    for part, columns in series.items():
        for row in zip(*columns.values(), strict=True):
            yield part, dict(zip(columns, row, strict=True))


def _cell(value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def from_csv_gz(packed: bytes) -> Run:
    """The run that :func:`to_csv_gz` made *packed* of.

    :raise InvalidInput: it is no such table, naming what is wrong with it.
    """
    rows = csv.DictReader(io.StringIO(_unpacked(packed)), strict=True)
    if list(rows.fieldnames or ())[: len(OWN)] != list(OWN):
        raise _no_table("its first line has other columns")
    document: Document | None = None
    metrics: dict[str, Json] = {}
    parts: dict[str, list[Mapping[str, str]]] = {series.value: [] for series in Series}
    try:
        for row in rows:
            part = row["part"]
            if part == "run":
                document = json.loads(row["json"])
            elif part == "metric":
                metrics[row["name"]] = json.loads(row["value"])
            elif part in parts:
                parts[part].append(row)
            else:
                raise _no_table(f"line {rows.line_num} is a {part[:20]!r}")
    except (csv.Error, ValueError, TypeError, RecursionError) as error:
        raise _no_table(f"line {rows.line_num}: {error}") from error
    series = {each.value: _by_column(KINDS[each], parts[each.value]) for each in Series}
    return from_document(assembled(document, metrics, series))


def assembled(document: Json, metrics: Mapping[str, Json], series: Mapping[str, Json]) -> Document:
    """The run's document, of what a table has it in.

    :raise InvalidInput: the table has no row of the run itself.
    """
    if not isinstance(document, dict) or not isinstance(document.get("run"), dict):
        raise _no_table("it has no row of the run itself")
    run = {**document["run"], "metrics": dict(metrics)}
    return {**document, "run": run, "series": dict(series)}


def _by_column(kind: type[Any], rows: list[Mapping[str, str]]) -> dict[str, list[Json]]:
    hints = typing.get_type_hints(kind)
    return {
        each.name: [_value(hints[each.name], row.get(each.name)) for row in rows]
        for each in fields(kind)
    }


def _value(hint: Any, cell: str | None) -> Json:  # any type
    """A cell as JSON; a text that is none of its type's is refused by the caller's checks."""
    optional = isinstance(hint, types.UnionType)
    if cell is None or (optional and not cell):
        return None
    if isinstance(hint, type) and issubclass(hint, str):
        return cell
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        return cell


def _unpacked(packed: bytes) -> str:
    unpacker = zlib.decompressobj(wbits=31)  # gzip's own format
    try:
        text = unpacker.decompress(packed, MAX_BYTES)
        if unpacker.unconsumed_tail:
            raise _no_table(f"it holds more than {MAX_BYTES >> 20} MiB")
        if not unpacker.eof:
            raise _no_table("it is cut off")
        return text.decode()
    except (zlib.error, UnicodeDecodeError) as error:
        raise _no_table(f"it is not packed as csv.gz: {error}") from error


def _no_table(why: str) -> InvalidInput:
    return InvalidInput(
        f"this is not a table of a run: {why}",
        field="file",
        code="unknown_format",
        remedy="give a csv.gz that vmtune exported",
    )
