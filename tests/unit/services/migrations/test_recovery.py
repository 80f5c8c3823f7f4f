"""Post-copy that is paused and recovered: fake QEMUs, the real services around them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.simulated.fakes import VM
from tests.support.simulated.world import World, world
from vmtune.engine.recovery import RecoverySettings
from vmtune.errors import CommandRefused, InvalidInput, TooLate
from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.record import Migration, MigrationState
from vmtune.testing.fake.qemu import DIRTIED_BYTES_PER_S

MANUAL = {"postcopy": True, "postcopy_recovery": "manual"}


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path, paced=True) as made:
        yield made


async def reaches(it: World, record: Migration, state: MigrationState) -> Migration:
    await it.until(lambda: it.store.migrations.get(record.id).state is state)
    return it.store.migrations.get(record.id)


async def broken(it: World, **values: Any) -> Migration:
    """A migration that is paused in post-copy."""
    await it.profile(**values)
    it.source.parameters["max-bandwidth"] = DIRTIED_BYTES_PER_S
    record = await it.migrations.start(VM, "b", "p")
    await it.until(lambda: it.store.migrations.get(record.id).state is MigrationState.STARTING)
    await it.until(lambda: bool(it.source.outgoing.uri))
    it.source.step()
    await it.until(lambda: it.store.migrations.get(record.id).state is MigrationState.ACTIVE)
    it.source.answer("migrate-start-postcopy", {})
    it.source.break_postcopy()
    return await reaches(it, record, MigrationState.POSTCOPY_PAUSED)


def steps(it: World, record: Migration) -> list[tuple[str, str, StepEffect]]:
    known = it.store.migrations.get(record.id).step_records
    return [(step.action, step.reason, step.effect) for step in known]


async def test_a_user_recovers_it_and_the_record_tells_the_story(it: World) -> None:
    record = await broken(it, **MANUAL)
    (problem,) = record.problems
    assert problem.code == "postcopy_paused"
    assert f"vmtune migration recover {record.id}" in problem.remedy
    it.source.path_is_cut = True
    with pytest.raises(CommandRefused, match="Connection refused"):
        await it.migrations.recover(record.id)
    assert it.store.migrations.get(record.id).state is MigrationState.POSTCOPY_PAUSED
    it.source.path_is_cut = False
    await it.migrations.recover(record.id, "192.0.2.7")
    await reaches(it, record, MigrationState.ACTIVE)
    it.source.step()
    done = await it.ended(record)
    assert done.state is MigrationState.COMPLETED
    (problem,) = done.problems
    assert (problem.code, problem.remedy) == ("postcopy_resumed", "")
    by_user = "requested by a user"
    assert steps(it, record) == [
        ("recover post-copy", by_user, StepEffect.REFUSED),
        ("recover post-copy over 192.0.2.7", by_user, StepEffect.DONE),
    ]


async def test_what_was_sampled_is_stored_when_it_is_paused(it: World) -> None:
    """However few they are: nothing comes after them that would have them stored."""
    record = await broken(it, **MANUAL)
    samples = it.store.migrations.samples(record.id)
    assert samples, "else the page can tell neither since when nor how much"
    assert len(samples) < 20
    await it.migrations.recover(record.id)
    it.source.step()
    await it.ended(record)


async def test_it_is_recovered_by_itself_once_the_path_is_back(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vmtune.engine.recovery._FIRST_WAIT_S", 0.01)
    it.source.path_is_cut = True
    record = await broken(it, postcopy=True)
    await it.until(lambda: len(steps(it, record)) >= 2)
    it.source.path_is_cut = False
    await reaches(it, record, MigrationState.ACTIVE)
    it.source.step()
    assert (await it.ended(record)).state is MigrationState.COMPLETED
    *refused, last = steps(it, record)
    assert {effect for _, _, effect in refused} == {StepEffect.REFUSED}
    assert last == ("recover post-copy", "postcopy_recovery is auto", StepEffect.DONE)


async def test_it_is_given_up_after_the_attempts_and_can_be_recovered_by_hand(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vmtune.engine.recovery._FIRST_WAIT_S", 0.01)
    it.source.path_is_cut = True
    record = await broken(it, postcopy=True, postcopy_recovery_attempts=2)

    def codes() -> list[str]:
        return [problem.code for problem in it.store.migrations.get(record.id).problems]

    await it.until(lambda: "postcopy_not_recovered" in codes())
    assert len(steps(it, record)) == 2
    assert it.store.migrations.get(record.id).state is MigrationState.POSTCOPY_PAUSED
    it.source.path_is_cut = False
    await it.migrations.recover(record.id)
    it.source.step()
    assert (await it.ended(record)).state is MigrationState.COMPLETED
    assert codes() == ["postcopy_resumed"]


async def test_by_hand_means_that_nothing_is_tried(it: World) -> None:
    record = await broken(it, **MANUAL)
    before = len(it.waiting.commands)
    await reaches(it, record, MigrationState.POSTCOPY_PAUSED)
    sent = {command for command, _ in it.waiting.commands[before:]}
    assert not sent & {"migrate-recover", "migrate-pause"}
    assert steps(it, record) == []
    await it.migrations.recover(record.id)
    it.source.step()
    await it.ended(record)


async def test_what_is_not_paused_is_not_recovered(it: World) -> None:
    record = await broken(it, **MANUAL)
    with pytest.raises(InvalidInput) as caught:
        await it.migrations.recover(record.id, "1.2.3.4 -x")
    assert caught.value.problems[0].field == "address"
    await it.migrations.recover(record.id)
    with pytest.raises(TooLate, match="not paused"):
        await it.migrations.recover(record.id)
    assert len(steps(it, record)) == 1
    it.source.step()
    await it.ended(record)


async def test_a_paused_one_is_not_aborted(it: World) -> None:
    record = await broken(it, **MANUAL)
    with pytest.raises(TooLate, match="part of its memory"):
        await it.migrations.abort(record.id)
    await it.migrations.recover(record.id)
    it.source.step()
    await it.ended(record)


async def looked_at(it: World, times: int = 2) -> None:
    """As often as the service looks at migrations that no job runs."""
    for _ in range(times):
        await it.job.settle_orphans(it.jobs)


@pytest.fixture
async def left(it: World, monkeypatch: pytest.MonkeyPatch) -> Migration:
    """One that is paused, and whose job is over: its source was silent for too long."""
    monkeypatch.setattr("vmtune.engine.asking.LOST_AFTER_S", 0.1)
    monkeypatch.setattr("vmtune.engine.end_state.AGREES_WITHIN_S", 0.1)
    monkeypatch.setattr("vmtune.engine.recovery._FIRST_WAIT_S", 0.01)
    monkeypatch.setattr("vmtune.engine.recovery._LONGEST_WAIT_S", 0.05)
    it.source.path_is_cut = True
    record = await broken(it, postcopy=True, postcopy_recovery_attempts=1000)
    it.source.lose()
    it.drivers["a"].reachable = False
    done = await it.ended(record)
    assert done.state is MigrationState.POSTCOPY_PAUSED
    return done


async def test_one_whose_source_was_silent_is_recovered_by_itself_once_it_answers(
    it: World, left: Migration
) -> None:
    await looked_at(it)
    it.drivers["a"].reachable, it.source.path_is_cut = True, False
    async with asyncio.timeout(20):
        while it.store.migrations.get(left.id).state is not MigrationState.ACTIVE:
            await looked_at(it)
            await asyncio.sleep(0.05)
    assert steps(it, left)[-1] == (
        "recover post-copy",
        "postcopy_recovery is auto",
        StepEffect.DONE,
    )
    it.source.step()
    await reaches(it, left, MigrationState.COMPLETED)


async def test_one_that_is_recovered_by_hand_is_followed_to_its_end(
    it: World, left: Migration
) -> None:
    it.drivers["a"].reachable, it.source.path_is_cut = True, False
    await it.migrations.recover(left.id)
    await it.job.finalize(str(left.id))
    assert it.store.migrations.get(left.id).state is MigrationState.POSTCOPY_PAUSED
    await looked_at(it)
    await reaches(it, left, MigrationState.ACTIVE)
    it.source.step()
    await reaches(it, left, MigrationState.COMPLETED)
    assert it.store.migrations.get(left.id).failure == ""


async def test_one_that_stays_paused_is_not_published_again(
    it: World, left: Migration, monkeypatch: pytest.MonkeyPatch
) -> None:
    published: list[str] = []

    async def publish(record: Migration, step: StepRecord | None = None) -> None:
        published.append(record.state.value)

    monkeypatch.setattr(it.job._records, "publish", publish)
    before = it.store.migrations.get(left.id)
    for _ in range(3):
        await it.job.finalize(str(left.id))
    assert it.store.migrations.get(left.id) == before
    assert published == []


@pytest.mark.parametrize(
    ("within_s", "state"),
    [(3600, MigrationState.POSTCOPY_PAUSED), (60, MigrationState.UNKNOWN)],
)
async def test_one_whose_hosts_are_both_silent_stays_paused_as_long_as_it_is_recovered(
    it: World,
    left: Migration,
    monkeypatch: pytest.MonkeyPatch,
    within_s: int,
    state: MigrationState,
) -> None:
    """Else nobody could begin anything with the VM, nor forget its hosts."""
    long_ago = datetime.now(UTC) - timedelta(minutes=5)
    it.store.migrations.update(left.id, started_at=long_ago)
    settings = RecoverySettings(auto=True, within_s=within_s)
    monkeypatch.setattr(RecoverySettings, "of", lambda _: settings)
    it.waiting.lose()
    it.drivers["b"].reachable = False
    await it.job.finalize(str(left.id))
    assert it.store.migrations.get(left.id).state is state


async def test_who_loses_its_hosts_follows_nothing_more(
    it: World, left: Migration, monkeypatch: pytest.MonkeyPatch
) -> None:
    it.drivers["a"].reachable = True
    await looked_at(it)
    (followed,) = it.job._followed.values()
    monkeypatch.setattr(it.hosts, "drives", lambda _: False)
    await looked_at(it, 1)
    await asyncio.wait([followed.task], timeout=5)
    assert followed.task.cancelled()
    assert not it.job._followed
    assert it.store.migrations.get(left.id).state is MigrationState.POSTCOPY_PAUSED
