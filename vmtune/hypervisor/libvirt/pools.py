"""Storage pools of folders: those of the host's, and for the time of a migration vmtune's own. All
calls block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import PurePosixPath
from uuid import UUID
from xml.etree.ElementTree import Element, SubElement, tostring

from vmtune.hypervisor.libvirt.calls.connection import Connection
from vmtune.hypervisor.libvirt.calls.pool import Pool
from vmtune.hypervisor.libvirt.domain_xml import parse
from vmtune.hypervisor.libvirt.errors import LibvirtRefused

_SYSTEM_ERROR = 38
"""VIR_ERR_SYSTEM_ERROR of virterror.h."""


class PoolInactive(LibvirtRefused):
    """The folder has a pool that is not active, and libvirt takes no second one
    (virStoragePoolObjSourceFindDuplicate of src/conf/virstorageobj.c)."""

    def __init__(self, name: str, folder: PurePosixPath) -> None:
        super().__init__(
            f"the storage pool {name} of the folder {folder} is not active",
            code="copy_pool_inactive",
            remedy=f"start it there: virsh pool-start {name}",
        )


def folder_pool(connection: Connection, vm: UUID, folder: PurePosixPath) -> Pool:
    """The pool that is *folder*; one of vmtune's own for *vm* where there is none.

    :raise PoolInactive: the pool of that folder is not active.
    :raise LibvirtRefused: the folder cannot be used.
    """
    pool = connection.pool_at(str(folder))
    if pool is not None:
        return pool
    number = len(connection.pools_named(_prefix(vm)))
    root = Element("pool", type="dir")
    SubElement(root, "name").text = f"{_prefix(vm)}{number}"
    SubElement(SubElement(root, "target"), "path").text = str(folder)
    try:
        return connection.create_pool(tostring(root, encoding="unicode"))
    except LibvirtRefused as refusal:
        for sleeping in connection.inactive_pools():
            target = parse(sleeping.xml()).findtext("target/path")
            if target and PurePosixPath(target) == folder:
                raise PoolInactive(sleeping.name, folder) from refusal
        raise


def is_missing(refusal: LibvirtRefused) -> bool:
    """Whether libvirt refuses because there is no such folder, as far as its words show."""
    return refusal.number == _SYSTEM_ERROR and "No such file or directory" in refusal.message


def _prefix(vm: UUID) -> str:
    return f"vmtune-{vm}-"


def forget_pools(connection: Connection, vm: UUID) -> tuple[str, ...]:
    """Let libvirt forget the pools of vmtune's for *vm*. Harmless when repeated.

    :return: the names of those that it does not.
    """
    pools = connection.pools_named(_prefix(vm))
    for pool in pools:
        with suppress(LibvirtRefused):
            pool.deactivate()
    return tuple(pool.name for pool in connection.pools_named(_prefix(vm))) if pools else ()


@contextmanager
def forgotten_pools(connection: Connection, vm: UUID) -> Iterator[None]:
    """Have libvirt forget the pools of vmtune's for *vm* at the block's end."""
    try:
        yield
    finally:
        forget_pools(connection, vm)
