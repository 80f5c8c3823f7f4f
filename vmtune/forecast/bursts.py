"""How QEMU sends under a bandwidth limit: in bursts, and what that does to its passes.

QEMU lets a tenth of the limit go in each tenth of a second, as fast as the path takes it, and waits
for the next one (BUFFER_DELAY, migration_rate_limit in migration/migration.c). How much remains is
looked at when one begins, and as soon as nothing remains. So what fits into the rest of a burst is
sent in a fraction of the time that it takes on average, and the guest has dirtied little meanwhile:
a migration ends where a tenth of a second of dirtying fits into one burst, however low its
downtime limit is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

LIMIT_HELD_MS = 100.0
"""Over which QEMU holds its limit: BUFFER_DELAY in migration/migration.c."""
_SYNCHRONISED_MS = 2.0
"""What a synchronisation takes: 0 to 5 made no difference to the forecasts of the dataset."""


@dataclass(slots=True)
class Bursts:
    """Where a migration stands in its tenth of a second.

    :param limit_bytes_per_s: on the wire.
    :param burst_bytes_per_s: what the path takes while a burst lasts, above the limit.
    :param at_ms: since the tenth of a second began.
    :param used_bytes: of what may be sent in it.
    """

    limit_bytes_per_s: float
    burst_bytes_per_s: float
    at_ms: float = 0.0
    used_bytes: float = 0.0

    def send(self, remaining: float, wire_share: float, threshold: float) -> tuple[float, float]:
        """Send until the bitmap is synchronised: when less than *threshold* remains at the
        beginning of a burst, or nothing at all.

        :param remaining: bytes of memory.
        :param wire_share: bytes sent for each of them, above 0.
        :return: how long it took, in ms, and what still remains.
        """
        each = self._each_bytes
        took_ms, fits = 0.0, (each - self.used_bytes) / wire_share
        if remaining > max(fits, threshold):
            burst = each / wire_share
            rest = remaining - fits
            # So many more whole bursts, until what is left is little enough or fits into one.
            count = max(0, min(math.ceil((rest - threshold) / burst), math.ceil(rest / burst) - 1))
            took_ms = LIMIT_HELD_MS - self.at_ms + count * LIMIT_HELD_MS
            remaining = rest - count * burst
            self.at_ms = self.used_bytes = 0.0
        if remaining > threshold:
            sent = remaining * wire_share
            in_ms = sent / self.burst_bytes_per_s * 1000
            took_ms, remaining = took_ms + in_ms, 0.0
            self.at_ms, self.used_bytes = self.at_ms + in_ms, self.used_bytes + sent
        self.wait(_SYNCHRONISED_MS)
        return took_ms + _SYNCHRONISED_MS, remaining

    def is_sent(self, at_ms: float) -> None:
        """It stands so long after a tenth of a second began, whose burst has been sent."""
        self.at_ms = at_ms
        self.used_bytes = self._each_bytes

    @property
    def _each_bytes(self) -> float:
        return self.limit_bytes_per_s * LIMIT_HELD_MS / 1000

    def wait(self, for_ms: float) -> None:
        """Time goes by in which nothing is sent."""
        self.at_ms += for_ms
        if self.at_ms >= LIMIT_HELD_MS:
            self.at_ms = self.used_bytes = 0.0
