"""Copies vmtune's data in a PostgreSQL database by pg_dump, and restores it by pg_restore.

Of the records only the rows are copied: their tables are made by vmtune's own revisions, so
nothing else that the database may hold is touched. The jobs are the whole schema ``dbos``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, inspect, text

from vmtune.errors import SetupError
from vmtune.storage import contents as whole
from vmtune.storage.database import WRITERS_LOCK, make_engine
from vmtune.storage.failures import masked, translated

ENDING = ".dump"
JOBS_SCHEMA = "dbos"
_WAIT_S = 10.0
_FOLDERS = Path("/usr/lib/postgresql")
"""Where Debian has each version's programs."""
_VERSION = re.compile(r"\) (\d+)")
_MAX_SAID = 500


class PostgresCopy:
    """The records or the jobs of one database, as they were at one moment; see
    :class:`~vmtune.services.backup.sqlite.SqliteCopy`.

    :param jobs: the jobs' schema; else the records.
    """

    def __init__(self, url: URL, *, jobs: bool) -> None:
        self.url = url
        self._jobs = jobs
        self._engine = make_engine(url, wait_s=_WAIT_S)
        self._writer: Connection | None = None
        self._reader: Connection | None = None
        self._snapshot = ""

    @property
    def missing(self) -> bool:
        """Whether there is no data to copy: no service has run on it."""
        return self._jobs and not has_jobs(self._engine, self.url)

    def hold(self) -> None:
        """Block vmtune's writers. (dbos continues to write: a job's phases are repeated from the
        records, not the other way round.)"""
        if not self._jobs:
            with translated(self.url):
                self._writer = self._engine.connect()
                self._writer.execute(text(f"SELECT pg_advisory_xact_lock({WRITERS_LOCK})"))

    def look(self) -> None:
        """From now on :meth:`copy` sees the database as it is now."""
        with translated(self.url):
            connection = self._engine.connect()
            self._reader = connection.execution_options(isolation_level="REPEATABLE READ")
            self._snapshot = str(self._reader.scalar(text("SELECT pg_export_snapshot()")))

    def look_as(self, other: PostgresCopy) -> None:
        """The same moment as *other* of the same database."""
        self._snapshot = other._snapshot

    def let_go(self) -> None:
        """Let writers in again."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def rows(self) -> Mapping[str, int]:
        """How many rows each table of the records had at that moment."""
        assert self._reader is not None, "look() comes first"
        with translated(self.url):
            return whole.rows(self._reader)

    def copy(self, to: Path) -> None:
        """Write the copy.

        :raise SetupError: there is no pg_dump, it is older than the server, or it fails.
        """
        what = [f"--schema={JOBS_SCHEMA}"]
        if not self._jobs:
            with translated(self.url), self._engine.connect() as connection:
                schema = connection.scalar(text("SELECT current_schema()"))
            named = [f'--table="{schema}"."{table.name}"' for table in whole.tables()]
            what = ["--data-only", *named]
        run(
            self.url,
            server_major(self._engine, self.url),
            "pg_dump",
            ["--format=custom", "--no-owner", "--no-privileges", f"--snapshot={self._snapshot}",
             f"--file={to}", *what],
        )  # fmt: skip

    def close(self) -> None:
        """Close the connections."""
        self.let_go()
        if self._reader is not None:
            self._reader.close()
        self._engine.dispose()


@contextmanager
def opened(url: URL) -> Iterator[Engine]:
    """An engine for the block."""
    engine = make_engine(url, wait_s=_WAIT_S)
    try:
        with translated(url):
            yield engine
    finally:
        engine.dispose()


def has_jobs(engine: Engine, url: URL) -> bool:
    """Whether the jobs' schema exists."""
    query = text("SELECT count(*) FROM pg_namespace WHERE nspname = :name")
    with translated(url), engine.connect() as connection:
        return bool(connection.scalar(query, {"name": JOBS_SCHEMA}))


def others_connected(engine: Engine, url: URL) -> int:
    """How many other sessions of vmtune and its jobs the database has."""
    query = text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid() AND backend_type = 'client backend' "
        "AND (application_name LIKE 'vmtune%' OR application_name LIKE 'dbos%')"
    )
    with translated(url), engine.connect() as connection:
        return connection.scalar(query) or 0


def server_major(engine: Engine, url: URL) -> int:
    """The server's version."""
    with translated(url), engine.connect() as connection:
        return int(connection.scalar(text("SHOW server_version_num")) or 0) // 10_000


def check_programs(engine: Engine, url: URL) -> None:
    """:raise SetupError: what a backup or a restore takes is missing or too old."""
    major = server_major(engine, url)
    for program in ("pg_dump", "pg_restore"):
        _find(program, major)


def restore_rows(url: URL, dump: Path) -> None:
    """Put the records' rows into tables that are empty: all, or none."""
    with opened(url) as engine:
        major = server_major(engine, url)
        _set_guard(engine, on=False)
        _restore(url, major, dump, "--data-only")
        _set_guard(engine, on=True)


def _set_guard(engine: Engine, *, on: bool) -> None:
    """Audit log cuts that PostgreSQL itself refuses: entries that they name are gone."""
    with engine.begin() as connection:
        if inspect(connection).has_table("audit_cuts"):
            what = "ENABLE" if on else "DISABLE"
            connection.execute(text(f"ALTER TABLE audit_cuts {what} TRIGGER USER"))


def restore_jobs(url: URL, dump: Path | None) -> None:
    """Replace the jobs' schema.

    :param dump: None to leave none.
    """
    with opened(url) as engine:
        with engine.begin() as connection:
            connection.execute(text(f'DROP SCHEMA IF EXISTS "{JOBS_SCHEMA}" CASCADE'))
        major = server_major(engine, url)
    if dump is not None:
        _restore(url, major, dump)


def _restore(url: URL, major: int, dump: Path, *options: str) -> None:
    database = str(url.database or "")
    run(
        url,
        major,
        "pg_restore",
        ["--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges", *options,
         f"--dbname={database}", str(dump)],
    )  # fmt: skip


def run(url: URL, major: int, program: str, arguments: Sequence[str]) -> None:
    """Run one of PostgreSQL's programs on a database. Its password is in no command line.

    :param major: the server's version, which the program's has to be at least.
    :raise SetupError: it is missing, too old, or fails.
    """
    command = [_find(program, major), *arguments]
    if program == "pg_dump":
        command.append(f"--dbname={url.database or ''}")
    done = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **_environment(url), "LC_ALL": "C.UTF-8"},
    )
    if done.returncode:
        said = " ".join(done.stderr.split())[-_MAX_SAID:]
        raise SetupError(
            f"{masked(url)}: {program} failed: {said}",
            field="database",
            code="dump_failed",
            remedy="see its message; the user of the database has to own vmtune's tables",
        )


def _environment(url: URL) -> dict[str, str]:
    """How libpq reaches the database."""
    query = {key: str(value) for key, value in url.query.items()}
    found = {
        "PGHOST": url.host or query.get("host", ""),
        "PGPORT": str(url.port or query.get("port", "")),
        "PGUSER": url.username or query.get("user", ""),
        "PGPASSWORD": str(url.password or query.get("password", "")),
        "PGOPTIONS": query.get("options", ""),
        "PGSSLMODE": query.get("sslmode", ""),
        "PGSSLROOTCERT": query.get("sslrootcert", ""),
        "PGSSLCERT": query.get("sslcert", ""),
        "PGSSLKEY": query.get("sslkey", ""),
        "PGPASSFILE": query.get("passfile", ""),
        "PGAPPNAME": "vmtune db",
    }
    return {name: value for name, value in found.items() if value}


def _find(program: str, major: int) -> str:
    """The program of the server's own version, or else the next later one: a much later one writes
    what an older server does not understand.

    :raise SetupError: there is none, or it is older than the server.
    """
    found = [Path(path) for path in (shutil.which(program),) if path]
    found += _FOLDERS.glob(f"*/bin/{program}")
    versions = {path: _major(path) for path in found}
    later = sorted((path for path in found if versions[path] >= major), key=versions.__getitem__)
    best = next(iter(later or sorted(found, key=versions.__getitem__, reverse=True)), None)
    install = f"apt install postgresql-client-{major}"
    if best is None:
        raise SetupError(
            f"{program} is not installed",
            field="database",
            code="program_missing",
            remedy=f"{install}: it is needed where vmtune runs, not on the database's machine",
        )
    if versions[best] < major:
        raise SetupError(
            f"{best} is of PostgreSQL {versions[best]}, and the server of {major}",
            field="database",
            code="program_too_old",
            remedy=install,
        )
    return str(best)


def _major(path: Path) -> int:
    try:
        done = subprocess.run([path, "--version"], check=False, capture_output=True, text=True)
    except OSError:
        return 0
    match = _VERSION.search(done.stdout)
    return int(match[1]) if match else 0
