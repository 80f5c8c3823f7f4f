"""What the controllers work with: a driver, a clock, and a callback that records the steps."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Protocol
from uuid import UUID

from vmtune.model.host.dirty_rates import DirtyRates
from vmtune.model.host.facts import Reading, VmState
from vmtune.model.migration.controller_record import StepRecord
from vmtune.model.migration.record import Snapshot
from vmtune.model.plan.changes import Change


class Controls(Protocol):
    """What the controllers need of a driver: every :class:`vmtune.hypervisor.protocol.Driver` has
    it, and says there which errors it raises."""

    async def read(self, vm: UUID, tunables: Collection[str]) -> Mapping[str, Reading]:
        """What the named tunables are set to right now."""

    async def write(self, vm: UUID, changes: Sequence[Change]) -> None:
        """Set values."""

    async def migration(self, vm: UUID, at_ms: int = 0) -> Snapshot:
        """The VM's outgoing migration, as QEMU says right now."""

    async def measure_dirty_rates(self, vm: UUID, over_ms: int) -> None:
        """Begin to measure, which empties all dirty rings at its end."""

    async def dirty_rates(self, vm: UUID) -> DirtyRates:
        """How far the measurement is."""

    async def vm_state(self, vm: UUID) -> VmState:
        """What the VM is doing."""

    async def pause(self, vm: UUID) -> None:
        """Stop the guest."""

    async def start_postcopy(self, vm: UUID) -> None:
        """Switch the migration to post-copy."""

    async def abort_migration(self, vm: UUID) -> None:
        """Request an abort of the migration."""


class Clock(Protocol):
    """The controllers' clock."""

    def now(self) -> float:
        """Seconds, monotonic."""

    async def sleep(self, seconds: float) -> None:
        """Sleep."""


class Monotonic:
    """The machine's own clock."""

    def now(self) -> float:
        """:func:`time.monotonic`."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """:func:`asyncio.sleep`."""
        await asyncio.sleep(seconds)


NoteStep = Callable[[StepRecord, Sequence[Change]], Awaitable[None]]
"""Called twice for each step: before it is done, as ``pending`` and with the changes that put back
what was set before, and after it, with its effect and no changes. A step is not done where the
first call fails."""
