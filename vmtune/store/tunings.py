"""How each VM stands, as it was last seen: one small row a VM, so that all can be listed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from vmtune.domain.outcome import ApplicationState, Outcome
from vmtune.domain.tuning import Tuning, TuningState, differing, tuning_state
from vmtune.store import codec
from vmtune.store.database import Database
from vmtune.store.schema import ApplicationRow, TuningRow


class TuningRepository:
    """The tunings, by VM."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> dict[UUID, Tuning]:
        """Every VM's that has one."""
        with self._database.read() as session:
            rows = session.execute(select(*TuningRow.__table__.columns))
            return {row.vm: _tuning(row) for row in rows}

    def get(self, vm: UUID) -> Tuning | None:
        """A VM's; None where nothing was ever applied to it or held against it."""
        with self._database.read() as session:
            row = session.get(TuningRow, vm)
            return _tuning(row) if row is not None else None

    def note(
        self,
        vm: UUID,
        profile: str,
        revision: int,
        application: UUID | None,
        outcomes: Sequence[Outcome],
    ) -> bool:
        """Note what a verification found; nothing where the VM's standing application is
        another one by now.

        :return: whether the VM stands otherwise than before.
        """
        with self._database.write() as session:
            newest = standing(session, vm)
            if application != (newest.id if newest is not None else None):
                return False
            before = session.get(TuningRow, vm)
            was = (before.state, before.differing) if before is not None else None
            row = _row(vm, profile, revision, application, outcomes, self._database.now())
            changed = was != (row.state, row.differing)
            session.merge(row)
            return changed

    def forget(self, vm: UUID) -> bool:
        """Note that nothing is wanted of a VM any more.

        :return: whether anything was.
        """
        with self._database.write() as session:
            row = session.get(TuningRow, vm)
            if row is None or standing(session, vm) is not None:
                return False
            session.delete(row)
            return True


def standing(session: Session, vm: UUID) -> ApplicationRow | None:
    """The newest application of *vm* that is applied and not reverted."""
    return session.scalar(
        select(ApplicationRow)
        .where(ApplicationRow.vm == vm, ApplicationRow.state == ApplicationState.APPLIED)
        .order_by(ApplicationRow.number.desc())
        .limit(1)
    )


def note_end(session: Session, row: ApplicationRow, before: str, now: datetime) -> None:
    """Note how a VM stands after an application of it, or a revert, has ended.

    :param before: the application's state until now.
    """
    vm, state = row.vm, ApplicationState(row.state)
    if state is ApplicationState.APPLIED:
        if before != ApplicationState.REVERTING:  # a revert that was refused changed nothing
            session.merge(_of(row, now))
        return
    if state is ApplicationState.UNKNOWN:
        noted = _of(row, now)
        noted.state = TuningState.UNKNOWN
        session.merge(noted)
        return
    noted_before = session.get(TuningRow, vm)
    if noted_before is None or noted_before.application != row.id:
        return  # it failed and was put back: the VM stands as it did
    session.delete(noted_before)
    session.flush()
    earlier = standing(session, vm)
    if earlier is not None:
        session.add(_of(earlier, earlier.ended_at or now))


def _of(row: ApplicationRow, as_of: datetime) -> TuningRow:
    outcomes = codec.outcomes(row.outcomes)
    return _row(row.vm, row.profile, row.revision, row.id, outcomes, as_of)


def _row(
    vm: UUID,
    profile: str,
    revision: int,
    application: UUID | None,
    outcomes: Sequence[Outcome],
    as_of: datetime,
) -> TuningRow:
    return TuningRow(
        vm=vm,
        state=tuning_state(outcomes, application is not None),
        profile=profile,
        revision=revision,
        application=application,
        differing=list(differing(outcomes)),
        as_of=as_of,
    )


def _tuning(row: TuningRow | Row[Any]) -> Tuning:  # any: the columns of the table
    """Of a row of the table, or of its columns alone."""
    return Tuning(
        row.vm,
        TuningState(row.state),
        row.profile,
        row.revision,
        row.application,
        tuple(row.differing),
        row.as_of,
    )
