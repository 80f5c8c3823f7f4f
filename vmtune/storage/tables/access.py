"""The tables of tokens, web sessions and the audit log."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from vmtune.storage.columns import Json, Number, Plain
from vmtune.storage.tables.core import Base, JsonList, JsonObject


class TokenRow(Base):
    """A token. A revoked one keeps its row: the audit log refers to it.

    :param secret_hash: argon2's, which names its own parameters and salt.
    :param hosts: null for all.
    """

    __tablename__ = "tokens"

    id: Mapped[str] = mapped_column(Plain("id"), primary_key=True)
    name: Mapped[str] = mapped_column(Plain("name"))
    secret_hash: Mapped[str]
    scopes: Mapped[list[str]]
    hosts: Mapped[list[str] | None] = mapped_column(Json)
    labels: Mapped[JsonObject]
    creator_kind: Mapped[str]
    creator: Mapped[str] = mapped_column(Plain("creator"))
    creator_name: Mapped[str] = mapped_column(Plain("creator_name"))
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    used_at: Mapped[datetime | None]
    used_from: Mapped[str]


class WebSessionRow(Base):
    """A browser that is signed in.

    :param id: SHA-256 of its cookie.
    :param token: with which it signed in; null if an identity provider authenticated it.
    """

    __tablename__ = "web_sessions"

    id: Mapped[str] = mapped_column(primary_key=True)
    token: Mapped[str | None] = mapped_column(Plain("token"), ForeignKey("tokens.id"), index=True)
    subject: Mapped[str] = mapped_column(Plain("subject"))
    name: Mapped[str] = mapped_column(Plain("name"))
    rights: Mapped[JsonObject | None] = mapped_column(Json)
    address: Mapped[str]
    created_at: Mapped[datetime]
    seen_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class AuditRow(Base):
    """An entry of the audit log. The database refuses to change one, and to delete one that was
    not cut off (vmtune.storage.tables.retention)."""

    __tablename__ = "audit"
    __table_args__ = (Index(None, "actor", "number"), Index(None, "outcome", "number"))

    number: Mapped[int] = mapped_column(Number, primary_key=True, autoincrement=False)
    at: Mapped[datetime]
    actor_kind: Mapped[str]
    actor: Mapped[str]
    actor_name: Mapped[str]
    origin: Mapped[str]
    action: Mapped[str]
    subject: Mapped[str]
    outcome: Mapped[str]
    status: Mapped[int | None]
    reason: Mapped[str]
    request: Mapped[str]
    codes: Mapped[list[str]]
    changes: Mapped[JsonList]
    hash: Mapped[str]
