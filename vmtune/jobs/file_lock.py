"""Locks a SQLite file for one process: two services would run the same jobs twice, and each would
put back what the other is applying."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vmtune.errors import SetupError


def real_file(path: Path) -> Path:
    """The file that SQLite opens at *path*: it follows links, too."""
    return Path(os.path.realpath(path))


def hold(path: Path, what: str = "jobs' database", field: str = "jobs_database") -> int:
    """Lock the file at *path* for this process, until the returned descriptor is closed.

    The lock is a file next to it: closing a descriptor of the file itself would end SQLite's own
    locks, and a restore replaces it.

    :param what: the file, for messages.
    :param field: of the error, and its code.
    :raise SetupError: another process has locked it.
    """
    path = real_file(path)
    lock_path = path.with_name(path.name + ".lock")
    try:
        lock = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _refused(what, field, path, error.strerror or str(error), "") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise _refused(
            what,
            field,
            path,
            "another vmtune service uses it",
            "stop the other service, or give this one a database of its own",
        ) from error
    return lock


@contextmanager
def records_held(records: Path, jobs: Path | None) -> Iterator[None]:
    """Within the block no other service starts on the records' file.

    :param jobs: the jobs' file, which is locked by itself; None where it is no file.
    :raise SetupError: another service has it, or both are one file.
    """
    if jobs is not None and real_file(jobs) == real_file(records):
        raise SetupError(
            f"the jobs' database and the records are one file, {records}",
            field="jobs_database_url",
            code="one_file",
            remedy="name another file: backups copy and restore each by itself",
        )
    lock = hold(records, "database", "database")
    try:
        yield
    finally:
        os.close(lock)


def _refused(what: str, field: str, path: Path, reason: str, remedy: str) -> SetupError:
    code = "database_in_use" if field == "database" else field
    return SetupError(
        f"cannot use the {what} {path}: {reason}", field=field, code=code, remedy=remedy
    )
