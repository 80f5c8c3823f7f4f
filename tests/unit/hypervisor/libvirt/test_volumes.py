"""Disks that a VM names by pool and volume: each host has its own there."""

from __future__ import annotations

from typing import Any, cast
from uuid import uuid4

import pytest

from tests.unit.hypervisor.libvirt.test_source_images import Machine
from vmtune.hypervisor.libvirt.calls.connection import Connection
from vmtune.hypervisor.libvirt.disks import disks_at, look_at_disks, read_disks
from vmtune.hypervisor.libvirt.domain_xml import parse
from vmtune.hypervisor.libvirt.errors import LibvirtRefused
from vmtune.hypervisor.libvirt.naming import find_user
from vmtune.model.host.disks import DISK_NOT_SEEN, Disk, DiskAtHost, DiskKind, Volume

DOMAIN = """<domain><devices><disk type='volume' device='disk'><driver name='qemu' type='raw'/>
<source pool='vg0' volume='web'/><target dev='vda'/></disk></devices></domain>"""
WEB = Volume("vg0", "web")


class Pool:
    name = "vg0"

    def __init__(self, **volumes: tuple[str, str]) -> None:
        self._volumes = volumes

    def volume_xml(self, name: str) -> str:
        if name not in self._volumes:
            raise LibvirtRefused(f"no storage vol with matching name '{name}'")
        kind, path = self._volumes[name]
        return f"<volume type='{kind}'><target><path>{path}</path></target></volume>"


class ByVolume(Machine):
    def xml(self, *flags: str) -> str:
        return DOMAIN


class Host:
    def __init__(self, pool: Pool | None, *machines: Machine) -> None:
        self._pool, self._machines = pool, machines

    def pool_named(self, name: str) -> Pool | None:
        return self._pool if name == "vg0" else None

    def pool_at(self, folder: str) -> None:
        return None

    def active_pools(self) -> list[Any]:
        return []

    def domains(self) -> list[Machine]:
        return list(self._machines)

    def capabilities(self) -> str:
        raise LibvirtRefused("it does not say")


def host(pool: Pool | None, *machines: Machine) -> Connection:
    return cast(Connection, Host(pool, *machines))


LOGICAL = Pool(web=("block", "/dev/vg0/web"))


@pytest.mark.parametrize(
    ("pool", "kind", "path"),
    [
        (LOGICAL, DiskKind.BLOCK, "/dev/vg0/web"),
        (Pool(web=("file", "/images/web")), DiskKind.FILE, "/images/web"),
        (Pool(web=("network", "rbd/web")), DiskKind.NETWORK, ""),
        (Pool(web=("ploop", "/ploops/web")), DiskKind.OTHER, ""),
        (Pool(), DiskKind.OTHER, ""),
        (None, DiskKind.OTHER, ""),
    ],
)
def test_it_is_where_its_host_has_it(pool: Pool | None, kind: DiskKind, path: str) -> None:
    (disk,) = disks_at(host(pool), parse(DOMAIN))
    assert (disk.volume, disk.kind, disk.path, disk.format) == (WEB, kind, path, "raw")
    assert disk.where == (path or "vg0/web")
    assert disk.is_copied, "it is no empty drive"
    assert read_disks(parse(DOMAIN))[0].path == ""


@pytest.mark.parametrize(
    ("pool", "seen"),
    [
        (LOGICAL, DiskAtHost(path="/dev/vg0/web")),
        (Pool(web=("file", "/elsewhere/web")), DiskAtHost(path="/elsewhere/web")),
        (Pool(web=("network", "rbd/web")), None),
        (Pool(), DiskAtHost(present=False)),
        (None, DiskAtHost(present=False)),
    ],
)
def test_another_host_is_asked_for_its_own(pool: Pool | None, seen: DiskAtHost | None) -> None:
    disk = Disk("vda", DiskKind.BLOCK, "/dev/vg0/web", volume=WEB)
    found = look_at_disks(host(pool), uuid4(), (disk,), None)
    assert found.get("vda") == seen


def test_a_unit_of_storage_that_is_named_elsewhere_may_be_another() -> None:
    unit = Disk("vda", DiskKind.BLOCK, f"/dev/disk/by-id/wwn-0x{'6' * 32}", volume=WEB)
    assert unit.names_unit
    assert DISK_NOT_SEEN.is_same(unit)
    assert DiskAtHost(path=unit.path).is_same(unit)
    assert DiskAtHost(path="/dev/vg0/web").is_same(unit) is None


def test_a_vm_that_names_a_file_by_its_volume_has_it() -> None:
    images = Pool(web=("file", "/images/web"))
    disk = Disk("vda", path="/images/web")
    at = look_at_disks(host(images, ByVolume("")), uuid4(), (disk,), None)["vda"]
    assert (at.used_by, at.in_use) == ("other", True)
    named = find_user(host(images, ByVolume("")), uuid4(), "/images/web", None)
    assert named == "the VM other names it"
    assert find_user(host(LOGICAL, ByVolume("")), uuid4(), "/images/web", None) == ""
