"""Webhooks, and the outbox of what is to be sent to them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from vmtune.errors import DuplicateName, NotFound
from vmtune.model.host.inventory import Event
from vmtune.model.webhooks import (
    ROTATION,
    Delivery,
    DeliveryState,
    Webhook,
    WebhookEvent,
    new_secret,
    next_attempt,
    payload,
    webhook_event,
)
from vmtune.storage.database import Database, rows_met
from vmtune.storage.mapping import Mapper
from vmtune.storage.paging import Page, check_limit, make_cursor, page, read_cursor
from vmtune.storage.tables.core import EventRow
from vmtune.storage.tables.webhooks import DeliveryRow, OutboxRow, WebhookRow

_WEBHOOKS = Mapper(Webhook, WebhookRow)
_DELIVERIES = Mapper(Delivery, DeliveryRow)
_EVENTS = Mapper(Event, EventRow)
_OUTBOX = "events"
_EVENTS_AT_ONCE = 500
_GONE_AT_ONCE = 500
_LISTING = "deliveries"


class WebhookRepository:
    """The webhooks by name, and their deliveries."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.now = database.now

    def add(self, name: str, url: str, events: Collection[str], created_by: str) -> Webhook:
        """Add a webhook with a new secret.

        :raise DuplicateName: there is one of that name.
        """
        with self._database.write() as session:
            if session.scalar(select(WebhookRow.id).where(WebhookRow.name == name)):
                raise DuplicateName(
                    f"there is a webhook named {name} already",
                    field="name",
                    remedy="choose another name",
                )
            if session.get(OutboxRow, _OUTBOX) is None:  # what was before the first is not sent
                newest = session.scalar(select(func.max(EventRow.id))) or 0
                session.add(OutboxRow(name=_OUTBOX, event=newest))
            now = self._database.now()
            made = Webhook(
                uuid4(), name, url, tuple(events), True, new_secret(), "", None, created_by, now
            )
            session.add(_WEBHOOKS.row(made))
            return made

    def all(self) -> tuple[Webhook, ...]:
        """Every webhook, by name."""
        with self._database.read() as session:
            rows = session.scalars(select(WebhookRow).order_by(WebhookRow.name))
            return tuple(map(_WEBHOOKS.record, rows))

    def get(self, id: UUID) -> Webhook:
        """:raise NotFound: there is no such webhook."""
        with self._database.read() as session:
            return _WEBHOOKS.record(_found(session, id))

    def change(
        self,
        id: UUID,
        url: str | None = None,
        events: Collection[str] | None = None,
        active: bool | None = None,
    ) -> Webhook:
        """Change what is given.

        :raise NotFound: there is no such webhook.
        """
        with self._database.write() as session:
            row = _found(session, id)
            row.url = row.url if url is None else url
            row.events = row.events if events is None else list(events)
            row.active = row.active if active is None else active
            session.flush()
            return _WEBHOOKS.record(row)

    def rotate(self, id: UUID) -> Webhook:
        """Give it a new secret; the old one signs too for a day.

        :raise NotFound: there is no such webhook.
        """
        with self._database.write() as session:
            row = _found(session, id)
            row.old_secret, row.old_until = row.secret, self._database.now() + ROTATION
            row.secret = new_secret()
            session.flush()
            return _WEBHOOKS.record(row)

    def remove(self, id: UUID) -> None:
        """Remove it with its deliveries.

        :raise NotFound: there is no such webhook.
        """
        with self._database.write() as session:
            session.execute(delete(DeliveryRow).where(DeliveryRow.webhook == id))
            session.delete(_found(session, id))

    def test(self, id: UUID) -> Delivery:
        """Queue a test notification.

        :raise NotFound: there is no such webhook.
        """
        with self._database.write(durable=False) as session:
            row, now = _found(session, id), self._database.now()
            text = payload(WebhookEvent.TEST, now, row.name, {"webhook": row.name})
            made = _queued(id, f"msg_{uuid4().hex}", WebhookEvent.TEST, row.name, text, now)
            session.add(made)
            session.flush()
            return _DELIVERIES.record(made)

    def fill(self) -> int:
        """Make deliveries of the stored events that came since the last time, a few hundred at
        once: in one transaction with the note up to where, so that of several services none makes
        one twice, and a crash loses none.

        :return: how many events were looked at.
        """
        with self._database.read() as session:
            outbox = session.get(OutboxRow, _OUTBOX)
            newest = session.scalar(select(func.max(EventRow.id))) or 0
            if outbox is None or outbox.event >= newest:
                return 0
        with self._database.write(durable=False) as session:
            outbox = session.get(OutboxRow, _OUTBOX)
            assert outbox is not None
            query = select(EventRow).where(EventRow.id > outbox.event).order_by(EventRow.id)
            events = [_EVENTS.record(row) for row in session.scalars(query.limit(_EVENTS_AT_ONCE))]
            hooks = session.scalars(select(WebhookRow).where(WebhookRow.active)).all()
            for event in events:
                kind = webhook_event(event)
                for hook in hooks if kind is not None else ():
                    if kind is not None and kind.value in hook.events:
                        text = payload(kind, event.at, event.subject, event.data)
                        message = f"msg_{event.id}_{hook.id.hex}"
                        session.add(_queued(hook.id, message, kind, event.subject, text, event.at))
            if events:
                outbox.event = events[-1].id
            return len(events)

    def take(self, limit: int, held_s: float) -> tuple[tuple[Webhook, Delivery], ...]:
        """Take deliveries that are due. One whose sender is killed is due again after *held_s*."""
        now = self._database.now()
        due = (DeliveryRow.state == DeliveryState.PENDING.value) & (DeliveryRow.next_at <= now)
        with self._database.read() as session:
            if session.scalar(select(DeliveryRow.number).where(due).limit(1)) is None:
                return ()
        with self._database.write(durable=False) as session:
            query = (
                select(DeliveryRow, WebhookRow)
                .join(WebhookRow, WebhookRow.id == DeliveryRow.webhook)
                .where(due & WebhookRow.active)
                .order_by(DeliveryRow.next_at, DeliveryRow.number)
                .limit(limit)
            )
            taken = []
            for row, hook in session.execute(query).all():
                row.attempts += 1
                row.next_at = now + timedelta(seconds=held_s)
                session.flush()
                taken.append((_WEBHOOKS.record(hook), _DELIVERIES.record(row)))
            return tuple(taken)

    def note(self, number: int, attempts: int, status: int | None, problem: str) -> DeliveryState:
        """Note how an attempt ended.

        :param attempts: the one: a late note of an earlier attempt is passed over.
        :param problem: why it failed; empty where it did not.
        """
        with self._database.write(durable=False) as session:
            row, now = session.get(DeliveryRow, number), self._database.now()
            if row is None or row.attempts != attempts:
                return DeliveryState.PENDING
            row.status, row.problem = status, problem
            row.next_at = next_attempt(attempts, now) if problem else None
            if row.next_at is None:
                row.state = DeliveryState.FAILED if problem else DeliveryState.DELIVERED
                row.ended_at = now
            return DeliveryState(row.state)

    def replay(self, webhook: UUID, number: int) -> Delivery:
        """Send a delivery again, under the same id.

        :raise NotFound: the webhook has no such delivery.
        """
        with self._database.write(durable=False) as session:
            row = session.get(DeliveryRow, number)
            if row is None or row.webhook != webhook:
                raise NotFound(
                    f"the webhook has no delivery {number}",
                    field="delivery",
                    remedy="`vmtune webhook deliveries WEBHOOK` lists them",
                )
            row.state, row.attempts, row.ended_at = DeliveryState.PENDING, 0, None
            row.next_at = self._database.now()
            session.flush()
            return _DELIVERIES.record(row)

    def deliveries(
        self, webhook: UUID, state: DeliveryState | None, after: str | None, limit: int
    ) -> Page[Delivery]:
        """Its deliveries, newest first.

        :raise NotFound: there is no such webhook.
        """
        query = select(DeliveryRow).where(DeliveryRow.webhook == webhook)
        if state is not None:
            query = query.where(DeliveryRow.state == state.value)
        if after is not None:
            (number,) = read_cursor(_LISTING, after, int)
            query = query.where(DeliveryRow.number < number)
        query = query.order_by(DeliveryRow.number.desc()).limit(check_limit(limit) + 1)
        with self._database.read() as session:
            _found(session, webhook)
            rows = session.scalars(query).all()
            return page(
                rows, limit, _DELIVERIES.record, lambda row: make_cursor(_LISTING, row.number)
            )

    def old(self, before: datetime) -> int:
        """How many deliveries would be deleted."""
        query = select(func.count()).select_from(DeliveryRow).where(DeliveryRow.ended_at < before)
        with self._database.read() as session:
            return session.scalar(query) or 0

    def drop(self, before: datetime) -> int:
        """Delete some deliveries that ended before.

        :return: how many; 0 once none is left.
        """
        old = select(DeliveryRow.number).where(DeliveryRow.ended_at < before).limit(_GONE_AT_ONCE)
        with self._database.write(durable=False) as session:
            gone = delete(DeliveryRow).where(DeliveryRow.number.in_(old))
            return rows_met(session, gone)


def _queued(
    webhook: UUID, message: str, kind: WebhookEvent, subject: str, text: str, now: datetime
) -> DeliveryRow:
    return DeliveryRow(
        webhook=webhook,
        message=message,
        kind=kind.value,
        subject=subject,
        payload=text,
        state=DeliveryState.PENDING.value,
        attempts=0,
        created_at=now,
        next_at=now,
        status=None,
        problem="",
        ended_at=None,
    )


def _found(session: Session, id: UUID) -> WebhookRow:
    row = session.get(WebhookRow, id)
    if row is None:
        raise NotFound(
            f"there is no webhook {id}", field="webhook", remedy="`vmtune webhook list` lists them"
        )
    return row
