"""Profiles and their immutable revisions.

A profile's name and a revision's number never change their meaning: records of applications and
migrations refer to them. So a deleted profile keeps its revisions, and when its name is used
again, the new profile's revisions continue the old one's numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from vmtune.errors import Conflict, DuplicateName, NotFound, StaleRevision
from vmtune.model.migration.intent import Intent
from vmtune.model.migration.steps import Step, dump_steps, load_steps
from vmtune.model.profile import Profile, Revision, describe
from vmtune.model.tunables.tunable import Value
from vmtune.storage.database import Database
from vmtune.storage.mapping import Mapper, Stored
from vmtune.storage.paging import Page, check_limit, make_cursor, page, read_cursor
from vmtune.storage.repositories.assignments import ASSIGNMENTS
from vmtune.storage.tables.core import AssignmentRow, ProfileRow, RevisionRow

_MAP = Mapper(Revision, RevisionRow, steps=Stored(dump_steps, load_steps))
_NAMED_IN_ERROR = 5
_CURRENT = (
    select(ProfileRow, RevisionRow)
    .join(
        RevisionRow,
        (RevisionRow.profile == ProfileRow.name) & (RevisionRow.number == ProfileRow.current),
    )
    .where(ProfileRow.deleted_at.is_(None))
)
"""Each profile with its current revision."""


class ProfileRepository:
    """The profiles, by name."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(
        self,
        name: str,
        description: str,
        values: Mapping[str, Value],
        note: str = "",
        steps: Sequence[Step] = (),
        intent: Intent | None = None,
    ) -> Profile:
        """A new profile. Its first revision is number 1, unless a deleted profile had the name.

        :raise DuplicateName: there is one of that name.
        """
        with self._database.write() as session:
            row = session.get(ProfileRow, name)
            if row is not None and row.deleted_at is None:
                raise DuplicateName(
                    f"there is a profile named {name} already",
                    field="name",
                    remedy="choose another name, or change that profile",
                )
            now = self._database.now()
            if row is None:
                row = ProfileRow(name=name, description=description, current=0, created_at=now)
                session.add(row)
                session.flush()
            row.description, row.created_at, row.deleted_at = description, now, None
            return self._add_revision(session, row, values, steps, note, intent)

    def get(self, name: str) -> Profile:
        """The profile of that name at its current revision.

        :raise NotFound: there is none.
        """
        with self._database.read() as session:
            found = session.execute(_CURRENT.where(ProfileRow.name == name)).first()
            if found is None:
                raise _no_profile(name)
            return _profile(*found)

    def list(self, after: str | None = None, limit: int = 100, contains: str = "") -> Page[Profile]:
        """Profiles in the order of their names.

        :param contains: only those with this in their name or description, in any case.
        """
        query = _CURRENT.order_by(ProfileRow.name).limit(check_limit(limit) + 1)
        if contains:
            query = query.where(
                ProfileRow.name.icontains(contains, autoescape=True)
                | ProfileRow.description.icontains(contains, autoescape=True)
            )
        if after is not None:
            (name,) = read_cursor("profiles", after, str)
            query = query.where(ProfileRow.name > name)
        with self._database.read() as session:
            rows = session.execute(query).all()
            return page(
                rows,
                limit,
                lambda row: _profile(*row),
                lambda row: make_cursor("profiles", row[0].name),
            )

    def revise(
        self,
        name: str,
        values: Mapping[str, Value],
        note: str = "",
        *,
        expected: int | None = None,
        description: str | None = None,
        steps: Sequence[Step] = (),
        intent: Intent | None = None,
    ) -> Profile:
        """Give a profile new values, steps and intent, as a new revision, or a new description,
        without one.

        Values that equal the current ones, in the same order or another, and the same steps and
        intent make no revision: the answer to the same request twice is the same.

        :param expected: the revision that the caller has seen; None to skip that check.
        :raise NotFound: there is none of that name.
        :raise StaleRevision: the values have changed in the meantime.
        """
        with self._database.write() as session:
            row = _profile_row(session, name)
            if expected is not None and expected != row.current:
                raise StaleRevision(
                    f"profile {name} is at revision {row.current}, not {expected}",
                    field="If-Match",
                    remedy="read the current revision, then change that",
                )
            if description is not None:
                row.description = description
                session.flush()
            current = _revision_row(session, name, row.current)
            known = _MAP.record(current)
            same = known.steps == tuple(steps) and known.intent == intent
            if same and _same(current.values, values):
                return _profile(row, current)
            return self._add_revision(session, row, values, steps, note, intent)

    def revision(self, name: str, number: int) -> Revision:
        """One revision, also of a profile that was deleted.

        :raise NotFound: there is none.
        """
        with self._database.read() as session:
            return _MAP.record(_revision_row(session, name, number))

    def revisions(self, name: str, after: str | None = None, limit: int = 100) -> Page[Revision]:
        """Revisions of a profile, newest first, also of one that was deleted.

        :raise NotFound: there never was one of that name.
        """
        query = (
            select(RevisionRow)
            .where(RevisionRow.profile == name)
            .order_by(RevisionRow.number.desc())
            .limit(check_limit(limit) + 1)
        )
        if after is not None:
            (number,) = read_cursor("revisions", after, int)
            query = query.where(RevisionRow.number < number)
        with self._database.read() as session:
            if session.get(ProfileRow, name) is None:
                raise _no_profile(name)
            rows = session.scalars(query).all()
            return page(rows, limit, _MAP.record, lambda row: make_cursor("revisions", row.number))

    def delete(self, name: str) -> None:
        """Delete a profile; its revisions stay readable, its name is free.

        :raise NotFound: there is none of that name.
        :raise Conflict: assignments name it.
        """
        with self._database.write() as session:
            row = _profile_row(session, name)
            found = session.scalars(
                select(AssignmentRow)
                .where(AssignmentRow.profile == name)
                .order_by(AssignmentRow.id)
                .limit(_NAMED_IN_ERROR + 1)
            ).all()
            if found:
                users = [describe(ASSIGNMENTS.record(user)) for user in found[:_NAMED_IN_ERROR]]
                more = ", ..." if len(found) > _NAMED_IN_ERROR else ""
                raise Conflict(
                    f"profile {name} is used by {', '.join(users)}{more}",
                    field="name",
                    code="profile_in_use",
                    remedy="remove those assignments first",
                )
            row.deleted_at = self._database.now()

    def _add_revision(
        self,
        session: Session,
        row: ProfileRow,
        values: Mapping[str, Value],
        steps: Sequence[Step],
        note: str,
        intent: Intent | None,
    ) -> Profile:
        row.current += 1
        now = self._database.now()
        revision = _MAP.row(
            Revision(row.name, row.current, values, note, now, tuple(steps), intent)
        )
        session.add(revision)
        session.flush()
        return _profile(row, revision)


def _same(one: Mapping[str, Value], two: Mapping[str, Value]) -> bool:
    """Equal, and True is not 1."""
    return one == two and all(type(one[name]) is type(two[name]) for name in one)


def _no_profile(name: str) -> NotFound:
    return NotFound(
        f"there is no profile named {name[:70]}",
        field="profile",
        remedy="vmtune profile list shows them",
    )


def _profile_row(session: Session, name: str) -> ProfileRow:
    row = session.get(ProfileRow, name)
    if row is None or row.deleted_at is not None:
        raise _no_profile(name)
    return row


def _revision_row(session: Session, name: str, number: int) -> RevisionRow:
    row = session.get(RevisionRow, (name, number))
    if row is None:
        raise NotFound(
            f"profile {name[:70]} has no revision {number}",
            field="revision",
            remedy=f"vmtune profile history {name[:70]} shows them",
        )
    return row


def _profile(row: ProfileRow, current: RevisionRow) -> Profile:
    return Profile(row.name, row.description, _MAP.record(current), row.created_at)
