"""The queue of migrations: each one that has not ended has a row here, waiting or running.

Who may begin is decided here, in one transaction without concurrent writers: any number of services
can decide at any time, and no limit is exceeded.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from sqlalchemy import ColumnElement, func, select, update
from sqlalchemy.orm import Session

from vmtune.model.migration.admission import Limits, QueuePosition, Slot, admit, why_waiting
from vmtune.storage.database import Database
from vmtune.storage.mapping import Mapper
from vmtune.storage.tables.evacuations import SlotRow

_SLOTS = Mapper(Slot, SlotRow)
_HEADS = 64
"""This many of each source are considered, the next ones in order, and so many that copy disks: the
work grows with the hosts that wait, not with the migrations."""
_WAITS = SlotRow.running.is_(False)
_ORDER = (SlotRow.priority.desc(), SlotRow.number)


class SlotRepository:
    """The slots of all migrations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def admit(self, limits: Limits) -> tuple[UUID, ...]:
        """Let begin what may, and say which those are."""
        with self._database.read() as session:
            if session.scalar(select(SlotRow.number).where(_WAITS).limit(1)) is None:
                return ()
        with self._database.write() as session:
            waiting = _slots(session, SlotRow.number.in_(_heads()))
            admitted = admit(waiting, _slots(session, SlotRow.running.is_(True)), limits)
            if admitted:
                numbers = [slot.number for slot in admitted]
                session.execute(
                    update(SlotRow).where(SlotRow.number.in_(numbers)).values(running=True)
                )
            return tuple(slot.migration for slot in admitted)

    def running(self, among: Collection[UUID]) -> frozenset[UUID]:
        """Which of *among* have their slot; those without a row have no need of one."""
        query = select(SlotRow.migration).where(_WAITS, SlotRow.migration.in_(among))
        with self._database.read() as session:
            return frozenset(among) - frozenset(session.scalars(query))

    def positions(self, among: Collection[UUID], limits: Limits) -> Mapping[UUID, QueuePosition]:
        """The queue positions of those of *among* that wait."""
        if not among:
            return {}
        ranks = select(
            SlotRow.migration,
            (func.row_number().over(order_by=_ORDER) - 1).label("ahead"),
        ).where(_WAITS)
        ranked = ranks.subquery()
        with self._database.read() as session:
            mine = _slots(session, _WAITS, SlotRow.migration.in_(among))
            if not mine:
                return {}
            running = _slots(session, SlotRow.running.is_(True))
            query = select(ranked.c.migration, ranked.c.ahead)
            query = query.where(ranked.c.migration.in_([slot.migration for slot in mine]))
            ahead = {migration: count for migration, count in session.execute(query)}
        return {
            slot.migration: QueuePosition(ahead[slot.migration], why_waiting(slot, running, limits))
            for slot in mine
            if slot.migration in ahead
        }

    def hold(self, migrations: Collection[UUID], held: bool) -> None:
        """Hold queued migrations, or release them."""
        with self._database.write() as session:
            mine = SlotRow.migration.in_(migrations)
            session.execute(update(SlotRow).where(_WAITS, mine).values(held=held))

    def counts(self) -> tuple[int, int]:
        """How many wait, and how many run."""
        query = select(SlotRow.running, func.count()).group_by(SlotRow.running)
        with self._database.read() as session:
            found = {running: count for running, count in session.execute(query)}
        return found.get(False, 0), found.get(True, 0)


def take(session: Session, slot: Slot) -> None:
    """Give a migration that begins its row. The session must be a writing one."""
    session.add(_SLOTS.row(slot))


def redirect(session: Session, number: int, destination: str) -> None:
    """Note where a migration goes, which was not known. The session must be a writing one."""
    row = session.get(SlotRow, number)
    if row is not None:
        row.destination = destination


def note_copies(session: Session, number: int) -> None:
    """Note that a migration copies disks, which was not known. The session must be a writing
    one."""
    row = session.get(SlotRow, number)
    if row is not None:
        row.copies = True


def release(session: Session, number: int) -> None:
    """Free what a migration had, at its end. The session must be a writing one."""
    row = session.get(SlotRow, number)
    if row is not None:
        session.delete(row)


def _heads() -> ColumnElement[int]:
    """The numbers of those whose turn is next, of each source."""
    kinds = (SlotRow.source, SlotRow.copies)
    position = func.row_number().over(partition_by=kinds, order_by=_ORDER)
    ranked = select(SlotRow.number, position.label("position"))
    found = ranked.where(_WAITS, SlotRow.held.is_(False)).subquery()
    return select(found.c.number).where(found.c.position <= _HEADS).scalar_subquery()


def _slots(session: Session, *conditions: ColumnElement[bool]) -> Sequence[Slot]:
    return [_SLOTS.record(row) for row in session.scalars(select(SlotRow).where(*conditions))]
