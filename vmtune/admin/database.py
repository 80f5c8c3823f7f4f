"""The database's schema, for the ``vmtune db`` command: the client knows no store."""

from __future__ import annotations

from dataclasses import dataclass

from vmtune import storage as store
from vmtune.config.settings import Settings


@dataclass(frozen=True, slots=True)
class SchemaState:
    """The revision that the database has, and the one that this vmtune works with.

    :param current: None where there is no schema yet.
    :param added: the revisions that were added just now, oldest first.
    """

    current: str | None
    newest: str
    added: tuple[str, ...] = ()

    @property
    def up_to_date(self) -> bool:
        """Whether the service can start on it."""
        return self.current == self.newest


def upgrade(settings: Settings) -> SchemaState:
    """Bring the database to the newest schema; a SQLite file is created where missing.

    :raise SchemaMismatch: it is newer than this vmtune.
    :raise SetupError: it cannot be opened or written.
    """
    added = store.upgrade(settings.database_url)
    newest = store.head_revision()
    return SchemaState(newest, newest, tuple(added))


def current(settings: Settings) -> SchemaState:
    """The schema that the database has. Changes nothing.

    :raise SetupError: it cannot be opened.
    """
    return SchemaState(store.current_revision(settings.database_url), store.head_revision())
