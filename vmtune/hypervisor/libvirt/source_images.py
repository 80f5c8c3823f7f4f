"""The source's images of a VM that has left with copies of them: removed by the volume API, where
nothing else of the host names them. All calls block.

What nobody can look at may name an image: then it stays.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import PurePosixPath
from uuid import UUID

from vmtune.errors import CommandRefused, NotFound
from vmtune.hypervisor.libvirt.calls.connection import Connection
from vmtune.hypervisor.libvirt.calls.pool import Pool
from vmtune.hypervisor.libvirt.domain_xml import parse
from vmtune.hypervisor.libvirt.errors import LibvirtRefused
from vmtune.hypervisor.libvirt.host import LocalDaemon
from vmtune.hypervisor.libvirt.images import DEVICES
from vmtune.hypervisor.libvirt.naming import find_user
from vmtune.hypervisor.libvirt.pools import folder_pool, forgotten_pools
from vmtune.model.migration.disks import CopiedDisk


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
        why = _is_another(pool, path.name, disk, daemon) or find_user(
            connection, vm, disk.path, daemon
        )
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
