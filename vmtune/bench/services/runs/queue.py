"""The queue of runs: one at a time on a machine, since two at once would measure each other.
Studies have one likewise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Protocol
from uuid import UUID


class Waiting(Protocol):
    """What waits for its turn."""

    @property
    def id(self) -> UUID: ...

    @property
    def created_at(self) -> datetime: ...


class RunQueue:
    """Gives each run the machine to itself, in the order of requests."""

    def __init__(self) -> None:
        self._busy = False
        self._waiting: dict[tuple[datetime, UUID], asyncio.Future[None]] = {}

    @asynccontextmanager
    async def turn(self, run: Waiting) -> AsyncIterator[None]:
        """Wait until it is *run*'s turn, and have the machine for as long as the block runs."""
        key = (run.created_at, run.id)
        granted = asyncio.get_running_loop().create_future()
        self._waiting[key] = granted
        self._grant()
        try:
            await granted
        except asyncio.CancelledError:
            if self._waiting.pop(key, None) is None:
                self._release()  # its turn came at the same moment
            raise
        try:
            yield
        finally:
            self._release()

    def _grant(self) -> None:
        if not self._busy and self._waiting:
            self._busy = True
            self._waiting.pop(min(self._waiting)).set_result(None)

    def _release(self) -> None:
        self._busy = False
        self._grant()
