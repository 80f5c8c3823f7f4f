"""Benchmark runs from the order to the record, also when something breaks on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pytest

from tests.support.bench_runs import FakeLook, FakeRunner, a_program, small
from tests.support.databases import empty_database
from tests.support.records import make_record
from vmtune.bench.machine.environment import host_name
from vmtune.bench.machine.load import LoadEnded, Loads
from vmtune.bench.migration.order import DirectTestbed, LibvirtTestbed
from vmtune.bench.model.campaign.campaign import HostLoad
from vmtune.bench.model.runs.load_record import LoadProcess, LoadRecord
from vmtune.bench.model.runs.run import Run, RunState, Slot, Testbed
from vmtune.bench.model.runs.series import Series
from vmtune.bench.services.runs.files import whole_run
from vmtune.bench.services.runs.job import RunJob
from vmtune.bench.services.runs.live import LiveRuns
from vmtune.bench.services.runs.runs import RunRequest, RunService
from vmtune.bench.services.runs.sites import Testbeds
from vmtune.config.settings import BenchQemu
from vmtune.errors import (
    Blocked,
    CommandRefused,
    DuplicateName,
    InvalidInput,
    LabError,
    NotFound,
    SetupError,
    TooLate,
)
from vmtune.hypervisor.linux import cpus
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.inventory import Event, EventTopic, Host
from vmtune.model.migration.steps import AfterSeconds, Step, StepAction
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.services.events import EventBus, Progress
from vmtune.services.hosts.connections import DriverFactory
from vmtune.services.hosts.hosts import HostService
from vmtune.services.tuning.profiles import ProfileService
from vmtune.storage import Store
from vmtune.storage.repositories.bench.run_rows import RunFilter
from vmtune.testing.inline_jobs import InlineEngine

SMALL = RunRequest(small())


@dataclass
class It:
    """The service, and what is beneath it."""

    store: Store
    bus: EventBus
    profiles: ProfileService
    runner: FakeRunner
    look: FakeLook
    jobs: InlineEngine
    runs: RunService
    swept: list[Path]
    sysctls: dict[str, int]
    hosts: HostService
    live: LiveRuns

    async def ended(self, run: Run) -> Run:
        async with asyncio.timeout(20):
            await self.jobs.wait(str(run.id))
        return self.store.runs.get(run.id)

    async def do(self, request: RunRequest = SMALL) -> Run:
        return await self.ended((await self.runs.start(request)).run)


def no_host(host: Host) -> Driver:
    raise AssertionError(f"there are no hosts: {host}")


def assemble(
    store: Store,
    folder: Path,
    runner: FakeRunner,
    jobs: InlineEngine | None = None,
    make_driver: DriverFactory = no_host,
    kvm: bool = False,
) -> It:
    bus = EventBus(store)
    profiles = ProfileService(store, bus, BUILT_IN)
    program = a_program(folder)
    qemus = {name: BenchQemu(name, program) for name in ("system", "old")}
    look = FakeLook()
    swept: list[Path] = []
    sysctls = {"vm_max_map_count": 262144, "net_core_optmem_max_bytes": 131072}
    testbeds = Testbeds(
        qemus,
        folder / "bench",
        look,
        lambda base, *_others: swept.append(base),
        kvm_usable=lambda: kvm,
        sysctls=lambda: sysctls,
    )
    made = jobs or InlineEngine()
    hosts = HostService(store, bus, make_driver)
    live = LiveRuns(hosts, folder / "live")
    RunJob(store, bus, testbeds, live, runner, write_again_after_s=0.01).register(made)
    runs = RunService(store, bus, profiles, testbeds, live, made)
    return It(store, bus, profiles, runner, look, made, runs, swept, sysctls, hosts, live)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    url = empty_database(tmp_path / "runs.db")
    with Store.open(url) as opened:
        yield opened


@asynccontextmanager
async def started(it: It) -> AsyncIterator[It]:
    await it.jobs.start()
    await it.runs.resume()
    try:
        yield it
    finally:
        await it.jobs.stop()
        await it.bus.drain()


@pytest.fixture
async def it(store: Store, tmp_path: Path) -> AsyncIterator[It]:
    async with started(assemble(store, tmp_path, FakeRunner())) as made:
        yield made


async def test_a_run_is_recorded_with_all_that_belongs_to_it(it: It) -> None:
    queued = await it.runs.start(SMALL)
    assert (queued.run.state, queued.run.host) == (RunState.QUEUED, host_name())
    done = await it.ended(queued.run)
    assert done.state is RunState.COMPLETED
    assert done.scenario == "mine/small"
    assert done.setup["vm"] == {"memory_bytes": 64 << 20, "vcpus": 1}
    assert (done.testbed, done.qemu) == (Testbed.DIRECT, "system")
    assert done.started_at is not None
    assert done.ended_at is not None
    assert done.created_at <= done.started_at <= done.ended_at
    assert done.metrics["converged"] == 1.0
    assert done.metrics["total_time_ms"] == it.store.runs.record(done.id).totals.total_time_ms  # type: ignore[union-attr]  # it has them
    assert done.environment["accelerator"] == "tcg"
    assert done.environment["qemu"]["version"] == "10.0.2"
    assert done.fingerprint
    assert done.conditions["load_1min"] >= 0
    assert it.store.runs.record(done.id) == make_record(20, 1)


async def test_the_runner_gets_the_order_as_it_was_given(it: It, tmp_path: Path) -> None:
    steps = [Step(AfterSeconds(7), StepAction.ABORT)]
    await it.profiles.create("fast", {"multifd": True, "multifd_channels": 4})
    await asyncio.to_thread(
        it.store.profiles.revise, "fast", {"multifd": True, "multifd_channels": 8}, steps=steps
    )
    request = RunRequest(
        small(values={"multifd_channels": 2, "multifd": True, "downtime_limit_ms": 700}),
        {"warmup_s": 3, "values": {"downtime_limit_ms": None}},
        profile="fast",
        values={"multifd_channels": "16", "max_bandwidth_bytes_per_s": "1Gbit/s"},
        qemu="old",
        kvm=False,
        overrides=("optmem_too_low",),
    )
    done = await it.do(request)
    (order,) = it.runner.orders
    values = {"multifd": True, "multifd_channels": 16, "max_bandwidth_bytes_per_s": 119 << 20}
    assert order.effective.values == values == done.values
    assert (order.scenario.warmup_s, order.scenario.steps) == (3, tuple(steps))
    assert (order.kvm, order.overrides) == (False, frozenset({"optmem_too_low"}))
    assert order.testbed == DirectTestbed(tmp_path / "qemu", None, tmp_path / "bench")
    assert (done.profile, done.revision, done.qemu) == ("fast", 2, "old")
    first = await it.do(RunRequest(small(), profile="fast", revision=1))
    assert (first.revision, first.values["multifd_channels"]) == (1, 4)
    assert it.runner.orders[1].scenario.steps == ()


async def test_a_run_in_the_lab_is_one_of_libvirt(it: It) -> None:
    done = await it.do(RunRequest(small(), testbed=Testbed.LAB))
    assert isinstance(it.runner.orders[0].testbed, LibvirtTestbed)
    assert done.testbed is Testbed.LAB
    assert done.environment["network"]["kind"] == "unknown"  # there is no lab


async def test_one_run_at_a_time_in_the_order_of_the_orders(it: It) -> None:
    it.runner.held = True
    orders = [RunRequest(small(name=f"mine/{n}")) for n in range(4)]
    queued = [await it.runs.start(orders[0])]
    await it.runner.begun()
    queued += [await it.runs.start(order) for order in orders[1:]]
    assert it.store.runs.get(queued[0].run.id).state is RunState.RUNNING
    assert [q.ahead for q in queued[1:]] == [1, 2, 3]
    page = await it.runs.list(RunFilter(), None, 10)
    assert [q.ahead for q in page.items] == [3, 2, 1, None]
    it.runner.release()
    for q in queued:
        assert (await it.ended(q.run)).state is RunState.COMPLETED
    assert it.runner.max_running == 1
    assert [order.scenario.name for order in it.runner.orders] == [f"mine/{n}" for n in range(4)]


@pytest.mark.parametrize("state", [RunState.NOT_CONVERGED, RunState.FAILED])
async def test_a_run_without_success_is_kept_with_its_record(it: It, state: RunState) -> None:
    it.runner.state, it.runner.failure = state, "QEMU: no route to host"
    done = await it.do()
    assert (done.state, done.failure) == (state, "QEMU: no route to host")
    assert it.store.runs.record(done.id) == make_record(20, 1)
    assert "total_time_ms" not in done.metrics
    assert done.metrics.get("converged") == (0.0 if state.counts else None)


async def test_the_loads_of_a_busy_host_are_recorded_with_the_run(it: It) -> None:
    done = await it.do(RunRequest(small(), host_load=HostLoad.BUSY))
    assert done.state is RunState.COMPLETED
    record = it.store.runs.record(done.id)
    assert record is not None and record.loads is not None
    assert record.loads.kind == "busy"
    assert len(record.loads.processes) == len(cpus.ALL)
    idle = it.store.runs.record((await it.do(SMALL)).id)
    assert idle is not None and idle.loads is None


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


async def test_runs_of_another_machine_are_left_to_it(store: Store, tmp_path: Path) -> None:
    theirs = store.runs.begin(scenario="x/y", setup=small(), values={}, host="another")
    async with started(assemble(store, tmp_path, FakeRunner())) as it:
        mine = await it.runs.start(SMALL)
        assert mine.ahead == 0
        await it.ended(mine.run)
    assert store.runs.get(theirs.id).state is RunState.QUEUED


async def test_what_is_told_of_a_run(it: It) -> None:
    told: list[Event | Progress] = []

    async def listen() -> None:
        async for message in it.bus.subscribe():
            told.append(message)

    listening = asyncio.create_task(listen())
    await asyncio.sleep(0)
    slot = Slot(uuid4(), "tuned", 2, 1)
    done = await it.do(RunRequest(small(), slot=slot))
    await it.bus.drain()
    listening.cancel()
    of_run = [m for m in told if m.subject == str(done.id)]
    assert all(m.topic is EventTopic.RUN for m in of_run)
    events = [m.data for m in of_run if isinstance(m, Event)]
    assert [e["state"] for e in events] == ["queued", "running", "completed"]
    assert all(e["campaign"] == str(slot.campaign) and e["arm"] == "tuned" for e in events)
    warm_up, migrating = [m.data for m in of_run if isinstance(m, Progress)]
    assert (warm_up["share"], warm_up["phase"], warm_up["at_ms"]) == (0.25, "warm-up", 500)
    assert (migrating["share"], migrating["phase"], migrating["at_ms"]) == (0.5, "migrating", 3000)
    assert migrating["iteration"] == 1
    assert done.slot == slot


async def test_an_id_is_taken_once(it: It) -> None:
    given = uuid4()
    assert (await it.do(RunRequest(small(), id=given))).id == given
    with pytest.raises(DuplicateName):
        await it.runs.start(RunRequest(small(), id=given))
    assert len(it.runner.orders) == 1


@pytest.mark.parametrize(
    ("request_", "field", "code"),
    [
        (RunRequest("nonsense"), "scenarios.0", "unknown_scenario"),
        (RunRequest("plain"), "scenario", "not_one_scenario"),
        (RunRequest({"name": "x"}), "scenario.name", "invalid_name"),
        (RunRequest(small(vm={"vcpus": 0})), "scenario.vm.vcpus", "invalid_value"),
        (RunRequest(small(), {"warmup": 1}), "changes.warmup", "unknown_field"),
        (RunRequest(small(), values={"multifd_chanels": 2}), "values.multifd_chanels", ""),
        (RunRequest(small(title="\ud800")), "scenario", "no_json"),
        (RunRequest(small(), qemu="../../bin/sh"), "qemu", "unknown_qemu"),
        (RunRequest(small(), revision=2), "revision", ""),
        (RunRequest(small(), profile="none"), "profile", ""),
    ],
)
async def test_a_bad_order_is_refused_and_changes_nothing(
    it: It, request_: RunRequest, field: str, code: str
) -> None:
    with pytest.raises((InvalidInput, NotFound)) as caught:
        await it.runs.start(request_)
    problem = caught.value.problems[0]
    assert problem.field == field
    assert not code or problem.code == code
    assert it.store.runs.list().items == ()


async def test_what_this_machine_cannot_do_is_refused_with_the_reason(it: It) -> None:
    ring = small(values={"dirty_ring_size_entries": 4096})
    with pytest.raises(Blocked, match="it needs KVM") as caught:
        await it.runs.start(RunRequest(ring))
    assert caught.value.problems[0].code == "not_applicable"
    it.look.error = CommandRefused("it does not start")
    with pytest.raises(CommandRefused):
        await it.runs.start(RunRequest(small(), kvm=True))
    assert it.store.runs.list().items == ()


async def test_a_machine_is_looked_at_once(it: It, tmp_path: Path) -> None:
    for _ in range(3):
        await it.do()
    assert it.look.looked == 1
    a_program(tmp_path)  # replaced: its time of change is another
    await it.do()
    assert it.look.looked == 2


async def test_what_an_operator_mends_counts_at_once(it: It) -> None:
    it.sysctls["net_core_optmem_max_bytes"] = 4096
    request = RunRequest(small(values={"multifd": True, "zero_copy_send": True}))
    with pytest.raises(Blocked, match="optmem"):
        await it.runs.start(request)
    it.sysctls["net_core_optmem_max_bytes"] = 1 << 20
    assert (await it.do(request)).state is RunState.COMPLETED
    assert it.look.looked == 1


async def test_a_lab_is_looked_at_each_time(it: It) -> None:
    lab = RunRequest(small(), testbed=Testbed.LAB)
    await it.do(lab)
    it.look.error = LabError("no lab is up")
    with pytest.raises(LabError):
        await it.runs.start(lab)
    assert it.look.looked == 2
    assert isinstance(it.look.testbed, LibvirtTestbed)
    assert len(it.store.runs.list().items) == 1


async def test_a_run_comes_whole_once_it_has_ended(it: It) -> None:
    it.runner.held = True
    queued = await it.runs.start(SMALL)
    await it.runner.begun()
    with pytest.raises(InvalidInput, match="the run is running"):
        whole_run(it.store, queued.run.id)
    it.runner.release()
    done = await it.ended(queued.run)
    whole = whole_run(it.store, done.id)
    assert whole.record == make_record(20, 1)
    assert whole.environment == done.environment
    details = await it.runs.get(done.id)
    assert details.lengths[Series.SAMPLES] == 20
    assert details.head is not None
    page = await it.runs.series(done.id, Series.SAMPLES, None, 5)
    assert page.items == make_record(20, 1).samples[:5]
    assert await it.runs.environment(done.fingerprint) == done.environment
