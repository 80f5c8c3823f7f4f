"""What the controllers work with: a clock, and a callback that records the steps."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from vmtune.model.migration.controller_record import StepRecord
from vmtune.model.plan.changes import Change


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
