"""``vmtune bench export`` and ``plot``: runs as files."""

from __future__ import annotations

import os
from pathlib import Path

import click

from vmtune.client.resolve import RUN, resolve
from vmtune.client.session import Session, common, pass_session
from vmtune.errors import InvalidInput

FORMATS = ("json", "csv.gz", "parquet", "guestperf", "guestperf-old")
_BY_NAME = {".csv.gz": "csv.gz", ".parquet": "parquet"}


@click.command()
@click.argument("id", metavar="RUN")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "wanted",
    type=click.Choice(FORMATS),
    help="Default: by the file's suffix, csv.gz or parquet, else json.",
)
@common
@pass_session
def export(session: Session, id: str, file: Path, wanted: str | None) -> None:
    """Write a run to a file.

    json, csv.gz and parquet contain the whole run and can be imported without loss;
    guestperf is the report format of QEMU's own benchmark. parquet needs an extra in the service:
    pip install 'vmtune[parquet]'.
    """
    by_name = (form for end, form in _BY_NAME.items() if file.name.endswith(end))
    chosen = wanted or next(by_name, "json")
    run = resolve(session.client, id, RUN)
    content = session.client.download(f"/runs/{run}/export", {"format": chosen})
    write(file, content)
    document = {"run": run, "file": str(file), "format": chosen, "bytes": len(content)}
    session.report(document, f"wrote {len(content):,} bytes to {file}")


def write(file: Path, content: bytes) -> None:
    """Write a file, wholly or not at all.

    :raise InvalidInput: it cannot be written.
    """
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        beside.write_bytes(content)
        beside.replace(file)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise InvalidInput(
            f"cannot be written: {error.strerror}",
            field=str(file),
            remedy="use a writable folder",
        ) from error


@click.command()
@click.argument("id", metavar="RUN")
@click.argument("file", type=click.Path(path_type=Path))
@common
@pass_session
def plot(session: Session, id: str, file: Path) -> None:
    """Write the plots of a run to a file, as one HTML page."""
    run = resolve(session.client, id, RUN)
    content = session.client.download(f"/runs/{run}/plot")
    write(file, content)
    session.report({"run": run, "file": str(file)}, f"wrote {len(content):,} bytes to {file}")
