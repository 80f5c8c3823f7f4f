"""Migrations whose database fails on the way, and those that lose their job by it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.support.simulated.fakes import VM
from tests.support.simulated.world import World, world
from vmtune.errors import CommandRefused, SetupError
from vmtune.model.migration.record import MigrationState
from vmtune.services import retry
from vmtune.testing.fake.qemu import DIRTIED_BYTES_PER_S

pytestmark = pytest.mark.integration


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


async def test_a_migration_without_its_job_is_settled_at_the_second_look(it: World) -> None:
    record = await asyncio.to_thread(
        it.store.migrations.begin, vm=VM, vm_name="vm", source="a", destination="b"
    )
    await it.job.settle_orphans(it.jobs)
    assert it.store.migrations.get(record.id).state is MigrationState.QUEUED
    await it.job.settle_orphans(it.jobs)
    settled = it.store.migrations.get(record.id)
    assert (settled.state, settled.failure) == (
        MigrationState.FAILED,
        "it was stopped before it began",
    )


async def test_an_orphan_to_a_host_that_is_gone_keeps_no_other_from_being_settled(
    it: World,
) -> None:
    begin = it.store.migrations.begin
    gone = begin(vm=uuid4(), vm_name="x", source="a", destination="gone")
    it.store.migrations.update(gone.id, state=MigrationState.PREPARING)
    good = begin(vm=VM, vm_name="vm", source="a", destination="b")
    for _ in range(2):
        await it.job.settle_orphans(it.jobs)
    states = [it.store.migrations.get(record.id).state for record in (gone, good)]
    assert states == [MigrationState.FAILED, MigrationState.FAILED]


async def test_an_orphan_that_cannot_be_settled_keeps_no_other_from_it(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = (
        it.store.migrations.begin(vm=vm, vm_name="vm", source="a", destination="b")
        for vm in (uuid4(), VM)
    )
    real = it.job.finalize

    async def finalize(job_id: str) -> None:
        if job_id == str(bad.id):
            raise CommandRefused("no")
        await real(job_id)

    monkeypatch.setattr(it.job, "finalize", finalize)
    for _ in range(2):
        await it.job.settle_orphans(it.jobs)
    assert it.store.migrations.get(bad.id).state is MigrationState.QUEUED
    assert it.store.migrations.get(good.id).state is MigrationState.FAILED


async def test_a_migration_that_is_carried_is_no_orphan(it: World) -> None:
    it.source.parameters["max-bandwidth"] = DIRTIED_BYTES_PER_S
    record = await it.migrations.start(VM, "b")
    await it.until(lambda: it.store.migrations.get(record.id).state is MigrationState.ACTIVE)
    for _ in range(3):
        await it.job.settle_orphans(it.jobs)
    assert it.store.migrations.get(record.id).state is MigrationState.ACTIVE


async def test_nothing_is_lost_while_the_database_is_away(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "RETRY_INTERVAL_S", 0.01)
    it.source.parameters["max-bandwidth"] = DIRTIED_BYTES_PER_S
    record = await it.migrations.start(VM, "b")
    await it.until(lambda: it.store.migrations.sample_count(record.id) > 0)
    before = it.store.migrations.sample_count(record.id)
    away = True
    refused: list[str] = []
    for name in ("add_samples", "update"):
        real = getattr(it.store.migrations, name)

        def call(*args: Any, _real: Any = real, _name: str = name, **fields: Any) -> Any:
            if away:
                refused.append(_name)
                raise SetupError("the database is away")
            return _real(*args, **fields)

        monkeypatch.setattr(it.store.migrations, name, call)
    await it.until(lambda: refused.count("add_samples") >= 2)
    it.source.parameters["max-bandwidth"] = 1 << 40
    await it.until(lambda: it.waiting.status == "running")
    assert it.store.migrations.get(record.id).state is MigrationState.ACTIVE
    away = False
    done = await it.ended(record)
    assert done.state is MigrationState.COMPLETED
    assert it.store.migrations.sample_count(record.id) > before + 20
    moments = [sample.at_ms for sample in it.store.migrations.samples(record.id)]
    assert moments == sorted(moments)
