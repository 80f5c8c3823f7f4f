"""Copies SQLite's files while they are written, and replaces them by copies."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path

from sqlalchemy import URL, create_engine

from vmtune.errors import SetupError
from vmtune.jobs.file_lock import hold, real_file
from vmtune.storage import contents as whole
from vmtune.storage.failures import masked, translated
from vmtune.storage.tables.core import VERSION_TABLE

ENDING = ".db"
_WAIT_S = 10.0
_PRIVATE = 0o600
_SET_REVISION = f"UPDATE {VERSION_TABLE} SET version_num = ?"  # noqa: S608 - a constant
_ADD_REVISION = f"INSERT INTO {VERSION_TABLE} VALUES (?)"  # noqa: S608 - a constant


class SqliteCopy:
    """One file, copied as it was at one moment: writers are blocked for that moment alone.

    :meth:`hold` it, :meth:`look`, :meth:`let_go`, then :meth:`copy`: of several files all are held
        before the first is read, so that the copies are consistent.
    """

    def __init__(self, url: URL) -> None:
        self.url = url
        self._file = Path(str(url.database))
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None

    @property
    def missing(self) -> bool:
        """Whether there is no such file."""
        return not self._file.exists()

    def hold(self) -> None:
        """Block writers.
        :raise SetupError: another writer takes too long, or the file cannot be used.
        """
        with translated(self.url):
            self._writer = self._connect()
            self._writer.execute("BEGIN IMMEDIATE")

    def look(self) -> None:
        """From now on :meth:`copy` sees the file as it is now."""
        with translated(self.url):
            self._reader = self._connect()
            self._reader.execute("BEGIN")
            self._reader.execute("SELECT count(*) FROM sqlite_master").fetchone()

    def let_go(self) -> None:
        """Let writers in again."""
        if self._writer is not None:
            self._writer.close()  # which rolls back
            self._writer = None

    def copy(self, to: Path) -> None:
        """Write the copy: one file that needs no other."""
        assert self._reader is not None, "look() comes first"
        os.close(os.open(to, os.O_RDWR | os.O_CREAT | os.O_EXCL, _PRIVATE))
        with translated(self.url), contextlib.closing(sqlite3.connect(to)) as target:
            self._reader.backup(target)
        with translated(self.url):
            fold(to)

    def close(self) -> None:
        """Close the connections."""
        self.let_go()
        if self._reader is not None:
            self._reader.close()

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._file, timeout=_WAIT_S, isolation_level=None)


def fold(file: Path) -> None:
    """Checkpoint: everything is in the file itself, without a WAL."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")


def rows_of(file: Path) -> Mapping[str, int]:
    """How many rows each table of the records has."""
    engine = create_engine(f"sqlite:///{file}")
    try:
        with engine.connect() as connection:
            return whole.rows(connection)
    finally:
        engine.dispose()


def sound(file: Path) -> str:
    """Problems of a file; empty if it is sound."""
    try:
        with contextlib.closing(sqlite3.connect(file)) as connection:
            (said,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            torn = connection.execute("PRAGMA foreign_key_check").fetchone()
    except sqlite3.Error as error:
        return str(error)
    if said != "ok":
        return str(said)
    return f"a row of {torn[0]} refers to a missing one of {torn[2]}" if torn else ""


@contextlib.contextmanager
def held(records: URL | None, jobs: URL | None) -> Iterator[None]:
    """Lock the files against every service within the block.

    :param records: None where they are no file; likewise *jobs*.
    :raise SetupError: one runs.
    """
    with contextlib.ExitStack() as stack:
        locked: set[Path] = set()
        names = ((records, "database", "database"), (jobs, "jobs' database", "jobs_database"))
        for url, what, field in names:
            if url is None:
                continue
            path = real_file(Path(str(url.database)))
            if path in locked:
                continue
            locked.add(path)
            with translated(url):
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = hold(path, what, field)
            stack.callback(os.close, lock)
            _give(lock, path.parent)
        yield


def put(url: URL, copy: Path | None) -> None:
    """Replace the file by a copy, atomically. No process may have it open.

    :param copy: on the same file system; None to leave no file.
    """
    file = Path(str(url.database)).absolute()
    with translated(url):
        if file.exists():
            _checkpoint(file)
        for ending in ("-wal", "-shm"):  # of the old file: they would be taken for the new one's
            file.with_name(file.name + ending).unlink(missing_ok=True)
        if copy is None:
            file.unlink(missing_ok=True)
        else:
            with copy.open("rb") as written:
                _give(written.fileno(), file if file.exists() else file.parent)
                os.fsync(written.fileno())
            os.replace(copy, file)
        folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def mark(url: URL, revision: str, folder: Path) -> None:
    """Note a revision in the file; a file that is missing or damaged is replaced by one that has
    nothing else.

    :param folder: on the same file system.
    """
    file = Path(str(url.database)).absolute()
    if file.exists():
        with (
            contextlib.suppress(sqlite3.DatabaseError),
            contextlib.closing(sqlite3.connect(file)) as there,
            there,
        ):
            changed = there.execute(_SET_REVISION, (revision,))
            if changed.rowcount == 1:
                return
    made = folder / f"marked{ENDING}"
    with contextlib.closing(sqlite3.connect(made)) as new, new:
        new.execute(f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL)")
        new.execute(_ADD_REVISION, (revision,))
    put(url, made)


def _give(made: int, like: Path) -> None:
    """Give a file that root has made the owner of *like*: the service may not run as root."""
    if os.geteuid() == 0:
        owner = like.stat()
        os.fchown(made, owner.st_uid, owner.st_gid)


def _checkpoint(file: Path) -> None:
    """Checkpoint a file that others may have open, so that its WAL can be removed."""
    with contextlib.closing(sqlite3.connect(file, timeout=_WAIT_S)) as connection:
        try:
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                return  # a damaged one is replaced, too
            raise
    if busy:
        raise SetupError(
            f"{masked(URL.create('sqlite', database=str(file)))}: another program has it open",
            field="database",
            code="database_locked",
            remedy="end that program (an open sqlite3 session, a backup), then try again",
        )
