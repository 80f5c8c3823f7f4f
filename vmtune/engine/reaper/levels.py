"""The reaper policy ``levels``: six speeds, chosen by how many pages a round collects.

Levels, thresholds and hysteresis are those of "kvm: Dynamically adjust the rate of dirty ring
reaper thread" (v2, C. Wu, qemu-devel, 2022-03-28).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from vmtune.engine.reaper.settings import Round

SLEEP_MS = (1000, 500, 250, 125, 100, 80)
"""By level, slowest first."""
FASTEST = len(SLEEP_MS) - 1
"""The last level."""
THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5)
"""A round that collects less than the first share of a ring wants level 0; each that it reaches
wants one more."""
CALM_ROUNDS = 5
"""So many wishes to slow down since it last sped up are not heeded; each further one is."""


@dataclass(frozen=True, slots=True)
class Levels:
    """Up one level at once when more is wanted or a ring was full; down one level only after
    more than five wishes since it last sped up.

    The ratio is, as in the source, all vCPUs' pages together by the size of one ring. The
    source means to count the wishes to slow down but steps a pointer instead of the count, so
    that as printed it never slows down; here it does as intended.

    :param level: index into SLEEP_MS.
    :param calm_rounds: wishes to slow down since it last sped up.
    """

    level: int = 0
    calm_rounds: int = 0

    @property
    def interval_ms(self) -> int:
        """The level's sleep."""
        return SLEEP_MS[self.level]

    def after(self, observed: Round) -> Levels:
        """The level after a round."""
        if observed.filled:
            return replace(self, level=min(self.level + 1, FASTEST))
        wanted = sum(observed.combined >= threshold for threshold in THRESHOLDS)
        if wanted > self.level:
            return Levels(self.level + 1)
        if wanted == self.level:
            return self
        calm = self.calm_rounds + 1
        return Levels(self.level - 1 if calm > CALM_ROUNDS else self.level, calm)
