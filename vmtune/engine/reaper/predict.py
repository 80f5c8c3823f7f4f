"""The reaper policy ``predict``: empty the rings when the fullest is expected at a target fill."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

from vmtune.engine.reaper.settings import ReaperSettings, Round
from vmtune.model.host.dirty_rates import usable_entries

HALF_LIFE_MS = 3000
"""Half-life of the remembered speed of a burst."""
LENGTHEN_BY_MS = 30
"""The interval grows by no more from one round to the next: a guest that has been quiet for a
moment, or has just begun to be watched, may write fast in the next. Of 20 to 120 ms in simulations
(tests/perf/rings/reaper_sim, and four other sets of 60 random traces) the longest with which no set
had more ring-full events than either of the other policies."""


@dataclass(frozen=True, slots=True)
class Predict:
    """Expects of each vCPU the faster of two speeds: that of the last round, with its rise since
    the round before added once more, and the fastest remembered, which fades with a half-life.
    So a burst shortens the interval at once, and quiet lengthens it by 30 ms a round.

    After a round that found a ring full, the interval is at most half of what had passed: the
    vCPU had been stopped, so its speed is not known.

    :param speeds: of each vCPU, the share of a ring's usable entries that it filled in a
        millisecond of the last round.
    :param remembered: of each vCPU, the fastest such speed, faded.
    """

    settings: ReaperSettings
    interval_ms: int
    speeds: tuple[float, ...] = ()
    remembered: tuple[float, ...] = ()

    @classmethod
    def begin(cls, settings: ReaperSettings) -> Predict:
        """No speed is known yet, so the first round is as early as allowed."""
        return cls(settings, settings.min_interval_ms)

    def after(self, observed: Round) -> Predict:
        """The expectation after a round."""
        per_ms = observed.ring_entries / usable_entries(observed.ring_entries) / observed.elapsed_ms
        fade = 0.5 ** (observed.elapsed_ms / HALF_LIFE_MS)
        speeds = tuple(fill * per_ms for fill in observed.fills)
        # vCPUs may come or go; one that has no past has not been fast.
        known = zip_longest(speeds, self.speeds, self.remembered, fillvalue=0.0)
        expected, remembered = [], []
        for speed, last, peak in list(known)[: len(speeds)]:
            faded = peak * fade
            expected.append(max(speed + max(0.0, speed - last), faded))
            remembered.append(max(speed, faded))
        interval_ms = self._interval(observed, max(expected, default=0.0))
        return Predict(self.settings, interval_ms, speeds, tuple(remembered))

    def _interval(self, observed: Round, fastest: float) -> int:
        # The rings keep filling during the round.
        longest = self.interval_ms + LENGTHEN_BY_MS + observed.cost_ms
        if observed.filled:
            longest = min(longest, observed.elapsed_ms / 2)
        target = self.settings.target_fill_percent / 100
        if fastest * longest > target:
            longest = target / fastest
        return self.settings.bounded(longest - observed.cost_ms)
