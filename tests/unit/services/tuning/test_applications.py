"""Apply, verify, revert, and what becomes of them when something breaks half-way."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy.orm import Session

from tests.support.simulated.fakes import VM
from tests.support.simulated.world import World, world
from vmtune.errors import (
    Blocked,
    CommandRefused,
    Conflict,
    HostUnreachable,
    InvalidInput,
    NotFound,
    OperationInProgress,
)
from vmtune.model.host.facts import Reading
from vmtune.model.migration.record import MigrationState, Trigger
from vmtune.model.plan.changes import Change
from vmtune.model.plan.outcome import ApplicationState, Outcome, Status
from vmtune.model.plan.tuning_state import TuningState
from vmtune.model.profile import Target
from vmtune.storage.database import Database
from vmtune.testing.fake.qemu import Fault, FaultKind


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


MIXED = {
    "downtime_limit_ms": "700ms",
    "iothread_poll_max_ns": 1000,
    "iothread_thread_pool_max": 8,
    "multifd": True,
    "multifd_channels": 4,
}


def by_name(outcomes: tuple[Outcome, ...]) -> dict[str, Status]:
    return {outcome.tunable: outcome.status for outcome in outcomes}


async def inject(it: World, *faults: Fault) -> None:
    """Faults from now on: the first probe of a QEMU sends commands of its own."""
    await it.plans.plan(VM, "p")
    it.source.faults += faults


def downtime(it: World) -> object:
    return it.source.parameters["downtime-limit"]


async def test_what_can_be_set_now_is_set_and_proven(it: World) -> None:
    await it.profile(**MIXED)
    done = await it.applications.apply(VM, "p")
    assert done.state is ApplicationState.APPLIED
    assert by_name(done.outcomes) == {
        "downtime_limit_ms": Status.EFFECTIVE,
        "iothread_poll_max_ns": Status.EFFECTIVE,
        "iothread_thread_pool_max": Status.EFFECTIVE,
        "multifd": Status.PENDING_MIGRATION,
        "multifd_channels": Status.PENDING_MIGRATION,
    }
    assert downtime(it) == 700
    assert it.source.capabilities["multifd"] is False
    assert Change("downtime_limit_ms", 300) in done.journal


async def test_verify_is_clean_until_somebody_sets_another_value(it: World) -> None:
    await it.profile(**MIXED)
    await it.applications.apply(VM, "p")
    assert (await it.applications.verify(VM)).clean
    it.source.parameters["downtime-limit"] = 5
    drifted = await it.applications.verify(VM)
    assert not drifted.clean
    assert by_name(drifted.outcomes)["downtime_limit_ms"] is Status.OVERWRITTEN


async def test_verify_holds_an_assigned_profile_against_the_vm(it: World) -> None:
    with pytest.raises(NotFound, match="nothing was applied"):
        await it.applications.verify(VM)
    await it.profile(downtime_limit_ms=301)
    await it.assignments.add(Target.DEFAULT, "", "p")
    assert not (await it.applications.verify(VM)).clean


async def test_revert_puts_everything_back(it: World) -> None:
    await it.profile(**MIXED)
    before = {p: dict(v) for p, v in it.source.properties.items()}
    done = await it.applications.apply(VM, "p")
    assert it.source.properties != before
    reverted = await it.applications.revert(done.id)
    assert reverted.state is ApplicationState.REVERTED
    assert set(by_name(reverted.outcomes).values()) == {Status.REVERTED}
    assert downtime(it) == 300
    assert it.source.properties == before
    with pytest.raises(Conflict, match="reverted"):
        await it.applications.revert(done.id)


async def test_only_the_newest_application_can_be_reverted(it: World) -> None:
    await it.profile("one", downtime_limit_ms=400)
    await it.profile("two", downtime_limit_ms=500)
    one = await it.applications.apply(VM, "one")
    two = await it.applications.apply(VM, "two")
    with pytest.raises(Conflict, match=str(two.id)):
        await it.applications.revert(one.id)
    await it.applications.revert(two.id)
    assert downtime(it) == 400


@pytest.mark.parametrize("at", [1, 2, 3, 4])
async def test_a_refusal_half_way_restores_everything_and_keeps_the_first_error(
    it: World, at: int
) -> None:
    await it.profile(**MIXED)
    before = {p: dict(v) for p, v in it.source.properties.items()}
    command = "migrate-set-parameters" if at == 1 else "qom-set"
    await inject(it, Fault(FaultKind.REFUSE, command, max(1, at - 1), "not today"))
    done = await it.applications.apply(VM, "p")
    assert done.state is ApplicationState.FAILED
    assert "not today" in done.problems[0].message
    assert downtime(it) == 300
    assert it.source.properties == before


def refuse(it: World, monkeypatch: pytest.MonkeyPatch, tunable: str, *values: object) -> None:
    """QEMU sets nothing of *tunable* from now on, or not these *values*."""
    driver = it.drivers["a"]
    write = driver.write

    async def refusing(vm: UUID, changes: Sequence[Change]) -> None:
        for change in changes:
            if change.tunable == tunable and (not values or change.value in values):
                raise CommandRefused("QEMU refused: not today", field=f"values.{tunable}")
            await write(vm, [change])

    async def refusing_and_read(
        vm: UUID, changes: Sequence[Change], names: Collection[str]
    ) -> Mapping[str, Reading]:
        await refusing(vm, changes)
        return await driver.read(vm, names)

    monkeypatch.setattr(driver, "write", refusing)
    monkeypatch.setattr(driver, "write_and_read", refusing_and_read)


async def test_what_cannot_be_put_back_is_named_and_can_be_reverted(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await it.profile(**MIXED)
    before = {p: dict(v) for p, v in it.source.properties.items()}
    pools = [each["thread-pool-max"] for each in before.values() if "thread-pool-max" in each]
    with monkeypatch.context() as patched:
        refuse(it, patched, "iothread_thread_pool_max", *pools)
        refuse(it, patched, "iothread_poll_max_ns", 1000)
        done = await it.applications.apply(VM, "p")
        assert done.state is ApplicationState.UNKNOWN
        assert downtime(it) == 300, "what is refused kept what is not"
        assert it.source.properties != before
        (left,) = [problem for problem in done.problems if problem.code == "not_put_back"]
        assert left.field == "values.iothread_thread_pool_max"
        assert "not today" in left.message and left.remedy
        await it.applications.settle_unknown()
        assert it.store.applications.get(done.id).state is ApplicationState.UNKNOWN
    assert (await it.applications.revert(done.id)).state is ApplicationState.REVERTED
    assert it.source.properties == before


async def test_a_revert_that_is_refused_half_way_says_what_is_set(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await it.profile(**MIXED)
    before = {p: dict(v) for p, v in it.source.properties.items()}
    done = await it.applications.apply(VM, "p")
    with monkeypatch.context() as patched:
        refuse(it, patched, "iothread_thread_pool_max")
        half = await it.applications.revert(done.id)
    assert half.state is ApplicationState.UNKNOWN
    assert downtime(it) == 300
    outcomes = by_name(half.outcomes)
    assert outcomes["downtime_limit_ms"] is Status.REVERTED
    assert outcomes["iothread_thread_pool_max"] is Status.REJECTED
    assert [problem.field for problem in half.problems] == ["values.iothread_thread_pool_max"]
    assert (await it.applications.revert(done.id)).state is ApplicationState.REVERTED
    assert it.source.properties == before


async def test_a_revert_that_changed_nothing_leaves_it_applied(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await it.profile(downtime_limit_ms="700ms")
    done = await it.applications.apply(VM, "p")
    refuse(it, monkeypatch, "downtime_limit_ms")
    back = await it.applications.revert(done.id)
    assert back.state is ApplicationState.APPLIED
    assert (downtime(it), back.outcomes) == (700, done.outcomes)
    assert "not today" in back.problems[0].message


@pytest.mark.parametrize(
    ("uri", "values", "ends_with_machine"),
    [
        ("qmp+unix:///fake/a", {"downtime_limit_ms": 700}, True),
        ("qemu+tcp://a/system", {"downtime_limit_ms": 700}, False),
    ],
    ids=["here", "on another machine"],
)
async def test_only_what_ends_with_this_machine_does_not_wait_for_the_disk(
    it: World,
    monkeypatch: pytest.MonkeyPatch,
    uri: str,
    values: dict[str, object],
    ends_with_machine: bool,
) -> None:
    waits: list[bool] = []
    write = Database.write

    def noted(
        it: Database, *, durable: bool = True, progress: bool = False
    ) -> AbstractContextManager[Session]:
        waits.append(durable)
        return write(it, durable=durable, progress=progress)

    await it.profile(**values)
    await it.plans.plan(VM)  # the first plan makes the VM known, which is another write
    host, driver = it.hosts._drivers["a"]
    it.hosts._drivers["a"] = replace(host, uri=uri), driver
    monkeypatch.setattr(Database, "write", noted)
    done = await it.applications.apply(VM, "p")
    assert done.state is ApplicationState.APPLIED
    await it.bus.drain()
    # Begun and ended; the event behind both takes them to the disk.
    assert waits == [not ends_with_machine, not ends_with_machine, True]


async def test_best_effort_leaves_out_what_is_refused(it: World) -> None:
    await it.profile(**MIXED)
    await inject(it, *(Fault(FaultKind.REFUSE, "migrate-set-parameters", n) for n in (1, 2)))
    done = await it.applications.apply(VM, "p", best_effort=True)
    assert done.state is ApplicationState.APPLIED
    statuses = by_name(done.outcomes)
    assert statuses["downtime_limit_ms"] is Status.REJECTED
    assert statuses["iothread_poll_max_ns"] is Status.EFFECTIVE


async def test_a_connection_lost_after_the_command_is_looked_at_again(it: World) -> None:
    await it.profile(downtime_limit_ms=700)
    await inject(it, Fault(FaultKind.LOSE_AFTER, "migrate-set-parameters"))
    done = await it.applications.apply(VM, "p")
    assert done.state is ApplicationState.FAILED
    assert done.problems[0].code == "outcome_unknown"
    assert downtime(it) == 300


async def test_a_qemu_that_dies_half_way_leaves_an_unknown_outcome(it: World) -> None:
    await it.profile(downtime_limit_ms=700)
    await it.plans.plan(VM, "p")
    answer = it.source.answer

    def answer_and_die(command: str, arguments: object) -> object:
        result = answer(command, arguments)  # type: ignore[arg-type] # passed through
        if command == "migrate-set-parameters":
            it.source.die()
        return result

    it.source.answer = answer_and_die  # type: ignore[method-assign, assignment] # the fault
    done = await it.applications.apply(VM, "p")
    assert done.state is ApplicationState.UNKNOWN
    assert set(by_name(done.outcomes).values()) == {Status.UNKNOWN}


async def test_blockers_refuse_before_anything_is_touched(it: World) -> None:
    await it.profile(dirty_limit=True, downtime_limit_ms=700)
    with pytest.raises(Blocked) as caught:
        await it.applications.apply(VM, "p")
    assert caught.value.problems[0].field == "values.dirty_limit"
    assert caught.value.problems[0].code == "dirty_limit_needs_ring"
    assert downtime(it) == 300
    assert it.store.applications.list(vm=VM).items == ()


async def test_best_effort_rejects_the_blocked_and_applies_the_rest(it: World) -> None:
    await it.profile(dirty_limit=True, downtime_limit_ms=700)
    done = await it.applications.apply(VM, "p", best_effort=True)
    assert by_name(done.outcomes) == {
        "dirty_limit": Status.REJECTED,
        "downtime_limit_ms": Status.EFFECTIVE,
    }


async def test_without_profile_or_assignment_there_is_nothing_to_apply(it: World) -> None:
    with pytest.raises(InvalidInput) as caught:
        await it.applications.apply(VM)
    assert caught.value.problems[0].field == "profile"


async def test_it_waits_for_the_record_of_a_migration_that_is_over(it: World) -> None:
    """A script calls virsh migrate and then vmtune; what the end of that one restored is the value
    from before."""
    await it.profile(downtime_limit_ms=700)
    over = it.store.migrations.begin(
        vm=VM, vm_name="vm", source="b", destination="a", trigger=Trigger.OBSERVED,
        state=MigrationState.STARTING, started_at=datetime.now(UTC),
    )  # fmt: skip
    it.source.parameters["downtime-limit"] = 450  # set for it
    applying = asyncio.create_task(it.applications.apply(VM, "p"))
    await asyncio.sleep(0.2)
    assert not applying.done()
    it.source.parameters["downtime-limit"] = 300
    it.store.migrations.update(over.id, state=MigrationState.COMPLETED)
    done = await applying
    assert done.state is ApplicationState.APPLIED
    assert done.journal == (Change("downtime_limit_ms", 300),)
    assert downtime(it) == 700


async def test_two_at_once_on_one_vm_are_refused(it: World) -> None:
    await it.profile(downtime_limit_ms=700)
    it.store.applications.begin(
        vm=VM, host="a", profile="p", revision=1, wanted={}, best_effort=False, journal=()
    )
    with pytest.raises(OperationInProgress):
        await it.applications.apply(VM, "p")
    assert downtime(it) == 300


async def test_an_unreachable_host_changes_nothing(it: World) -> None:
    await it.profile(downtime_limit_ms=700)
    it.drivers["a"].reachable = it.drivers["b"].reachable = False
    with pytest.raises(HostUnreachable):
        await it.applications.apply(VM, "p")
    assert it.store.applications.list(vm=VM).items == ()


async def test_what_a_dead_service_left_half_done_is_put_back(it: World) -> None:
    await it.profile(downtime_limit_ms=700)
    opened = it.store.applications.begin(
        vm=VM,
        host="a",
        profile="p",
        revision=1,
        wanted={"downtime_limit_ms": 700},
        best_effort=False,
        journal=(Change("downtime_limit_ms", 300),),
    )
    it.source.parameters["downtime-limit"] = 700
    await it.applications.reconcile()
    settled = it.store.applications.get(opened.id)
    assert settled.state is ApplicationState.FAILED
    assert settled.problems[0].code == "interrupted"
    assert downtime(it) == 300
    assert it.store.applications.open() == ()


async def test_what_cannot_be_looked_at_after_a_restart_is_unknown(it: World) -> None:
    await it.profile(downtime_limit_ms=700)
    opened = it.store.applications.begin(
        vm=VM,
        host="a",
        profile="p",
        revision=1,
        wanted={"downtime_limit_ms": 700},
        best_effort=False,
        journal=(Change("downtime_limit_ms", 300),),
    )
    it.drivers["a"].reachable = it.drivers["b"].reachable = False
    await it.applications.reconcile()
    assert it.store.applications.get(opened.id).state is ApplicationState.UNKNOWN


async def test_an_unknown_application_is_settled_by_looking(it: World) -> None:
    await it.profile(downtime_limit_ms=700)
    for seen, state in ((300, "failed"), (700, "applied"), (5, "unknown")):
        opened = it.store.applications.begin(
            vm=VM,
            host="a",
            profile="p",
            revision=1,
            wanted={"downtime_limit_ms": 700},
            best_effort=False,
            journal=(Change("downtime_limit_ms", 300),),
        )
        it.store.applications.finish(opened.id, ApplicationState.UNKNOWN)
        it.source.parameters["downtime-limit"] = seen
        await it.applications.settle_unknown()
        assert it.store.applications.get(opened.id).state == state
        assert downtime(it) == seen


async def test_what_is_set_for_the_next_start_is_looked_at_too(it: World) -> None:
    await it.profile(downtime_limit_ms=700)
    opened = it.store.applications.begin(
        vm=VM, host="a", profile="p", revision=1, wanted={"downtime_limit_ms": 700},
        best_effort=False,
        journal=(Change("downtime_limit_ms", 300), Change("dirty_ring_size_entries", 0)),
    )  # fmt: skip
    it.store.applications.finish(opened.id, ApplicationState.UNKNOWN)
    await it.applications.settle_unknown()
    assert it.store.applications.get(opened.id).state is ApplicationState.UNKNOWN


async def test_an_unknown_application_is_left_alone_after_a_newer_one(it: World) -> None:
    await it.profile(downtime_limit_ms=700)
    opened = it.store.applications.begin(
        vm=VM, host="a", profile="p", revision=1, wanted={}, best_effort=False, journal=()
    )
    it.store.applications.finish(opened.id, ApplicationState.UNKNOWN)
    await it.applications.apply(VM, "p")
    await it.applications.settle_unknown()
    assert it.store.applications.get(opened.id).state is ApplicationState.UNKNOWN


async def test_a_caller_that_goes_away_does_not_stop_it_half_way(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await it.profile(**MIXED)
    write, begun, go_on = it.drivers["a"].write_and_read, asyncio.Event(), asyncio.Event()

    async def held(
        vm: UUID, changes: Sequence[Change], tunables: Collection[str]
    ) -> dict[str, Reading]:
        begun.set()
        await go_on.wait()
        return await write(vm, changes, tunables)

    monkeypatch.setattr(it.drivers["a"], "write_and_read", held)
    task = asyncio.create_task(it.applications.apply(VM, "p"))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    await it.until(lambda: it.store.applications.open() == ())
    (done,) = it.store.applications.list(vm=VM).items
    assert done.state is ApplicationState.APPLIED
    assert downtime(it) == 700


async def test_what_is_lost_on_the_way_is_remembered_as_drift(it: World) -> None:
    await it.profile(**MIXED)
    await it.applications.apply(VM, "p")
    there = it.drivers["a"]
    assert await it.applications.reapply(VM, there)
    assert remembered(it) == (TuningState.TUNED, ())
    # Set together it is refused, and then by itself.
    it.source.faults += [Fault(FaultKind.REFUSE, "migrate-set-parameters", at) for at in (1, 2)]
    await it.applications.reapply(VM, there)
    assert remembered(it) == (TuningState.DRIFTED, ("downtime_limit_ms",))


def remembered(it: World) -> tuple[TuningState, tuple[str, ...]]:
    found = it.store.tunings.get(VM)
    assert found is not None
    return found.state, found.differing


async def test_only_what_waits_for_the_next_start_needs_something_that_does(it: World) -> None:
    await it.profile(**MIXED)
    with pytest.raises(InvalidInput) as caught:
        await it.applications.apply(VM, "p", boot_only=True)
    assert caught.value.problems[0].code == "nothing_for_the_next_start"
    assert downtime(it) == 300
