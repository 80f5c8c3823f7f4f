"""Watching a migration: when it is over, and when it is not yet."""

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import Any
from uuid import uuid4

import pytest

from vmtune.engine import watch as watching_module
from vmtune.engine.watch import watch
from vmtune.errors import CommandRefused, HostUnreachable, MonitorBusy, OutcomeUnknown, VmtuneError
from vmtune.hypervisor.protocol import DriverEvent
from vmtune.model.migration.record import QemuStatus, Snapshot, read_query_migrate


class Handle:
    """A migration that ends when the test says so."""

    def __init__(self) -> None:
        self.end = asyncio.Event()

    begun = True

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


class Silent(Cancelled):
    """A driver that does not answer the first question."""

    def __init__(self, silence: VmtuneError) -> None:
        self._silence = silence

    async def migration(self, *_: Any) -> Snapshot:
        self.asked += 1
        if self.asked == 1:
            raise self._silence
        return Snapshot(QemuStatus.NONE)


@pytest.mark.parametrize("silence", [HostUnreachable, MonitorBusy, OutcomeUnknown, CommandRefused])
async def test_a_source_that_is_silent_for_a_moment_is_watched_on(
    silence: type[VmtuneError],
) -> None:
    async def on_snapshot(_: Snapshot) -> None:
        pass

    driver = Silent(silence("not now"))
    end = await watch(driver, uuid4(), 100, on_snapshot)  # type: ignore[arg-type] # what it needs
    assert (end.snapshot, driver.asked) == (Snapshot(QemuStatus.NONE), 2)


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


class Paused(Cancelled):
    """A driver whose QEMU is paused in post-copy, at the third look ended."""

    async def migration(self, *_: Any) -> Snapshot:
        self.asked += 1
        reply = {"status": "postcopy-paused" if self.asked < 3 else "failed", "ram": {"total": 1}}
        return read_query_migrate(reply)


async def test_one_that_is_paused_in_post_copy_is_sampled_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may stay so for days: nine samples a second would fill the database."""
    monkeypatch.setattr(watching_module, "_STANDS_EVERY_S", 0.1)
    driver, seen = Paused(), list[Snapshot]()

    async def on_snapshot(snapshot: Snapshot) -> None:
        seen.append(snapshot)

    begun = time.monotonic()
    await watch(driver, uuid4(), 200, on_snapshot)  # type: ignore[arg-type] # as above
    assert time.monotonic() - begun >= 0.2
    assert [snapshot.sample is not None for snapshot in seen] == [True, False, True]


class GivenUp(Cancelled):
    """A driver whose libvirt gives up while it prepares the destination."""

    async def migration(self, *_: Any) -> Snapshot:
        self.asked += 1
        return Snapshot(QemuStatus.SETUP if self.asked < 3 else QemuStatus.NONE)


async def test_one_that_qemu_never_knew_of_is_over_when_libvirt_gives_it_up() -> None:
    """As it is seen by a service that did not start it, and so has no handle."""
    driver, seen = GivenUp(), list[Snapshot]()

    async def on_snapshot(snapshot: Snapshot) -> None:
        seen.append(snapshot)

    async with asyncio.timeout(10):
        end = await watch(driver, uuid4(), 200, on_snapshot)  # type: ignore[arg-type] # as above
    assert (end.snapshot, end.gone) == (Snapshot(QemuStatus.NONE), False)
    assert [one.status.value for one in seen] == ["setup", "setup", "none"]


class Refused(Handle):
    """A handle whose driver has found that it never began."""

    begun = False


async def test_what_another_migrates_is_not_watched_in_place_of_ones_own() -> None:
    """No step, and no abort, of a refused one is for it."""

    class Others(Cancelled):
        async def migration(self, *_: Any) -> Snapshot:
            return Snapshot(QemuStatus.ACTIVE)

    handle, seen = Refused(), list[Snapshot]()
    handle.end.set()

    async def on_snapshot(snapshot: Snapshot) -> None:
        seen.append(snapshot)

    async with asyncio.timeout(10):
        end = await watch(Others(), uuid4(), 200, on_snapshot, handle)  # type: ignore[arg-type] # as above
    assert (end.snapshot, seen) == (None, [])


@pytest.mark.parametrize(("copies", "pauses"), [(True, [0.5, 0.5, 0.005]), (False, [0.005] * 3)])
async def test_little_is_asked_while_disks_are_copied_and_qemu_does_not_know_of_it(
    monkeypatch: pytest.MonkeyPatch, copies: bool, pauses: list[float]
) -> None:
    """Each look takes time from the copy, and there is nothing to see."""
    active = read_query_migrate(
        {"status": "active", "ram": {"transferred": 1, "remaining": 1, "total": 2}}, 0
    )
    said = [
        Snapshot(QemuStatus.SETUP),
        Snapshot(QemuStatus.SETUP),
        active,
        Snapshot(QemuStatus.NONE),
    ]
    waited: list[float] = []

    class Copying(Cancelled):
        async def migration(self, *_: Any) -> Snapshot:
            return said.pop(0)

    async def pause(seconds: float, _: asyncio.Event) -> None:
        waited.append(seconds)

    async def on_snapshot(_: Snapshot) -> None:
        pass

    monkeypatch.setattr(watching_module, "_sleep_or_wake", pause)
    await watch(Copying(), uuid4(), 200, on_snapshot, copies=copies)  # type: ignore[arg-type] # as above
    assert waited == pauses
