"""Has work that takes long done by processes of their own, a few at a time.

In a thread of the service it would hold up all else: Python runs one thread at a time, so a
comparison of 10,000 runs slows down the watching of migrations and every answer.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable
from contextlib import suppress
from typing import Concatenate, ParamSpec, Protocol, TypeVar, cast

import structlog

from vmtune.errors import SetupError
from vmtune.services.heavy import process
from vmtune.services.heavy.process import LENGTH, Answer, frame
from vmtune.storage import Store

log = structlog.get_logger(__name__)

_P = ParamSpec("_P")
_T = TypeVar("_T")
_PROGRAM = f"from {process.__name__} import main; main()"
_COMMAND = (sys.executable, "-P", "-c", _PROGRAM)  # -P: no module of the folder where it runs
_MAX_WAITING = 16
_WITHIN_S = 300.0
_IDLE_S = 60.0
_STARTS_WITHIN_S = 60.0


def no_preparation() -> None:
    """Nothing."""


class Work(Protocol):
    """Where heavy work is done."""

    async def run(
        self, work: Callable[Concatenate[Store, _P], _T], *given: _P.args, **none: _P.kwargs
    ) -> _T:
        """What *work* returns or raises, called with the store and what is given.

        :param work: a function of a module.
        """


class InThreads:
    """Heavy work in the service's own threads: for tests, which do not wait for processes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def run(
        self, work: Callable[Concatenate[Store, _P], _T], *given: _P.args, **none: _P.kwargs
    ) -> _T:
        """See :meth:`Work.run`."""
        return await asyncio.to_thread(work, self._store, *given, **none)


class HeavyWork:
    """Processes that are started when there is work, and end when there is none for a minute.

    :param url: of the database.
    :param processes: how many work at once; None for half of the CPUs.
    :param max_waiting: how much work may wait; more is refused.
    :param within_s: after how long work is given up; the start of a process does not count.
    :param begin: a function of a module, with its arguments, that each process calls first.
    """

    def __init__(
        self,
        url: str,
        processes: int | None = None,
        max_waiting: int = _MAX_WAITING,
        within_s: float = _WITHIN_S,
        begin: tuple[Callable[..., None], tuple[object, ...]] = (no_preparation, ()),
    ) -> None:
        self._url = url
        self._slots = asyncio.Semaphore(processes or max(1, (os.cpu_count() or 1) // 2))
        self._max_waiting = max_waiting
        self._within_s = within_s
        self._begin = begin
        self._waiting = 0
        self._all: set[Process] = set()
        self._idle: dict[Process, asyncio.TimerHandle] = {}

    async def run(
        self, work: Callable[Concatenate[Store, _P], _T], *given: _P.args, **none: _P.kwargs
    ) -> _T:
        """See :meth:`Work.run`.

        :raise SetupError: too much waits already; or it took too long, or too much memory.
        """
        assert not none, "by position"
        if self._waiting >= self._max_waiting:
            raise SetupError(
                f"{self._waiting} computations wait already",
                code="busy",
                remedy="try again when some have ended",
            )
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1
        try:
            answer = await self._ask(frame((work, given)))
        finally:
            self._slots.release()
        if answer.error is not None:
            raise answer.error
        return cast(_T, answer.result)

    async def close(self) -> None:
        """End the processes, and what they work at."""
        for each in tuple(self._all):
            await self._end(each)

    async def _ask(self, request: bytes) -> Answer:
        one = self._an_idle_one()
        starts = one is None
        one = one or await self._a_new_one()
        try:
            if starts:
                async with asyncio.timeout(_STARTS_WITHIN_S):
                    await _answer_of(one)
                starts = False
            async with asyncio.timeout(self._within_s):
                assert one.stdin is not None
                one.stdin.write(request)
                await one.stdin.drain()
                found = await _answer_of(one)
        except BaseException as error:
            await asyncio.shield(self._end(one))
            if isinstance(error, TimeoutError) and starts:
                raise SetupError(
                    f"a process for the computation did not start within {_STARTS_WITHIN_S:g} s",
                    code="busy",
                    remedy="try again when the machine is less busy",
                ) from error
            if isinstance(error, TimeoutError):
                raise SetupError(
                    f"the computation took more than {self._within_s:g} s",
                    code="took_too_long",
                    remedy="ask for less",
                ) from error
            if isinstance(error, OSError | EOFError):
                log.warning("a process for heavy work has ended", status=one.returncode)
                raise SetupError(
                    "the computation was ended: most likely it took too much memory",
                    code="too_large",
                    remedy="ask for less",
                ) from error
            raise
        loop = asyncio.get_running_loop()
        self._idle[one] = loop.call_later(_IDLE_S, self._dismiss, one)
        return found

    def _an_idle_one(self) -> Process | None:
        while self._idle:
            one, timer = self._idle.popitem()
            timer.cancel()
            if one.returncode is None:
                return one
            self._all.discard(one)
        return None

    async def _a_new_one(self) -> Process:
        one = await asyncio.create_subprocess_exec(
            *_COMMAND, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True
        )
        self._all.add(one)
        assert one.stdin is not None
        one.stdin.write(frame((self._url, *self._begin)))
        return one

    def _dismiss(self, one: Process) -> None:
        """It has been idle: let it see that there is no more."""
        self._idle.pop(one, None)
        self._all.discard(one)
        assert one.stdin is not None
        one.stdin.close()

    async def _end(self, one: Process) -> None:
        timer = self._idle.pop(one, None)
        if timer is not None:
            timer.cancel()
        self._all.discard(one)
        with suppress(ProcessLookupError):
            one.kill()
        await one.wait()


async def _answer_of(one: Process) -> Answer:
    assert one.stdout is not None
    (length,) = LENGTH.unpack(await one.stdout.readexactly(LENGTH.size))
    found = pickle.loads(await one.stdout.readexactly(length))  # noqa: S301 - our own
    assert isinstance(found, Answer)
    return found
