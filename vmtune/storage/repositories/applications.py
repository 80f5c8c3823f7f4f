"""Applications: values set on a VM, the journal, and the outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import cast
from uuid import UUID, uuid4

from sqlalchemy import Table, bindparam, select
from sqlalchemy.orm import Session

from vmtune.errors import Conflict, NotFound, Problem
from vmtune.model.access.scopes import EVERYTHING, Reach
from vmtune.model.plan.changes import Change
from vmtune.model.plan.outcome import Application, ApplicationState, Outcome
from vmtune.model.tunables.tunable import Value
from vmtune.storage import auditing, claims
from vmtune.storage.database import Database
from vmtune.storage.mapping import Mapper
from vmtune.storage.paging import Page, check_limit, make_cursor, page, read_cursor
from vmtune.storage.repositories import operations
from vmtune.storage.repositories import tuning_states as tunings
from vmtune.storage.repositories.operations import Operation
from vmtune.storage.repositories.reach import within
from vmtune.storage.tables.core import ApplicationRow

APPLICATIONS = Mapper(Application, ApplicationRow)
_TABLE = cast(Table, ApplicationRow.__table__)
_INSERT = _TABLE.insert()
_IS_IT = _TABLE.c.id == bindparam("its_id", type_=_TABLE.c.id.type)
_BY_ID = select(*APPLICATIONS.selected).where(_IS_IT)
_ENDS_WITH = ("state", "outcomes", "problems", "ended_at")
"""What changes of one that ends."""
_UPDATE = _TABLE.update().where(_IS_IT)
_S = ApplicationState
TRANSITIONS: Mapping[ApplicationState, frozenset[ApplicationState]] = {
    _S.INTENDED: frozenset({_S.APPLIED, _S.FAILED, _S.UNKNOWN}),
    _S.APPLIED: frozenset({_S.REVERTING}),
    _S.FAILED: frozenset({_S.REVERTING}),
    # A revert that was refused before it changed anything leaves it applied.
    _S.REVERTING: frozenset({_S.REVERTED, _S.APPLIED, _S.FAILED, _S.UNKNOWN}),
    _S.UNKNOWN: frozenset({_S.REVERTING, _S.APPLIED, _S.FAILED, _S.REVERTED}),
    _S.REVERTED: frozenset(),
}
"""Which state may follow which. Any state may be recorded again: steps can run twice."""
assert set(TRANSITIONS) == set(ApplicationState), "a state without its followers"


class ApplicationRepository:
    """The applications, by UUID; lists give the newest first."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(
        self,
        vm: UUID,
        host: str,
        profile: str,
        revision: int,
        wanted: Mapping[str, Value],
        best_effort: bool,
        journal: Sequence[Change],
        ends_with_machine: bool = False,
    ) -> Application:
        """Record the intent, with what undoes it, before anything is set. Takes the VM.

        :param ends_with_machine: all that is to be set is gone when this machine loses its power.
            Then its record may be lost with it, and a database of this machine need not wait for
            the disk.
        :raise OperationInProgress: the VM has an open application or migration.
        """
        with self._database.write(durable=self._waits(ends_with_machine)) as session:
            now = self._database.now()
            begun = Application(
                id=uuid4(),
                vm=vm,
                host=host,
                profile=profile,
                revision=revision,
                wanted=wanted,
                state=ApplicationState.INTENDED,
                best_effort=best_effort,
                journal=tuple(journal),
                outcomes=(),
                problems=(),
                created_at=now,
            )
            service = self._database.service
            operations.take(session, vm, Operation.APPLICATION, begun.id, now, service)
            # Past the ORM, which takes three times as long.
            columns = APPLICATIONS.columns(begun)
            session.connection().execute(_INSERT, columns)
            row = SimpleNamespace(**columns)
            auditing.note_made(session, ApplicationRow, row)
            claims.note_made(session, ApplicationRow, row)
            return begun

    def begin_revert(self, id: UUID) -> Application:
        """Record the intent to revert, before anything is restored. Takes the VM.

        :raise NotFound: there is no such application.
        :raise Conflict: it is open, or reverted already.
        :raise OperationInProgress: the VM has an open application or migration.
        """
        with self._database.write() as session:
            row = _row(session, id)
            if _S(row.state).open or _S.REVERTING not in TRANSITIONS[_S(row.state)]:
                raise _illegal(row, ApplicationState.REVERTING)
            now = self._database.now()
            operations.take(
                session, row.vm, Operation.APPLICATION, row.id, now, self._database.service
            )
            row.state, row.ended_at = ApplicationState.REVERTING, None
            session.flush()
            return APPLICATIONS.record(row)

    def finish(
        self,
        id: UUID,
        state: ApplicationState,
        outcomes: Sequence[Outcome] | None = None,
        problems: Sequence[Problem] | None = None,
        ends_with_machine: bool = False,
    ) -> Application:
        """Record how an application or its revert ended, and release the VM.

        Also settles an unknown one later.

        :param outcomes: None keeps the recorded ones; likewise *problems*.
        :param ends_with_machine: as for :meth:`begin`.
        :raise NotFound: there is no such application.
        :raise Conflict: *state* is not final, or cannot follow the present one.
        """
        with self._database.write(durable=self._waits(ends_with_machine)) as session:
            connection = session.connection()  # past the ORM, which takes three times as long
            row = connection.execute(_BY_ID, {"its_id": id}).first()
            if row is None:
                raise _missing(id)
            before = APPLICATIONS.record(row)
            if state.open or (state != before.state and state not in TRANSITIONS[before.state]):
                raise _illegal(before, state)
            now = self._database.now()
            ended = replace(
                before,
                state=state,
                outcomes=before.outcomes if outcomes is None else tuple(outcomes),
                problems=before.problems if problems is None else tuple(problems),
                ended_at=before.ended_at or now,
            )
            changed = {name: getattr(ended, name) for name in _ENDS_WITH}
            stored = APPLICATIONS.stored(changed)
            connection.execute(_UPDATE, {"its_id": id, **stored})
            auditing.note_altered(
                session, ApplicationRow, id, {"state": before.state}, {"state": state}
            )
            operations.release(session, ended.vm, id)
            tunings.note_end(session, ended, before.state, now)
            return ended

    def _waits(self, ends_with_machine: bool) -> bool:
        """Whether to wait for the disk."""
        return not (ends_with_machine and self._database.is_local)

    def get(self, id: UUID) -> Application:
        """The application of that UUID.

        :raise NotFound: there is none.
        """
        with self._database.read() as session:
            return APPLICATIONS.record(_row(session, id))

    def list(
        self,
        vm: UUID | None = None,
        host: str | None = None,
        state: ApplicationState | None = None,
        after: str | None = None,
        limit: int = 100,
        reach: Reach = EVERYTHING,
    ) -> Page[Application]:
        """Applications, newest first."""
        query = select(ApplicationRow).order_by(ApplicationRow.number.desc())
        query = query.limit(check_limit(limit) + 1)
        query = query.where(*within(reach, (ApplicationRow.host,), ApplicationRow.vm))
        if vm is not None:
            query = query.where(ApplicationRow.vm == vm)
        if host is not None:
            query = query.where(ApplicationRow.host == host)
        if state is not None:
            query = query.where(ApplicationRow.state == state)
        if after is not None:
            (number,) = read_cursor("applications", after, int)
            query = query.where(ApplicationRow.number < number)
        with self._database.read() as session:
            rows = session.scalars(query).all()
            return page(
                rows,
                limit,
                APPLICATIONS.record,
                lambda row: make_cursor("applications", row.number),
            )

    def open(self) -> tuple[Application, ...]:
        """Those whose end is not recorded, oldest first: to be settled after a restart."""
        states = [state for state in ApplicationState if state.open]
        query = select(ApplicationRow).where(ApplicationRow.state.in_(states))
        with self._database.read() as session:
            rows = session.scalars(query.order_by(ApplicationRow.number))
            return tuple(map(APPLICATIONS.record, rows))

    def standing(self, vm: UUID) -> Application | None:
        """The newest application of *vm* that is applied and not reverted."""
        with self._database.read() as session:
            row = tunings.standing(session, vm)
            return APPLICATIONS.record(row) if row is not None else None


def _row(session: Session, id: UUID) -> ApplicationRow:
    row = session.scalar(select(ApplicationRow).where(ApplicationRow.id == id))
    if row is None:
        raise _missing(id)
    return row


def _missing(id: UUID) -> NotFound:
    return NotFound(f"there is no application {id}", field="application")


def _illegal(row: ApplicationRow | Application, state: ApplicationState) -> Conflict:
    return Conflict(
        f"application {row.id} is {row.state} and cannot become {state}",
        field="state",
        code="illegal_transition",
        remedy="read it again: it has changed in the meantime",
    )
