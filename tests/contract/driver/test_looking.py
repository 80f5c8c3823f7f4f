"""What a driver tells of its host and its VMs."""

from __future__ import annotations

import pytest

from tests.contract.driver.moving import NOBODY
from tests.support.drivers.benches import Bench
from vmtune.errors import NotFound
from vmtune.model.host.facts import VmState
from vmtune.model.host.virtio_queues import VirtioQueue
from vmtune.model.migration.record import QemuStatus
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import Kind, QmpKind


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

    async def test_the_queues_of_virtio_devices_are_as_long_as_the_qemu_makes_them(
        self, bench: Bench
    ) -> None:
        """As configured, but 1,024 entries in QEMU 10.0.13, and so in later ones of 10.0."""
        queues = {queue.device: queue for queue in await bench.source.virtio_queues(bench.vm)}
        always = 1024 if (10, 0, 13) <= bench.qemu < (10, 1) else None
        assert queues["virtio-disk0"] == VirtioQueue("virtio-disk0", always or 256, 256)
        assert all(each.entries == (always or each.configured_entries) for each in queues.values())

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
