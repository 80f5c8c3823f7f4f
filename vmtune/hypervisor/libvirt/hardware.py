"""What a domain's XML says that a VM needs of its host, and what a libvirt host offers of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from vmtune.hypervisor.libvirt.calls.connection import Connection
from vmtune.hypervisor.libvirt.disks import look_at_disks, read_disks
from vmtune.hypervisor.libvirt.domain_xml import parse, size_in_bytes
from vmtune.hypervisor.libvirt.errors import LibvirtRefused
from vmtune.hypervisor.libvirt.host import LocalDaemon
from vmtune.model.host.facts import VmFacts
from vmtune.model.host.hardware import Hardware, Offer
from vmtune.model.tunables.cpu_lists import parse_set

_KIB = 1 << 10
_PINS = ("vcpupin", "emulatorpin", "iothreadpin")
_CPU_INCOMPATIBLE = 0  # VIR_CPU_COMPARE_INCOMPATIBLE


def read_hardware(live: str, boot: str | None = None, snapshots: int = 0) -> Hardware:
    """Read it.

    :param live: the XML of the running domain; *boot* its configuration, None where it has none.
    :raise InvalidInput: it is none that libvirt writes.
    """
    root = parse(live)
    cpu, tpm = root.find("cpu"), root.find("devices/tpm/backend")
    configured = parse(boot).find("cpu") if boot is not None else cpu
    return Hardware(
        host_devices=tuple(_host_devices(root)),
        tpm=tpm.get("type", "") if tpm is not None else "",
        hugepage_bytes=_hugepage_bytes(root),
        cpu_mode=configured.get("mode", "custom") if configured is not None else "",
        cpu_xml="" if cpu is None else ElementTree.tostring(cpu, encoding="unicode"),
        disks=read_disks(root),
        snapshots=snapshots,
        virtiofs=tuple(_virtiofs(root)),
        pinned_cpus=_pinned_cpus(root),
    )


def _host_devices(root: Element) -> list[str]:
    devices = [e for e in root.findall("devices/hostdev") if e.get("type") in ("pci", "mdev")]
    devices += [e for e in root.findall("devices/interface") if e.get("type") == "hostdev"]
    return [_address(device.find("source/address")) for device in devices]


def _virtiofs(root: Element) -> Iterator[str]:
    """Where libvirt starts virtiofsd; one that others started, at a socket, is theirs to move."""
    for element in root.findall("devices/filesystem"):
        driver, source = element.find("driver"), element.find("source")
        theirs = source is not None and source.get("socket")
        if driver is not None and driver.get("type") == "virtiofs" and not theirs:
            target = element.find("target")
            yield target.get("dir", "") if target is not None else ""


def _pinned_cpus(root: Element) -> frozenset[int]:
    pins = [pin for kind in _PINS for pin in root.findall(f"cputune/{kind}")]
    found: set[int] = set()
    for element in (*pins, *root.findall("vcpu")):
        with suppress(ValueError):  # none that libvirt writes
            found |= parse_set(element.get("cpuset", ""))
    return frozenset(found)


def _address(address: Element | None) -> str:
    """``0000:3b:00.1``, or the UUID of a mediated device."""
    if address is None:
        return "of the host"
    uuid = address.get("uuid")
    if uuid is not None:
        return uuid
    domain, bus, slot, function = (
        int(address.get(part, "0"), 0) for part in ("domain", "bus", "slot", "function")
    )
    return f"{domain:04x}:{bus:02x}:{slot:02x}.{function:x}"


def _hugepage_bytes(root: Element) -> int:
    page = root.find("memoryBacking/hugepages/page")
    if page is None:
        return 0
    return size_in_bytes(page.get("size", "0"), page.get("unit", "KiB"))


def read_offer(connection: Connection, vm: VmFacts, daemon: LocalDaemon | None) -> Offer:
    """What the host of *connection* offers of what *vm* needs. Blocks.

    :param daemon: its process, where it runs on this machine: its files can be seen then.
    """
    needs = vm.hardware or Hardware()
    kind = "kvm" if vm.kvm else "qemu"
    tpms: frozenset[str] | None = None
    try:
        text = connection.domain_capabilities(kind, vm.machine)
    except LibvirtRefused as refusal:
        return Offer(machine=False if vm.machine in refusal.message else None)
    tpm = parse(text).find("devices/tpm")
    if tpm is not None:
        values = tpm.findall("enum[@name='backendModel']/value")
        tpms = frozenset(value.text or "" for value in values)
    return Offer(
        machine=True,
        cpu=_has_cpu(connection, kind, vm.machine, needs.cpu_xml),
        tpms=tpms,
        free_hugepages_bytes=_free_bytes(connection, needs.hugepage_bytes),
        disks=look_at_disks(connection, vm.uuid, needs.disks, daemon),
    )


def _has_cpu(connection: Connection, kind: str, machine: str, cpu_xml: str) -> bool | None:
    if not cpu_xml:
        return None
    try:
        return connection.compare_cpu(kind, machine, cpu_xml) > _CPU_INCOMPATIBLE
    except LibvirtRefused:
        return None  # not of a CPU model, or of TCG


def _free_bytes(connection: Connection, page_bytes: int) -> int | None:
    if not page_bytes:
        return None
    try:
        return connection.free_pages(page_bytes // _KIB) * page_bytes
    except LibvirtRefused:
        return 0  # it has no such pages at all
