"""``vmtune bench export`` and ``plot``: runs as files, and migrations as a dataset."""

from __future__ import annotations

import os
from pathlib import Path

import click

from vmtune.client.commands.bench.dataset import rows, write_rows
from vmtune.client.complete import hosts, profiles
from vmtune.client.resolve import RUN, resolve
from vmtune.client.session import Session, common, pass_session
from vmtune.errors import InvalidInput

FORMATS = ("json", "csv.gz", "parquet", "guestperf", "guestperf-old")
_BY_NAME = {".csv.gz": "csv.gz", ".parquet": "parquet"}


@click.command()
@click.argument("id", metavar="[RUN]", required=False)
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option(
    "--format",
    "wanted",
    type=click.Choice(FORMATS),
    help="Default: by the file's suffix, csv.gz or parquet, else json.",
)
@click.option(
    "--dataset",
    is_flag=True,
    help="Instead of a run, the migrations that the service has recorded, with samples and "
    "forecasts: .jsonl, .jsonl.gz or .parquet.",
)
@click.option("--profile", shell_complete=profiles, help="Of a dataset: only with this profile.")
@click.option("--host", shell_complete=hosts, help="Of a dataset: only from or to this host.")
@click.option(
    "--anonymous", is_flag=True, help="Of a dataset: numbers for names, no ids, texts and paths."
)
@common
@pass_session
def export(
    session: Session,
    id: str | None,
    file: Path | None,
    wanted: str | None,
    dataset: bool,
    profile: str | None,
    host: str | None,
    anonymous: bool,
) -> None:
    """Write a run to a file; with --dataset all migrations.

    json, csv.gz and parquet contain the whole run and can be imported without loss;
    guestperf is the report format of QEMU's own benchmark. parquet needs an extra in the service:
    pip install 'vmtune[parquet]'. A dataset has a row for each migration that has ended, the newest
    first; its parquet needs the extra where the command runs.
    """
    if dataset:
        if id is None or file is not None or wanted is not None:
            raise click.UsageError("--dataset takes a FILE alone, whose suffix says the format")
        found = rows(session.client, {"profile": profile, "host": host}, anonymous=anonymous)
        number = write_rows(Path(id), found)
        said = f"wrote {number:,} migrations to {id}"
        session.report({"file": id, "migrations": number}, said)
        return
    if id is None or file is None:
        raise click.UsageError("a RUN and a FILE are needed, or --dataset and a FILE")
    if profile or host or anonymous:
        raise click.UsageError("--profile, --host and --anonymous are of a --dataset")
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
