"""Lets those who ask the same at the same time share an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")


class Together(Generic[_T]):
    """Asks one at a time of each kind. Who comes while an answer is on its way gets the next one,
    with all others who come meanwhile: never one that was begun before they asked."""

    def __init__(self) -> None:
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
        self._running[what] = self._next.pop(what)
        try:
            return await work()
        finally:
            del self._running[what]
