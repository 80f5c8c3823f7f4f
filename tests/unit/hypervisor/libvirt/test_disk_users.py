"""Which other VM of a host has a file, by whatever name."""

from __future__ import annotations

from typing import cast
from uuid import uuid4

import pytest

from tests.unit.hypervisor.libvirt.test_source_images import Daemon, Machine
from vmtune.hypervisor.libvirt.calls.connection import Connection
from vmtune.hypervisor.libvirt.disks import look_at_disks
from vmtune.hypervisor.libvirt.errors import LibvirtRefused
from vmtune.hypervisor.libvirt.host import LocalDaemon
from vmtune.model.host.disks import Disk
from vmtune.model.host.facts import VmState

DISK = Disk("vda", path="/images/x")
LINKED = Daemon(x="device:1", link="device:1", other="device:2")


class Tops(Machine):
    """A VM whose disks lie on nothing."""

    def xml(self, *flags: str) -> str:
        path = self._next if flags else self._now
        return (
            f"<domain><devices><disk type='file' device='disk'><source file='{path}'/>"
            "<target dev='vda'/></disk></devices></domain>"
        )


class Host:
    def __init__(self, *machines: Machine) -> None:
        self._machines = machines

    def domains(self) -> list[Machine]:
        return list(self._machines)

    def capabilities(self) -> str:
        raise LibvirtRefused("it does not say")

    def pool_at(self, folder: str) -> None:
        return None


@pytest.mark.parametrize(
    ("machine", "daemon", "used", "running"),
    [
        (Tops("/images/x"), None, True, True),
        (Tops("/images/../images/x"), None, True, True),
        (Tops("/images/link"), LINKED, True, True),
        (Tops("/images/other"), LINKED, False, False),
        (Tops("/images/link"), None, False, False),
        (Tops("/y", next="/images/x"), None, True, False),
        (Tops("/y", next="/images/link"), LINKED, True, False),
        (Tops("/images/x", state=VmState.SHUT_OFF), None, True, False),
        (Machine("/images/x"), None, True, False),
    ],
)
def test_a_file_is_found_with_whoever_has_it(
    machine: Machine, daemon: Daemon | None, used: bool, running: bool
) -> None:
    host, seen = cast(Connection, Host(machine)), cast(LocalDaemon | None, daemon)
    at = look_at_disks(host, uuid4(), (DISK,), seen)["vda"]
    assert (at.used_by, at.in_use) == ("other" if used else "", running)


def test_one_that_runs_with_it_comes_first() -> None:
    host = cast(Connection, Host(Tops("/y", next="/images/x"), Tops("/images/x")))
    assert look_at_disks(host, uuid4(), (DISK,), None)["vda"].in_use
