"""What a domain's XML says, as facts (libvirt docs/formatdomain.rst)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from vmtune.hypervisor.libvirt.boot.settings import iothread_numbers, read_settings
from vmtune.hypervisor.libvirt.checked_xml import check_xml
from vmtune.model.host.facts import Reading
from vmtune.model.host.managers import managed_by
from vmtune.model.tunables.tunable import Value

_UNITS = {
    "b": 1, "bytes": 1, "KB": 10**3, "k": 1 << 10, "KiB": 1 << 10, "MB": 10**6, "M": 1 << 20,
    "MiB": 1 << 20, "GB": 10**9, "G": 1 << 30, "GiB": 1 << 30, "TB": 10**12, "T": 1 << 40,
    "TiB": 1 << 40,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Disk:
    """A virtio-blk disk.

    :param target: its name in the configuration (``vda``).
    :param alias: its name in QEMU (``virtio-disk0``); empty while it does not run.
    :param queues: None where the XML leaves it to QEMU; likewise *queue_size*.
    """

    target: str
    alias: str
    queues: int | None
    queue_size: int | None


@dataclass(frozen=True, slots=True)
class DomainXml:
    """What vmtune wants to know of a domain's XML.

    :param iothreads: QEMU's names of them (``iothread1``).
    :param dirty_ring_size_entries: 0 for bitmap tracking; None where it is not known.
    :param settings: what only the XML has of the ``boot`` route; empty where it is not known.
    :param manager: the program that manages it; empty if none that is known does.
    """

    machine: str
    kvm: bool
    memory_bytes: int
    vcpus: int
    iothreads: tuple[str, ...]
    main_loop: bool
    disks: tuple[Disk, ...]
    dirty_ring_size_entries: int | None
    settings: Mapping[str, Reading] = field(default_factory=dict)
    manager: str = ""


def parse(text: str) -> Element:
    """*text* as an element.

    :raise InvalidInput: it is none that libvirt writes.
    """
    return ElementTree.fromstring(check_xml(text))  # noqa: S314 - checked before


def read_domain(text: str) -> DomainXml:
    """A domain's XML as facts."""
    root = parse(text)
    os_type = root.find("os/type")
    return DomainXml(
        machine=os_type.get("machine", "") if os_type is not None else "",
        kvm=root.get("type") == "kvm",
        memory_bytes=_bytes(root.find("memory")),
        vcpus=_vcpus(root.find("vcpu")),
        iothreads=tuple(f"iothread{number}" for number in iothread_numbers(root)),
        main_loop=root.find("defaultiothread") is not None,
        disks=tuple(_disks(root)),
        dirty_ring_size_entries=_dirty_ring(root),
        settings=read_settings(root),
        manager=_manager(root),
    )


def manager_in(text: str) -> str:
    """The program that manages a domain, by its XML; empty if none that is known does."""
    return _manager(parse(text))


def _manager(root: Element) -> str:
    return managed_by(_namespaces(root.find("metadata")))


def _namespaces(metadata: Element | None) -> list[str]:
    """Those of what others have written into a domain's metadata."""
    found = () if metadata is None else tuple(metadata)
    return [each.tag[1:].partition("}")[0] for each in found if each.tag.startswith("{")]


def size_in_bytes(number: str, unit: str) -> int:
    """A size as libvirt writes it; KiB where it does not know the unit."""
    return int(number) * _UNITS.get(unit, 1 << 10)


def _bytes(element: Element | None) -> int:
    if element is None or not element.text:
        return 0
    return size_in_bytes(element.text, element.get("unit", "KiB"))


def _vcpus(element: Element | None) -> int:
    if element is None or not element.text:
        return 1
    return int(element.get("current", element.text))


def _disks(root: Element) -> list[Disk]:
    disks: list[Disk] = []
    for element in root.findall("devices/disk"):
        target, alias, driver = (element.find(n) for n in ("target", "alias", "driver"))
        if target is None or target.get("bus") != "virtio":
            continue
        disks.append(
            Disk(
                target=target.get("dev", ""),
                alias=alias.get("name", "") if alias is not None else "",
                queues=_number(driver, "queues"),
                queue_size=_number(driver, "queue_size"),
            )
        )
    return disks


def _number(element: Element | None, name: str) -> int | None:
    text = element.get(name) if element is not None else None
    return int(text) if text is not None else None


def _dirty_ring(root: Element) -> int:
    ring = root.find("features/kvm/dirty-ring")
    if ring is None or ring.get("state") != "on":
        return 0
    return int(ring.get("size", "0"))


_LEFT_TO_QEMU = "the configuration leaves it to QEMU"
_NO_DISK = "the VM has no virtio-blk disk"


def boot_readings(
    boot: DomainXml, live: DomainXml | None = None, running: Mapping[str, Reading] | None = None
) -> dict[str, Reading]:
    """The boot route's tunables as the persistent configuration has them.

    What it leaves to QEMU is read from the running QEMU, where that was left the choice too.

    Disks are named by their targets (``vda``), which the configuration has.

    :param live: the running VM's XML, *running* its readings.
    """
    return {
        "dirty_ring_size_entries": Reading(boot.dirty_ring_size_entries),
        "virtio_blk_queues": _of_disks(boot, live, running or {}, "virtio_blk_queues"),
        "virtio_blk_queue_size": _of_disks(boot, live, running or {}, "virtio_blk_queue_size"),
        **boot.settings,
    }


def _of_disks(
    boot: DomainXml, live: DomainXml | None, running: Mapping[str, Reading], tunable: str
) -> Reading:
    def configured(disk: Disk) -> int | None:
        return disk.queues if tunable == "virtio_blk_queues" else disk.queue_size

    seen = running.get(tunable, Reading(None)).parts
    chosen = {
        disk.target: seen.get(disk.alias)
        for disk in (live.disks if live else ())
        if configured(disk) is None
    }
    values: dict[str, Value] = {}
    for disk in boot.disks:
        value: Value | None = configured(disk)
        if value is None:
            value = chosen.get(disk.target)
        if value is not None:
            values[disk.target] = value
    if boot.disks and len(values) < len(boot.disks):
        return Reading(None, values, _LEFT_TO_QEMU)
    return Reading.of_parts(values, _NO_DISK)
