"""What the libvirt driver does beyond the contract, on two real daemons."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID
from xml.etree import ElementTree

import pytest

from tests.support.bench_libvirt import (
    MIB,
    WORKLOAD,
    hosts,
    remove_vm,
    running_lab,
    why_no_old_lab,
)
from tests.support.live import at_work, wait_for, why_no_lab
from vmtune import lab
from vmtune.errors import CommandRefused, HostUnreachable, NotFound, OutcomeUnknown, VmtuneError
from vmtune.hypervisor.libvirt.driver import LibvirtDriver
from vmtune.hypervisor.protocol import EventKind, MigrateOrder, MigrationHandle
from vmtune.lab import DiskSettings, LabSettings, VmSettings
from vmtune.model.host.facts import VmState
from vmtune.model.migration.record import QemuStatus
from vmtune.model.plan.changes import Change, undo

NO_LAB = why_no_lab()
pytestmark = pytest.mark.skipif(bool(NO_LAB), reason=NO_LAB or "never")

FAST = {"max_bandwidth_bytes_per_s": 0}
SLOW = {"max_bandwidth_bytes_per_s": MIB}
NAME = "vmtune-persistent"


on_libvirt_9_too = pytest.mark.parametrize(
    "pair", [False, True], ids=["libvirt", "libvirt-9"], indirect=True
)


@dataclass
class Pair:
    settings: LabSettings
    vm: UUID
    source: LibvirtDriver
    destination: LibvirtDriver

    def xml(self, host: int, *flags: str) -> str:
        return lab.virsh(hosts(self.settings)[host].uri, "dumpxml", NAME, *flags)

    async def start(self, values: dict[str, int], **announce: int) -> MigrationHandle:
        order = MigrateOrder(self.vm, values, announce)
        return await self.source.start_migration(order, self.destination)

    async def start_slow(self) -> MigrationHandle:
        """A migration that is active."""
        handle = await self.start(SLOW)

        async def active() -> bool:
            return (await self.source.migration(self.vm)).status is QemuStatus.ACTIVE

        await until(active)
        return handle


async def until(happens: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(30):
        while True:
            if await happens():
                return
            await asyncio.sleep(0.02)


def has_sys_resource(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    return bool(int(status.split("CapEff:")[1].split()[0], 16) >> 24 & 1)


class Daemon:
    """A libvirt daemon of the lab, to be killed and started again."""

    def __init__(self, pid: int) -> None:
        self._command = Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
        # A process that stays in the daemon's namespaces keeps them.
        self._keeper = subprocess.Popen(
            [*self._enter(pid), "sh", "-c", "echo; cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._keeper.stdout is not None
        self._keeper.stdout.readline()
        os.kill(pid, signal.SIGKILL)

    @staticmethod
    def _enter(pid: int) -> list[str]:
        return ["nsenter", "--target", str(pid), "--net", "--mount", "--uts"]

    def start(self) -> None:
        subprocess.run([*self._enter(self._keeper.pid), *self._command], check=True)
        self._keeper.communicate()


@pytest.fixture
async def pair(request: pytest.FixtureRequest) -> AsyncIterator[Pair]:
    """Two hosts and a persistent VM that runs on the first."""
    old: bool = getattr(request, "param", False)
    if old and (why_not := why_no_old_lab()):
        pytest.skip(why_not)
    settings = await asyncio.to_thread(running_lab, old)
    vm = VmSettings(
        name=NAME,
        memory_bytes=64 * MIB,
        workload=WORKLOAD,
        iothreads=1,
        # Two QEMUs of 7.2 do not share a disk that both may write.
        disks=(DiskSettings(queues=2, read_only=True), DiskSettings(read_only=True)),
    )
    try:
        started = await asyncio.to_thread(lab.define_vm, settings, vm)
        await asyncio.to_thread(wait_for, lambda: at_work(started), "the guest to write")
        a, b = hosts(settings)
        made = Pair(
            settings,
            UUID(started.uuid),
            LibvirtDriver(a.uri, peer_uri=a.peer_uri),
            LibvirtDriver(b.uri, peer_uri=b.peer_uri),
        )
        yield made
        await made.source.close()
        await made.destination.close()
    finally:
        await asyncio.to_thread(remove_vm, settings, NAME)


async def test_a_host_on_this_machine_is_seen_through_its_daemon(pair: Pair) -> None:
    facts = await pair.source.host_facts()
    a, _ = hosts(pair.settings)
    assert facts.local
    assert facts.hostname == a.name
    assert facts.peer_uri == a.peer_uri
    assert a.libvirtd_pid is not None
    assert facts.can_lock_beyond_limits is has_sys_resource(a.libvirtd_pid)
    assert facts.memory_bytes is not None
    assert facts.memory_available_bytes is not None
    assert 0 < facts.memory_available_bytes <= facts.memory_bytes
    assert facts.sysctls.keys() == {"vm_max_map_count", "net_core_optmem_max_bytes"}
    assert facts.uuid != (await pair.destination.host_facts()).uuid


async def test_a_vm_that_is_off_is_told_by_its_configuration(pair: Pair) -> None:
    running = await pair.source.vm_facts(pair.vm)
    assert running.pid is not None
    assert "/usr/bin/qemu" in os.readlink(f"/proc/{running.pid}/exe")
    lab.virsh(pair.source.uri, "destroy", NAME)
    facts = await pair.source.vm_facts(pair.vm)
    assert facts.state is VmState.SHUT_OFF
    assert facts.capabilities == {}
    assert (facts.memory_bytes, facts.vcpus) == (running.memory_bytes, running.vcpus)
    assert facts.iothreads == running.iothreads
    assert facts.readings["dirty_ring_size_entries"].value == 0
    with pytest.raises(NotFound, match="does not run"):
        await pair.source.migration(pair.vm)
    with pytest.raises(CommandRefused) as refused:
        await pair.source.write(pair.vm, [Change("downtime_limit_ms", 444)])
    assert refused.value.problems[0].code == "vm_not_running"


async def test_boot_settings_go_to_the_configuration_and_back(pair: Pair) -> None:
    before = await pair.source.vm_facts(pair.vm)
    changes = [Change("dirty_ring_size_entries", 4096), Change("virtio_blk_queue_size", 64)]
    await pair.source.write_boot(pair.vm, changes)
    facts = await pair.source.vm_facts(pair.vm)
    assert facts.boot_readings["dirty_ring_size_entries"].value == 4096
    assert facts.boot_readings["virtio_blk_queue_size"].parts == {"vda": 64, "vdb": 64}
    assert facts.boot_readings["virtio_blk_queues"].parts["vda"] == 2
    assert facts.readings == before.readings
    await pair.source.write_boot(pair.vm, undo(changes, before.boot_readings))
    assert (await pair.source.vm_facts(pair.vm)).boot_readings == before.boot_readings


async def test_a_refused_configuration_names_the_setting(pair: Pair) -> None:
    before = pair.xml(0, "--inactive")
    with pytest.raises(CommandRefused, match="power of 2") as refused:
        await pair.source.write_boot(pair.vm, [Change("dirty_ring_size_entries", 512)])
    assert refused.value.problems[0].field == "values.dirty_ring_size_entries"
    assert pair.xml(0, "--inactive") == before


async def test_a_transient_vm_has_no_configuration(pair: Pair) -> None:
    lab.virsh(pair.source.uri, "undefine", NAME)
    with pytest.raises(CommandRefused) as refused:
        await pair.source.write_boot(pair.vm, [Change("dirty_ring_size_entries", 4096)])
    assert refused.value.problems[0].code == "transient_vm"
    assert not (await pair.source.vm_facts(pair.vm)).persistent


@on_libvirt_9_too
async def test_libvirt_knows_the_iothreads_settings_and_takes_them_along(pair: Pair) -> None:
    await pair.source.write(pair.vm, [Change("iothread_thread_pool_min", 3)])
    iothread = ElementTree.fromstring(pair.xml(0)).find("iothreadids/iothread")
    assert iothread is not None
    assert iothread.get("thread_pool_min") == "3"
    await (await pair.start(FAST)).wait()
    reading = await pair.destination.read(pair.vm, ["iothread_thread_pool_min"])
    assert reading["iothread_thread_pool_min"].value == 3


@on_libvirt_9_too
async def test_announcements_hold_for_one_migration_and_are_not_kept(pair: Pair) -> None:
    names = ["announce_rounds", "announce_step_ms"]
    configured = pair.xml(0, "--inactive")
    handle = await pair.start(FAST, announce_rounds=7, announce_step_ms=200)
    await handle.wait()
    there = await pair.destination.read(pair.vm, names)
    assert [there[name].value for name in names] == [7, 200]
    assert pair.xml(1, "--inactive") == configured
    with pytest.raises(NotFound):
        await pair.source.vm_facts(pair.vm)

    pair.source, pair.destination = pair.destination, pair.source
    await (await pair.start(FAST)).wait()
    back = await pair.destination.read(pair.vm, names)
    assert [back[name].value for name in names] == [5, 100]
    assert pair.xml(0, "--inactive") == configured


@on_libvirt_9_too
async def test_an_arriving_vm_is_told_without_waiting_for_it(pair: Pair) -> None:
    handle = await pair.start_slow()
    # libvirt would let its XML and monitor wait for 30 s and then refuse them.
    async with asyncio.timeout(20):
        facts = await pair.destination.vm_facts(pair.vm)
        states = {vm.uuid: vm.state for vm in await pair.destination.list_vms()}
        reading = (await pair.destination.read(pair.vm, ["multifd"]))["multifd"]
        snapshot = await pair.destination.migration(pair.vm)
    assert facts.state is states[pair.vm] is VmState.INCOMING
    assert facts.migrating
    assert facts.memory_bytes == 64 * MIB
    assert reading.value is None
    assert reading.why_unknown
    assert snapshot.status is QemuStatus.NONE
    await pair.source.abort_migration(pair.vm)
    with pytest.raises(CommandRefused, match="canceled"):
        await handle.wait()


@on_libvirt_9_too
async def test_a_migration_after_an_aborted_one_does_not_show_its_end(pair: Pair) -> None:
    handle = await pair.start_slow()
    await pair.source.abort_migration(pair.vm)
    with pytest.raises(CommandRefused):
        await handle.wait()
    assert (await pair.source.migration(pair.vm)).status is QemuStatus.CANCELLED
    handle = await pair.start(FAST)
    seen = set()
    with suppress(NotFound):
        while True:
            seen.add((await pair.source.migration(pair.vm)).status)
    assert QemuStatus.SETUP in seen
    assert QemuStatus.CANCELLED not in seen
    await handle.wait()


@on_libvirt_9_too
async def test_what_libvirt_refuses_comes_with_its_words(pair: Pair) -> None:
    handle = await pair.start({"zero_copy_send": True})
    with pytest.raises(CommandRefused, match="only available for parallel migration"):
        await handle.wait()
    elsewhere = LibvirtDriver(pair.destination.uri, peer_uri="qemu+tcp://10.96.0.99/system")
    order = MigrateOrder(pair.vm, {}, {})
    handle = await pair.source.start_migration(order, elsewhere)
    with pytest.raises(CommandRefused, match="unable to connect"):
        await handle.wait()
    states = {vm.uuid: vm.state for vm in await pair.source.list_vms()}
    assert states[pair.vm] is VmState.RUNNING


async def test_a_destination_that_cannot_be_named_is_refused(pair: Pair) -> None:
    nameless = LibvirtDriver(pair.destination.uri)
    with pytest.raises(CommandRefused) as refused:
        await pair.source.start_migration(MigrateOrder(pair.vm, {}, {}), nameless)
    assert refused.value.problems[0].code == "no_peer_uri"


_STARTER = """
import asyncio, os, signal, sys, uuid
from vmtune.hypervisor.protocol import MigrateOrder
from vmtune.hypervisor.libvirt.driver import LibvirtDriver

async def main():
    vm, source, destination, peer = sys.argv[1:]
    order = MigrateOrder(uuid.UUID(vm), {"max_bandwidth_bytes_per_s": 1 << 20}, {})
    driver = LibvirtDriver(source)
    await driver.start_migration(order, LibvirtDriver(destination, peer_uri=peer))
    while not (await driver.migration(order.vm)).sample:
        await asyncio.sleep(0.02)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@on_libvirt_9_too
async def test_a_migration_outlives_its_starter_and_another_can_end_it(pair: Pair) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _STARTER, str(pair.vm)),
        *(pair.source.uri, pair.destination.uri, pair.destination.peer_uri),
    )
    assert await process.wait() == -signal.SIGKILL
    first = (await pair.source.migration(pair.vm)).sample
    assert first is not None

    async def goes_on() -> bool:
        sample = (await pair.source.migration(pair.vm)).sample
        return sample is not None and sample.transferred_bytes > first.transferred_bytes

    await until(goes_on)
    await pair.source.abort_migration(pair.vm)

    async def cancelled() -> bool:
        return (await pair.source.migration(pair.vm)).status is QemuStatus.CANCELLED

    await until(cancelled)


async def test_a_daemon_that_dies_leaves_the_end_unknown_and_is_found_again(pair: Pair) -> None:
    a, _ = hosts(pair.settings)
    assert a.libvirtd_pid is not None
    events = pair.source.events()
    handle = await pair.start_slow()
    daemon = Daemon(a.libvirtd_pid)
    with pytest.raises(OutcomeUnknown):
        await handle.wait()
    async for event in events:
        if event.kind is EventKind.CONNECTION_LOST:
            break
    with pytest.raises(HostUnreachable) as silent:
        await pair.source.list_vms()
    assert silent.value.problems[0].remedy
    daemon.start()

    async def answers() -> bool:
        try:
            return (await pair.source.vm_facts(pair.vm)).state is VmState.RUNNING
        except VmtuneError:
            return False

    await until(answers)
    await events.aclose()


@on_libvirt_9_too
async def test_a_guest_that_was_paused_on_the_way_goes_on_by_itself(pair: Pair) -> None:
    """On the host where it stays, and on the one where it arrives."""
    handle = await pair.start_slow()
    await pair.source.pause(pair.vm)
    await pair.source.abort_migration(pair.vm)
    with pytest.raises(CommandRefused):
        await handle.wait()
    assert await pair.source.vm_state(pair.vm) is VmState.RUNNING
    handle = await pair.start_slow()
    await pair.source.pause(pair.vm)
    await pair.source.write(pair.vm, [Change("max_bandwidth_bytes_per_s", 0)])
    await handle.wait()
    assert await pair.destination.vm_state(pair.vm) is VmState.RUNNING
