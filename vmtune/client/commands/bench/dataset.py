"""The migrations that the service has recorded, as a dataset: a row each, with its samples and its
forecasts, readable with pandas."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import IO, Any

from vmtune.client.connection.http import Client, Document, Query
from vmtune.errors import InvalidInput

_KEPT = (
    "id", "vm", "vm_name", "source", "destination", "trigger", "profile", "revision", "values",
    "state", "failure", "created_at", "started_at", "active_at", "ended_at", "totals",
    "downtime_limit_ms", "samples_kept", "step_records", "disks",
)  # fmt: skip
_NAMED = {"vm": "vm", "vm_name": "vm", "source": "host", "destination": "host"}
"""What is numbered where names are left out, and as what."""
SUFFIXES = (".jsonl", ".jsonl.gz", ".parquet")


def rows(client: Client, query: Query, *, anonymous: bool) -> Iterator[Document]:
    """The ended migrations, the newest first.

    :param anonymous: without ids, texts and paths, and with numbers for names.
    """
    shown = _without_names() if anonymous else _as_it_is
    for record in client.items("/migrations", query):
        if not record["ended"]:
            continue
        row: dict[str, Any] = {name: record[name] for name in _KEPT}  # any JSON
        path = f"/migrations/{record['id']}"
        row["forecasts"] = client.get(f"{path}/forecasts")["items"]
        row["samples"] = list(client.items(f"{path}/samples"))
        yield shown(row)


def write_rows(file: Path, found: Iterable[Document]) -> int:
    """Write them, wholly or not at all; how many.

    :raise InvalidInput: the file cannot be written, its suffix is not known, or what writes Parquet
        is not installed.
    """
    suffix = next((end for end in sorted(SUFFIXES) if file.name.endswith(end)), None)
    if suffix is None:
        raise InvalidInput(
            f"what is in {file.name} is not said by its suffix",
            field="FILE",
            remedy=f"end it with {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}",
        )
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with _removed_at_failure(beside):
            if file.name.endswith(".parquet"):
                number = _parquet(beside, found)
            else:
                packed = file.name.endswith(".gz")
                with gzip.open(beside, "wt") if packed else beside.open("w") as out:
                    number = _lines(out, found)
            beside.replace(file)
    except OSError as error:
        raise InvalidInput(
            f"cannot be written: {error.strerror}",
            field=str(file),
            remedy="use a writable folder",
        ) from error
    return number


@contextmanager
def _removed_at_failure(file: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        file.unlink(missing_ok=True)
        raise


def _lines(out: IO[str], found: Iterable[Document]) -> int:
    number = 0
    for number, row in enumerate(found, 1):  # noqa: B007 - the last is how many
        out.write(json.dumps(row) + "\n")
    return number


def _parquet(file: Path, found: Iterable[Document]) -> int:
    try:
        import pyarrow  # noqa: PLC0415 - of the extra, which need not be installed
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError as error:
        raise InvalidInput(
            "Parquet needs an extra that is not installed here",
            field="FILE",
            remedy="pip install 'vmtune[parquet]', or end the file with .jsonl",
        ) from error
    table = pyarrow.Table.from_pylist([_without_empty(row) for row in found])
    parquet.write_table(table, file, compression="zstd")
    return int(table.num_rows)


def _without_empty(value: Any) -> Any:  # any JSON
    """Null for an object without fields: Parquet has no such type."""
    if isinstance(value, dict):
        return {name: _without_empty(each) for name, each in value.items()} or None
    if isinstance(value, list):
        return [_without_empty(each) for each in value]
    return value


def _as_it_is(row: Document) -> Document:
    return row


def _without_names() -> Callable[[Document], Document]:
    """What replaces names by numbers, the same name by the same number."""
    known: dict[tuple[str, object], str] = {}
    numbers = {kind: count(1) for kind in {*_NAMED.values(), "profile"}}

    def number(kind: str, name: object) -> str | None:
        if name is None:
            return None
        if (kind, name) not in known:
            known[kind, name] = f"{kind}{next(numbers[kind])}"
        return known[kind, name]

    def without(row: Document) -> Document:
        vm = number("vm", row["vm"])
        hidden = {name: number(kind, row[name]) for name, kind in _NAMED.items() if kind != "vm"}
        disks = [{**disk, "path": "", "source_image_reason": ""} for disk in row["disks"]]
        return {
            **row,
            **hidden,
            "id": "",
            "vm": vm,
            "vm_name": vm,
            "profile": number("profile", row["profile"]),
            "failure": "",
            "step_records": [{**step, "detail": ""} for step in row["step_records"]],
            "disks": disks,
        }

    return without
