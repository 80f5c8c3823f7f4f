"""The tuning state of each VM, as last seen: one small row for each VM, so that all can be
listed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from sqlalchemy import Table, bindparam, case, select
from sqlalchemy.orm import Session

from vmtune.model.plan.outcome import Application, ApplicationState, Outcome
from vmtune.model.plan.tuning_state import Tuning, TuningState, differing, tuning_state
from vmtune.storage.database import Database
from vmtune.storage.mapping import Mapper, converter
from vmtune.storage.tables.core import ApplicationRow, OperationRow, TuningRow

TUNINGS = Mapper(Tuning, TuningRow)
_AT_ONCE = 500
"""VMs that one query asks for: databases bound the parameters of one."""
_TABLE = cast(Table, TuningRow.__table__)
_INSERT = _TABLE.insert()
_UPDATE = (
    _TABLE.update()
    .where(_TABLE.c.vm == bindparam("its_vm", type_=_TABLE.c.vm.type))
    .values(
        {
            column: bindparam(f"its_{column.name}", type_=column.type)
            for column in _TABLE.columns
            if column.name not in ("vm", "since")
        }
        | {
            _TABLE.c.since: case(
                (
                    _TABLE.c.state == bindparam("its_state", type_=_TABLE.c.state.type),
                    _TABLE.c.since,
                ),
                else_=bindparam("its_since", type_=_TABLE.c.since.type),
            )
        }
    )
)
"""Of one that is there: *since* is kept where the state is as it was."""
_Columns = dict[str, Any]  # any: a stored value
_OUTCOMES = converter(tuple[Outcome, ...])


@dataclass(frozen=True, slots=True)
class Seen:
    """A VM's tuning state as just read; see :class:`Tuning`."""

    vm: UUID
    profile: str
    revision: int
    application: UUID | None
    outcomes: tuple[Outcome, ...]


class TuningRepository:
    """The tunings, by VM."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> dict[UUID, Tuning]:
        """Every VM's that has one."""
        with self._database.read() as session:
            rows = session.execute(select(*TuningRow.__table__.columns))
            return {row.vm: TUNINGS.record(row) for row in rows}

    def of(self, vms: Collection[UUID]) -> dict[UUID, Tuning]:
        """Those of *vms* that have one."""
        asked = sorted(vms)
        found: dict[UUID, Tuning] = {}
        with self._database.read() as session:
            for begin in range(0, len(asked), _AT_ONCE):
                part = TuningRow.vm.in_(asked[begin : begin + _AT_ONCE])
                rows = session.execute(select(*TuningRow.__table__.columns).where(part))
                found |= {row.vm: TUNINGS.record(row) for row in rows}
        return found

    def get(self, vm: UUID) -> Tuning | None:
        """A VM's state; None if it was never tuned or checked."""
        with self._database.read() as session:
            row = session.get(TuningRow, vm)
            return TUNINGS.record(row) if row is not None else None

    def note(
        self,
        vm: UUID,
        profile: str,
        revision: int,
        application: UUID | None,
        outcomes: Sequence[Outcome],
    ) -> bool:
        """Store a verification's result; nothing if the VM's current application has changed since.
        :return: whether the VM's state has changed.
        """
        seen = Seen(vm, profile, revision, application, tuple(outcomes))
        with self._database.write() as session:
            return bool(_note(session, seen, self._database.now()))

    def note_all(self, seen: Sequence[Seen]) -> dict[UUID, bool]:
        """Store a scan's results, but none of a VM with an open operation.
        :return: by stored VM, whether its state has changed.
        """
        with self._database.write(durable=False) as session:
            now = self._database.now()
            query = select(OperationRow.vm).where(OperationRow.vm.in_([one.vm for one in seen]))
            busy = frozenset(session.scalars(query))
            noted = {one.vm: _note(session, one, now) for one in seen if one.vm not in busy}
            return {vm: changed for vm, changed in noted.items() if changed is not None}

    def forget(self, vm: UUID) -> bool:
        """Store that a VM has no wanted values any more.
        :return: whether it had.
        """
        with self._database.write() as session:
            return _forget(session, vm)

    def forget_all(self, vms: Collection[UUID]) -> tuple[UUID, ...]:
        """Likewise of some VMs.

        :return: those of which something was.
        """
        query = select(TuningRow.vm).where(TuningRow.vm.in_(vms))
        with self._database.read() as session:
            known = session.scalars(query).all()
        if not known:
            return ()
        with self._database.write(durable=False) as session:
            return tuple(vm for vm in known if _forget(session, vm))


def _note(session: Session, seen: Seen, now: datetime) -> bool | None:
    """Whether its state has changed; None if its current application has changed since."""
    newest = standing(session, seen.vm)
    if seen.application != (newest.id if newest is not None else None):
        return None
    before = session.get(TuningRow, seen.vm)
    was = (before.state, before.differing) if before is not None else None
    row = _row(seen.vm, seen.profile, seen.revision, seen.application, seen.outcomes, now)
    changed = was != (row["state"], row["differing"])
    _put(session, row)
    return changed


def _forget(session: Session, vm: UUID) -> bool:
    row = session.get(TuningRow, vm)
    if row is None or standing(session, vm) is not None:
        return False
    session.delete(row)
    return True


def _put(session: Session, row: _Columns) -> None:
    """Store a VM's state; *since* is kept if the state is unchanged."""
    connection = session.connection()  # past the ORM, which takes three times as long
    values = {f"its_{name}": value for name, value in row.items()}
    if not connection.execute(_UPDATE, values).rowcount:
        connection.execute(_INSERT, row)


def standing(session: Session, vm: UUID) -> ApplicationRow | None:
    """The newest application of *vm* that is applied and not reverted."""
    return session.scalar(
        select(ApplicationRow)
        .where(ApplicationRow.vm == vm, ApplicationRow.state == ApplicationState.APPLIED)
        .order_by(ApplicationRow.number.desc())
        .limit(1)
    )


def note_end(session: Session, ended: Application, before: ApplicationState, now: datetime) -> None:
    """Store a VM's state after an application or a revert has ended.
    :param before: the application's previous state.
    """
    if ended.state is ApplicationState.APPLIED:
        if before is not ApplicationState.REVERTING:  # a revert that was refused changed nothing
            _put(session, _of(ended, now))
        return
    if ended.state is ApplicationState.UNKNOWN:
        _put(session, _of(ended, now) | {"state": TuningState.UNKNOWN})
        return
    noted_before = session.get(TuningRow, ended.vm)
    if noted_before is None or noted_before.application != ended.id:
        return  # it failed and was restored: the VM's state is as before
    session.delete(noted_before)
    session.flush()
    earlier = standing(session, ended.vm)
    if earlier is not None:
        _put(session, _of_row(earlier, earlier.ended_at or now))


def _of(application: Application, as_of: datetime) -> _Columns:
    its = application
    return _row(its.vm, its.profile, its.revision, its.id, its.outcomes, as_of)


def _of_row(row: ApplicationRow, as_of: datetime) -> _Columns:
    outcomes = _OUTCOMES(row.outcomes)
    return _row(row.vm, row.profile, row.revision, row.id, outcomes, as_of)


def _row(
    vm: UUID,
    profile: str,
    revision: int,
    application: UUID | None,
    outcomes: Sequence[Outcome],
    as_of: datetime,
) -> _Columns:
    return {
        "vm": vm,
        "state": tuning_state(outcomes, application is not None),
        "profile": profile,
        "revision": revision,
        "application": application,
        "differing": list(differing(outcomes)),
        "as_of": as_of,
        "since": as_of,
    }
