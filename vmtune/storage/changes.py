"""Whether anything was written to the database since an earlier moment."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Hashable
from contextlib import suppress
from urllib.parse import quote

from sqlalchemy import text

from vmtune.errors import SetupError, VmtuneError
from vmtune.storage.database import Database
from vmtune.storage.failures import translated


class Changes:
    """Marks of the database's content: equal marks, equal content.

    On SQLite a mark has the commits of all processes, and costs some 10 µs (``PRAGMA
    data_version``). On PostgreSQL it has this process's commits at once, and those of others as of
    the last :meth:`look`.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._is_sqlite = database.url.get_backend_name() == "sqlite"
        self._connection: sqlite3.Connection | None = None
        self._using = threading.Lock()
        self._others = ""
        if not self._is_sqlite:
            database.after_commit = self._look_after_commit

    @property
    def needs_look(self) -> bool:
        """Whether commits of other processes are seen by :meth:`look` alone."""
        return not self._is_sqlite

    def mark(self) -> Hashable | None:
        """The present mark; None where it cannot be told."""
        if not self._is_sqlite:
            return self._database.commits, self._others
        with self._using:
            try:
                if self._connection is None:
                    file = quote(str(self._database.url.database))
                    self._connection = sqlite3.connect(
                        f"file:{file}?mode=rw",  # which does not create it
                        uri=True,
                        timeout=0,
                        isolation_level=None,
                        check_same_thread=False,
                    )
                found = self._connection.execute("PRAGMA data_version").fetchone()
            except sqlite3.Error:
                return None
        return int(found[0])

    def look(self) -> None:
        """Ask PostgreSQL whether anybody has committed. Its snapshot changes with each
        transaction that writes, of any database of the server.

        :raise SetupError: it does not answer.
        """
        with translated(self._database.url), self._database.read() as session:
            found = session.scalar(text("SELECT pg_current_snapshot()::text"))
        if not isinstance(found, str):
            raise SetupError("PostgreSQL does not tell its snapshot")
        self._others = found

    def _look_after_commit(self) -> None:
        """So that an own commit changes the mark once, and not again at the next look."""
        with suppress(VmtuneError):  # what it was about has its own error
            self.look()

    def close(self) -> None:
        """Close the connection."""
        with self._using:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
