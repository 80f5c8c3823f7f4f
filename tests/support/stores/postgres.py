"""A PostgreSQL server of the tests' own: a Unix socket in a temporary folder."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import make_url

_PR_SET_PDEATHSIG = 1
_database_numbers = itertools.count(1)


def postgres_bin() -> Path | None:
    """The folder of PostgreSQL's programs, the newest one; None when not installed."""
    found = [Path(p).resolve().parent for p in [shutil.which("postgres")] if p]
    versions = Path("/usr/lib/postgresql").glob("*/bin")
    found += sorted(versions, key=lambda path: -float(path.parent.name))
    for folder in found:
        if all((folder / name).exists() for name in ("postgres", "initdb")):
            return folder
    return None


def why_no_postgres() -> str:
    """The reason to skip tests on PostgreSQL; empty when they can run."""
    return "" if postgres_bin() else "PostgreSQL's postgres and initdb are not installed"


class Postgres:
    """A running server, which tests may restart.

    :param url: ``postgresql+psycopg://postgres@/postgres?host=<folder of the socket>``
    """

    def __init__(self, folder: Path, command: list[str], user: dict[str, Any]) -> None:
        self.url = f"postgresql+psycopg://postgres@/postgres?host={folder}"
        self._folder = folder
        self._command = command
        self._user = user
        self._server: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Return once it takes connections."""
        with (self._folder / "log").open("ab") as log:
            self._server = subprocess.Popen(
                self._command,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - it calls one C function
                **self._user,
            )
        _wait_until_ready(self._server, self.url, self._folder / "log")

    def stop(self) -> None:
        """End it, and the sessions that are left ("fast")."""
        if self._server is not None:
            self._server.send_signal(signal.SIGINT)
            self._server.wait()
            self._server = None


@contextlib.contextmanager
def running_postgres() -> Iterator[str]:
    """Run a server without TCP; yields the URL of its database ``postgres``.

    :return: ``postgresql+psycopg://postgres@/postgres?host=<folder of the socket>``
    """
    with postgres_server() as server:
        yield server.url


@contextlib.contextmanager
def postgres_server() -> Iterator[Postgres]:
    """Run a server without TCP."""
    programs = postgres_bin()
    assert programs is not None, why_no_postgres()
    # Not pytest's tmp_path: its parents belong to root, and the server does not.
    folder = Path(tempfile.mkdtemp(prefix="vmtune-postgres-"))
    server: Postgres | None = None
    try:
        user = _unprivileged_user(folder)
        data = f"{folder}/data"
        command = [f"{programs}/initdb", "--no-sync", "-A", "trust", "-U", "postgres", "-D", data]
        done = subprocess.run(command, capture_output=True, cwd=folder, check=False, **user)
        assert done.returncode == 0, done.stderr.decode()
        command = [f"{programs}/postgres", "-F", "-D", data, "-k", str(folder)]
        server = Postgres(folder, [*command, "-c", "listen_addresses="], user)
        server.start()
        yield server
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(folder)


@contextlib.contextmanager
def new_database(server_url: str) -> Iterator[str]:
    """Make an empty database on the server, and drop it afterwards; yields its URL."""
    name = f"test_{os.getpid()}_{next(_database_numbers)}"
    url = make_url(server_url)
    with psycopg.connect(libpq_url(server_url), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    try:
        yield url.set(database=name).render_as_string(hide_password=False)
    finally:
        with psycopg.connect(libpq_url(server_url), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def libpq_url(url: str) -> str:
    """The URL as psycopg itself takes it, without SQLAlchemy's driver name."""
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def _unprivileged_user(folder: Path) -> dict[str, Any]:
    """Arguments for subprocess: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam("nobody")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _die_with_parent() -> None:
    # So that no server is left when the tests are killed.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)


def _wait_until_ready(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    while True:
        assert server.poll() is None, log.read_text()
        try:
            psycopg.connect(libpq_url(url)).close()
        except psycopg.OperationalError:
            time.sleep(0.02)
        else:
            return
