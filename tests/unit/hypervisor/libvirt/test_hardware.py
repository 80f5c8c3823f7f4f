"""What a domain's XML says that a VM needs of its host."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.examples.facts import vm
from vmtune.hypervisor.libvirt.errors import LibvirtRefused
from vmtune.hypervisor.libvirt.hardware import read_hardware, read_offer
from vmtune.hypervisor.libvirt.host import LocalDaemon
from vmtune.model.host.disks import DISK_NOT_SEEN, Disk, DiskAtHost, DiskKind
from vmtune.model.host.hardware import Hardware, Offer

CPU = "<cpu mode='custom' match='exact'><model>qemu64</model></cpu>"


def domain(devices: str = "", more: str = "") -> str:
    return f"<domain type='kvm'><name>vm</name>{more}<devices>{devices}</devices></domain>"


@pytest.mark.parametrize(
    ("xml", "expected"),
    [
        (domain(), Hardware()),
        (
            domain(
                "<hostdev mode='subsystem' type='pci' managed='yes'><source>"
                "<address domain='0x0000' bus='0x3b' slot='0x00' function='0x1'/></source>"
                "</hostdev>"
                "<interface type='hostdev'><source>"
                "<address type='pci' domain='0x0000' bus='0x5e' slot='0x02' function='0x0'/>"
                "</source></interface>"
                "<hostdev mode='subsystem' type='mdev' model='vfio-pci'><source>"
                "<address uuid='4b20d080-1b54-4048-85b3-a6a62d165c01'/></source></hostdev>"
                "<hostdev mode='subsystem' type='usb'><source/></hostdev>"
            ),
            Hardware(
                host_devices=(
                    "0000:3b:00.1",
                    "4b20d080-1b54-4048-85b3-a6a62d165c01",
                    "0000:5e:02.0",
                )
            ),
        ),
        (
            domain("<tpm model='tpm-crb'><backend type='emulator' version='2.0'/></tpm>"),
            Hardware(tpm="emulator"),
        ),
        (
            domain(more="<memoryBacking><hugepages><page size='1' unit='G'/></hugepages>"
                   "</memoryBacking>"),
            Hardware(hugepage_bytes=1 << 30),
        ),
        (domain(more="<memoryBacking><hugepages/></memoryBacking>"), Hardware()),
        (
            domain(
                "<disk type='file' device='disk'><source file='/a.img'/></disk>"
                "<disk type='block' device='disk'><source dev='/dev/b'/></disk>"
                "<disk type='network' device='disk'><source protocol='rbd' name='p/c'/></disk>"
                "<disk type='file' device='cdrom'/>"
            ),
            Hardware(
                disks=(
                    Disk("", path="/a.img"),
                    Disk("", DiskKind.BLOCK, path="/dev/b"),
                    Disk("", DiskKind.NETWORK),
                    Disk("", device="cdrom"),
                )
            ),
        ),
        (
            domain(
                "<disk type='file' device='disk'><driver name='qemu' type='qcow2' "
                "cache='none' discard='unmap'/>"
                "<source file='/top'/><target dev='vda' bus='virtio'/>"
                "<backingStore type='file'><format type='qcow2'/><source file='/mid'/>"
                "<backingStore type='block'><source dev='/dev/base'/><backingStore/></backingStore>"
                "</backingStore></disk>"
                "<disk type='file' device='disk'><source file='/s'/><target dev='vdb'/>"
                "<readonly/><shareable/></disk>"
            ),
            Hardware(
                disks=(
                    Disk(
                        "vda", path="/top", format="qcow2", cache="none",
                        discard="unmap", backing=("/mid", "/dev/base"),
                    ),
                    Disk("vdb", path="/s", read_only=True, shareable=True),
                )
            ),
        ),
        (
            domain(
                "<disk type='file' device='disk'><source file='/x'>"
                "<encryption format='luks'><secret type='passphrase' uuid='u'/></encryption>"
                "</source><target dev='vda'/></disk>"
                "<disk type='file' device='disk'><source file='/y'/><target dev='vdb'/>"
                "<encryption format='luks'/></disk>"
            ),
            Hardware(
                disks=(
                    Disk("vda", path="/x", encrypted=True),
                    Disk("vdb", path="/y", encrypted=True),
                )
            ),
        ),
        (domain(more=CPU), Hardware(cpu_mode="custom", cpu_xml=CPU.replace("'", '"'))),
    ],
)  # fmt: skip
def test_what_it_needs(xml: str, expected: Hardware) -> None:
    assert read_hardware(xml) == expected


def test_the_mode_of_a_cpu_is_that_of_the_configuration() -> None:
    """A running VM's host-model is expanded."""
    found = read_hardware(domain(more=CPU), domain(more="<cpu mode='host-model'/>"), 2)
    assert (found.cpu_mode, found.snapshots) == ("host-model", 2)
    assert "qemu64" in found.cpu_xml


def test_a_daemon_whose_files_may_not_be_seen_says_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A service that is not root's may not look into root's process."""

    def refuse(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    for call in ("read_text", "stat", "is_dir", "iterdir"):
        monkeypatch.setattr(Path, call, refuse)
    monkeypatch.setattr("os.statvfs", refuse)
    daemon = LocalDaemon(1)
    assert daemon.no_certificates_in() == ""
    assert daemon.look_at("/a.img") == DISK_NOT_SEEN


def test_a_file_is_known_again_by_another_name(tmp_path: Path) -> None:
    """As a daemon on this machine sees it: here, this process itself."""
    here = LocalDaemon(os.getpid())
    file, same, other = (tmp_path / name for name in ("file", "same", "other"))
    file.write_bytes(b"x")
    other.write_bytes(b"x")
    same.hardlink_to(file)
    disk = Disk("vda", path=str(file), identity=here.look_at(str(file)).identity)
    assert here.look_at(str(same)).is_same(disk) is True
    assert here.look_at(str(other)).is_same(disk) is False
    missing = here.look_at(str(tmp_path / "no"))
    assert (missing.present, missing.folder, missing.is_same(disk)) == (False, True, False)
    assert missing.free_bytes is not None
    assert here.look_at(str(tmp_path / "no/no")) == DiskAtHost(present=False, folder=False)
    assert DISK_NOT_SEEN.is_same(disk) is None


CAPABILITIES = """<domainCapabilities><devices><tpm supported='yes'>
<enum name='backendModel'><value>passthrough</value><value>emulator</value></enum>
</tpm></devices></domainCapabilities>"""


class Host:
    """A libvirt that answers as a host with swtpm, without the guest's CPU, with 3 huge pages."""

    def domain_capabilities(self, kind: str, machine: str) -> str:
        if machine != "pc-i440fx-10.0":
            raise LibvirtRefused(f"the accel 'kvm' is not supported by machine {machine}", 8)
        assert kind == "kvm"
        return CAPABILITIES

    def compare_cpu(self, kind: str, machine: str, cpu_xml: str) -> int:
        return 0 if "EPYC" in cpu_xml else 1

    def free_pages(self, page_kib: int) -> int:
        if page_kib != 1 << 20:
            raise LibvirtRefused("no such page size", 8)
        return 3


@pytest.mark.parametrize(
    ("machine", "needs", "offered"),
    [
        ("pc-i440fx-99.0", Hardware(), Offer(machine=False)),
        (
            "pc-i440fx-10.0",
            Hardware(tpm="external"),
            Offer(machine=True, tpms=frozenset({"passthrough", "emulator"})),
        ),
        (
            "pc-i440fx-10.0",
            Hardware(cpu_xml="<cpu><model>EPYC</model></cpu>", hugepage_bytes=1 << 30),
            Offer(True, False, frozenset({"passthrough", "emulator"}), 3 << 30),
        ),
        (
            "pc-i440fx-10.0",
            Hardware(cpu_xml="<cpu><model>qemu64</model></cpu>", hugepage_bytes=2 << 20),
            Offer(True, True, frozenset({"passthrough", "emulator"}), 0),
        ),
    ],
)
def test_what_a_host_offers_of_it(machine: str, needs: Hardware, offered: Offer) -> None:
    found: Any = Host()
    assert read_offer(found, vm(machine=machine, hardware=needs, kvm=True), None) == offered
