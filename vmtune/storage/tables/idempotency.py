"""The table of requests that were sent with an ``Idempotency-Key``."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from vmtune.storage.columns import Json, Plain
from vmtune.storage.tables.core import Base, JsonObject


class IdempotencyRow(Base):
    """A caller's key, the request that came with it, and the answer it got.

    :param holder: the service, and which start of it, that carries the request out; empty once it
        does no more.
    :param subject: the id or name of what it began, noted in the transaction that began it.
    :param status: with *headers* and *body* the answer; null for none yet.
    """

    __tablename__ = "idempotency_keys"
    __table_args__ = (Index(None, "begun_at"),)

    caller_kind: Mapped[str] = mapped_column(primary_key=True)
    caller: Mapped[str] = mapped_column(Plain("caller"), primary_key=True)
    key: Mapped[str] = mapped_column(Plain("Idempotency-Key"), primary_key=True)
    fingerprint: Mapped[str]
    action: Mapped[str]
    begins: Mapped[str]
    begun_at: Mapped[datetime]
    holder: Mapped[str] = mapped_column(Plain("service"))
    subject: Mapped[str | None]
    status: Mapped[int | None]
    headers: Mapped[JsonObject | None] = mapped_column(Json)
    body: Mapped[str | None]
