"""The libvirt domain of the lab's VM."""

from __future__ import annotations

import fcntl
import os
import uuid
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from vmtune.lab.settings import DiskSettings, VmSettings

BEAT_PORT = 0xE9
"""Where the guest writes its heartbeat, as in ``guest/beat.h``."""
LISTENER_SOCKETS = ("serial", "beat")
"""Names of the sockets in a listener's folder: serial port and heartbeat."""
_KVM_CREATE_VM = 0xAE01
# A name always gets the same UUID, so that a VM defined again is the same VM.
_UUID_SPACE = uuid.UUID("6f3e6d6c-3b7e-4b0e-9a5c-5d9c1a9f2b11")


def kvm_usable() -> bool:
    """Whether /dev/kvm is there and makes a VM; the device alone says little."""
    try:
        device = os.open("/dev/kvm", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.close(fcntl.ioctl(device, _KVM_CREATE_VM, 0))
    except OSError:
        return False
    finally:
        os.close(device)
    return True


def vm_uuid(name: str) -> uuid.UUID:
    """The UUID of the lab's VM of that name."""
    return uuid.uuid5(_UUID_SPACE, name)


@dataclass(frozen=True, slots=True)
class VmFiles:
    """Files of a VM, by paths that hold on both hosts."""

    emulator: Path
    kernel: Path
    serial: Path
    firmware: Path | None = None
    disks: tuple[Path, ...] = ()


def build_domain_xml(vm: VmSettings, files: VmFiles, *, kvm: bool) -> str:
    """The domain's XML.

    :param kvm: run it by KVM, else by TCG; ``vm.kvm`` is not read again.
    """
    domain = Element("domain", type="kvm" if kvm else "qemu")
    _text(domain, "name", vm.name)
    _text(domain, "uuid", str(vm_uuid(vm.name)))
    _text(domain, "memory", str(vm.memory_bytes // 1024), unit="KiB")
    _text(domain, "vcpu", str(vm.vcpus))
    if vm.iothreads:
        _text(domain, "iothreads", str(vm.iothreads))
    boot = SubElement(domain, "os")
    _text(boot, "type", "hvm", arch="x86_64", machine="pc")
    if files.firmware is not None:
        _text(boot, "loader", str(files.firmware), readonly="yes", type="rom")
    _text(boot, "kernel", str(files.kernel))
    _text(boot, "cmdline", vm.workload.command_line())
    features = SubElement(domain, "features")
    SubElement(features, "acpi")
    if vm.dirty_ring_entries is not None:
        ring = SubElement(features, "kvm")
        SubElement(ring, "dirty-ring", state="on", size=str(vm.dirty_ring_entries))
    if kvm:
        # Not the host's own model: some nested KVMs cannot set all its MSRs.
        cpu = SubElement(domain, "cpu", mode="custom", match="exact", check="none")
        _text(cpu, "model", "qemu64", fallback="allow")
    for event in ("on_poweroff", "on_reboot", "on_crash"):
        _text(domain, event, "destroy")
    _add_devices(domain, vm, files)
    indent(domain)
    return tostring(domain, encoding="unicode") + "\n"


def _add_devices(domain: Element, vm: VmSettings, files: VmFiles) -> None:
    devices = SubElement(domain, "devices")
    _text(devices, "emulator", str(files.emulator))
    for i, (disk, path) in enumerate(zip(vm.disks, files.disks, strict=True)):
        _add_disk(devices, disk, path, target=f"{'hd' if disk.ide else 'vd'}{chr(ord('a') + i)}")
    SubElement(devices, "controller", type="usb", model="none")
    # Both hosts write to one file: the destination must not empty it.
    log = {"append": "on"}
    if vm.listener is None:
        serial = SubElement(devices, "serial", type="file")
        SubElement(serial, "source", log, path=str(files.serial))
        SubElement(serial, "target", port="0")
    else:
        serial, beat = (_add_socket(devices, vm.listener / name) for name in LISTENER_SOCKETS)
        SubElement(serial, "log", log, file=str(files.serial))
        SubElement(serial, "target", port="0")
        _add_debug_console(beat)
    SubElement(devices, "memballoon", model="none")


def _add_socket(devices: Element, path: Path) -> Element:
    serial = SubElement(devices, "serial", type="unix")
    SubElement(serial, "source", mode="connect", path=str(path))
    return serial


def _add_debug_console(serial: Element) -> None:
    """Where the guest's heartbeat goes: ``guest/beat.h``."""
    target = SubElement(serial, "target", type="isa-debug", port="1")
    SubElement(target, "model", name="isa-debugcon")
    SubElement(serial, "address", type="isa", iobase=f"{BEAT_PORT:#x}")


def _add_disk(devices: Element, disk: DiskSettings, path: Path, *, target: str) -> None:
    element = SubElement(devices, "disk", type="file", device="disk")
    driver = SubElement(element, "driver", name="qemu", type="raw", cache="none")
    if disk.queues is not None:
        driver.set("queues", str(disk.queues))
    if disk.queue_size is not None:
        driver.set("queue_size", str(disk.queue_size))
    if disk.iothread is not None:
        driver.set("iothread", str(disk.iothread))
    if disk.stops:
        driver.set("error_policy", "stop")
        driver.set("rerror_policy", "stop")
    SubElement(element, "source", file=str(path))
    SubElement(element, "target", dev=target, bus="ide" if disk.ide else "virtio")
    if disk.read_only:
        SubElement(element, "readonly")
    if disk.shareable:
        SubElement(element, "shareable")


def _text(parent: Element, tag: str, text: str, **attributes: str) -> None:
    SubElement(parent, tag, attributes).text = text
