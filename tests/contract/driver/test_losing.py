"""What a driver tells of a monitor, a VM or a connection that is lost."""

from __future__ import annotations

import pytest

from tests.contract.driver.moving import until
from tests.support.drivers.benches import Bench
from vmtune.errors import CommandRefused, MonitorBusy, NotFound
from vmtune.hypervisor.protocol import EventKind
from vmtune.model.host.facts import VmState


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
