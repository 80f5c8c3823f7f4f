"""Which profile is for which VM, label selector or host."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from vmtune.errors import DuplicateName, InvalidInput, NotFound, TiedAssignments
from vmtune.model.migration.intent import Intent
from vmtune.model.profile import (
    Assignment,
    Target,
    check_name,
    could_tie,
    describe,
    parse_selector,
)
from vmtune.storage.database import Database
from vmtune.storage.mapping import Mapper
from vmtune.storage.paging import Page, check_limit, make_cursor, page, read_cursor
from vmtune.storage.tables.core import AssignmentRow, ProfileRow

ASSIGNMENTS = Mapper(Assignment, AssignmentRow)


class AssignmentRepository:
    """The assignments, by number."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self, target: Target, key: str, profile: str, intent: Intent | None = None
    ) -> Assignment:
        """Assign a profile.

        :param key: the VM's UUID, the label selector or the host's name, stored in one
            spelling; empty for the default.
        :param intent: instead of the profile's; None for that.
        :raise InvalidInput: *key* cannot name such a target.
        :raise DuplicateName: that target has an assignment already.
        :raise TiedAssignments: a VM could match this selector and one of another profile.
        :raise NotFound: there is no such profile.
        """
        key = _canonical(target, key)
        with self._database.write() as session:
            known = session.get(ProfileRow, profile)
            if known is None or known.deleted_at is not None:
                raise NotFound(
                    f"there is no profile named {profile[:70]}",
                    field="profile",
                    remedy="vmtune profile list shows them",
                )
            self._check_free(session, target, key, profile)
            stored = {"target": target, "key": key, "profile": profile, "intent": intent}
            row = AssignmentRow(**ASSIGNMENTS.stored(stored), created_at=self._database.now())
            session.add(row)
            session.flush()
            return ASSIGNMENTS.record(row)

    def list(
        self, profile: str | None = None, after: str | None = None, limit: int = 100
    ) -> Page[Assignment]:
        """Assignments in the order in which they were made."""
        query = select(AssignmentRow).order_by(AssignmentRow.id).limit(check_limit(limit) + 1)
        if profile is not None:
            query = query.where(AssignmentRow.profile == profile)
        if after is not None:
            (number,) = read_cursor("assignments", after, int)
            query = query.where(AssignmentRow.id > number)
        with self._database.read() as session:
            rows = session.scalars(query).all()
            return page(
                rows, limit, ASSIGNMENTS.record, lambda row: make_cursor("assignments", row.id)
            )

    def all(self) -> tuple[Assignment, ...]:
        """Every assignment, for vmtune.model.profile.explain."""
        with self._database.read() as session:
            rows = session.scalars(select(AssignmentRow).order_by(AssignmentRow.id))
            return tuple(map(ASSIGNMENTS.record, rows))

    def get(self, id: int) -> Assignment:
        """The assignment of that number.

        :raise NotFound: there is none.
        """
        with self._database.read() as session:
            return ASSIGNMENTS.record(_row(session, id))

    def remove(self, id: int) -> None:
        """Remove an assignment. Its number is not given again.

        :raise NotFound: there is none.
        """
        with self._database.write() as session:
            session.delete(_row(session, id))

    @staticmethod
    def _check_free(session: Session, target: Target, key: str, profile: str) -> None:
        same_target = select(AssignmentRow).where(AssignmentRow.target == target)
        for row in session.scalars(same_target.order_by(AssignmentRow.id)):
            other = ASSIGNMENTS.record(row)
            if row.key == key:
                raise DuplicateName(
                    f"{describe(other)} exists already (number {row.id}, profile {row.profile})",
                    field="key",
                    remedy="remove that one first",
                )
            if target is not Target.SELECTOR or row.profile == profile:
                continue
            if could_tie(row.key, key):
                raise TiedAssignments(
                    f"a VM could match both {key} and {describe(other)} (number {row.id}), "
                    f"which chooses {row.profile}",
                    field="key",
                    code="tied_assignments",
                    remedy="give one selector a label that excludes the other, such as "
                    "another value of the same key",
                )


def _canonical(target: Target, key: str) -> str:
    """*key* in the one spelling in which it is stored."""
    match target:
        case Target.VM:
            try:
                return str(UUID(key))
            except ValueError:
                raise InvalidInput(
                    f"{key[:70]!r} is not a UUID",
                    field="key",
                    remedy="vmtune vm list shows the UUIDs",
                ) from None
        case Target.SELECTOR:
            labels = parse_selector(key)
            return ",".join(f"{name}={labels[name]}" for name in sorted(labels))
        case Target.HOST:
            return check_name(key, "key")
        case Target.DEFAULT:
            if key:
                raise InvalidInput("the default has no key", field="key", remedy="leave it out")
            return key


def _row(session: Session, id: int) -> AssignmentRow:
    row = session.get(AssignmentRow, id)
    if row is None:
        raise NotFound(
            f"there is no assignment number {id}",
            field="assignment",
            remedy="vmtune assign list shows them",
        )
    return row
