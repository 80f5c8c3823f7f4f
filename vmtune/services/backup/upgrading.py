"""Upgrades a database that services may be using: refused where it would break them, and backed up
before."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Engine, inspect, text

from vmtune.errors import Conflict, OutcomeUnknown, SetupError, VmtuneError
from vmtune.services.backup import postgresql, sqlite
from vmtune.services.backup.backups import Databases, backup
from vmtune.services.cluster.cluster import HEARTBEAT_INTERVAL_S
from vmtune.storage.failures import masked, translated
from vmtune.storage.upgrades import (
    current_revision,
    pending_revisions,
    settled_revision,
    upgrade,
)

_LOOKS_S = 3 * HEARTBEAT_INTERVAL_S
"""How long services are given to send another heartbeat."""
_LIVE = "SELECT name, version, beats FROM services WHERE state = 'running'"


@dataclass(frozen=True, slots=True)
class Upgraded:
    """The result of an upgrade.

    :param added: the revisions that were added, oldest first.
    :param backup: the backup of what was there before; None where nothing was, or none was asked.
    """

    added: tuple[str, ...]
    backup: Path | None = None


def upgrade_in_use(
    databases: Databases,
    *,
    keep_backup: bool = True,
    folder: Path | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Upgraded:
    """Bring the databases to the newest schema; nothing is done where they have it.

    On PostgreSQL, services of the present schema may go on where each revision to be added is
    marked compatible; on SQLite, the one service must have stopped.

    :param keep_backup: back them up before, into ``databases.keep``.
    :param folder: where the revisions are, if not inside the package.
    :param sleep: waits, in seconds.
    :raise Conflict: services use the database, and would fail after the upgrade.
    :raise SchemaMismatch: the database is newer than this vmtune.
    :raise SetupError: it cannot be opened, backed up or written. It is as it was.
    :raise OutcomeUnknown: the connection was lost, and it may or may not have been upgraded. The
        backup stays.
    """
    url = databases.records.render_as_string(hide_password=False)
    before = current_revision(url)
    pending = pending_revisions(url, folder)
    if not pending:
        return Upgraded(tuple(upgrade(url, folder)))
    with ExitStack() as stack:
        if databases.kind == "sqlite":
            stack.enter_context(sqlite.held(databases.records, None))
        else:
            _refuse_others(databases, pending, sleep)
        kept = _backed_up(databases, tuple(pending)) if keep_backup else None
        try:
            added = upgrade(url, folder)
        except BaseException as error:
            if not _took_effect(url, before, tuple(pending), kept, error):
                raise
            added = list(pending)
    return Upgraded(tuple(added), kept)


def _took_effect(
    url: str,
    before: str | None,
    pending: tuple[str, ...],
    kept: Path | None,
    error: BaseException,
) -> bool:
    """Whether an upgrade that ended with *error* was committed all the same: then only the answer
    was lost. Its backup is removed where the schema is the one of *before*, so that a unit which
    tries again does not fill the disk, and only there.

    :raise OutcomeUnknown: the database does not tell; says where the backup is.
    """
    try:
        found = settled_revision(url)
    except VmtuneError as unread:
        if not isinstance(error, Exception):
            return False
        raise OutcomeUnknown(
            f"{error}: it may have been upgraded to schema {pending[-1]}, or not, and does not "
            f"answer: {unread.message}",
            field="database",
            remedy="run `vmtune db current` once it answers"
            + (f"; the backup of before is {kept}" if kept else ""),
        ) from error
    if found == before and kept is not None:
        kept.unlink(missing_ok=True)
    return found == pending[-1] and isinstance(error, Exception)


def _refuse_others(
    databases: Databases, pending: Mapping[str, bool], sleep: Callable[[float], None]
) -> None:
    """:raise Conflict: services live that would fail after the upgrade."""
    breaking = [revision for revision, compatible in pending.items() if not compatible]
    if not breaking:
        return
    with postgresql.opened(databases.records) as engine, translated(databases.records):
        before = _beats(engine)
        if not before:
            return
        sleep(_LOOKS_S)
        live = sorted(name for name, beats in _beats(engine).items() if before.get(name) != beats)
    if live:
        raise Conflict(
            f"{masked(databases.records)} is in use by {', '.join(live)}, which would fail with "
            f"schema {breaking[-1]}: nothing was changed",
            field="database",
            code="services_running",
            remedy="stop these services (systemctl stop vmtune on their machines), upgrade, then "
            "install this vmtune there before they start again",
        )


def _beats(engine: Engine) -> dict[str, int]:
    """The heartbeats of the services, by name and version. No schema is assumed that is newer than
    the first one with services."""
    if not inspect(engine).has_table("services"):
        return {}
    with engine.connect() as connection:
        return {f"{name} (vmtune {version})": beats
                for name, version, beats in connection.execute(text(_LIVE))}  # fmt: skip


def _backed_up(databases: Databases, pending: tuple[str, ...]) -> Path:
    """A backup, named by the revision that is added last and the time.

    :raise SetupError: there is none; the remedy says how to go on without.
    """
    now = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}"
    to = databases.keep / f"before-upgrade-to-{pending[-1]}-{now}.vmtune-backup"
    try:
        databases.keep.mkdir(parents=True, exist_ok=True)
        backup(databases, to)
    except OSError as error:
        raise _without_backup(f"{to}: {error.strerror or error}", "free space there") from error
    except SetupError as error:
        first = error.problems[0]
        raise _without_backup(first.message, first.remedy) from error
    return to


def _without_backup(message: str, remedy: str) -> SetupError:
    return SetupError(
        f"not upgraded, since there is no backup of before: {message}",
        field="database",
        code="no_backup",
        remedy=f"{remedy}; or, with a backup of your own, run `vmtune db upgrade --no-backup`",
    )
