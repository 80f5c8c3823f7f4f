"""Forecasts held against what happened, over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID, uuid4

from tests.support.served.api import Api
from vmtune.forecast.held import MODEL, Figures, Happened, KeptForecast
from vmtune.forecast.ranges import Range
from vmtune.model.migration.forecast_basis import Basis

AT = datetime(2026, 11, 21, 4, 30, tzinfo=UTC)
ENDS = Figures(True, Range(9e3, 2e4, 3e4), Range(20.0, 50.0, 90.0), Range(1e9, 2e9, 3e9))
INPUTS = {"probe_age_s": 61.5, "corrected_by": {"total_time": 43}}
CAME = Happened(True, 25e3, 100.0, 2e9, 50e3, 300.0)


def held(api: Api, number: int, profile: str = "", source: str = "a") -> UUID:
    """A migration with a forecast that was held."""
    store = api.container.migrations._store
    id = store.migrations.begin(
        vm=UUID(int=number), vm_name="vm", source=source, destination="b", profile=profile,
        revision=int(bool(profile)),
    ).id  # fmt: skip
    store.forecasts.keep(id, KeptForecast(Basis.BEFORE, AT, ENDS, INPUTS))
    store.forecasts.settle(id, lambda _: CAME, AT)
    return id


async def test_a_migration_has_its_forecasts(api: Api) -> None:
    id = held(api, 1)
    kept = await api.get(f"/migrations/{id}/forecasts")
    (found,) = kept["items"]
    assert kept["none_before"] is None
    assert (found["basis"], found["ends"], found["model"]) == ("before", True, MODEL)
    assert found["total_ms"] == {"low": 9e3, "likely": 2e4, "high": 3e4}
    assert found["inputs"] == INPUTS
    assert found["corrected_by"] == {"total_time": 43}
    assert found["happened"]["silence_ms"] == 100.0
    await api.ask("GET", f"/migrations/{uuid4()}/forecasts", expect=404)


async def test_one_without_a_forecast_of_before_says_why(api: Api) -> None:
    store = api.container.migrations._store
    id = store.migrations.begin(vm=UUID(int=9), vm_name="vm", source="a", destination="b").id
    kept = await api.get(f"/migrations/{id}/forecasts")
    assert kept["items"] == []
    assert kept["none_before"]["code"] == "no_forecast_before"


async def test_they_are_held_against_what_happened(api: Api) -> None:
    empty = await api.get("/forecasts/check")
    assert empty == {"truncated": False, "items": []}
    held(api, 1, "fast")
    held(api, 2, source="c")
    (found,) = (await api.get("/forecasts/check"))["items"]
    assert found["basis"] == "before"
    overall = found["overall"]
    assert (overall["forecasts"], overall["ends_right"], overall["key"]) == (2, 1.0, None)
    assert (overall["total_time"]["median_error"], overall["total_time"]["within"]) == (0.2, 1.0)
    assert (overall["silence"]["within"], overall["silence"]["others_median_error"]) == (0.0, 2.0)
    assert [row["key"] for row in found["by_profile"]] == [None, "fast"]
    assert [row["key"] for row in found["by_path"]] == ["a to b", "c to b"]
    assert [row["key"] for row in found["by_week"]] == ["2026-11-16"]


async def test_they_are_filtered(api: Api) -> None:
    held(api, 1, "fast")
    held(api, 2, source="c")
    for query, count in (
        ("profile=fast", 1),
        ("profile=", 1),
        ("host=c", 1),
        ("host=b", 2),
        ("since=2026-11-21T04:30:00Z", 2),
    ):
        (found,) = (await api.get(f"/forecasts/check?{query}"))["items"]
        assert found["overall"]["forecasts"] == count, query
    assert (await api.get("/forecasts/check?since=2026-11-22T00:00:00Z"))["items"] == []
    await api.ask("GET", "/forecasts/check?since=yesterday", expect=422)
