"""One demo at a time on a machine."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vmtune.errors import SetupError

LOCK = Path("/run/vmtune-demo.lock")
_STEP_S = 0.05


@contextmanager
def alone(within_s: float = 15) -> Iterator[int]:
    """Hold the machine against other demos; gives the lock's descriptor.

    A program that is given the descriptor holds the lock, too, until it ends: the service of a
    demo that was killed may still be writing to its folder. The lock file goes however the block
    ends.

    :param within_s: how long to wait for what still ends of another demo.
    :raise SetupError: another one runs.
    """
    deadline = time.monotonic() + within_s
    while (handle := _locked()) is None:
        if time.monotonic() > deadline:
            raise SetupError(
                "another demo runs on this machine", code="demo_runs", remedy="wait until it ends"
            )
        time.sleep(_STEP_S)
    try:
        yield handle
    finally:
        LOCK.unlink(missing_ok=True)
        os.close(handle)


def _locked() -> int | None:
    """The lock's descriptor; None while another has it, or has just removed the file."""
    handle = os.open(LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if LOCK.stat().st_ino == os.fstat(handle).st_ino:
            return handle
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(handle)
    return None
