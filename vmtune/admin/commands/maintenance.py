"""``vmtune db backup``, ``restore``, ``check`` and ``prune``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from vmtune.admin import maintenance as admin
from vmtune.client.service_options import service_options, settings
from vmtune.client.session import CLEAN, ERROR, Session, common, pass_session
from vmtune.client.views.output import fields
from vmtune.client.views.render import moment, size
from vmtune.config.settings import Settings
from vmtune.documents.dataclass_json import to_json

_File = click.Path(path_type=Path, dir_okay=False)


def _settings(config: Path | None, state_dir: Path | None, database_url: str | None) -> Settings:
    return settings(config, {"state_dir": state_dir, "database_url": database_url})


@click.command()
@click.argument("file", type=_File)
@service_options
@common
@pass_session
def backup(
    session: Session,
    file: Path,
    config: Path | None,
    state_dir: Path | None,
    database_url: str | None,
) -> None:
    """Copy records and jobs into one FILE, as they are at one moment. Services may run meanwhile.

    FILE must not exist, and only its owner may read it. PostgreSQL's pg_dump has to be installed
    here where the database is PostgreSQL.
    """
    made = admin.backup(_settings(config, state_dir, database_url), file)
    taken = file.stat().st_size
    document = {"file": str(file.absolute()), "bytes": taken, **to_json(made)}
    parts = " and ".join(sorted((Path(one.name).stem for one in made.members), reverse=True))
    session.say(
        document,
        f"{file}: {parts} of {made.kind}, schema {made.revision}, {sum(made.rows.values()):,} "
        f"rows, {size(taken)}",
    )


@click.command()
@click.argument("file", type=_File)
@click.option("--force", is_flag=True, help="Replace what is there, after keeping a copy of it.")
@service_options
@common
@pass_session
def restore(
    session: Session,
    file: Path,
    force: bool,
    config: Path | None,
    state_dir: Path | None,
    database_url: str | None,
) -> None:
    """Put back what `vmtune db backup` has copied into FILE. Stop every service first.

    A database that is not empty is replaced with --force alone; a copy of it is kept in the
    state folder, which undoes that. A backup of an older vmtune is brought to this one's schema.
    What has happened since the backup is not known then: at its start the service asks QEMU and
    libvirt what became of the migrations that were under way.
    """
    done = admin.restore(
        _settings(config, state_dir, database_url), file, force=force, reason=session.reason
    )
    document: dict[str, Any] = {
        **to_json(done.manifest),
        "undo": str(done.undo) if done.undo else None,
        "upgraded": list(done.upgraded),
    }
    made = done.manifest
    pairs = [
        ("put back", f"{sum(made.rows.values()):,} rows of {moment(made.made_at.isoformat())}"),
        ("schema", " -> ".join((made.revision, *done.upgraded))),
        ("jobs", "" if made.has_jobs else "none: there were none in it"),
        ("kept", f"{done.undo}, what was there before" if done.undo else ""),
    ]
    session.show(document, lambda: fields(pairs))


@click.command()
@service_options
@common
@pass_session
def check(
    session: Session, config: Path | None, state_dir: Path | None, database_url: str | None
) -> int:
    """Look the databases over: are they whole, and does what is in them fit together?

    Their files and references, the schema, the audit log's hashes, records without a job, jobs
    without a record, and what nothing refers to any more. Changes nothing. Exits 1 where
    something is to be mended.
    """
    found = admin.check(_settings(config, state_dir, database_url))
    document = {**to_json(found), "clean": not found.findings}

    def lines() -> Iterator[str]:
        yield from fields(
            [
                ("database", found.database),
                ("schema", found.revision or "none"),
                ("rows", f"{sum(found.rows.values()):,}" if found.rows else ""),
                ("audit log", f"{found.entries:,} entries follow from each other"),
                ("jobs", f"{found.jobs:,} under way"),
            ]
        )
        yield "" if found.findings else "nothing is wrong with it"
        for each in found.findings:
            yield f"{each.code}: {each.message}"
            yield f"  remedy: {each.remedy}"

    session.show(document, lines)
    return ERROR if found.findings else CLEAN


@click.command()
@click.option("--dry-run", is_flag=True, help="Say what would go, and let nothing go.")
@service_options
@common
@pass_session
def prune(
    session: Session,
    dry_run: bool,
    config: Path | None,
    state_dir: Path | None,
    database_url: str | None,
) -> None:
    """Thin and drop what is older than the settings keep, as the service does once an hour.

    Samples of migrations are thinned after samples_whole_days and dropped after samples_days,
    entries of the audit log are dropped after audit_days. Records stay, and so do benchmark runs
    with all that they measured.
    """
    chosen = _settings(config, state_dir, database_url)
    if dry_run:
        old = admin.would_go(chosen)
        keep = (
            ("would thin", _amount(old.thin), chosen.samples_whole_days),
            ("would drop", _amount(old.drop), chosen.samples_days),
            ("would drop", f"{old.entries:,} entries of the audit log", chosen.audit_days),
        )
        pairs = [(what, _after(told, days)) for what, told, days in keep]
        session.show(to_json(old), lambda: fields(pairs))
        return
    done = admin.prune(chosen, session.reason)
    session.show(
        asdict(done),
        lambda: fields(
            [
                ("thinned", f"{done.thinned:,} migrations, by {done.thinned_samples:,} samples"),
                ("dropped", f"{done.dropped_samples:,} samples of {done.dropped:,} migrations"),
                ("dropped", f"{done.entries:,} entries of the audit log"),
            ]
        ),
    )


def _amount(old: Any) -> str:  # any: an Old, which the client does not know
    return f"{old.samples:,} samples of {old.migrations:,} migrations ({size(old.bytes)})"


def _after(told: str, days: int) -> str:
    return f"{told}, older than {days} days" if days else "nothing: kept for ever"
