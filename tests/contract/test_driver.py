"""What every driver has to do, whatever is behind it: a fake, QMP sockets or libvirt."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from uuid import UUID

import pytest

from tests.support.bench_fake import FakeBench
from tests.support.benches import Bench, BenchKind, bench_kinds
from vmtune.errors import (
    CommandRefused,
    MonitorBusy,
    NotFound,
    OutcomeUnknown,
    TooLate,
)
from vmtune.hypervisor.protocol import Driver, DriverEvent, EventKind, MigrateOrder, MigrationHandle
from vmtune.model.host.facts import Reading, VmFacts, VmState
from vmtune.model.migration.record import QemuStatus, Totals
from vmtune.model.plan.changes import Change, in_order, undo
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import Kind, QmpKind, Route, Tunable, Value
from vmtune.model.versions import Version

NOBODY = UUID("00000000-0000-4000-8000-000000000001")
SETTABLE = [t for t in BUILT_IN.values() if t.route in (Route.MONITOR, Route.LIVE)]


@pytest.fixture(params=[pytest.param(k, id=k.id) for k in bench_kinds()])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    kind: BenchKind = request.param
    if kind.why_not:
        pytest.skip(kind.why_not)
    async with kind.open(tmp_path) as opened:
        yield opened


def another_value(tunable: Tunable, now: Value | None) -> Value:
    """A value that is not set now."""
    if tunable.kind is Kind.BOOLEAN:
        return not now
    if tunable.kind is Kind.CHOICE:
        return next(c for c in tunable.choices if c != now)
    assert isinstance(now, int)
    return now * 2 if tunable.power_of_two else now - 1 if now == tunable.maximum else now + 1


def offered(tunable: Tunable, facts: VmFacts) -> bool:
    return facts.readings[tunable.name].value is not None


def ring_only(tunable: Tunable) -> bool:
    """Takes a dirty ring, which only KVM has: QEMU refuses it on these guests."""
    return tunable.name == "dirty_limit"


async def until(happens: Callable[[], Awaitable[bool]]) -> None:
    """Look again and again, so that no test waits longer than it has to."""
    async with asyncio.timeout(20):
        while True:
            if await happens():
                return
            await asyncio.sleep(0.01)


async def start(bench: Bench, values: dict[str, Value] | None = None) -> MigrationHandle:
    """A migration that is active and slow."""
    await bench.open_destination()
    order = MigrateOrder(bench.vm, {**(values or {}), **bench.slow}, {})
    handle = await bench.source.start_migration(order, bench.destination)

    async def has_begun() -> bool:
        # Before libvirt hands it to QEMU, that tells of none, or of the one before.
        status = (await bench.source.migration(bench.vm)).status
        return status.running and status is not QemuStatus.SETUP

    await until(has_begun)
    return handle


class TestLooking:
    async def test_the_vm_is_listed(self, bench: Bench) -> None:
        vms = {vm.uuid: vm for vm in await bench.source.list_vms()}
        assert vms[bench.vm].name == bench.name
        assert vms[bench.vm].state is VmState.RUNNING

    async def test_a_host_is_probed(self, bench: Bench) -> None:
        facts = await bench.source.host_facts()
        assert facts.hostname
        assert facts.uuid
        assert facts.cpus
        assert facts.sysctls["vm_max_map_count"] > 0

    async def test_a_vm_is_probed(self, bench: Bench) -> None:
        facts = await bench.source.vm_facts(bench.vm)
        assert (facts.uuid, facts.name, facts.qemu) == (bench.vm, bench.name, bench.qemu)
        assert facts.machine.startswith("pc")
        assert facts.memory_bytes == 64 << 20
        assert facts.vcpus == 1
        assert facts.capabilities["multifd"] is False
        assert facts.parameters["multifd-channels"] == 2
        assert facts.compression_methods >= {"none", "zlib", "zstd"}
        assert facts.iothreads == ("iothread1", "iothread2")
        assert not facts.migrating
        assert facts.dirty_ring_size_entries == 0
        assert facts.readings["virtio_blk_queues"].parts == {"virtio-disk0": 4}
        if facts.pid is not None:
            assert facts.maps is not None
            assert facts.maps.total > 100
            assert facts.maps.total > 2 * facts.maps.stacks

    async def test_every_setting_of_qemu_is_read_or_says_why_not(self, bench: Bench) -> None:
        facts = await bench.source.vm_facts(bench.vm)
        for tunable in BUILT_IN.values():
            if tunable.qmp is None or tunable.qmp.kind is QmpKind.DEVICE:
                continue
            reading = facts.readings[tunable.name]
            if tunable.in_release(bench.qemu) and tunable.kind is not Kind.TEXT:
                assert reading.value is not None, tunable.name
            else:
                assert reading.why_unknown, tunable.name

    async def test_a_qemu_says_whether_it_takes_post_copy_with_multifd(self, bench: Bench) -> None:
        """QEMU 7.2 and 10.1 do, 8.0 to 10.0 do not. Asking sets nothing."""
        before = await bench.source.vm_facts(bench.vm)
        takes = await bench.source.takes_postcopy_with_multifd(bench.vm)
        assert takes is not ((8,) <= bench.qemu < (10, 1))
        assert (await bench.source.vm_facts(bench.vm)).capabilities == before.capabilities

    async def test_the_objects_of_a_qemu_are_known(self, bench: Bench) -> None:
        assert {"iothread1", "iothread2"} <= set(await bench.source.objects(bench.vm))

    async def test_reading_a_few_is_the_same_as_probing_all(self, bench: Bench) -> None:
        facts = await bench.source.vm_facts(bench.vm)
        names = ("multifd", "downtime_limit_ms", "iothread_thread_pool_max", "tls")
        readings = await bench.source.read(bench.vm, names)
        assert readings == {name: facts.readings[name] for name in names}

    @pytest.mark.parametrize("call", ["vm_facts", "migration", "abort_migration"])
    async def test_an_unknown_vm_is_not_found(self, bench: Bench, call: str) -> None:
        with pytest.raises(NotFound, match=str(NOBODY)):
            await getattr(bench.source, call)(NOBODY)

    async def test_a_vm_that_never_migrated_says_so(self, bench: Bench) -> None:
        snapshot = await bench.source.migration(bench.vm)
        assert snapshot.status is QemuStatus.NONE
        assert snapshot.sample is None


class TestSetting:
    async def test_every_setting_sticks(self, bench: Bench) -> None:
        facts = await bench.source.vm_facts(bench.vm)
        wanted = {
            t.name: another_value(t, facts.readings[t.name].value)
            for t in SETTABLE
            if offered(t, facts) and not ring_only(t)
        }
        changes = [Change(name, value) for name, value in wanted.items()]
        await bench.source.write(bench.vm, in_order(changes, facts.readings))
        readings = await bench.source.read(bench.vm, list(wanted))
        assert {name: readings[name].value for name in wanted} == wanted

    async def test_undoing_restores_everything(self, bench: Bench) -> None:
        before = (await bench.source.vm_facts(bench.vm)).readings
        changes = [
            Change("announce_rounds", 9),
            Change("iothread_thread_pool_max", 8),
            Change("main_loop_thread_pool_max", 8),
        ]
        await bench.source.write(bench.vm, in_order(changes, before))
        now = (await bench.source.vm_facts(bench.vm)).readings
        assert now != before
        await bench.source.write(bench.vm, in_order(undo(changes, before), now))
        assert (await bench.source.vm_facts(bench.vm)).readings == before

    async def test_a_main_loop_object_is_made_where_there_is_none(self, bench: Bench) -> None:
        before = await bench.source.vm_facts(bench.vm)
        wanted = {"main_loop_thread_pool_max": 9, "main_loop_aio_max_batch": 5}
        await bench.source.write(bench.vm, [Change(n, v) for n, v in wanted.items()])
        readings = await bench.source.read(bench.vm, list(wanted))
        assert {name: readings[name].value for name in wanted} == wanted
        assert (await bench.source.vm_facts(bench.vm)).main_loop
        back = undo([Change(n, v) for n, v in wanted.items()], before.readings)
        await bench.source.write(bench.vm, back)
        now = await bench.source.read(bench.vm, list(wanted))
        assert now == {name: before.readings[name] for name in wanted}

    async def test_polling_and_batches_of_iothreads(self, bench: Bench) -> None:
        wanted = {
            "iothread_poll_max_ns": 70_000,
            "iothread_poll_grow": 3,
            "iothread_poll_shrink": 4,
            "iothread_aio_max_batch": 6,
        }
        before = (await bench.source.vm_facts(bench.vm)).readings
        if BUILT_IN["iothread_poll_weight"].in_release(bench.qemu):
            wanted["iothread_poll_weight"] = 5
        changes = [Change(name, value) for name, value in wanted.items()]
        await bench.source.write(bench.vm, in_order(changes, before))
        readings = await bench.source.read(bench.vm, list(wanted))
        for name, value in wanted.items():
            assert readings[name].parts == {"iothread1": value, "iothread2": value}

    async def test_a_refused_pool_limit_of_the_main_loop_does_not_stay(self, bench: Bench) -> None:
        await bench.source.write(bench.vm, [Change("main_loop_thread_pool_min", 8)])
        with pytest.raises(CommandRefused) as refused:
            await bench.source.write(bench.vm, [Change("main_loop_thread_pool_max", 4)])
        assert refused.value.problems[0].field == "values.main_loop_thread_pool_max"
        name = "main_loop_thread_pool_max"
        assert (await bench.source.read(bench.vm, [name]))[name].value == 64

    async def test_one_part_can_be_set_alone(self, bench: Bench) -> None:
        change = Change("iothread_thread_pool_max", 7, "iothread2")
        await bench.source.write(bench.vm, [change])
        reading = (await bench.source.read(bench.vm, [change.tunable]))[change.tunable]
        assert reading == Reading(
            None, {"iothread1": 64, "iothread2": 7}, why_unknown="its parts differ"
        )

    async def test_both_pool_limits_move_above_and_below_the_present_ones(
        self, bench: Bench
    ) -> None:
        names = ("iothread_thread_pool_min", "iothread_thread_pool_max")
        for low, high in ((70, 80), (2, 4), (64, 64)):
            readings = await bench.source.read(bench.vm, names)
            changes = [Change(names[0], low), Change(names[1], high)]
            await bench.source.write(bench.vm, in_order(changes, readings))
            now = await bench.source.read(bench.vm, names)
            assert [now[name].value for name in names] == [low, high]

    async def test_what_was_set_is_read_back_in_one_go(self, bench: Bench) -> None:
        changes = [
            Change("multifd", True),
            Change("downtime_limit_ms", 444),
            Change("iothread_thread_pool_max", 7, "iothread2"),
        ]
        names = [change.tunable for change in changes]
        for pool in (7, 9):
            changes[-1] = Change("iothread_thread_pool_max", pool, "iothread2")
            read = await bench.source.write_and_read(bench.vm, changes, names)
            assert (read["multifd"].value, read["downtime_limit_ms"].value) == (True, 444)
            assert read["iothread_thread_pool_max"].parts == {"iothread1": 64, "iothread2": pool}

    async def test_a_refused_command_changes_nothing(self, bench: Bench) -> None:
        before = await bench.source.vm_facts(bench.vm)
        good = Change("downtime_limit_ms", 444)
        with pytest.raises(CommandRefused) as refused:
            await bench.source.write(bench.vm, [good, Change("multifd_channels", 0)])
        assert refused.value.problems[0].field == "values.multifd_channels"
        assert (await bench.source.vm_facts(bench.vm)).readings == before.readings

    async def test_a_setting_that_qemu_does_not_have_is_refused_by_name(self, bench: Bench) -> None:
        new, old = "vcpu_dirty_limit_mib_per_s", "compress_threads"
        missing = old if BUILT_IN[new].in_release(bench.qemu) else new
        with pytest.raises(CommandRefused) as refused:
            await bench.source.write(bench.vm, [Change(missing, 5)])
        assert refused.value.problems[0].field == f"values.{missing}"

    async def test_a_refused_pool_limit_does_not_stay(self, bench: Bench) -> None:
        await bench.source.write(bench.vm, [Change("iothread_thread_pool_min", 8)])
        with pytest.raises(CommandRefused) as refused:
            await bench.source.write(bench.vm, [Change("iothread_thread_pool_max", 4)])
        assert refused.value.problems[0].field == "values.iothread_thread_pool_max"
        reading = (await bench.source.read(bench.vm, ["iothread_thread_pool_max"]))[
            "iothread_thread_pool_max"
        ]
        assert reading.parts == {"iothread1": 64, "iothread2": 64}

    async def test_an_unknown_vm_cannot_be_set(self, bench: Bench) -> None:
        with pytest.raises(NotFound, match=str(NOBODY)):
            await bench.source.write(NOBODY, [Change("downtime_limit_ms", 444)])

    async def test_nothing_to_set_is_no_error(self, bench: Bench) -> None:
        await bench.source.write(bench.vm, [])
        await bench.source.write_boot(bench.vm, [])


class TestLosing:
    async def test_a_taken_monitor_is_told_with_its_remedy(self, bench: Bench) -> None:
        let_go = await bench.take_monitor()
        if let_go is None:
            pytest.skip("this driver's monitor cannot be taken")
        with pytest.raises(MonitorBusy) as busy:
            await bench.source.vm_facts(bench.vm)
        assert busy.value.problems[0].remedy
        let_go()
        assert (await bench.source.vm_facts(bench.vm)).uuid == bench.vm

    async def test_a_vm_whose_qemu_died_does_not_run(self, bench: Bench) -> None:
        assert bench.vm in {vm.uuid for vm in await bench.source.list_vms()}
        await bench.kill()

        async def is_down() -> bool:
            states = {vm.uuid: vm.state for vm in await bench.source.list_vms()}
            return states.get(bench.vm, VmState.SHUT_OFF) is VmState.SHUT_OFF

        await until(is_down)  # a daemon takes a moment to notice
        with pytest.raises((NotFound, CommandRefused)):
            await bench.source.vm_facts(bench.vm)

    async def test_others_hear_of_a_lost_connection(self, bench: Bench) -> None:
        await bench.source.vm_facts(bench.vm)
        events = bench.source.events()
        await bench.kill()
        seen = await anext(events)
        assert seen.vm == bench.vm
        assert seen.kind in (EventKind.CONNECTION_LOST, EventKind.VM_STATE)
        await events.aclose()

    async def test_nothing_is_left_open_after_close(self, bench: Bench) -> None:
        await bench.source.vm_facts(bench.vm)
        await bench.source.close()
        let_go = await bench.take_monitor()  # free again for others
        if let_go is not None:
            let_go()


class TestMigrating:
    async def test_a_vm_migrates(self, bench: Bench) -> None:
        await bench.open_destination()
        events = bench.source.events()
        order = MigrateOrder(bench.vm, {"max_bandwidth_bytes_per_s": 0}, {})
        handle = await bench.source.start_migration(order, bench.destination)
        await handle.wait()
        assert handle.done
        await settled(bench)
        totals = await last_totals(bench)
        assert totals.total_time_ms > 0
        assert totals.transferred_bytes > 0
        heard = await everything(bench, events)
        assert {e.kind for e in heard} >= {
            EventKind.MIGRATION_STATUS,
            EventKind.MIGRATION_ITERATION,
        }
        assert {e.vm for e in heard if e.kind is not EventKind.CONNECTED} == {bench.vm}

    async def test_multifd_with_channels_and_compression(self, bench: Bench) -> None:
        wanted: dict[str, Value] = {
            "multifd": True,
            "multifd_channels": 5,
            "multifd_compression": "zstd",
        }
        handle = await start(bench, wanted)
        readings = await bench.source.read(bench.vm, list(wanted))
        assert {name: readings[name].value for name in wanted} == wanted
        await bench.source.write(bench.vm, [Change("max_bandwidth_bytes_per_s", 0)])
        await handle.wait()

    async def test_what_the_order_does_not_name_is_off(self, bench: Bench) -> None:
        await bench.source.write(bench.vm, [Change("auto_converge", True)])
        handle = await start(bench)
        reading = (await bench.source.read(bench.vm, ["auto_converge"]))["auto_converge"]
        assert reading.value is False
        await bench.source.abort_migration(bench.vm)
        with pytest.raises(CommandRefused):
            await handle.wait()

    async def test_who_migrates_away_is_listed(self, bench: Bench) -> None:
        assert bench.vm not in await bench.source.outgoing()
        handle = await start(bench)
        assert await bench.source.outgoing() == [bench.vm]
        assert bench.vm not in await bench.destination.outgoing()
        await bench.source.abort_migration(bench.vm)
        with pytest.raises(CommandRefused):
            await handle.wait()
        assert bench.vm not in await bench.source.outgoing()

    async def test_aborting(self, bench: Bench) -> None:
        handle = await start(bench)
        assert not handle.done
        await bench.source.abort_migration(bench.vm)
        with pytest.raises(CommandRefused):
            await handle.wait()
        assert handle.done
        states = {vm.uuid: vm.state for vm in await bench.source.list_vms()}
        assert states[bench.vm] is VmState.RUNNING
        with pytest.raises(TooLate):
            await bench.source.abort_migration(bench.vm)

    async def test_aborting_what_never_began_is_too_late(self, bench: Bench) -> None:
        with pytest.raises(TooLate):
            await bench.source.abort_migration(bench.vm)

    async def test_a_destination_that_dies_fails_it(self, bench: Bench) -> None:
        handle = await start(bench)
        await bench.kill_destination()
        with pytest.raises(CommandRefused) as failed:
            await handle.wait()
        assert failed.value.message
        states = {vm.uuid: vm.state for vm in await bench.source.list_vms()}
        assert states[bench.vm] is VmState.RUNNING

    async def test_a_source_that_dies_leaves_the_end_unknown(self, bench: Bench) -> None:
        handle = await start(bench)
        await bench.kill()
        with pytest.raises((OutcomeUnknown, CommandRefused)):
            await handle.wait()

    async def test_resetting_puts_back_what_was_there(self, bench: Bench) -> None:
        await bench.source.write(bench.vm, [Change("max_postcopy_bandwidth_bytes_per_s", 1 << 30)])
        before = (await bench.source.vm_facts(bench.vm)).readings
        # Without multifd, with which QEMU 7.2 may not end what it is to cancel.
        handle = await start(bench, {"auto_converge": True, "cpu_throttle_initial_percent": 30})
        await bench.source.abort_migration(bench.vm)
        with pytest.raises(CommandRefused):
            await handle.wait()
        for _ in range(2):  # harmless when repeated
            await bench.source.reset_after_migration(bench.vm)
            assert (await bench.source.vm_facts(bench.vm)).readings == before

    async def test_multifd_is_not_touched_while_it_runs(self, bench: Bench) -> None:
        handle = await start(bench, {"multifd": True, "multifd_channels": 3})
        assert (await bench.source.vm_facts(bench.vm)).migrating
        with pytest.raises(CommandRefused) as refused:
            await bench.source.write(bench.vm, [Change("multifd_channels", 8)])
        assert refused.value.problems[0].code == "migration_active"
        assert refused.value.problems[0].field == "values.multifd_channels"
        # To its end, since QEMU 7.2 may not end one with multifd that it is to cancel.
        await bench.source.write(bench.vm, [Change("max_bandwidth_bytes_per_s", 0)])
        await handle.wait()

    async def test_parameters_do_not_travel(self, bench: Bench) -> None:
        """What a VM was given stays behind: the next QEMU starts with its own defaults."""
        await bench.source.write(bench.vm, [Change("max_cpu_throttle_percent", 55)])
        await bench.open_destination()
        order = MigrateOrder(bench.vm, {"max_bandwidth_bytes_per_s": 0}, {})
        await (await bench.source.start_migration(order, bench.destination)).wait()
        await settled(bench)
        name = "max_cpu_throttle_percent"
        assert (await bench.destination.read(bench.vm, [name]))[name].value == 99


class TestControlling:
    """What is done to a VM while it migrates."""

    async def test_a_paused_guest_arrives_and_goes_on(self, bench: Bench) -> None:
        handle = await start(bench)
        for _ in range(2):  # harmless when repeated
            await bench.source.pause(bench.vm)
            assert await bench.source.vm_state(bench.vm) is VmState.PAUSED
        await bench.source.write(bench.vm, [Change("max_bandwidth_bytes_per_s", 0)])
        await handle.wait()
        await until_at_rest(bench.destination, bench.vm)
        by_itself = bench.source.uri.startswith("qemu")
        state = await bench.destination.vm_state(bench.vm)
        assert state is (VmState.RUNNING if by_itself else VmState.PAUSED)
        for _ in range(2):
            await bench.destination.resume(bench.vm)
            assert await bench.destination.vm_state(bench.vm) is VmState.RUNNING

    async def test_a_paused_guest_stays_and_goes_on(self, bench: Bench) -> None:
        handle = await start(bench)
        await bench.source.pause(bench.vm)
        await bench.source.abort_migration(bench.vm)
        with pytest.raises(CommandRefused):
            await handle.wait()
        await bench.source.reset_after_migration(bench.vm)
        by_itself = bench.source.uri.startswith("qemu")
        state = await bench.source.vm_state(bench.vm)
        assert state is (VmState.RUNNING if by_itself else VmState.PAUSED)
        await bench.source.resume(bench.vm)
        assert await bench.source.vm_state(bench.vm) is VmState.RUNNING

    async def test_switching_to_postcopy(self, bench: Bench) -> None:
        handle = await start(bench, {"postcopy": True})
        await bench.source.start_postcopy(bench.vm)
        await bench.source.write(bench.vm, [Change("max_bandwidth_bytes_per_s", 0)])
        await handle.wait()
        await settled(bench)

    async def test_postcopy_that_was_not_asked_for_is_refused(self, bench: Bench) -> None:
        with pytest.raises(TooLate):
            await bench.source.start_postcopy(bench.vm)
        handle = await start(bench)
        with pytest.raises(CommandRefused, match=r"(?i)post-?copy"):
            await bench.source.start_postcopy(bench.vm)
        assert (await bench.source.migration(bench.vm)).status is QemuStatus.ACTIVE
        await bench.source.abort_migration(bench.vm)
        with pytest.raises(CommandRefused):
            await handle.wait()

    async def test_without_a_ring_nothing_is_measured(self, bench: Bench) -> None:
        with pytest.raises(CommandRefused, match=r"not enabled|unexpected") as refused:
            await bench.source.measure_dirty_rates(bench.vm, 50)
        assert refused.value.problems[0].code == "command_refused"
        if bench.qemu >= Version(8, 2):
            assert not (await bench.source.dirty_rates(bench.vm)).measured

    async def test_what_the_guest_changes_is_sampled(self, bench: Bench) -> None:
        """An idle guest: nothing, or next to it. Before 8.2 QEMU measures whole seconds."""
        over_ms = 60 if bench.qemu >= Version(8, 2) else 1000
        seen = await bench.source.sample_dirtied(bench.vm, over_ms, 512)
        assert over_ms <= seen.after_ms < 30_000
        assert 0 <= seen.dirty_bytes < 64 << 20
        if bench.qemu < Version(8, 2):
            with pytest.raises(CommandRefused) as refused:
                await bench.source.sample_dirtied(bench.vm, 60, 512)
            assert refused.value.problems[0].code == "whole_seconds"

    async def test_what_its_memory_holds(self, bench: Bench) -> None:
        memory = (await bench.source.vm_facts(bench.vm)).memory_bytes
        seen = await bench.source.sample_pages(bench.vm, memory)
        assert (seen is None) == isinstance(bench, FakeBench)  # the others are run by root
        if seen is not None:
            assert 0 < seen.contents.pages <= 1024
            assert 0 <= seen.contents.zero_share <= 1
            assert 0 < seen.contents.packed_share <= 1
            again = await bench.source.sample_pages(bench.vm, memory, seen)
            assert again is not None
            assert again.contents.pages == seen.contents.pages

    async def test_what_of_it_is_in_memory(self, bench: Bench) -> None:
        seen = await bench.source.resident_bytes(bench.vm)
        assert seen is None or 1 << 20 < seen < 1 << 32

    async def test_an_unknown_vm_is_not_found(self, bench: Bench) -> None:
        source = bench.source
        calls = (source.vm_state, source.pause, source.resume, source.start_postcopy)
        for call in (*calls, source.dirty_rates, source.resident_bytes):
            with pytest.raises(NotFound, match=str(NOBODY)):
                await call(NOBODY)


async def until_at_rest(driver: Driver, vm: UUID) -> None:
    """Until the VM has arrived, running or paused."""

    async def arrived() -> bool:
        return await driver.vm_state(vm) in (VmState.RUNNING, VmState.PAUSED)

    await until(arrived)


async def settled(bench: Bench) -> None:
    """Until the VM runs on the destination; its QEMU takes a moment after the source's."""

    async def runs_there() -> bool:
        states = {vm.uuid: vm.state for vm in await bench.destination.list_vms()}
        return states.get(bench.vm) is VmState.RUNNING

    await until(runs_there)


async def last_totals(bench: Bench) -> Totals:
    """The figures, from whoever has them: the source as long as it is there."""
    try:
        snapshot = await bench.source.migration(bench.vm)
        totals = snapshot.totals
    except NotFound:
        totals = None
    totals = totals or await bench.destination.completed(bench.vm)
    assert totals is not None
    return totals


async def everything(bench: Bench, events: AsyncIterator[DriverEvent]) -> list[DriverEvent]:
    """What was heard until the driver was closed."""
    await bench.source.close()
    return [event async for event in events]
