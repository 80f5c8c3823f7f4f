"""Where a domain's XML has the settings of the ``boot`` route that QEMU's monitor does not show.

Each is read and written here, so that a running VM's XML proves what a configuration asked for
(libvirt's docs/formatdomain.rst). A device's owner is what its configuration keeps: a disk's target
(``vda``), a network card's MAC address, a SCSI controller's index (``scsi0``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from vmtune.model.host.facts import Reading
from vmtune.model.tunables.cpu_lists import ALL, canonical_set, join_sets
from vmtune.model.tunables.rows.devices import LEFT_TO_QEMU
from vmtune.model.tunables.tunable import Value

PAGES = {"2M": 2048, "1G": 1 << 20}
"""Sizes of huge pages in KiB, by the tunable's words."""


Attributes = Mapping[str, Mapping[str, str]]
"""The attributes of an element (under ``""``) and of its first child of each name."""


@dataclass(frozen=True, slots=True)
class DriverAttribute:
    """An attribute of the ``driver`` element of each device of a kind.

    :param element: of a device, in ``devices``.
    :param owner: a device's name; empty for one that has no such setting.
    :param absent: what a device without the attribute has.
    :param part: the devices in words.
    """

    element: str
    attribute: str
    owner: Callable[[Attributes], str]
    absent: Value
    part: str


def _disk(device: Attributes) -> str:
    whole = device[""].get("device", "disk") in ("disk", "lun")
    return device.get("target", {}).get("dev", "") if whole else ""


def _card(device: Attributes) -> str:
    """User-mode networking and cards of the host have no queues to set."""
    virtio = device.get("model", {}).get("type", "").startswith("virtio")
    queued = device[""].get("type", "") not in ("user", "hostdev")
    return device.get("mac", {}).get("address", "") if virtio and queued else ""


def _scsi(device: Attributes) -> str:
    virtio = device[""].get("model", "").startswith("virtio")
    ours = device[""].get("type") == "scsi" and virtio
    return f"scsi{device[''].get('index', '0')}" if ours else ""


DRIVER_ATTRIBUTES: Mapping[str, DriverAttribute] = {
    "virtio_net_queues": DriverAttribute(
        "interface", "queues", _card, 1, "a virtio network card with queues"
    ),
    "virtio_scsi_queues": DriverAttribute(
        "controller", "queues", _scsi, 0, "a virtio SCSI controller"
    ),
    "disk_cache": DriverAttribute("disk", "cache", _disk, LEFT_TO_QEMU, "a disk"),
    "disk_io": DriverAttribute("disk", "io", _disk, LEFT_TO_QEMU, "a disk"),
    "disk_discard": DriverAttribute("disk", "discard", _disk, LEFT_TO_QEMU, "a disk"),
}


def read_settings(root: Element) -> dict[str, Reading]:
    """Each of them, of a domain."""
    return {
        **{name: _of_devices(root, row) for name, row in DRIVER_ATTRIBUTES.items()},
        "huge_pages": _huge_pages(root),
        "vcpu_cpus": _pins(root, "vcpupin", "vcpu", range(_count(root, "vcpu"))),
        "emulator_cpus": _of_set(_emulator(root)),
        "iothread_cpus": _pins(root, "iothreadpin", "iothread", iothread_numbers(root)),
        "numa_nodes": _numa_nodes(root),
        "numa_mode": _numa_mode(root),
    }


def iothread_numbers(root: Element) -> list[int]:
    """The iothreads' numbers: those listed, and the lowest free ones for the rest of the count."""
    listed = [int(e.get("id", "0")) for e in root.findall("iothreadids/iothread")]
    wanted = int(root.findtext("iothreads") or len(listed))
    free = (n for n in range(1, wanted + len(listed) + 1) if n not in listed)
    return sorted([*listed, *(next(free) for _ in range(wanted - len(listed)))])


def attributes(element: Element) -> Attributes:
    """Of an element and its children."""
    children = {child.tag: child.attrib for child in reversed(element)}
    return {**children, "": element.attrib}


def _of_devices(root: Element, row: DriverAttribute) -> Reading:
    parts: dict[str, Value] = {}
    for element in root.findall(f"devices/{row.element}"):
        device = attributes(element)
        owner = row.owner(device)
        text = device.get("driver", {}).get(row.attribute)
        if owner:
            number = isinstance(row.absent, int)
            parts[owner] = row.absent if text is None else int(text) if number else text
    return Reading.of_parts(parts, f"the VM has not {row.part}")


def _huge_pages(root: Element) -> Reading:
    if root.find("memoryBacking/hugepages") is None:
        return Reading("none")
    pages = root.findall("memoryBacking/hugepages/page")
    if not pages:
        return Reading(LEFT_TO_QEMU)
    words = {str(kib): word for word, kib in PAGES.items()}
    if len(pages) > 1 or pages[0].get("nodeset") is not None:
        return Reading(None, why_unknown="the guest's NUMA nodes have pages of their own")
    size = _kib(pages[0])
    if size not in words:
        return Reading(None, why_unknown=f"pages of {size} KiB")
    return Reading(words[size])


def _kib(page: Element) -> str:
    factor = {"KiB": 1, "MiB": 1 << 10, "M": 1 << 10, "GiB": 1 << 20, "G": 1 << 20}
    return str(int(page.get("size", "0")) * factor.get(page.get("unit", "KiB"), 1))


def _count(root: Element, name: str) -> int:
    return int(root.findtext(name) or 1)


def _whole(root: Element) -> str:
    """The CPUs of threads that have none of their own."""
    vcpu = root.find("vcpu")
    return (vcpu.get("cpuset") if vcpu is not None else None) or ALL


def _emulator(root: Element) -> str:
    pin = root.find("cputune/emulatorpin")
    return pin.get("cpuset", ALL) if pin is not None else _whole(root)


def _pins(root: Element, element: str, number: str, numbers: Iterable[int]) -> Reading:
    pinned = {e.get(number): e.get("cpuset", ALL) for e in root.findall(f"cputune/{element}")}
    sets = [pinned.get(str(each), _whole(root)) for each in numbers]
    if not sets:
        return Reading(None, why_unknown="the VM has no iothread")
    try:
        return Reading(join_sets(map(canonical_set, sets)))
    except ValueError as error:
        return Reading(None, why_unknown=str(error))


def _of_set(text: str) -> Reading:
    try:
        return Reading(canonical_set(text))
    except ValueError as error:
        return Reading(None, why_unknown=str(error))


def _numa_nodes(root: Element) -> Reading:
    memory = root.find("numatune/memory")
    if memory is None:
        return Reading(ALL)
    if memory.get("placement") == "auto":
        return Reading(None, why_unknown="numad chooses them when the VM starts")
    return _of_set(memory.get("nodeset", ALL))


def _numa_mode(root: Element) -> Reading:
    memory = root.find("numatune/memory")
    if memory is None:
        return Reading(None, why_unknown="the memory comes from any node")
    return Reading(memory.get("mode", "strict"))
