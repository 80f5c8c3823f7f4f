"""What a running migration is expected to do, held against what is set in QEMU."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from uuid import UUID

from vmtune.engine.context import Clock
from vmtune.errors import VmtuneError
from vmtune.forecast.course import AutoConverge, Conditions
from vmtune.forecast.following import Followed, observe
from vmtune.forecast.outlook import Judged, Outlook, judge
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.facts import Reading
from vmtune.model.migration.record import Snapshot
from vmtune.model.tunables.tunable import Value

_SETTINGS_EVERY_S = 5.0
"""How often it is read what is set: users and steps change it while a migration runs."""
_SETTINGS_WITHIN_S = 2.0
_JUDGED_EVERY_S = 0.5
_UNSET = Conditions(throughput_bytes_per_s=1.0, downtime_limit_ms=300.0)
"""QEMU's own downtime limit (DEFAULT_MIGRATE_SET_DOWNTIME in migration/options.c)."""
_AUTO_CONVERGE = {
    "cpu_throttle_initial_percent": "initial_percent",
    "cpu_throttle_increment_percent": "increment_percent",
    "max_cpu_throttle_percent": "max_percent",
    "throttle_trigger_threshold_percent": "trigger_percent",
}
_READ = ("downtime_limit_ms", "auto_converge", *_AUTO_CONVERGE)


class Expectation:
    """Follows one migration's snapshots.

    :param source: looks its source host up; asked only when settings are read.
    """

    def __init__(self, vm: UUID, source: Callable[[], Awaitable[Driver]], clock: Clock) -> None:
        self._vm = vm
        self._source = source
        self._clock = clock
        self._conditions = _UNSET
        self._read_at: float | None = None
        self._judged_at: float | None = None
        self._seen = Followed()
        self._judged = Judged()

    async def after(self, snapshot: Snapshot) -> Outlook:
        """What is expected after *snapshot*. Never raises: what cannot be read stays as it was."""
        if snapshot.sample is None:
            return self._judged.outlook
        self._seen = observe(self._seen, snapshot.sample)
        now = self._clock.now()
        if self._judged_at is not None and now - self._judged_at < _JUDGED_EVERY_S:
            return self._judged.outlook
        self._judged_at = now
        if self._read_at is None or now - self._read_at >= _SETTINGS_EVERY_S:
            self._read_at = now
            with suppress(VmtuneError, TimeoutError):
                async with asyncio.timeout(_SETTINGS_WITHIN_S):
                    source = await self._source()
                    self._conditions = _conditions(await source.read(self._vm, _READ))
        self._judged = judge(self._judged, self._seen, self._conditions)
        return self._judged.outlook


def _conditions(readings: Mapping[str, Reading]) -> Conditions:
    """What the readings say; QEMU's defaults where they say nothing."""
    seen = {name: reading.value for name, reading in readings.items()}
    limit = _number(seen.get("downtime_limit_ms"))
    schedule = None
    if seen.get("auto_converge") is True:
        known = ((field, _number(seen.get(name))) for name, field in _AUTO_CONVERGE.items())
        schedule = AutoConverge(**{field: value for field, value in known if value is not None})
    return Conditions(
        _UNSET.throughput_bytes_per_s,
        _UNSET.downtime_limit_ms if limit is None else limit,
        auto_converge=schedule,
    )


def _number(value: Value | None) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
