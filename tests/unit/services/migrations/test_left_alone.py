"""Migrations that hosts or services leave alone: what is found of them later."""

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from tests.support.simulated.fakes import VM
from tests.support.simulated.world import World, after_death, assemble
from vmtune.errors import CommandRefused, HostUnreachable, MonitorBusy, VmtuneError
from vmtune.hypervisor.protocol import MigrateOrder
from vmtune.model.migration.record import MigrationState, Snapshot
from vmtune.model.migration.steps import AfterIterations, Step, StepAction
from vmtune.testing.fake.qemu import DIRTIED_BYTES_PER_S


async def test_a_source_that_dies_is_no_success(it: World) -> None:
    record = await it.begin()
    it.source.die()
    done = await it.ended(record)
    assert done.state is MigrationState.FAILED
    assert done.failure


async def test_hosts_that_go_silent_make_it_unknown_until_they_answer(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vmtune.engine.asking.LOST_AFTER_S", 0.1)
    monkeypatch.setattr("vmtune.engine.end_state.AGREES_WITHIN_S", 0.1)
    record = await it.begin()
    it.source.lose()
    it.drivers["a"].reachable = it.drivers["b"].reachable = False
    done = await it.ended(record)
    assert done.state is MigrationState.UNKNOWN
    assert "the source cannot be asked" in done.failure
    it.drivers["a"].reachable = True
    await it.job.settle_unknown()
    looked = it.store.migrations.get(record.id)
    assert (looked.state, looked.failure) == (MigrationState.UNKNOWN, "QEMU says that it is active")
    assert looked.ended_at == done.ended_at
    it.drivers["b"].reachable = True
    it.source.parameters["max-bandwidth"] = 0
    while it.source.outgoing.status.running:
        it.source.step()
    await it.job.settle_unknown()
    settled = it.store.migrations.get(record.id)
    assert settled.state is MigrationState.COMPLETED
    assert settled.failure == ""


async def test_a_migration_is_found_again_by_the_next_service(it: World) -> None:
    """A service dies: its engine's record and the store stay, everything in memory goes."""
    record = await it.begin()
    await it.jobs.stop()
    await it.hosts.close()
    started = it.store.migrations.get(record.id).started_at
    assert started is not None
    before_ms = (datetime.now(UTC) - started).total_seconds() * 1000
    reborn = assemble(
        it.store, it.drivers, lambda host: it.drivers[host.name], after_death(it.jobs)
    )
    await reborn.jobs.start()
    try:
        it.source.parameters["max-bandwidth"] = 0
        done = await reborn.ended(record)
    finally:
        await reborn.jobs.stop()
    assert done.state is MigrationState.COMPLETED
    assert done.totals is not None
    moments = [s.at_ms for s in it.store.migrations.samples(record.id)]
    assert moments[-1] >= int(before_ms), "time goes on from the migration's start"
    starts = [c for c, _ in it.source.commands if c == "migrate"]
    assert len(starts) == 1


@pytest.mark.parametrize(
    "silence",
    [
        CommandRefused("cannot acquire state change lock", code="busy"),
        HostUnreachable("its libvirt starts again"),
        MonitorBusy("another client holds the monitor"),
    ],
)
async def test_a_source_that_is_silent_as_the_next_service_starts_is_asked_again(
    it: World, monkeypatch: pytest.MonkeyPatch, silence: VmtuneError
) -> None:
    monkeypatch.setattr("vmtune.engine.end_state.AGREES_WITHIN_S", 0)
    record = await it.begin()
    await it.jobs.stop()
    await it.hosts.close()
    source = it.drivers["a"]
    real = source.migration
    looks = 0

    async def migration(vm: UUID, at_ms: int = 0) -> Snapshot:
        nonlocal looks
        looks += 1
        if looks < 3:
            raise silence
        return await real(vm, at_ms)

    monkeypatch.setattr(source, "migration", migration)
    reborn = assemble(
        it.store, it.drivers, lambda host: it.drivers[host.name], after_death(it.jobs)
    )
    await reborn.jobs.start()
    try:
        await it.until(lambda: looks > 4 or it.store.migrations.get(record.id).state.ended)
        assert it.store.migrations.get(record.id).state is MigrationState.ACTIVE
        it.source.parameters["max-bandwidth"] = 0
        done = await reborn.ended(record)
    finally:
        await reborn.jobs.stop()
    assert (done.state, done.failure) == (MigrationState.COMPLETED, "")


async def test_a_start_that_nobody_saw_is_never_repeated(it: World) -> None:
    """Killed between the intent and QEMU's first sign: it is looked at, not started again."""
    record = it.store.migrations.begin(vm=VM, vm_name="vm", source="a", destination="b")
    it.store.migrations.update(record.id, state=MigrationState.PREPARING)
    it.store.migrations.update(record.id, state=MigrationState.STARTING)
    await it.jobs.submit("migration", str(record.id))
    done = await it.ended(record)
    assert done.state is MigrationState.FAILED
    assert "migrate" not in [c for c, _ in it.source.commands]


async def test_a_start_that_shows_late_is_found(it: World) -> None:
    """Killed just after the call: libvirt carries it out, and QEMU knows of it a moment later."""
    record = it.store.migrations.begin(vm=VM, vm_name="vm", source="a", destination="b")
    it.store.migrations.update(record.id, state=MigrationState.PREPARING)
    started = datetime.now(UTC)
    it.store.migrations.update(record.id, state=MigrationState.STARTING, started_at=started)
    await it.jobs.submit("migration", str(record.id))
    await asyncio.sleep(1)
    assert it.store.migrations.get(record.id).state is MigrationState.STARTING
    source, destination = it.drivers["a"], it.drivers["b"]
    it.source.parameters["max-bandwidth"] = DIRTIED_BYTES_PER_S
    await source.start_migration(MigrateOrder(VM, {}, {}), destination)
    await it.until(lambda: it.store.migrations.get(record.id).active_at is not None)
    it.source.parameters["max-bandwidth"] = 1 << 30
    done = await it.ended(record)
    assert (done.state, done.failure) == (MigrationState.COMPLETED, "")


@pytest.mark.parametrize(
    ("for_ms", "recorded"), [(60_000, timedelta(0)), (1_000, timedelta(minutes=-2))]
)
async def test_anothers_migration_is_not_taken_for_one_that_never_began(
    it: World, monkeypatch: pytest.MonkeyPatch, for_ms: int, recorded: timedelta
) -> None:
    """The service was killed before its call, or when that was refused, and another client
    migrates the VM: since before, or only since much later."""
    source, destination = it.drivers["a"], it.drivers["b"]
    it.source.parameters["max-bandwidth"] = DIRTIED_BYTES_PER_S
    await source.start_migration(MigrateOrder(VM, {}, {}), destination)

    async def migrating_ms(_: UUID) -> int:
        return for_ms

    monkeypatch.setattr(source, "migrating_ms", migrating_ms)
    step = Step(AfterIterations(0), StepAction.ABORT)
    record = it.store.migrations.begin(
        vm=VM, vm_name="vm", source="a", destination="b", steps=(step,)
    )
    it.store.migrations.update(record.id, state=MigrationState.PREPARING)
    it.store.migrations.update(
        record.id, state=MigrationState.STARTING, started_at=datetime.now(UTC) + recorded
    )
    await it.jobs.submit("migration", str(record.id))
    done = await it.ended(record)
    assert (done.state, done.step_records) == (MigrationState.FAILED, ())
    assert "another client's" in done.failure
    assert (await source.migration(VM)).status.running
    assert "migrate_cancel" not in [command for command, _ in it.source.commands]
