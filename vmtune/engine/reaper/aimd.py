"""The reaper policy ``aimd``: additive increase, multiplicative decrease of the sleep.

As P. Xu proposed in the review of the level policy (qemu-devel, April 2022).
"""

from __future__ import annotations

from dataclasses import dataclass

from vmtune.engine.reaper.settings import Round

HALVE_ABOVE = 0.8
"""Fill ratio above which the sleep is halved."""
LENGTHEN_AT = 0.2
"""Fill ratio at or below which the sleep grows."""
LENGTHEN_BY_MS = 20
LEAST_MS = 100
MAX_MS = 1000


@dataclass(frozen=True, slots=True)
class Aimd:
    """Halves the sleep after a fuller round than 0.8, adds 20 ms after one of at most 0.2,
    between 100 ms and 1 s. The ratio is the level policy's: all vCPUs' pages by one ring."""

    interval_ms: int = MAX_MS

    def after(self, observed: Round) -> Aimd:
        """The sleep after a round."""
        if observed.combined > HALVE_ABOVE:
            return Aimd(max(LEAST_MS, self.interval_ms // 2))
        if observed.combined <= LENGTHEN_AT:
            return Aimd(min(MAX_MS, self.interval_ms + LENGTHEN_BY_MS))
        return self
