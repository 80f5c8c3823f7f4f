"""The database's schema, for the ``vmtune db`` command: the client knows no store."""

from __future__ import annotations

from dataclasses import dataclass

from vmtune import storage as store
from vmtune.config.settings import Settings
from vmtune.services.backup.backups import Databases
from vmtune.services.backup.upgrading import upgrade_in_use


@dataclass(frozen=True, slots=True)
class SchemaState:
    """The revision that the database has, and the one that this vmtune works with.

    :param current: None where there is no schema yet.
    :param added: the revisions that were added just now, oldest first.
    :param backup: a backup of what was there before that; None where there is none.
    """

    current: str | None
    newest: str
    added: tuple[str, ...] = ()
    backup: str | None = None

    @property
    def up_to_date(self) -> bool:
        """Whether the service can start on it."""
        return self.current == self.newest


def upgrade(settings: Settings, *, keep_backup: bool = True) -> SchemaState:
    """Bring the database to the newest schema; a SQLite file is created where missing. See
    :func:`vmtune.services.backup.upgrading.upgrade_in_use`.

    :raise Conflict: services use it that would fail with the newest schema.
    :raise SchemaMismatch: it is newer than this vmtune.
    :raise SetupError: it cannot be opened, backed up or written.
    """
    where = Databases.at(settings.database_url, settings.jobs_database_url, settings.state_dir)
    done = upgrade_in_use(where, keep_backup=keep_backup)
    newest = store.head_revision()
    return SchemaState(newest, newest, done.added, str(done.backup) if done.backup else None)


def current(settings: Settings) -> SchemaState:
    """The schema that the database has. Changes nothing.

    :raise SetupError: it cannot be opened.
    """
    return SchemaState(store.current_revision(settings.database_url), store.head_revision())
