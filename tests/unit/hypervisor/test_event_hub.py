from __future__ import annotations

import asyncio
import gc

from vmtune.hypervisor.event_hub import EventHub
from vmtune.hypervisor.protocol import DriverEvent, EventKind


def event(detail: str) -> DriverEvent:
    return DriverEvent(EventKind.VM_STATE, None, detail)


async def test_each_watcher_hears_everything_from_its_start_on() -> None:
    hub = EventHub()
    first = hub.events()
    hub.publish(event("1"))
    second = hub.events()
    hub.publish(event("2"))
    hub.close()
    assert [e.detail async for e in first] == ["1", "2"]
    assert [e.detail async for e in second] == ["2"]


async def test_a_waiting_watcher_is_woken() -> None:
    hub = EventHub()
    events = hub.events()
    waiting = asyncio.ensure_future(anext(events))
    await asyncio.sleep(0)
    hub.publish(event("now"))
    assert (await waiting).detail == "now"
    await events.aclose()


async def test_a_watch_of_a_closed_hub_ends_at_once() -> None:
    hub = EventHub()
    hub.close()
    assert [e async for e in hub.events()] == []


async def test_a_slow_watcher_keeps_the_latest() -> None:
    hub = EventHub()
    events = hub.events()
    for number in range(10_001):
        hub.publish(event(str(number)))
    assert (await anext(events)).detail == "1"
    await events.aclose()


async def test_a_dropped_watcher_costs_nothing() -> None:
    hub = EventHub()
    hub.subscribe()
    gc.collect()
    assert not hub._subscriptions
