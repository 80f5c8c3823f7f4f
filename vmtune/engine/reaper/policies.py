"""Creates a reaper policy, with bounds and a limit of its cost."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from vmtune.engine.reaper.aimd import LEAST_MS, Aimd
from vmtune.engine.reaper.levels import FASTEST, Levels
from vmtune.engine.reaper.predict import Predict
from vmtune.engine.reaper.settings import Pace, ReaperSettings, Round
from vmtune.model.tunables.rows.reaper import ReaperPolicy

MAX_COST_SHARE = 0.2
"""The share of time that rounds may cost, by the interval's lower bound: rounds that take 20 ms
are at least 80 ms apart. The longest interval of the settings still holds."""
_COSTS_KEPT = 3


@dataclass(frozen=True, slots=True)
class Guarded:
    """Any policy within the settings' bounds, and backing off when rounds take long.

    What a round costs is the median of the last three, so that one round which waited for a
    busy host changes nothing, and two in a row do.
    """

    pace: Pace
    settings: ReaperSettings
    costs_ms: tuple[float, ...] = ()

    @property
    def interval_ms(self) -> int:
        """The policy's interval, lengthened where rounds take long, within the bounds."""
        return self.settings.bounded(max(self.pace.interval_ms, self.affordable_ms))

    @property
    def affordable_ms(self) -> float:
        """The shortest interval at which rounds cost no more than their share; 0 at first."""
        if not self.costs_ms:
            return 0.0
        return median(self.costs_ms) * (1 / MAX_COST_SHARE - 1)

    def after(self, observed: Round) -> Guarded:
        """The state after a round."""
        costs = (*self.costs_ms, observed.cost_ms)[-_COSTS_KEPT:]
        return Guarded(self.pace.after(observed), self.settings, costs)


@dataclass(frozen=True, slots=True)
class Unpaused:
    """Round after round without a pause, whatever they find and cost: for where a full ring can
    end the guest (:mod:`vmtune.model.preflight.rings`)."""

    interval_ms: int

    def after(self, observed: Round) -> Unpaused:
        """The same."""
        return self


def begin(settings: ReaperSettings, *, unpaused: bool = False) -> Pace:
    """The policy that the settings name, before its first round.

    :param unpaused: a full ring can end the guest, so that no policy may lengthen the interval.

    Nothing is known yet of how fast the guest writes, so each begins at its shortest interval: a
    round too many costs a few milliseconds, a ring that fills stops the guest. The sources of
    ``levels`` and ``aimd`` begin at the stock second, with a VM that has just started.

    >>> pace = begin(ReaperSettings())
    >>> pace.interval_ms
    50
    >>> pace.after(Round(elapsed_ms=52, cost_ms=2, fills=(0.1,), ring_entries=65536)).interval_ms
    80
    """
    if unpaused:
        return Unpaused(settings.min_interval_ms)
    pace: Pace
    match settings.policy:
        case ReaperPolicy.PREDICT:
            pace = Predict.begin(settings)
        case ReaperPolicy.LEVELS:
            pace = Levels(FASTEST)
        case ReaperPolicy.AIMD:
            pace = Aimd(LEAST_MS)
    return Guarded(pace, settings)
