"""Watching a migration: when it is over, and when it is not yet."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any
from uuid import uuid4

from vmtune.engine.watch import watch
from vmtune.errors import CommandRefused
from vmtune.hypervisor.protocol import DriverEvent
from vmtune.model.migration.record import QemuStatus, Snapshot


class Handle:
    """A migration that ends when the test says so."""

    def __init__(self) -> None:
        self.end = asyncio.Event()

    @property
    def done(self) -> bool:
        return self.end.is_set()

    async def wait(self) -> None:
        await self.end.wait()
        raise CommandRefused("cancelled")


class Cancelled:
    """A driver whose QEMU says that the migration is cancelled."""

    asked = 0

    async def migration(self, *_: Any) -> Snapshot:
        self.asked += 1
        return Snapshot(QemuStatus.CANCELLED)

    async def events(self) -> AsyncGenerator[DriverEvent, None]:
        await asyncio.Event().wait()
        yield DriverEvent  # type: ignore[misc] # never reached: it makes this a generator


async def test_it_is_over_when_the_starter_has_put_back_what_it_set() -> None:
    """libvirt restores parameters after QEMU has said cancelled, over whatever is set then."""
    driver, handle, seen = Cancelled(), Handle(), list[Snapshot]()

    async def on_snapshot(snapshot: Snapshot) -> None:
        seen.append(snapshot)

    watching = asyncio.ensure_future(
        watch(driver, uuid4(), 200, on_snapshot, handle)  # type: ignore[arg-type] # what it needs
    )
    while driver.asked < 5:  # noqa: ASYNC110 - a stub has no event for it
        await asyncio.sleep(0.005)
    assert not watching.done()
    handle.end.set()
    end = await watching
    assert end.snapshot == Snapshot(QemuStatus.CANCELLED)
    assert len(seen) == 1
