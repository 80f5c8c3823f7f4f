"""``vmtune bench import``: reads files of runs on this machine, and sends them to the service."""

# ruff: noqa: PLC0415 - imported where needed: Parquet's library is heavy, and need not be there

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click

from vmtune.client.connection.errors import Refused
from vmtune.client.connection.http import Document
from vmtune.client.ids import short
from vmtune.client.session import Session, common, pass_session
from vmtune.client.views.output import Column, table
from vmtune.errors import InvalidInput, Problem

_LARGEST_FILE_BYTES = 1 << 30


@click.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE...",
                type=click.Path(path_type=Path))  # fmt: skip
@common
@pass_session
def import_(session: Session, files: tuple[Path, ...]) -> None:
    """Import runs from files.

    FILE is a run that `vmtune bench export` wrote as json, csv.gz or parquet, or a report of
    QEMU's guestperf. A run that exists already is refused: it would count twice.
    """
    rows: list[tuple[Path, Document]] = []
    refusals: list[Problem] = []
    for file, document in [(file, _read(file)) for file in files]:
        query = {"name": file.name[:200]}
        try:
            row = session.client.request("POST", "/runs/import", query, document).document
        except Refused as error:
            refusals += [replace(p, message=f"{file.name}: {p.message}") for p in error.problems]
        else:
            rows.append((file, row))
    columns = (Column("FILE"), Column("RUN"), Column("SCENARIO"), Column("STATE"))
    cells = [(str(file), short(row["id"]), row["scenario"], row["state"]) for file, row in rows]
    imported = {"items": [row for _, row in rows], "next": None}
    session.show(imported, lambda: table(columns, cells, "nothing was imported"))
    if refusals:
        raise InvalidInput("not all files were imported", problems=refusals)


def _read(file: Path) -> Document:
    """What a file holds, as JSON.

    :raise InvalidInput: it cannot be read, or is of another kind.
    """
    where = str(file)
    try:
        if file.stat().st_size > _LARGEST_FILE_BYTES:
            raise InvalidInput("is larger than 1 GiB", field=where, remedy="give a file of a run")
        content = file.read_bytes()
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}", field=where) from error
    if content.startswith(b"\x1f\x8b"):  # gzip's mark
        from vmtune.bench.files import exchange

        return exchange.to_document(exchange.from_csv_gz(content))
    if content.startswith(b"PAR1"):  # Parquet's
        from vmtune.bench.files import exchange, parquet

        return exchange.to_document(parquet.from_parquet(content))
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"is not JSON, csv.gz or Parquet: {error}",
            field=where,
            remedy="give a file that `vmtune bench export` wrote, or a report of guestperf",
        ) from error
    if not isinstance(document, dict):
        raise InvalidInput("is not an object", field=where, remedy="give a file of a run")
    return document
