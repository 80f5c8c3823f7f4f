"""Which files are taken for images that vmtune has just created, by what libvirt says of them."""

from __future__ import annotations

from dataclasses import replace
from threading import Barrier
from typing import cast
from uuid import UUID, uuid4

import pytest

from tests.unit.hypervisor.libvirt.test_source_images import Machine
from vmtune.errors import CommandRefused, NotFound
from vmtune.hypervisor.leftovers import ImagesLeft
from vmtune.hypervisor.libvirt.calls.connection import Connection
from vmtune.hypervisor.libvirt.domain_xml import parse
from vmtune.hypervisor.libvirt.errors import LibvirtRefused
from vmtune.hypervisor.libvirt.images import is_fresh, make_ready, remove_images
from vmtune.model.host.disks import Qcow2
from vmtune.model.migration.disks import CopiedDisk, fresh_qcow2_bytes

RAW = CopiedDisk("vda", "/x", intended=True, format="raw", total_bytes=1 << 30)
QCOW2 = CopiedDisk("vda", "/x", intended=True, format="qcow2", total_bytes=1 << 30)
FRESH = fresh_qcow2_bytes(1 << 30)
OVERLAY = "<backingStore><path>/base</path></backingStore>"


def volume(
    format: str, capacity: int = 1 << 30, allocation: int = 0, physical: int = 0, more: str = ""
) -> str:
    return (
        f"<volume type='file'><name>x</name><capacity unit='bytes'>{capacity}</capacity>"
        f"<allocation unit='bytes'>{allocation}</allocation>"
        f"<physical unit='bytes'>{physical}</physical>"
        f"<target><format type='{format}'/></target>{more}</volume>"
    )


@pytest.mark.parametrize(
    ("xml", "disk", "fresh"),
    [
        (volume("raw"), RAW, True),
        (volume("raw", allocation=4096), RAW, False),
        (volume("raw", capacity=10), RAW, False),
        (volume("raw"), QCOW2, False),
        (volume("qcow2", allocation=200704, physical=FRESH), QCOW2, True),
        (volume("qcow2", physical=FRESH + 65536), QCOW2, False),
        (volume("qcow2", capacity=1 << 29, physical=FRESH), QCOW2, False),
        (volume("qcow2", physical=FRESH, more=OVERLAY), QCOW2, False),
        (volume("qcow2", physical=FRESH), RAW, False),
        (volume("raw"), CopiedDisk("vda", "/x", intended=True), False),
    ],
)
def test_only_an_empty_image_of_that_format_and_size_is_fresh(
    xml: str, disk: CopiedDisk, fresh: bool
) -> None:
    assert is_fresh(xml, disk) is fresh


def test_a_fresh_qcow2_is_as_long_as_qemu_img_makes_it() -> None:
    assert fresh_qcow2_bytes(64 << 20) == 196616
    assert fresh_qcow2_bytes(3 << 40) == 245760
    assert fresh_qcow2_bytes(64 << 20, Qcow2(1 << 20)) == (3 << 20) + 8
    assert fresh_qcow2_bytes(64 << 20, Qcow2(128 << 10, extended_l2=True)) == (384 << 10) + 8


class Folder:
    """A storage pool, and what was created in it.

    :param together: images that are created at the same moment, or it fails.
    :param refuses: the name of one that is not created.
    :param keeps: nothing is deleted.
    """

    def __init__(
        self, *there: str, together: int = 1, refuses: str = "", keeps: bool = False
    ) -> None:
        self.names = set(there)
        self._barrier = Barrier(together)
        self._refuses, self._keeps = refuses, keeps
        self.asked: list[str] = []

    def look(self) -> tuple[frozenset[str], int]:
        return frozenset(self.names), 1 << 40

    def create(self, xml: str) -> None:
        self._barrier.wait(20)
        name = parse(xml).findtext("name") or ""
        if name == self._refuses:
            raise LibvirtRefused("no space left")
        self.names.add(name)
        self.asked.append(xml)

    def delete(self, name: str) -> None:
        if self._keeps:
            raise LibvirtRefused("permission denied")
        self.names.remove(name)

    def xml(self) -> str:
        return "<pool type='dir'><target><path>/i</path></target></pool>"

    name = "archive"

    def volume_xml(self, name: str) -> str:
        return volume("raw")


class Libvirt:
    """One that has a pool at /i, and no VM.

    :param active: whether that pool is.
    :param domains: VMs that are not migrated.
    """

    def __init__(self, folder: Folder, *domains: Machine, active: bool = True) -> None:
        self._folder, self._domains, self._active = folder, domains, active

    def pool_at(self, path: str) -> Folder | None:
        assert path == "/i"
        return self._folder if self._active else None

    def create_pool(self, xml: str) -> None:
        raise LibvirtRefused("Storage source conflict with pool: 'archive'", 9)

    def inactive_pools(self) -> list[Folder]:
        return [] if self._active else [self._folder]

    def active_pools(self) -> list[Folder]:
        return [self._folder]

    def domains(self) -> list[Machine]:
        return list(self._domains)

    def pools_named(self, prefix: str) -> list[Folder]:
        return []

    def domain(self, vm: UUID) -> None:
        raise NotFound("no such VM")


TWO = tuple(replace(QCOW2, target=name, path=f"/i/{name}") for name in ("vda", "vdb"))


def make(folder: Folder, *disks: CopiedDisk) -> tuple[CopiedDisk, ...]:
    return make_ready(cast(Connection, Libvirt(folder)), uuid4(), disks, incremental=False)


def test_images_are_created_at_the_same_time() -> None:
    folder = Folder(together=2)
    device = replace(RAW, target="vdc", path="/dev/x")
    made = make(folder, *TWO, device)
    assert [disk.target for disk in made] == ["vda", "vdb", "vdc"]
    assert [disk.created for disk in made] == [True, True, False]
    assert folder.names == {"vda", "vdb"}


@pytest.mark.parametrize("refuses", ["vda", "vdb"])
def test_where_one_cannot_be_created_the_others_are_removed(refuses: str) -> None:
    folder = Folder("another", together=2, refuses=refuses)
    with pytest.raises(CommandRefused, match="no space left"):
        make(folder, *TWO)
    assert folder.names == {"another"}


def test_what_was_made_and_stays_is_told() -> None:
    """It is recorded, and tried again."""
    folder = Folder(together=2, refuses="vdb", keeps=True)
    with pytest.raises(ImagesLeft, match="no space left") as refused:
        make(folder, *TWO)
    assert [(disk.path, disk.created) for disk in refused.value.left] == [("/i/vda", True)]
    assert refused.value.problems[0].code == "copy_not_created"


def test_what_libvirt_creates_itself_is_not_said_to_be_made() -> None:
    """Somebody else may create it before: it is removed only where it is empty."""
    folder = Folder()
    (made,) = make(folder, replace(TWO[0], format="vmdk"))
    assert (made.created, made.intended) == (False, True)
    assert folder.asked == []


def test_an_empty_image_that_another_vm_names_is_not_removed() -> None:
    """An operator may have created it for that one."""
    disk = replace(RAW, path="/i/x")
    for machines, gone in (((Machine("/i/x"),), ()), ((Machine("/y"),), ("/i/x",))):
        folder = Folder("x")
        found = remove_images(cast(Connection, Libvirt(folder, *machines)), uuid4(), [disk])
        assert (found, folder.names) == (gone, set() if gone else {"x"})


def test_the_pool_of_the_folder_may_have_to_be_started() -> None:
    libvirt = Libvirt(Folder(), active=False)
    with pytest.raises(CommandRefused, match="pool archive of the folder /i") as refused:
        make_ready(cast(Connection, libvirt), uuid4(), [TWO[0]], incremental=False)
    (problem,) = refused.value.problems
    assert (problem.code, problem.field) == ("copy_pool_inactive", "values.copy_storage")
    assert "virsh pool-start archive" in problem.remedy


def test_nothing_is_created_where_one_exists() -> None:
    folder = Folder("vdb")
    with pytest.raises(CommandRefused, match="has a file /i/vdb already"):
        make(folder, *TWO)
    assert folder.names == {"vdb"}


@pytest.mark.parametrize(
    ("made", "options"),
    [
        (None, {"clusterSize": "65536"}),
        (Qcow2(1 << 20, lazy_refcounts=True), {"clusterSize": "1048576", "lazy_refcounts": None}),
        (Qcow2(128 << 10, extended_l2=True), {"clusterSize": "131072", "extended_l2": None}),
        (Qcow2(compat="0.10"), {"clusterSize": "65536", "compat": "0.10"}),
    ],
)
def test_a_qcow2_is_made_as_the_sources_was(
    made: Qcow2 | None, options: dict[str, str | None]
) -> None:
    folder = Folder()
    make(folder, replace(TWO[0], qcow2=made))
    target = parse(folder.asked[0]).find("target")
    assert target is not None
    always = {"target", "format", "features"}
    found = {each.tag: each.text for each in target.iter() if each.tag not in always}
    assert found == {"compat": "1.1", **options}
