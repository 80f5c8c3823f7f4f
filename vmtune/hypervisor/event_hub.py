"""Events to any number of watchers, each at its own pace."""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import AsyncGenerator

from vmtune.hypervisor.protocol import DriverEvent

_MAX_WAITING = 10_000
"""A watcher that falls further behind loses the oldest events: events are hints to read the state,
and a late reader sees the present state anyway."""


class Subscription:
    """One watcher's events, from the moment it was made. Dropping it ends it."""

    def __init__(self) -> None:
        self._waiting: deque[DriverEvent | None] = deque(maxlen=_MAX_WAITING)
        self._news = asyncio.Event()

    def put(self, event: DriverEvent | None) -> None:
        """Hand over an event; None is the last."""
        self._waiting.append(event)
        self._news.set()

    def __aiter__(self) -> Subscription:
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


class EventHub:
    """Passes each published event to every live subscription."""

    def __init__(self) -> None:
        self._subscriptions: weakref.WeakSet[Subscription] = weakref.WeakSet()
        self._closed = False

    def subscribe(self) -> Subscription:
        """A subscription to what is published from now on."""
        subscription = Subscription()
        if self._closed:
            subscription.put(None)
        self._subscriptions.add(subscription)
        return subscription

    def events(self) -> AsyncGenerator[DriverEvent, None]:
        """The same as a generator, which watches from now on, not from its first step."""
        return _drain(self.subscribe())

    def publish(self, event: DriverEvent) -> None:
        """Publish to every subscription. Call it from the event loop's own thread."""
        for subscription in tuple(self._subscriptions):
            subscription.put(event)

    def close(self) -> None:
        """End all subscriptions, present and future."""
        self._closed = True
        for subscription in tuple(self._subscriptions):
            subscription.put(None)


async def _drain(subscription: Subscription) -> AsyncGenerator[DriverEvent, None]:
    async for event in subscription:
        yield event
