"""The domain XML of the lab's VM."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

from vmtune.lab import DiskSettings, VmSettings
from vmtune.lab.domain_xml import BEAT_PORT, VmFiles, build_domain_xml, vm_uuid
from vmtune.lab.guest_build import SOURCE
from vmtune.model.workload import Workload

FILES = VmFiles(
    emulator=Path("/opt/qemu"),
    kernel=Path("/lab/guest.elf"),
    serial=Path("/lab/serial.log"),
)


def build(vm: VmSettings, *, kvm: bool = True, files: VmFiles = FILES) -> Element:
    return fromstring(build_domain_xml(vm, files, kvm=kvm))


def attributes(domain: Element, path: str) -> dict[str, str]:
    element = domain.find(path)
    assert element is not None, path
    return element.attrib


def test_the_plain_vm() -> None:
    work = Workload(region_bytes=1 << 20, beat_ms=5)
    domain = build(VmSettings(name="x", memory_bytes=64 << 20, vcpus=2, workload=work))
    assert domain.findtext("name") == "x"
    assert domain.findtext("uuid") == str(vm_uuid("x"))
    assert domain.findtext("memory") == "65536"
    assert domain.findtext("vcpu") == "2"
    assert domain.findtext("os/kernel") == "/lab/guest.elf"
    assert domain.findtext("os/cmdline") == work.command_line()
    assert domain.findtext("devices/emulator") == "/opt/qemu"
    assert domain.find("os/loader") is None
    assert domain.find("iothreads") is None
    assert domain.find("features/kvm") is None


def test_the_destination_does_not_empty_the_serial_log() -> None:
    source = attributes(build(VmSettings()), "devices/serial/source")
    assert source == {"path": "/lab/serial.log", "append": "on"}


def test_serial_port_and_heartbeat_can_be_listened_to() -> None:
    domain = build(VmSettings(listener=Path("/lab/ears")))
    serial, beat = domain.findall("devices/serial")
    assert (serial.get("type"), beat.get("type")) == ("unix", "unix")
    assert attributes(serial, "source") == {"mode": "connect", "path": "/lab/ears/serial"}
    assert attributes(serial, "log") == {"file": "/lab/serial.log", "append": "on"}
    assert attributes(serial, "target") == {"port": "0"}
    assert attributes(beat, "source") == {"mode": "connect", "path": "/lab/ears/beat"}
    assert attributes(beat, "target")["type"] == "isa-debug"
    assert attributes(beat, "target/model") == {"name": "isa-debugcon"}
    assert int(attributes(beat, "address")["iobase"], 16) == 0xE9


def test_the_heartbeats_port_is_the_guests() -> None:
    assert f"#define BEAT_PORT {BEAT_PORT:#x}" in (SOURCE / "beat.h").read_text()


def test_kvm_gets_a_model_that_every_kvm_can_run() -> None:
    assert build(VmSettings(), kvm=True).findtext("cpu/model") == "qemu64"
    assert build(VmSettings(), kvm=True).get("type") == "kvm"


def test_tcg_gets_its_own_model() -> None:
    domain = build(VmSettings(), kvm=False)
    assert domain.get("type") == "qemu"
    assert domain.find("cpu") is None


def test_dirty_ring() -> None:
    ring = attributes(build(VmSettings(dirty_ring_entries=4096)), "features/kvm/dirty-ring")
    assert ring == {"state": "on", "size": "4096"}


def test_firmware() -> None:
    files = VmFiles(FILES.emulator, FILES.kernel, FILES.serial, firmware=Path("/lab/rom"))
    domain = build(VmSettings(), files=files)
    assert domain.findtext("os/loader") == "/lab/rom"
    assert attributes(domain, "os/loader")["type"] == "rom"


def test_disks_and_iothreads() -> None:
    vm = VmSettings(
        iothreads=2,
        disks=(
            DiskSettings(queues=4, queue_size=256, iothread=2),
            DiskSettings(read_only=True),
        ),
    )
    paths = (Path("/lab/0"), Path("/lab/1"))
    domain = build(vm, files=VmFiles(FILES.emulator, FILES.kernel, FILES.serial, disks=paths))
    assert domain.findtext("iothreads") == "2"
    first, second = domain.findall("devices/disk")
    assert attributes(first, "driver") == {
        "name": "qemu",
        "type": "raw",
        "cache": "none",
        "queues": "4",
        "queue_size": "256",
        "iothread": "2",
    }
    assert attributes(first, "source") == {"file": "/lab/0"}
    assert attributes(first, "target")["dev"] == "vda"
    assert first.find("readonly") is None
    assert set(attributes(second, "driver")) == {"name", "type", "cache"}
    assert attributes(second, "target")["dev"] == "vdb"
    assert second.find("readonly") is not None


def test_a_disk_of_ide_that_stops_the_vm_at_an_error() -> None:
    vm = VmSettings(disks=(DiskSettings(ide=True, shareable=True, stops=True),))
    files = VmFiles(FILES.emulator, FILES.kernel, FILES.serial, disks=(Path("/lab/0"),))
    disk = build(vm, files=files).find("devices/disk")
    assert disk is not None
    assert attributes(disk, "target") == {"dev": "hda", "bus": "ide"}
    driver = attributes(disk, "driver")
    assert (driver["error_policy"], driver["rerror_policy"]) == ("stop", "stop")
    assert disk.find("shareable") is not None


def test_a_name_always_has_the_same_uuid() -> None:
    assert vm_uuid("x") == vm_uuid("x") != vm_uuid("y")
