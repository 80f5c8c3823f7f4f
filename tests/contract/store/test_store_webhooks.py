"""Deliveries of webhooks on one database, of several services, and of one that is killed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from tests.contract.store.conftest import Clock
from vmtune.model.host.inventory import EventTopic
from vmtune.model.webhooks import RETRIES_S, DeliveryState, Webhook, WebhookEvent
from vmtune.services.webhooks.sending import Sent
from vmtune.services.webhooks.webhooks import Outbox
from vmtune.storage import Store

HELD_S = 60.0
EVENTS = [WebhookEvent.MIGRATION_ENDED.value]


@pytest.fixture
def other(url: str, clock: Clock) -> Iterator[Store]:
    """Of a second service on the same database."""
    with Store.open(url, now=clock) as opened:
        yield opened


@pytest.fixture
def hook(store: Store) -> Webhook:
    return store.webhooks.add("ops", "https://ops.example/", EVENTS, "user:ada")


def ended(store: Store, count: int) -> None:
    """Store the ends of so many migrations."""
    for number in range(count):
        store.events.append(EventTopic.MIGRATION, str(number), {"state": "completed"})


def states(store: Store, hook: Webhook) -> list[DeliveryState]:
    return [each.state for each in store.webhooks.deliveries(hook.id, None, None, 100).items]


class Receiver:
    """Notes what a service sends to it.

    :param gate: what holds back the answers.
    """

    def __init__(self, gate: asyncio.Event | None = None) -> None:
        self.got: list[str] = []
        self.called = asyncio.Event()
        self._gate = gate

    async def __call__(self, url: str, headers: Mapping[str, str], body: bytes) -> Sent:
        self.got.append(headers["webhook-id"])
        self.called.set()
        if self._gate is not None:
            await self._gate.wait()
        return Sent(204, "")


def test_events_become_deliveries_once(store: Store, other: Store, hook: Webhook) -> None:
    ended(store, 40)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda each: each.webhooks.fill(), [store, other] * 4))
    found = store.webhooks.deliveries(hook.id, None, None, 100).items
    assert len(found) == len({each.message for each in found}) == 40


def test_what_was_before_the_first_webhook_is_not_sent(store: Store) -> None:
    ended(store, 3)
    made = store.webhooks.add("ops", "https://ops.example/", EVENTS, "user:ada")
    store.webhooks.fill()
    assert states(store, made) == []


def test_a_delivery_is_taken_by_one(store: Store, other: Store, hook: Webhook) -> None:
    ended(store, 40)
    store.webhooks.fill()
    with ThreadPoolExecutor(8) as pool:
        rounds = pool.map(lambda each: each.webhooks.take(8, 1e6), [store, other] * 8)
        taken = [delivery.number for each in rounds for _, delivery in each]
    assert len(taken) == len(set(taken)) == 40


async def test_of_two_services_one_sends(store: Store, other: Store, hook: Webhook) -> None:
    ended(store, 12)
    there = Receiver()
    outboxes = [Outbox(store, sender=there), Outbox(other, sender=there)]
    for _ in range(3):
        await asyncio.gather(*(each.once() for each in outboxes))
    assert len(there.got) == len(set(there.got)) == 12
    assert set(states(store, hook)) == {DeliveryState.DELIVERED}


async def test_deliveries_of_a_service_that_is_killed_go_on(
    store: Store, other: Store, hook: Webhook, clock: Clock
) -> None:
    ended(store, 2)
    hanging, there = Receiver(asyncio.Event()), Receiver()
    killed = asyncio.create_task(Outbox(store, sender=hanging).once())
    await hanging.called.wait()
    killed.cancel()
    with pytest.raises(asyncio.CancelledError):
        await killed
    await Outbox(other, sender=there).once()
    assert there.got == []  # the first may still send them
    clock.time += timedelta(seconds=HELD_S)
    await Outbox(other, sender=there).once()
    assert sorted(there.got) == sorted(hanging.got) and len(there.got) == 2
    assert set(states(other, hook)) == {DeliveryState.DELIVERED}


def test_a_late_note_of_an_earlier_attempt_is_passed_over(
    store: Store, other: Store, hook: Webhook, clock: Clock
) -> None:
    ended(store, 1)
    store.webhooks.fill()
    ((_, first),) = store.webhooks.take(8, HELD_S)
    clock.time += timedelta(seconds=HELD_S)
    ((_, second),) = other.webhooks.take(8, HELD_S)
    assert (second.number, second.attempts) == (first.number, first.attempts + 1)
    other.webhooks.note(second.number, second.attempts, 204, "")
    store.webhooks.note(first.number, first.attempts, None, "no answer within 15 s")
    assert states(store, hook) == [DeliveryState.DELIVERED]


def test_after_the_last_attempt_it_has_failed_and_can_be_replayed(
    store: Store, hook: Webhook, clock: Clock
) -> None:
    store.webhooks.test(hook.id)
    for attempt in range(1, len(RETRIES_S) + 2):
        ((_, taken),) = store.webhooks.take(8, HELD_S)
        assert taken.attempts == attempt
        state = store.webhooks.note(taken.number, attempt, 503, "the receiver answered 503")
        clock.time += timedelta(seconds=max(RETRIES_S))
    assert state is DeliveryState.FAILED
    assert store.webhooks.take(8, HELD_S) == ()
    replayed = store.webhooks.replay(hook.id, taken.number)
    assert (replayed.state, replayed.attempts) == (DeliveryState.PENDING, 0)
    ((_, again),) = store.webhooks.take(8, HELD_S)
    assert again.message == taken.message


def test_one_that_rests_is_sent_nothing(store: Store, hook: Webhook) -> None:
    ended(store, 1)
    store.webhooks.fill()
    store.webhooks.change(hook.id, active=False)
    ended(store, 1)
    store.webhooks.fill()
    assert store.webhooks.take(8, HELD_S) == ()
    store.webhooks.change(hook.id, active=True)
    assert len(store.webhooks.take(8, HELD_S)) == 1
