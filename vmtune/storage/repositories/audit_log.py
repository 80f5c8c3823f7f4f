"""Reads the audit log, and adds entries about actions without stored changes. Entries cannot be
altered; vmtune.storage.repositories.retention deletes old ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from vmtune.model.access.audit import (
    NO_CUT,
    Act,
    AuditSort,
    Cut,
    Entry,
    Integrity,
    Outcome,
    check,
)
from vmtune.storage import auditing
from vmtune.storage.database import Database
from vmtune.storage.paging import Page, check_limit, make_cursor, page, read_cursor
from vmtune.storage.tables.access import AuditRow
from vmtune.storage.tables.retention import AuditCutRow

_BATCH = 1000


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which entries; None lets all through.

    :param actor: an id: a token's, a user's number.
    :param about: a part of the subject.
    """

    actor: str | None = None
    action: str | None = None
    outcome: Outcome | None = None
    about: str | None = None
    since: datetime | None = None
    until: datetime | None = None


class AuditRepository:
    """The entries, by their number."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self, act: Act, outcome: Outcome, subject: str, status: int | None, codes: Sequence[str]
    ) -> Entry:
        """Add an entry about an action without stored changes."""
        with self._database.write() as session:
            now = self._database.now()
            return auditing.append(session, act, now, outcome, subject, status, tuple(codes))

    def list(
        self,
        wanted: AuditFilter,
        after: str | None = None,
        limit: int = 100,
        sort: AuditSort = AuditSort.NEWEST,
    ) -> Page[Entry]:
        """Entries, newest first unless *sort* says otherwise.

        :raise InvalidInput: *after* is not a cursor of this order, or *limit* is out of range.
        """
        number = AuditRow.number
        newest = sort is AuditSort.NEWEST
        listing = "audit" if newest else f"audit {sort}"
        query = _filtered(wanted).order_by(number.desc() if newest else number)
        if after is not None:
            (last,) = read_cursor(listing, after, int)
            query = query.where(number < last if newest else number > last)
        with self._database.read() as session:
            rows = session.scalars(query.limit(check_limit(limit) + 1)).all()
            return page(
                rows, limit, auditing.ENTRIES.record, lambda row: make_cursor(listing, row.number)
            )

    def oldest_first(self, wanted: AuditFilter, after: int = 0) -> Sequence[Entry]:
        """Up to a thousand entries after the one numbered *after*, oldest first."""
        query = _filtered(wanted).where(AuditRow.number > after)
        with self._database.read() as session:
            rows = session.scalars(query.order_by(AuditRow.number).limit(_BATCH))
            return [auditing.ENTRIES.record(row) for row in rows]

    def check(self) -> Integrity:
        """Whether all entries follow from each other, from those on that were dropped."""
        with self._database.read() as session:
            cut = newest_cut(session)
        return check(self._all(cut.number), cut)

    def _all(self, number: int) -> Iterator[Entry]:
        while batch := self.oldest_first(AuditFilter(), number):
            yield from batch
            number = batch[-1].number


def newest_cut(session: Session) -> Cut:
    """Up to where entries were dropped."""
    row = session.scalar(select(AuditCutRow).order_by(AuditCutRow.number.desc()).limit(1))
    return Cut(row.number, row.hash) if row is not None else NO_CUT


def _filtered(wanted: AuditFilter) -> Select[AuditRow]:
    query = select(AuditRow)
    if wanted.actor is not None:
        query = query.where(AuditRow.actor == wanted.actor)
    if wanted.action is not None:
        query = query.where(AuditRow.action == wanted.action)
    if wanted.outcome is not None:
        query = query.where(AuditRow.outcome == wanted.outcome)
    if wanted.about is not None:
        query = query.where(AuditRow.subject.contains(wanted.about, autoescape=True))
    if wanted.since is not None:
        query = query.where(AuditRow.at >= wanted.since)
    if wanted.until is not None:
        query = query.where(AuditRow.at < wanted.until)
    return query
