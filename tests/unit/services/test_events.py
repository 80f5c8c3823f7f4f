"""Events: in order, resumed after an id, and no listener left to fill the memory."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.simulated.world import World, world
from vmtune.model.host.inventory import Event, EventTopic
from vmtune.services import events as bus


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


async def test_a_stream_resumes_after_what_was_seen_and_goes_on(it: World) -> None:
    first = await it.bus.publish(EventTopic.VM, "x", {"n": 0})
    for n in range(1, 4):
        await it.bus.publish(EventTopic.VM, "x", {"n": n})
    seen: list[object] = []
    async for message in it.bus.subscribe(first.id):
        seen.append(message.data["n"])
        if len(seen) == 3:
            await it.bus.publish(EventTopic.VM, "x", {"n": 4})
        if len(seen) == 4:
            break
    assert seen == [1, 2, 3, 4]


async def test_events_told_at_once_arrive_in_the_order_of_their_ids(it: World) -> None:
    ids: list[int] = []

    async def listen() -> None:
        async for message in it.bus.subscribe(0):
            if isinstance(message, Event) and message.topic is EventTopic.VM:
                ids.append(message.id)

    task = asyncio.create_task(listen())
    await asyncio.gather(*(it.bus.publish(EventTopic.VM, "x", {"n": n}) for n in range(50)))
    await it.until(lambda: len(ids) == 50)
    task.cancel()
    assert ids == sorted(set(ids))


async def test_a_listener_that_does_not_keep_up_is_let_go(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus, "_QUEUE_LENGTH", 5)
    stream = it.bus.subscribe()
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    for n in range(20):
        it.bus.progress(EventTopic.VM, "x", {"n": n})
    got = [await waiting] + [message async for message in stream]
    assert len(got) < 6


async def test_old_events_are_forgotten(it: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus, "_KEPT", 2)
    for n in range(5):
        await it.bus.publish(EventTopic.VM, "x", {"n": n})
    await it.bus.forget_old()
    assert [e.data["n"] for e in it.store.events.since(0)] == [3, 4]


async def test_progress_is_heard_while_somebody_listens(it: World) -> None:
    assert not it.bus.is_heard
    stream = it.bus.subscribe()
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    assert it.bus.is_heard
    it.bus.progress(EventTopic.VM, "x", {"n": 1})
    await waiting
    await stream.aclose()
    assert not it.bus.is_heard
