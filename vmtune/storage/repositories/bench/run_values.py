"""Values of one metric, run by run: what a history needs of thousands of runs, and no more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from vmtune.bench.model.runs.run import RunState, Testbed
from vmtune.model.tunables.tunable import Value
from vmtune.storage.repositories.bench.run_rows import RunFilter, filtered
from vmtune.storage.tables.core import RunMetricRow, RunRow


@dataclass(frozen=True, slots=True)
class Measured:
    """A run's value of a metric, and its conditions.

    :param number: of the run; later ones have greater numbers.
    :param at: when it began.
    :param value: None for a run that did not succeed and lacks the metric.
    """

    number: int
    id: UUID
    at: datetime
    state: RunState
    host: str
    testbed: Testbed
    qemu: str
    profile: str
    values: Mapping[str, Value]
    fingerprint: str
    value: float | None


_UNSUCCESSFUL = (RunState.NOT_CONVERGED.value, RunState.FAILED.value)


def measured(
    session: Session, metric: str, wanted: RunFilter, up_to: int | None, limit: int
) -> tuple[Measured, ...]:
    """See :meth:`vmtune.storage.repositories.bench.runs.RunRepository.measured`."""
    columns: tuple[Any, ...] = (  # any: of each column's own kind
        *(RunRow.number, RunRow.id, RunRow.started_at, RunRow.created_at, RunRow.state),
        *(RunRow.host, RunRow.testbed, RunRow.qemu, RunRow.profile, RunRow.values),
        *(RunRow.fingerprint, RunMetricRow.value),
    )
    query = (
        select(*columns)
        .outerjoin(
            RunMetricRow, (RunMetricRow.run == RunRow.number) & (RunMetricRow.metric == metric)
        )
        .where(RunRow.campaign.is_(None) | (RunRow.block > 0))
        .where(RunMetricRow.value.is_not(None) | RunRow.state.in_(_UNSUCCESSFUL))
    )
    query = filtered(query, wanted).order_by(RunRow.number.desc()).limit(limit)
    if up_to is not None:
        query = query.where(RunRow.number <= up_to)
    return tuple(
        Measured(
            number=row.number,
            id=row.id,
            at=row.started_at or row.created_at,
            state=RunState(row.state),
            host=row.host,
            testbed=Testbed(row.testbed),
            qemu=row.qemu,
            profile=row.profile,
            values=row.values,
            fingerprint=row.fingerprint or "",
            value=row.value,
        )
        for row in session.execute(query)
    )
