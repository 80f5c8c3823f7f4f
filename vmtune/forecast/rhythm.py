"""Guests that write in bursts, with pauses between them.

The mean of what such a guest dirties is right for no pass of a migration: in a burst it is too
little, in a pause too much, and it is a pause in which the migration ends. A probe measures many
short times at different moments. Where a guest that works and rests by turns explains what they saw
far better than one that writes steadily, the course is followed for guests that do, of any phase,
since nobody knows in which one a migration begins.

How much better is judged by the likelihood of the points: of a steady guest with the curve that is
nearest to them, and of guests that work and rest, on a grid of both times, of how fast they write
and of how much they work on, the mean of all (a Bayes factor: Kass, Raftery, Journal of the
American Statistical Association 90, 1995). Each point is of a phase of its own. It errs as a sample
of pages does, and by some percent more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from vmtune.forecast.dirty_curve import DirtyCurve
from vmtune.forecast.probe import DirtyProbe, pages_per_gib
from vmtune.model.host.dirty_rates import DirtyPoint

GUESSES = 24
"""So many guests stand for all that are likely."""
_WORKS_MS = np.geomspace(60, 4000, 11)
_RESTS_MS = np.geomspace(100, 4000, 10)
_PHASES = 12
_RATES = 10
_LARGER = (0.97, 1.5, math.inf)
"""What a guest works on, next to the most that was seen of it."""
_BETTER = 4.0
"""The logarithm of how much likelier than a steady guest it must be."""
_AT_BEST = 10.0
"""The same of one that fits the points exactly: with less, the mean of the grid is not that much
better."""
_WILD = 0.03
"""So many points are of something else: of any size."""
_VARIES = 0.07
_GIB = 1 << 30
_POINTS = 16
_Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Working and resting by turns.

    :param works_ms: and *rests_ms*: how long, above 0.
    :param phase_ms: how long before 0 it began to work.
    """

    works_ms: float
    rests_ms: float
    phase_ms: float = 0.0

    @property
    def period_ms(self) -> float:
        """From one beginning of work to the next."""
        return self.works_ms + self.rests_ms

    def worked_ms(self, from_ms: float, to_ms: float) -> float:
        """How much of this time it works."""
        return self._until(to_ms) - self._until(from_ms)

    def _until(self, at_ms: float) -> float:
        turns, within = divmod(at_ms + self.phase_ms, self.period_ms)
        return turns * self.works_ms + min(self.works_ms, within)


@dataclass(frozen=True, slots=True)
class Bursty:
    """A guest that works and rests.

    :param curve: what it dirties by the time that it has worked.
    """

    curve: DirtyCurve
    rhythm: Rhythm


@dataclass(frozen=True, slots=True)
class _Guess:
    """One of the grid.

    :param likely: the logarithm of the likelihood of what was seen.
    :param in_order: it writes to one page after the other, and not to any.
    """

    likely: float
    works_ms: float
    rests_ms: float
    bytes_per_ms: float
    works_on: float
    in_order: bool


@lru_cache(maxsize=32)
def bursty(probe: DirtyProbe) -> tuple[Bursty, ...]:
    """The guests that it may be, all alike likely, each with a phase; none where a steady one
    explains the probe as well, or no short times were measured."""
    if probe.lacks_short_times:
        return ()
    seen = _Seen.of(probe)
    curve = probe.curve()
    steady = seen.by_mean(np.array([curve.dirty_bytes(ms) for ms in seen.after_ms]))
    if seen.by_mean(seen.dirtied) - steady < _AT_BEST:
        return ()
    guesses = list(_guesses(seen))
    likely = np.array([guess.likely for guess in guesses])
    most = float(likely.max())
    weights = np.exp(likely - most)
    mean = most + math.log(float(weights.mean()))
    if mean - steady < _BETTER:
        return ()
    upto = np.cumsum(weights) / weights.sum()
    places = np.searchsorted(upto, (np.arange(GUESSES) + 0.5) / GUESSES)
    return tuple(_guest(guesses[place], number) for number, place in enumerate(places))


def _guest(guess: _Guess, number: int) -> Bursty:
    """With a phase by the golden ratio, which spreads any number of them evenly."""
    phase = (number * (math.sqrt(5) - 1) / 2) % 1
    rhythm = Rhythm(guess.works_ms, guess.rests_ms, 0.0)
    return Bursty(_curve(guess), Rhythm(rhythm.works_ms, rhythm.rests_ms, phase * rhythm.period_ms))


def _curve(guess: _Guess) -> DirtyCurve:
    if math.isinf(guess.works_on):
        return DirtyCurve((DirtyPoint(1000.0, 1000.0 * guess.bytes_per_ms),))
    full_ms = guess.works_on / guess.bytes_per_ms
    if guess.in_order:
        times = [full_ms, 2 * full_ms]
    else:
        times = [full_ms * 8 * (n / _POINTS) ** 2 for n in range(1, _POINTS + 1)]
    dirtied = _dirtied(np.array(times), guess.bytes_per_ms, guess.works_on, guess.in_order)
    return DirtyCurve(tuple(map(DirtyPoint, times, map(float, dirtied))))


def _dirtied(worked_ms: _Array, rate: float | _Array, works_on: float, in_order: bool) -> _Array:
    written = rate * worked_ms
    if in_order or math.isinf(works_on):
        return np.minimum(works_on, written)
    found: _Array = works_on * -np.expm1(-written / works_on)
    return found


@dataclass(frozen=True, slots=True)
class _Seen:
    """The points of a probe.

    :param page_bytes: of the guest's memory, for each page of the sample.
    """

    after_ms: _Array
    dirtied: _Array
    page_bytes: float
    memory_bytes: float

    @classmethod
    def of(cls, probe: DirtyProbe) -> _Seen:
        pages = pages_per_gib(probe.memory_bytes) * probe.memory_bytes / _GIB
        return cls(
            np.array([point.after_ms for point in probe.points]),
            np.array([point.dirty_bytes for point in probe.points]),
            probe.memory_bytes / pages,
            float(probe.memory_bytes),
        )

    def likelihood(self, expected: _Array) -> _Array:
        """The logarithm, of the points together.

        :param expected: for each point, of each phase, of each guest.
        """
        varies = self.page_bytes**2 + expected * self.page_bytes + (_VARIES * expected) ** 2
        off = (self.dirtied[:, None, None] - expected) ** 2 / varies
        density = (np.exp(-off / 2) / np.sqrt(varies)).mean(axis=1)
        found: _Array = np.log((1 - _WILD) * density + _WILD / self.memory_bytes).sum(axis=0)
        return found

    def by_mean(self, expected: _Array) -> float:
        """That of one guest without phases."""
        return float(self.likelihood(expected[:, None, None])[0])


def _guesses(seen: _Seen) -> list[_Guess]:
    most = max(seen.page_bytes, float(seen.dirtied.max()))
    slowest = most / float(seen.after_ms.max()) / 2
    fastest = max(2 * slowest, float((seen.dirtied / seen.after_ms).max()) * 1.6)
    rates = np.geomspace(slowest, fastest, _RATES)
    found = []
    for works_ms, rests_ms in product(_WORKS_MS, _RESTS_MS):
        worked = _worked(seen.after_ms, float(works_ms), float(rests_ms))[:, :, None]
        for larger, in_order in _shapes():
            expected = _dirtied(worked, rates, most * larger, in_order)
            for rate, likely in zip(rates, seen.likelihood(expected), strict=True):
                found.append(
                    _Guess(
                        float(likely),
                        float(works_ms),
                        float(rests_ms),
                        float(rate),
                        most * larger,
                        in_order,
                    )
                )
    return found


def _shapes() -> Sequence[tuple[float, bool]]:
    """Without an end to what it works on, the order makes no difference."""
    return [
        (larger, in_order)
        for larger in _LARGER
        for in_order in (True, False)
        if in_order or not math.isinf(larger)
    ]


def _worked(after_ms: _Array, works_ms: float, rests_ms: float) -> _Array:
    """How long it works in each of those times, by phase."""
    period = works_ms + rests_ms
    begins = (np.arange(_PHASES) + 0.5) / _PHASES * period

    def until(at_ms: _Array) -> _Array:
        turns = np.floor(at_ms / period)
        found: _Array = turns * works_ms + np.minimum(works_ms, at_ms - turns * period)
        return found

    return until(begins[None, :] + after_ms[:, None]) - until(begins)[None, :]
