"""Migrations through a driver, to each of their ends."""

from __future__ import annotations

import pytest

from tests.contract.driver.moving import everything, last_totals, settled, start
from tests.support.drivers.benches import Bench
from vmtune.errors import CommandRefused, OutcomeUnknown, TooLate
from vmtune.hypervisor.protocol import EventKind, MigrateOrder
from vmtune.model.host.facts import VmState
from vmtune.model.plan.changes import Change
from vmtune.model.tunables.tunable import Value


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
