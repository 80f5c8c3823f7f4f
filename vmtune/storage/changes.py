"""Whether anything was written to the database since an earlier moment."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import quote

from sqlalchemy import Connection

from vmtune.errors import SetupError, VmtuneError
from vmtune.storage.database import PROGRESS, Database
from vmtune.storage.failures import translated


@dataclass(frozen=True, slots=True)
class Mark:
    """Marks the database's content.

    :param whole: equal marks, equal content, but for the heartbeats of services.
    :param settled: as long as it is equal, nothing was written but progress
        (:meth:`vmtune.storage.database.Database.write`).
    """

    whole: Hashable
    settled: Hashable


class Changes:
    """Marks of the database's content.

    On SQLite a mark has the commits of all processes, and costs some 10 µs (``PRAGMA
    data_version``). On PostgreSQL it has this process's commits at once, and those of others as of
    the last :meth:`look`. What is written by anything but vmtune is seen on SQLite alone.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._is_sqlite = database.url.get_backend_name() == "sqlite"
        self._using = threading.Lock()
        self._closed = False
        # On SQLite: the version that was seen last, and how often another was found which was not
        # this process's progress.
        self._sqlite: sqlite3.Connection | None = None
        self._version = 0
        self._settled = 0
        self._in_progress = False
        # On PostgreSQL: how many commits of others were heard of.
        self._listening: Connection | None = None
        self._others = 0
        self._others_progress = 0
        if self._is_sqlite:
            database.progress_begins = self._progress_begins
            database.progress_ended = self._progress_ended

    @property
    def needs_look(self) -> bool:
        """Whether commits of other processes are seen by :meth:`look` alone."""
        return not self._is_sqlite

    def mark(self) -> Mark | None:
        """The present mark; None where it cannot be told."""
        if not self._is_sqlite:
            made, heard = self._database.commits, self._others
            progress = self._database.progress_commits, self._others_progress
            return Mark((made, heard), (made - progress[0], heard - progress[1]))
        with self._using:
            try:
                version = self._data_version()
            except sqlite3.Error:
                return None
            if not self._in_progress:
                self._found(version)
            return Mark(version, self._settled)

    def look(self) -> None:
        """Hear whether another process has committed to PostgreSQL since the last look. After a
        lost connection it may have. Harmless once closed.

        :raise SetupError: it does not answer.
        """
        with self._using:
            if self._closed:
                return
            if self._listening is None:
                self._listening = self._database.listening(self._heard)
                self._others += 1
                return
            try:
                with translated(self._database.url):
                    self._listening.exec_driver_sql("SELECT 1")
            except SetupError:
                self._stop_listening()
                raise

    def close(self) -> None:
        """Close the connection. A thread that still asks opens no other."""
        with self._using:
            self._closed = True
            self._stop_listening()
            if self._sqlite is not None:
                self._sqlite.close()
                self._sqlite = None

    def _heard(self, message: str) -> None:
        process, _, kind = message.partition(" ")
        if process != self._database.process:
            self._others += 1
            self._others_progress += kind == PROGRESS

    def _stop_listening(self) -> None:
        listening, self._listening = self._listening, None
        if listening is not None:
            with suppress(VmtuneError), translated(self._database.url):
                listening.close()

    def _progress_begins(self) -> None:
        with self._using, suppress(sqlite3.Error):
            self._found(self._data_version())
            self._in_progress = True

    def _progress_ended(self) -> None:
        """No other process could write since it began: what the version has become is known to be
        progress. A commit of another process in the moment after it is seen with the next one."""
        with self._using, suppress(sqlite3.Error):
            if self._in_progress:
                self._version = self._data_version()
            self._in_progress = False

    def _found(self, version: int) -> None:
        if version != self._version:
            self._version = version
            self._settled += 1

    def _data_version(self) -> int:
        if self._closed:
            raise sqlite3.ProgrammingError("it is closed")
        if self._sqlite is None:
            file = quote(str(self._database.url.database))
            self._sqlite = sqlite3.connect(
                f"file:{file}?mode=rw",  # which does not create it
                uri=True,
                timeout=0,
                isolation_level=None,
                check_same_thread=False,
            )
        return int(self._sqlite.execute("PRAGMA data_version").fetchone()[0])
