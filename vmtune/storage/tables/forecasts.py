"""The table of forecasts."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from vmtune.storage.columns import Json, Number
from vmtune.storage.tables.core import Base, JsonObject


class ForecastRow(Base):
    """A migration's forecast (vmtune.forecast.held), one for each of what it was made from.

    :param held_at: when its migration had ended; null before.
    """

    __tablename__ = "forecasts"
    __table_args__ = (
        UniqueConstraint("migration", "basis"),
        Index(None, "held_at"),
        {"sqlite_autoincrement": True},
    )

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    migration: Mapped[int] = mapped_column(Number, ForeignKey("migrations.number"))
    basis: Mapped[str]
    made_at: Mapped[datetime]
    model: Mapped[int]
    figures: Mapped[JsonObject]
    inputs: Mapped[JsonObject]
    happened: Mapped[JsonObject | None] = mapped_column(Json)
    held_at: Mapped[datetime | None]
