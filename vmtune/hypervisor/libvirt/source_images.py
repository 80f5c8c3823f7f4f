"""The source's images of a VM that has left with copies of them: removed by the volume API, where
nothing else of the host names them. All calls block.

What nobody can look at may name an image: then it stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from posixpath import normpath
from uuid import UUID
from xml.etree.ElementTree import Element

from vmtune.errors import CommandRefused, NotFound
from vmtune.hypervisor.libvirt.calls import Connection, Domain, Pool
from vmtune.hypervisor.libvirt.disks import read_disks
from vmtune.hypervisor.libvirt.domain_xml import parse
from vmtune.hypervisor.libvirt.errors import LibvirtRefused
from vmtune.hypervisor.libvirt.host import LocalDaemon
from vmtune.hypervisor.libvirt.images import DEVICES, folder_pool, forgotten_pools
from vmtune.model.host.disks import DiskKind
from vmtune.model.migration.disks import CopiedDisk

_NAMING = ("file", "dev", "path", "dir")
_LAYERED = ("dir", "fs", "netfs", "logical")
"""Kinds of pools whose volumes can lie on a file of the host. Others are reached by network: they
are not asked, since one that does not answer would hold all up."""
_OFFLINE = "VIR_DOMAIN_XML_INACTIVE"


def remove(
    connection: Connection, vm: UUID, disks: Collection[CopiedDisk], daemon: LocalDaemon | None
) -> dict[str, str]:
    """Remove images of a VM that has left this host.

    :param daemon: the host's, where it runs on this machine: it tells files apart that have
        several names.
    :return: by their targets why images stay; empty for those that are gone.
    :raise CommandRefused: the VM is still here; nothing was removed.
    """
    _refuse_if_here(connection, vm)
    with forgotten_pools(connection, vm):
        return {disk.target: _removed(connection, vm, disk, daemon) for disk in disks}


def _refuse_if_here(connection: Connection, vm: UUID) -> None:
    try:
        active = connection.domain(vm).is_active()
    except NotFound:
        return
    raise CommandRefused(
        "the VM still runs here" if active else "the VM is still defined here",
        field="vm",
        code="images_in_use",
        remedy="look at where the VM is",
    )


def _removed(connection: Connection, vm: UUID, disk: CopiedDisk, daemon: LocalDaemon | None) -> str:
    path = PurePosixPath(disk.path)
    if path.is_relative_to(DEVICES):
        return "it is a device"
    try:
        pool = folder_pool(connection, vm, path.parent)
        names, _ = pool.look()
        if path.name not in names:
            return ""
        why = _is_another(pool, path.name, disk, daemon) or _named(connection, vm, disk, daemon)
        if why:
            return why
        pool.delete(path.name)
    except LibvirtRefused as refusal:
        return refusal.message
    return ""


def _is_another(pool: Pool, name: str, disk: CopiedDisk, daemon: LocalDaemon | None) -> str:
    """Why it is not the image that was copied; empty where nothing says so."""
    form = parse(pool.volume_xml(name)).find("target/format")
    now = daemon.look_at(disk.path).identity if daemon is not None else ""
    if now and disk.identity and now != disk.identity:
        return "it is another file by now"
    if disk.format and form is not None and form.get("type") != disk.format:
        return f"it is of the format {form.get('type')} by now"
    return ""


@dataclass
class _Names:
    """The names of one file: its path, and where files can be told apart, which it is."""

    path: str
    daemon: LocalDaemon | None
    identity: str = field(init=False, default="")

    def __post_init__(self) -> None:
        self.identity = self._identity(self.path)

    def _identity(self, path: str) -> str:
        return self.daemon.look_at(path).identity if self.daemon is not None else ""

    def has(self, path: str) -> bool:
        """Whether *path* is one of them."""
        if normpath(path) == normpath(self.path):
            return True
        return bool(self.identity) and self._identity(path) == self.identity


def _named(connection: Connection, vm: UUID, disk: CopiedDisk, daemon: LocalDaemon | None) -> str:
    """What else of the host names the image; empty where nothing does."""
    names = _Names(disk.path, daemon)
    folders: set[PurePosixPath] = set()
    for domain in connection.domains():
        try:
            status = domain.status()
            if status.arriving:
                return f"the VM {status.name} is just arriving, and may have it"
            if any(names.has(path) for path in _paths(domain)):
                return f"the VM {status.name} names it"
            if not status.has_monitor:
                folders |= _folders(domain)
        except NotFound:
            continue  # it has just gone
    return _beneath_another(connection, vm, names, folders)


def _folders(domain: Domain) -> set[PurePosixPath]:
    """Of the images of a VM that does not run: libvirt has not looked at what they lie on."""
    disks = read_disks(parse(domain.xml()))
    return {PurePosixPath(d.path).parent for d in disks if d.path and d.kind is DiskKind.FILE}


def _beneath_another(
    connection: Connection, vm: UUID, names: _Names, folders: set[PurePosixPath]
) -> str:
    """Which image of the host's pools, and of *folders*, lies on it; empty where none does."""
    for folder in folders:
        with suppress(LibvirtRefused):  # then nobody has an image there
            folder_pool(connection, vm, folder)
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


def _paths(domain: Domain) -> Iterator[str]:
    """All that a VM names of the host, running and at its next start."""
    texts = [domain.xml()]
    if domain.is_persistent():
        texts.append(domain.xml(_OFFLINE))
    for text in texts:
        for element in parse(text).iter():
            yield from (value for name in _NAMING if (value := element.get(name, "")))
            if (element.text or "").strip().startswith("/"):
                yield (element.text or "").strip()
