"""Migrations from the order to the settled record, also when something breaks on the way."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.simulated.fakes import OLDEST, VM, only
from tests.support.simulated.world import World, world
from vmtune.engine import session as migration_session
from vmtune.errors import Blocked, InvalidInput, OperationInProgress
from vmtune.hypervisor.protocol import MigrationHandle
from vmtune.model.migration.record import AbortState, MigrationState, QemuStatus, Trigger
from vmtune.model.plan.outcome import Outcome, Status
from vmtune.testing.fake.qemu import Fault, FaultKind

TUNED = {"multifd": True, "multifd_channels": 4, "multifd_compression": "zstd"}


def by_name(outcomes: tuple[Outcome, ...]) -> dict[str, Status]:
    return {outcome.tunable: outcome.status for outcome in outcomes}


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
    record = await it.begin()
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


async def test_early_completed_without_figures_is_read_again(tmp_path: Path) -> None:
    async with world(tmp_path, OLDEST) as it:
        done = await it.migrate()
        assert done.totals is not None
        assert done.totals.total_time_ms > 0


async def test_a_failure_keeps_qemus_words_and_puts_back_what_was_set(it: World) -> None:
    await it.profile(**TUNED, downtime_limit_ms=700)
    record = await it.begin("p")
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
    record = await it.begin()
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
    record = await it.begin()
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


async def test_one_at_a_time_for_each_vm(it: World) -> None:
    record = await it.begin()
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
