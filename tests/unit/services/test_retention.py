"""Retention: once an hour, in one service, a little at a time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

from tests.support.examples.samples import make_samples
from tests.support.simulated.fakes import VM
from tests.support.stores.databases import empty_database
from vmtune.forecast.held import Figures, Happened, KeptForecast
from vmtune.model.access.audit import Act, Outcome
from vmtune.model.access.scopes import SERVICE
from vmtune.model.migration.forecast_basis import Basis
from vmtune.model.migration.record import MigrationState, SamplesKept
from vmtune.model.retention import RetentionSettings
from vmtune.services import retention as keeping_service
from vmtune.services.retention import Pruned, RetentionService, expired, prune
from vmtune.storage import Store

START = datetime(2026, 1, 1, tzinfo=UTC)
RETENTION = RetentionSettings(
    samples_whole_days=30,
    samples_thinned_s=10,
    samples_days=365,
    audit_days=90,
    gone_vms_days=30,
    idempotency_days=7,
    webhook_days=30,
    forecast_days=100,
)
ACT = Act(SERVICE, "", "retention")


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.time = START

    def __call__(self) -> datetime:
        return self.time

    def seconds(self) -> float:
        return (self.time - START).total_seconds()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[Store]:
    url = empty_database(tmp_path / "vmtune.db")
    with Store.open(url, now=clock) as opened:
        yield opened


def migrated(store: Store) -> None:
    record = store.migrations.begin(vm=VM, vm_name="vm", source="a", destination="b")
    store.migrations.add_samples(record.id, make_samples(300))
    store.migrations.update(record.id, state=MigrationState.CANCELLED)


def kept(store: Store) -> list[SamplesKept]:
    return [record.samples_kept for record in store.migrations.list().items]


def pruned(store: Store, retention: RetentionSettings, clock: Clock) -> Pruned:
    done = Pruned()
    for step in prune(store, retention, ACT, clock):
        done += step
    return done


def test_it_does_what_it_said_it_would(store: Store, clock: Clock) -> None:
    for _ in range(3):
        migrated(store)
    clock.time += timedelta(days=340)
    migrated(store)
    clock.time += timedelta(days=31)
    would = expired(store, RETENTION, clock)
    assert (would.thin.migrations, would.drop.migrations, would.drop.samples) == (1, 3, 900)
    assert would.entries > 0
    done = pruned(store, RETENTION, clock)
    assert (done.thinned, done.dropped, done.dropped_samples) == (1, 3, 900)
    assert (done.thinned_samples > 150, done.entries) == (True, would.entries)
    assert kept(store) == [
        SamplesKept.THINNED,
        SamplesKept.DROPPED,
        SamplesKept.DROPPED,
        SamplesKept.DROPPED,
    ]
    assert pruned(store, RETENTION, clock) == Pruned()
    again = expired(store, RETENTION, clock)
    assert (again.thin.migrations, again.drop.migrations, again.entries) == (0, 0, 0)
    assert store.audit.check().broken_at is None


def test_forecasts_go_some_time_after_their_migrations_end(store: Store, clock: Clock) -> None:
    record = store.migrations.begin(vm=VM, vm_name="vm", source="a", destination="b")
    for basis in Basis:
        store.forecasts.keep(record.id, KeptForecast(basis, clock.time, Figures(ends=True)))
    store.forecasts.settle(record.id, lambda _: Happened(None), clock.time)
    other = store.migrations.begin(vm=UUID(int=1), vm_name="o", source="a", destination="b")
    store.forecasts.keep(other.id, KeptForecast(Basis.BEFORE, clock.time, Figures(ends=True)))
    clock.time += timedelta(days=101)
    assert expired(store, RETENTION, clock).forecasts == 2
    assert pruned(store, RETENTION, clock).forecasts == 2
    assert expired(store, RETENTION, clock).forecasts == 0
    assert store.forecasts.of(record.id) == ()
    assert len(store.forecasts.of(other.id)) == 1  # it has not ended


def test_nothing_goes_where_all_is_kept_for_ever(store: Store, clock: Clock) -> None:
    migrated(store)
    clock.time += timedelta(days=36_500)
    assert pruned(store, RetentionSettings(0, 10, 0, 0, 0, 0, 0, 0), clock) == Pruned()
    assert kept(store) == [SamplesKept.WHOLE]


def test_who_stopped_in_the_middle_goes_on(store: Store, clock: Clock) -> None:
    for _ in range(3):
        migrated(store)
        store.audit.add(ACT, Outcome.REFUSED, "x", 403, ())
    clock.time += timedelta(days=400)
    steps = prune(store, RETENTION, ACT, clock)
    assert next(steps) == Pruned(dropped=1, dropped_samples=300)
    steps.close()
    assert pruned(store, RETENTION, clock).dropped == 2


async def test_a_second_at_a_time_and_once_an_hour(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        migrated(store)
    clock.time += timedelta(days=40)
    monkeypatch.setattr(keeping_service, "_AT_ONCE_S", 0.0)  # one step each time
    service = RetentionService(store, RETENTION, now=clock, clock=clock.seconds)
    for thinned in (1, 2, 3):
        await service.run()
        assert kept(store).count(SamplesKept.THINNED) == thinned
    await service.run()  # finds that it is done
    migrated(store)
    clock.time += timedelta(days=40)
    store.retention.begin_task(keeping_service.TASK, 3600)  # another service was first
    await service.run()
    assert kept(store).count(SamplesKept.THINNED) == 3
    clock.time += timedelta(hours=1)
    await service.run()
    assert kept(store).count(SamplesKept.THINNED) == 4


async def test_a_fault_ends_it_until_the_next_hour(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrated(store)
    clock.time += timedelta(days=40)
    service = RetentionService(store, RETENTION, now=clock, clock=clock.seconds)
    with monkeypatch.context() as broken:
        broken.setattr(store.retention, "to_thin", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await service.run()
    await service.run()
    assert kept(store) == [SamplesKept.WHOLE]
    clock.time += timedelta(hours=1)
    await service.run()
    assert kept(store) == [SamplesKept.THINNED]
