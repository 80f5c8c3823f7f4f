"""A metric over time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from tests.support.benchmarks.measured import BEGAN, PLACE, noisy, put
from tests.support.stores.databases import empty_database
from vmtune.bench.model.runs.run import Run, RunState, Slot
from vmtune.bench.services.comparisons.history import LEAST_POINTS, HistoryService
from vmtune.errors import InvalidInput, NotFound
from vmtune.stats import changes
from vmtune.storage import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    url = empty_database(tmp_path / "runs.db")
    with Store.open(url) as opened:
        yield opened


async def test_a_change_is_found_with_what_changed_beside_it(store: Store) -> None:
    newer = {**PLACE, "qemu": {"version": "10.1.0"}}
    put(store, "new", noisy(1500, 15, 2), environment=newer, fingerprint="there", after=60)
    put(store, "old", noisy(1000, 15, 1))
    history = await HistoryService(store).history("q/busy", "total_time_ms")
    (entry,) = history.strands
    (change,) = entry.changes or ()
    assert change.at == 15
    assert change.run == entry.points[15].run
    assert change.since == BEGAN + timedelta(minutes=60)
    assert change.matters
    assert change.ratio == pytest.approx(1.5, rel=0.1)
    assert change.text.endswith("worse")
    assert change.environment == ("qemu.version: 10.0.2 before, 10.1.0 since",)


async def test_other_setups_are_apart_and_few_runs_tell_no_change(store: Store) -> None:
    put(store, "plain", noisy(1000, 20, 1))
    put(store, "multifd", noisy(500, 19, 2), tunables={"multifd": True}, after=60)
    history = await HistoryService(store).history("q/busy", "total_time_ms")
    assert [len(entry.points) for entry in history.strands] == [20, 19]
    assert history.strands[0].changes == ()
    assert history.strands[1].changes is None
    assert "20" in history.strands[1].reason


@pytest.mark.parametrize("state", [RunState.NOT_CONVERGED, RunState.FAILED])
async def test_runs_that_begin_to_time_out_are_a_change(store: Store, state: RunState) -> None:
    values = noisy(1000, 40, 4)
    lost = {n: state for n in range(20, 40) if n % 10 not in (0, 3, 7)}
    kept = {n: v for n, v in enumerate(values) if n not in lost}
    for n in range(40):
        metric = "elapsed_ms" if n in lost else "total_time_ms"
        put(store, f"n{n}", [9000.0 if n in lost else kept[n]], metric=metric, after=n,
            states={0: lost[n]} if n in lost else {})  # fmt: skip
    (entry,) = (await HistoryService(store).history("q/busy", "total_time_ms")).strands
    (change,) = entry.completion or ()
    assert (change.before, change.since) == (1.0, BEGAN + timedelta(minutes=21))
    assert change.after < 0.4
    at_limit = [point for point in entry.points if point.at_limit]
    if state is RunState.FAILED:
        assert (len(entry.lost), at_limit) == (14, [])
    else:
        assert (entry.lost, {point.value for point in at_limit}) == ((), {9000.0})


@pytest.mark.parametrize(
    ("scenario", "metric", "state"),
    [
        ("q/busy", "converged", RunState.FAILED),
        ("q/busy", "converged", RunState.NOT_CONVERGED),
        ("boot/q", "booted", RunState.FAILED),
    ],
)
async def test_runs_that_begin_to_fail_are_a_change_of_how_many_succeed(
    store: Store, scenario: str, metric: str, state: RunState
) -> None:
    """Whether they have a record, and so a value, or ended before."""
    for n in range(40):
        lost = {0: state} if n >= 20 else {}
        put(store, f"n{n}", [0.0 if lost else 1.0], scenario=scenario, metric=metric, after=n,
            states=lost)  # fmt: skip
    (entry,) = (await HistoryService(store).history(scenario, metric)).strands
    assert [point.value for point in entry.points] == [1.0] * 20 + [0.0] * 20
    assert not any(point.at_limit for point in entry.points)
    assert entry.lost == ()
    (change,) = entry.changes or ()
    assert (change.at, change.matters, change.worse) == (20, True, True)
    assert change.text == "-100 points: worse"


async def test_runs_that_end_as_planned_are_no_points_of_convergence(store: Store) -> None:
    """Whatever was kept of them."""
    put(store, "n", [1.0] * 20 + [0.0] * 20, states=dict.fromkeys(range(20, 40), RunState.PLANNED),
        metric="converged")  # fmt: skip
    (entry,) = (await HistoryService(store).history("q/busy", "converged")).strands
    assert [point.value for point in entry.points] == [1.0] * 20
    assert (entry.lost, entry.changes) == ((), ())


async def test_runs_that_end_as_planned_go_on_succeeding(store: Store) -> None:
    """The scenario becomes one that ends at its limit."""
    planned = dict.fromkeys(range(20, 40), RunState.PLANNED)
    values = noisy(1000, 40, 4)
    put(store, "n", values, states=planned, metric="guest_drop_ms")
    (entry,) = (await HistoryService(store).history("q/busy", "guest_drop_ms")).strands
    assert len(entry.points) == 40
    assert (entry.lost, entry.completion) == ((), ())


async def test_steady_values_have_no_change(store: Store) -> None:
    put(store, "steady", noisy(1000, 40, 4), profile="p")
    history = await HistoryService(store).history("q/busy", "total_time_ms", "p")
    assert history.strands[0].changes == ()
    assert LEAST_POINTS == changes.LEAST_POINTS


async def test_what_there_is_not_is_said(store: Store) -> None:
    with pytest.raises(InvalidInput, match="no metric"):
        await HistoryService(store).history("q/busy", "speed")
    with pytest.raises(NotFound, match="no run"):
        await HistoryService(store).history("q/busy", "total_time_ms")


async def test_setups_come_page_after_page_of_the_same_runs(store: Store) -> None:
    for channels, runs in ((1, 3), (2, 2), (3, 4)):
        put(store, f"n{channels}", noisy(1000, runs, channels), tunables={"channels": channels})
    service = HistoryService(store)
    first = await service.history("q/busy", "total_time_ms", limit=2)
    assert [len(entry.points) for entry in first.strands] == [4, 3]
    # What is measured meanwhile must not move what the next page begins with.
    put(store, "more", noisy(1000, 5, 9), tunables={"channels": 2}, after=60)
    second = await service.history("q/busy", "total_time_ms", after=first.next, limit=2)
    assert [len(entry.points) for entry in second.strands] == [2]
    assert second.next is None
    with pytest.raises(InvalidInput, match="does not continue"):
        await service.history("q/busy", "total_time_ms", after="x")


async def test_what_was_given_up_counts_as_longer_than_its_limit(store: Store) -> None:
    states = dict.fromkeys(range(15, 30), RunState.NOT_CONVERGED)
    values = [*noisy(1000, 15, 1), *noisy(10, 15, 2)]
    put(store, "n", values, states=states, more={"elapsed_ms": 60_000.0})
    (entry,) = (await HistoryService(store).history("q/busy", "total_time_ms")).strands
    (change,) = entry.changes or ()
    assert (change.at, change.text.endswith("worse")) == (15, True)


async def test_warm_ups_and_failed_runs_are_no_points(store: Store) -> None:
    put(store, "n", noisy(1000, 4, 1), states={2: RunState.FAILED})
    warm = Run(
        id=UUID(int=1), scenario="q/busy", setup={}, values={}, state=RunState.COMPLETED,
        created_at=BEGAN, started_at=BEGAN, qemu="system", host="h",
        slot=Slot(UUID(int=2), "n", 0, 1), metrics={"total_time_ms": 9.0},
    )  # fmt: skip
    store.runs.add(warm)
    (entry,) = (await HistoryService(store).history("q/busy", "total_time_ms")).strands
    assert len(entry.points) == 3
