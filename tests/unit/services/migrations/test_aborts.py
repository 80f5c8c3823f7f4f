"""Aborts of migrations: in time, too late, before anything began, or somebody else's."""

import asyncio
from uuid import UUID

import pytest

from tests.support.simulated.fakes import VM
from tests.support.simulated.world import World
from vmtune.engine import session as migration_session
from vmtune.errors import NotFound, OutcomeUnknown, TooLate
from vmtune.hypervisor.protocol import Driver, MigrateOrder, MigrationHandle
from vmtune.model.migration.record import ABORT_WAITS, AbortState, MigrationState, QemuStatus
from vmtune.testing.fake.qemu import Fault, FaultKind


async def test_a_cancel_that_hangs_is_told(it: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migration_session, "CANCELS_WITHIN_S", 0.1)
    record = await it.begin()
    it.source.paced = True  # it goes on only when told to
    it.source.outgoing.status = QemuStatus.CANCELLING
    await it.until(lambda: it.store.migrations.get(record.id).problems != ())
    it.source.outgoing.end(QemuStatus.CANCELLED)
    done = await it.ended(record)
    assert [problem.code for problem in done.problems] == ["cancel_hangs"]


async def test_the_record_says_what_an_abort_waits_for(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vmtune.hypervisor.qmp.migrations._HELD_UP_AFTER_S", 0.05)
    record = await it.begin()
    it.source.paced = True
    it.source.faults.append(Fault(FaultKind.HANG, "query-migrate"))
    it.source.faults.append(Fault(FaultKind.HANG, "query-migrate"))
    with pytest.raises(OutcomeUnknown):
        await it.migrations.abort(record.id)
    (waits,) = it.store.migrations.get(record.id).problems
    assert waits.code == ABORT_WAITS
    assert "restore the link" in waits.remedy


async def test_one_that_somebody_else_aborts_is_cancelled(it: World) -> None:
    record = await it.begin()
    it.source.answer("migrate_cancel", {})
    done = await it.ended(record)
    assert (done.state, done.abort) == (MigrationState.CANCELLED, AbortState.NONE)


async def test_abort_in_time(it: World) -> None:
    record = await it.begin()
    asked = await it.migrations.abort(record.id)
    assert asked.abort is AbortState.REQUESTED
    done = await it.ended(record)
    assert (done.state, done.abort) == (MigrationState.CANCELLED, AbortState.ABORTED)
    with pytest.raises(TooLate, match="cancelled"):
        await it.migrations.abort(record.id)


async def test_abort_of_one_whose_vm_has_left_says_so(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(vm: UUID) -> None:
        raise NotFound(f"Domain not found: no domain with matching uuid '{vm}'")

    record = await it.begin()
    monkeypatch.setattr(it.drivers["a"], "abort_migration", gone)
    with pytest.raises(TooLate, match="the VM has left the source"):
        await it.migrations.abort(record.id)
    it.source.parameters["max-bandwidth"] = 0
    assert (await it.ended(record)).state is MigrationState.COMPLETED


async def test_abort_in_postcopy_is_too_late(it: World) -> None:
    await it.profile(postcopy=True)
    record = await it.begin("p")
    await it.drivers["a"].vm_facts(VM)
    it.source.answer("migrate-start-postcopy", {})
    with pytest.raises(TooLate):
        await it.migrations.abort(record.id)
    assert it.store.migrations.get(record.id).abort is AbortState.TOO_LATE
    it.source.parameters["max-bandwidth"] = 0
    done = await it.ended(record)
    assert done.state is MigrationState.COMPLETED


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (QemuStatus.POSTCOPY_DEVICE, "runs on the destination"),
        (QemuStatus.FAILING, "cleaning up"),
    ],
)
async def test_abort_is_too_late_in_what_qemu_11_says_as_well(
    it: World, status: QemuStatus, why: str
) -> None:
    record = await it.begin()
    it.source.paced = True  # else it goes on with each question
    before = it.source.outgoing.status
    it.source.outgoing.status = status
    with pytest.raises(TooLate, match=why):
        await it.migrations.abort(record.id)
    assert it.store.migrations.get(record.id).abort is AbortState.TOO_LATE
    assert "migrate_cancel" not in [command for command, _ in it.source.commands]
    it.source.outgoing.status = before
    it.source.paced = False
    it.source.parameters["max-bandwidth"] = 0
    await it.ended(record)


async def test_an_abort_before_qemu_knows_of_it_is_sent_while_that_sets_up(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the link fails while multifd's channels connect, QEMU stays there."""
    it.source.paced = True
    start, begun, go_on = it.drivers["a"].start_migration, asyncio.Event(), asyncio.Event()

    async def held(order: MigrateOrder, destination: Driver) -> MigrationHandle:
        begun.set()
        await go_on.wait()
        return await start(order, destination)

    monkeypatch.setattr(it.drivers["a"], "start_migration", held)
    record = await it.migrations.start(VM, "b", None)
    await begun.wait()
    await it.migrations.abort(record.id)
    go_on.set()
    done = await it.ended(record)
    assert done.state is MigrationState.CANCELLED
    assert it.source.status == "running"


async def test_abort_before_it_began(it: World) -> None:
    record = it.store.migrations.begin(vm=VM, vm_name="vm", source="a", destination="b")
    await it.jobs.stop()
    asked = it.store.migrations.request_abort(record.id)
    assert asked.abort is AbortState.REQUESTED
    await it.job.finalize(str(record.id))
    done = it.store.migrations.get(record.id)
    assert (done.state, done.abort) == (MigrationState.CANCELLED, AbortState.ABORTED)


async def test_what_began_although_it_was_to_be_aborted_is_aborted(it: World) -> None:
    """The abort came between the intent to start and QEMU's first sign, and cut the job."""
    record = await it.begin()
    await it.jobs.stop()
    it.store.migrations.request_abort(record.id)
    await it.job.finalize(str(record.id))
    done = it.store.migrations.get(record.id)
    assert (done.state, done.abort) == (MigrationState.CANCELLED, AbortState.ABORTED)
    assert not it.source.outgoing.status.running


async def test_an_abort_that_the_job_has_sent_first_is_not_too_late(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = await it.begin()
    abort = it.drivers["a"].abort_migration

    async def second(vm: UUID) -> None:
        await abort(vm)
        await abort(vm)  # finds it ended

    monkeypatch.setattr(it.drivers["a"], "abort_migration", second)
    await it.migrations.abort(record.id)
    done = await it.ended(record)
    assert (done.state, done.abort) == (MigrationState.CANCELLED, AbortState.ABORTED)
