"""Opens the jobs' database: its own SQLite file, or schema dbos in PostgreSQL."""

from __future__ import annotations

import contextlib
import os
import socket
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from vmtune.errors import SetupError
from vmtune.jobs.file_lock import hold

CONNECT_TIMEOUT_S = 5


@dataclass(frozen=True, slots=True)
class JobsDatabase:
    """The jobs' database, checked and locked for this process.

    :param url: what dbos opens.
    :param shown: the URL, without a password, for messages.
    :param worker: whose jobs are resumed at start.
    :param shared: other services may have jobs in it, too.
    """

    url: str
    shown: str
    worker: str
    _lock: int | None = None
    shared: bool = False

    def version(self, of_workflow: str) -> str:
        """What dbos compares before it resumes a job: any service of the same version may resume
        any job, so each of several has its own."""
        return f"{of_workflow} {self.worker}" if self.shared else of_workflow

    def close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)


_WITH_SUBSEC = (3, 42)


class JobsConnection(sqlite3.Connection):
    """One whose SQLite knows ``unixepoch('subsec')``, the seconds since 1970 with their fraction.

    dbos has it as the default of columns that may not be null, by Python 3.12 and later. SQLite
    knows it since 3.42, and answers null before: Debian 12's is 3.40.
    """

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        if sqlite3.sqlite_version_info < _WITH_SUBSEC:
            self.create_function("unixepoch", 1, _unixepoch)


def _unixepoch(modifier: str) -> float | None:
    return round(time.time(), 3) if modifier == "subsec" else None


def database_failed(shown: str, reason: object, remedy: str = "") -> SetupError:
    # Drivers add lines of their own, with the statement or with hints.
    first_line = str(reason).strip().partition("\n")[0]
    return SetupError(
        f"cannot use the jobs' database{shown and ' '}{shown}: {first_line}",
        field="jobs_database",
        code="jobs_database",
        remedy=remedy,
    )


def open_database(url: str, worker: str = "") -> JobsDatabase:
    """Check that ``url`` can be used, and prepare it.

    :param worker: whose jobs are resumed at start, on PostgreSQL; empty for the machine's name.
    :param url: ``sqlite:////path/to/file`` or ``postgresql://...``.
    :raise SetupError: when it cannot; the message names the file or server.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        # Not shown: a password could be anywhere in it.
        raise database_failed("", "its setting is not a database URL") from None
    match parsed.get_backend_name():
        case "sqlite":
            return _open_sqlite(parsed)
        case "postgresql":
            return _open_postgresql(parsed, worker)
        case other:
            raise database_failed(
                parsed.render_as_string(hide_password=True),
                f"{other} is not supported",
                "use a sqlite:// or postgresql:// URL",
            )


def _open_sqlite(url: URL) -> JobsDatabase:
    if url.database in (None, "", ":memory:"):
        raise database_failed(str(url), "jobs that outlive the service need a file")
    path = Path(url.database or "").absolute()
    lock = hold(path)
    try:
        # Created here, since SQLite would make it readable for everyone and reports
        # "unable to open" for any reason.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        with contextlib.closing(sqlite3.connect(path)) as connection:
            # Stored in the file, so it applies to dbos's connections too.
            connection.execute("PRAGMA journal_mode=WAL")
    except (OSError, sqlite3.Error) as error:
        os.close(lock)
        reason = error.strerror if isinstance(error, OSError) else error
        raise database_failed(str(path), reason) from error
    # Only this host's service ever opens the file, so all jobs in it are its
    # own, also after the host was renamed.
    return JobsDatabase(f"sqlite:///{path}", str(path), "local", lock)


def _open_postgresql(url: URL, worker: str) -> JobsDatabase:
    shown = url.render_as_string(hide_password=True)
    plain = url.set(drivername="postgresql").render_as_string(hide_password=False)
    try:
        # dbos would wait without limit for a server that does not answer.
        psycopg.connect(plain, connect_timeout=CONNECT_TIMEOUT_S).close()
    except psycopg.Error as error:
        raise database_failed(shown, error) from error
    with_driver = url.set(drivername="postgresql+psycopg")
    return JobsDatabase(
        with_driver.render_as_string(hide_password=False),
        shown,
        worker or socket.gethostname(),
        shared=True,
    )
