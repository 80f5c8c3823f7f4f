"""What a running migration is expected to do, held against what is set in QEMU."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from uuid import UUID

from vmtune.engine.context import Clock
from vmtune.errors import VmtuneError
from vmtune.forecast.conditions import DECIDING, conditions_of
from vmtune.forecast.following import Followed, observe
from vmtune.forecast.outlook import Judged, Outlook, judge
from vmtune.forecast.probe import curve_of
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.dirty_rates import DirtyPoint
from vmtune.model.migration.record import Snapshot

_THROTTLE, _POSTCOPY = "auto_converge", "postcopy"
"""What QEMU does only in a migration that was started with it."""
_SETTINGS_EVERY_S = 5.0
"""How often it is read what is set: users and steps change it while a migration runs."""
_SETTINGS_WITHIN_S = 2.0
_JUDGED_EVERY_S = 0.5


class Expectation:
    """Follows one migration's snapshots.

    :param source: looks its source host up; asked only when settings are read.
    :param measured: what was measured of the dirty curve before the migration; asked once, when the
        first pass is over.
    """

    def __init__(
        self,
        vm: UUID,
        source: Callable[[], Awaitable[Driver]],
        measured: Callable[[], Awaitable[Sequence[DirtyPoint]]],
        clock: Clock,
    ) -> None:
        self._vm = vm
        self._source = source
        self._measured = measured
        self._known: Sequence[DirtyPoint] | None = None
        self._clock = clock
        self._conditions = conditions_of({})
        self._lacks: frozenset[str] = frozenset()
        self._read_at: float | None = None
        self._judged_at: float | None = None
        self._seen = Followed()
        self._judged = Judged()

    async def after(self, snapshot: Snapshot) -> Outlook:
        """What is expected after *snapshot*. Never raises: what cannot be read stays as it was."""
        if snapshot.sample is None:
            return self._outlook()
        self._seen = observe(self._seen, snapshot.sample)
        now = self._clock.now()
        if self._judged_at is not None and now - self._judged_at < _JUDGED_EVERY_S:
            return self._outlook()
        self._judged_at = now
        if self._read_at is None or now - self._read_at >= _SETTINGS_EVERY_S:
            self._read_at = now
            with suppress(VmtuneError, TimeoutError):
                async with asyncio.timeout(_SETTINGS_WITHIN_S):
                    source = await self._source()
                    seen = await source.read(self._vm, (*DECIDING, _POSTCOPY))
                    self._conditions = conditions_of({n: r.value for n, r in seen.items()})
                    self._lacks = frozenset(n for n, r in seen.items() if r.value is False)
        if self._known is None and self._seen.syncs:
            self._known = curve_of(await self._measured()).points
        self._judged = judge(self._judged, self._seen, self._conditions, self._known or ())
        return self._outlook()

    def _outlook(self) -> Outlook:
        """The judgement, naming only what can still be done."""
        outlook = self._judged.outlook
        if outlook.needs is None:
            return outlook
        lacks = self._lacks
        needs = outlook.needs.open_to(
            throttle=_THROTTLE not in lacks, postcopy=_POSTCOPY not in lacks
        )
        return replace(outlook, needs=needs)
