"""What the libvirt driver does beyond the contract, on two real daemons."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from uuid import UUID
from xml.etree import ElementTree

import pytest

from tests.support.drivers.bench_libvirt import (
    MIB,
    hosts,
)
from tests.support.hosts.libvirt_pair import NAME, SLOW, Pair, opened_pair, until
from tests.support.hosts.live import why_no_lab
from vmtune import lab
from vmtune.errors import (
    CommandRefused,
    Conflict,
    HostUnreachable,
    NotFound,
    OutcomeUnknown,
    VmtuneError,
)
from vmtune.hypervisor.libvirt import configuration
from vmtune.hypervisor.libvirt.driver import LibvirtDriver
from vmtune.hypervisor.protocol import EventKind, MigrateOrder, MigrationHandle
from vmtune.model.host.disks import Disk, DiskAtHost
from vmtune.model.host.facts import VmState
from vmtune.model.host.hardware import Hardware
from vmtune.model.migration.record import QemuStatus, Snapshot
from vmtune.model.plan.changes import Change, undo
from vmtune.model.tunables.tunable import Value

NO_LAB = why_no_lab()
pytestmark = pytest.mark.skipif(bool(NO_LAB), reason=NO_LAB or "never")

FAST = {"max_bandwidth_bytes_per_s": 0}


on_libvirt_9_too = pytest.mark.parametrize(
    "pair", [False, True], ids=["libvirt", "libvirt-9"], indirect=True
)


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
    async with opened_pair(getattr(request, "param", False)) as made:
        yield made


async def test_a_host_on_this_machine_is_seen_through_its_daemon(pair: Pair) -> None:
    facts = await pair.source.host_facts()
    a, _ = hosts(pair.settings)
    assert facts.local
    assert facts.hostname == a.name
    assert facts.confined_by == ""  # the lab's own qemu.conf says so
    assert facts.peer_uri == a.peer_uri
    assert a.libvirtd_pid is not None
    assert facts.can_lock_beyond_limits is has_sys_resource(a.libvirtd_pid)
    assert facts.memory_bytes is not None
    assert facts.memory_available_bytes is not None
    assert 0 < facts.memory_available_bytes <= facts.memory_bytes
    assert facts.sysctls.keys() == {"vm_max_map_count", "net_core_optmem_max_bytes"}
    assert facts.uuid != (await pair.destination.host_facts()).uuid


async def test_certificates_that_are_missing_are_seen_before_libvirt_refuses(pair: Pair) -> None:
    assert (await pair.source.host_facts()).no_certificates_in == "/etc/pki/qemu"
    handle = await pair.start({"tls": True})
    with pytest.raises(CommandRefused, match="/etc/pki/qemu"):
        await handle.wait()


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


def edited_by_another(pair: Pair, monkeypatch: pytest.MonkeyPatch, times: int) -> list[str]:
    """Have somebody add a description, as by ``virsh edit``, while vmtune edits; so often."""
    edit = configuration.edit_boot_xml
    done: list[str] = []

    def edit_meanwhile(xml: str, changes: Sequence[Change]) -> str:
        if len(done) < times:
            done.append(f"edit {len(done)}")
            lab.virsh(pair.source.uri, "desc", NAME, "--config", done[-1])
        return edit(xml, changes)

    monkeypatch.setattr(configuration, "edit_boot_xml", edit_meanwhile)
    return done


async def test_a_configuration_that_another_edits_meanwhile_keeps_both(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    edited_by_another(pair, monkeypatch, 2)
    await pair.source.write_boot(pair.vm, [Change("dirty_ring_size_entries", 4096)])
    after = pair.xml(0, "--inactive")
    assert "<description>edit 1</description>" in after
    facts = await pair.source.vm_facts(pair.vm)
    assert facts.boot_readings["dirty_ring_size_entries"].value == 4096


async def test_a_configuration_that_others_keep_changing_is_left_alone(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = edited_by_another(pair, monkeypatch, 100)
    with pytest.raises(CommandRefused, match="keeps changing") as refused:
        await pair.source.write_boot(pair.vm, [Change("dirty_ring_size_entries", 4096)])
    assert refused.value.problems[0].code == "configuration_changed"
    after = pair.xml(0, "--inactive")
    assert f"<description>{done[-1]}</description>" in after
    assert "dirty-ring" not in after


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
    # Either as canceled, or as failed where the destination is quicker to tell of its end.
    with pytest.raises(CommandRefused):
        await handle.wait()
    assert await pair.source.vm_state(pair.vm) is VmState.RUNNING


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


@on_libvirt_9_too
async def test_a_destination_says_what_it_offers_of_what_a_vm_needs(pair: Pair) -> None:
    facts = await pair.source.vm_facts(pair.vm)
    needs = facts.hardware
    assert needs is not None
    assert needs.disks
    disks = tuple(await pair.source.disks(pair.vm))
    assert [(disk.target, disk.path) for disk in disks] == [
        (disk.target, disk.path) for disk in needs.disks
    ]
    assert all(disk.capacity_bytes and disk.identity for disk in disks)
    assert (needs.cpu_mode, needs.tpm, needs.host_devices, needs.snapshots) == ("custom", "", (), 0)
    offer = await pair.destination.offer(facts)
    assert (offer.machine, offer.cpu) == (True, True)
    # Both hosts of the plain lab see the same files.
    assert all(offer.disks[disk.target].is_same(disk) for disk in disks)
    assert offer.tpms is not None
    rare = needs.cpu_xml.replace("</cpu>", "<feature policy='require' name='avx512-4vnniw'/></cpu>")
    other = Hardware(
        cpu_xml=rare, hugepage_bytes=2 * MIB, disks=(Disk("vdz", path="/nowhere/x.img"),)
    )
    offer = await pair.destination.offer(replace(facts, hardware=other))
    assert offer.cpu is False
    assert offer.free_hugepages_bytes is not None
    assert offer.disks == {"vdz": DiskAtHost(present=False, folder=False)}
    strange = await pair.destination.offer(replace(facts, machine="pc-q35-99.1"))
    assert strange.machine is False


_SNAPSHOT = """<domainsnapshot><name>before</name><creationTime>1</creationTime>
<state>disk-snapshot</state><memory snapshot='no'/><disks>{disks}</disks>{domain}
</domainsnapshot>"""


async def test_a_vm_with_a_snapshot_is_known_before_libvirt_refuses_it(
    pair: Pair, tmp_path: Path
) -> None:
    """Only libvirt's record of one is made: the disk has none."""
    xml = pair.xml(0)
    disks = "".join(
        f"<disk name='{target.get('dev')}' snapshot='external' type='file'>"
        "<source file='/nowhere.qcow2'/></disk>"
        for target in ElementTree.fromstring(xml).findall("devices/disk/target")
    )
    file = tmp_path / "snapshot.xml"
    file.write_text(_SNAPSHOT.format(disks=disks, domain=xml))
    lab.virsh(pair.source.uri, "snapshot-create", NAME, str(file), "--redefine")
    facts = await pair.source.vm_facts(pair.vm)
    assert facts.hardware is not None
    assert facts.hardware.snapshots == 1
    handle = await pair.start(FAST)
    with pytest.raises(CommandRefused, match="snapshot"):
        await handle.wait()
    lab.virsh(pair.source.uri, "snapshot-delete", NAME, "before", "--metadata")


@pytest.fixture
def second_network(pair: Pair) -> Iterator[tuple[str, str]]:
    """Another address of each host on the link between them."""
    addresses = ("10.95.31.1", "10.95.31.2")
    names = [host.name for host in hosts(pair.settings)]

    def change(verb: str) -> None:
        for name, address in zip(names, addresses, strict=True):
            command = ["ip", "-n", name, "address", verb, f"{address}/24", "dev", "veth0"]
            subprocess.run(command, check=True)

    change("add")
    yield addresses
    change("del")


@on_libvirt_9_too
@pytest.mark.parametrize("values", [{}, {"multifd": True, "multifd_channels": 2}])
async def test_a_migration_goes_over_the_network_that_it_is_given(
    pair: Pair, second_network: tuple[str, str], values: dict[str, Value]
) -> None:
    """``disks_uri`` does no harm where no disk is copied."""
    _, there = second_network
    addresses = {
        "migrate_uri": f"tcp://{there}",
        "listen_address": there,
        "disks_uri": f"tcp://{there}",
    }
    handle = await pair.start({**SLOW, **values, **addresses})

    async def sends() -> bool:
        sample = (await pair.source.migration(pair.vm)).sample
        return sample is not None and sample.transferred_bytes > 0

    await until(sends)
    namespace = hosts(pair.settings)[0].name
    command = ["ip", "netns", "exec", namespace, "ss", "-Htn", "state", "established"]
    lines = (await asyncio.to_thread(subprocess.check_output, command, text=True)).splitlines()
    peers = [line.split()[3].rpartition(":") for line in lines]
    taken = {(address, int(port)) for address, _, port in peers if int(port) >= 49152}
    assert {address for address, port in taken if port < 49216} == {there}
    await pair.source.abort_migration(pair.vm)
    with pytest.raises(CommandRefused):
        await handle.wait()


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


@on_libvirt_9_too
async def test_another_sees_a_migration_that_qemu_does_not_know_of_yet(pair: Pair) -> None:
    """As a service does that is started again while libvirt prepares the destination."""
    b = hosts(pair.settings)[1].libvirtd_pid
    assert b is not None
    other = LibvirtDriver(pair.source.uri)
    assert (await other.migration(pair.vm)).status is QemuStatus.NONE
    os.kill(b, signal.SIGSTOP)
    try:
        handle = await pair.start({})

        async def prepares() -> bool:
            return pair.vm in await other.outgoing()

        await until(prepares)
        assert (await other.migration(pair.vm)).status is QemuStatus.SETUP
    finally:
        os.kill(b, signal.SIGCONT)
    await handle.wait()
    with pytest.raises(NotFound):
        await other.migration(pair.vm)
    await other.close()


@on_libvirt_9_too
async def test_what_another_migrates_is_not_taken_for_ones_own(pair: Pair) -> None:
    """It begins just before the call, which libvirt then refuses."""
    other = LibvirtDriver(pair.source.uri)
    looked = pair.source.migration
    foreign: list[MigrationHandle] = []

    async def look_and_lose(vm: UUID, at_ms: int = 0) -> Snapshot:
        seen = await looked(vm, at_ms)
        if not foreign:
            order = MigrateOrder(pair.vm, SLOW, {})
            foreign.append(await other.start_migration(order, pair.destination))

            async def active() -> bool:
                return (await other.migration(pair.vm)).status is QemuStatus.ACTIVE

            await until(active)
        return seen

    pair.source.migration = look_and_lose  # type: ignore[method-assign] # a race, made certain
    handle = await pair.start(SLOW)
    pair.source.migration = looked  # type: ignore[method-assign]
    with pytest.raises(CommandRefused, match="another migration job"):
        await handle.wait()
    assert (await pair.source.migration(pair.vm)).status is QemuStatus.ACTIVE
    assert not handle.begun
    with pytest.raises(Conflict, match="migrated already"):
        await pair.start(SLOW)
    await other.abort_migration(pair.vm)
    with pytest.raises(CommandRefused):
        await foreign[0].wait()
    await other.close()


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
