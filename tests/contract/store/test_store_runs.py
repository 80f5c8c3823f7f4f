"""Benchmark runs: orders, ends, and what was recorded."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.contract.store.conftest import Clock
from tests.support.benchmarks.records import make_record
from vmtune.bench.model.runs.run import Run, RunRecord, RunState, Slot, Testbed
from vmtune.bench.model.runs.series import Series, apart
from vmtune.errors import Conflict, DuplicateName, InvalidInput, NotFound
from vmtune.storage import Store
from vmtune.storage.repositories.bench.run_rows import CHUNK, TRANSITIONS, RunFilter

SETUP = {"name": "quick/idle", "vm": {"memory_bytes": 1 << 28, "vcpus": 2}, "values": {}}
PLACE = {"cpu": {"count": 2, "model": "x"}, "kernel": {"release": "6.1"}}
PRINT = "0123456789abcdef"
METRICS = {"total_time_ms": 1234.0, "downtime_ms": 31.5, "converged": 1.0}


def begin(store: Store, scenario: str = "quick/idle", **fields: Any) -> Run:
    return store.runs.begin(scenario=scenario, setup=SETUP, values={"multifd": True}, **fields)


def start(store: Store, run: Run) -> Run:
    return store.runs.start(run.id, PLACE, PRINT, {"load_1min": 0.25})


def done(store: Store, scenario: str = "quick/idle", **fields: Any) -> Run:
    run = start(store, begin(store, scenario, **fields))
    return store.runs.finish(run.id, RunState.COMPLETED, None, METRICS)


def test_a_run_comes_back_at_every_stage(store: Store) -> None:
    slot = Slot(uuid4(), "tuned", 0, 3)
    given = uuid4()
    begun = begin(
        store, profile="fast", revision=2, testbed=Testbed.LAB, qemu="patched",
        options={"kvm": False}, host="rack1", slot=slot, id=given,
    )  # fmt: skip
    assert begun == Run(
        given, "quick/idle", SETUP, {"multifd": True}, RunState.QUEUED, begun.created_at,
        "fast", 2, Testbed.LAB, "patched", {"kvm": False}, "rack1", slot,
    )  # fmt: skip
    assert store.runs.get(given) == begun
    assert store.runs.head(given) == (None, dict.fromkeys(Series, 0))
    assert store.runs.record(given) is None
    running = start(store, begun)
    assert running.started_at is not None
    assert running == replace(
        begun, state=RunState.RUNNING, fingerprint=PRINT, conditions={"load_1min": 0.25},
        started_at=running.started_at,
    )  # fmt: skip
    record = make_record(30)
    ended = store.runs.finish(given, RunState.COMPLETED, record, METRICS, "no\0thing")
    assert ended.ended_at is not None
    assert ended.ended_at > running.started_at > begun.created_at
    assert ended == replace(
        running, state=RunState.COMPLETED, metrics=METRICS, ended_at=ended.ended_at,
        failure="no?thing",
    )  # fmt: skip
    assert store.runs.get(given) == replace(ended, environment=PLACE)
    assert store.runs.record(given) == record
    assert store.runs.list().items == (ended,)


def test_a_record_comes_back_in_parts(store: Store) -> None:
    run = start(store, begin(store))
    record = make_record(2 * CHUNK + 10)
    store.runs.finish(run.id, RunState.NOT_CONVERGED, record)
    head, series = apart(record)
    assert store.runs.head(run.id) == (head, {name: len(rows) for name, rows in series.items()})
    assert store.runs.record(run.id) == record
    for name, rows in series.items():
        for limit in (CHUNK, 700):
            seen: list[Any] = []
            after = None
            while True:
                page = store.runs.series(run.id, name, after, limit)
                assert len(page.items) <= limit
                seen += page.items
                after = page.next
                if after is None:
                    break
                assert len(page.items) == limit
            assert tuple(seen) == rows
    with pytest.raises(InvalidInput, match="no page"):
        store.runs.series(run.id, Series.CPU, limit=CHUNK + 1)
    with pytest.raises(InvalidInput, match="does not continue"):
        store.runs.series(run.id, Series.CPU, "nonsense")


def test_an_empty_record_is_one(store: Store) -> None:
    run = start(store, begin(store))
    store.runs.finish(run.id, RunState.FAILED, RunRecord(), failure="QEMU died")
    assert store.runs.record(run.id) == RunRecord()
    assert store.runs.series(run.id, Series.SAMPLES).items == ()


def test_series_of_one_run_are_not_anothers(store: Store) -> None:
    records = [make_record(5, seed) for seed in (1, 2)]
    runs = [start(store, begin(store)) for _ in records]
    for run, record in zip(runs, records, strict=True):
        store.runs.finish(run.id, RunState.COMPLETED, record)
    assert [store.runs.record(run.id) for run in runs] == records
    assert store.runs.series(runs[1].id, Series.SAMPLES).items == records[1].samples


def test_only_the_listed_transitions_are_accepted(store: Store) -> None:
    for before, after in itertools.product(RunState, RunState):
        run = begin(store)
        if before is not RunState.QUEUED:
            run = start(store, run)
        if before.ended:
            run = store.runs.finish(run.id, before)

        def enter(run: Run = run, after: RunState = after) -> Run:
            if after is RunState.RUNNING:
                return start(store, run)
            return store.runs.finish(run.id, after, RunRecord(), METRICS)

        if after is RunState.QUEUED:
            continue  # nothing makes a run wait again
        if after in TRANSITIONS[before]:
            assert enter().state is after
        else:
            with pytest.raises(Conflict) as caught:
                enter()
            assert caught.value.problems[0].code == "illegal_transition"
            found = store.runs.get(run.id)
            assert replace(found, environment={}) == run
            assert store.runs.record(run.id) is None


def test_a_run_ends_once_whoever_tries(store: Store) -> None:
    run = start(store, begin(store))

    def finish(number: int) -> bool:
        try:
            store.runs.finish(run.id, RunState.COMPLETED, make_record(3, number), METRICS)
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(finish, range(6))) == 1
    assert store.runs.get(run.id).metrics == METRICS


def test_an_id_is_used_once(store: Store) -> None:
    run = done(store)
    with pytest.raises(DuplicateName, match=str(run.id)):
        begin(store, id=run.id)
    with pytest.raises(DuplicateName, match=str(run.id)):
        store.runs.add(run)
    assert len(store.runs.list().items) == 1


def test_a_run_from_elsewhere_is_taken_as_it_is(store: Store) -> None:
    at = datetime(2024, 2, 3, 4, 5, 6, 7, tzinfo=UTC)
    run = Run(
        uuid4(), "x/y", SETUP, {}, RunState.NOT_CONVERGED, at, "p", 4, Testbed.DIRECT, "q", {},
        "there", Slot(uuid4(), "a", 1, 2), at, at, "30 iterations", PRINT, PLACE,
        {"load_1min": 9.5}, METRICS, make_record(5), "guestperf",
    )  # fmt: skip
    store.runs.add(run)
    assert replace(store.runs.get(run.id), record=run.record) == run
    assert store.runs.record(run.id) == run.record


def test_an_environment_is_kept_once(store: Store) -> None:
    one, two = done(store), done(store)
    assert one.fingerprint == two.fingerprint == PRINT
    assert store.runs.environment(PRINT) == PLACE
    with pytest.raises(NotFound, match="nowhere"):
        store.runs.environment("nowhere")
    unknown = store.runs.start(begin(store).id, {}, "", {})
    assert unknown.fingerprint == ""
    assert store.runs.get(unknown.id).environment == {}


def test_runs_are_listed_newest_first_and_filtered(store: Store, clock: Clock) -> None:
    campaign = uuid4()
    one = done(store, "reaper/predict", profile="fast", revision=1, host="a")
    clock.time = clock.time.replace(year=2020)  # the order is not the clock's
    two = done(store, "reaper/predict-2", slot=Slot(campaign, "tuned", 1, 1))
    three = begin(store, "reaper0/x", slot=Slot(campaign, "stock", 1, 2))
    every = (three, two, one)
    assert store.runs.list().items == every
    for wanted, expected in (
        (RunFilter(scenario="reaper/predict"), (one,)),
        (RunFilter(family="reaper"), (two, one)),
        (RunFilter(family="reape"), ()),
        (RunFilter(profile="fast"), (one,)),
        (RunFilter(states=(RunState.QUEUED,)), (three,)),
        (RunFilter(states=(RunState.QUEUED, RunState.COMPLETED)), every),
        (RunFilter(fingerprint=PRINT), (two, one)),
        (RunFilter(host="a"), (one,)),
        (RunFilter(campaign=campaign), (three, two)),
        (RunFilter(campaign=campaign, arm="tuned"), (two,)),
        (RunFilter(search="PREDICT"), (two, one)),
        (RunFilter(search="ast"), (one,)),
        (RunFilter(search="tock"), (three,)),
        (RunFilter(search="r%x"), ()),
        (RunFilter(search=str(two.id)[:13]), (two,)),
        (RunFilter(search="predict", campaign=campaign), (two,)),
    ):
        assert store.runs.list(wanted).items == expected, wanted
    first = store.runs.list(limit=2)
    assert first.items == every[:2]
    rest = store.runs.list(after=first.next, limit=2)
    assert (rest.items, rest.next) == (every[2:], None)
    with pytest.raises(InvalidInput, match="no page"):
        store.runs.list(limit=0)
    counts = store.runs.counts()
    assert (counts[RunState.COMPLETED], counts[RunState.QUEUED], counts[RunState.FAILED]) == (
        2, 1, 0)  # fmt: skip


def test_the_queue_is_in_the_order_of_the_orders(store: Store) -> None:
    runs = [begin(store) for _ in range(3)]
    start(store, runs[1])
    store.runs.finish(runs[2].id, RunState.CANCELLED)
    assert [run.id for run in store.runs.unfinished()] == [runs[0].id, runs[1].id]


def test_metrics_of_many_runs_come_at_once(store: Store) -> None:
    runs = [done(store) for _ in range(3)]
    without = begin(store)
    found = store.runs.metrics([run.id for run in (*runs, without)])
    assert found == {**{run.id: METRICS for run in runs}, without.id: {}}
    named = store.runs.metrics([runs[0].id], ["downtime_ms", "unheard_of"])
    assert named == {runs[0].id: {"downtime_ms": 31.5}}
    assert store.runs.metrics([]) == {}


def test_runs_outlive_a_restart(url: str) -> None:
    with Store.open(url) as before:
        ended, waiting = done(before), begin(before)
    with Store.open(url) as after:
        assert [run.id for run in after.runs.unfinished()] == [waiting.id]
        assert after.runs.get(ended.id).metrics == METRICS


def test_what_is_not_there_is_not_found(store: Store) -> None:
    id = UUID(int=7)
    calls = (
        lambda: store.runs.get(id),
        lambda: store.runs.start(id, {}, "", {}),
        lambda: store.runs.finish(id, RunState.FAILED),
        lambda: store.runs.head(id),
        lambda: store.runs.record(id),
        lambda: store.runs.series(id, Series.CPU),
    )
    for call in calls:
        with pytest.raises(NotFound, match=str(id)):
            call()
