"""Watching one migration from the source: samples at a steady rate and at each iteration."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from uuid import UUID

from vmtune.engine import asking
from vmtune.engine.asking import SILENCE
from vmtune.errors import CommandRefused, NotFound, OutcomeUnknown
from vmtune.hypervisor.protocol import Driver, EventKind, MigrationHandle
from vmtune.model.migration.record import QemuStatus, Sample, Snapshot

_FIGURES_WITHIN_S = 2.0
_STANDS_EVERY_S = 1.0
"""How often a migration is looked at that is paused in post-copy."""
_COPIES_EVERY_S = 0.5
"""How often while disks are copied and QEMU does not know of the migration yet."""


@dataclass(frozen=True, slots=True)
class WatchEnd:
    """How the observation ended.

    :param snapshot: the last one that the source gave; None if it never gave one.
    :param gone: the VM is no longer on the source.
    """

    snapshot: Snapshot | None
    gone: bool


OnSnapshot = Callable[[Snapshot], Awaitable[None]]


async def watch(
    driver: Driver,
    vm: UUID,
    hz: float,
    on_snapshot: OnSnapshot,
    handle: MigrationHandle | None = None,
    started: float | None = None,
    *,
    copies: bool = False,
) -> WatchEnd:
    """Sample until the migration has ended.

    The source is queried *hz* times a second, and at once when it reports a new iteration or
    status; one that is paused in post-copy once a second, and without samples. The connection
    counts as lost only after 30 s of retries. Where there is a handle, its end is awaited too:
    libvirt still restores values when QEMU is done.

    :param handle: of a migration that this process started; it then says when it is over.
    :param started: :func:`time.monotonic` when the migration was started.
    :param copies: it copies disks before its memory, or may. Then there is nothing to sample until
        QEMU begins, and each look would take time from the copy.
    """
    origin = time.monotonic() if started is None else started
    last: Snapshot | None = None
    silent_since: float | None = None
    async with _wakeups(driver, vm, handle) as wakeup:
        while True:
            wakeup.clear()
            over = handle is not None and handle.done
            try:
                at_ms = round((time.monotonic() - origin) * 1000)
                snapshot = await driver.migration(vm, at_ms)
                silent_since = None
            except NotFound:
                return WatchEnd(last, gone=True)
            except SILENCE:
                silent_since = silent_since or time.monotonic()
                if over or time.monotonic() - silent_since > asking.LOST_AFTER_S:
                    return WatchEnd(last, gone=False)
            else:
                if handle is not None and not handle.begun:
                    return WatchEnd(last, gone=False)  # this is another's
                reported = last is not None and last.final
                stands = _stands(snapshot) and last is not None and _stands(last)
                last = snapshot = _mark_iteration(snapshot, last)
                if not reported:
                    await on_snapshot(replace(snapshot, sample=None) if stands else snapshot)
                if snapshot.final and (handle is None or handle.done):
                    return WatchEnd(last, gone=False)
                if handle is None and snapshot.status is QemuStatus.NONE:
                    return WatchEnd(last, gone=False)  # it was given up before QEMU knew of it
                if over and not snapshot.status.running:
                    return WatchEnd(await _with_figures(driver, vm, snapshot), gone=False)
            await _sleep_or_wake(max(1 / hz, _idle_s(last, copies=copies)), wakeup)


def _idle_s(last: Snapshot | None, *, copies: bool) -> float:
    """For how long at least nothing is to be seen."""
    if last is not None and _stands(last):
        return _STANDS_EVERY_S
    idle = copies and last is not None and last.status is QemuStatus.SETUP and last.sample is None
    return _COPIES_EVERY_S if idle else 0


def _stands(snapshot: Snapshot) -> bool:
    """Nothing moves until somebody recovers it: one sample is enough."""
    return snapshot.status is QemuStatus.POSTCOPY_PAUSED


def _mark_iteration(snapshot: Snapshot, last: Snapshot | None) -> Snapshot:
    """A sample in which the iteration has moved on is a boundary."""
    now, before = snapshot.sample, last.sample if last else None
    if now is None:
        return snapshot
    moved = before is None or now.iteration != before.iteration
    if now.boundary == moved:
        return snapshot  # 19 of 20
    return replace(snapshot, sample=replace(now, boundary=moved))


async def _with_figures(driver: Driver, vm: UUID, snapshot: Snapshot) -> Snapshot:
    """QEMU 7.2 says completed before its times are there: ask again for a while."""
    deadline = time.monotonic() + _FIGURES_WITHIN_S
    while not snapshot.final and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
        try:
            snapshot = await driver.migration(vm)
        except (NotFound, *SILENCE):
            break
    return snapshot


@asynccontextmanager
async def _wakeups(
    driver: Driver, vm: UUID, handle: MigrationHandle | None
) -> AsyncIterator[asyncio.Event]:
    """An event that is set whenever the driver reports something of *vm*, and at the migration's
    end."""
    wakeup = asyncio.Event()

    async def listen() -> None:
        async with aclosing(driver.events()) as events:
            async for event in events:
                interesting = event.kind is not EventKind.VM_STATE
                if event.vm == vm and interesting:
                    wakeup.set()

    async def wait_for(handle: MigrationHandle) -> None:
        # The result is read later; here only the time matters.
        try:
            with suppress(CommandRefused, OutcomeUnknown):
                await handle.wait()
        finally:
            wakeup.set()

    tasks = [asyncio.create_task(listen())]
    if handle is not None:
        tasks.append(asyncio.create_task(wait_for(handle)))
    try:
        yield wakeup
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _sleep_or_wake(seconds: float, wakeup: asyncio.Event) -> None:
    """Sleep, but not beyond an event or the migration's end."""
    timer = asyncio.get_running_loop().call_later(seconds, wakeup.set)
    try:
        await wakeup.wait()
    finally:
        timer.cancel()


def fraction(sample: Sample) -> float:
    """About how much of the work is done, 0 to 1: what remains against all of the RAM."""
    if not sample.total_bytes:
        return 0.0
    return 1 - min(1.0, sample.remaining_bytes / sample.total_bytes)
