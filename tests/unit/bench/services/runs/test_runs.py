"""Benchmark runs from the order to the record."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.benchmarks.bench_runs import FakeRunner, small
from tests.support.benchmarks.records import make_record
from tests.unit.bench.services.runs.run_service import SMALL, It, assemble, started
from vmtune.bench.machine.environment import host_name
from vmtune.bench.migration.order import DirectTestbed, LibvirtTestbed
from vmtune.bench.model.campaign.campaign import HostLoad
from vmtune.bench.model.runs.run import RunState, Slot, Testbed
from vmtune.bench.model.runs.series import Series
from vmtune.bench.services.runs.files import whole_run
from vmtune.bench.services.runs.runs import RunRequest
from vmtune.errors import DuplicateName, InvalidInput
from vmtune.hypervisor.linux import cpus
from vmtune.model.host.inventory import Event, EventTopic
from vmtune.model.migration.steps import AfterSeconds, Step, StepAction
from vmtune.services.events import Progress
from vmtune.storage import Store
from vmtune.storage.repositories.bench.run_rows import RunFilter


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


async def test_the_loads_of_a_busy_host_are_recorded_with_the_run(it: It) -> None:
    done = await it.do(RunRequest(small(), host_load=HostLoad.BUSY))
    assert done.state is RunState.COMPLETED
    record = it.store.runs.record(done.id)
    assert record is not None and record.loads is not None
    assert record.loads.kind == "busy"
    assert len(record.loads.processes) == len(cpus.ALL)
    idle = it.store.runs.record((await it.do(SMALL)).id)
    assert idle is not None and idle.loads is None


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
