"""The tables of found changes and of schedules."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from vmtune.storage.columns import Plain
from vmtune.storage.tables.core import Base, JsonObject


class FoundChangeRow(Base):
    """A change of a metric over time, and what people made of it
    (vmtune.bench.model.trend.change)."""

    __tablename__ = "found_changes"
    __table_args__ = (
        Index(None, "scenario", "metric"),
        Index(None, "triage", "worse"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    scenario: Mapped[str] = mapped_column(Plain("scenario"))
    metric: Mapped[str] = mapped_column(Plain("metric"))
    setup: Mapped[str]
    run: Mapped[UUID]
    since: Mapped[datetime]
    kind: Mapped[str]
    text: Mapped[str] = mapped_column(Plain("text"))
    worse: Mapped[bool]
    found_at: Mapped[datetime]
    triage: Mapped[str]
    note: Mapped[str] = mapped_column(Plain("note"))
    triaged_by: Mapped[str] = mapped_column(Plain("triaged_by"))
    triaged_at: Mapped[datetime | None]


class ScheduleRow(Base):
    """A campaign that runs again and again (vmtune.bench.model.trend.scheduled)."""

    __tablename__ = "schedules"

    name: Mapped[str] = mapped_column(Plain("name"), primary_key=True)
    document: Mapped[JsonObject]
    every_s: Mapped[int]
    host: Mapped[str] = mapped_column(Plain("host"))
    created_at: Mapped[datetime]
    next_at: Mapped[datetime]
    last: Mapped[UUID | None]
    waits: Mapped[str] = mapped_column(Plain("waits"))
