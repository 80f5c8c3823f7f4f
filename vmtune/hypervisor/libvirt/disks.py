"""A VM's disks, as its XML and libvirt say, and what another libvirt host has at their paths."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath
from xml.etree.ElementTree import Element

from vmtune.hypervisor.libvirt.calls import Connection, Domain
from vmtune.hypervisor.libvirt.domain_xml import parse
from vmtune.hypervisor.libvirt.errors import LibvirtRefused
from vmtune.hypervisor.libvirt.host import LocalDaemon
from vmtune.model.host.disks import DISK_NOT_SEEN, Disk, DiskAtHost, DiskKind

_PATHS = {"file": DiskKind.FILE, "dev": DiskKind.BLOCK}


def read_disks(root: Element) -> tuple[Disk, ...]:
    """The disks of a domain's XML."""
    return tuple(_disk(element) for element in root.findall("devices/disk"))


def _disk(element: Element) -> Disk:
    target, driver, source = (element.find(name) for name in ("target", "driver", "source"))
    kind, path = _where(element, source)
    return Disk(
        target=target.get("dev", "") if target is not None else "",
        kind=kind,
        path=path,
        format=driver.get("type", "") if driver is not None else "",
        device=element.get("device", "disk"),
        read_only=element.find("readonly") is not None,
        shareable=element.find("shareable") is not None,
        cache=driver.get("cache", "") if driver is not None else "",
        backing=_backing(element),
    )


def _where(element: Element, source: Element | None) -> tuple[DiskKind, str]:
    for name, kind in _PATHS.items():
        path = source.get(name) if source is not None else None
        if path:
            return kind, path
    if element.get("type") in ("network", "nvme"):
        return DiskKind.NETWORK if element.get("type") == "network" else DiskKind.OTHER, ""
    return DiskKind.FILE if element.get("type", "file") == "file" else DiskKind.OTHER, ""


def _backing(element: Element) -> tuple[str, ...]:
    found: list[str] = []
    beneath = element.find("backingStore")
    while beneath is not None and beneath.get("type"):
        source = beneath.find("source")
        found += (path for name in _PATHS if source is not None and (path := source.get(name)))
        beneath = beneath.find("backingStore")
    return tuple(found)


def measured_disks(domain: Domain, daemon: LocalDaemon | None) -> tuple[Disk, ...]:
    """The disks of a running VM with their sizes, as libvirt says, and their identities. Blocks.

    :param daemon: the process of its host's daemon, where it runs on this machine.
    """
    return tuple(_measured(disk, domain, daemon) for disk in read_disks(parse(domain.xml())))


def _measured(disk: Disk, domain: Domain, daemon: LocalDaemon | None) -> Disk:
    if not disk.path:
        return disk
    identity = daemon.look_at(disk.path).identity if daemon else ""
    try:
        capacity, allocated = domain.block_sizes(disk.target)
    except LibvirtRefused:
        return replace(disk, identity=identity)
    return replace(disk, identity=identity, capacity_bytes=capacity, allocated_bytes=allocated)


def look_at_disks(
    connection: Connection, disks: tuple[Disk, ...], daemon: LocalDaemon | None
) -> dict[str, DiskAtHost]:
    """What the host of *connection* has at the paths of another host's disks, by their targets.
    Blocks, and changes nothing.

    A daemon of another machine knows the files of its storage pools alone.
    """
    found: dict[str, DiskAtHost] = {}
    for disk in disks:
        if not disk.path:
            continue
        if daemon is not None:
            found[disk.target] = daemon.look_at(disk.path)
        else:
            found[disk.target] = _in_pool(connection, disk)
    return found


def _in_pool(connection: Connection, disk: Disk) -> DiskAtHost:
    path = PurePosixPath(disk.path)
    try:
        pool = connection.pool_at(str(path.parent))
        if pool is None:
            return DISK_NOT_SEEN
        names, free_bytes = pool.look()
    except LibvirtRefused:
        return DISK_NOT_SEEN
    return DiskAtHost(path.name in names, folder=True, free_bytes=free_bytes)
