"""Publish and subscribe: stored events, whose ids a stream resumes from, and progress."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog

from vmtune.errors import VmtuneError
from vmtune.model.host.inventory import Event, EventTopic
from vmtune.storage import Store

log = structlog.get_logger(__name__)

_QUEUE_LENGTH = 1000
_REPLAY_PAGE = 500
_KEPT = 100_000
_RELAY_INTERVAL_S = 0.5
_IDLE_RELAY_INTERVAL_S = 5.0


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of something: delivered to current subscribers, never stored."""

    topic: EventTopic
    subject: str
    data: Mapping[str, object]


class EventBus:
    """Stores events, and delivers them and progress to every subscriber.

    A subscriber that falls a thousand messages behind is disconnected: it subscribes again with
    the id of its last event, and misses none.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._queues: set[asyncio.Queue[Event | Progress | None]] = set()
        self._in_order = asyncio.Lock()
        self._publishing: set[asyncio.Task[None]] = set()
        self._relaying = False
        self._stored = asyncio.Event()
        self.published = 0
        """How many events this service has stored since it began."""

    async def publish(
        self,
        topic: EventTopic,
        subject: object,
        data: Mapping[str, Any],
        *,
        durable: bool = False,
    ) -> Event:
        """Store an event, then deliver it: never before it is committed, and in the order of
        the ids.

        :param durable: it is on disk by then, with all that was stored before it.
        """
        append = partial(self._store.events.append, durable=durable)
        async with self._in_order:
            event = await asyncio.to_thread(append, topic, str(subject), data)
            self.published += 1
            if self._relaying:
                self._stored.set()
            else:
                self._deliver(event)
        return event

    async def relay(self) -> None:
        """Deliver what other services on the same database store, too, until cancelled: own
        events at once, theirs within half a second, all in the order of their ids."""
        newest = await asyncio.to_thread(self._store.events.newest_id)
        self._relaying = True
        try:
            while True:
                every_s = _RELAY_INTERVAL_S if self._queues else _IDLE_RELAY_INTERVAL_S
                with suppress(TimeoutError):
                    # Not wait_for: until Python 3.12 it may swallow a cancellation.
                    async with asyncio.timeout(every_s):
                        await self._stored.wait()
                self._stored.clear()
                try:
                    page = await asyncio.to_thread(self._store.events.since, newest, _REPLAY_PAGE)
                except VmtuneError as error:
                    log.warning("cannot read events", reason=error.message)
                    await asyncio.sleep(_RELAY_INTERVAL_S)
                    continue
                for event in page:
                    newest = event.id
                    self._deliver(event)
                if len(page) == _REPLAY_PAGE:
                    self._stored.set()
        finally:
            self._relaying = False

    def publish_soon(
        self,
        topic: EventTopic,
        subject: object,
        data: Mapping[str, Any],
        *,
        durable: bool = False,
    ) -> None:
        """Publish without making the caller wait: for what is in a record already, where a lost
        event does no harm. The order of the calls is kept."""
        task = asyncio.create_task(self._publish_logged(topic, subject, data, durable))
        self._publishing.add(task)
        task.add_done_callback(self._publishing.discard)

    async def _publish_logged(
        self, topic: EventTopic, subject: object, data: Mapping[str, Any], durable: bool
    ) -> None:
        try:
            await self.publish(topic, subject, data, durable=durable)
        except VmtuneError as error:
            log.warning("event not stored", topic=topic.value, reason=str(error))

    async def drain(self) -> None:
        """Wait until everything is published."""
        await asyncio.gather(*self._publishing)

    async def forget_old(self) -> None:
        """Delete stored events beyond the newest hundred thousand."""
        await asyncio.to_thread(self._store.events.prune, _KEPT)

    @property
    def is_heard(self) -> bool:
        """Whether anybody has subscribed: else progress need not be told."""
        return bool(self._queues)

    def progress(self, topic: EventTopic, subject: object, data: Mapping[str, object]) -> None:
        """Deliver progress without storing it."""
        self._deliver(Progress(topic, str(subject), data))

    def _deliver(self, message: Event | Progress) -> None:
        for queue in list(self._queues):
            if queue.full():
                self._queues.discard(queue)
                queue.get_nowait()
                queue.put_nowait(None)
            else:
                queue.put_nowait(message)

    @contextmanager
    def _subscription(self) -> Iterator[asyncio.Queue[Event | Progress | None]]:
        queue: asyncio.Queue[Event | Progress | None] = asyncio.Queue(_QUEUE_LENGTH)
        self._queues.add(queue)
        self._stored.set()  # the relay may sleep for long
        try:
            yield queue
        finally:
            self._queues.discard(queue)

    async def subscribe(self, after: int | None = None) -> AsyncGenerator[Event | Progress, None]:
        """Stored events after the id *after* (none when None), then all as they happen; ends
        when the subscriber is too slow."""
        with self._subscription() as queue:
            newest = after
            while newest is not None:
                page = await asyncio.to_thread(self._store.events.since, newest, _REPLAY_PAGE)
                for event in page:
                    newest = event.id
                    yield event
                if len(page) < _REPLAY_PAGE:
                    break
            while True:
                message = await queue.get()
                if message is None:
                    return
                if isinstance(message, Event):
                    if newest is not None and message.id <= newest:
                        continue  # was among the replayed ones
                    newest = message.id if newest is not None else None
                yield message
