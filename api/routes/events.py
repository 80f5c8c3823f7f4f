"""The event stream (server-sent events)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent

from vmtune.api.responses import problems
from vmtune.api.routes.common import Services
from vmtune.api.schemas.events import EventView
from vmtune.api.security import READ
from vmtune.domain.inventory import Event, EventTopic
from vmtune.services.bus import Progress

router = APIRouter(tags=["events"])
Number = Annotated[int, Query(ge=0, le=2**63 - 1)]


@router.get(
    "/events", response_class=EventSourceResponse, responses=problems(), dependencies=[READ]
)
async def follow_events(
    on: Services,
    after: Annotated[
        int | None, Query(ge=0, le=2**63 - 1, description="Resume after this event.")
    ] = None,
    last_event_id: Annotated[
        int | None, Header(ge=0, le=2**63 - 1, description="The same; goes before `after`.")
    ] = None,
    topic: Annotated[
        list[EventTopic], Query(description="Only these topics; none given lets all through.")
    ] = [],  # noqa: B006 - FastAPI copies it
    subject: Annotated[
        str | None, Query(description="Only what concerns this UUID or name.")
    ] = None,
) -> AsyncIterator[ServerSentEvent]:
    """What changes, as it happens. `event` is the topic, `data` is an EventView.

    Stored changes have an `id` to resume after; passing progress has none and is not
    repeated. A comment comes at least every 15 s.
    """
    resume = last_event_id if last_event_id is not None else after
    messages = on.bus.follow(resume)
    async for message in _until(messages, on.stopping):
        if message is None:
            yield ServerSentEvent(comment="following")
            continue
        if topic and message.topic not in topic:
            continue
        if subject is not None and message.subject != subject:
            continue
        yield ServerSentEvent(
            data=EventView.of(message),
            event=message.topic.value,
            id=str(message.id) if isinstance(message, Event) else None,
        )


async def _until(
    messages: AsyncIterator[Event | Progress], stopping: asyncio.Event
) -> AsyncIterator[Event | Progress | None]:
    """*messages* until the service stops; the first is None, once they are listened to."""
    stop = asyncio.ensure_future(stopping.wait())
    following = asyncio.ensure_future(anext(messages))
    try:
        await asyncio.sleep(0)
        yield None
        while True:
            await asyncio.wait({stop, following}, return_when=asyncio.FIRST_COMPLETED)
            if stop.done():
                return
            yield following.result()
            following = asyncio.ensure_future(anext(messages))
    finally:
        stop.cancel()
        following.cancel()
        await asyncio.gather(stop, following, return_exceptions=True)
        if isinstance(messages, AsyncGenerator):
            await messages.aclose()
