"""Throttling by the dirty limit, in the terms of a throttle that withholds a share of the time.

Auto-converge withholds a share of the time of all vCPUs. The dirty limit bounds how fast each vCPU
may dirty memory: one that dirties more waits each time that it has filled its dirty ring, for so
long that it keeps the limit (QEMU's system/dirtylimit.c, since 8.1 with a migration). vCPUs that
write little are left alone. A share of the time is had by a limit of what is left of the rate at
which the vCPU that writes most does so when it is not held back.

That rate is not measured for each vCPU. To begin with it is taken for that of the whole guest,
which is the most that it can be: the vCPU is slowed down no more than is allowed. What QEMU then
says it withholds corrects it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from vmtune.forecast.dirty_curve import concave
from vmtune.model.host.dirty_rates import DirtyPoint
from vmtune.model.migration.intent import MAX_SLOWDOWN_PERCENT, Intent, Means
from vmtune.units import PAGE_BYTES

_MIB = 1 << 20
TOLERANCE_BYTES_PER_S = 25 * _MIB
"""QEMU is content with a dirty rate that differs by no more from the limit
(DIRTYLIMIT_TOLERANCE_RANGE in system/dirtylimit.c)."""
UNLIMITED_MIB_PER_S = 1 << 20
"""No vCPU dirties so much: the limit while nothing is to be throttled."""
_MORE = 1.4
"""A vCPU that comes to write more than is known is slowed down more by the same limit, and QEMU
comes to a limit by steps that go too far at times."""
_RINGS_PER_S = 1.25
"""So many rings at least a vCPU has to fill in a second under its limit, to be held back by it."""
_MUCH_LESS = 0.5
_LEAST_CORRECTION, _MOST_CORRECTION = 0.25, 4.0
"""At a time."""


@dataclass(frozen=True, slots=True)
class DirtyLimit:
    """What a dirty limit does to a guest.

    :param ring_bytes: of memory, the pages that a dirty ring holds.
    :param writes_bytes_per_s: how fast the vCPU that writes most dirties memory while it is not
        held back; above 0.
    """

    ring_bytes: int
    writes_bytes_per_s: float

    @classmethod
    def of(cls, entries: int, curve: Sequence[DirtyPoint]) -> DirtyLimit | None:
        """For a guest with rings of so many *entries* that dirties by *curve*, as measured; None
        without a ring, or where nothing was measured or dirtied."""
        points = concave(curve).points
        if entries <= 0 or not points or points[0].dirty_bytes <= 0:
            return None
        rate = points[0].dirty_bytes / points[0].after_ms * 1000  # nowhere is it steeper
        return cls(entries * PAGE_BYTES, rate)

    @property
    def turn_ms(self) -> float:
        """For how long a vCPU runs until it has filled its ring and waits."""
        return self.ring_bytes / self.writes_bytes_per_s * 1000

    def most_percent(self, intent: Intent) -> int:
        """The hardest throttle that *intent* allows and the rings can do; 0 for none. QEMU may hold
        a vCPU back to less than the limit by its tolerance. It empties the rings once a second: a
        vCPU that takes longer to fill its ring never waits."""
        if not intent.allows(Means.THROTTLE):
            return 0
        slowdown = intent.max_slowdown_percent
        bound = MAX_SLOWDOWN_PERCENT if slowdown is None else slowdown
        left = (100 - bound) * _MORE + 100 * TOLERANCE_BYTES_PER_S / self.writes_bytes_per_s
        left = max(left, 100 * _RINGS_PER_S * self.ring_bytes / self.writes_bytes_per_s)
        return max(0, min(intent.most_throttled(self.turn_ms), int(100 - left)))

    def mib_per_s(self, throttle_percent: int) -> int:
        """The limit of each vCPU that withholds so much; one that no guest reaches for 0. None is
        lower than what fills a ring in time: QEMU would measure no wait, and a vCPU that comes to
        write faster would be held back by more than was meant."""
        if throttle_percent <= 0:
            return UNLIMITED_MIB_PER_S
        least = math.ceil(_RINGS_PER_S * self.ring_bytes / _MIB)
        limit = max(1, least, round(self._left(throttle_percent) / _MIB))
        return min(UNLIMITED_MIB_PER_S, limit)

    def _left(self, throttle_percent: int) -> float:
        """Bytes per second that a throttle leaves the vCPU that writes most."""
        return self.writes_bytes_per_s * (1 - throttle_percent / 100)

    def percent(self, mib_per_s: int) -> int:
        """What a limit withholds; 0 where the guest does not reach it."""
        share = 1 - mib_per_s * _MIB / self.writes_bytes_per_s
        return max(0, min(MAX_SLOWDOWN_PERCENT, round(100 * share)))

    def corrected(
        self, throttle_percent: int, withheld_percent: float, bound_percent: int
    ) -> DirtyLimit | None:
        """By what QEMU withholds where *throttle_percent* was meant.

        :param bound_percent: what may be withheld at most.
        :return: None where it is within that, and not much less than was meant: QEMU comes to the
            limit by steps of its own, so that somewhat less tells nothing; and where no other limit
            would come of it.
        """
        if throttle_percent <= 0:
            return None
        left = self._left(throttle_percent)
        if withheld_percent > bound_percent:
            factor = (100 - bound_percent) / max(1.0, 100 - withheld_percent)
        else:
            # QEMU is content when the vCPU that writes most keeps the limit by its tolerance.
            most = (left + TOLERANCE_BYTES_PER_S) / (1 - withheld_percent / 100)
            factor = most / self.writes_bytes_per_s
            idle = withheld_percent == 0 and left > TOLERANCE_BYTES_PER_S
            if factor > _MUCH_LESS and not idle:
                return None
            factor = min(factor, 1 - throttle_percent / 100) if idle else factor
        factor = min(_MOST_CORRECTION, max(_LEAST_CORRECTION, factor))
        found = replace(self, writes_bytes_per_s=self.writes_bytes_per_s * factor)
        same = found.mib_per_s(throttle_percent) == self.mib_per_s(throttle_percent)
        return None if same else found

    def in_force(self, mib_per_s: int, most_percent: int) -> tuple[DirtyLimit, int]:
        """What a limit that is set withholds, at most so much: one that withholds more was
        corrected by whoever set it."""
        percent = self.percent(mib_per_s)
        if percent <= most_percent:
            return self, percent
        writes = mib_per_s * _MIB * 100 / (100 - most_percent)
        return replace(self, writes_bytes_per_s=writes), most_percent
