"""Studies that wait, are paused or cancelled, or outlive their service."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID

import pytest

from tests.support.benchmarks.studies import TunedRunner, study_json
from tests.unit.bench.services.tune.study_service import S, counted, make, started, until
from vmtune.bench.machine.environment import host_name
from vmtune.bench.model.campaign.record import CampaignState
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.tune.steps import PlannedTrial, RunBlock, Step
from vmtune.bench.services.tune.job import MAX_ATTEMPTS
from vmtune.errors import LabError, TooLate
from vmtune.storage import Store


async def test_no_run_begins_outside_of_the_hours(store: Store, tmp_path: Path) -> None:
    now = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
    bench = make(store, tmp_path, TunedRunner(), now=lambda: now)
    told: list[Any] = []
    async with started(bench):
        with patch.object(bench.it.bus, "progress", lambda *each: told.append(each[2])):
            study = await bench.studies.start(study_json(limits={"hours": "22:00-06:00"}))
            await until(lambda: any("waits" in each for each in told))
            assert bench.it.runner.orders == []
            now = datetime(2026, 1, 1, 22, 30, tzinfo=UTC)
            await bench.studies.pause(str(study.kept.id))
            await bench.studies.resume(str(study.kept.id))
            assert (await bench.ended(study.kept.id)).kept.state is S.COMPLETED


async def test_no_run_begins_while_others_need_the_cpu(store: Store, tmp_path: Path) -> None:
    pressure = 90.0
    told: list[Any] = []
    bench = make(store, tmp_path, TunedRunner(), look=lambda: {"cpu_pressure_percent": pressure})
    async with started(bench):
        with patch.object(bench.it.bus, "progress", lambda *each: told.append(each[2])):
            id = (await bench.studies.start(study_json(limits={"cpu_percent": 20}))).kept.id
            await until(lambda: any("waits" in each for each in told))
            waits = {each["waits"] for each in told if "waits" in each}
            assert waits == {"something waits for a CPU for 90 % of the time"}
            assert bench.it.runner.orders == []
            pressure = 20.0
            assert (await bench.ended(id)).kept.state is S.COMPLETED


async def test_a_paused_study_lets_another_go_first(store: Store, tmp_path: Path) -> None:
    runner = TunedRunner(held=True)
    async with started(make(store, tmp_path, runner)) as bench:
        first = (await bench.studies.start(study_json(name="first"))).kept.id
        second = (await bench.studies.start(study_json(name="second"))).kept.id
        await runner.begun()
        assert store.studies.get(second).state is S.QUEUED
        assert (await bench.studies.pause("first")).kept.state is S.PAUSED
        runner.release()
        assert (await bench.ended(second)).kept.state is S.COMPLETED
        assert store.studies.get(first).state is S.PAUSED
        assert len(store.studies.runs(first)) == 1
        assert (await bench.studies.resume("first")).kept.state is S.QUEUED
        assert (await bench.ended(first)).kept.state is S.COMPLETED
        counted(store, first)
        for ask in (bench.studies.pause, bench.studies.resume, bench.studies.cancel):
            with pytest.raises(TooLate, match="completed"):
                await ask("first")


async def test_a_cancelled_study_ends_with_its_run(store: Store, tmp_path: Path) -> None:
    runner = TunedRunner(held=True)
    async with started(make(store, tmp_path, runner)) as bench:
        id = (await bench.studies.start(study_json())).kept.id
        await runner.begun()
        await bench.studies.cancel(str(id))
        assert (await bench.ended(id)).kept.state is S.CANCELLED
        assert [run.state for run in store.studies.runs(id)] == [RunState.CANCELLED]
        assert runner.running == 0


async def test_a_study_is_cancelled_with_its_confirmation(store: Store, tmp_path: Path) -> None:
    runner = TunedRunner()
    async with started(make(store, tmp_path, runner)) as bench:
        id = (await bench.studies.start(study_json())).kept.id
        await until(lambda: store.studies.get(id).campaign is not None)
        await until(lambda: bool(store.campaigns.unfinished()))
        await bench.studies.cancel(str(id))
        kept = (await bench.ended(id)).kept
        assert kept.state is S.CANCELLED
        assert kept.result is None
        assert kept.campaign is not None
        assert store.campaigns.get(kept.campaign).state is CampaignState.CANCELLED


async def test_a_study_is_paused_with_its_confirmation(store: Store, tmp_path: Path) -> None:
    async with started(make(store, tmp_path, TunedRunner())) as bench:
        id = (await bench.studies.start(study_json())).kept.id
        await until(lambda: bool(store.campaigns.unfinished()))
        paused = (await bench.studies.pause(str(id))).kept
        assert (paused.state, paused.campaign is not None) == (S.PAUSED, True)
        assert paused.campaign is not None
        assert store.campaigns.get(paused.campaign).state is CampaignState.PAUSED
        assert (await bench.studies.resume(str(id))).kept.state is S.QUEUED
        assert (await bench.ended(id)).kept.state is S.COMPLETED
        assert store.campaigns.get(paused.campaign).state is CampaignState.COMPLETED


async def test_what_stands_against_a_run_pauses_the_study(store: Store, tmp_path: Path) -> None:
    runner = TunedRunner()
    async with started(make(store, tmp_path, runner)) as bench:
        look = bench.it.look
        runner.held = True
        id = (await bench.studies.start(study_json(testbed="lab"))).kept.id
        await runner.begun()
        look.error = LabError("no lab is up", remedy="run `vmtune lab up`")
        runner.release()
        await until(lambda: store.studies.get(id).state is S.PAUSED)
        assert "no lab is up" in store.studies.get(id).reason
        look.error = None
        await bench.studies.resume(str(id))
        assert (await bench.ended(id)).kept.state is S.COMPLETED
        counted(store, id)


async def test_a_run_that_never_gets_to_its_end_is_given_up(store: Store, tmp_path: Path) -> None:
    runner = TunedRunner(state=RunState.CANCELLED)

    def one_block(store: Store, id: UUID) -> Step:
        return RunBlock(1, (PlannedTrial(0, "default"),))

    async with started(make(store, tmp_path, runner, one_block)) as bench:
        kept = (await bench.do()).kept
    assert kept.state is S.FAILED
    assert f"cut short {MAX_ATTEMPTS} times" in kept.reason
    assert len(store.studies.runs(kept.id)) == MAX_ATTEMPTS


@pytest.mark.parametrize("deaths", [1, 3])
async def test_a_service_that_dies_goes_on_where_it_was(
    store: Store, tmp_path: Path, deaths: int
) -> None:
    id = None
    for _ in range(deaths):
        runner = TunedRunner(held=True)
        bench = make(store, tmp_path, runner)
        await bench.it.jobs.start()
        await bench.it.runs.resume()
        await bench.studies.resume_all()
        if id is None:
            id = (await bench.studies.start(study_json())).kept.id
        await runner.begun()
        # One run to its end, and the next is cut in its middle.
        runner._go.set()
        runner._go = asyncio.Event()
        runner.held = True
        await runner.begun()
        await bench.it.jobs.stop()
    assert id is not None
    async with started(make(store, tmp_path, TunedRunner())) as bench:
        assert (await bench.ended(id)).kept.state is S.COMPLETED
    counted(store, id)
    states = Counter(run.state for run in store.studies.runs(id))
    assert states[RunState.INTERRUPTED] == deaths


async def test_a_death_in_the_confirmation_confirms_once(store: Store, tmp_path: Path) -> None:
    runner = TunedRunner()
    bench = make(store, tmp_path, runner)
    await bench.it.jobs.start()
    id = (await bench.studies.start(study_json())).kept.id
    await until(lambda: store.studies.get(id).state is S.CONFIRMING)
    await bench.it.jobs.stop()
    async with started(make(store, tmp_path, TunedRunner())) as again:
        kept = (await again.ended(id)).kept
    assert kept.state is S.COMPLETED
    (campaign,) = store.campaigns.list().items
    assert campaign.id == kept.campaign
    assert kept.result is not None
    draft = kept.result["draft"]["profile"]
    assert [each.name for each in store.profiles.list().items] == [draft]


async def test_another_machines_studies_are_left_alone(store: Store, tmp_path: Path) -> None:
    store.studies.begin("theirs", {}, "elsewhere")
    async with started(make(store, tmp_path, TunedRunner())) as bench:
        assert bench.it.runner.orders == []
    assert host_name() != "elsewhere"
