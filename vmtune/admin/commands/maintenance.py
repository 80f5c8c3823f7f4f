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
from vmtune.services.backup.backups import Restored

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
    """Back up records and jobs into one FILE, consistently. Services may keep running.

    FILE must not exist; only its owner can read it. A PostgreSQL database needs pg_dump on this
    machine.
    """
    made = admin.backup(_settings(config, state_dir, database_url), file)
    taken = file.stat().st_size
    document = {"file": str(file.absolute()), "bytes": taken, **to_json(made)}
    parts = " and ".join(sorted((Path(one.name).stem for one in made.members), reverse=True))
    session.report(
        document,
        f"{file}: {parts} of {made.kind}, schema {made.revision}, {sum(made.rows.values()):,} "
        f"rows, {size(taken)}",
    )


@click.command()
@click.argument("file", type=_File)
@click.option("--force", is_flag=True, help="Replace existing data, after a backup of it.")
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
    """Restore FILE, a backup of `vmtune db backup`. Stop every service first.

    A database that is not empty is replaced only with --force; a backup of it is kept in the
    state folder, to undo the restore. A backup of an older vmtune is upgraded to this schema.
    Changes since the backup are lost: at its start the service asks QEMU and libvirt for the
    outcome of migrations that were running.
    """
    done = admin.restore(
        _settings(config, state_dir, database_url), file, force=force, reason=session.reason
    )
    document: dict[str, Any] = {
        **to_json(done.manifest),
        "undo": str(done.undo) if done.undo else None,
        "upgraded": list(done.upgraded),
        "revoked_again": done.revoked_again,
        "knows_revoked": done.knows_revoked,
    }
    made = done.manifest
    pairs = [
        ("restored", f"{sum(made.rows.values()):,} rows of {moment(made.made_at.isoformat())}"),
        ("schema", " -> ".join((made.revision, *done.upgraded))),
        ("jobs", "" if made.has_jobs else "none in the backup"),
        ("tokens", _tokens(done)),
        ("kept", f"{done.undo}, the data before the restore" if done.undo else ""),
    ]
    session.show(document, lambda: fields(pairs))


def _tokens(done: Restored) -> str:
    if not done.knows_revoked:
        return "as in the backup: revoke those that were revoked since (vmtune token list)"
    return f"{done.revoked_again} revoked since the backup, and again" if done.revoked_again else ""


@click.command()
@service_options
@common
@pass_session
def check(
    session: Session, config: Path | None, state_dir: Path | None, database_url: str | None
) -> int:
    """Check the integrity and consistency of the databases.

    Checks files and references, the schema, the audit log's hashes, records without a job, jobs
    without a record, and orphans. Changes nothing. Exits 1 if there are problems.
    """
    found = admin.check(_settings(config, state_dir, database_url))
    document = {**to_json(found), "clean": not found.findings}

    def lines() -> Iterator[str]:
        yield from fields(
            [
                ("database", found.database),
                ("schema", found.revision or "none"),
                ("rows", f"{sum(found.rows.values()):,}" if found.rows else ""),
                ("audit log", f"{found.entries:,} entries with matching hashes"),
                ("jobs", f"{found.jobs:,} running"),
            ]
        )
        yield "" if found.findings else "no problems"
        for each in found.findings:
            yield f"{each.code}: {each.message}"
            yield f"  remedy: {each.remedy}"

    session.show(document, lines)
    return ERROR if found.findings else CLEAN


@click.command()
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, and delete nothing.")
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
    """Apply the retention settings, as the service does once an hour.

    Samples of migrations are thinned after samples_whole_days and deleted after samples_days;
    entries of the audit log are deleted after audit_days, VMs that are gone after gone_vms_days,
    idempotency keys after idempotency_days, webhook deliveries after webhook_days,
    forecasts after forecast_days.
    Records and benchmark runs with all their data are kept.
    """
    chosen = _settings(config, state_dir, database_url)
    if dry_run:
        old = admin.would_go(chosen)
        keep = (
            ("would thin", _amount(old.thin), chosen.samples_whole_days),
            ("would delete", _amount(old.drop), chosen.samples_days),
            ("would delete", f"{old.entries:,} entries of the audit log", chosen.audit_days),
            ("would delete", f"{old.vms:,} VMs that are gone", chosen.gone_vms_days),
            ("would delete", f"{old.keys:,} idempotency keys", chosen.idempotency_days),
            ("would delete", f"{old.deliveries:,} webhook deliveries", chosen.webhook_days),
            ("would delete", f"{old.forecasts:,} forecasts", chosen.forecast_days),
        )
        pairs = [(what, _after(text, days)) for what, text, days in keep]
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
                ("dropped", f"{done.vms:,} VMs that are gone"),
                ("dropped", f"{done.keys:,} idempotency keys"),
                ("dropped", f"{done.deliveries:,} webhook deliveries"),
                ("dropped", f"{done.forecasts:,} forecasts"),
            ]
        ),
    )


def _amount(old: Any) -> str:  # any: an Old, which the client does not know
    return f"{old.samples:,} samples of {old.migrations:,} migrations ({size(old.bytes)})"


def _after(text: str, days: int) -> str:
    return f"{text}, older than {days} days" if days else "nothing: kept without limit"
