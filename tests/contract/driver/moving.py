"""Starts and follows migrations of a bench, whatever driver is behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from uuid import UUID

from tests.support.drivers.benches import Bench
from vmtune.errors import NotFound
from vmtune.hypervisor.protocol import Driver, DriverEvent, MigrateOrder, MigrationHandle
from vmtune.model.host.facts import VmState
from vmtune.model.migration.record import QemuStatus, Totals
from vmtune.model.tunables.tunable import Value

NOBODY = UUID("00000000-0000-4000-8000-000000000001")


async def until(happens: Callable[[], Awaitable[bool]]) -> None:
    """Look again and again, so that no test waits longer than it has to."""
    async with asyncio.timeout(60):
        while True:
            if await happens():
                return
            await asyncio.sleep(0.01)


async def start(bench: Bench, values: dict[str, Value] | None = None) -> MigrationHandle:
    """A migration that is active and slow."""
    await bench.open_destination()
    order = MigrateOrder(bench.vm, {**(values or {}), **bench.slow}, {})
    handle = await bench.source.start_migration(order, bench.destination)

    async def has_begun() -> bool:
        # Before libvirt hands it to QEMU, that tells of none, or of the one before.
        status = (await bench.source.migration(bench.vm)).status
        return status.running and status is not QemuStatus.SETUP

    await until(has_begun)
    return handle


async def until_at_rest(driver: Driver, vm: UUID) -> None:
    """Until the VM has arrived, running or paused."""

    async def arrived() -> bool:
        return await driver.vm_state(vm) in (VmState.RUNNING, VmState.PAUSED)

    await until(arrived)


async def settled(bench: Bench) -> None:
    """Until the VM runs on the destination; its QEMU takes a moment after the source's."""

    async def runs_there() -> bool:
        states = {vm.uuid: vm.state for vm in await bench.destination.list_vms()}
        return states.get(bench.vm) is VmState.RUNNING

    await until(runs_there)


async def last_totals(bench: Bench) -> Totals:
    """The figures, from whoever has them: the source as long as it is there."""
    try:
        snapshot = await bench.source.migration(bench.vm)
        totals = snapshot.totals
    except NotFound:
        totals = None
    totals = totals or await bench.destination.completed(bench.vm)
    assert totals is not None
    return totals


async def everything(bench: Bench, events: AsyncIterator[DriverEvent]) -> list[DriverEvent]:
    """What was heard until the driver was closed."""
    await bench.source.close()
    return [event async for event in events]
