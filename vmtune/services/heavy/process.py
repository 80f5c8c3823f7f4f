"""The process that does heavy work for the service: it runs :func:`main`.

It reads frames from standard input and answers each on standard output; a frame is eight bytes of
length and a pickle. The first frame is the database's URL and what to call before all else, each
other one a function of a module and its arguments; the function gets the store as its first
argument.
"""

from __future__ import annotations

import os
import pickle
import resource
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from vmtune.errors import SetupError, VmtuneError
from vmtune.storage import Store

MAX_MEMORY_BYTES = 6 << 30
LENGTH = struct.Struct(">Q")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a function returned, or the error that it raised."""

    result: Any  # any: the function's
    error: VmtuneError | None = None


def be_modest() -> None:
    """Leave the CPUs to the service, take no more memory than :data:`MAX_MEMORY_BYTES`, and be the
    first to go when the machine runs out of it."""
    with suppress(OSError):  # a stricter system call filter than the packaged unit's refuses it
        os.nice(10)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = MAX_MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(MAX_MEMORY_BYTES, hard)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def frame(content: object) -> bytes:
    """*content* as one frame."""
    packed = pickle.dumps(content)
    return LENGTH.pack(len(packed)) + packed


def _read(stream: BinaryIO) -> Any:  # any: what was sent
    """:raise EOFError: the service has ended, or wants no more."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    return pickle.loads(stream.read(*LENGTH.unpack(head)))  # noqa: S301 - of our own service


def _call(store: Store, work: Callable[..., Any], given: tuple[object, ...]) -> bytes:
    try:
        return frame(Answer(work(store, *given)))
    except VmtuneError as error:
        return frame(Answer(None, error))
    except MemoryError:
        why = "it takes more memory than such work has"
        return frame(Answer(None, SetupError(why, code="too_large", remedy="ask for less")))


def main() -> None:
    """Answer until standard input ends."""
    be_modest()
    with suppress(EOFError):
        url, begin, given = _read(sys.stdin.buffer)
        begin(*given)
        _answer(url)


def _answer(url: str) -> None:
    """:raise EOFError: the service wants no more."""
    with Store.open(url) as store:
        answer = frame(Answer(None))
        while True:
            sys.stdout.buffer.write(answer)
            sys.stdout.buffer.flush()
            work, given = _read(sys.stdin.buffer)
            answer = _call(store, work, given)
