"""Webhooks: signed notifications for those who hold no event stream."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Path, Response

from vmtune.api.auth.reach import EVERYWHERE
from vmtune.api.auth.security import ADMIN, Who
from vmtune.api.http.idempotency import KEYED
from vmtune.api.responses import LOCATION, WITH_BODY, problems, with_headers
from vmtune.api.routes.common import PREFIX, After, Limit, Services
from vmtune.api.routes.router import Router
from vmtune.api.schemas.webhooks import (
    DeliveryPage,
    DeliveryView,
    WebhookChange,
    WebhookCreate,
    WebhookList,
    WebhookMade,
    WebhookView,
)
from vmtune.model.webhooks import DeliveryState

router = Router(prefix="/webhooks", tags=["webhooks"], dependencies=[EVERYWHERE])


@router.get("", responses=problems(), dependencies=[ADMIN])
async def list_webhooks(on: Services) -> WebhookList:
    """Webhooks, by name, without their secrets."""
    found = await on.webhooks.list()
    return WebhookList(items=[WebhookView.from_record(each) for each in found])


@router.post(
    "",
    status_code=201,
    responses=problems(*WITH_BODY, 409) | with_headers(201, LOCATION),
    dependencies=[ADMIN],
)
async def create_webhook(
    on: Services, who: Who, body: WebhookCreate, response: Response
) -> WebhookMade:
    """Create a webhook; only this response has its secret. What happens from now on is sent."""
    made = await on.webhooks.add(who, body.name, body.url, body.events)
    response.headers["Location"] = f"{PREFIX}/webhooks/{made.id}"
    return WebhookMade.made(made)


@router.get("/{webhook}", responses=problems(404), dependencies=[ADMIN])
async def get_webhook(on: Services, webhook: UUID) -> WebhookView:
    """One webhook."""
    return WebhookView.from_record(await on.webhooks.get(webhook))


@router.patch("/{webhook}", responses=problems(*WITH_BODY, 404), dependencies=[ADMIN])
async def change_webhook(on: Services, webhook: UUID, body: WebhookChange) -> WebhookView:
    """Change a webhook, or make it rest."""
    changed = await on.webhooks.change(webhook, body.url, body.events, body.active)
    return WebhookView.from_record(changed)


@router.delete("/{webhook}", status_code=204, responses=problems(404), dependencies=[ADMIN])
async def delete_webhook(on: Services, webhook: UUID) -> None:
    """Delete a webhook with its deliveries."""
    await on.webhooks.remove(webhook)


@router.post("/{webhook}/secret", responses=problems(404), dependencies=[ADMIN])
async def rotate_webhook_secret(on: Services, webhook: UUID) -> WebhookMade:
    """Give a webhook a new secret; only this response has it. For 24 hours notifications are
    signed with both."""
    return WebhookMade.made(await on.webhooks.rotate(webhook))


@router.post("/{webhook}/test", responses=problems(404, 409), dependencies=[ADMIN, KEYED])
async def send_test_delivery(on: Services, webhook: UUID) -> DeliveryView:
    """Send a test notification. The delivery's record says what came of it."""
    return DeliveryView.from_record(await on.webhooks.test(webhook))


@router.get("/{webhook}/deliveries", responses=problems(404), dependencies=[ADMIN])
async def list_deliveries(
    on: Services,
    webhook: UUID,
    state: DeliveryState | None = None,
    limit: Limit = 50,
    after: After = None,
) -> DeliveryPage:
    """Deliveries of a webhook, newest first."""
    page = await on.webhooks.deliveries(webhook, state, after, limit)
    return DeliveryPage(
        items=[DeliveryView.from_record(each) for each in page.items], next=page.next
    )


@router.post(
    "/{webhook}/deliveries/{number}/replay",
    responses=problems(404, 409),
    dependencies=[ADMIN, KEYED],
)
async def replay_delivery(
    on: Services, webhook: UUID, number: Annotated[int, Path(ge=1, le=2**63 - 1)]
) -> DeliveryView:
    """Send a delivery again, under the same `webhook-id`."""
    return DeliveryView.from_record(await on.webhooks.replay(webhook, number))
