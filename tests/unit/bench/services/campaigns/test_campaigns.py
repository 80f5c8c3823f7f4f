"""Campaigns from the order to the verdict, also through deaths of the service."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.support.benchmarks.bench_runs import FakeLook, FakeRunner, small
from tests.support.benchmarks.campaigns import campaign_json
from tests.support.benchmarks.measured import put
from tests.support.benchmarks.records import make_record
from tests.unit.bench.services.runs.run_service import It, assemble
from vmtune.bench.machine import load
from vmtune.bench.machine.environment import host_name
from vmtune.bench.model.campaign.record import CampaignState
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.services.campaigns.campaigns import CampaignService
from vmtune.bench.services.campaigns.job import MAX_ATTEMPTS, CampaignJob
from vmtune.bench.services.campaigns.plan import Course, planned_runs
from vmtune.bench.services.comparisons.comparisons import Asked, ComparisonService
from vmtune.errors import Blocked, InvalidInput, LabError, NotFound, TooLate
from vmtune.stats.model import Verdict
from vmtune.storage import Store
from vmtune.testing.inline_jobs import InlineEngine

S = CampaignState


@dataclass
class Bench:
    """The campaigns, and what is beneath them."""

    it: It
    campaigns: CampaignService

    @property
    def store(self) -> Store:
        return self.it.store

    async def ended(self, id: object) -> S:
        async with asyncio.timeout(60):
            await self.it.jobs.wait(str(id))
        return (await self.campaigns.get(str(id))).record.state

    async def do(self, **changes: Any) -> Any:
        status = await self.campaigns.start(campaign_json(**changes))
        await self.ended(status.record.id)
        return await self.campaigns.get(str(status.record.id))


def make(store: Store, folder: Path, runner: FakeRunner, kvm: bool = False) -> Bench:
    jobs = InlineEngine()
    it = assemble(store, folder, runner, jobs, kvm=kvm)
    job = CampaignJob(store, it.bus, it.profiles, it.runs, jobs)
    job.register()
    return Bench(it, CampaignService(store, it.bus, it.profiles, it.runs, jobs, job))


@asynccontextmanager
async def started(bench: Bench) -> AsyncIterator[Bench]:
    await bench.it.jobs.start()
    await bench.it.runs.resume()
    await bench.campaigns.resume_all()
    try:
        yield bench
    finally:
        await bench.it.jobs.stop()
        await bench.it.bus.drain()


@pytest.fixture
async def bench(store: Store, tmp_path: Path) -> AsyncIterator[Bench]:
    async with started(make(store, tmp_path, FakeRunner())) as made:
        yield made


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0.005)


def whole(store: Store, id: Any) -> None:
    """Each measurement of the plan was made, and counts once; in the order of the plan."""
    record = store.campaigns.get(id)
    runs = [run for run in store.campaigns.runs(id) if run.state.counts]
    planned = planned_runs(record.campaign)
    assert [(r.arm, r.block, r.position) for r in runs] == [
        (p.arm.name, p.block, p.position) for p in planned
    ]


async def test_every_arm_runs_once_in_each_block_after_a_warm_up(bench: Bench) -> None:
    status = await bench.do(blocks=4)
    assert (status.record.state, status.done, status.remaining_s) == (S.COMPLETED, 9, None)
    whole(bench.store, status.record.id)
    runs = bench.store.campaigns.runs(status.record.id)
    assert runs[0].block == 0
    assert Counter((r.arm, r.block) for r in runs[1:]) == {
        (arm, block): 1 for arm in ("stock", "tuned") for block in (1, 2, 3, 4)
    }
    assert bench.it.runner.max_running == 1
    assert {order.kvm for order in bench.it.runner.orders} == {False}
    given = bench.store.runs.get(next(r.id for r in runs if r.arm == "tuned"))
    assert given.values == {"multifd": True}


async def test_the_order_follows_from_the_seed_and_blocks_differ(bench: Bench) -> None:
    one, two = [(await bench.do(blocks=8, seed=3)).record for _ in range(2)]
    three = (await bench.do(blocks=8, seed=4)).record
    orders = [
        [(r.arm, r.block) for r in bench.store.campaigns.runs(c.id)] for c in (one, two, three)
    ]
    assert orders[0] == orders[1] != orders[2]
    firsts = {arm for arm, block in orders[0][1::2]}
    assert firsts == {"stock", "tuned"}
    drawn = await bench.do(seed=None)
    assert drawn.record.campaign.seed is not None


async def test_cells_are_run_apart_and_loads_are_passed_on(bench: Bench) -> None:
    cells = [
        {"name": "calm"},
        {"name": "busy", "host_load": "busy", "values": {"downtime_limit_ms": 9}},
    ]
    with patch("vmtune.bench.services.runs.job.loaded", wraps=load.loaded) as loaded:
        status = await bench.do(cells=cells, blocks=2, warmup_runs=0)
    whole(bench.store, status.record.id)
    runs = bench.store.campaigns.runs(status.record.id)
    assert Counter((r.scenario, r.arm, r.block) for r in runs) == {
        (f"mine/{cell}", arm, block): 1
        for cell in ("calm", "busy") for arm in ("stock", "tuned") for block in (1, 2)
    }  # fmt: skip
    assert Counter(call.args[0].value for call in loaded.call_args_list) == {"idle": 4, "busy": 4}


async def test_profiles_are_fixed_when_it_is_ordered(bench: Bench) -> None:
    await bench.it.profiles.create("fast", {"multifd": True, "multifd_channels": 4})
    bench.it.runner.held = True
    arms = [
        {"name": "stock"},
        {"name": "fast", "profile": "fast", "values": {"multifd_channels": 3}},
    ]
    status = await bench.campaigns.start(campaign_json(arms=arms))
    await asyncio.to_thread(bench.store.profiles.revise, "fast", {"xbzrle": True})
    bench.it.runner.release()
    assert await bench.ended(status.record.id) is S.COMPLETED
    for run in bench.store.campaigns.runs(status.record.id):
        got = bench.store.runs.get(run.id)
        if run.arm == "fast":
            assert (got.profile, got.revision) == ("fast", 1)
            assert got.values == {"multifd": True, "multifd_channels": 3}


async def test_failed_runs_count_and_the_others_go_on(bench: Bench) -> None:
    bench.it.runner.state = RunState.FAILED
    status = await bench.do()
    assert (status.record.state, status.states) == (S.COMPLETED, {RunState.FAILED: 5})


async def test_a_paused_campaign_ends_its_run_and_begins_none(bench: Bench) -> None:
    runner = bench.it.runner
    runner.held = True
    id = str((await bench.campaigns.start(campaign_json())).record.id)
    await runner.begun()
    paused = await bench.campaigns.pause(id)
    assert paused.record.state is S.PAUSED
    assert (await bench.campaigns.pause(id)).record.state is S.PAUSED
    runner.release()
    await until(lambda: runner.ended == 1 and runner.running == 0)
    await asyncio.sleep(0.05)
    assert len(runner.orders) == 1
    assert (await bench.campaigns.resume(id)).record.state is S.RUNNING
    assert await bench.ended(id) is S.COMPLETED
    assert len(runner.orders) == 5
    for ask in (bench.campaigns.pause, bench.campaigns.resume, bench.campaigns.cancel):
        with pytest.raises(TooLate, match="completed"):
            await ask(id)


@pytest.mark.parametrize("paused", [False, True])
async def test_a_cancelled_campaign_ends_with_its_run(bench: Bench, paused: bool) -> None:
    runner = bench.it.runner
    runner.held = True
    status = await bench.campaigns.start(campaign_json())
    id = str(status.record.id)
    await runner.begun()
    if paused:
        await bench.campaigns.pause(id)
        runner.release()
        await until(lambda: runner.ended == 1 and runner.running == 0)
    await bench.campaigns.cancel(id)
    assert await bench.ended(id) is S.CANCELLED
    (run,) = bench.store.campaigns.runs(status.record.id)
    assert run.state is (RunState.COMPLETED if paused else RunState.CANCELLED)
    assert runner.running == 0


async def test_a_run_that_a_person_cancels_is_made_again(bench: Bench) -> None:
    runner = bench.it.runner
    runner.held = True
    status = await bench.campaigns.start(campaign_json())
    await runner.begun()
    (first,) = bench.store.campaigns.runs(status.record.id)
    await bench.it.runs.cancel(first.id)
    await runner.begun()
    runner.release()
    assert await bench.ended(status.record.id) is S.COMPLETED
    whole(bench.store, status.record.id)
    assert len(bench.store.campaigns.runs(status.record.id)) == 6


async def test_a_run_that_never_gets_to_its_end_is_given_up(bench: Bench) -> None:
    bench.it.runner.state = RunState.CANCELLED
    status = await bench.do()
    assert status.record.state is S.FAILED
    assert f"cut short {MAX_ATTEMPTS} times" in status.record.reason
    assert status.states == {RunState.CANCELLED: MAX_ATTEMPTS}


async def test_what_stands_against_a_run_pauses_the_campaign(bench: Bench) -> None:
    look = bench.it.look
    bench.it.runner.held = True
    arms = [{"name": "a", "testbed": "lab"}, {"name": "b", "testbed": "lab"}]
    status = await bench.campaigns.start(campaign_json(arms=arms))
    await bench.it.runner.begun()
    look.error = LabError("no lab is up", remedy="run `vmtune lab up`")
    bench.it.runner.release()
    id = str(status.record.id)
    await until(lambda: bench.store.campaigns.get(status.record.id).state is S.PAUSED)
    assert "no lab is up" in (await bench.campaigns.get(id)).record.reason
    look.error = None
    await bench.campaigns.resume(id)
    assert await bench.ended(id) is S.COMPLETED
    whole(bench.store, status.record.id)


@pytest.mark.parametrize("deaths", [1, 3])
async def test_a_service_that_dies_goes_on_where_it_was(
    store: Store, tmp_path: Path, deaths: int
) -> None:
    id = None
    for _ in range(deaths):
        runner = FakeRunner(held=True)
        bench = make(store, tmp_path, runner)
        await bench.it.jobs.start()
        await bench.it.runs.resume()
        await bench.campaigns.resume_all()
        if id is None:
            id = (await bench.campaigns.start(campaign_json())).record.id
        await runner.begun()
        runner.held = False
        # One run to its end, and the next is cut in its middle.
        runner._go.set()
        runner._go = asyncio.Event()
        runner.held = True
        await runner.begun()
        await bench.it.jobs.stop()
    assert id is not None
    async with started(make(store, tmp_path, FakeRunner())) as bench:
        assert await bench.ended(id) is S.COMPLETED
        whole(store, id)
        states = Counter(run.state for run in store.campaigns.runs(id))
        assert states == {RunState.COMPLETED: 5, RunState.INTERRUPTED: deaths}


async def test_a_paused_campaign_stays_paused_through_a_restart(
    store: Store, tmp_path: Path
) -> None:
    runner = FakeRunner(held=True)
    bench = make(store, tmp_path, runner)
    await bench.it.jobs.start()
    id = (await bench.campaigns.start(campaign_json())).record.id
    await runner.begun()
    await bench.campaigns.pause(str(id))
    await bench.it.jobs.stop()
    async with started(make(store, tmp_path, FakeRunner())) as again:
        await until(lambda: store.campaigns.runs(id)[0].state is RunState.INTERRUPTED)
        await asyncio.sleep(0.05)
        assert again.it.runner.orders == []
        assert (await again.campaigns.get(str(id))).record.state is S.PAUSED
        await again.campaigns.resume(str(id))
        assert await again.ended(id) is S.COMPLETED


async def test_identical_arms_leave_their_noise_floor(bench: Bench) -> None:
    arms = [{"name": "A"}, {"name": "B"}]
    status = await bench.do(blocks=6, arms=arms)
    report = ComparisonService(bench.store).compared(Asked(campaign="mine"))
    (fingerprint,) = {run.environment for run in report.runs}
    floors = bench.store.campaigns.floors([fingerprint])
    assert {f.scenario for f in floors} == {"mine/small"}
    assert "total_time_ms" in {f.floor.metric for f in floors}
    primary = report.cells[0].primary
    assert primary.verdict in (Verdict.EQUIVALENT, Verdict.INCONCLUSIVE)
    assert any("all arms are the same" in note for note in report.notes)
    assert status.record.state is S.COMPLETED


async def test_runs_that_end_as_planned_leave_a_noise_floor_and_a_forecast(bench: Bench) -> None:
    bench.it.runner.state = RunState.PLANNED
    bench.it.runner.record = lambda number: make_record(20, number)
    order = campaign_json(
        blocks=6, arms=[{"name": "a"}, {"name": "b"}], primary_metric="guest_silence_ms"
    )
    await bench.do(**order)
    (fingerprint,) = {run.fingerprint for run in bench.store.runs.list().items}
    floors = bench.store.campaigns.floors([fingerprint])
    assert "guest_silence_ms" in {f.floor.metric for f in floors}
    _, known = await bench.campaigns.forecast_of(order)
    assert "2 of 2" in known.duration_reason
    assert "earlier runs of" in known.noise_reason


async def test_arms_that_differ_leave_none(bench: Bench) -> None:
    await bench.do(blocks=6)
    (fingerprint,) = {run.fingerprint for run in bench.store.runs.list().items}
    assert bench.store.campaigns.floors([fingerprint]) == ()


async def test_progress_tells_how_much_is_left(bench: Bench) -> None:
    told: list[Any] = []
    with patch.object(bench.it.bus, "progress", lambda *each: told.append(each)):
        await bench.do()
    of_campaign = [data for topic, _, data in told if topic.value == "campaign"]
    assert [each["done"] for each in of_campaign] == sorted(each["done"] for each in of_campaign)
    assert {each["total"] for each in of_campaign} == {5}
    assert all(0 <= each["share"] < 1 and each["remaining_s"] >= 0 for each in of_campaign)


async def test_a_forecast_is_made_of_earlier_runs_or_says_that_it_is_assumed(bench: Bench) -> None:
    _, unknown = await bench.campaigns.forecast_of(campaign_json(blocks=10))
    assert (unknown.runs, unknown.noise) == (21, 0.1)
    assert "assumed" in unknown.noise_reason
    assert unknown.duration_reason.startswith("assumed")
    assert unknown.detectable is not None
    assert unknown.detectable > 1.05
    _, few = await bench.campaigns.forecast_of(campaign_json(blocks=5))
    assert few.detectable is None
    bench.it.runner.record = lambda number: make_record(20, number % 3 + 1)
    await bench.do(blocks=6)
    _, known = await bench.campaigns.forecast_of(campaign_json(blocks=10))
    assert "earlier runs of" in known.noise_reason
    assert "2 of 2" in known.duration_reason
    assert known.duration_s < unknown.duration_s


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"blocks": 0}, "blocks", "blocks"),
        ({"scenario": "none/such"}, "scenario", "no scenario"),
        ({"arms": [{"name": "a"}, {"name": "b", "qemu": "none"}]}, "arms.1.qemu", "no QEMU"),
        ({"primary_metric": "converge"}, "primary_metric", "not a metric"),
    ],
)
async def test_what_cannot_be_run_is_refused_and_nothing_is_ordered(
    bench: Bench, changes: Any, field: str, said: str
) -> None:
    with pytest.raises(InvalidInput, match=said) as error:
        await bench.campaigns.start(campaign_json(**changes))
    assert error.value.problems[0].field == field
    assert bench.store.campaigns.list().items == ()


async def test_what_there_is_not_is_not_found(bench: Bench) -> None:
    arms = [{"name": "a"}, {"name": "b", "profile": "none"}]
    for wrong in ({"arms": arms}, {"published": {"reference": "none"}}):
        with pytest.raises(NotFound):
            await bench.campaigns.start(campaign_json(**wrong))
    with pytest.raises(NotFound):
        await bench.campaigns.get("none")
    bench.it.look.version = FakeLook().version
    with pytest.raises(Blocked, match="cannot be run here"):
        await bench.campaigns.start(
            campaign_json(scenario=small(values={"dirty_ring_size_entries": 4096}))
        )
    put(bench.store, "x", [1.0], environment={"host": host_name()})
    assert bench.store.campaigns.list().items == ()


async def test_a_campaign_that_was_completed_in_another_order_is_done(bench: Bench) -> None:
    """Earlier versions ran all arms of a condition next to each other: what they completed keeps
    its runs, each in its place of the present plan, and is compared as before."""
    cells = [{"name": "calm"}, {"name": "busy", "host_load": "busy"}]
    status = await bench.do(blocks=6, cells=cells)
    runs = bench.store.campaigns.runs(status.record.id)
    by_condition = sorted(runs, key=lambda run: (run.block, run.scenario, run.arm))
    place: Counter[int] = Counter()
    old = []
    for run in by_condition:
        place[run.block] += 1
        old.append(replace(run, position=place[run.block] if run.block else run.position))
    assert [run.id for run in old] != [run.id for run in runs]
    course = Course(status.record.campaign, old)
    for planned in planned_runs(status.record.campaign):
        assert course.is_done(planned)
        (run,) = course.attempts(planned)
        assert (run.arm, run.block) == (planned.arm.name, planned.block)
