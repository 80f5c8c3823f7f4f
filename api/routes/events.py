"""The event stream (server-sent events)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Annotated

from fastapi import Header, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from vmtune.api.auth.authentication import still_lets_in
from vmtune.api.auth.security import READ, Who
from vmtune.api.responses import problems
from vmtune.api.routes.common import Services, Whole
from vmtune.api.routes.router import Router
from vmtune.api.schemas.events import EventView
from vmtune.model.host.inventory import Event, EventTopic
from vmtune.services.access.access import Access
from vmtune.services.events import Progress

_LOOK_EVERY_S = 60.0

router = Router(tags=["events"])
Number = Annotated[Whole, Query(ge=0, le=2**63 - 1)]


@router.get(
    "/events", response_class=EventSourceResponse, responses=problems(), dependencies=[READ]
)
async def follow_events(
    on: Services,
    request: Request,
    who: Who,
    after: Annotated[
        int | None, Query(ge=0, le=2**63 - 1, description="Resume after this event.")
    ] = None,
    last_event_id: Annotated[
        int | None, Header(ge=0, le=2**63 - 1, description="The same; overrides `after`.")
    ] = None,
    topic: Annotated[list[EventTopic], Query(description="Only these topics; default: all.")] = [],  # noqa: B006 - FastAPI copies it
    subject: Annotated[
        str | None, Query(description="Only events about this UUID or name.")
    ] = None,
) -> AsyncIterator[ServerSentEvent]:
    """Events as they happen. `event` is the topic, `data` is an EventView.

    Stored events have an `id` to resume after; progress events have none and are not
    repeated. A comment is sent at least every 15 s as a heartbeat.
    """
    resume = last_event_id if last_event_id is not None else after
    messages = on.bus.subscribe(resume)
    async for message in _until(messages, on.stopping, _Permission(on.access, request)):
        if message is None:
            yield ServerSentEvent(comment="following")
            continue
        if topic and message.topic not in topic:
            continue
        if subject is not None and message.subject != subject:
            continue
        if not await on.access.guard.sees_event(who, message):
            continue
        yield ServerSentEvent(
            data=EventView.of(message),
            event=message.topic.value,
            id=str(message.id) if isinstance(message, Event) else None,
        )


class _Permission:
    """Whether the subscriber still has its rights: checked again whenever rights may have been
    revoked, and each minute, for those that expire."""

    def __init__(self, access: Access, request: Request) -> None:
        self._access = access
        self._request = request
        self._known: asyncio.Event | None = None  # the `changed` at the time of the last check

    async def end(self) -> None:
        """Return once it has ended."""
        while True:
            changed = self._access.tokens.changed
            if not await self._look():
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_EVERY_S):
                    await changed.wait()

    async def holds(self) -> bool:
        """Whether they still may, after all that is known to have changed."""
        while self._known is not self._access.tokens.changed:
            if not await self._look():
                return False
        return True

    async def _look(self) -> bool:
        changed = self._access.tokens.changed  # before: a change meanwhile is checked next time
        still = await still_lets_in(self._request.scope, self._access)
        if still:
            self._known = changed
        return still


async def _until(
    messages: AsyncIterator[Event | Progress], stopping: asyncio.Event, may: _Permission
) -> AsyncIterator[Event | Progress | None]:
    """*messages* until the service stops or the subscriber loses its rights; the first is None,
    once subscribed."""
    stop = asyncio.ensure_future(stopping.wait())
    ended = asyncio.ensure_future(may.end())
    following = asyncio.ensure_future(anext(messages))
    try:
        await asyncio.sleep(0)
        yield None
        while True:
            await asyncio.wait({stop, ended, following}, return_when=asyncio.FIRST_COMPLETED)
            if stop.done() or ended.done() or not await may.holds():
                return
            yield following.result()
            following = asyncio.ensure_future(anext(messages))
    finally:
        for task in (stop, ended, following):
            task.cancel()
        await asyncio.gather(stop, ended, following, return_exceptions=True)
        if isinstance(messages, AsyncGenerator):
            await messages.aclose()
