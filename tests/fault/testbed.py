"""What a fault happens to: a lab, one or two services, their database, a VM that migrates."""

from __future__ import annotations

import mmap
import os
import struct
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tests.fault.direct import DirectLive
from tests.support.hosts.live import Live, Service, add_hosts, lab_settings, wait_for
from tests.support.hosts.local_disks import own_file_systems
from tests.support.hosts.machines import live_machines
from tests.support.hosts.sharing import SharingService
from tests.support.stores.postgres import Postgres, new_database, postgres_server
from vmtune import lab
from vmtune.errors import LabError
from vmtune.storage import Store

_FULL_DISK_BYTES = 48 << 20
_IMAGES_BYTES = 192 << 20
_LONG = struct.Struct("l")


class Kind(StrEnum):
    """Where the records are, and who writes them."""

    SQLITE = "one service on SQLite"
    SMALL_DISK = "one service on SQLite on a small disk"
    POSTGRES = "one service on PostgreSQL"
    TWO = "two services on PostgreSQL"
    DIRECT = "one service on SQLite, without libvirt"
    DISKS = "one service on SQLite, machines without shared storage"
    DIRECT_DISKS = "one service on SQLite, without libvirt and shared storage"

    @property
    def copies(self) -> bool:
        """Disks are copied along."""
        return self in (Kind.DISKS, Kind.DIRECT_DISKS)


class ClockedService(Service):
    """A service whose wall clock can be set (clock.c), by a file."""

    def __init__(self, folder: Path) -> None:
        library = folder / "clock.so"
        source = Path(__file__).with_name("clock.c")
        command = ["gcc", "-shared", "-fPIC", "-O2", "-Wall", "-o", str(library), str(source)]
        subprocess.run(command, check=True, timeout=60)
        self._offset = folder / "clock.offset"
        self._offset.write_bytes(_LONG.pack(0))
        self._library = library
        super().__init__(folder)

    def spawn(self) -> subprocess.Popen[bytes]:
        """The process, with its own clock."""
        before = dict(os.environ)
        os.environ |= {
            "LD_PRELOAD": str(self._library),
            "VMTUNE_TEST_CLOCK": str(self._offset),
        }
        try:
            return super().spawn()
        finally:
            os.environ.clear()
            os.environ.update(before)

    def set_clock(self, by_s: int) -> None:
        """Set its clock to so many seconds off."""
        with self._offset.open("r+b") as file, mmap.mmap(file.fileno(), _LONG.size) as page:
            page[:] = _LONG.pack(by_s)


@dataclass
class FaultTestbed:
    """A lab with hosts a and b, and the services that drive them.

    :param live: of the first service.
    :param server: PostgreSQL, where there is one.
    """

    kind: Kind
    live: Live
    services: list[Service]
    database_url: str
    folder: Path
    server: Postgres | None = None

    @property
    def clocked(self) -> ClockedService:
        """The service whose clock can be set."""
        service = self.services[0]
        assert isinstance(service, ClockedService)
        return service

    def sharing(self, number: int) -> SharingService:
        """One of two services."""
        service = self.services[number]
        assert isinstance(service, SharingService)
        return service

    def revive(self) -> None:
        """Have all services run and the first drive both hosts, as before the first try."""
        for service in self.services:
            service.revive()
            wait_for(service.answers, "the service to answer")
        self.live.service = self.services[0]
        if self.kind is not Kind.TWO:
            return
        one = self.sharing(0)
        for host in "ab":
            if one.client.get(f"/hosts/{host}")["owner"] != one.name:
                one.client.put(f"/hosts/{host}/owner", {"service": one.name})
        wait_for(lambda: one.drives() == {"a", "b"}, "the first service to drive both hosts")

    def store(self) -> Store:
        """The records, past the service."""
        return Store.open(self.database_url)


@contextmanager
def testbed(kind: Kind, folder: Path, number: int) -> Iterator[FaultTestbed]:
    """A lab with addresses 10.*number*.0.0/24, and services on databases of their own; of machines
    the addresses are drawn."""
    if kind is Kind.DISKS:
        with live_machines() as live:
            own_file_systems(live, _IMAGES_BYTES, pool=False)
            at = live.service.folder
            yield FaultTestbed(kind, live, [live.service], f"sqlite:///{at}/vmtune.db", at)
        return
    settings = lab_settings(number)
    with ExitStack() as stack:
        made = _services(kind, folder, stack)
        stack.callback(lab.down, settings)
        status = lab.up(settings)
        for service in made.services:
            stack.callback(service.stop)
            service.start()
        if kind in (Kind.DIRECT, Kind.DIRECT_DISKS):
            live = DirectLive(settings, made.services[0], status, folder)
            live.add_hosts()
            if kind is Kind.DIRECT_DISKS:
                stack.enter_context(live.own_images(_IMAGES_BYTES))
            made.live = live
            yield made
            return
        made.live = Live(settings, made.services[0], status)
        add_hosts(made.live.client, status)
        yield made


def _services(kind: Kind, folder: Path, stack: ExitStack) -> FaultTestbed:
    """The testbed without its lab."""
    nothing: Live = None  # type: ignore[assignment] # set once the lab is up
    server = None
    services: list[Service]
    if kind in (Kind.SQLITE, Kind.SMALL_DISK, Kind.DIRECT, Kind.DIRECT_DISKS):
        if kind is Kind.SMALL_DISK:
            command = ["mount", "-t", "tmpfs", "-o", f"size={_FULL_DISK_BYTES}", "none"]
            subprocess.run([*command, str(folder)], check=True, timeout=10)
            stack.callback(subprocess.run, ["umount", "-l", str(folder)], check=True, timeout=10)
        services = [ClockedService(folder)]
        return FaultTestbed(kind, nothing, services, f"sqlite:///{folder}/vmtune.db", folder)
    server = stack.enter_context(postgres_server())
    url = stack.enter_context(new_database(server.url))
    names = ("one", "two") if kind is Kind.TWO else ("one",)
    services = [SharingService(folder / name, name, url) for name in names]
    return FaultTestbed(kind, nothing, services, url, folder, server)


def qemu_pid(live: Live, which: str, vm: lab.LabVm) -> int | None:
    """The pid of the VM's QEMU on a host; None where it has none."""
    if isinstance(live, DirectLive):
        return live.qemu_pid(which, vm)
    folder = live.settings.folder / which / "run" / "libvirt" / "qemu"
    try:
        pid = int((folder / f"{vm.name}.pid").read_text())
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return None
    return pid if vm.name.encode() in words else None


def states(live: Live, vm: lab.LabVm) -> dict[str, str]:
    """On which hosts the VM is, and how, once both answer."""

    def answer() -> bool:
        try:
            return lab.status(live.settings).running
        except LabError:
            return False

    if not isinstance(live, DirectLive):
        wait_for(answer, "both hosts to answer")
    return live.states(vm)
