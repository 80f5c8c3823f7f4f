"""Whether what was read a moment ago still holds."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Hashable

from vmtune.errors import SetupError
from vmtune.storage import Store

OTHERS_WITHIN_S = 0.1
"""How old an answer may be as to what another service on the same PostgreSQL has written."""


class Freshness:
    """Marks of the store's content: equal marks, equal content. This service's own writes change
    the mark at once, those of other services within :data:`OTHERS_WITHIN_S`.

    :param clock: seconds.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._changes = store.changes
        self._clock = clock
        self._looked_at = -math.inf
        self._looking: asyncio.Task[None] | None = None

    async def mark(self) -> Hashable | None:
        """The present mark; None where the database does not answer."""
        if self._changes.needs_look and self._clock() - self._looked_at >= OTHERS_WITHIN_S:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look())
            try:
                await asyncio.shield(self._looking)
            except SetupError:
                return None
        return self._changes.mark()

    async def _look(self) -> None:
        asked_at = self._clock()
        await asyncio.to_thread(self._changes.look)
        self._looked_at = asked_at
