"""Whether what was read a moment ago still holds."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable

from vmtune.errors import SetupError
from vmtune.storage import Store
from vmtune.storage.changes import Mark

OTHERS_WITHIN_S = 0.25
"""How old an answer may be as to what another service on the same PostgreSQL has written."""
_LOOK_AGAIN_S = 0.05
"""So that the next look is done long before the last one is too old: nobody waits for it unless the
service or the database is busy."""


class Freshness:
    """Marks of the store's content. This service's own writes change the mark at once, those of
    other services within :data:`OTHERS_WITHIN_S`.

    :param clock: seconds.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._changes = store.changes
        self._clock = clock
        self._looked_at = -math.inf
        self._looking: asyncio.Task[bool] | None = None

    async def mark(self) -> Mark | None:
        """The present mark; None where the database does not answer."""
        if not self._changes.needs_look:
            return self._changes.mark()
        age_s = self._clock() - self._looked_at
        looking = self._looking
        if age_s >= _LOOK_AGAIN_S and (looking is None or looking.done()):
            self._looking = looking = asyncio.create_task(self._look())
        if age_s >= OTHERS_WITHIN_S and looking is not None and not await asyncio.shield(looking):
            return None
        return self._changes.mark()

    async def _look(self) -> bool:
        """Whether the database answered."""
        asked_at = self._clock()
        try:
            await asyncio.to_thread(self._changes.look)
        except SetupError:
            return False
        self._looked_at = asked_at
        return True
