"""Request coalescing: equal requests that arrive at the same time share an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")


class Coalescer(Generic[_T]):
    """Runs one request of each key at a time. Requests that arrive while it runs share the next
    run: no caller gets an answer that was begun before its request.

    :param share: most of the time, above 0 up to 1, that runs of one key may take: the next one
        is delayed accordingly.
    :param max_interval_s: from the start of one run to that of the next, at most, also if *share*
        gives more.
    """

    def __init__(self, share: float = 1.0, max_interval_s: float = 0.0) -> None:
        self._share = share
        self._max_interval_s = max_interval_s
        self._not_before: dict[Hashable, float] = {}
        self._running: dict[Hashable, asyncio.Task[_T]] = {}
        self._next: dict[Hashable, asyncio.Task[_T]] = {}

    async def run(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """What *work*, or an equal request's, returns or raises.

        :param key: equal for equal requests.
        """
        task = self._next.get(key)
        if task is None:
            task = asyncio.create_task(self._run_next(key, work))
            # All its callers may have given up by the time it fails.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._next[key] = task
        # A caller that is cancelled does not cancel it for the others.
        return await asyncio.shield(task)

    async def _run_next(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        before = self._running.get(key)
        if before is not None:
            await asyncio.wait({before})
        loop = asyncio.get_running_loop()
        delay_s = self._not_before.get(key, 0.0) - loop.time()
        if delay_s > 0:
            await asyncio.sleep(delay_s)
        self._running[key] = self._next.pop(key)
        begun = loop.time()
        try:
            return await work()
        finally:
            del self._running[key]
            took_s = loop.time() - begun
            self._delay(key, begun + min(took_s / self._share, self._max_interval_s))

    def _delay(self, key: Hashable, until: float) -> None:
        loop = asyncio.get_running_loop()
        if until > loop.time():
            self._not_before[key] = until
            loop.call_at(until, self._forget, key, until)

    def _forget(self, key: Hashable, until: float) -> None:
        if self._not_before.get(key) == until:
            del self._not_before[key]
