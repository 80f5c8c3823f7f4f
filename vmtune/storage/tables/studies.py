"""The tables of studies and of their trials."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import ForeignKeyConstraint, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from vmtune.storage.columns import Json, Number, Plain
from vmtune.storage.tables.core import Base, JsonList, JsonObject


class StudyRow(Base):
    """A study (vmtune.bench.model.tune.kept). Its runs name it in their own rows."""

    __tablename__ = "studies"
    __table_args__ = (
        UniqueConstraint("id"),
        Index(None, "name", "number"),
        Index(None, "state"),
        {"sqlite_autoincrement": True},
    )

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    id: Mapped[UUID]
    name: Mapped[str] = mapped_column(Plain("name"))
    spec: Mapped[JsonObject]
    state: Mapped[str]
    reason: Mapped[str] = mapped_column(Plain("reason"))
    host: Mapped[str] = mapped_column(Plain("host"))
    finalists: Mapped[list[int] | None] = mapped_column(Json)
    campaign: Mapped[UUID | None]
    breaches: Mapped[JsonList]
    result: Mapped[JsonObject | None] = mapped_column(Json)
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]


class TrialRow(Base):
    """Settings that a study tries, and what each run of them gave."""

    __tablename__ = "trials"
    __table_args__ = (ForeignKeyConstraint(["study"], ["studies.number"]),)

    study: Mapped[int] = mapped_column(Number, primary_key=True, autoincrement=False)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    trial: Mapped[JsonObject]
