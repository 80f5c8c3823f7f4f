"""Migrations from the order to the settled record, also when something breaks on the way."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

from tests.support.fakes import OLDEST, VM, only
from tests.support.world import World, assemble, world
from vmtune.engine import session as migration_session
from vmtune.errors import (
    Blocked,
    InvalidInput,
    NotFound,
    OperationInProgress,
    OutcomeUnknown,
    TooLate,
    VmtuneError,
)
from vmtune.hypervisor.protocol import Driver, MigrateOrder, MigrationHandle
from vmtune.model.migration.record import (
    ABORT_WAITS,
    AbortState,
    Migration,
    MigrationState,
    QemuStatus,
    Trigger,
)
from vmtune.model.migration.steps import AfterIterations, Step, StepAction
from vmtune.model.plan.outcome import Outcome, Status
from vmtune.testing.fake.qemu import DIRTIED_BYTES_PER_S, Fault, FaultKind


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


TUNED = {"multifd": True, "multifd_channels": 4, "multifd_compression": "zstd"}


def by_name(outcomes: tuple[Outcome, ...]) -> dict[str, Status]:
    return {outcome.tunable: outcome.status for outcome in outcomes}


async def begin(it: World, profile: str | None = None) -> Migration:
    """Start a migration that does not converge, and wait until QEMU runs it."""
    it.source.parameters["max-bandwidth"] = DIRTIED_BYTES_PER_S
    record = await it.migrations.start(VM, "b", profile)
    await it.until(lambda: it.store.migrations.get(record.id).state is MigrationState.ACTIVE)
    return record


async def test_a_migration_is_recorded_from_order_to_figures(it: World) -> None:
    await it.profile(**TUNED, downtime_limit_ms=700)
    done = await it.migrate("p")
    assert done.state is MigrationState.COMPLETED
    assert by_name(done.outcomes) == dict.fromkeys([*TUNED, "downtime_limit_ms"], Status.EFFECTIVE)
    assert done.totals is not None
    assert done.totals.downtime_ms == 12
    assert done.totals.iterations >= 3
    assert done.started_at
    assert done.active_at
    assert done.ended_at
    assert done.started_at <= done.active_at <= done.ended_at
    assert it.waiting.status == "running"
    assert done.abort is AbortState.NONE
    assert done.failure == ""


async def test_a_vm_that_nobody_has_listed_is_counted_where_it_is(it: World) -> None:
    def counted() -> tuple[int, int]:
        counts = it.store.known_vms.counts(["a", "b"])
        return counts["a"], counts["b"]

    assert counted() == (0, 0)
    await it.plans.plan(VM, destination="b")
    assert counted() == (1, 0)
    await it.migrate()
    await it.until(lambda: counted() == (0, 1))


async def test_every_iteration_has_a_sample_at_its_boundary(it: World) -> None:
    record = await begin(it)
    await it.until(lambda: it.store.migrations.sample_count(record.id) >= 10)
    await it.migrations.abort(record.id)
    done = await it.ended(record)
    samples = it.store.migrations.samples(done.id)
    iterations = [s.iteration for s in samples]
    assert len(set(iterations)) >= 3
    assert [s.iteration for s in samples if s.boundary] == sorted(set(iterations))
    assert [s.at_ms for s in samples] == sorted(s.at_ms for s in samples)


async def test_without_profile_it_migrates_untuned(it: World) -> None:
    done = await it.migrate()
    assert (done.profile, done.revision, done.wanted) == ("", 0, {})
    assert done.state is MigrationState.COMPLETED


async def test_both_sides_are_prepared_and_reset(it: World) -> None:
    await it.profile(**TUNED)
    await it.migrate("p")
    for qemu in (it.source, it.waiting):
        set_on = [
            row["capability"]
            for command, arguments in qemu.commands
            if command == "migrate-set-capabilities"
            for row in arguments["capabilities"]
            if row["state"]
        ]
        assert "multifd" in set_on
        assert qemu.capabilities["multifd"] is False
        assert qemu.parameters["multifd-channels"] == 2


async def test_what_something_overwrites_is_told(tmp_path: Path) -> None:
    async with world(tmp_path, like_libvirt=True) as it:
        await it.profile(**TUNED)
        done = await it.migrate("p")
        outcome = {o.tunable: o for o in done.outcomes}["multifd"]
        assert outcome.status is Status.OVERWRITTEN
        assert outcome.seen is False


async def test_one_that_has_ended_before_it_was_looked_at_is_proven(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def too_late(*of: object) -> None:
        handle = of[4]
        assert isinstance(handle, MigrationHandle)
        await handle.wait()

    monkeypatch.setattr(migration_session, "watch", too_late)
    await it.profile(**TUNED)
    done = await it.ended(await it.migrations.start(VM, "b", "p"))
    assert done.state is MigrationState.COMPLETED
    assert by_name(done.outcomes) == dict.fromkeys(TUNED, Status.EFFECTIVE)


async def test_a_cancel_that_hangs_is_told(it: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migration_session, "CANCELS_WITHIN_S", 0.1)
    record = await begin(it)
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
    record = await begin(it)
    it.source.paced = True
    it.source.faults.append(Fault(FaultKind.HANG, "query-migrate"))
    it.source.faults.append(Fault(FaultKind.HANG, "query-migrate"))
    with pytest.raises(OutcomeUnknown):
        await it.migrations.abort(record.id)
    (waits,) = it.store.migrations.get(record.id).problems
    assert waits.code == ABORT_WAITS
    assert "restore the link" in waits.remedy


async def test_early_completed_without_figures_is_read_again(tmp_path: Path) -> None:
    async with world(tmp_path, OLDEST) as it:
        done = await it.migrate()
        assert done.totals is not None
        assert done.totals.total_time_ms > 0


async def test_a_failure_keeps_qemus_words_and_puts_back_what_was_set(it: World) -> None:
    await it.profile(**TUNED, downtime_limit_ms=700)
    record = await begin(it, "p")
    assert it.source.parameters["downtime-limit"] == 700
    it.source.fail("the destination hung up")
    done = await it.ended(record)
    assert done.state is MigrationState.FAILED
    assert "the destination hung up" in done.failure
    assert it.source.parameters["downtime-limit"] == 300
    assert it.source.capabilities["multifd"] is False
    assert it.source.status == "running"
    assert done.totals is None


async def test_a_failure_after_the_switch_says_that_the_guest_was_rolled_back(it: World) -> None:
    """Without libvirt only the samples show that it was in post-copy."""
    record = await begin(it)
    it.source.paced = True
    it.source.outgoing.status = QemuStatus.POSTCOPY_ACTIVE
    await it.until(
        lambda: any(
            sample.status is QemuStatus.POSTCOPY_ACTIVE
            for sample in it.store.migrations.samples(record.id)
        )
    )
    it.source.outgoing.end(QemuStatus.FAILED)
    done = await it.ended(record)
    assert done.state is MigrationState.FAILED
    assert done.failure.startswith("guest rolled back")


async def test_one_that_somebody_else_aborts_is_cancelled(it: World) -> None:
    record = await begin(it)
    it.source.answer("migrate_cancel", {})
    done = await it.ended(record)
    assert (done.state, done.abort) == (MigrationState.CANCELLED, AbortState.NONE)


async def test_a_request_waits_for_the_record_of_one_that_is_over(it: World) -> None:
    """A script calls virsh migrate and then vmtune; until the record is settled it was refused."""
    over = it.store.migrations.begin(
        vm=VM, vm_name="vm", source="b", destination="a", trigger=Trigger.OBSERVED,
        state=MigrationState.STARTING, started_at=datetime.now(UTC),
    )  # fmt: skip
    requested = asyncio.create_task(it.migrations.start(VM, "b"))
    await asyncio.sleep(0.2)
    assert not requested.done()
    it.store.migrations.update(over.id, state=MigrationState.COMPLETED)
    record = await requested
    await it.ended(record)


async def test_what_cannot_be_set_now_is_not_advised(it: World) -> None:
    record = await begin(it)
    for values, field in (
        ({"multifd_channels": 4}, "values.multifd_channels"),
        ({"xbzrle_cache_size_bytes": 1 << 20}, "values.xbzrle_cache_size_bytes"),
    ):
        with pytest.raises(InvalidInput) as refused:
            await it.migrations.change(record.id, values)
        (problem,) = refused.value.problems
        assert problem.field == field
        assert "to on" not in problem.remedy
    await it.migrations.abort(record.id)
    await it.ended(record)


async def test_abort_in_time(it: World) -> None:
    record = await begin(it)
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

    record = await begin(it)
    monkeypatch.setattr(it.drivers["a"], "abort_migration", gone)
    with pytest.raises(TooLate, match="the VM has left the source"):
        await it.migrations.abort(record.id)
    it.source.parameters["max-bandwidth"] = 0
    assert (await it.ended(record)).state is MigrationState.COMPLETED


async def test_abort_in_postcopy_is_too_late(it: World) -> None:
    await it.profile(postcopy=True)
    record = await begin(it, "p")
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
    record = await begin(it)
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


async def test_a_source_that_dies_is_no_success(it: World) -> None:
    record = await begin(it)
    it.source.die()
    done = await it.ended(record)
    assert done.state is MigrationState.FAILED
    assert done.failure


async def test_hosts_that_go_silent_make_it_unknown_until_they_answer(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vmtune.engine.watch._LOST_AFTER_S", 0.1)
    monkeypatch.setattr("vmtune.engine.end_state.AGREES_WITHIN_S", 0.1)
    record = await begin(it)
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
    record = await begin(it)
    await it.jobs.stop()
    await it.hosts.close()
    started = it.store.migrations.get(record.id).started_at
    assert started is not None
    before_ms = (datetime.now(UTC) - started).total_seconds() * 1000
    reborn = assemble(it.store, it.drivers, lambda host: it.drivers[host.name], _Resumed(it))
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


async def test_one_at_a_time_for_each_vm(it: World) -> None:
    record = await begin(it)
    with pytest.raises((OperationInProgress, Blocked)):
        await it.migrations.start(VM, "b")
    await it.profile(downtime_limit_ms=700)
    with pytest.raises((OperationInProgress, Blocked)):
        await it.applications.apply(VM, "p")
    await it.migrations.abort(record.id)
    await it.ended(record)


async def test_the_destination_is_another_host(it: World) -> None:
    with pytest.raises(InvalidInput) as caught:
        await it.migrations.start(VM, "a")
    assert caught.value.problems[0].code == "destination_is_source"


async def test_blockers_refuse_and_overrides_leave_out(it: World) -> None:
    await it.profile(dirty_limit=True, downtime_limit_ms=700)
    with pytest.raises(Blocked):
        await it.migrations.start(VM, "b", "p")
    assert it.store.migrations.list().items == ()
    done = await it.migrate("p", overrides=("dirty_limit_needs_ring",))
    assert done.state is MigrationState.COMPLETED
    assert by_name(done.outcomes) == {
        "dirty_limit": Status.REJECTED,
        "downtime_limit_ms": Status.EFFECTIVE,
    }


async def test_an_unknown_override_is_refused(it: World) -> None:
    with pytest.raises(InvalidInput, match="not the code of a blocker"):
        await it.migrations.start(VM, "b", overrides=("everything",))


async def test_a_refused_start_leaves_both_sides_as_before(it: World) -> None:
    await it.profile(**TUNED, downtime_limit_ms=700)
    await it.plans.plan(VM, "p", destination="b")
    it.waiting.faults.append(Fault(FaultKind.REFUSE, "migrate-incoming", text="no port left"))
    done = await it.migrate("p")
    assert done.state is MigrationState.FAILED
    assert "no port left" in done.failure
    assert it.source.parameters["downtime-limit"] == 300
    assert it.source.capabilities["multifd"] is False


async def test_the_standing_application_is_set_again_where_the_vm_arrives(it: World) -> None:
    await it.profile(downtime_limit_ms=700, iothread_poll_max_ns=1000)
    await it.applications.apply(VM, "p")
    done = await it.migrate("p")
    assert done.problems == ()
    assert it.waiting.parameters["downtime-limit"] == 700
    assert (await it.applications.verify(VM)).host == "b"
    assert (await it.applications.verify(VM)).clean


async def test_announcements_are_set_on_the_destination_alone(it: World) -> None:
    await it.profile(announce_rounds=7)
    done = await it.migrate("p")
    assert by_name(done.outcomes) == {"announce_rounds": Status.EFFECTIVE}
    for qemu, rounds in ((it.waiting, [7, 5]), (it.source, [])):
        sent = [a for c, a in qemu.commands if c == "migrate-set-parameters"]
        assert [a["announce-rounds"] for a in sent if "announce-rounds" in a] == rounds


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
    record = await begin(it)
    await it.jobs.stop()
    it.store.migrations.request_abort(record.id)
    await it.job.finalize(str(record.id))
    done = it.store.migrations.get(record.id)
    assert (done.state, done.abort) == (MigrationState.CANCELLED, AbortState.ABORTED)
    assert not it.source.outgoing.status.running


async def test_progress_never_goes_back(it: World) -> None:
    shares: list[float] = []

    async def listen() -> None:
        async for message in it.bus.subscribe():
            if isinstance(share := message.data.get("share"), float):
                shares.append(share)

    task = asyncio.create_task(listen())
    await asyncio.sleep(0)
    await it.migrate()
    task.cancel()
    assert shares
    assert shares == sorted(shares)
    assert max(shares) < 1


async def test_an_error_of_ours_still_completes_the_record(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(it.drivers["a"], "start_migration", broken)
    done = await it.migrate()
    assert done.state is MigrationState.FAILED
    assert only(it.drivers["a"]).status == "running"


class _Resumed:
    """The engine of a service that died, given the phases of the next one."""

    def __new__(cls, it: World) -> "object":  # type: ignore[misc] # stands in for an engine
        engine = it.jobs
        engine._started = False
        engine._runner = type(engine._runner)()
        return engine


assert issubclass(TooLate, VmtuneError)


async def test_an_abort_that_the_job_has_sent_first_is_not_too_late(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = await begin(it)
    abort = it.drivers["a"].abort_migration

    async def second(vm: UUID) -> None:
        await abort(vm)
        await abort(vm)  # finds it ended

    monkeypatch.setattr(it.drivers["a"], "abort_migration", second)
    await it.migrations.abort(record.id)
    done = await it.ended(record)
    assert (done.state, done.abort) == (MigrationState.CANCELLED, AbortState.ABORTED)
