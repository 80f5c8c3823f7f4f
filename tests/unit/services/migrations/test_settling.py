"""Records whose end is unknown, looked at again when other things have happened to the VM."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from tests.support.simulated.fakes import VM
from tests.support.simulated.world import World
from vmtune.errors import CommandRefused, TakenOver
from vmtune.hypervisor.protocol import MigrateOrder
from vmtune.model.migration.record import AbortState, Migration, MigrationState
from vmtune.model.plan.changes import Change
from vmtune.model.plan.outcome import ApplicationState
from vmtune.storage.repositories.since import Since
from vmtune.testing.fake.qemu import DIRTIED_BYTES_PER_S

BEFORE = 300
"""The downtime limit of a QEMU that nobody has set, in milliseconds."""


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vmtune.engine.end_state.AGREES_WITHIN_S", 0.1)


def unknown(
    it: World,
    *,
    vm: UUID = VM,
    destination: str = "b",
    journal: tuple[Change, ...] = (),
    abort: bool = False,
    ago: timedelta = timedelta(0),
) -> Migration:
    """A record whose end nobody has seen."""
    store = it.store.migrations
    id = store.begin(vm=vm, vm_name="vm", source="a", destination=destination).id
    store.update(id, state=MigrationState.PREPARING, journal=journal)
    store.update(id, state=MigrationState.STARTING, started_at=datetime.now(UTC) - ago)
    if abort:
        store.request_abort(id)
    return store.update(id, state=MigrationState.UNKNOWN)


def cancels(it: World) -> int:
    return [command for command, _ in it.source.commands].count("migrate_cancel")


async def runs(it: World) -> None:
    """Somebody migrates the VM, and vmtune does not know."""
    it.source.parameters["max-bandwidth"] = DIRTIED_BYTES_PER_S
    await it.drivers["a"].start_migration(MigrateOrder(VM, {}, {}), it.drivers["b"])
    it.source.step()


async def test_an_old_request_to_abort_is_not_for_a_newer_migration(it: World) -> None:
    old = unknown(it, abort=True, journal=(Change("downtime_limit_ms", BEFORE + 1),))
    newer = await it.begin()
    await it.job.settle_unknown()
    assert cancels(it) == 0
    assert it.store.migrations.get(newer.id).state is MigrationState.ACTIVE
    it.source.parameters["max-bandwidth"] = 1 << 40
    assert (await it.ended(newer)).state is MigrationState.COMPLETED
    for _ in range(2):
        await it.job.settle_unknown()
    told = it.store.migrations.get(old.id)
    assert (told.state, told.abort) == (MigrationState.UNKNOWN, AbortState.REQUESTED)
    assert "has migrated again" in told.failure


@pytest.mark.parametrize(("ago", "sent"), [(timedelta(0), 1), (timedelta(minutes=2), 0)])
async def test_a_request_to_abort_is_for_what_is_as_old_as_its_migration(
    it: World, ago: timedelta, sent: int
) -> None:
    """Another client may have begun one that has no record here."""
    await runs(it)
    unknown(it, abort=True, ago=ago)
    await it.job.settle_unknown()
    assert min(cancels(it), 1) == sent


@pytest.mark.parametrize("reverted", [False, True])
async def test_what_was_applied_since_is_not_undone(it: World, reverted: bool) -> None:
    values = (Change("downtime_limit_ms", BEFORE), Change("max_postcopy_bandwidth_bytes_per_s", 7))
    record = unknown(it, journal=values)
    it.source.parameters["downtime-limit"] = 500
    await it.profile(downtime_limit_ms=700)
    applied = await it.applications.apply(VM, "p")
    assert applied.state is ApplicationState.APPLIED
    if reverted:
        await it.applications.revert(applied.id)
    await it.job.settle_unknown()
    assert it.store.migrations.get(record.id).state is MigrationState.FAILED
    assert it.source.parameters["downtime-limit"] == (BEFORE if reverted else 700)
    assert it.source.parameters["max-postcopy-bandwidth"] == 7, "nobody else has set it"


async def test_nothing_is_settled_while_an_application_is_at_work(it: World) -> None:
    record = unknown(it, journal=(Change("downtime_limit_ms", BEFORE),))
    it.source.parameters["downtime-limit"] = 500
    open_one = it.store.applications.begin(
        vm=VM, host="a", profile="p", revision=1, wanted={}, best_effort=False, journal=()
    )
    await it.job.settle_unknown()
    assert it.source.parameters["downtime-limit"] == 500
    it.store.applications.finish(open_one.id, ApplicationState.FAILED)
    await it.job.settle_unknown()
    assert it.source.parameters["downtime-limit"] == BEFORE
    assert it.store.migrations.get(record.id).state is MigrationState.FAILED


async def test_a_removed_destination_keeps_no_record_from_being_settled(it: World) -> None:
    gone, here = unknown(it, vm=uuid4()), unknown(it)
    await it.hosts.remove("b")
    await it.job.settle_unknown()
    told = it.store.migrations.get(gone.id)
    assert told.state is MigrationState.UNKNOWN
    assert told.failure == "the destination cannot be asked: b was removed"
    assert it.store.migrations.get(here.id).state is MigrationState.FAILED


async def test_a_removed_source_is_told(it: World) -> None:
    record = unknown(it)
    await it.hosts.remove("a")
    await it.job.settle_unknown()
    told = it.store.migrations.get(record.id)
    assert (told.state, told.failure) == (
        MigrationState.UNKNOWN,
        "the source cannot be asked: a was removed",
    )


@pytest.mark.parametrize("error", [CommandRefused("no"), KeyError("a fault of ours")])
async def test_one_that_cannot_be_settled_keeps_no_other_from_it(
    it: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    bad, good = unknown(it, vm=uuid4()), unknown(it)
    real = it.store.migrations.since

    def since(record: Migration) -> Since:
        if record.id == bad.id:
            raise error
        return real(record)

    monkeypatch.setattr(it.store.migrations, "since", since)
    await it.job.settle_unknown()
    assert it.store.migrations.get(bad.id).state is MigrationState.UNKNOWN
    assert it.store.migrations.get(good.id).state is MigrationState.FAILED


async def test_who_has_lost_its_hosts_settles_nothing_more(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [unknown(it, vm=uuid4()), unknown(it)]

    def since(record: Migration) -> Since:
        raise TakenOver("another service has taken over")

    monkeypatch.setattr(it.store.migrations, "since", since)
    with pytest.raises(TakenOver):
        await it.job.settle_unknown()
    states = {it.store.migrations.get(record.id).state for record in records}
    assert states == {MigrationState.UNKNOWN}
