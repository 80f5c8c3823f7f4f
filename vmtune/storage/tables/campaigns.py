"""The tables of campaigns and of noise floors."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from vmtune.storage.columns import Number, Plain
from vmtune.storage.tables.core import Base, JsonObject


class CampaignRow(Base):
    """A campaign. Its runs name it in their own rows."""

    __tablename__ = "campaigns"
    __table_args__ = (
        UniqueConstraint("id"),
        Index(None, "name", "number"),
        Index(None, "state"),
        {"sqlite_autoincrement": True},
    )

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    id: Mapped[UUID]
    name: Mapped[str] = mapped_column(Plain("name"))
    campaign: Mapped[JsonObject]
    forecast: Mapped[JsonObject]
    state: Mapped[str]
    reason: Mapped[str] = mapped_column(Plain("reason"))
    host: Mapped[str] = mapped_column(Plain("host"))
    created_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]


class NoiseFloorRow(Base):
    """Differences between identical arms (vmtune.stats.noise); the newest calibration.
    :param campaign: which measured it.
    """

    __tablename__ = "noise_floors"

    environment: Mapped[str] = mapped_column(
        Plain("environment"), ForeignKey("environments.fingerprint"), primary_key=True
    )
    scenario: Mapped[str] = mapped_column(Plain("scenario"), primary_key=True)
    metric: Mapped[str] = mapped_column(Plain("metric"), primary_key=True)
    scale: Mapped[str]
    design: Mapped[str]
    size: Mapped[int]
    effect: Mapped[float]
    observed: Mapped[float]
    campaign: Mapped[UUID]
    made_at: Mapped[datetime]
