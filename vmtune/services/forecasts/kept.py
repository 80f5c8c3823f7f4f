"""Keeps forecasts with their migrations, and holds them against what happened.

Nothing of it holds up a migration: what cannot be stored is logged and left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import structlog

from vmtune.errors import VmtuneError
from vmtune.forecast.errors import USUAL
from vmtune.forecast.held import Figures, KeptForecast, hold
from vmtune.forecast.outlook import Outlook
from vmtune.forecast.path import Throughput
from vmtune.forecast.probe import DirtyProbe
from vmtune.forecast.prospect import Prospect
from vmtune.forecast.ranges import Range
from vmtune.model.host.dirty_rates import DirtyPoint
from vmtune.model.migration.forecast_basis import Basis, Figure
from vmtune.model.migration.record import Migration, MigrationState, Sample
from vmtune.services.forecasts.learning import Computed
from vmtune.services.metrics import telemetry

if TYPE_CHECKING:
    from vmtune.storage import Store

log = structlog.get_logger(__name__)

CORRECTED_BY = "corrected_by"
_LEFT_AT_ONCE = 100


def by_probe(
    prospect: Prospect,
    throughput: Throughput,
    probe: DirtyProbe,
    now: datetime,
    computed: Computed | None = None,
    corrected_by: Mapping[Figure, int] | None = None,
) -> KeptForecast:
    """What was expected before a migration, by a measurement of its guest.

    :param corrected_by: of each figure that is corrected, by how many records.
    """
    inputs: dict[str, Any] = {  # any: JSON
        "probe_age_s": round((now - probe.measured_at).total_seconds(), 1),
        "memory_bytes": probe.memory_bytes,
        "used_bytes": probe.used_bytes,
        "held_bytes": probe.held_bytes,
        "contents": None if probe.contents is None else asdict(probe.contents),
        "changed": None if probe.changed is None else asdict(probe.changed),
        "dirtied": [[round(p.after_ms), round(p.dirty_bytes)] for p in probe.points],
        "throughput_bytes_per_s": _rounded(throughput.bytes_per_s),
        "switchover_bytes_per_s": _rounded(throughput.switchover_bytes_per_s),
        "throughput_records": throughput.records,
    }
    if computed is not None:
        inputs |= computed.document()
    if corrected_by:
        inputs[CORRECTED_BY] = {figure.value: count for figure, count in corrected_by.items()}
    figures = Figures(prospect.ends, prospect.total_ms, prospect.silence_ms, prospect.sent_bytes)
    return KeptForecast(Basis.BEFORE, now, figures, inputs)


def by_outlook(sample: Sample, outlook: Outlook, now: datetime) -> KeptForecast | None:
    """What was expected of a running migration; None while it cannot be told whether it ends. The
    silence has the errors of forecasts that are made before."""
    if outlook.ends is None:
        return None
    inputs: dict[str, Any] = {  # any: JSON
        "at_ms": sample.at_ms,
        "iteration": sample.iteration,
        "remaining_bytes": sample.remaining_bytes,
        "throughput_bytes_per_s": sample.throughput_bytes_per_s,
    }
    left_ms, silence_ms = outlook.left_ms, outlook.silence_ms
    figures = Figures(outlook.ends)
    if outlook.ends and left_ms is not None and silence_ms is not None:
        bounds = outlook.least_left_ms or left_ms, outlook.most_left_ms or left_ms
        total = Range.around(
            sample.at_ms + left_ms + silence_ms, (sample.at_ms + bound for bound in bounds)
        )
        silence = Range.exactly(silence_ms).scaled(USUAL.silence).plus(USUAL.still_ms)
        figures = Figures(True, total, silence)
    return KeptForecast(Basis.RUNNING, now, figures, inputs)


async def keep(store: Store, migration: UUID, make: Callable[[], KeptForecast | None]) -> bool:
    """Store what *make* gives; False where it gives nothing, or it could not be stored."""
    forecast = make()
    if forecast is None:
        return False
    try:
        await asyncio.to_thread(store.forecasts.keep, migration, forecast)
    except VmtuneError as error:
        log.info("a forecast is not kept", migration_id=str(migration), reason=error.message)
        return False
    return True


async def dirtied_before(store: Store, migration: UUID) -> tuple[DirtyPoint, ...]:
    """What was measured of the guest's dirty curve before it, where a forecast is kept that says
    so and can be read; else empty."""
    try:
        kept = await asyncio.to_thread(store.forecasts.of, migration)
    except VmtuneError:
        return ()
    dirtied = (one.inputs.get("dirtied", ()) for one in kept if one.basis is Basis.BEFORE)
    return tuple(DirtyPoint(*point) for points in dirtied for point in points)


async def settle(store: Store, record: Migration) -> None:
    """Note what came of the forecasts of a migration that has ended, and count it."""
    if record.state is MigrationState.UNKNOWN:
        return  # what follows is held once it is known

    def work() -> None:
        if not store.forecasts.of(record.id):
            return
        samples = store.migrations.samples(record.id)
        at = record.ended_at or datetime.now(UTC)
        for forecast, happened in store.forecasts.settle(
            record.id, lambda figures: hold(record, figures, samples), at
        ):
            telemetry.forecast_held(forecast, happened)

    try:
        await asyncio.to_thread(work)
    except VmtuneError as error:
        log.info("forecasts are not held", migration_id=str(record.id), reason=error.message)


async def settle_left(store: Store) -> None:
    """The same of those that were left when their migrations ended, since the database could not be
    used then.

    :raise SetupError: it cannot be used now either.
    """
    for migration in await asyncio.to_thread(store.forecasts.left, _LEFT_AT_ONCE):
        record = await asyncio.to_thread(store.migrations.get, migration)
        await settle(store, record)


def _rounded(found: Range) -> list[int]:
    return [round(found.low), round(found.likely), round(found.high)]
