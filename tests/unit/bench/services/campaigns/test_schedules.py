"""Campaigns that run again and again: one at a time, and never beside what people ordered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.support.benchmarks.bench_runs import FakeRunner
from tests.support.benchmarks.campaigns import campaign_json
from tests.unit.bench.services.campaigns.test_campaigns import Bench, make, started
from vmtune.bench.model.campaign.record import CampaignState
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.trend.scheduled import every_text, read_every
from vmtune.bench.services.campaigns.schedules import ScheduleService
from vmtune.errors import Conflict, InvalidInput, NotFound
from vmtune.model.migration.record import MigrationState
from vmtune.storage import Store

VM = UUID(int=5)


@pytest.fixture
async def bench(store: Store, tmp_path: Path) -> AsyncIterator[Bench]:
    async with started(make(store, tmp_path, FakeRunner())) as made:
        yield made


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.at = datetime(2026, 11, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.at


def migration(store: Store) -> Any:
    return store.migrations.begin(
        vm=VM, vm_name="guest", source="a", destination="b", profile="", revision=0, wanted={},
        state=MigrationState.ACTIVE, started_at=datetime.now(UTC),
    )  # fmt: skip


async def test_one_that_is_due_is_started_and_again_an_interval_later(bench: Bench) -> None:
    clock = Clock()
    schedules = ScheduleService(bench.store, bench.campaigns, clock)
    await schedules.add("1 day", campaign_json(name="nightly", blocks=1))
    await schedules.run()
    (first,) = await schedules.list()
    assert first.last is not None
    assert await bench.ended(first.last) is CampaignState.COMPLETED
    clock.at += timedelta(hours=23)
    await schedules.run()
    assert (await schedules.list())[0].last == first.last
    clock.at += timedelta(hours=2)
    await schedules.run()
    (second,) = await schedules.list()
    assert second.last != first.last
    assert second.next_at == clock.at + timedelta(days=1)
    assert await bench.ended(second.last) is CampaignState.COMPLETED


async def test_only_one_runs_at_a_time(bench: Bench) -> None:
    schedules = ScheduleService(bench.store, bench.campaigns)
    for name in ("one", "two"):
        await schedules.add("1 day", campaign_json(name=name, blocks=1))
    bench.it.runner.held = True
    await schedules.run()
    await schedules.run()
    first, second = await schedules.list()
    assert (first.last is None) != (second.last is None)
    waiting = first if first.last is None else second
    assert "has not ended" in waiting.waits
    bench.it.runner.release()
    assert await bench.ended(first.last or second.last) is CampaignState.COMPLETED
    await schedules.run()
    assert all(each.last is not None and not each.waits for each in await schedules.list())


async def test_none_starts_while_a_migration_is_under_way(bench: Bench) -> None:
    schedules = ScheduleService(bench.store, bench.campaigns)
    await schedules.add("1 day", campaign_json(name="nightly", blocks=1))
    moved = migration(bench.store)
    await schedules.run()
    (waiting,) = await schedules.list()
    assert (waiting.last, waiting.waits) == (None, "1 migration under way")
    bench.store.migrations.update(moved.id, state=MigrationState.COMPLETED)
    await schedules.run()
    (begun,) = await schedules.list()
    assert await bench.ended(begun.last) is CampaignState.COMPLETED


async def test_a_run_gives_way_to_a_migration_and_is_repeated(bench: Bench) -> None:
    schedules = ScheduleService(bench.store, bench.campaigns)
    await schedules.add("1 day", campaign_json(name="nightly", blocks=1))
    bench.it.runner.held = True
    await schedules.run()
    (begun,) = await schedules.list()
    assert begun.last is not None

    def states() -> list[RunState]:
        return [run.state for run in bench.store.campaigns.runs(begun.last or VM)]

    async with asyncio.timeout(60):
        while RunState.RUNNING not in states():  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0.01)
        moved = migration(bench.store)
        while RunState.CANCELLED not in states():  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0.01)
    bench.it.runner.release()
    before = states()
    await asyncio.sleep(0.05)
    assert states() == before  # none is made meanwhile
    bench.store.migrations.update(moved.id, state=MigrationState.COMPLETED)
    assert await bench.ended(begun.last) is CampaignState.COMPLETED


async def test_what_cannot_be_scheduled_is_refused(bench: Bench) -> None:
    schedules = ScheduleService(bench.store, bench.campaigns)
    await schedules.add("1 day", campaign_json(name="nightly"))
    with pytest.raises(Conflict, match="already"):
        await schedules.add("1 day", campaign_json(name="nightly"))
    with pytest.raises(InvalidInput, match="not an interval"):
        await schedules.add("1 minute", campaign_json(name="other"))
    with pytest.raises(InvalidInput):
        await schedules.add("1 day", {"name": "other"})
    with pytest.raises(NotFound, match="no schedule"):
        await schedules.remove("other")
    await schedules.remove("nightly")
    assert await schedules.list() == ()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1 day", 86_400), ("day", 86_400), ("12 hours", 43_200), ("2 Weeks", 1_209_600)],
)  # fmt: skip
def test_an_interval_is_read_and_written(text: str, seconds: int) -> None:
    assert read_every(text) == seconds
    assert read_every(every_text(seconds)) == seconds


@pytest.mark.parametrize("text", ["", "soon", "5 minutes", "0 days", "1 year", "91 days", 3, None])
def test_other_intervals_are_refused(text: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_every(text)
    assert caught.value.problems[0].remedy
