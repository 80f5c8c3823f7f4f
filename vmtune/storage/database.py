"""Connections and transactions, the same way on SQLite and on PostgreSQL.

Writers take turns on both databases: SQLite lets one in at a time (BEGIN IMMEDIATE, so that
two can never deadlock while both change from reading to writing), PostgreSQL does by an advisory
lock. So a writer may read and then act on it, and numbered rows become visible in the order of
their numbers: a subscriber misses no event.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import psycopg
from pydantic_core import from_json
from sqlalchemy import (
    URL,
    Connection,
    CursorResult,
    Delete,
    Engine,
    Update,
    create_engine,
    event,
    text,
)
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import InvalidatePoolError
from sqlalchemy.orm import Session
from sqlalchemy.pool import ConnectionPoolEntry

from vmtune.errors import TakenOver
from vmtune.storage.auditing import AuditedSession, note_changes
from vmtune.storage.claims import note_begun
from vmtune.storage.failures import locked, translated
from vmtune.storage.tables.core import VERSION_TABLE

_PRIVATE = 0o600
WRITERS_LOCK = 0x766D74756E65  # "vmtune": the key of PostgreSQL's advisory lock
CHANGES = "vmtune_changes"
"""The channel on which each process that writes to a PostgreSQL tells the others so. A message is
the process's :attr:`Database.process`, and :data:`PROGRESS` behind a space."""
PROGRESS = "progress"
IDLE_MS = 4000
"""After how long PostgreSQL ends an idle writing transaction: sooner than others give up waiting
for it."""
_RESTS_S = 1.0
_CACHE_KIB = 512
"""Pages that each connection to SQLite keeps. Its own default, 2,000 KiB, lets a service of 8 to 32
connections grow for days by what the kernel's page cache holds already."""
_MODE = "vmtune_mode"
_DURABLE, _RELAXED = "durable", "relaxed"
_SYNCHRONOUS = "vmtune_synchronous"
"""What a connection to SQLite was last told, which holds until it is told otherwise."""


def utc_now() -> datetime:
    """The current time, with its zone."""
    return datetime.now(UTC)


def make_engine(url: URL, *, wait_s: float, foreign_keys: bool = True) -> Engine:
    """An engine whose connections are set up as vmtune needs them.

    :param wait_s: how long to wait for a lock or for a connection.
    :param foreign_keys: enforce them; PostgreSQL always does.
    """
    as_json = partial(json.dumps, separators=(",", ":"), allow_nan=False)
    if url.get_backend_name() != "sqlite":
        engine = create_engine(
            url,
            json_serializer=as_json,
            json_deserializer=_from_json,
            hide_parameters=True,
            pool_size=8,
            max_overflow=24,
            pool_timeout=wait_s,
            connect_args={
                "connect_timeout": 5,
                "application_name": "vmtune",
                "options": f"{url.query.get('options', '')} "  # such as a search_path
                f"-c lock_timeout={round(wait_s * 1000)}",
            },
        )
        _ping_where_in_doubt(engine)
        return engine
    engine = create_engine(
        url,
        json_serializer=as_json,
        json_deserializer=_from_json,
        hide_parameters=True,
        pool_size=8,
        max_overflow=24,
        pool_timeout=wait_s,
        connect_args={"timeout": wait_s},
    )

    @event.listens_for(engine, "connect")
    def set_up(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # transactions begin when SQLAlchemy says so
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA foreign_keys = {int(foreign_keys)}")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")

    event.listen(engine, "begin", _begin_on_sqlite)
    return engine


def _ping_where_in_doubt(engine: Engine) -> None:
    """Replace a connection that its server has closed, or whose server no longer answers.

    A closing server's message can be read without a query. A vanished server sends none, so after
    an idle time it is queried; doing so each time (``pool_pre_ping``) would double the cost of a
    small read.
    """

    @event.listens_for(engine, "checkin")
    def rests(_connection: object, record: ConnectionPoolEntry) -> None:
        record.info["rests_since_s"] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def asked(connection: psycopg.Connection, record: ConnectionPoolEntry, _proxy: object) -> None:
        since_s = record.info.get("rests_since_s", math.inf)  # never: it is new
        try:
            said = select.poll()
            said.register(connection, select.POLLIN)
            if said.poll(0) or time.monotonic() - since_s > _RESTS_S:
                engine.dialect.do_ping(cast(DBAPIConnection, connection))
        except (psycopg.Error, OSError) as error:
            raise InvalidatePoolError from error


def _from_json(stored: str) -> Any:  # any JSON
    """Parse it by pydantic's parser, which takes a tenth of the time that Python's takes for the
    short lists that most columns hold. It does not know lone surrogates."""
    try:
        return from_json(stored)
    except ValueError:
        return json.loads(stored)


def _begin_on_sqlite(connection: Connection) -> None:
    mode = connection.get_execution_options().get(_MODE)
    if mode is not None:
        # Cannot be set inside a transaction. FULL waits for the disk at each commit.
        level = "NORMAL" if mode == _RELAXED else "FULL"
        if connection.info.get(_SYNCHRONOUS) != level:
            connection.exec_driver_sql(f"PRAGMA synchronous = {level}")
            connection.info[_SYNCHRONOUS] = level
    connection.exec_driver_sql("BEGIN" if mode is None else "BEGIN IMMEDIATE")


def _close_returned(_connection: object, record: ConnectionPoolEntry) -> None:
    """Of a disposed pool, which would keep it open."""
    record.invalidate()


def make_private(url: URL) -> None:
    """Create the SQLite file if it is missing, and let only its owner read it.

    It holds how hosts are reached. SQLite gives its other files the same mode.

    :raise OSError: it cannot be created.
    """
    if url.get_backend_name() != "sqlite":
        return
    file = os.open(str(url.database), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE)
    try:
        status = os.fstat(file)
        if stat.S_IMODE(status.st_mode) != _PRIVATE and status.st_uid == os.geteuid():
            os.fchmod(file, _PRIVATE)
    finally:
        os.close(file)


@dataclass(frozen=True, slots=True)
class Lease:
    """In whose name is written.

    :param epoch: which start of that service; another one begins when its work is taken over.
    """

    service: str
    epoch: int


_EPOCH = text("SELECT epoch FROM services WHERE name = :name")


def _check(session: Session, lease: Lease) -> None:
    """:raise TakenOver: the lease is not the service's present one. Writers take turns, so it
    stays so until the end of the transaction."""
    epoch = session.connection().execute(_EPOCH, {"name": lease.service}).scalar()
    if epoch != lease.epoch:
        raise TakenOver(
            f"the work of service {lease.service} was taken over while it did not answer",
            remedy="systemd restarts it; without systemd, start it again",
        )


_WRITE_REVISION = f"UPDATE {VERSION_TABLE} SET version_num = version_num"  # noqa: S608 - a constant


class Database:
    """Short transactions on one database. Safe to use from any thread."""

    def __init__(
        self, url: URL, *, wait_s: float = 5.0, now: Callable[[], datetime] = utc_now
    ) -> None:
        self.url = url
        self.now = now
        self.lease: Lease | None = None
        self._wait_s = wait_s
        self._engine = make_engine(url, wait_s=wait_s)
        self._durable = self._engine.execution_options(**{_MODE: _DURABLE})
        self._relaxed = self._engine.execution_options(**{_MODE: _RELAXED})
        self._is_sqlite = url.get_backend_name() == "sqlite"
        # What PostgreSQL reads is what was committed when each statement began, in a transaction
        # or not: so no transaction is begun and ended, which saves two of four round trips.
        self._alone = self._engine
        if not self._is_sqlite:
            self._alone = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        # SQLite's own waiting polls, and is not fair; this wakes the next at once.
        self._turn = threading.Lock()
        self._counting = threading.Lock()
        self.process = uuid4().hex
        """Tells this process's commits from those of others."""
        self.commits = 0
        """How many transactions of this process have written, or may have."""
        self.progress_commits = 0
        """How many of them wrote nothing but progress (see :meth:`write`)."""
        self.progress_begins: Callable[[], None] = lambda: None
        """Is called when such a transaction has the turn of the writers, on SQLite alone."""
        self.progress_ended: Callable[[], None] = lambda: None
        """Is called when it has ended, before another of this process begins."""

    def close(self) -> None:
        """Close all connections; one that a thread still uses, when that gives it back."""
        event.listen(self._engine, "checkin", _close_returned)
        self._engine.dispose()

    @property
    def service(self) -> str:
        """In whose name is written; empty where one service uses the database."""
        return self.lease.service if self.lease is not None else ""

    @property
    def is_local(self) -> bool:
        """It is a file of this machine, which ends when this machine does."""
        return self._is_sqlite

    @property
    def missing(self) -> bool:
        """There is no such SQLite file."""
        return self._is_sqlite and not Path(str(self.url.database)).exists()

    @contextlib.contextmanager
    def read(self) -> Iterator[Session]:
        """A session that only reads, each statement by itself."""
        with translated(self.url), Session(self._alone) as session:
            yield session

    @contextlib.contextmanager
    def write(self, *, durable: bool = True, progress: bool = False) -> Iterator[Session]:
        """A session in a transaction without concurrent writers.

        Committed at the end, with an entry in the audit log for what it changed; rolled back
        if an error leaves the block.

        :param durable: it is on disk before this returns. Without, the newest may be lost
            when the power fails, though not when vmtune is killed: for frequent writes whose loss
            does no harm.
        :param progress: it writes samples or events alone: what a migration that runs writes all
            the time, and few readers are shown (:class:`~vmtune.storage.changes.Mark`).
        """
        engine = self._durable if durable else self._relaxed
        with (
            self._counted(progress),
            translated(self.url),
            self._turns(),
            self._ending(progress),
            AuditedSession(engine) as session,
            session.begin(),
        ):
            if not self._is_sqlite:
                if not durable:
                    session.execute(text("SET LOCAL synchronous_commit = off"))
                # A service that is stopped in here must not block all other writers.
                timeout = f"set_config('idle_in_transaction_session_timeout', '{IDLE_MS}', true)"
                turn = f"pg_advisory_xact_lock({WRITERS_LOCK})"
                message = f"{self.process} {PROGRESS}" if progress else self.process
                tell = f"pg_notify('{CHANGES}', '{message}')"  # is sent at the commit
                session.execute(text(f"SELECT {timeout}, {turn}, {tell}"))
            elif progress:
                session.connection()  # begins
                self.progress_begins()
            if self.lease is not None:
                _check(session, self.lease)
            yield session
            note_changes(session, self.now)
            note_begun(session)

    def listening(self, heard: Callable[[str], None]) -> Connection:
        """A connection to PostgreSQL of its own, which hears of each commit of vmtune's processes.

        :param heard: receives each message on :data:`CHANGES` that came until a statement is
            executed, in the thread that executes it.
        :raise SetupError: it cannot be reached.
        """
        with translated(self.url):
            connection = self._alone.connect()
            try:
                driver = connection.connection.driver_connection
                assert isinstance(driver, psycopg.Connection)
                connection.detach()
                driver.add_notify_handler(lambda message: heard(message.payload))
                connection.exec_driver_sql(f"LISTEN {CHANGES}")
            except BaseException:
                connection.close()
                raise
        return connection

    def check_writable(self) -> None:
        """Write what is there already.

        :raise SetupError: it is locked, full, read-only or gone.
        :raise TakenOver: see :class:`Lease`.
        """
        with self.write(durable=False) as session:
            session.execute(text(_WRITE_REVISION))

    @contextlib.contextmanager
    def quick(self) -> Iterator[Session]:
        """A session for one statement without audited changes, concurrent with other writers.

        No mark of the database changes by it (:class:`~vmtune.storage.changes.Mark`), but on SQLite
        that of the whole.
        """
        with translated(self.url), Session(self._alone) as session, session.begin():
            yield session

    @contextlib.contextmanager
    def _counted(self, progress: bool) -> Iterator[None]:
        """Count a transaction once it has ended: also one that failed, for it may be committed."""
        try:
            yield
        finally:
            with self._counting:
                self.commits += 1
                self.progress_commits += progress

    @contextlib.contextmanager
    def _ending(self, progress: bool) -> Iterator[None]:
        try:
            yield
        finally:
            if progress and self._is_sqlite:
                self.progress_ended()

    @contextlib.contextmanager
    def _turns(self) -> Iterator[None]:
        if not self._is_sqlite:
            yield
        elif self._turn.acquire(timeout=self._wait_s):
            try:
                yield
            finally:
                self._turn.release()
        else:
            raise locked(self.url)


def rows_met(session: Session, statement: Update | Delete) -> int:
    """Execute an UPDATE or a DELETE; return the number of rows."""
    done = session.execute(statement)
    assert isinstance(done, CursorResult)
    return done.rowcount
