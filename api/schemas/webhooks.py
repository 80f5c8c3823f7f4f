"""Webhooks and their deliveries."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import Field, StrictBool, StrictStr

from vmtune.api.schemas.common import Model, Page
from vmtune.model.webhooks import DeliveryState, Webhook, WebhookEvent

_EVENTS = "Which of these are sent; empty for all: migration.ended, evacuation.ended, "
_EVENTS += "campaign.ended, study.ended, vm.drifted, host.findings."


class WebhookCreate(Model):
    """Where notifications are to be sent."""

    name: StrictStr = Field(max_length=100)
    url: StrictStr = Field(max_length=2000, description="An https:// or http:// URL.")
    events: list[StrictStr] = Field(default=[], max_length=20, description=_EVENTS)


class WebhookChange(Model):
    """What is to change; what is left out or null stays."""

    url: StrictStr | None = Field(default=None, max_length=2000)
    events: list[StrictStr] | None = Field(default=None, max_length=20, description=_EVENTS)
    active: StrictBool | None = Field(
        default=None, description="Without, nothing new is queued and nothing is sent."
    )


class WebhookView(Model):
    """A webhook, without its secret."""

    id: UUID
    name: str
    url: str
    events: list[WebhookEvent]
    active: bool
    created_by: str
    created_at: datetime
    old_until: datetime | None = Field(
        description="Until when the secret before the last rotation signs too."
    )


class WebhookMade(WebhookView):
    """A webhook with its secret. Later responses do not have the secret."""

    secret: str = Field(description="Signs notifications (Standard Webhooks).")

    @classmethod
    def made(cls, webhook: Webhook) -> WebhookMade:
        return cls.from_record(webhook)


class WebhookList(Model):
    """Webhooks, by name."""

    items: list[WebhookView]


class DeliveryView(Model):
    """One notification to one webhook."""

    number: int
    webhook: UUID
    message: str = Field(description="`webhook-id`: the same in each attempt and replay.")
    kind: WebhookEvent
    subject: str
    payload: str = Field(description="The body, as JSON text.")
    state: DeliveryState
    attempts: int
    created_at: datetime
    next_at: datetime | None = Field(description="The next attempt; null once it is over.")
    status: int | None = Field(description="HTTP status of the last answer; null without one.")
    problem: str = Field(description="Why the last attempt failed; else empty.")
    ended_at: datetime | None


class DeliveryPage(Page[DeliveryView]):
    """Deliveries, newest first."""
