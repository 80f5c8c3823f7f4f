"""Admits as many migrations as the limits allow. The database decides; this module waits, and asks
it again when something may have changed."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from contextlib import suppress
from uuid import UUID

import structlog

from vmtune.errors import VmtuneError
from vmtune.model.host.inventory import EventTopic
from vmtune.model.migration.admission import Limits, QueuePosition
from vmtune.services.events import EventBus
from vmtune.storage import Store

log = structlog.get_logger(__name__)

LOOK_EVERY_S = 1.0
"""While something waits here: another service's migration may have ended."""


class Admission:
    """One for all migrations of this service: however many wait, one task looks."""

    def __init__(self, store: Store, bus: EventBus, limits: Limits) -> None:
        self.limits = limits
        self._store = store
        self._bus = bus
        self._waiting: dict[UUID, asyncio.Event] = {}
        self._announced: dict[UUID, int] = {}
        self._changed = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None

    async def wait(self, migration: UUID) -> bool:
        """Return once the migration may begin; True if it had to wait for that.

        One that has its slot already, by an earlier service or another one's look, begins at
        once. Being cancelled leaves the row as it is: the migration's end frees it.
        """
        admitted = self._waiting.setdefault(migration, asyncio.Event())
        try:
            await self._look()
            waits = not admitted.is_set()
            if waits:
                self._look_on()
                await admitted.wait()
            return waits
        finally:
            self._waiting.pop(migration, None)
            self._announced.pop(migration, None)

    def changed(self) -> None:
        """A migration has ended or was released: check whether others may begin."""
        self._changed.set()

    async def positions(self, among: Collection[UUID]) -> Mapping[UUID, QueuePosition]:
        """The queue positions of those of *among* that wait."""
        return await asyncio.to_thread(self._store.slots.positions, among, self.limits)

    async def close(self) -> None:
        """Look no more."""
        if self._looking is not None:
            self._looking.cancel()
            with suppress(asyncio.CancelledError):
                await self._looking

    def _look_on(self) -> None:
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._until_none_waits(), name="admission")

    async def _until_none_waits(self) -> None:
        while self._waiting:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._changed.wait()
            self._changed.clear()
            try:
                await self._look()
                await self._publish()
            except VmtuneError as error:
                # The database is unavailable or locked: queued migrations keep waiting.
                log.warning("the queue of migrations was not checked", reason=str(error))

    async def _look(self) -> None:
        await asyncio.to_thread(self._store.slots.admit, self.limits)
        waiting = [id for id, event in self._waiting.items() if not event.is_set()]
        for id in await asyncio.to_thread(self._store.slots.running, waiting) if waiting else ():
            if id in self._waiting:
                self._waiting[id].set()

    async def _publish(self) -> None:
        """Publish a migration's queue position when it has changed."""
        waiting = [id for id, event in self._waiting.items() if not event.is_set()]
        for id, position in (await self.positions(waiting)).items():
            if self._announced.get(id) != position.ahead:
                self._announced[id] = position.ahead
                data = {"queued": True, "ahead": position.ahead, "waiting_reason": position.why}
                self._bus.progress(EventTopic.MIGRATION, id, data)
