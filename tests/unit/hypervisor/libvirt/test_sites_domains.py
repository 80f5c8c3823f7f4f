"""Domains as sites have them: each is read, planned, changed and changed back."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import canonicalize

import pytest

from tests.support.examples.facts import migrating, vm
from vmtune.errors import CommandRefused
from vmtune.hypervisor.libvirt.arriving_xml import LibvirtArrivingXml
from vmtune.hypervisor.libvirt.domain_xml import boot_readings, read_domain
from vmtune.hypervisor.libvirt.domain_xml_edit import edit_boot_xml
from vmtune.hypervisor.libvirt.hardware import read_hardware
from vmtune.model.findings.table import Severity
from vmtune.model.plan.changes import Change, undo
from vmtune.model.plan.plan import make_plan
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import Route

FILES = sorted((Path(__file__).parents[3] / "data/domains").glob("*.xml"))
GIB = 1 << 30


@dataclass(frozen=True)
class Expected:
    """What is to be read of one.

    :param findings: of its preflight before a migration, besides notes.
    """

    memory_bytes: int
    vcpus: int
    iothreads: tuple[str, ...] = ()
    virtio_disks: tuple[str, ...] = ()
    settings: tuple[tuple[str, object], ...] = ()
    manager: str = ""
    findings: frozenset[str] = frozenset()


EXPECTED = {
    "kvm-args": Expected(2 * GIB, 2, (), ("vda",), (("virtio_scsi_queues", 0),)),
    "nova": Expected(
        8 * GIB, 4, (), ("vda", "vdb"),
        (("vcpu_cpus", "0/1/2/3"), ("emulator_cpus", "0-3"), ("disk_cache", "writeback"),
         ("disk_discard", "unmap"), ("virtio_net_queues", 4)),
        "OpenStack Nova", frozenset({"cpu_host_model"}),
    ),
    "numa-hugepages": Expected(
        16 * GIB, 8, ("iothread3", "iothread7"), ("vda", "vdb"),
        (("huge_pages", None), ("emulator_cpus", "0,16"), ("iothread_cpus", "1/17"),
         ("vcpu_cpus", "4/5/6/7/20/21/22/23"), ("numa_nodes", "0-1"), ("numa_mode", "strict"),
         ("virtio_net_queues", 8), ("disk_io", None)),
        # The destination has 16.
        "", frozenset({"cpu_host_passthrough", "pinned_cpus_missing"}),
    ),
    "ovirt": Expected(
        4 * GIB, 2, ("iothread1",), ("vda",),
        (("disk_cache", "none"), ("disk_io", "native"), ("virtio_scsi_queues", 2)),
    ),
    "sev": Expected(4 * GIB, 4, (), ("vda",), (), "", frozenset({"cpu_host_model"})),
    "vfio": Expected(
        4 * GIB, 4, settings=(("virtio_net_queues", 1),),
        findings=frozenset({"vfio_device", "cpu_host_passthrough"}),
    ),
    "virt-install": Expected(
        2 * GIB, 2, (), ("vda",), (("disk_discard", "unmap"),), "",
        frozenset({"cpu_host_passthrough"}),
    ),
    "virtiofs": Expected(GIB, 2, findings=frozenset({"virtiofs_device"})),
    "windows": Expected(
        8 * GIB, 4, settings=(("disk_cache", None), ("virtio_scsi_queues", 0)),
        findings=frozenset({"cpu_host_model"}),
    ),
}  # fmt: skip
VALUES = {
    "dirty_ring_size_entries": 4096,
    "virtio_blk_queues": 4,
    "virtio_blk_queue_size": 512,
    "virtio_net_queues": 2,
    "virtio_scsi_queues": 3,
    "disk_cache": "directsync",
    "disk_io": "threads",
    "disk_discard": "ignore",
    "huge_pages": "2M",
    "emulator_cpus": "2-3",
    "numa_nodes": "1",
}
"""A value that none of them has, for each boot tunable that does not depend on how many it has."""


def test_each_has_its_row() -> None:
    assert {path.stem for path in FILES} == EXPECTED.keys()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_is_read(path: Path) -> None:
    text, expected = path.read_text(), EXPECTED[path.stem]
    domain = read_domain(text)
    assert domain.kvm
    assert domain.machine
    assert (domain.memory_bytes, domain.vcpus) == (expected.memory_bytes, expected.vcpus)
    assert domain.iothreads == expected.iothreads
    assert tuple(disk.target for disk in domain.disks) == expected.virtio_disks
    assert domain.manager == expected.manager
    for name, value in expected.settings:
        assert domain.settings[name].value == value, name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_stands_against_its_migration_is_found(path: Path) -> None:
    facts = vm(hardware=read_hardware(path.read_text()))
    found = make_plan(migrating(vm=facts), "a", "p", 1).findings
    codes = {each.code for each in found if each.severity is not Severity.INFO}
    assert codes - {"disk_not_seen"} >= EXPECTED[path.stem].findings
    of_hardware = {
        "vfio_device", "virtiofs_device", "cpu_host_model", "cpu_host_passthrough",
        "pinned_cpus_missing",
    }  # fmt: skip
    assert codes & of_hardware == EXPECTED[path.stem].findings


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("name", sorted({row.name for row in BUILT_IN.on(Route.BOOT)}))
def test_each_setting_is_changed_alone_and_changed_back(path: Path, name: str) -> None:
    text = path.read_text()
    before = boot_readings(read_domain(text))
    domain = read_domain(text)
    counts = {"vcpu_cpus": int(text.split("</vcpu>")[0].rpartition(">")[2]),
              "iothread_cpus": len(domain.iothreads)}  # fmt: skip
    if name in counts:
        value: int | str = "/".join(map(str, range(30, 30 + max(1, counts[name]))))
    else:
        value = VALUES.get(name, "interleave")
    change = Change(name, value)
    try:
        edited = edit_boot_xml(text, [change])
    except CommandRefused as refused:
        assert refused.problems[0].field == f"values.{name}"
        # Only what it has no part for, or NUMA's mode without nodes.
        assert not before[name].parts
        return
    after = boot_readings(read_domain(edited))
    assert after[name].value == value
    assert {each for each in after if after[each] != before[each]} <= {name, "numa_mode"}
    if before[name].value is not None:
        back = edit_boot_xml(edited, undo([change], before))
        assert boot_readings(read_domain(back)) == before


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_on_arrival_it_gets_its_values_and_keeps_the_rest(path: Path) -> None:
    text, hook = path.read_text(), LibvirtArrivingXml()
    vm_uuid, name = hook.identify(text)
    assert f"<uuid>{vm_uuid}</uuid>" in text
    assert f"<name>{name}</name>" in text
    edited = hook.edit(text, {"announce_rounds": 9})
    assert edited is not None
    option = r"<(qemu:)?arg [^>]*value=.-global.[^>]*/>"
    ours = option + r"<(qemu:)?arg value=.migration.announce-rounds=9./>"
    rest, count = re.subn(ours, "", edited)
    assert count == 1
    rest = re.sub(r"<qemu:commandline[^>]*></qemu:commandline>", "", rest)
    assert same(rest, text)


def same(one: str, other: str) -> bool:
    return len({canonicalize(text, strip_text=True) for text in (one, other)}) == 1
