"""Webhooks: what is sent, to whom, how it is signed, and when it is tried again. Pure.

Headers and signature are those of Standard Webhooks (https://www.standardwebhooks.com), for which
there are libraries in most languages.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import json
import re
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from urllib.parse import urlsplit
from uuid import UUID

from vmtune.errors import InvalidInput
from vmtune.model.host.inventory import Event, EventTopic
from vmtune.model.migration.record import MigrationState
from vmtune.model.shown import shown

_PREFIX = "whsec_"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_MAX_URL = 2000
RETRIES_S = (5, 30, 120, 600, 3600, 3 * 3600, 6 * 3600, 12 * 3600)
"""After each failed attempt, seconds until the next one; after the last the delivery has failed.
About a day in all."""
ROTATION = timedelta(hours=24)
"""For how long both secrets sign after a rotation."""


class WebhookEvent(StrEnum):
    """What is told."""

    MIGRATION_ENDED = "migration.ended"
    EVACUATION_ENDED = "evacuation.ended"
    CAMPAIGN_ENDED = "campaign.ended"
    STUDY_ENDED = "study.ended"
    VM_DRIFTED = "vm.drifted"
    HOST_FINDINGS = "host.findings"
    TEST = "test"


CHOSEN = tuple(kind for kind in WebhookEvent if kind is not WebhookEvent.TEST)
"""What a webhook can be asked to send; a test is sent when it is asked for."""
_ENDED = {
    EventTopic.EVACUATION: (
        WebhookEvent.EVACUATION_ENDED, {"completed", "failed", "cancelled"}
    ),
    EventTopic.CAMPAIGN: (WebhookEvent.CAMPAIGN_ENDED, {"completed", "failed", "cancelled"}),
    EventTopic.STUDY: (WebhookEvent.STUDY_ENDED, {"completed", "failed", "cancelled"}),
    EventTopic.MIGRATION: (
        WebhookEvent.MIGRATION_ENDED, {each.value for each in MigrationState if each.ended}
    ),
}  # fmt: skip


class DeliveryState(StrEnum):
    """How far a delivery is."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where notifications are sent.

    :param secret: signs them (``whsec_`` and base64).
    :param old_secret: signs them too, until *old_until*; empty for none.
    """

    id: UUID
    name: str
    url: str
    events: tuple[str, ...]
    active: bool
    secret: str
    old_secret: str
    old_until: datetime | None
    created_by: str
    created_at: datetime

    def secrets_at(self, now: datetime) -> tuple[str, ...]:
        """The secrets that sign, the newest first."""
        both = self.old_until is not None and now < self.old_until
        return (self.secret, self.old_secret) if both else (self.secret,)


@dataclass(frozen=True, slots=True)
class Delivery:
    """One notification to one webhook.

    :param message: ``webhook-id``: the same in each attempt and replay, so that receivers can pass
        over what they have.
    :param payload: the body, as JSON text.
    :param next_at: when it is tried next; None once it is over.
    :param status: of the last answer; None without one.
    :param problem: why the last attempt failed; empty where it did not.
    """

    number: int
    webhook: UUID
    message: str
    kind: WebhookEvent
    subject: str
    payload: str
    state: DeliveryState
    attempts: int
    created_at: datetime
    next_at: datetime | None
    status: int | None
    problem: str
    ended_at: datetime | None


def webhook_event(event: Event) -> WebhookEvent | None:
    """What a stored event tells webhooks; None for nothing."""
    data = event.data
    if event.topic in _ENDED:
        kind, states = _ENDED[event.topic]
        is_end = data.get("state") in states and "step" not in data
        return kind if is_end else None
    change = data.get("change")
    if event.topic is EventTopic.VM and change == "tuning":
        return WebhookEvent.VM_DRIFTED if data.get("tuning_state") == "drifted" else None
    if event.topic is EventTopic.HOST and change == "findings":
        return WebhookEvent.HOST_FINDINGS
    return None


def payload(kind: WebhookEvent, at: datetime, subject: str, data: Mapping[str, object]) -> str:
    """The body of a notification."""
    said = {"type": kind.value, "timestamp": at.isoformat(), "subject": subject, "data": dict(data)}
    return json.dumps(said, separators=(",", ":"))


def new_secret() -> str:
    """A secret of 32 random bytes."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def signature(keys: Collection[str], message: str, timestamp: int, body: str) -> str:
    """The ``webhook-signature`` header: HMAC-SHA256 over id, timestamp and body, by each key."""
    signed = f"{message}.{timestamp}.{body}".encode()
    made = (
        hmac.new(base64.b64decode(key.removeprefix(_PREFIX)), signed, hashlib.sha256).digest()
        for key in keys
    )
    return " ".join(f"v1,{base64.b64encode(each).decode()}" for each in made)


def next_attempt(attempts: int, now: datetime) -> datetime | None:
    """When to try again after so many failed attempts; None for no more."""
    if attempts > len(RETRIES_S):
        return None
    return now + timedelta(seconds=RETRIES_S[attempts - 1])


def check_name(name: str) -> str:
    """:raise InvalidInput: it is no name."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"{name[:70]!r} is not a valid webhook name",
            field="name",
            remedy="use letters, digits, dots, dashes and underscores, at most 63",
        )
    return name


def check_url(url: str) -> str:
    """*url*, where a notification can be sent.

    :raise InvalidInput: it is no http:// or https:// URL, or has a password or a fragment.
    """
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        parts, usable = urlsplit(""), False
    visible = all(0x21 <= ord(letter) <= 0x7E for letter in url)
    plain = parts.username is None and parts.password is None and not parts.fragment
    if parts.scheme in ("http", "https") and usable and plain and visible and len(url) <= _MAX_URL:
        return url
    raise InvalidInput(
        f"{shown(url)} is not a URL that notifications can be sent to",
        field="url",
        remedy="write https://NAME/PATH, without a user and a fragment",
    )


def check_events(events: Collection[str]) -> tuple[str, ...]:
    """*events*, in the order of their table; all where there are none.

    :raise InvalidInput: one is unknown.
    """
    known = [kind.value for kind in CHOSEN]
    unknown = [each for each in events if each not in known]
    if unknown:
        raise InvalidInput(
            f"{unknown[0][:70]!r} is not an event", field="events", remedy=f"use {', '.join(known)}"
        )
    return tuple(each for each in known if each in events or not events)


def why_not_there(address: str, is_own: bool) -> str:
    """Why nothing is sent to an IP address; empty where it may be.

    :param is_own: it is an address of this machine.
    """
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour
        if inner is not None:
            return why_not_there(str(inner), is_own)
    if ip.is_loopback or is_own:
        return f"{address} is this machine's own"
    if ip.is_link_local:
        return f"{address} is link-local"
    if ip.is_unspecified or ip.is_multicast or (ip.is_reserved and not ip.is_private):
        return f"{address} is not an address of a receiver"
    return ""
