"""Two real libvirt hosts with a driver each, and a persistent VM on the first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

import pytest

from tests.support.drivers.bench_libvirt import (
    MIB,
    WORKLOAD,
    hosts,
    remove_vm,
    running_lab,
    why_no_old_lab,
)
from tests.support.hosts.live import at_work, wait_for
from vmtune import lab
from vmtune.hypervisor.libvirt.driver import LibvirtDriver
from vmtune.hypervisor.protocol import MigrateOrder, MigrationHandle
from vmtune.lab import DiskSettings, LabSettings, VmSettings
from vmtune.model.migration.record import QemuStatus
from vmtune.model.tunables.tunable import Value

SLOW: dict[str, Value] = {"max_bandwidth_bytes_per_s": MIB}
NAME = "vmtune-persistent"


@dataclass
class Pair:
    settings: LabSettings
    vm: UUID
    source: LibvirtDriver
    destination: LibvirtDriver

    def xml(self, host: int, *flags: str) -> str:
        return lab.virsh(hosts(self.settings)[host].uri, "dumpxml", NAME, *flags)

    async def start(self, values: dict[str, Value], **announce: int) -> MigrationHandle:
        order = MigrateOrder(self.vm, values, announce)
        return await self.source.start_migration(order, self.destination)

    async def start_slow(self) -> MigrationHandle:
        """A migration that is active."""
        handle = await self.start(SLOW)

        async def active() -> bool:
            return (await self.source.migration(self.vm)).status is QemuStatus.ACTIVE

        await until(active)
        return handle


async def until(happens: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while True:
            if await happens():
                return
            await asyncio.sleep(0.02)


@asynccontextmanager
async def opened_pair(old: bool = False) -> AsyncIterator[Pair]:
    """:param old: with libvirt 9 and QEMU 7.2."""
    if old and (why_not := why_no_old_lab()):
        pytest.skip(why_not)
    settings = await asyncio.to_thread(running_lab, old)
    vm = VmSettings(
        name=NAME,
        memory_bytes=64 * MIB,
        workload=WORKLOAD,
        iothreads=1,
        # Two QEMUs of 7.2 do not share a disk that both may write.
        disks=(DiskSettings(queues=2, read_only=True), DiskSettings(read_only=True)),
    )
    try:
        started = await asyncio.to_thread(lab.define_vm, settings, vm)
        await asyncio.to_thread(wait_for, lambda: at_work(started), "the guest to write")
        a, b = hosts(settings)
        made = Pair(
            settings,
            UUID(started.uuid),
            LibvirtDriver(a.uri, peer_uri=a.peer_uri),
            LibvirtDriver(b.uri, peer_uri=b.peer_uri),
        )
        yield made
        await made.source.close()
        await made.destination.close()
    finally:
        await asyncio.to_thread(remove_vm, settings, NAME)
