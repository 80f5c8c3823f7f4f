"""The folder of one run: its sockets, and by its path the processes that belong to it.

A run holds a lock on its folder for as long as it lives. A folder whose lock is free was left
behind by a run that was killed, and the next run clears it away with what still runs for it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import signal
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vmtune.errors import SetupError

PROC = Path("/proc")
_PREFIX = "run-"
_LOCK = "lock"
_MAX_SOCKET_PATH = 107  # sockaddr_un of unix(7), less the final zero
_LONGEST_BELOW = len("/run-12345678/destination/.qemu")
_ENDS_WITHIN_S = 10.0


@contextmanager
def run_folder(base: Path) -> Iterator[Path]:
    """A folder below *base*, gone when the block is left; *base* too, if nothing else is there.

    :raise SetupError: it cannot be made.
    """
    if len(str(base)) + _LONGEST_BELOW > _MAX_SOCKET_PATH:
        raise SetupError(
            f"the path {base} is too long for sockets in it",
            field="testbed.folder",
            code="path_too_long",
            remedy=f"use one of at most {_MAX_SOCKET_PATH - _LONGEST_BELOW} characters",
        )
    try:
        folder, lock = _make(base)
    except OSError as error:
        raise SetupError(
            f"no folder can be made in {base}: {error.strerror}",
            field="testbed.folder",
            code="folder_not_writable",
            remedy="name a folder that vmtune may write to",
        ) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)
        with contextlib.suppress(OSError):  # other runs are there
            base.rmdir()


def clear_left_behind(base: Path) -> list[str]:
    """Remove the folders of runs that were killed, and end what still runs for them; the
    folders' names."""
    cleared = []
    for folder in left_behind(base):
        with contextlib.suppress(TimeoutError):  # the next one tries again
            end_processes_of(folder)
            shutil.rmtree(folder, ignore_errors=True)
            cleared.append(folder.name)
    return cleared


def left_behind(base: Path) -> Iterator[Path]:
    """The folders of runs that were killed. Each is locked until the next is requested, so that
    only one process clears it away."""
    for folder in sorted(base.glob(f"{_PREFIX}*")):
        with contextlib.suppress(OSError):  # another run clears it away just now
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_open_as(folder / _LOCK, lock):
                    yield folder
            finally:
                os.close(lock)


def end_processes_of(folder: Path) -> None:
    """Kill every process whose command line names the folder, and wait until all are gone.

    :raise TimeoutError: one does not end.
    """
    deadline = time.monotonic() + _ENDS_WITHIN_S
    while pids := processes_of(folder):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {pids} of {folder} do not end")
        time.sleep(0.02)


def processes_of(folder: Path) -> list[int]:
    """The processes whose command line names something in the folder."""
    mark = os.fsencode(folder) + b"/"
    found = []
    for entry in PROC.iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if mark in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
    return found


def _make(base: Path) -> tuple[Path, int]:
    """A new folder and the file descriptor of its lock."""
    while True:
        try:
            base.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder = base / f"{_PREFIX}{secrets.token_hex(4)}"
            folder.mkdir(mode=0o700)
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except (FileNotFoundError, FileExistsError):
            if _is_no_folder(base):
                raise
            continue  # another process has just removed what was there
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _is_open_as(folder / _LOCK, lock):
            return folder, lock
        os.close(lock)  # another process's cleanup came between making and locking it


def _is_no_folder(path: Path) -> bool:
    """Whether something else is there; asked once, as others come and go."""
    try:
        return not stat.S_ISDIR(path.stat().st_mode)
    except FileNotFoundError:
        return False


def _is_open_as(path: Path, descriptor: int) -> bool:
    """Whether the file at *path* is the one that is open: not a later one of that name, made in a
    folder that another process's cleanup is removing."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
