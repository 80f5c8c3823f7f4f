"""The tables of evacuations and of the migrations' queue."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import ForeignKey, Index, UniqueConstraint, false, text
from sqlalchemy.orm import Mapped, mapped_column

from vmtune.storage.columns import Json, Number, Plain
from vmtune.storage.tables.core import Base, JsonList, JsonObject


class SlotRow(Base):
    """The slots that a migration takes, or waits for: a row, deleted at its end.

    :param number: the migration's, which is its age.
    """

    __tablename__ = "slots"
    __table_args__ = (
        UniqueConstraint("migration"),
        Index(None, "running", "priority", "number"),
    )

    number: Mapped[int] = mapped_column(Number, primary_key=True, autoincrement=False)
    migration: Mapped[UUID]
    source: Mapped[str] = mapped_column(Plain("source"))
    destination: Mapped[str] = mapped_column(Plain("destination"))
    priority: Mapped[int]
    running: Mapped[bool]
    held: Mapped[bool]
    copies: Mapped[bool] = mapped_column(default=False, server_default=false())


class EvacuationRow(Base):
    """*number* orders them: clocks can be set back."""

    __tablename__ = "evacuations"
    __table_args__ = (
        UniqueConstraint("id"),
        Index(None, "host", "number"),
        Index(None, "state"),
        {"sqlite_autoincrement": True},
    )

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    id: Mapped[UUID]
    host: Mapped[str] = mapped_column(Plain("host"))
    destinations: Mapped[list[str]]
    order: Mapped[str]
    priority: Mapped[int]
    max_outgoing: Mapped[int | None]
    stop_after_failures: Mapped[int | None]
    profile: Mapped[str] = mapped_column(Plain("profile"))
    state: Mapped[str]
    reason: Mapped[str] = mapped_column(Plain("reason"))
    created_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    intent: Mapped[JsonObject | None] = mapped_column(Json)
    local_disks: Mapped[str] = mapped_column(default="profile", server_default=text("'profile'"))


class EvacuationVmRow(Base):
    """One VM of an evacuation; *position* is its place in the order of moving, from 0."""

    __tablename__ = "evacuation_vms"
    __table_args__ = (
        UniqueConstraint("evacuation", "vm"),
        Index(None, "destination", "state"),
    )

    evacuation: Mapped[int] = mapped_column(
        Number, ForeignKey("evacuations.number"), primary_key=True
    )
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    vm: Mapped[UUID]
    name: Mapped[str] = mapped_column(Plain("name"))
    memory_bytes: Mapped[int] = mapped_column(Number)
    priority: Mapped[int]
    state: Mapped[str]
    destination: Mapped[str] = mapped_column(Plain("destination"))
    reason: Mapped[str] = mapped_column(Plain("reason"))
    findings: Mapped[JsonList]
    overrides: Mapped[list[str]]
    migration: Mapped[UUID | None]
    disks: Mapped[JsonList | None] = mapped_column(Json)
    values: Mapped[JsonObject | None] = mapped_column(Json)
