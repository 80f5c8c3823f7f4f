"""Lets those who ask the same at the same time share an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")


class Together(Generic[_T]):
    """Asks one at a time of each kind. Who comes while an answer is on its way gets the next one,
    with all others who come meanwhile: never one that was begun before they asked.

    :param share: of the time, from above 0 to 1, that answers of one kind may take: where they are
        asked for more often, the next is begun later.
    :param most_apart_s: seconds from the beginning of one to that of the next after which it is
        not put off any more.
    """

    def __init__(self, share: float = 1.0, most_apart_s: float = 0.0) -> None:
        self._share = share
        self._most_apart_s = most_apart_s
        self._not_before: dict[Hashable, float] = {}
        self._running: dict[Hashable, asyncio.Task[_T]] = {}
        self._next: dict[Hashable, asyncio.Task[_T]] = {}

    async def ask(self, what: Hashable, work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """The answer that *work* gives, perhaps to others too; or what it raises.

        :param what: tells questions apart.
        """
        task = self._next.get(what)
        if task is None:
            task = asyncio.create_task(self._in_turn(what, work))
            self._next[what] = task
        # Who gives up waiting leaves it to the others.
        return await asyncio.shield(task)

    async def _in_turn(self, what: Hashable, work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        before = self._running.get(what)
        if before is not None:
            await asyncio.wait({before})
        loop = asyncio.get_running_loop()
        late_s = self._not_before.get(what, 0.0) - loop.time()
        if late_s > 0:
            await asyncio.sleep(late_s)
        self._running[what] = self._next.pop(what)
        begun = loop.time()
        try:
            return await work()
        finally:
            del self._running[what]
            took_s = loop.time() - begun
            self._rest(what, begun + min(took_s / self._share, self._most_apart_s))

    def _rest(self, what: Hashable, until: float) -> None:
        loop = asyncio.get_running_loop()
        if until > loop.time():
            self._not_before[what] = until
            loop.call_at(until, self._rested, what, until)

    def _rested(self, what: Hashable, until: float) -> None:
        if self._not_before.get(what) == until:
            del self._not_before[what]
