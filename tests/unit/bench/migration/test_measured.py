"""How a run's migration is judged, by what a driver says: also what no QEMU does on demand."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.examples.facts import VM_UUID, direct_host, vm
from tests.support.examples.samples import make_samples
from vmtune.bench.migration.guest_listener import GuestListener
from vmtune.bench.migration.measured import MeasuredMigration, Verdict, plan_run
from vmtune.bench.migration.order import RunOrder
from vmtune.bench.migration.recorder import Recorder
from vmtune.bench.migration.stage import Side
from vmtune.bench.model.runs.run import HostSide, RunState
from vmtune.bench.model.runs.send_record import SendCounts
from vmtune.bench.model.scenario.migration import Scenario
from vmtune.errors import Blocked, CommandRefused, HostUnreachable, NotFound, TooLate, VmtuneError
from vmtune.model.host.facts import VmState
from vmtune.model.migration.record import QemuStatus, Snapshot, Totals
from vmtune.model.migration.steps import AfterIterations, Step, StepAction
from vmtune.model.plan.outcome import Status

TOTALS = Totals(500, 30, 5, 1000, 2)
LOOK = replace(make_samples(1)[0], status=QemuStatus.ACTIVE)
ACTIVE = Snapshot(QemuStatus.ACTIVE, replace(LOOK, iteration=1))
COMPLETED = Snapshot(QemuStatus.COMPLETED, totals=TOTALS)
Says = Snapshot | VmtuneError


class Handle:
    """A migration that has ended as the test says, or not yet."""

    def __init__(self, end: VmtuneError | bool) -> None:
        self.end = end

    begun = True

    @property
    def done(self) -> bool:
        return self.end is not False

    async def wait(self) -> None:
        if self.end is False:
            await asyncio.Event().wait()
        if isinstance(self.end, VmtuneError):
            raise self.end


class Host:
    """A driver that says one thing after the other, and the last for ever."""

    def __init__(self, *says: Says, end: VmtuneError | bool = True, refuses: bool = False) -> None:
        self.says = list(says)
        self.handle = Handle(end)
        self.refuses = refuses
        self.arrived: Totals | None = None
        self.abort: VmtuneError | None = None
        self.done: list[str] = []
        self.paused = False

    async def vm_facts(self, _: Any) -> Any:
        return vm()

    async def host_facts(self) -> Any:
        return direct_host()

    async def read(self, _: Any, names: Any) -> Mapping[str, Any]:
        readings = vm().readings
        return {name: readings[name] for name in names if name in readings}

    async def start_migration(self, _: Any, __: Any) -> Handle:
        if self.refuses:
            raise CommandRefused("no")
        return self.handle

    async def migration(self, _: Any, at_ms: int = 0) -> Snapshot:
        said = self.says.pop(0) if len(self.says) > 1 else self.says[0]
        if isinstance(said, VmtuneError):
            raise said
        return said

    async def completed(self, _: Any) -> Totals | None:
        return self.arrived

    async def abort_migration(self, _: Any) -> None:
        self.done.append("abort")
        if self.abort is not None:
            raise self.abort

    async def vm_state(self, _: Any) -> VmState:
        return VmState.PAUSED if self.paused else VmState.RUNNING

    async def pause(self, _: Any) -> None:
        self.done.append("pause")
        self.paused = True

    async def resume(self, _: Any) -> None:
        self.done.append("resume")
        self.paused = False

    async def events(self) -> AsyncGenerator[Any, None]:
        await asyncio.Event().wait()
        yield


class FakeSends:
    """Counters that a QEMU may have, and that end with it."""

    def __init__(self, *counts: SendCounts | VmtuneError) -> None:
        self.counts = list(counts)

    async def prepare(self) -> bool:
        return bool(self.counts)

    async def read(self) -> SendCounts:
        found = self.counts.pop(0) if len(self.counts) > 1 else self.counts[0]
        if isinstance(found, VmtuneError):
            raise found
        return found


class FakeStage:
    """Two such hosts, and a guest that says nothing."""

    def __init__(self, listener: GuestListener, source: Host) -> None:
        self.vm, self.kvm, self.listener = VM_UUID, False, listener
        self.here, self.there = source, Host(Snapshot(QemuStatus.NONE))
        self.source: Any = Side("source", source)  # type: ignore[arg-type] # all that is needed
        self.destination: Any = Side("destination", self.there)  # type: ignore[arg-type]
        self.traced: list[bool] = []
        self.sends: Any = FakeSends()

    def pid(self, side: HostSide) -> int | None:
        return None

    def last_words(self, side: HostSide) -> str:
        return ""

    async def trace_full_rings(self, on: bool) -> None:
        self.traced.append(on)

    async def full_rings(self) -> int:
        return 42


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[GuestListener]:
    made = GuestListener(tmp_path, beat_ms=0)
    yield made
    made.close()


class Made:
    """A migration to measure."""

    def __init__(self, stage: FakeStage, scenario: Scenario) -> None:
        self.stage = stage
        self.recorder = Recorder(stage, 0.0)
        order = RunOrder(scenario, sample_hz=200)
        self.migration = MeasuredMigration(order, scenario, stage, self.recorder, lambda _: None)
        self.scenario = scenario

    async def verdict(self) -> Verdict:
        plan = await plan_run(self.stage, self.scenario.values, frozenset())
        async with asyncio.timeout(60):
            return await self.migration.run(plan)


def made(listener: GuestListener, source: Host, **fields: Any) -> Made:
    return Made(FakeStage(listener, source), Scenario("test/one", **fields))


async def test_completed_as_the_source_says(listener: GuestListener) -> None:
    it = made(listener, Host(ACTIVE, COMPLETED))
    assert await it.verdict() == Verdict(RunState.COMPLETED)
    assert it.recorder.totals == TOTALS
    assert len(it.recorder.samples) == 1
    assert it.recorder.ended is not None


async def test_gone_and_arrived_is_completed_with_the_destinations_figures(
    listener: GuestListener,
) -> None:
    it = made(listener, Host(ACTIVE, NotFound("gone")))
    it.stage.there.arrived = TOTALS
    assert await it.verdict() == Verdict(RunState.COMPLETED)
    assert it.recorder.totals == TOTALS


async def test_gone_and_not_arrived_is_failed_in_the_starters_words(
    listener: GuestListener,
) -> None:
    it = made(listener, Host(ACTIVE, NotFound("gone"), end=CommandRefused("operation failed")))
    assert await it.verdict() == Verdict(RunState.FAILED, "operation failed")


async def test_a_source_that_is_gone_without_a_word_has_ended(listener: GuestListener) -> None:
    it = made(listener, Host(ACTIVE, NotFound("gone")))
    assert await it.verdict() == Verdict(RunState.FAILED, "the source's QEMU has ended")


async def test_failed_in_qemus_words(listener: GuestListener) -> None:
    failed = Snapshot(QemuStatus.FAILED, error="Unable to write to socket")
    it = made(listener, Host(ACTIVE, failed, end=CommandRefused("migration failed")))
    assert await it.verdict() == Verdict(RunState.FAILED, "Unable to write to socket")


async def test_cancelled_by_somebody_else_says_nothing_of_convergence(
    listener: GuestListener,
) -> None:
    cancelled = Snapshot(QemuStatus.CANCELLED)
    it = made(listener, Host(ACTIVE, cancelled, end=CommandRefused("cancelled")))
    assert await it.verdict() == Verdict(RunState.FAILED, "somebody cancelled the migration")


BEYOND = Snapshot(QemuStatus.ACTIVE, replace(LOOK, iteration=6))


async def test_the_limit_of_iterations_is_not_reached_by_the_last_of_them(
    listener: GuestListener,
) -> None:
    it = made(listener, Host(BEYOND, COMPLETED), max_iterations=6)
    assert (await it.verdict()).state is RunState.COMPLETED
    assert it.stage.here.done == []


async def test_beyond_the_limit_it_is_cancelled_once(listener: GuestListener) -> None:
    source = Host(BEYOND, BEYOND, BEYOND, Snapshot(QemuStatus.CANCELLED), end=CommandRefused("-"))
    it = made(listener, source, max_iterations=5)
    verdict = await it.verdict()
    assert verdict == Verdict(RunState.NOT_CONVERGED, "it did not converge within 5 iterations")
    assert source.done == ["abort"]


async def test_one_that_is_meant_to_end_at_its_limit_has_ended_as_planned(
    listener: GuestListener,
) -> None:
    source = Host(BEYOND, BEYOND, BEYOND, Snapshot(QemuStatus.CANCELLED), end=CommandRefused("-"))
    it = made(listener, source, max_iterations=5, ends_at_limit=True)
    assert await it.verdict() == Verdict(RunState.PLANNED)
    assert source.done == ["abort"]


async def test_one_that_completes_before_it_can_be_cancelled_has_completed(
    listener: GuestListener,
) -> None:
    source = Host(BEYOND, COMPLETED)
    source.abort = TooLate("ended")
    it = made(listener, source, max_iterations=5)
    assert await it.verdict() == Verdict(RunState.COMPLETED)
    assert source.done == ["abort"]


async def test_in_postcopy_there_is_no_limit(listener: GuestListener) -> None:
    postcopy = replace(BEYOND, status=QemuStatus.POSTCOPY_ACTIVE)
    it = made(listener, Host(postcopy, postcopy, COMPLETED), max_iterations=1)
    assert (await it.verdict()).state is RunState.COMPLETED
    assert it.stage.here.done == []


async def test_one_that_never_ends_is_given_up(
    listener: GuestListener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vmtune.bench.migration.measured._ENDS_WITHIN_S", 2.0)
    it = made(listener, Host(ACTIVE, end=False), max_seconds=1)
    verdict = await it.verdict()
    assert verdict == Verdict(RunState.FAILED, "it has not ended within 3 s")
    assert it.stage.here.done == ["abort"]


@pytest.mark.parametrize("arrives", [True, False])
async def test_a_paused_guest_goes_on_where_it_is(listener: GuestListener, arrives: bool) -> None:
    end = COMPLETED if arrives else Snapshot(QemuStatus.FAILED, error="no")
    paused = (Step(AfterIterations(0), StepAction.PAUSE),)
    it = made(listener, Host(ACTIVE, end), steps=paused)
    it.stage.there.paused = True  # as it arrives
    await it.verdict()
    here, there = it.stage.here.done, it.stage.there.done
    assert (here, there) == ((["pause"], ["resume"]) if arrives else (["pause", "resume"], []))


async def test_a_step_that_aborts_is_no_convergence(listener: GuestListener) -> None:
    source = Host(ACTIVE, Snapshot(QemuStatus.CANCELLED), end=CommandRefused("cancelled"))
    it = made(listener, source, steps=(Step(AfterIterations(0), StepAction.ABORT),))
    verdict = await it.verdict()
    assert verdict.state is RunState.NOT_CONVERGED
    assert verdict.failure.startswith("a step aborted it: ")


async def test_sends_are_those_of_each_iteration_as_far_as_they_were_seen(
    listener: GuestListener,
) -> None:
    second = Snapshot(QemuStatus.ACTIVE, replace(LOOK, iteration=2))
    it = made(listener, Host(ACTIVE, ACTIVE, second, COMPLETED))
    gone = HostUnreachable("its QEMU has ended")
    for sent in ([10, 25, 40, 100, 130], [10, 25, 40, 100, gone]):
        it = made(listener, Host(ACTIVE, ACTIVE, second, COMPLETED))
        counts = [each if each is gone else SendCounts(each, 4096 * each) for each in sent]
        it.stage.sends = FakeSends(*counts)
        assert await it.verdict() == Verdict(RunState.COMPLETED)
        found = it.recorder.record(None).sends
        assert found is not None
        assert [(each.iteration, each.counts.sends) for each in found.iterations] == [
            (1, 30), (2, 60 if gone in sent else 90),
        ]  # fmt: skip
        assert found.total.sends == (90 if gone in sent else 120)
        assert found.total.sent_bytes == 4096 * found.total.sends


async def test_a_qemu_that_counts_no_sends_is_measured_all_the_same(
    listener: GuestListener,
) -> None:
    it = made(listener, Host(ACTIVE, COMPLETED))
    assert await it.verdict() == Verdict(RunState.COMPLETED)
    assert it.recorder.record(None).sends is None
    it = made(listener, Host(ACTIVE, COMPLETED))
    it.stage.sends = FakeSends(HostUnreachable("it does not answer"))
    assert await it.verdict() == Verdict(RunState.COMPLETED)
    assert it.recorder.record(None).sends is None


@pytest.mark.parametrize("refuses", [True, False])
async def test_tracing_ends_with_the_migration_also_with_one_that_cannot_begin(
    listener: GuestListener, refuses: bool
) -> None:
    ring = {"dirty_ring_size_entries": 4096}
    scenario = Scenario("test/one", values=ring, count_ring_full=True)
    stage = FakeStage(listener, Host(ACTIVE, COMPLETED, refuses=refuses))
    it = Made(stage, replace(scenario, values=ring))
    plan = await plan_run(stage, {}, frozenset())
    if refuses:
        with pytest.raises(CommandRefused):
            await it.migration.run(plan)
    else:
        await it.migration.run(plan)
    assert stage.traced == [True, False]
    assert it.recorder.ring_full_exits == 42
    assert it.recorder.ended is not None


async def test_what_the_preflight_finds_is_told_by_field(listener: GuestListener) -> None:
    stage = FakeStage(listener, Host(ACTIVE))
    with pytest.raises(Blocked) as caught:
        await plan_run(stage, {"multifd_compression": "qpl", "multifd": True}, frozenset())
    assert {p.field for p in caught.value.problems} == {"values.multifd_compression"}
    codes = frozenset(p.code for p in caught.value.problems)
    assert await plan_run(stage, {"multifd_compression": "qpl", "multifd": True}, codes)


async def test_what_cannot_be_read_back_is_unknown(listener: GuestListener) -> None:
    source = Host(ACTIVE, COMPLETED)

    async def unreadable(_: Any, __: Any) -> Mapping[str, Any]:
        raise HostUnreachable("lost")

    source.read = unreadable  # type: ignore[method-assign] # one fault
    it = made(listener, source, values={"multifd": True})
    assert (await it.verdict()).state is RunState.COMPLETED
    assert [(o.status, o.reason) for o in it.recorder.outcomes] == [(Status.UNKNOWN, "lost")]
