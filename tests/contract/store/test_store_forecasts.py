"""Forecasts in both databases."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from vmtune.errors import NotFound
from vmtune.forecast.held import Figures, Happened, HeldForecast, KeptForecast
from vmtune.forecast.ranges import Range
from vmtune.model.access.scopes import Reach
from vmtune.model.migration.forecast_basis import Basis
from vmtune.model.migration.record import MigrationState
from vmtune.storage import Store

AT = datetime(2026, 11, 21, 4, 30, tzinfo=UTC)
ENDS = Figures(True, Range(9e3, 2e4, 3e4), Range(20.0, 50.0, 90.0), Range(1e9, 2e9, 3e9))
MADE = KeptForecast(Basis.BEFORE, AT, ENDS, {"probe_age_s": 61.5, "dirtied": [[64, 1 << 20]]})
NEVER = KeptForecast(Basis.RUNNING, AT, Figures(ends=False))
CAME = Happened(True, 23e3, 40.0, 8e9, 51e3, 300.0)


def begun(
    store: Store,
    number: int = 1,
    source: str = "a",
    destination: str = "b",
    profile: str = "fast",
) -> UUID:
    return store.migrations.begin(
        vm=UUID(int=number),
        vm_name="vm",
        revision=1,
        source=source,
        destination=destination,
        profile=profile,
    ).id


def test_a_forecast_is_kept_once_of_each_basis(store: Store) -> None:
    id = begun(store)
    assert store.forecasts.keep(id, MADE)
    assert store.forecasts.keep(id, NEVER)
    assert not store.forecasts.keep(id, KeptForecast(Basis.BEFORE, AT, Figures(ends=None)))
    assert store.forecasts.of(id) == (MADE, NEVER)
    assert store.forecasts.of(begun(store, 2)) == ()
    for call in (lambda: store.forecasts.of(uuid4()), lambda: store.forecasts.keep(uuid4(), MADE)):
        with pytest.raises(NotFound, match="no migration"):
            call()


def test_what_came_of_it_is_noted_once(store: Store) -> None:
    id = begun(store)
    store.forecasts.keep(id, MADE)
    assert store.forecasts.held() == ()
    ((forecast, happened),) = store.forecasts.settle(id, lambda figures: CAME, AT)
    assert (forecast, happened) == (MADE, CAME)
    assert store.forecasts.settle(id, lambda figures: Happened(False), AT) == ()
    (kept,) = store.forecasts.of(id)
    assert (kept.happened, kept.held_at) == (CAME, AT)
    (held,) = store.forecasts.held()
    assert (held.migration, held.source, held.destination, held.profile) == (id, "a", "b", "fast")
    assert (held.basis, held.figures, held.happened, held.held_at) == (
        Basis.BEFORE, ENDS, CAME, AT,
    )  # fmt: skip


def test_those_of_ended_migrations_that_are_not_settled_are_left(store: Store) -> None:
    ended, runs, unknown, settled = (begun(store, number) for number in range(1, 5))
    for id in (ended, runs, unknown, settled):
        store.forecasts.keep(id, MADE)
        store.forecasts.keep(id, NEVER)
    for id, end in (
        (ended, MigrationState.COMPLETED),
        (unknown, MigrationState.UNKNOWN),
        (settled, MigrationState.COMPLETED),
    ):
        for state in (MigrationState.PREPARING, MigrationState.STARTING, end):
            store.migrations.update(id, state=state)
    store.forecasts.settle(settled, lambda figures: CAME, AT)
    assert store.forecasts.left(10) == (ended,)
    assert store.forecasts.left(0) == ()


def test_those_that_were_held_are_filtered(store: Store) -> None:
    there, back = begun(store, 1), begun(store, 2, source="b", destination="c", profile="")
    for place, id in enumerate((there, back)):
        for forecast in (MADE, NEVER):
            store.forecasts.keep(id, forecast)
        store.forecasts.settle(id, lambda figures: CAME, AT + timedelta(days=place))
    held = store.forecasts.held

    def ids(found: Sequence[HeldForecast]) -> list[UUID]:
        return [each.migration for each in found]

    assert ids(held()) == [back, back, there, there]
    assert ids(held(limit=1)) == [back]
    assert ids(held(profile="fast")) == [there, there]
    assert ids(held(profile="")) == [back, back]
    assert ids(held(host="c")) == [back, back]
    assert ids(held(since=AT + timedelta(hours=1))) == [back, back]
    assert ids(held(basis=Basis.RUNNING)) == [back, there]
    assert ids(held(reach=Reach(frozenset({"a"})))) == [there, there]
