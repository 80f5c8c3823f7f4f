"""Which of the source's images libvirt is asked to remove: by what its VMs and pools name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

from vmtune.errors import CommandRefused, NotFound
from vmtune.hypervisor.libvirt.calls.connection import Connection
from vmtune.hypervisor.libvirt.calls.domain import VmStatus
from vmtune.hypervisor.libvirt.errors import LibvirtRefused
from vmtune.hypervisor.libvirt.host import LocalDaemon
from vmtune.hypervisor.libvirt.source_images import remove
from vmtune.model.host.disks import DiskAtHost
from vmtune.model.host.facts import VmState
from vmtune.model.migration.disks import CopiedDisk

VM = uuid4()
DISK = CopiedDisk("vda", "/images/x.qcow2", created=True, format="qcow2")


class Machine:
    """A VM of the host.

    :param now: what it names; *next* at its next start.
    """

    def __init__(
        self, now: str, next: str = "", state: VmState = VmState.RUNNING, arriving: bool = False
    ) -> None:
        self._now, self._next = now, next or now
        self._status = VmStatus(uuid4(), "other", state, arriving)

    def status(self) -> VmStatus:
        return self._status

    def is_persistent(self) -> bool:
        return True

    def is_active(self) -> bool:
        return self._status.state is VmState.RUNNING

    def xml(self, *flags: str) -> str:
        path = self._next if flags else self._now
        return (
            "<domain><devices><disk type='file' device='disk'><source file='/some/top'/>"
            f"<backingStore type='file'><source file='{path}'/></backingStore>"
            "<target dev='vda'/></disk></devices></domain>"
        )


class Folder:
    """A pool: its files by their names, with what each lies on."""

    def __init__(self, path: str, files: dict[str, str], kind: str = "dir") -> None:
        self.path, self.files, self._kind = path, files, kind
        self.deleted: list[str] = []

    def xml(self) -> str:
        return f"<pool type='{self._kind}'/>"

    def look(self) -> tuple[frozenset[str], int]:
        assert self._kind != "rbd", "it does not answer"
        return frozenset(self.files), 0

    def volume_xml(self, name: str) -> str:
        beneath = self.files[name]
        lies = f"<backingStore><path>{beneath}</path></backingStore>" if beneath else ""
        return (
            f"<volume><target><path>{self.path}/{name}</path><format type='qcow2'/></target>"
            f"{lies}</volume>"
        )

    def delete(self, name: str) -> None:
        self.deleted.append(name)
        del self.files[name]


class Inactive:
    """A pool that is defined, and not active."""

    name = "archive"

    def __init__(self, path: str) -> None:
        self._path = path

    def xml(self) -> str:
        return f"<pool type='dir'><target><path>{self._path}</path></target></pool>"


class Host:
    """A libvirt's connection; no folder but those is one of images."""

    def __init__(
        self, *machines: Machine, more: Sequence[Folder] = (), here: Machine | None = None
    ) -> None:
        self.images = Folder("/images", {"x.qcow2": "", "base.qcow2": ""})
        self._machines, self._here = machines, here
        self._folders = [self.images, *more]
        self.made: list[str] = []
        self.refuses = "cannot open path '/some': No such file or directory"
        self.inactive: list[Inactive] = []

    def domain(self, vm: UUID) -> Machine:
        if self._here is None:
            raise NotFound("it has left")
        return self._here

    def domains(self) -> list[Machine]:
        return list(self._machines)

    def pool_at(self, folder: str) -> Folder | None:
        return next((each for each in self._folders if each.path == folder), None)

    def create_pool(self, xml: str) -> Folder:
        self.made.append(xml)
        raise LibvirtRefused(self.refuses, 38)

    def active_pools(self) -> list[Folder]:
        return self._folders

    def inactive_pools(self) -> list[Inactive]:
        return self.inactive

    def pools_named(self, prefix: str) -> list[Any]:
        return []


def tried(host: Host, disk: CopiedDisk = DISK, daemon: object = None) -> str:
    seen = cast(LocalDaemon | None, daemon)
    return remove(cast(Connection, host), VM, [disk], seen)[disk.target]


def test_an_image_that_nothing_else_names_is_removed_and_no_other() -> None:
    host = Host(Machine("/images/base.qcow2"), more=[Folder("away", {}, kind="rbd")])
    assert tried(host) == ""
    assert host.images.deleted == ["x.qcow2"]
    assert tried(host) == "", "harmless when repeated"


@pytest.mark.parametrize(
    ("host", "why"),
    [
        (Host(Machine(DISK.path)), "the VM other names it"),
        (Host(Machine("/y", next=DISK.path)), "the VM other names it"),
        (Host(Machine("/images/../images/x.qcow2")), "the VM other names it"),
        (Host(Machine(DISK.path, state=VmState.SHUT_OFF)), "the VM other names it"),
        (Host(Machine("/y", arriving=True)), "arriving"),
        (Host(more=[Folder("/more", {"top": DISK.path})]), "/more/top lies on it"),
        (Host(more=[Folder("/more", {"top": "../images/x.qcow2"})]), "/more/top lies on it"),
    ],
)
def test_one_that_something_names_stays(host: Host, why: str) -> None:
    stays = tried(host)
    assert why in stays
    assert host.images.deleted == []


def test_the_folders_of_vms_that_do_not_run_are_looked_into() -> None:
    """libvirt says only of running ones what their images lie on."""
    host = Host(Machine("/y", state=VmState.SHUT_OFF))
    assert tried(host) == ""
    assert any("/some" in xml for xml in host.made)


def test_an_image_stays_where_nobody_can_look_into_such_a_folder() -> None:
    """libvirt takes no second pool of a folder, be its own active or not."""
    host = Host(Machine("/y", state=VmState.SHUT_OFF))
    host.refuses = "Storage source conflict with pool: 'archive'"
    host.inactive = [Inactive("/other"), Inactive("/some")]
    stays = tried(host)
    assert "pool archive of the folder /some is not active" in stays
    assert "virsh pool-start archive" in stays
    host.inactive = []
    assert "Storage source conflict" in tried(host)
    assert host.images.deleted == []


@pytest.mark.parametrize("state", [VmState.RUNNING, VmState.SHUT_OFF])
def test_nothing_is_removed_where_the_vm_is_still_here(state: VmState) -> None:
    host = Host(here=Machine(DISK.path, state=state))
    with pytest.raises(CommandRefused, match="still"):
        tried(host)
    assert host.images.deleted == []


class Daemon:
    """Says which file a path is of."""

    def __init__(self, **files: str) -> None:
        self._files = {f"/images/{name}": identity for name, identity in files.items()}

    def look_at(self, path: str, user: object = None) -> DiskAtHost:
        return DiskAtHost(identity=self.identity_at(path))

    def identity_at(self, path: str) -> str:
        return self._files.get(path, "")


def test_another_file_of_that_name_stays_and_so_does_one_of_two_names() -> None:
    disk = CopiedDisk("vda", "/images/x", created=True, identity="device:1")
    host = Host(Machine("/images/name2"))
    host.images.files["x"] = ""
    assert "another file" in tried(host, disk, Daemon(x="device:2"))
    assert "names it" in tried(host, disk, Daemon(x="device:1", name2="device:1"))
    assert tried(host, CopiedDisk("vda", "/images/x", format="raw")).startswith("it is of the form")
    assert tried(host, CopiedDisk("vda", "/dev/vg/x")) == "it is a device"
    assert "No such file" in tried(host, CopiedDisk("vda", "/gone/x"))
    assert host.images.deleted == []
