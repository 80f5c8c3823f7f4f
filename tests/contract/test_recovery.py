"""Post-copy that is interrupted and recovered: real QEMUs by their monitors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.qemus.qemu import Build, RunningQemu, builds, memory_to_send, running
from vmtune.errors import CommandRefused, TooLate
from vmtune.hypervisor.protocol import MigrateOrder, MigrationHandle
from vmtune.hypervisor.qmp.driver import QmpDriver
from vmtune.model.host.facts import VmState
from vmtune.model.migration.record import QemuStatus
from vmtune.model.plan.changes import Change

VM = uuid4()
SLOWLY = 32 << 10
"""Bytes a second: what is left of a guest's memory after the switch takes minutes."""


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while True:
            if await holds():
                return
            await asyncio.sleep(0.05)


class Pair:
    """A QEMU that migrates, the one it migrates to, and their drivers."""

    def __init__(self, here: RunningQemu, there: RunningQemu, base: Path) -> None:
        self.here, self.there = here, there
        self.source = QmpDriver(f"qmp+unix://{base}/a")
        self.destination = QmpDriver(f"qmp+unix://{base}/b")

    async def in_postcopy(self) -> MigrationHandle:
        values = {"postcopy": True, "max_postcopy_bandwidth_bytes_per_s": SLOWLY,
                  "max_bandwidth_bytes_per_s": SLOWLY}  # fmt: skip
        handle = await self.source.start_migration(
            MigrateOrder(VM, values, {}), self.destination)  # fmt: skip
        await self.until(QemuStatus.ACTIVE)
        await self.source.start_postcopy(VM)
        await self.until(QemuStatus.POSTCOPY_ACTIVE)

        async def arrived() -> bool:
            return await self.destination.vm_state(VM) is VmState.RUNNING

        await eventually(arrived)
        return handle

    async def until(self, status: QemuStatus) -> None:
        async def has_it() -> bool:
            return (await self.source.migration(VM)).status is status

        await eventually(has_it)

    async def at_full_speed(self) -> None:
        names = ("max_bandwidth_bytes_per_s", "max_postcopy_bandwidth_bytes_per_s")
        await self.source.write(VM, [Change(name, 0) for name in names])


@pytest.fixture(params=builds(), ids=lambda build: build.label)
async def pair(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Pair]:
    build: Build = request.param
    if build.why_not:
        pytest.skip(build.why_not)
    waits, memory = ("-incoming", "defer"), memory_to_send(tmp_path)
    with (
        running(build, tmp_path / "a", uuid=VM, extra=memory) as here,
        running(build, tmp_path / "b", uuid=VM, extra=(*waits, *memory)) as there,
    ):
        made = Pair(here, there, tmp_path)
        try:
            yield made
        finally:
            await made.source.close()
            await made.destination.close()


async def test_what_is_paused_is_recovered_as_often_as_needed(pair: Pair) -> None:
    handle = await pair.in_postcopy()
    for address in ("127.0.0.1", "127.0.0.1"):
        # An address given by name: the present connection is given up for it.
        await pair.source.recover_postcopy(VM, pair.destination, address, gives_up=True)
        assert (await pair.source.migration(VM)).status is QemuStatus.POSTCOPY_ACTIVE
    await pair.at_full_speed()
    async with asyncio.timeout(60):
        await handle.wait()
    assert await pair.destination.vm_state(VM) is VmState.RUNNING
    done = await pair.destination.migration(VM)
    assert done.status is QemuStatus.COMPLETED


async def test_what_is_not_paused_is_left_alone(pair: Pair) -> None:
    with pytest.raises(TooLate, match="not paused"):
        await pair.source.recover_postcopy(VM, pair.destination)
    await pair.in_postcopy()
    with pytest.raises(TooLate, match="postcopy-active"):
        # An address that the migration has of its own gives no connection up.
        await pair.source.recover_postcopy(VM, pair.destination, "127.0.0.1")
    assert (await pair.source.migration(VM)).status is QemuStatus.POSTCOPY_ACTIVE


async def test_a_refused_attempt_leaves_it_paused_and_another_one_recovers_it(
    pair: Pair,
) -> None:
    handle = await pair.in_postcopy()
    nobodys = "192.0.2.1"
    with pytest.raises(CommandRefused) as refused:
        await pair.source.recover_postcopy(VM, pair.destination, nobodys, gives_up=True)
    assert refused.value.problems[0].code == "cannot_listen"
    # The destination's main loop may wait for a page, and then answers nothing in band.
    assert (await pair.source.migration(VM)).status is QemuStatus.POSTCOPY_PAUSED
    await pair.source.recover_postcopy(VM, pair.destination)
    await pair.at_full_speed()
    async with asyncio.timeout(60):
        await handle.wait()
    assert await pair.destination.vm_state(VM) is VmState.RUNNING
