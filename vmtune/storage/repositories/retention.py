"""Retention: thins and later deletes samples, deletes entries of the audit log, and forgets VMs
that are gone.

Each step is a short, idempotent transaction that two services may run at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, delete, func, select
from sqlalchemy.orm import Session

from vmtune.model.access.audit import Act, Cut, Outcome
from vmtune.model.migration.record import MigrationState, SamplesKept
from vmtune.model.retention import thin
from vmtune.storage import auditing
from vmtune.storage.database import Database, rows_met
from vmtune.storage.repositories.audit_log import newest_cut
from vmtune.storage.series.chunks import SAMPLES
from vmtune.storage.tables.access import AuditRow
from vmtune.storage.tables.core import (
    DiskChunkRow,
    MigrationRow,
    OperationRow,
    ReaperChunkRow,
    SampleChunkRow,
    TuningRow,
    VmRow,
)
from vmtune.storage.tables.retention import AuditCutRow, PeriodicTaskRow

_ENTRIES_AT_ONCE = 1000
_VMS_AT_ONCE = 200
_ENDED = [state.value for state in MigrationState if state.ended]


@dataclass(frozen=True, slots=True)
class Old:
    """How much there is that is old enough.

    :param samples: how many of how many *migrations*, and the room they take.
    """

    migrations: int
    samples: int
    bytes: int


class RetentionRepository:
    """What grows with time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin_task(self, name: str, every_s: float) -> bool:
        """Whether it is time for a periodic task, and this service does it: of several that ask,
        one gets yes. A time that lies ahead was noted before the clock was set back."""
        with self._database.write(durable=False) as session:
            now = self._database.now()
            row = session.get(PeriodicTaskRow, name)
            if row is not None and abs(now - row.begun_at) < timedelta(seconds=every_s):
                return False
            service = self._database.service
            session.merge(PeriodicTaskRow(name=name, service=service, begun_at=now))
            return True

    def to_thin(self, before: datetime, limit: int) -> tuple[int, ...]:
        """The numbers of migrations whose samples are to be thinned, oldest end first."""
        return self._numbers(_whole(before), limit)

    def to_drop(self, before: datetime, limit: int) -> tuple[int, ...]:
        """Likewise dropped."""
        return self._numbers(_there(before), limit)

    def old_samples(self, thin_before: datetime | None, drop_before: datetime | None) -> tuple[
        Old, Old
    ]:  # fmt: skip
        """How much would be thinned, and how much dropped."""
        with self._database.read() as session:
            dropped = _sum(session, _there(drop_before)) if drop_before else Old(0, 0, 0)
            if thin_before is None:
                return Old(0, 0, 0), dropped
            condition = _whole(thin_before)
            if drop_before is not None:
                condition &= MigrationRow.ended_at >= drop_before
            return _sum(session, condition), dropped

    def thin(self, number: int, stretch_s: int) -> int:
        """Thin the samples of a migration that has ended; 0 if another service has meanwhile.

        They are packed before the transaction, which only replaces them.
        :return: the number removed.
        """
        with self._database.read() as session:
            before = SAMPLES.count(session, number)
            kept = list(SAMPLES.of(number, thin(SAMPLES.each(session, number), stretch_s)))
        after = sum(chunk.rows for chunk in kept)
        with self._database.write(durable=False) as session:
            row = session.get(MigrationRow, number)
            if row is None or row.samples_kept != SamplesKept.WHOLE or row.state not in _ENDED:
                return 0
            if SAMPLES.count(session, number) != before:
                return 0  # it was settled meanwhile, with more samples
            row.samples_kept, row.samples_thinned_s = SamplesKept.THINNED, stretch_s
            if after < before:
                session.execute(delete(SampleChunkRow).where(SampleChunkRow.migration == number))
                session.add_all(kept)
        return before - after

    def drop(self, number: int) -> int:
        """Drop the samples of a migration that has ended, also of its disks, and its reaper's
        rounds.

        :return: how many samples those were.
        """
        with self._database.write(durable=False) as session:
            row = session.get(MigrationRow, number)
            if row is None or row.state not in _ENDED:
                return 0
            count = SAMPLES.count(session, number)
            for table in (SampleChunkRow, ReaperChunkRow, DiskChunkRow):
                session.execute(delete(table).where(table.migration == number))
            row.samples_kept = SamplesKept.DROPPED
            return count

    def old_entries(self, before: datetime) -> int:
        """How many entries of the audit log would be dropped."""
        with self._database.read() as session:
            return max(_last_before(session, before) - _first(session) + 1, 0)

    def cut_audit(self, before: datetime, act: Act) -> Cut | None:
        """Cut older entries, from the first one on, with an entry about it; :meth:`drop_entries`
        deletes them.

        Since clocks may be set back, the cut ends before the first entry that is not older.
        :param act: who cuts them.
        :return: None if there are none.
        """
        with self._database.write() as session:
            number = _last_before(session, before)
            first = newest_cut(session).number + 1
            row = session.get(AuditRow, number)
            if number < first or row is None:
                return None
            cut = Cut(number, row.hash)
            now = self._database.now()
            changes = (cut.change(first),)
            auditing.append(
                session, act, now, Outcome.CHANGED, f"audit {changes[0].key}", changes=changes
            )
            session.add(AuditCutRow(number=cut.number, hash=cut.hash, at=now))
            return cut

    def drop_entries(self) -> int:
        """Delete some of the entries that were cut.
        :return: how many; 0 once none is left.
        """
        with self._database.read() as session:
            if _first(session) > newest_cut(session).number:
                return 0
        with self._database.write(durable=False) as session:
            last = min(newest_cut(session).number, _first(session) + _ENTRIES_AT_ONCE - 1)
            return rows_met(session, delete(AuditRow).where(AuditRow.number <= last))

    def old_vms(self, before: datetime) -> int:
        """How many VMs would be dropped."""
        with self._database.read() as session:
            query = select(func.count()).select_from(VmRow).where(_gone(before))
            return session.scalar(query) or 0

    def drop_vms(self, before: datetime) -> int:
        """Drop some of the VMs that are gone, with their labels and tuning states. Records of what
        was done with them stay, and so do assignments to them.

        A VM is gone that was last seen before, on a host that was seen with others since: of a
        host that does not answer nothing is known. One that has an operation open stays.
        :return: how many; 0 once none is left.
        """
        with self._database.write(durable=False) as session:
            # One by one, so that the audit log has the labels that go.
            rows = session.scalars(select(VmRow).where(_gone(before)).limit(_VMS_AT_ONCE)).all()
            for row in rows:
                session.delete(row)
            named = [row.uuid for row in rows]
            session.execute(delete(TuningRow).where(TuningRow.vm.in_(named)))
            return len(rows)

    def _numbers(self, condition: ColumnElement[bool], limit: int) -> tuple[int, ...]:
        query = select(MigrationRow.number).where(condition)
        with self._database.read() as session:
            return tuple(session.scalars(query.order_by(MigrationRow.ended_at).limit(limit)))


def _whole(before: datetime) -> ColumnElement[bool]:
    return (MigrationRow.samples_kept == SamplesKept.WHOLE.value) & _ended(before)


def _there(before: datetime) -> ColumnElement[bool]:
    kept = (SamplesKept.WHOLE.value, SamplesKept.THINNED.value)
    return MigrationRow.samples_kept.in_(kept) & _ended(before)


def _ended(before: datetime) -> ColumnElement[bool]:
    return (MigrationRow.ended_at < before) & MigrationRow.state.in_(_ENDED)


def _gone(before: datetime) -> ColumnElement[bool]:
    answers = select(VmRow.host).where(VmRow.seen_at >= before)
    held = select(OperationRow.vm)
    return (VmRow.seen_at < before) & VmRow.host.in_(answers) & VmRow.uuid.not_in(held)


def _sum(session: Session, condition: ColumnElement[bool]) -> Old:
    query = select(
        func.count(MigrationRow.number.distinct()),
        func.coalesce(func.sum(SampleChunkRow.rows), 0),
        func.coalesce(func.sum(func.length(SampleChunkRow.packed)), 0),
    )
    query = query.select_from(MigrationRow).outerjoin(
        SampleChunkRow, SampleChunkRow.migration == MigrationRow.number
    )
    migrations, count, size = session.execute(query.where(condition)).one()
    return Old(int(migrations), int(count), int(size))


def _first(session: Session) -> int:
    """The number of the first entry; 1 if there is none."""
    return session.scalar(select(func.min(AuditRow.number))) or 1


def _last_before(session: Session, before: datetime) -> int:
    """The last entry before the first one that is not older; 0 if there is none."""
    young = select(AuditRow.number).where(AuditRow.at >= before)
    found = session.scalar(young.order_by(AuditRow.number).limit(1))
    if found is not None:
        return found - 1
    return session.scalar(select(func.max(AuditRow.number))) or 0
