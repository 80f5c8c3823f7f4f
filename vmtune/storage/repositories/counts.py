"""How many of what there are right now, for ``/metrics``: a handful of counts over small tables
and indices, however long the history is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.trend.change import Triage
from vmtune.model.cluster import ServiceState
from vmtune.model.evacuation.evacuation import EvacuationState
from vmtune.model.migration.record import MigrationState
from vmtune.model.plan.outcome import ApplicationState
from vmtune.model.plan.tuning_state import TuningState
from vmtune.model.service_metrics import (
    DRIFT,
    OPEN_APPLICATIONS,
    OPEN_EVACUATIONS,
    OPEN_MIGRATIONS,
)
from vmtune.storage.database import Database
from vmtune.storage.repositories.known_vms import counts_by_tuning
from vmtune.storage.tables.cluster import OrderRow, ServiceRow
from vmtune.storage.tables.core import ApplicationRow, HostRow, MigrationRow, RunRow
from vmtune.storage.tables.evacuations import EvacuationRow, SlotRow
from vmtune.storage.tables.retention import DriftScanRow
from vmtune.storage.tables.trends import FoundChangeRow

_S = TypeVar("_S", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Tally:
    """What the database has of all services.

    :param migrations: those that have not ended or whose end is unknown, by state; likewise
        *applications*; *evacuations* only running ones.
    :param waiting: how many migrations wait for a slot; *runs* for theirs; *orders* are
        jobs that wait for another service to begin them.
    :param vms: every VM that was ever seen, by its last tuning state.
    :param drift: sums over the last scans of all hosts, by
        :data:`vmtune.model.service_metrics.DRIFT`.
    :param oldest_scan: time of the oldest of all hosts' last scans.
    :param untriaged: found changes for the worse that nobody has triaged.
    :param hosts: by the service that manages them; an empty name for those without one.
    """

    migrations: Mapping[MigrationState, int]
    applications: Mapping[ApplicationState, int]
    evacuations: Mapping[EvacuationState, int]
    waiting: int
    runs: int
    orders: int
    vms: Mapping[TuningState, int]
    drift: Mapping[str, int]
    oldest_scan: datetime | None
    hosts: Mapping[str, int]
    services: Mapping[ServiceState, int]
    untriaged: int


class Tallies:
    """Counts all of it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def now(self) -> Tally:
        """The present counts."""
        with self._database.read() as session:
            hosts = select(HostRow.owner, func.count()).group_by(HostRow.owner)
            return Tally(
                _by_state(session, MigrationRow.state, OPEN_MIGRATIONS),
                _by_state(session, ApplicationRow.state, OPEN_APPLICATIONS),
                _by_state(session, EvacuationRow.state, OPEN_EVACUATIONS),
                _count(session, SlotRow, SlotRow.running.is_(False)),
                _count(session, RunRow, RunRow.state == RunState.QUEUED),
                _count(session, OrderRow),
                counts_by_tuning(session, ()),
                *_drift(session),
                {owner: number for owner, number in session.execute(hosts)},
                _by_state(session, ServiceRow.state, tuple(ServiceState)),
                _count(
                    session,
                    FoundChangeRow,
                    FoundChangeRow.triage == Triage.OPEN,
                    FoundChangeRow.worse.is_(True),
                ),
            )


def _by_state(
    session: Session, column: InstrumentedAttribute[str], states: Sequence[_S]
) -> Mapping[_S, int]:
    """The number of rows in each of *states*; other rows are not read."""
    query = select(column, func.count()).where(column.in_(states)).group_by(column)
    found = {state: number for state, number in session.execute(query)}
    return {state: found.get(state, 0) for state in states}


def _count(session: Session, table: type[object], *conditions: ColumnElement[bool]) -> int:
    query = select(func.count()).select_from(table).where(*conditions)
    return session.scalar(query) or 0


def _drift(session: Session) -> tuple[Mapping[str, int], datetime | None]:
    scan = DriftScanRow
    counted = (
        scan.drifted,
        scan.checked - scan.drifted,
        scan.without_profile,
        scan.skipped,
        scan.failed,
    )
    query = select(func.min(scan.ended_at), *map(func.sum, counted))
    oldest, *found = session.execute(query.where(scan.ended_at.is_not(None))).one()
    return {name: int(count or 0) for name, count in zip(DRIFT, found, strict=True)}, oldest
