"""The libvirt driver on the contract suite's bench: two real daemons, a transient VM."""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from uuid import UUID

from tests.support.drivers.benches import Bench, BenchKind
from tests.support.hosts.live import at_work, wait_for, why_no_lab
from vmtune import lab
from vmtune.errors import LabError, VmtuneError
from vmtune.hypervisor.libvirt.driver import LibvirtDriver
from vmtune.lab import DiskSettings, LabSettings, VmSettings
from vmtune.model.versions import Version
from vmtune.model.workload import Workload

MIB = 1 << 20
# Nothing packs it, and it is written anew every second: a slow migration does not end by itself,
# one that is not held does.
WORKLOAD = Workload(region_bytes=32 * MIB, random_percent=100, idle_ms=1000)
VM = VmSettings(
    name="vmtune-contract",
    memory_bytes=64 * MIB,
    workload=WORKLOAD,
    iothreads=2,
    disks=(DiskSettings(queues=4),),
)
_RUN = Path("/run")
_PREFIX = "vmtune-t"
_CACHE = Path(__file__).parents[3] / ".cache"
_OLD_LIBVIRT = _CACHE / "libvirt-9"
_OLD_QEMU = _CACHE / "qemu-7.2/qemu-system-x86_64"


def why_no_old_lab() -> str:
    """The same for hosts with libvirt 9 and QEMU 7.2."""
    if not (_OLD_LIBVIRT / ".complete").exists():
        return "no libvirt 9 is unpacked: `vmtune/lab/bootstrap.sh --tests` does, on Debian 12"
    return why_no_lab()


def _settings(tag: str, old: bool) -> LabSettings:
    settings = LabSettings(
        name_a=f"{_PREFIX}{tag}-a",
        name_b=f"{_PREFIX}{tag}-b",
        address_a="10.96.0.1/24",
        address_b="10.96.0.2/24",
        folder=_RUN / f"{_PREFIX}{tag}",
    )
    return replace(settings, libvirt_root=_OLD_LIBVIRT, qemu=_OLD_QEMU) if old else settings


def running_lab(old: bool = False) -> LabSettings:
    """The two hosts of this test run, up until the process ends. What a killed run left
    behind is taken down first.

    :param old: with libvirt 9 and QEMU 7.2.
    """
    settings = _settings(f"{os.getpid()}{'o' if old else ''}", old)
    if not settings.folder.exists():
        for left in _RUN.glob(f"{_PREFIX}[0-9]*"):
            tag = left.name.removeprefix(_PREFIX)
            if not Path("/proc", tag.removesuffix("o")).exists():
                lab.down(_settings(tag, tag.endswith("o")))
        lab.up(settings)
        atexit.register(lab.down, settings)
    return settings


def hosts(settings: LabSettings) -> tuple[lab.HostStatus, lab.HostStatus]:
    """Host a and host b."""
    first, second = lab.status(settings).hosts
    return first, second


def remove_vm(settings: LabSettings, name: str) -> None:
    """Wherever it is, and whatever it is."""
    for host in hosts(settings):
        for command in ("destroy", "undefine"):
            with suppress(LabError):
                lab.virsh(host.uri, command, name)


class LibvirtBench(Bench):
    source: LibvirtDriver
    destination: LibvirtDriver

    def __init__(self, settings: LabSettings, version: Version) -> None:
        a, b = hosts(settings)
        started = lab.define_vm(settings, VM)
        wait_for(lambda: at_work(started), "the guest to write")
        # Transient, so that it is gone when its QEMU is, as with a bare monitor.
        lab.virsh(a.uri, "undefine", VM.name)
        self.vm, self.name, self.qemu = UUID(started.uuid), VM.name, version
        self.source = LibvirtDriver(a.uri, peer_uri=a.peer_uri)
        self.destination = LibvirtDriver(b.uri, peer_uri=b.peer_uri)

    async def open_destination(self) -> None:
        pass

    async def kill(self) -> None:
        await _kill_qemu(self.source, self.vm)

    async def take_monitor(self) -> Callable[[], None] | None:
        return None

    async def kill_destination(self) -> None:
        await _kill_qemu(self.destination, self.vm)


async def _kill_qemu(driver: LibvirtDriver, vm: UUID) -> None:
    """Kill a VM's QEMU as soon as there is one."""
    async with asyncio.timeout(60):
        while True:
            with suppress(VmtuneError):
                pid = (await driver.vm_facts(vm)).pid
                if pid is not None:
                    os.kill(pid, signal.SIGKILL)
                    return
            await asyncio.sleep(0.05)


@asynccontextmanager
async def open_bench(folder: Path) -> AsyncIterator[Bench]:
    settings = await asyncio.to_thread(running_lab)
    version = await asyncio.to_thread(_version, settings.qemu)
    try:
        bench = await asyncio.to_thread(LibvirtBench, settings, version)
        yield bench
        await bench.source.close()
        await bench.destination.close()
    finally:
        await asyncio.to_thread(remove_vm, settings, VM.name)


def _version(qemu: Path) -> Version:
    done = subprocess.run([qemu, "--version"], capture_output=True, text=True, check=True)
    return Version.parse(done.stdout.split()[3])


def kinds() -> list[BenchKind]:
    return [BenchKind("libvirt", open_bench, why_no_lab())]
