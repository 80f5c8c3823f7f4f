"""What of a host names an image: its VMs, and images that lie on it. All calls block.

What nobody can look at may name it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from uuid import UUID
from xml.etree.ElementTree import Element

from vmtune.errors import NotFound
from vmtune.hypervisor.libvirt.calls.connection import Connection
from vmtune.hypervisor.libvirt.calls.domain import Domain
from vmtune.hypervisor.libvirt.disks import disks_at
from vmtune.hypervisor.libvirt.domain_xml import parse
from vmtune.hypervisor.libvirt.errors import LibvirtRefused
from vmtune.hypervisor.libvirt.file_names import Names, configurations, named_by
from vmtune.hypervisor.libvirt.host import LocalDaemon
from vmtune.hypervisor.libvirt.pools import folder_pool, is_missing
from vmtune.model.host.disks import DiskKind

_LAYERED = ("dir", "fs", "netfs", "logical")
"""Kinds of pools whose volumes can lie on a file of the host. Others are reached by network: they
are not asked, since one that does not answer would hold all up."""


def find_user(connection: Connection, vm: UUID, path: str, daemon: LocalDaemon | None) -> str:
    """What else of the host than *vm* names the image at *path*; empty where nothing does. May
    make pools of vmtune's for *vm*.

    :param daemon: the host's, where it runs on this machine: it tells files apart that have
        several names.
    """
    names = Names(path, daemon)
    folders: set[PurePosixPath] = set()
    for domain in connection.domains():
        try:
            status = domain.status()
            if status.uuid == vm:
                continue
            if status.arriving:
                return f"the VM {status.name} is just arriving, and may have it"
            if any(names.has(each) for each in _named(connection, domain)):
                return f"the VM {status.name} names it"
            if not status.has_monitor:
                folders |= _folders(connection, domain)
        except NotFound:
            continue  # it has just gone
    return _beneath_another(connection, vm, names, folders)


def _named(connection: Connection, domain: Domain) -> Iterator[str]:
    """All that a VM names, by path or by pool and volume, now and at its next start."""
    yield from named_by(domain)
    for text in configurations(domain):
        yield from (disk.path for disk in disks_at(connection, parse(text)) if disk.volume)


def _folders(connection: Connection, domain: Domain) -> set[PurePosixPath]:
    """Of the images of a VM that does not run: libvirt has not looked at what they lie on."""
    disks = disks_at(connection, parse(domain.xml()))
    return {PurePosixPath(d.path).parent for d in disks if d.path and d.kind is DiskKind.FILE}


def _beneath_another(
    connection: Connection, vm: UUID, names: Names, folders: set[PurePosixPath]
) -> str:
    """Which image of the host's pools, and of *folders*, lies on it; empty where none does."""
    for folder in sorted(folders):
        try:
            folder_pool(connection, vm, folder)
        except LibvirtRefused as refusal:
            if not is_missing(refusal):  # else nobody has an image there
                return f"another VM has images in {folder}, and one may lie on it: {refusal}"
    for pool in connection.active_pools():
        if parse(pool.xml()).get("type") not in _LAYERED:
            continue
        volumes, _ = pool.look()
        for volume in sorted(volumes):
            root = parse(pool.volume_xml(volume))
            beneath = root.findtext("backingStore/path")
            if beneath and names.has(_within(root, beneath)):
                return f"{root.findtext('target/path') or volume} lies on it"
    return ""


def _within(volume: Element, beneath: str) -> str:
    """A backing file's path; a relative one is of the volume's folder."""
    return str(PurePosixPath(volume.findtext("target/path") or "/").parent / beneath)
