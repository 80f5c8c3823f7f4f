"""Events to any number of watchers, each at its own pace."""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import AsyncGenerator

from vmtune.hypervisor.protocol import DriverEvent

_MOST_WAITING = 10_000
"""A watcher that falls further behind loses the oldest events: events are hints to look,
and who looks late sees the present state anyway."""


class Watch:
    """One watcher's events, from the moment it was made. Dropping it ends it."""

    def __init__(self) -> None:
        self._waiting: deque[DriverEvent | None] = deque(maxlen=_MOST_WAITING)
        self._news = asyncio.Event()

    def put(self, event: DriverEvent | None) -> None:
        """Hand over an event; None is the last."""
        self._waiting.append(event)
        self._news.set()

    def __aiter__(self) -> Watch:
        return self

    async def __anext__(self) -> DriverEvent:
        while not self._waiting:
            self._news.clear()
            await self._news.wait()
        event = self._waiting.popleft()
        if event is None:
            self._waiting.append(None)
            raise StopAsyncIteration
        return event


class Hub:
    """Passes each published event to every watch that is still held by somebody."""

    def __init__(self) -> None:
        self._watches: weakref.WeakSet[Watch] = weakref.WeakSet()
        self._closed = False

    def watch(self) -> Watch:
        """A watcher of what is published from now on."""
        watch = Watch()
        if self._closed:
            watch.put(None)
        self._watches.add(watch)
        return watch

    def events(self) -> AsyncGenerator[DriverEvent, None]:
        """The same as a generator, which watches from now on, not from its first step."""
        return _drain(self.watch())

    def publish(self, event: DriverEvent) -> None:
        """Tell every watcher. Call it from the event loop's own thread."""
        for watch in tuple(self._watches):
            watch.put(event)

    def close(self) -> None:
        """End all watches, present and future."""
        self._closed = True
        for watch in tuple(self._watches):
            watch.put(None)


async def _drain(watch: Watch) -> AsyncGenerator[DriverEvent, None]:
    async for event in watch:
        yield event
