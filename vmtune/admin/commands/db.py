"""``vmtune db``: the service's databases."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from vmtune.admin import database as admin
from vmtune.admin.commands.maintenance import backup, check, prune, restore
from vmtune.client.service_options import service_options, settings
from vmtune.client.session import CLEAN, DIFFERENCES, Session, common, pass_session
from vmtune.client.views.output import fields


@click.group()
@common
def db() -> None:
    """Databases of the service: schema, backups, checks. These commands open them directly."""


for _command in (backup, restore, check, prune):
    db.add_command(_command)


@db.command()
@click.option("--no-backup", is_flag=True, help="Make no backup before.")
@service_options
@common
@pass_session
def upgrade(
    session: Session,
    no_backup: bool,
    config: Path | None,
    state_dir: Path | None,
    database_url: str | None,
) -> None:
    """Upgrade the database to the newest schema, or create it.

    Refused while services use it that would fail afterwards. What was there before is backed up
    into the state folder first.
    """
    chosen = settings(config, {"state_dir": state_dir, "database_url": database_url})
    state = admin.upgrade(chosen, keep_backup=not no_backup)
    added = ", ".join(state.added)
    said = f"upgraded to {state.newest}: added {added}" if added else f"already at {state.newest}"
    if state.backup:
        said += (
            f"\nbackup of before: {state.backup}\n"
            f"to go back: install the earlier vmtune, then vmtune db restore {state.backup} --force"
        )
    session.report({**asdict(state), "up_to_date": state.up_to_date}, said)


@db.command()
@service_options
@common
@pass_session
def current(
    session: Session, config: Path | None, state_dir: Path | None, database_url: str | None
) -> int:
    """Show the schema of the database; exits 2 if it is not the newest."""
    chosen = settings(config, {"state_dir": state_dir, "database_url": database_url})
    state = admin.current(chosen)
    pairs = [("database", state.current or "has no schema yet"), ("newest", state.newest)]
    session.show({**asdict(state), "up_to_date": state.up_to_date}, lambda: fields(pairs))
    return CLEAN if state.up_to_date else DIFFERENCES
