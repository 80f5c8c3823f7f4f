"""Found changes of metrics over time, and schedules of campaigns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import func, select

from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.trend.change import FoundChange, Triage
from vmtune.bench.model.trend.scheduled import Schedule
from vmtune.errors import Conflict, NotFound
from vmtune.model.evacuation.evacuation import EvacuationState
from vmtune.model.migration.record import MigrationState
from vmtune.storage.database import Database
from vmtune.storage.mapping import Mapper
from vmtune.storage.tables.core import MigrationRow, RunRow
from vmtune.storage.tables.evacuations import EvacuationRow
from vmtune.storage.tables.trends import FoundChangeRow, ScheduleRow

_CHANGES = Mapper(FoundChange, FoundChangeRow)
_SCHEDULES = Mapper(Schedule, ScheduleRow)
_FOUND = ("run", "since", "kind", "text", "worse")
_UNDER_WAY = [state for state in MigrationState if not state.ended]
_EVACUATING = [state for state in EvacuationState if not state.ended]


class FoundChangeRepository:
    """Changes of metrics over time that were found, and what people made of them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, scenario: str, metric: str) -> tuple[FoundChange, ...]:
        """Those of a scenario's metric, oldest first."""
        query = select(FoundChangeRow).where(
            FoundChangeRow.scenario == scenario, FoundChangeRow.metric == metric
        )
        with self._database.read() as session:
            rows = session.scalars(query.order_by(FoundChangeRow.since, FoundChangeRow.id))
            return tuple(map(_CHANGES.record, rows))

    def list(self, triage: Collection[Triage], limit: int) -> tuple[FoundChange, ...]:
        """All of these triages, the latest change first."""
        query = select(FoundChangeRow)
        if triage:
            query = query.where(FoundChangeRow.triage.in_(triage))
        query = query.order_by(FoundChangeRow.since.desc(), FoundChangeRow.id).limit(limit)
        with self._database.read() as session:
            return tuple(map(_CHANGES.record, session.scalars(query)))

    def keep(self, change: FoundChange) -> None:
        """Store a change, or what is new of it: what somebody has decided meanwhile stays."""
        with self._database.write() as session:
            row, known = _CHANGES.row(change), session.get(FoundChangeRow, change.id)
            if known is None:
                session.add(row)
                return
            for name in _FOUND:
                setattr(known, name, getattr(row, name))

    def triage(self, id: UUID, triage: Triage, note: str, by: str) -> FoundChange:
        """Note what *by* decided.

        :raise NotFound: there is no such change.
        """
        with self._database.write() as session:
            row = session.get(FoundChangeRow, id)
            if row is None:
                raise NotFound(
                    f"there is no change {id}",
                    field="change",
                    remedy="`vmtune bench changes` lists them",
                )
            row.triage, row.note = triage.value, note
            row.triaged_by, row.triaged_at = by, self._database.now()
            return _CHANGES.record(row)

    def forget(self, ids: Sequence[UUID]) -> None:
        """Drop changes that are no longer found. Those that people triaged stay."""
        with self._database.write() as session:
            for id in ids:
                row = session.get(FoundChangeRow, id)
                if row is not None and row.triage == Triage.OPEN:
                    session.delete(row)

    def recent(self, since: int) -> tuple[tuple[str, ...], int]:
        """The scenarios that have ended runs with greater numbers than *since*, and the greatest
        number of all runs."""
        ended = [state for state in RunState if state.ended]
        query = select(RunRow.scenario).where(RunRow.number > since, RunRow.state.in_(ended))
        with self._database.read() as session:
            newest = session.scalar(select(func.max(RunRow.number))) or 0
            return tuple(session.scalars(query.distinct().order_by(RunRow.scenario))), newest


class ScheduleRepository:
    """Campaigns that run again and again, by name."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, schedule: Schedule) -> None:
        """Store a new schedule.

        :raise Conflict: there is one of that name.
        """
        with self._database.write() as session:
            if session.get(ScheduleRow, schedule.name) is not None:
                raise Conflict(
                    f"there is a schedule named {schedule.name} already",
                    field="name",
                    code="exists",
                    remedy=f"remove it first: `vmtune bench schedule remove {schedule.name}`",
                )
            session.add(_SCHEDULES.row(schedule))

    def list(self) -> tuple[Schedule, ...]:
        """All, by name."""
        with self._database.read() as session:
            rows = session.scalars(select(ScheduleRow).order_by(ScheduleRow.name))
            return tuple(map(_SCHEDULES.record, rows))

    def get(self, name: str) -> Schedule:
        """:raise NotFound: there is none of that name."""
        with self._database.read() as session:
            row = session.get(ScheduleRow, name)
            if row is None:
                raise _none(name)
            return _SCHEDULES.record(row)

    def remove(self, name: str) -> None:
        """:raise NotFound: there is none of that name."""
        with self._database.write() as session:
            row = session.get(ScheduleRow, name)
            if row is None:
                raise _none(name)
            session.delete(row)

    def note(
        self, name: str, *, waits: str, next_at: datetime | None = None, last: UUID | None = None
    ) -> None:
        """Note why one waits, or what it started; nothing where it was removed meanwhile."""
        with self._database.write(durable=False) as session:
            row = session.get(ScheduleRow, name)
            if row is None:
                return
            row.waits = waits
            if next_at is not None:
                row.next_at = next_at
            if last is not None:
                row.last = last

    def started(self, campaign: UUID) -> bool:
        """Whether a schedule started this campaign last."""
        query = select(func.count()).select_from(ScheduleRow).where(ScheduleRow.last == campaign)
        with self._database.read() as session:
            return bool(session.scalar(query))

    def in_the_way(self) -> str:
        """What people ordered that no scheduled campaign may run beside; empty for nothing."""
        counted = (
            (MigrationRow, MigrationRow.state.in_(_UNDER_WAY), "migration"),
            (EvacuationRow, EvacuationRow.state.in_(_EVACUATING), "evacuation"),
        )
        found = []
        with self._database.read() as session:
            for table, under_way, name in counted:
                query = select(func.count()).select_from(table).where(under_way)
                count = session.scalar(query) or 0
                if count:
                    found.append(f"{count} {name}{'s' if count > 1 else ''} under way")
        return ", ".join(found)


def _none(name: str) -> NotFound:
    return NotFound(
        f"there is no schedule named {name[:70]}",
        field="schedule",
        remedy="`vmtune bench schedule list` lists them",
    )
