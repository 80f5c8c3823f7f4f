"""Runs as files: pictures, exports, imports."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid5

from vmtune.bench import guestperf
from vmtune.bench.files import exchange, parquet
from vmtune.bench.model.runs.run import Run
from vmtune.bench.plots.plot import plot_run
from vmtune.errors import InvalidInput
from vmtune.storage import Store

Json = Any  # any JSON


class FileFormat(StrEnum):
    """What a run can be exported as."""

    JSON = "json"
    CSV_GZ = "csv.gz"
    PARQUET = "parquet"
    """Takes the extra of that name."""
    GUESTPERF = "guestperf"
    GUESTPERF_OLD = "guestperf-old"
    """In its older form, without the dirty limit's fields."""


@dataclass(frozen=True, slots=True)
class RunFile:
    """A run as a file.

    :param name: what to call it.
    """

    name: str
    content: bytes
    media_type: str


_REPORTS = UUID("6f0a2d0e-7d3c-5f0b-9a55-3c1d0f2b7e61")
"""Under which a report gets its id: the same report is the same run."""


def _json(document: Json) -> bytes:
    return json.dumps(document, separators=(",", ":"), allow_nan=False).encode()


def _report(run: Run, form: guestperf.Form | None) -> bytes:
    return guestperf.export_report(run, form).encode()


_FORMATS: Mapping[FileFormat, tuple[str, str, Callable[[Run], bytes]]] = {
    FileFormat.JSON: (
        "json", "application/json", lambda run: _json(exchange.to_document(run))),
    FileFormat.CSV_GZ: ("csv.gz", "application/gzip", exchange.to_csv_gz),
    FileFormat.PARQUET: (
        "parquet", "application/vnd.apache.parquet", parquet.to_parquet),
    FileFormat.GUESTPERF: (
        "guestperf.json", "application/json", lambda run: _report(run, None)),
    FileFormat.GUESTPERF_OLD: (
        "guestperf.json", "application/json", lambda run: _report(run, guestperf.Form.OLD)),
}  # fmt: skip
"""Of each format: the file's ending, its media type, and what makes it."""


MEDIA_TYPES = tuple(dict.fromkeys(media_type for _, media_type, _ in _FORMATS.values()))
"""What an export can be."""


def whole_run(store: Store, id: UUID) -> Run:
    """A run that has ended, with its environment and all that it recorded.

    :raise NotFound: no such run.
    :raise InvalidInput: it has not ended.
    """
    run = store.runs.get(id)
    if not run.state.ended:
        raise InvalidInput(
            f"the run is {run.state.value}",
            field="run",
            code="not_ended",
            remedy="wait for its end; GET /runs/{id} tells of it",
        )
    return replace(run, record=store.runs.record(id))


def exported_run(store: Store, id: UUID, format: FileFormat) -> RunFile:
    """A whole run as a file.

    :raise NotFound: no such run.
    :raise InvalidInput: it has not ended.
    :raise SetupError: the format takes an extra that is not installed.
    """
    run = whole_run(store, id)
    ending, media_type, make = _FORMATS[format]
    content = make(run)
    return RunFile(f"run-{str(run.id)[:8]}.{ending}", content, media_type)


def plotted_run(store: Store, id: UUID) -> str:
    """A picture of a whole run, as one HTML page.

    :raise NotFound: no such run.
    :raise InvalidInput: it has not ended.
    """
    return plot_run(whole_run(store, id))


def read_run(document: Json, name: str = "") -> Run:
    """A run from a file's JSON: our own, or guestperf's.

    :param name: what the file is called.
    :raise InvalidInput: with a problem for each part that cannot be accepted.
    """
    if guestperf.looks_like_report(document):
        text = json.dumps(document, sort_keys=True)
        run = guestperf.import_report(text, uuid5(_REPORTS, text), datetime.now(UTC))
        return replace(run, imported_from=f"guestperf: {name}" if name else "guestperf")
    run = exchange.from_document(document)
    return replace(run, imported_from=run.imported_from or name or f"a run of {run.host}")
