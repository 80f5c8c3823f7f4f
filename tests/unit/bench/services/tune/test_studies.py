"""Studies from the order to the draft of a profile, also through deaths of the service."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID

import pytest

from tests.support.bench_runs import FakeRunner
from tests.support.studies import TunedRunner, study_json
from tests.unit.bench.services.runs.run_service import It, assemble
from vmtune.bench.machine.environment import host_name
from vmtune.bench.migration.order import RunOrder
from vmtune.bench.model.campaign.record import CampaignState
from vmtune.bench.model.runs.run import RunRecord, RunState
from vmtune.bench.model.tune.kept import StudyState
from vmtune.bench.model.tune.records import TrialOutcome
from vmtune.bench.model.tune.spec import Used
from vmtune.bench.model.tune.steps import PlannedTrial, RunBlock, Step
from vmtune.bench.order import AnyOrder
from vmtune.bench.services.campaigns.campaigns import CampaignService
from vmtune.bench.services.campaigns.job import CampaignJob
from vmtune.bench.services.tune.deciding import decide
from vmtune.bench.services.tune.job import MAX_ATTEMPTS, StudyJob
from vmtune.bench.services.tune.reading import Study
from vmtune.bench.services.tune.studies import StudyService
from vmtune.errors import Blocked, InvalidInput, LabError, NotFound, TooLate, VmtuneError
from vmtune.services.heavy.work import InThreads
from vmtune.storage import Store
from vmtune.testing.inline_jobs import InlineEngine

S = StudyState


@dataclass
class Bench:
    """The studies, and what is beneath them."""

    it: It
    campaigns: CampaignService
    studies: StudyService

    @property
    def store(self) -> Store:
        return self.it.store

    async def ended(self, id: object) -> Study:
        async with asyncio.timeout(240):
            await self.it.jobs.wait(str(id))
        return await self.studies.get(str(id))

    async def do(self, **changes: Any) -> Study:
        return await self.ended((await self.studies.start(study_json(**changes))).kept.id)


def make(
    store: Store,
    folder: Path,
    runner: FakeRunner,
    deciding: Callable[[Store, UUID], Step] = decide,
    **more: Any,
) -> Bench:
    jobs = InlineEngine()
    it = assemble(store, folder, runner, jobs)
    job = CampaignJob(store, it.bus, it.profiles, it.runs, jobs)
    job.register()
    campaigns = CampaignService(store, it.bus, it.profiles, it.runs, jobs, job)
    work = InThreads(store)
    tuning = StudyJob(store, it.bus, it.profiles, it.runs, campaigns, jobs, work, deciding, **more)
    tuning.register()
    testbeds = it.runs._testbeds
    studies = StudyService(
        store, it.bus, it.profiles, it.runs, testbeds, campaigns, jobs, tuning, work
    )
    return Bench(it, campaigns, studies)


@asynccontextmanager
async def started(bench: Bench) -> AsyncIterator[Bench]:
    await bench.it.jobs.start()
    await bench.it.runs.resume()
    await bench.campaigns.resume_all()
    await bench.studies.resume_all()
    try:
        yield bench
    finally:
        await bench.it.jobs.stop()
        await bench.it.bus.drain()


@pytest.fixture
async def bench(store: Store, tmp_path: Path) -> AsyncIterator[Bench]:
    async with started(make(store, tmp_path, TunedRunner())) as made:
        yield made


def endless(store: Store, id: UUID) -> Step:
    """One more block of the default, again and again."""
    done = len(store.studies.runs(id))
    return RunBlock(done + 1, (PlannedTrial(0, "default"),))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0.005)


def counted(store: Store, id: UUID) -> None:
    """Every run that counts is in one trial, once, and none runs twice in one block."""
    study = store.studies.get(id)
    told = [run["run_id"] for trial in store.studies.trials(id) for run in trial["runs"]]
    runs = [str(run.id) for run in store.studies.runs(id) if run.state.counts]
    assert Counter(filter(None, told)) == Counter(runs)
    for trial in store.studies.trials(id):
        blocks = [run["block"] for run in trial["runs"]]
        assert len(blocks) == len(set(blocks))
    assert study.state.ended


async def test_what_is_better_is_confirmed_in_fresh_runs_and_drafted(bench: Bench) -> None:
    study = await bench.do()
    kept = study.kept
    assert kept.state is S.COMPLETED, kept.reason
    counted(bench.store, kept.id)
    assert kept.result is not None
    found = kept.result["found"]
    assert found["finding"] == "better"
    assert found["settings"]["multifd"] is True
    assert found["gain_percent"] > 25
    (evidence,) = found["evidence"]
    assert (evidence["baseline"], evidence["verdict"]) == ("default", "better")
    assert 0.5 < evidence["low"] <= evidence["estimate"] <= evidence["high"] < 0.75
    campaign = bench.store.campaigns.get(kept.campaign or kept.id)
    assert campaign.state is CampaignState.COMPLETED
    assert campaign.campaign.blocks == 6
    own = {run.id for run in bench.store.studies.runs(kept.id)}
    assert own.isdisjoint(run.id for run in bench.store.campaigns.runs(campaign.id))
    drafted = await bench.it.profiles.get(kept.result["draft"]["profile"])
    assert drafted.current.values == found["settings"]
    for part in (str(kept.id), str(kept.campaign), "better", kept.result["environments"][0]):
        assert part in drafted.current.note
    assert bench.store.assignments.all() == ()
    assert study.used.runs + campaign.campaign.run_count <= 44 + campaign.campaign.warmup_runs


class Trading(TunedRunner):
    """More than four channels are faster still, and cost three times the downtime."""

    def _recorded(self, order: AnyOrder) -> RunRecord:
        record = super()._recorded(order)
        assert isinstance(order, RunOrder) and record.totals is not None
        channels = order.scenario.values.get("multifd_channels", 0)
        costs = 300 if isinstance(channels, int) and channels > 4 else 100
        downtime = round(costs * self.chance.uniform(0.98, 1.02))
        return replace(record, totals=replace(record.totals, downtime_ms=downtime))


@pytest.mark.parametrize(("low", "harmless"), [(1, True), (5, False)])
async def test_of_several_goals_what_is_worse_in_none_comes_first(
    store: Store, tmp_path: Path, low: int, harmless: bool
) -> None:
    order = study_json(
        objective="minimise total_time_ms, minimise downtime_ms where completed",
        space={"multifd": {}, "multifd_channels": {"low": low, "high": 8}},
        finalists=2,
    )
    async with started(make(store, tmp_path, Trading())) as bench:
        kept = (await bench.do(**order)).kept
    assert kept.state is S.COMPLETED, kept.reason
    assert kept.result is not None
    found = kept.result["found"]
    assert found["finding"] == "better"
    own = [each for each in found["evidence"] if each["trial"] == found["trial"]]
    assert [each["metric"] for each in own] == ["total_time_ms", "downtime_ms"]
    assert own[0]["verdict"] == "better"
    assert (own[1]["low"] > 2) is not harmless
    assert ("and worse in downtime_ms" in found["reason"]) is not harmless
    if harmless:  # beside one that is faster
        others = [each for each in found["evidence"] if each["metric"] == "total_time_ms"]
        assert min(each["estimate"] for each in others) < own[0]["estimate"]
        assert len(found["evidence"]) == 4


async def test_where_nothing_helps_that_is_the_result(store: Store, tmp_path: Path) -> None:
    async with started(make(store, tmp_path, TunedRunner(best=1.0))) as bench:
        study = await bench.do()
    assert study.kept.state is S.COMPLETED, study.kept.reason
    assert study.kept.result is not None
    found = study.kept.result["found"]
    assert found["finding"] == "no better settings found"
    assert found["within_percent"] >= 5
    assert "draft" not in study.kept.result
    assert store.profiles.list().items == ()


async def test_the_profile_in_use_has_to_be_beaten_too(bench: Bench) -> None:
    await bench.it.profiles.create("fast", {"multifd": True, "multifd_channels": 6})
    study = await bench.do(profile="fast", budget={"runs": 50})
    assert study.spec.current == {"multifd": True, "multifd_channels": 6}
    assert [trial.origin for trial in study.trials][:2] == ["default", "current"]
    assert study.kept.result is not None
    assert study.kept.result["found"]["finding"] == "no better settings found"
    if study.kept.campaign is not None:
        arms = bench.store.campaigns.get(study.kept.campaign).campaign.arms
        assert [arm.name for arm in arms][:2] == ["default", "current"]
        assert arms[2].against == ("default", "current")


async def test_what_cannot_run_is_pruned_before_it_runs(bench: Bench) -> None:
    space = {
        "multifd": {},
        "zero_copy_send": {},
        "multifd_compression": {"choices": ["none", "qpl"]},
    }
    study = await bench.do(space=space)
    pruned = [run for one in study.trials for run in one.runs if run.outcome is TrialOutcome.PRUNED]
    assert pruned
    assert all(run.run_id == "" and run.reason for run in pruned)
    counted(bench.store, study.kept.id)


async def test_a_bandwidth_limit_is_on_every_run_and_breaches_are_counted(bench: Bench) -> None:
    limit = 1 << 20
    study = await bench.do(limits={"bandwidth_bytes_per_s": limit})
    values = [run.values for run in bench.store.studies.runs(study.kept.id)]
    assert study.kept.campaign is not None
    for run in bench.store.campaigns.runs(study.kept.campaign):
        values.append(bench.store.runs.get(run.id).values)
    assert {each["max_bandwidth_bytes_per_s"] for each in values} == {limit}
    assert {each["limit"] for each in study.kept.breaches} == {"bandwidth_bytes_per_s"}
    assert len(study.kept.breaches) == study.used.runs


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


async def test_the_same_order_searches_the_same(bench: Bench) -> None:
    one, two = (await bench.do(), await bench.do())
    first = [(trial.origin, trial.settings) for trial in one.trials][:6]
    assert first == [(trial.origin, trial.settings) for trial in two.trials][:6]


async def test_all_that_the_hosts_offer_is_varied_where_nothing_is_named(bench: Bench) -> None:
    spec = await bench.studies.filled_in(study_json(space="auto", rivals=True))
    assert {"multifd", "multifd_channels", "auto_converge"} <= set(spec.space or {})
    assert not {"postcopy", "tls", "max_bandwidth_bytes_per_s"} & set(spec.space or {})
    assert spec.seed == 7
    assert bench.store.studies.list().items == ()


TARGET = {"vm": "00000000-0000-4000-8000-00000000000a"}


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        ({}, "carries_work"),
        ({"carries_work": True, "spare": [TARGET["vm"]]}, "spared"),
        ({"carries_work": True}, "not_settable"),
    ],
)
async def test_a_running_vm_is_left_alone(
    bench: Bench, limits: dict[str, object], code: str
) -> None:
    cell = {
        "node": "null-co",
        "rw": "randread",
        "block_size_bytes": 4096,
        "iodepth": 1,
        "numjobs": 1,
    }
    scenario = {"kind": "block", "name": "mine/live", "cell": cell, "target": TARGET}
    order = study_json(
        scenario=scenario, objective="maximise iops", space="auto", kvm=None, limits=limits
    )
    with pytest.raises((Blocked, InvalidInput)) as refused:
        await bench.studies.start(order)
    assert [each.code for each in refused.value.problems] == [code]
    assert bench.store.studies.list().items == ()


@pytest.mark.parametrize(
    ("changes", "error", "field"),
    [
        ({"profile": "none"}, NotFound, "profile"),
        ({"objective": "minimise nothing"}, InvalidInput, "objective"),
        ({"budget": {"runs": 5}}, InvalidInput, "budget.runs"),
        ({"scenario": "none/such"}, InvalidInput, "scenario"),
        ({"qemu": "none"}, InvalidInput, "qemu"),
    ],
)
async def test_what_is_wrong_is_named_and_changes_nothing(
    bench: Bench, changes: dict[str, Any], error: type[VmtuneError], field: str
) -> None:
    with pytest.raises(error) as refused:
        await bench.studies.start(study_json(**changes))
    assert field in {each.field for each in refused.value.problems}
    assert bench.store.studies.list().items == ()


async def test_another_machines_studies_are_left_alone(store: Store, tmp_path: Path) -> None:
    store.studies.begin("theirs", {}, "elsewhere")
    async with started(make(store, tmp_path, TunedRunner())) as bench:
        assert bench.it.runner.orders == []
    assert host_name() != "elsewhere"


async def test_progress_tells_where_it_is(bench: Bench) -> None:
    told: list[Any] = []
    with patch.object(bench.it.bus, "progress", lambda *each: told.append(each)):
        study = await bench.do()
    of_study = [data for topic, _, data in told if topic.value == "study"]
    assert {each["phase"] for each in of_study} >= {"searching"}
    shares = [each["share"] for each in of_study]
    assert shares == sorted(shares)
    assert all(0 <= each < 1 for each in shares)
    events = [e for e in bench.store.events.since(0, 1000) if e.topic.value == "study"]
    assert [e.data["state"] for e in events if "state" in e.data] == [
        "queued", "searching", "confirming", "completed",
    ]  # fmt: skip
    assert sum("trial" in e.data for e in events) == study.used.runs
    assert isinstance(study.used, Used)
