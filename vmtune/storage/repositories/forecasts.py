"""Forecasts, kept with their migrations and compared with what happened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from vmtune.errors import NotFound
from vmtune.forecast.held import MODEL, Figures, Happened, HeldForecast, KeptForecast
from vmtune.model.access.scopes import EVERYTHING, Reach
from vmtune.model.migration.forecast_basis import Basis
from vmtune.model.migration.record import MigrationState
from vmtune.storage.database import Database, rows_met
from vmtune.storage.mapping import Mapper, converter
from vmtune.storage.repositories.reach import within
from vmtune.storage.tables.core import MigrationRow
from vmtune.storage.tables.forecasts import ForecastRow

_MAP = Mapper(KeptForecast, ForecastRow)
_FIGURES, _HAPPENED = converter(Figures), converter(Happened)
_GONE_AT_ONCE = 1000


class ForecastRepository:
    """The forecasts of migrations, by the migration's UUID."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep(self, migration: UUID, forecast: KeptForecast) -> bool:
        """Store a migration's forecast; False where there is one of that basis already, which
        stays.

        :raise NotFound: there is no such migration.
        """
        with self._database.write(durable=False) as session:
            number = _number(session, migration)
            known = select(ForecastRow.number).where(
                ForecastRow.migration == number, ForecastRow.basis == forecast.basis.value
            )
            if session.scalar(known) is not None:
                return False
            session.add(_MAP.row(forecast, migration=number))
            return True

    def of(self, migration: UUID) -> tuple[KeptForecast, ...]:
        """A migration's forecasts, in the order in which they were made.

        :raise NotFound: there is no such migration.
        """
        with self._database.read() as session:
            query = select(ForecastRow).where(ForecastRow.migration == _number(session, migration))
            rows = session.scalars(query.order_by(ForecastRow.number))
            return tuple(map(_MAP.record, rows))

    def settle(
        self, migration: UUID, hold: Callable[[Figures], Happened], at: datetime
    ) -> tuple[tuple[KeptForecast, Happened], ...]:
        """Note what came of a migration's forecasts; those that are settled stay as they are.

        :return: those that were not settled before.
        :raise NotFound: there is no such migration.
        """
        settled = []
        with self._database.write(durable=False) as session:
            number = _number(session, migration)
            query = select(ForecastRow).where(
                ForecastRow.migration == number, ForecastRow.held_at.is_(None)
            )
            for row in session.scalars(query.order_by(ForecastRow.number)).all():
                forecast = _MAP.record(row)
                happened = hold(forecast.figures)
                _MAP.change(row, {"happened": happened, "held_at": at})
                settled.append((forecast, happened))
        return tuple(settled)

    def left(self, limit: int) -> tuple[UUID, ...]:
        """Migrations that have ended and have forecasts that are not settled, the oldest first."""
        ended = [state.value for state in MigrationState if state.ended]
        query = (
            select(MigrationRow.id)
            .join(ForecastRow, MigrationRow.number == ForecastRow.migration)
            .where(
                ForecastRow.held_at.is_(None),
                MigrationRow.state.in_(ended),
                MigrationRow.state != MigrationState.UNKNOWN.value,
            )
            .group_by(MigrationRow.id, MigrationRow.number)
            .order_by(MigrationRow.number)
            .limit(limit)
        )
        with self._database.read() as session:
            return tuple(session.scalars(query))

    def held(
        self,
        profile: str | None = None,
        host: str | None = None,
        since: datetime | None = None,
        basis: Basis | None = None,
        limit: int = 5000,
        reach: Reach = EVERYTHING,
    ) -> tuple[HeldForecast, ...]:
        """Forecasts whose migration has ended, the latest first, at most *limit*.

        :param profile: empty for migrations without one; None for all.
        :param host: source or destination.
        """
        query = (
            select(
                MigrationRow.id,
                MigrationRow.source,
                MigrationRow.destination,
                MigrationRow.profile,
                ForecastRow.basis,
                ForecastRow.figures,
                ForecastRow.happened,
                ForecastRow.held_at,
            )
            .join(MigrationRow, MigrationRow.number == ForecastRow.migration)
            .where(ForecastRow.held_at.is_not(None))
            .where(*within(reach, (MigrationRow.source, MigrationRow.destination), MigrationRow.vm))
            .order_by(ForecastRow.held_at.desc(), ForecastRow.number.desc())
            .limit(limit)
        )
        if profile is not None:
            query = query.where(MigrationRow.profile == profile)
        if host is not None:
            query = query.where((MigrationRow.source == host) | (MigrationRow.destination == host))
        if since is not None:
            query = query.where(ForecastRow.held_at >= since)
        if basis is not None:
            query = query.where(ForecastRow.basis == basis.value)
        with self._database.read() as session:
            return tuple(
                HeldForecast(
                    row.id,
                    row.source,
                    row.destination,
                    row.profile,
                    Basis(row.basis),
                    _FIGURES(row.figures),
                    _HAPPENED(row.happened),
                    row.held_at,
                )
                for row in session.execute(query)
            )

    def to_learn_from(self, limit: int) -> tuple[tuple[UUID, Mapping[str, Any], Happened], ...]:
        """Of forecasts that were made before their migrations, by the present model: the VM, the
        inputs and what happened, the latest first."""
        query = (
            select(MigrationRow.vm, ForecastRow.inputs, ForecastRow.happened)
            .join(MigrationRow, MigrationRow.number == ForecastRow.migration)
            .where(
                ForecastRow.held_at.is_not(None),
                ForecastRow.basis == Basis.BEFORE.value,
                ForecastRow.model == MODEL,
            )
            .order_by(ForecastRow.held_at.desc(), ForecastRow.number.desc())
            .limit(limit)
        )
        with self._database.read() as session:
            return tuple(
                (row.vm, row.inputs, _HAPPENED(row.happened)) for row in session.execute(query)
            )

    def old(self, before: datetime) -> int:
        """How many would be deleted."""
        query = select(func.count()).select_from(ForecastRow).where(ForecastRow.held_at < before)
        with self._database.read() as session:
            return session.scalar(query) or 0

    def drop(self, before: datetime) -> int:
        """Delete some that were held before.

        :return: how many; 0 once none is left.
        """
        old = select(ForecastRow.number).where(ForecastRow.held_at < before).limit(_GONE_AT_ONCE)
        with self._database.write(durable=False) as session:
            return rows_met(session, delete(ForecastRow).where(ForecastRow.number.in_(old)))


def _number(session: Session, migration: UUID) -> int:
    number = session.scalar(select(MigrationRow.number).where(MigrationRow.id == migration))
    if number is None:
        raise NotFound(f"there is no migration {migration}", field="migration")
    return number
