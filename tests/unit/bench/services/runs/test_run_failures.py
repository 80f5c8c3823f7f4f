"""Benchmark runs that fail, are cancelled, or outlive their service."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pytest

from tests.support.benchmarks.bench_runs import FakeRunner, small
from tests.support.benchmarks.records import make_record
from tests.unit.bench.services.runs.run_service import SMALL, It, assemble, started
from vmtune.bench.machine.load import LoadEnded, Loads
from vmtune.bench.model.campaign.campaign import HostLoad
from vmtune.bench.model.runs.load_record import LoadProcess, LoadRecord
from vmtune.bench.model.runs.run import Run, RunState
from vmtune.bench.services.runs.runs import RunRequest
from vmtune.errors import NotFound, SetupError, TooLate
from vmtune.storage import Store
from vmtune.testing.inline_jobs import InlineEngine


@pytest.mark.parametrize("state", [RunState.NOT_CONVERGED, RunState.FAILED])
async def test_a_run_without_success_is_kept_with_its_record(it: It, state: RunState) -> None:
    it.runner.state, it.runner.failure = state, "QEMU: no route to host"
    done = await it.do()
    assert (done.state, done.failure) == (state, "QEMU: no route to host")
    assert it.store.runs.record(done.id) == make_record(20, 1)
    assert "total_time_ms" not in done.metrics
    assert done.metrics.get("converged") == (0.0 if state.counts else None)


async def test_a_run_whose_load_died_counts_for_nothing(
    it: It, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cannot(_self: Loads) -> None:
        dead = LoadProcess(None, 12.0, False)
        raise LoadEnded("unusable: it died", "look", LoadRecord("busy", 3000.0, (dead,)))

    monkeypatch.setattr(Loads, "check", cannot)
    done = await it.do(RunRequest(small(), host_load=HostLoad.BUSY))
    assert done.state is RunState.INTERRUPTED
    assert done.failure == "host_load: unusable: it died (look)"
    assert not done.state.counts
    assert done.metrics == {}
    record = it.store.runs.record(done.id)
    assert record is not None and record.samples
    assert record.loads is not None and not record.loads.processes[0].alive


async def test_what_cannot_be_brought_up_is_a_failed_run(it: It) -> None:
    it.runner.error = SetupError("no lab is up", remedy="run `vmtune lab up`")
    done = await it.do()
    assert done.state is RunState.FAILED
    assert done.failure == "no lab is up (run `vmtune lab up`)"
    assert it.store.runs.record(done.id) is None
    it.runner.error = None
    assert (await it.do()).state is RunState.COMPLETED


async def test_a_fault_of_ours_is_a_failed_run_and_the_next_goes_on(it: It) -> None:
    it.runner.error = ZeroDivisionError("oh")
    done = await it.do()
    assert done.state is RunState.FAILED
    assert "ZeroDivisionError" in done.failure
    it.runner.error = None
    assert (await it.do()).state is RunState.COMPLETED


async def test_a_program_that_has_gone_meanwhile_fails_the_run(it: It, tmp_path: Path) -> None:
    it.runner.held = True
    first = await it.runs.start(SMALL)
    await it.runner.begun()
    second = await it.runs.start(SMALL)
    (tmp_path / "qemu").unlink()
    it.runner.release()
    assert (await it.ended(first.run)).state is RunState.COMPLETED
    done = await it.ended(second.run)
    assert done.state is RunState.FAILED
    assert "there is no program" in done.failure


async def test_a_database_that_is_busy_loses_no_run(it: It) -> None:
    finish = it.store.runs.finish
    failures = [SetupError("the database is locked")] * 2

    def busy(*args: Any, **fields: Any) -> Run:
        if failures:
            raise failures.pop()
        return finish(*args, **fields)

    with patch.object(it.store.runs, "finish", busy):
        done = await it.do()
    assert done.state is RunState.COMPLETED
    assert it.runner.ended == 1


async def test_a_database_that_stays_away_is_told_once_it_is_back(it: It) -> None:
    finish = it.store.runs.finish
    failures = [SetupError("the disk is full")] * 5

    def full(*args: Any, **fields: Any) -> Run:
        if failures:
            raise failures.pop()
        return finish(*args, **fields)

    with patch.object(it.store.runs, "finish", full):
        done = await it.do()
    assert done.state is RunState.FAILED
    assert "disk is full" in done.failure


async def test_a_run_that_runs_is_cancelled_and_taken_down(it: It) -> None:
    it.runner.held = True
    queued = await it.runs.start(SMALL)
    await it.runner.begun()
    swept = len(it.swept)
    await it.runs.cancel(queued.run.id)
    done = await it.ended(queued.run)
    assert (done.state, done.failure) == (RunState.CANCELLED, "cancelled before its end")
    assert (it.runner.running, it.runner.cleaned_up) == (0, 1)
    assert len(it.swept) > swept
    assert not done.state.counts
    with pytest.raises(TooLate, match="has ended: cancelled"):
        await it.runs.cancel(queued.run.id)
    it.runner.release()
    assert (await it.do()).state is RunState.COMPLETED


async def test_a_run_that_waits_is_cancelled_without_having_run(it: It) -> None:
    it.runner.held = True
    first = await it.runs.start(SMALL)
    await it.runner.begun()
    second, third = [await it.runs.start(SMALL) for _ in range(2)]
    cancelled = await it.runs.cancel(second.run.id)
    assert (await it.ended(second.run)).state is RunState.CANCELLED
    assert cancelled.run.id == second.run.id
    it.runner.release()
    for queued in (first, third):
        assert (await it.ended(queued.run)).state is RunState.COMPLETED
    assert len(it.runner.orders) == 2


async def test_a_run_that_has_just_ended_is_not_cancelled(it: It) -> None:
    done = await it.do()
    with pytest.raises(TooLate, match="completed"):
        await it.runs.cancel(done.id)
    with pytest.raises(NotFound):
        await it.runs.cancel(uuid4())


async def test_a_service_that_ends_in_a_run_leaves_an_interrupted_one(
    store: Store, tmp_path: Path
) -> None:
    """And what waited is run by the next service, once."""
    runner = FakeRunner(held=True)
    async with started(assemble(store, tmp_path, runner)) as before:
        running = (await before.runs.start(SMALL)).run
        await runner.begun()
        waiting = (await before.runs.start(SMALL)).run
    assert runner.running == 0
    assert store.runs.get(running.id).state is RunState.RUNNING
    runner.release()
    async with started(assemble(store, tmp_path, runner)) as after:
        assert after.swept
        interrupted = await after.ended(running)
        assert interrupted.state is RunState.INTERRUPTED
        assert "service ended" in interrupted.failure
        assert not interrupted.state.counts
        assert (await after.ended(waiting)).state is RunState.COMPLETED
    assert len(runner.orders) == 2
    async with started(assemble(store, tmp_path, runner)) as again:
        assert [run.state for run in store.runs.list().items] == [
            RunState.COMPLETED, RunState.INTERRUPTED]  # fmt: skip
        await again.ended((await again.runs.start(SMALL)).run)
    assert len(runner.orders) == 3


async def test_an_engine_that_goes_on_does_not_repeat_a_run(store: Store, tmp_path: Path) -> None:
    """The job's record outlives the service, as a durable engine's does."""
    runner, jobs = FakeRunner(held=True), InlineEngine()
    it = assemble(store, tmp_path, runner, jobs)
    async with started(it):
        run = (await it.runs.start(SMALL)).run
        await runner.begun()
    async with started(it):
        assert (await it.ended(run)).state is RunState.INTERRUPTED
    assert len(runner.orders) == 1
