"""Webhooks: who is told what, and the outbox that tells them."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable, Collection
from uuid import UUID

import structlog

from vmtune.errors import VmtuneError
from vmtune.model.access.scopes import Identity
from vmtune.model.webhooks import (
    Delivery,
    DeliveryState,
    Webhook,
    check_events,
    check_name,
    check_url,
    signature,
)
from vmtune.services.metrics import telemetry
from vmtune.services.webhooks.sending import Sent, send
from vmtune.storage import Store
from vmtune.storage.paging import Page

log = structlog.get_logger(__name__)

_AT_ONCE = 8
_HELD_S = 60.0
_EVERY_S = 1.0
_IDLE_S = 5.0
Send = Callable[..., Awaitable[Sent]]


class WebhookService:
    """The subscriptions."""

    def __init__(self, store: Store) -> None:
        self._hooks = store.webhooks

    async def add(self, who: Identity, name: str, url: str, events: Collection[str]) -> Webhook:
        """Add one, with a new secret.

        :raise InvalidInput: the name, the URL or an event is none.
        :raise DuplicateName: there is one of that name.
        """
        given = check_name(name), check_url(url), check_events(events)
        return await asyncio.to_thread(self._hooks.add, *given, str(who))

    async def list(self) -> tuple[Webhook, ...]:
        """All, by name."""
        return await asyncio.to_thread(self._hooks.all)

    async def get(self, id: UUID) -> Webhook:
        """:raise NotFound: there is no such webhook."""
        return await asyncio.to_thread(self._hooks.get, id)

    async def change(
        self, id: UUID, url: str | None, events: Collection[str] | None, active: bool | None
    ) -> Webhook:
        """Change what is given.

        :raise InvalidInput: the URL or an event is none.
        :raise NotFound: there is no such webhook.
        """
        url = None if url is None else check_url(url)
        events = None if events is None else check_events(events)
        return await asyncio.to_thread(self._hooks.change, id, url, events, active)

    async def rotate(self, id: UUID) -> Webhook:
        """See :meth:`vmtune.storage.repositories.webhooks.WebhookRepository.rotate`."""
        return await asyncio.to_thread(self._hooks.rotate, id)

    async def remove(self, id: UUID) -> None:
        """:raise NotFound: there is no such webhook."""
        await asyncio.to_thread(self._hooks.remove, id)

    async def test(self, id: UUID) -> Delivery:
        """Queue a test notification.

        :raise NotFound: there is no such webhook.
        """
        return await asyncio.to_thread(self._hooks.test, id)

    async def replay(self, id: UUID, number: int) -> Delivery:
        """Send a delivery again.

        :raise NotFound: the webhook has no such delivery.
        """
        return await asyncio.to_thread(self._hooks.replay, id, number)

    async def deliveries(
        self, id: UUID, state: DeliveryState | None, after: str | None, limit: int
    ) -> Page[Delivery]:
        """Newest first.

        :raise NotFound: there is no such webhook.
        """
        return await asyncio.to_thread(self._hooks.deliveries, id, state, after, limit)


class Outbox:
    """Sends what is due, in each of the services on a database: each delivery is taken by one.

    :param own_addresses: also send to this machine's own addresses.
    """

    def __init__(
        self, store: Store, own_addresses: bool = False, sender: Send | None = None
    ) -> None:
        self._store = store
        self._send = sender or functools.partial(send, own_addresses=own_addresses)

    async def run(self) -> None:
        """Fill and send again and again, until cancelled."""
        while True:
            try:
                busy = await self.once()
            except VmtuneError as error:  # the database is away for a moment
                log.warning("webhooks are not sent", reason=error.message)
                busy = False
            await asyncio.sleep(_EVERY_S if busy else _IDLE_S)

    async def once(self) -> bool:
        """Make the deliveries of new events, and send what is due; whether there was anything."""
        filled = await asyncio.to_thread(self._store.webhooks.fill)
        taken = await asyncio.to_thread(self._store.webhooks.take, _AT_ONCE, _HELD_S)
        await asyncio.gather(*(self._deliver(hook, each) for hook, each in taken))
        return bool(filled or taken)

    async def _deliver(self, hook: Webhook, delivery: Delivery) -> None:
        now_s, now = int(time.time()), self._store.webhooks.now()
        signed = signature(hook.secrets_at(now), delivery.message, now_s, delivery.payload)
        headers = {
            "webhook-id": delivery.message,
            "webhook-timestamp": str(now_s),
            "webhook-signature": signed,
        }
        sent = await self._send(hook.url, headers, delivery.payload.encode())
        state = await asyncio.to_thread(
            self._store.webhooks.note, delivery.number, delivery.attempts, sent.status, sent.problem
        )
        telemetry.webhook_sent(failed=bool(sent.problem))
        if state is DeliveryState.FAILED:
            log.warning("a webhook was not delivered", webhook=hook.name, reason=sent.problem)
