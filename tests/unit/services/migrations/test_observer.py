"""Migrations that vmtune did not start: found, recorded, tuned where that is still possible."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from tests.support.simulated.fakes import NEWEST, OLDEST, VM
from tests.support.simulated.world import World, assemble, world
from vmtune.bench.model.runs.run import RunState
from vmtune.engine import dirty_probe, observed
from vmtune.engine.steps.executor import SHADOW
from vmtune.errors import Conflict, VmtuneError
from vmtune.forecast.held import KeptForecast
from vmtune.hypervisor.protocol import Driver, DriverEvent, EventKind
from vmtune.model.host.facts import VmState
from vmtune.model.migration.controller_record import StepEffect
from vmtune.model.migration.forecast_basis import Basis
from vmtune.model.migration.observed import BEGUN_WITHOUT, missing_flags
from vmtune.model.migration.record import AbortState, Migration, MigrationState, QemuStatus, Trigger
from vmtune.model.plan.changes import Change
from vmtune.model.plan.outcome import ApplicationState, Status
from vmtune.model.profile import Target
from vmtune.services.tuning.profiles import DesiredValues
from vmtune.testing.fake.driver import FakeDriver
from vmtune.testing.fake.qemu import DIRTIED_BYTES_PER_S, Fault, FaultKind
from vmtune.testing.inline_jobs import InlineEngine


@pytest.fixture(params=[OLDEST, NEWEST])
async def it(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path, request.param) as made, watching(made):
        yield made


@asynccontextmanager
async def watching(it: World) -> AsyncIterator[None]:
    """The observer at work, its hosts connected."""
    for driver in it.drivers.values():
        with suppress(VmtuneError):
            await driver.list_vms()
    await it.observer.start()
    await asyncio.sleep(0.01)
    try:
        yield
    finally:
        await it.observer.close()


def begin(it: World, converges: bool = False) -> None:
    """What somebody else does: vmtune's drivers know nothing of it."""
    it.waiting.answer("migrate-incoming", {"uri": "tcp:127.0.0.1:0"})
    it.source.parameters["max-bandwidth"] = 0 if converges else DIRTIED_BYTES_PER_S
    it.source.answer("migrate", {"uri": it.waiting.listening})


def records(it: World) -> tuple[Migration, ...]:
    return tuple(it.store.migrations.list(vm=VM).items)


async def found(it: World) -> Migration:
    await it.until(lambda: bool(records(it)))
    (record,) = records(it)
    return record


async def ended(it: World, record: Migration) -> Migration:
    await it.until(lambda: it.store.migrations.get(record.id).state.ended)
    return it.store.migrations.get(record.id)


async def assigned(it: World, **values: object) -> None:
    await it.profile("p", **values)
    await it.assignments.add(Target.DEFAULT, "", "p")


def statuses(record: Migration) -> dict[str, Status]:
    return {o.tunable: o.status for o in record.outcomes}


async def settled(it: World, record: Migration) -> Migration:
    """Once everything that can be applied has been."""

    def done() -> bool:
        now = statuses(it.store.migrations.get(record.id))
        return bool(now) and Status.PENDING_MIGRATION not in now.values()

    await it.until(done)
    return it.store.migrations.get(record.id)


async def test_it_is_recorded_like_any_other(it: World) -> None:
    begin(it)
    record = await found(it)
    assert (record.trigger, record.source) == (Trigger.OBSERVED, "a")
    assert (record.vm_name, record.profile, record.wanted) == ("vm", "", {})
    assert it.store.known_vms.counts(["a", "b"]) == {"a": 1, "b": 0}
    await it.until(lambda: it.store.migrations.get(record.id).state is MigrationState.ACTIVE)
    it.source.parameters["max-bandwidth"] = 0
    done = await ended(it, record)
    assert (done.state, done.failure, done.destination) == (MigrationState.COMPLETED, "", "b")
    await it.until(lambda: it.store.known_vms.counts(["a", "b"]) == {"a": 0, "b": 1})
    assert done.totals is not None
    assert done.totals.downtime_ms == 12
    assert done.started_at
    assert done.active_at
    assert done.ended_at
    assert done.started_at <= done.active_at <= done.ended_at
    samples = it.store.migrations.samples(record.id)
    assert {s.status for s in samples} >= {QemuStatus.ACTIVE, QemuStatus.COMPLETED}


async def test_one_whose_vm_was_measured_has_a_forecast_of_before(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dirty_probe, "WINDOWS_MS", (50, 60))
    monkeypatch.setattr(dirty_probe, "WHOLE_SECONDS_MS", (1000,))
    forecasts = it.migrations.intents.forecasts
    await forecasts.forecast(VM, "b", throughput_bytes_per_s=DIRTIED_BYTES_PER_S * 4)
    begin(it)
    record = await found(it)

    def before() -> list[KeptForecast]:
        kept = it.store.forecasts.of(record.id)
        return [one for one in kept if one.basis is Basis.BEFORE]

    await it.until(lambda: bool(before()))
    (kept,) = before()
    assert kept.made_at == record.started_at
    assert kept.inputs["throughput_bytes_per_s"][1] <= DIRTIED_BYTES_PER_S


async def test_one_whose_vm_was_not_measured_says_so(it: World) -> None:
    begin(it)
    record = await found(it)
    forecasts = it.migrations.intents.forecasts
    await it.until(lambda: forecasts.left_out(record.id).code == "not_measured_before")
    assert Basis.BEFORE not in {one.basis for one in it.store.forecasts.of(record.id)}


async def test_without_a_profile_nothing_is_set(it: World) -> None:
    before = len(it.source.commands)
    begin(it, converges=True)
    done = await ended(it, await found(it))
    assert (done.outcomes, done.journal, done.problems) == ((), (), ())
    sent = {command for command, _ in it.source.commands[before:]}
    assert not any("set" in command or "calc" in command for command in sent)


async def test_what_can_still_be_set_is_set_and_the_rest_is_told(it: World) -> None:
    await assigned(
        it, multifd=True, multifd_channels=4, downtime_limit_ms=700,
        auto_converge=True, max_cpu_throttle_percent=70,
        max_bandwidth_bytes_per_s=DIRTIED_BYTES_PER_S // 2,
    )  # fmt: skip
    begin(it)
    done = await settled(it, await found(it))
    assert statuses(done) == {
        "multifd": Status.REJECTED,
        "multifd_channels": Status.REJECTED,
        "auto_converge": Status.REJECTED,
        # It is set, and has no effect.
        "max_cpu_throttle_percent": Status.REJECTED,
        "max_bandwidth_bytes_per_s": Status.EFFECTIVE,
        "downtime_limit_ms": Status.EFFECTIVE,
    }
    assert it.source.parameters["downtime-limit"] == 700
    assert it.source.parameters["multifd-channels"] == 2
    assert {change.tunable: change.value for change in done.journal} == {
        "max_bandwidth_bytes_per_s": DIRTIED_BYTES_PER_S,
        "max_cpu_throttle_percent": 99,
        "downtime_limit_ms": 300,
    }
    # Without libvirt no flag would have helped.
    assert missing_flags(done.problems) == []


async def test_what_was_set_beforehand_is_effective(it: World) -> None:
    await assigned(it, auto_converge=True, throttle_trigger_threshold_percent=60, xbzrle=True)
    it.source.capabilities["auto-converge"] = True
    it.source.parameters["throttle-trigger-threshold"] = 60
    begin(it)
    done = await settled(it, await found(it))
    assert statuses(done) == {
        "auto_converge": Status.EFFECTIVE,
        "throttle_trigger_threshold_percent": Status.EFFECTIVE,
        "xbzrle": Status.REJECTED,
    }


async def test_what_vmtune_set_is_put_back_where_it_does_not_complete(it: World) -> None:
    await assigned(it, downtime_limit_ms=700)
    it.source.capabilities["xbzrle"] = True  # whose migration it is has set that
    begin(it)
    record = await settled(it, await found(it))
    it.source.fail("the destination hung up")
    done = await ended(it, record)
    assert (done.state, done.failure) == (MigrationState.FAILED, "the destination hung up")
    assert it.source.parameters["downtime-limit"] == 300
    assert it.source.capabilities["xbzrle"] is True
    assert done.problems == ()


async def test_one_that_somebody_aborts_is_cancelled(it: World) -> None:
    begin(it)
    record = await found(it)
    it.source.answer("migrate_cancel", {})
    done = await ended(it, record)
    assert (done.state, done.abort) == (MigrationState.CANCELLED, AbortState.NONE)


async def test_it_can_be_aborted_and_changed(it: World) -> None:
    begin(it)
    record = await found(it)
    await it.until(lambda: it.store.migrations.get(record.id).state is MigrationState.ACTIVE)
    await it.migrations.change(record.id, {"downtime_limit_ms": 444})
    assert it.source.parameters["downtime-limit"] == 444
    await it.migrations.abort(record.id)
    done = await ended(it, record)
    assert (done.state, done.abort) == (MigrationState.CANCELLED, AbortState.ABORTED)
    assert it.source.parameters["downtime-limit"] == 300


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
async def test_one_that_is_over_at_the_first_look_is_recorded_as_it_ended(
    it: World, end: str
) -> None:
    begin(it, converges=True)
    if end == "failed":
        it.source.fail("no route")
    elif end == "cancelled":
        it.source.answer("migrate_cancel", {})
    while it.source.outgoing.status.running:
        it.source.step()
    done = await ended(it, await found(it))
    assert done.state.value == end
    assert done.failure == {"completed": "", "failed": "no route"}.get(end, done.failure)
    assert (done.totals is not None) is (end == "completed")


async def test_vmtunes_own_are_not_observed_twice(it: World) -> None:
    done = await it.migrate()
    assert done.state is MigrationState.COMPLETED
    await it.observer.close()
    assert [record.trigger for record in records(it)] == [Trigger.VMTUNE]


async def test_a_late_event_of_vmtunes_own_finds_nothing(it: World) -> None:
    done = await it.migrate()
    assert done.ended_at is not None
    reported_at = done.created_at + (done.ended_at - done.created_at) / 2
    await it.observer._inspect(("a", VM), it.drivers["a"], reported_at, began=True, first=True)
    assert [record.trigger for record in records(it)] == [Trigger.VMTUNE]


async def test_one_that_was_looked_at_just_after_it_arrived_can_leave_again(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = it.drivers["a"]

    async def arriving_still(vm: UUID) -> VmState:
        return VmState.INCOMING

    with monkeypatch.context() as late:
        late.setattr(driver, "vm_state", arriving_still)
        await it.observer._inspect(("a", VM), driver, datetime.now(UTC), began=True, first=True)
    driver._hub.publish(DriverEvent(EventKind.VM_STATE, VM, VmState.RUNNING.value))
    begin(it, converges=True)
    done = await ended(it, await found(it))
    assert (done.state, done.source) == (MigrationState.COMPLETED, "a")


async def test_an_application_that_is_under_way_is_waited_for(it: World) -> None:
    application = it.store.applications.begin(
        vm=VM, host="a", profile="p", revision=1, wanted={}, best_effort=False, journal=()
    )
    begin(it)
    await asyncio.sleep(0.1)
    assert records(it) == ()
    it.store.applications.finish(application.id, ApplicationState.APPLIED, (), ())
    assert (await found(it)).trigger is Trigger.OBSERVED


async def test_a_benchmark_of_the_vm_is_waited_for(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = {"kind": "block", "target": {"vm": str(VM)}}
    run = it.store.runs.begin(scenario="block/x", setup=setup, values={})
    looks = 0
    have = it.store.runs.have

    def counted(vm: UUID) -> bool:
        nonlocal looks
        looks += 1
        return have(vm)

    monkeypatch.setattr(it.store.runs, "have", counted)
    began = time.monotonic()
    begin(it)
    await it.until(lambda: looks > 0)
    await asyncio.sleep(0.1)
    looked, passed_s = looks, time.monotonic() - began
    assert records(it) == ()
    assert looked <= 1 + passed_s / 0.5, "once in half a second, and not again and again"
    it.store.runs.finish(run.id, RunState.CANCELLED)
    assert (await found(it)).trigger is Trigger.OBSERVED


async def test_one_that_began_unheard_is_found_at_the_next_connection(it: World) -> None:
    it.source.notify = lambda name, data: None
    begin(it)
    it.source.step()
    await asyncio.sleep(0.05)
    assert records(it) == ()
    it.drivers["a"]._hub.publish(DriverEvent(EventKind.CONNECTED, None, ""))
    record = await found(it)
    assert record.started_at is not None
    # As long ago as QEMU says, by its own clock.
    assert record.started_at < datetime.now(UTC)
    it.source.parameters["max-bandwidth"] = 0
    assert (await ended(it, record)).state is MigrationState.COMPLETED


async def test_a_destination_that_is_no_host_of_vmtunes_is_unknown(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        await it.hosts.remove("b")
        async with watching(it):
            begin(it)
            record = await found(it)
            assert record.destination == ""
            it.source.parameters["max-bandwidth"] = 0
            done = await ended(it, record)
            assert (done.state, done.destination) == (MigrationState.COMPLETED, "")
            assert done.totals is not None


async def test_a_host_that_is_added_is_watched_and_a_removed_one_is_not(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        await it.hosts.remove("a")
        it.drivers["a"] = FakeDriver([it.source], "a")  # the other one is closed for good
        async with watching(it):
            await it.hosts.add("a", "qmp+unix:///fake/a")
            await it.drivers["a"].list_vms()
            begin(it)
            record = await found(it)
            it.source.answer("migrate_cancel", {})
            await ended(it, record)
            await it.hosts.remove("a")
            assert "a" not in it.observer._watching


async def test_killed_in_between_it_is_gone_on_with(it: World) -> None:
    await assigned(it, downtime_limit_ms=700)
    begin(it)
    record = await settled(it, await found(it))
    await it.jobs.stop()
    await it.observer.close()
    again = assemble(it.store, it.drivers, lambda host: it.drivers[host.name], InlineEngine())
    await again.jobs.start()
    async with watching(again):
        it.source.fail("it broke")
        done = await ended(it, record)
    await again.jobs.stop()
    assert (done.state, done.failure) == (MigrationState.FAILED, "it broke")
    assert it.source.parameters["downtime-limit"] == 300
    assert len(records(it)) == 1


async def test_killed_before_anything_was_set_it_is_set_by_the_next(it: World) -> None:
    await assigned(it, downtime_limit_ms=700)
    profile = it.store.profiles.get("p")
    record = it.store.migrations.begin(
        vm=VM, vm_name="vm", source="a", destination="", trigger=Trigger.OBSERVED, profile="p",
        revision=profile.current.number, wanted=profile.current.values,
        state=MigrationState.STARTING, started_at=datetime.now(UTC),
    )  # fmt: skip
    await it.observer.close()
    begin(it)
    again = assemble(it.store, it.drivers, lambda host: it.drivers[host.name], InlineEngine())
    await again.jobs.start()
    async with watching(again):
        done = await settled(it, record)
        assert statuses(done) == {"downtime_limit_ms": Status.EFFECTIVE}
        assert done.destination == "b"
        it.source.answer("migrate_cancel", {})
        await ended(it, record)
    await again.jobs.stop()


async def test_the_profiles_steps_are_carried_out(it: World) -> None:
    steps = [{"when": {"after_iterations": 2}, "then": {"set": {"max_bandwidth_bytes_per_s": 0}}}]
    await it.profiles.create("p", {}, steps=steps)
    await it.assignments.add(Target.DEFAULT, "", "p")
    begin(it)
    done = await ended(it, await found(it))
    assert done.state is MigrationState.COMPLETED
    assert [(s.number, s.effect) for s in done.step_records] == [(0, StepEffect.DONE)]


async def test_its_profiles_intent_is_only_told(it: World) -> None:
    goals = {"max_silence_ms": 500, "deadline_s": 60, "max_slowdown_percent": 20}
    await it.profiles.create("p", {"announce_rounds": 7}, intent=goals)
    await it.assignments.add(Target.DEFAULT, "", "p")
    begin(it)
    record = await found(it)
    assert record.intent is not None
    assert record.intent.shadow
    assert {"downtime_limit_ms", "auto_converge"} <= set(record.intent.chosen)
    assert "the guest was not measured" in record.intent.forecast
    assert record.wanted == {"announce_rounds": 7}
    limit = it.source.parameters["downtime-limit"]

    def told() -> bool:
        return any(each.steering for each in it.store.migrations.get(record.id).step_records)

    await it.until(told)
    it.source.parameters["max-bandwidth"] = 0
    done = await ended(it, record)
    steered = [each for each in done.step_records if each.steering]
    assert {each.effect for each in steered} == {StepEffect.REFUSED}
    assert {each.detail for each in steered} == {SHADOW}
    assert it.source.parameters["downtime-limit"] == limit


async def test_a_step_sets_its_value_after_the_profiles(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = observed.set_each

    async def slowly(driver: Driver, vm: UUID, changes: list[Change]) -> dict[str, str]:
        await asyncio.sleep(0.5)
        return await at_once(driver, vm, changes)

    monkeypatch.setattr(observed, "set_each", slowly)
    steps = [{"when": {"after_iterations": 1}, "then": {"set": {"downtime_limit_ms": 444}}}]
    await it.profiles.create("p", {"downtime_limit_ms": 700}, steps=steps)
    await it.assignments.add(Target.DEFAULT, "", "p")
    begin(it)
    record = await found(it)
    await settled(it, record)

    def effects() -> list[StepEffect]:
        return [s.effect for s in it.store.migrations.get(record.id).step_records]

    await it.until(lambda: effects() == [StepEffect.DONE])
    assert it.source.parameters["downtime-limit"] == 444
    it.source.answer("migrate_cancel", {})
    await ended(it, record)


async def test_the_reaper_runs_from_when_it_is_found(tmp_path: Path) -> None:
    async with world(tmp_path, ring_entries=4096) as it, watching(it):
        await assigned(it, reaper_policy="predict")
        begin(it)
        record = await found(it)
        await it.until(lambda: it.store.migrations.get(record.id).state is MigrationState.ACTIVE)
        await it.until(lambda: it.source.ring.measurements > 2)
        it.source.parameters["max-bandwidth"] = 0
        done = await ended(it, record)
        assert done.reaper is not None
        assert done.reaper.round_count > 0
        assert statuses(done) == {"reaper_policy": Status.EFFECTIVE}
        assert "found" in done.outcomes[0].reason


async def test_a_profile_that_cannot_be_chosen_is_told_and_it_is_only_recorded(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def tie(*_: object) -> DesiredValues:
        raise Conflict("two selectors tie", field="vm", code="tie")

    monkeypatch.setattr(it.assignments, "choose", tie)
    begin(it, converges=True)
    done = await ended(it, await found(it))
    assert (done.state, done.profile) == (MigrationState.COMPLETED, "")
    assert [problem.code for problem in done.problems] == ["tie"]


async def test_a_fault_while_applying_does_not_end_the_recording(it: World) -> None:
    await assigned(it, downtime_limit_ms=700)
    it.source.faults += [
        Fault(FaultKind.REFUSE, "migrate-set-parameters", nth, "not now") for nth in range(1, 20)
    ]
    begin(it)
    done = await settled(it, await found(it))
    assert statuses(done) == {"downtime_limit_ms": Status.REJECTED}
    assert done.outcomes[0].reason == "not now"
    assert BEGUN_WITHOUT not in [problem.code for problem in done.problems]
    it.source.parameters["max-bandwidth"] = 0
    assert (await ended(it, done)).state is MigrationState.COMPLETED
