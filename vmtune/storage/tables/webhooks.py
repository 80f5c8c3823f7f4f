"""The tables of webhooks and of what is to be sent to them."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from vmtune.storage.columns import Number, Plain
from vmtune.storage.tables.core import Base


class WebhookRow(Base):
    """A webhook. Its secrets are stored as they are: they sign."""

    __tablename__ = "webhooks"
    __table_args__ = (UniqueConstraint("name"),)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(Plain("name"))
    url: Mapped[str] = mapped_column(Plain("url"))
    events: Mapped[list[str]]
    active: Mapped[bool]
    secret: Mapped[str]
    old_secret: Mapped[str]
    old_until: Mapped[datetime | None]
    created_by: Mapped[str] = mapped_column(Plain("created_by"))
    created_at: Mapped[datetime]


class DeliveryRow(Base):
    """One notification to one webhook, until retention deletes it."""

    __tablename__ = "webhook_deliveries"
    __table_args__ = (
        UniqueConstraint("webhook", "message"),
        Index(None, "state", "next_at"),
        Index(None, "ended_at"),
        {"sqlite_autoincrement": True},
    )

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    webhook: Mapped[UUID] = mapped_column(ForeignKey("webhooks.id", ondelete="CASCADE"))
    message: Mapped[str]
    kind: Mapped[str]
    subject: Mapped[str] = mapped_column(Plain("subject"))
    payload: Mapped[str]
    state: Mapped[str]
    attempts: Mapped[int]
    created_at: Mapped[datetime]
    next_at: Mapped[datetime | None]
    status: Mapped[int | None]
    problem: Mapped[str] = mapped_column(Plain("problem"))
    ended_at: Mapped[datetime | None]


class OutboxRow(Base):
    """Up to which stored event deliveries were made: one row."""

    __tablename__ = "webhook_outbox"

    name: Mapped[str] = mapped_column(primary_key=True)
    event: Mapped[int] = mapped_column(Number)
