"""What the boot route writes, on a real libvirt: written, in effect after a start, put back."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.hosts.libvirt_pair import NAME, Pair, opened_pair, until
from tests.support.hosts.live import why_no_lab
from vmtune import lab
from vmtune.hypervisor.libvirt.boot.settings import read_settings
from vmtune.hypervisor.libvirt.domain_xml import parse
from vmtune.model.plan.changes import Change, undo
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import Route, Value

NO_LAB = why_no_lab()
pytestmark = pytest.mark.skipif(bool(NO_LAB), reason=NO_LAB or "never")

CARD = "52:54:00:00:00:01"
DEVICES = f"""\
<controller type='scsi' index='0' model='virtio-scsi'/>
<interface type='ethernet'>
  <mac address='{CARD}'/>
  <model type='virtio'/>
  <rom enabled='no'/>
</interface>
</devices>"""
WANTED: dict[str, Value] = {
    "virtio_net_queues": 4,
    "virtio_scsi_queues": 3,
    "disk_cache": "directsync",
    "disk_io": "native",
    "disk_discard": "unmap",
    "vcpu_cpus": "0/1",
    "emulator_cpus": "1",
    "iothread_cpus": "0",
    "numa_nodes": "0",
    "numa_mode": "preferred",
}
HUGE_PAGES = Path("/proc/sys/vm/nr_hugepages")


@pytest.fixture(params=[False, True], ids=["libvirt", "libvirt-9"])
async def pair(request: pytest.FixtureRequest) -> AsyncIterator[Pair]:
    """Its VM has two vCPUs, a network card and a SCSI controller, and is shut off."""
    async with opened_pair(request.param) as made:
        text = made.xml(0, "--inactive")
        text = text.replace("</devices>", DEVICES).replace(">1</vcpu>", ">2</vcpu>")
        lab.virsh(made.source.uri, "destroy", NAME)
        define(made, text)
        yield made


def define(pair: Pair, text: str) -> None:
    file = pair.settings.folder / "with-devices.xml"
    file.write_text(text)
    lab.virsh(pair.source.uri, "define", str(file))


@pytest.fixture
def huge_pages() -> Iterator[int]:
    """Enough huge pages of 2 MiB for the VM."""
    before = int(HUGE_PAGES.read_text())
    HUGE_PAGES.write_text(str(before + 40))
    try:
        if int(HUGE_PAGES.read_text()) < before + 40:
            pytest.skip("this machine's memory is too fragmented for 40 huge pages")
        yield 40
    finally:
        HUGE_PAGES.write_text(str(before))


def of_process(pid: int, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_text()


def affinities(pid: int) -> dict[str, set[frozenset[int]]]:
    """The CPUs of a QEMU's threads, by their names without numbers."""
    found: dict[str, set[frozenset[int]]] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            name = (task / "comm").read_text().strip().rstrip("0123456789/")
            cpus = frozenset(os.sched_getaffinity(int(task.name)))
        except (FileNotFoundError, ProcessLookupError):
            continue  # the thread has just ended
        found.setdefault(name, set()).add(cpus)
    return found


def test_every_setting_of_the_boot_route_is_tried_here_or_elsewhere() -> None:
    elsewhere = {"dirty_ring_size_entries", "virtio_blk_queues", "virtio_blk_queue_size"}
    assert {t.name for t in BUILT_IN.on(Route.BOOT)} == {*WANTED, "huge_pages", *elsewhere}


async def test_settings_take_effect_at_the_start_and_are_put_back(pair: Pair) -> None:
    before = await pair.source.vm_facts(pair.vm)
    changes = [Change(name, value) for name, value in WANTED.items()]
    await pair.source.write_boot(pair.vm, changes)
    configured = (await pair.source.vm_facts(pair.vm)).boot_readings
    assert {name: configured[name].value for name in WANTED} == WANTED
    assert configured["virtio_net_queues"].parts == {CARD: 4}

    lab.virsh(pair.source.uri, "start", NAME)
    running = await pair.source.vm_facts(pair.vm)
    assert {name: running.readings[name].value for name in WANTED} == WANTED
    # And the kernel and QEMU have them, not libvirt's XML alone.
    assert running.pid is not None
    threads = affinities(running.pid)
    vcpus = set().union(*(cpus for name, cpus in threads.items() if name.startswith("CPU")))
    assert vcpus == {frozenset({0}), frozenset({1})}, threads
    line = of_process(running.pid, "cmdline")
    assert '"num_queues":3' in line
    assert '"aio":"native"' in line
    assert '"discard":"unmap"' in line
    assert '"mq":true' in line

    lab.virsh(pair.source.uri, "destroy", NAME)
    await pair.source.write_boot(pair.vm, undo(changes, before.boot_readings))
    assert (await pair.source.vm_facts(pair.vm)).boot_readings == before.boot_readings


async def test_threads_of_a_migration_run_where_the_emulator_does(pair: Pair) -> None:
    changes = [Change("emulator_cpus", "1"), Change("vcpu_cpus", "0"), Change("iothread_cpus", "0")]
    await pair.source.write_boot(pair.vm, changes)
    lab.virsh(pair.source.uri, "start", NAME)
    pid = (await pair.source.vm_facts(pair.vm)).pid
    assert pid is not None
    at_rest = affinities(pid)
    handle = await pair.start({"max_bandwidth_bytes_per_s": 1 << 20, "multifd": True})

    async def more_threads() -> bool:
        return bool(affinities(pid).keys() - at_rest.keys())

    await until(more_threads)
    during = affinities(pid)
    assert {cpus for name in during.keys() - at_rest.keys() for cpus in during[name]} == {
        frozenset({1})
    }, during
    await pair.source.abort_migration(pair.vm)
    with pytest.raises(Exception, match="cancel"):
        await handle.wait()


async def test_huge_pages_back_the_guest(pair: Pair, huge_pages: int) -> None:
    await pair.source.write_boot(pair.vm, [Change("huge_pages", "2M")])
    # The lab's hosts have no hugetlbfs: a memfd needs none.
    xml = pair.xml(0, "--inactive").replace("<hugepages>", "<source type='memfd'/><hugepages>")
    define(pair, xml)
    lab.virsh(pair.source.uri, "start", NAME)
    facts = await pair.source.vm_facts(pair.vm)
    assert facts.readings["huge_pages"].value == "2M"
    assert facts.hardware is not None
    assert facts.hardware.hugepage_bytes == 2 << 20
    assert facts.pid is not None
    assert of_process(facts.pid, "smaps").count("KernelPageSize:     2048 kB") == 1
    lab.virsh(pair.source.uri, "destroy", NAME)
    await pair.source.write_boot(pair.vm, [Change("huge_pages", "none")])
    assert read_settings(parse(pair.xml(0, "--inactive")))["huge_pages"].value == "none"
