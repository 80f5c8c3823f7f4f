"""The tables of drift scans, periodic tasks and retention."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from vmtune.storage.columns import Number, Plain
from vmtune.storage.tables.core import Base, JsonList


class DriftScanRow(Base):
    """The last drift scan of a host, and the number of requests (vmtune.model.plan.drift).

    Without *ended_at* there was no scan yet, and the counts have no meaning.
    """

    __tablename__ = "drift_scans"

    host: Mapped[str] = mapped_column(
        Plain("host"), ForeignKey("hosts.name", ondelete="CASCADE"), primary_key=True
    )
    asked: Mapped[int]
    answered: Mapped[int]
    service: Mapped[str] = mapped_column(Plain("service"))
    ended_at: Mapped[datetime | None]
    checked: Mapped[int]
    drifted: Mapped[int]
    without_profile: Mapped[int]
    skipped: Mapped[int]
    failed: Mapped[int]
    took_ms: Mapped[int] = mapped_column(Number)
    problems: Mapped[JsonList]


class PeriodicTaskRow(Base):
    """What one of the services on a database does from time to time, and when one last did."""

    __tablename__ = "periodic_tasks"

    name: Mapped[str] = mapped_column(primary_key=True)
    service: Mapped[str] = mapped_column(Plain("service"))
    begun_at: Mapped[datetime]


class AuditCutRow(Base):
    """Up to which entry the audit log was dropped: the hash of the last one that was, from which
    the first one that is left follows. The database takes none that is not an entry's."""

    __tablename__ = "audit_cuts"

    number: Mapped[int] = mapped_column(Number, primary_key=True, autoincrement=False)
    hash: Mapped[str]
    at: Mapped[datetime]
