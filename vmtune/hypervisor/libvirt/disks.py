"""A VM's disks, as its XML and libvirt say, and what another libvirt host has at their paths."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from uuid import UUID
from xml.etree.ElementTree import Element

from vmtune.errors import NotFound
from vmtune.hypervisor.libvirt.calls.connection import Connection
from vmtune.hypervisor.libvirt.calls.domain import Domain
from vmtune.hypervisor.libvirt.domain_xml import parse
from vmtune.hypervisor.libvirt.errors import LibvirtRefused
from vmtune.hypervisor.libvirt.file_names import Names, configurations
from vmtune.hypervisor.libvirt.host import LocalDaemon
from vmtune.hypervisor.linux.disk_file import may_enter
from vmtune.hypervisor.qemu.block_allowlist import LIBVIRT_COPY
from vmtune.model.host.disks import DISK_NOT_SEEN, Disk, DiskAtHost, DiskKind, Volume

_PATHS = {"file": DiskKind.FILE, "dev": DiskKind.BLOCK}
_VOLUMES = {"file": DiskKind.FILE, "block": DiskKind.BLOCK, "network": DiskKind.NETWORK}
"""Kinds of volumes, by libvirt's names."""


def read_disks(root: Element) -> tuple[Disk, ...]:
    """The disks of a domain's XML, which does not say where volumes of pools are."""
    return tuple(_disk(element) for element in root.findall("devices/disk"))


def disks_at(connection: Connection, root: Element) -> tuple[Disk, ...]:
    """The same, and where the host of *connection* has those that are volumes of its pools.
    Blocks."""
    return tuple(_with_path(connection, disk) for disk in read_disks(root))


def _with_path(connection: Connection, disk: Disk) -> Disk:
    if disk.volume is None:
        return disk
    kind, path = _find(connection, disk.volume) or (disk.kind, "")
    return replace(disk, kind=kind, path=path)


def _find(connection: Connection, volume: Volume) -> tuple[DiskKind, str] | None:
    """What kind of volume it is, and its path, empty for one that QEMU reaches by network; None
    where no active pool of that name has it. The pool is not looked through anew: one that is
    reached by network could hold all up."""
    try:
        pool = connection.pool_named(volume.pool)
        root = parse(pool.volume_xml(volume.name)) if pool is not None else None
    except (LibvirtRefused, NotFound):
        return None
    if root is None:
        return None
    kind = _VOLUMES.get(root.get("type", "file"), DiskKind.OTHER)
    here = kind in (DiskKind.FILE, DiskKind.BLOCK)
    return kind, (root.findtext("target/path") or "") if here else ""


def copy_jobs_of(domain: Domain, targets: Collection[str]) -> list[str]:
    """The names of the jobs by which libvirt copies some disks of a running VM. Blocks."""
    return copy_jobs(parse(domain.xml()), targets)


def copy_jobs(root: Element, targets: Collection[str]) -> list[str]:
    """The same by the domain's live XML: each is of the disk's alias."""
    found: list[str] = []
    for element in root.findall("devices/disk"):
        target, alias = element.find("target"), element.find("alias")
        if target is not None and alias is not None and target.get("dev") in targets:
            found.append(LIBVIRT_COPY + alias.get("name", ""))
    return found


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
        discard=driver.get("discard", "") if driver is not None else "",
        backing=_backing(element),
        encrypted=element.find("encryption") is not None
        or (source is not None and source.find("encryption") is not None),
        volume=_volume(element, source),
    )


def _volume(element: Element, source: Element | None) -> Volume | None:
    if element.get("type") != "volume" or source is None:
        return None
    return Volume(source.get("pool", ""), source.get("volume", ""))


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


def measured_disks(
    connection: Connection, domain: Domain, daemon: LocalDaemon | None
) -> tuple[Disk, ...]:
    """The disks of a running VM with their sizes, as libvirt says, and their identities. Blocks.

    :param daemon: the process of its host's daemon, where it runs on this machine.
    """
    disks = disks_at(connection, parse(domain.xml()))
    return tuple(_measured(disk, connection, domain, daemon) for disk in disks)


def _measured(
    disk: Disk, connection: Connection, domain: Domain, daemon: LocalDaemon | None
) -> Disk:
    if not disk.path:
        return disk
    if daemon is not None:
        identity = daemon.look_at(disk.path).identity
    else:
        identity = _in_pool(connection, disk.path).identity
    try:
        capacity, allocated = domain.block_sizes(disk.target)
    except LibvirtRefused:
        return replace(disk, identity=identity)
    return replace(disk, identity=identity, capacity_bytes=capacity, allocated_bytes=allocated)


def look_at_disks(
    connection: Connection, vm: UUID, disks: tuple[Disk, ...], daemon: LocalDaemon | None
) -> dict[str, DiskAtHost]:
    """What the host of *connection* has at the paths of another host's disks, by their targets.
    Blocks, and changes nothing.

    A daemon of another machine knows the files of its storage pools alone. Volumes are looked for
    in its own pools of the same names, as libvirt does when the VM arrives.

    :param vm: whose disks they are.
    """
    named = [disk for disk in disks if disk.where]
    if not named:
        return {}
    user = _user_of_qemus(connection)
    uses = _uses(connection, vm)

    def look(path: str) -> DiskAtHost:
        if daemon is not None:
            return daemon.look_at(path, user)
        return _in_pool(connection, path, user)

    found: dict[str, DiskAtHost] = {}
    for disk in named:
        path = disk.path
        if disk.volume is not None:
            there = _find(connection, disk.volume)
            if there is None:
                found[disk.target] = DiskAtHost(present=False)
            if there is None or not there[1]:
                continue
            path = there[1]
        at = look(path)
        if disk.volume is not None:
            at = replace(at, path=path)
        missing = tuple(path for path in disk.backing if look(path).present is False)
        used = _used(uses, Names(path, daemon))
        found[disk.target] = replace(
            at, backing_missing=missing, used_by=used.vm, in_use=used.running
        )
    return found


def _user_of_qemus(connection: Connection) -> tuple[int, int] | None:
    """The user and the group that libvirt starts QEMUs as, by its security model."""
    try:
        root = parse(connection.capabilities())
    except LibvirtRefused:
        return None
    for model in root.findall("host/secmodel"):
        if model.findtext("model") == "dac":
            label = model.findtext("baselabel[@type='kvm']") or model.findtext("baselabel") or ""
            uid, _, gid = label.partition(":")
            try:
                return int(uid), int(gid)
            except ValueError:
                return None
    return None


@dataclass(frozen=True, slots=True)
class _Use:
    """A path that a VM has as a disk, or beneath one.

    :param running: the VM runs, and may write to it.
    """

    vm: str = ""
    path: str = ""
    running: bool = False


def _uses(connection: Connection, vm: UUID) -> list[_Use]:
    """What the other VMs of the host have, now and at their next start; what runs comes first."""
    uses: list[_Use] = []
    for domain in connection.domains():
        try:
            status = domain.status()
            if status.uuid == vm or status.arriving:
                continue
            read = [disks_at(connection, parse(text)) for text in configurations(domain)]
        except (LibvirtRefused, NotFound):
            continue  # it has just gone
        for number, disk in ((n, disk) for n, disks in enumerate(read) for disk in disks):
            now = number == 0 and status.has_monitor
            writes = now and not (disk.read_only or disk.shareable)
            uses.append(_Use(status.name, disk.path, writes))
            uses += (_Use(status.name, path) for path in disk.backing)
    return sorted((use for use in uses if use.path), key=lambda use: not use.running)


def _used(uses: Sequence[_Use], names: Names) -> _Use:
    """By which VM a file is used, whatever it calls it."""
    return next((use for use in uses if names.has(use.path)), _Use())


def _in_pool(connection: Connection, path: str, user: tuple[int, int] | None = None) -> DiskAtHost:
    folder, name = PurePosixPath(path).parent, PurePosixPath(path).name
    try:
        pool = connection.pool_at(str(folder))
        if pool is None:
            return DISK_NOT_SEEN
        names, free_bytes = pool.look()
        root = parse(pool.xml())
        at = DiskAtHost(
            present=name in names,
            folder=True,
            free_bytes=free_bytes,
            file_system=root.findtext("uuid") or "",
            reachable=_may_enter(root.find("target/permissions"), user),
        )
        return _with_volume(at, root, parse(pool.volume_xml(name)), name) if at.present else at
    except (LibvirtRefused, NotFound):
        return DISK_NOT_SEEN


def _may_enter(permissions: Element | None, user: tuple[int, int] | None) -> bool | None:
    """As far as the pool's own folder goes."""
    if permissions is None or user is None:
        return None
    try:
        mode = int(permissions.findtext("mode", ""), 8)
        owner, group = (int(permissions.findtext(name, "")) for name in ("owner", "group"))
    except ValueError:
        return None
    return may_enter(mode, owner, group, user)


def _with_volume(at: DiskAtHost, pool: Element, volume: Element, name: str) -> DiskAtHost:
    form = volume.find("target/format")
    return replace(
        at,
        identity=_network_identity(pool, name),
        format=form.get("type", "") if form is not None else "",
        capacity_bytes=_bytes(volume, "capacity"),
        allocated_bytes=_bytes(volume, "allocation"),
    )


def _bytes(volume: Element, name: str) -> int | None:
    text = volume.findtext(name)
    return int(text) if text and text.isdigit() else None


def _network_identity(pool: Element, name: str) -> str:
    """Of a file on a server that libvirt itself has mounted; empty for others."""
    host, folder = pool.find("source/host"), pool.find("source/dir")
    if pool.get("type") != "netfs" or host is None or folder is None:
        return ""
    return f"netfs:{host.get('name', '')}:{folder.get('path', '')}/{name}"
