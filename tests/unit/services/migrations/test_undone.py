"""What a migration has set, where the host that has to restore it is silent or refuses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from uuid import UUID

import pytest

from tests.support.simulated.fakes import VM
from tests.support.simulated.world import World
from vmtune.errors import CommandRefused, HostUnreachable, OutcomeUnknown
from vmtune.model.migration.prior import Prior
from vmtune.model.migration.record import MigrationState
from vmtune.model.plan.changes import Change
from vmtune.testing.fake.driver import FakeDriver

MIXED = {"downtime_limit_ms": 700, "iothread_poll_max_ns": 1000}


@pytest.fixture
def lost_in_prepare(it: World, monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    """The source, which is lost as its values are set, and not reached from then on."""
    source = it.drivers["a"]
    real = source.write

    async def write(vm: UUID, changes: Sequence[Change]) -> None:
        await real(vm, changes)
        monkeypatch.setattr(source, "write", real)
        it.source.lose()
        source.reachable = False
        raise OutcomeUnknown("the connection to QEMU was lost")

    monkeypatch.setattr(source, "write", write)
    return source


async def test_a_source_that_answers_soon_again_is_restored(
    it: World, lost_in_prepare: FakeDriver
) -> None:
    await it.profile(**MIXED)
    before = it.source.parameters["downtime-limit"]
    record = await it.migrations.start(VM, "b", "p")
    await it.until(lambda: not lost_in_prepare.reachable)
    await asyncio.sleep(0.3)
    lost_in_prepare.reachable = True
    done = await it.ended(record)
    assert (done.state, done.problems) == (MigrationState.FAILED, ())
    assert done.failure == "the connection to QEMU was lost"
    assert it.source.parameters["downtime-limit"] == before


async def test_what_a_silent_source_may_still_have_is_told_value_by_value(
    it: World, lost_in_prepare: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vmtune.engine.undo.UNDONE_WITHIN_S", 0.1)
    await it.profile(**MIXED)
    done = await it.ended(await it.migrations.start(VM, "b", "p"))
    assert not lost_in_prepare.reachable
    assert done.state is MigrationState.FAILED
    assert {problem.code for problem in done.problems} == {"not_put_back"}
    assert [problem.field for problem in done.problems] == [
        f"values.{change.tunable}" for change in done.journal
    ]
    first = done.problems[0]
    assert first.message.startswith(
        "downtime_limit_ms was 300 ms before the migration, and may not"
    )
    assert first.remedy.endswith("set downtime_limit_ms to 300 ms by hand")
    assert "iothread_poll_max_ns of iothread" in done.problems[1].message


async def test_one_that_ended_before_it_began_is_restored_once_its_source_answers(
    it: World,
) -> None:
    """The service was killed as it prepared, and the source is started again just then."""
    record = it.store.migrations.begin(vm=VM, vm_name="vm", source="a", destination="b")
    journal = (Change("downtime_limit_ms", 300),)
    it.store.migrations.update(record.id, state=MigrationState.PREPARING, journal=journal)
    it.source.parameters["downtime-limit"] = 700
    it.drivers["a"].reachable = False
    await it.jobs.submit("migration", str(record.id))
    await asyncio.sleep(0.5)
    it.drivers["a"].reachable = True
    done = await it.ended(record)
    assert (done.state, done.problems) == (MigrationState.FAILED, ())
    assert it.source.parameters["downtime-limit"] == 300


def resets(
    driver: FakeDriver, monkeypatch: pytest.MonkeyPatch, error: Exception, times: int
) -> Callable[[], int]:
    """Have the driver's resets fail at first.

    :return: how often it was asked.
    """
    real = driver.reset_after_migration
    asked = 0

    async def reset(vm: UUID, prior: Prior | None = None) -> None:
        nonlocal asked
        asked += 1
        if asked <= times:
            raise error
        await real(vm, prior)

    monkeypatch.setattr(driver, "reset_after_migration", reset)
    return lambda: asked


async def test_what_was_set_with_the_start_and_stays_is_told(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await it.profile(multifd=True, multifd_channels=4)
    record = await it.begin("p")
    asked = resets(it.drivers["a"], monkeypatch, CommandRefused("not today"), 100)
    await it.migrations.abort(record.id)
    done = await it.ended(record)
    assert it.source.capabilities["multifd"], "which it was not before"
    told = {problem.field: problem for problem in done.problems}
    assert {"values.multifd", "values.multifd_channels"} <= set(told)
    assert told["values.multifd"].message == (
        "multifd was off before the migration, and may not be on a: not today"
    )
    assert asked() == 1, "a refusal is an answer"


@pytest.mark.parametrize("error", [HostUnreachable("a starts"), CommandRefused("?", code="busy")])
async def test_a_side_that_is_silent_or_busy_for_a_moment_is_reset(
    it: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    await it.profile(multifd=True)
    record = await it.begin("p")
    resets(it.drivers["a"], monkeypatch, error, 2)
    await it.migrations.abort(record.id)
    done = await it.ended(record)
    assert done.problems == ()
    assert not it.source.capabilities["multifd"]


async def test_what_the_guest_has_arrived_with_and_keeps_is_told(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await it.profile(multifd=True)
    resets(it.drivers["a"], monkeypatch, CommandRefused("it is left"), 100)
    resets(it.drivers["b"], monkeypatch, CommandRefused("not today"), 100)
    done = await it.migrate("p")
    assert done.state is MigrationState.COMPLETED
    (told,) = [problem for problem in done.problems if problem.field == "values.multifd"]
    assert (told.code, told.message.split(", ")[1]) == (
        "not_put_back",
        "and may not be on b: not today",
    )
