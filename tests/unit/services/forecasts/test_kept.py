"""Forecasts that are kept with their migrations."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.examples.samples import make_samples
from tests.support.simulated.fakes import VM
from tests.support.simulated.world import World, world
from vmtune.engine import dirty_probe
from vmtune.errors import SetupError
from vmtune.forecast.outlook import Outlook
from vmtune.model.migration.forecast_basis import Basis
from vmtune.model.migration.record import MigrationState
from vmtune.services.forecasts import forecasts as forecasting
from vmtune.services.forecasts.kept import by_outlook, dirtied_before, settle_left
from vmtune.services.metrics import telemetry

MIB = 1 << 20
NOW = datetime(2026, 11, 21, tzinfo=UTC)
SAMPLE = make_samples(20)[-2]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dirty_probe, "WINDOWS_MS", (50, 60))


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


def counted(name: str) -> float:
    return sum(
        sample.value
        for family in telemetry.REGISTRY.collect()
        for sample in family.samples
        if sample.name == name
    )


async def test_a_migration_of_a_measured_vm_has_its_forecast_and_what_came_of_it(
    it: World,
) -> None:
    await it.profile("held", max_bandwidth_bytes_per_s=500 * MIB)
    await it.migrations.intents.forecasts.forecast(VM, "b", ["held"])
    before = counted("vmtune_forecasts_of_end_total")
    record = await it.migrate("held")
    assert record.state is MigrationState.COMPLETED and record.totals is not None
    kept = {each.basis: each for each in it.store.forecasts.of(record.id)}
    found = kept[Basis.BEFORE]
    assert found.figures.ends is not False
    assert found.figures.total_ms is not None and found.figures.silence_ms is not None
    assert found.inputs["probe_age_s"] < 60
    assert len(found.inputs["dirtied"]) == 2
    known = await dirtied_before(it.store, record.id)
    assert [[p.after_ms, p.dirty_bytes] for p in known] == found.inputs["dirtied"]
    assert found.happened is not None and found.happened.ended is True
    assert found.happened.total_ms == record.totals.total_time_ms
    assert found.held_at == record.ended_at
    assert [each.migration for each in it.store.forecasts.held(basis=Basis.BEFORE)] == [record.id]
    assert counted("vmtune_forecasts_of_end_total") == before + len(kept)


async def test_one_that_was_not_measured_has_none_of_before(it: World) -> None:
    record = await it.migrate()
    assert Basis.BEFORE not in {each.basis for each in it.store.forecasts.of(record.id)}
    assert it.source.ring.measurements == 0
    assert await dirtied_before(it.store, record.id) == ()
    assert await dirtied_before(it.store, uuid4()) == (), "it was removed meanwhile"


async def test_an_old_measurement_is_no_forecast(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await it.migrations.intents.forecasts.forecast(VM, "b", throughput_bytes_per_s=100 * MIB)
    monkeypatch.setattr(forecasting, "KEPT_S", 0)
    record = await it.migrate()
    assert Basis.BEFORE not in {each.basis for each in it.store.forecasts.of(record.id)}


async def test_a_database_that_takes_no_forecast_stops_no_migration(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> bool:
        raise SetupError("the disk is full")

    await it.profile("held", max_bandwidth_bytes_per_s=500 * MIB)
    await it.migrations.intents.forecasts.forecast(VM, "b", ["held"])
    monkeypatch.setattr(it.store.forecasts, "keep", full)
    monkeypatch.setattr(it.store.forecasts, "of", full)
    assert (await it.migrate("held")).state is MigrationState.COMPLETED


def test_what_is_expected_of_a_running_migration() -> None:
    found = by_outlook(SAMPLE, Outlook(True, 5_000, 2_000, 11_000, 100), NOW)
    assert found is not None and found.basis is Basis.RUNNING
    total, silence = found.figures.total_ms, found.figures.silence_ms
    assert total is not None and silence is not None
    at = SAMPLE.at_ms
    assert (total.low, total.likely, total.high) == (at + 2_000, at + 5_100, at + 11_000)
    assert silence.low < silence.likely < silence.high
    assert found.figures.sent_bytes is None
    assert found.inputs["at_ms"] == at


def test_that_it_will_not_end_is_a_forecast_and_not_knowing_is_none() -> None:
    never = by_outlook(SAMPLE, Outlook(False), NOW)
    assert never is not None
    assert (never.figures.ends, never.figures.total_ms) == (False, None)
    assert by_outlook(SAMPLE, Outlook(None, pass_left_ms=1), NOW) is None


async def test_what_was_left_when_the_database_was_locked_is_settled_later(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_: object) -> object:
        raise SetupError("the database is locked")

    await it.profile("held", max_bandwidth_bytes_per_s=500 * MIB)
    await it.migrations.intents.forecasts.forecast(VM, "b", ["held"])
    with monkeypatch.context() as while_locked:
        while_locked.setattr(it.store.forecasts, "settle", locked)
        record = await it.migrate("held")
    assert all(each.happened is None for each in it.store.forecasts.of(record.id))
    await settle_left(it.store)
    (found,) = [one for one in it.store.forecasts.of(record.id) if one.basis is Basis.BEFORE]
    assert found.happened is not None and found.happened.ended is True
    assert found.held_at == record.ended_at
    assert it.store.forecasts.left(10) == ()


async def test_it_says_why_none_was_made(it: World) -> None:
    forecasts = it.migrations.intents.forecasts
    assert forecasts.left_out((await it.migrate()).id).code == "not_measured_before"


async def test_a_path_that_nobody_knows_is_the_reason(it: World) -> None:
    forecasts = it.migrations.intents.forecasts
    await it.profile("open", max_bandwidth_bytes_per_s=0)
    await forecasts.forecast(VM, "b", throughput_bytes_per_s=100 * MIB)
    record = await it.migrate("open")
    assert Basis.BEFORE not in {each.basis for each in it.store.forecasts.of(record.id)}
    assert forecasts.left_out(record.id).code == "throughput_not_known"


async def test_a_fault_in_a_forecast_holds_up_no_migration(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    forecasts = it.migrations.intents.forecasts
    await it.profile("held", max_bandwidth_bytes_per_s=500 * MIB)
    await forecasts.forecast(VM, "b", ["held"])

    def broken(*_: object) -> object:
        raise ZeroDivisionError

    monkeypatch.setattr(forecasting, "_candidate", broken)
    record = await it.migrate("held")
    assert record.state is MigrationState.COMPLETED
    assert forecasts.left_out(record.id).code == "not_computed"
