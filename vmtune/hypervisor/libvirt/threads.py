"""Threads for calls that block, so that the event loop never does."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")
_Work = Callable[[], None]


class Workers:
    """A few threads, started as they are needed. They are daemons: a call that hangs in libvirt
    does not prevent the process from ending, as a ThreadPoolExecutor would.

    :param most: how many calls may be under way at once; the others wait.
    """

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._queue: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._unfinished = 0

    def submit(self, call: Callable[[], _T]) -> asyncio.Future[_T]:
        """Have *call* run, and its result or exception in the future. From the event loop."""
        future: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        may_be_left(future)

        def finished() -> None:
            self._unfinished -= 1

        self._unfinished += 1
        self._queue.put(lambda: settle(future, call, finished))
        if self._unfinished > len(self._threads) < self._most:
            thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._threads.append(thread)
            thread.start()
        return future

    def _work(self) -> None:
        while (work := self._queue.get()) is not None:
            work()

    def close(self) -> None:
        """End the threads once what was submitted is done."""
        for _ in self._threads:
            self._queue.put(None)
        self._threads.clear()


def may_be_left(future: asyncio.Future[_T]) -> None:
    """Let *future* fail without a complaint of asyncio, where every caller has stopped waiting."""
    future.add_done_callback(lambda done: None if done.cancelled() else done.exception())


def settle(
    future: asyncio.Future[_T], call: Callable[[], _T], finished: Callable[[], None] | None = None
) -> None:
    """Run *call* in this thread and give *future*, which belongs to an event loop, its
    result. If that loop has ended meanwhile, the result is dropped."""
    result: _T | None = None
    error: BaseException | None = None
    if not future.cancelled():
        try:
            result = call()
        except BaseException as caught:  # the waiting caller gets it
            error = caught

    def notify() -> None:
        if finished is not None:
            finished()
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]  # None only where _T has it

    with contextlib.suppress(RuntimeError):  # the loop is closed
        future.get_loop().call_soon_threadsafe(notify)
