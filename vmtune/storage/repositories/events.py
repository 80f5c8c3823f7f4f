"""Events: changes in their order, for subscribers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import cast

from sqlalchemy import Table, delete, func, insert, select

from vmtune.model.host.inventory import Event, EventTopic
from vmtune.storage.database import Database
from vmtune.storage.mapping import Mapper
from vmtune.storage.paging import check_limit
from vmtune.storage.tables.core import EventRow

_EVENTS = Mapper(Event, EventRow)
_INSERT = insert(cast(Table, EventRow.__table__)).returning(EventRow.id)


class EventRepository:
    """The events. An event becomes visible after all that have smaller numbers."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(
        self,
        topic: EventTopic,
        subject: str,
        data: Mapping[str, object],
        *,
        durable: bool = False,
    ) -> Event:
        """Add an event.

        :param data: ready for JSON.
        :param durable: it, and all that was written before it, is on disk before this returns.
        """
        with self._database.write(durable=durable, progress=True) as session:
            at, stored = self._database.now(), dict(data)
            made = session.connection().execute(  # past the ORM, which takes three times as long
                _INSERT, {"at": at, "topic": topic, "subject": subject, "data": stored}
            )
            return Event(made.scalar_one(), at, topic, subject, stored)

    def since(
        self,
        id: int,
        limit: int = 100,
        topics: Collection[EventTopic] | None = None,
        subject: str | None = None,
    ) -> tuple[Event, ...]:
        """Events after the one numbered *id*, oldest first."""
        query = select(EventRow).where(EventRow.id > id)
        if topics is not None:
            query = query.where(EventRow.topic.in_(topics))
        if subject is not None:
            query = query.where(EventRow.subject == subject)
        query = query.order_by(EventRow.id).limit(check_limit(limit))
        with self._database.read() as session:
            return tuple(map(_EVENTS.record, session.scalars(query)))

    def newest_id(self) -> int:
        """The newest event's number; 0 where there is none."""
        with self._database.read() as session:
            return session.scalar(select(func.max(EventRow.id))) or 0

    def prune(self, keep: int) -> int:
        """Delete all but the newest *keep* events, at least 1; return the number deleted."""
        assert keep >= 1, "the newest event marks the position of the stream"
        newest = select(EventRow.id).order_by(EventRow.id.desc()).offset(keep - 1).limit(1)
        with self._database.write(durable=False, progress=True) as session:
            oldest_kept = session.scalar(newest)
            if oldest_kept is None:
                return 0
            older = EventRow.id < oldest_kept
            number = session.scalar(select(func.count()).select_from(EventRow).where(older)) or 0
            session.execute(delete(EventRow).where(older))
            return number
