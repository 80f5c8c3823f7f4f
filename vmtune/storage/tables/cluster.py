"""The tables of the services that share one database."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Mapped, mapped_column

from vmtune.storage.columns import Number, Plain
from vmtune.storage.tables.core import Base


class ServiceRow(Base):
    """A service. Each heartbeat increments *beats*; a new *epoch* begins with each start, and with
    a takeover: writes under an older one are refused."""

    __tablename__ = "services"

    name: Mapped[str] = mapped_column(Plain("service"), primary_key=True)
    machine: Mapped[str] = mapped_column(Plain("machine"))
    pid: Mapped[int]
    version: Mapped[str] = mapped_column(Plain("version"))
    state: Mapped[str]
    epoch: Mapped[int] = mapped_column(Number)
    beats: Mapped[int] = mapped_column(Number)
    heir: Mapped[str] = mapped_column(Plain("service"))
    started_at: Mapped[datetime]
    seen_at: Mapped[datetime]


class OrderRow(Base):
    """A job that one service requests of another, until that has begun it."""

    __tablename__ = "job_orders"

    job: Mapped[str] = mapped_column(Plain("job"), primary_key=True)
    kind: Mapped[str]
    service: Mapped[str] = mapped_column(Plain("service"), index=True)
    cancelled: Mapped[bool]
    ordered_at: Mapped[datetime]
