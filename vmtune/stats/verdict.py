"""From an effect and its interval to a verdict, by a margin that was fixed before.

====================  ==================================================================
the interval          the verdict
====================  ==================================================================
beyond the margin     better or worse, by the metric's direction
within the margin     equivalent
across a border       inconclusive, with about how many more blocks would settle it
not to be had         insufficient data
====================  ==================================================================

A margin of 5 % on a ratio is 1/1.05 to 1.05, so that exchanging A and B exchanges the verdicts.
With an interval of 95 % a false "better" and a false "worse" come in at most 2.5 % of cases each,
a false "equivalent" in at most 2.5 %: it is two one-sided tests (Schuirmann, 1987).

Schuirmann, D. J. (1987). A comparison of the two one-sided tests procedure and the power
approach for assessing the equivalence of average bioavailability. J. Pharmacokin. Biopharm. 15.
"""

from __future__ import annotations

import math
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from vmtune.stats.model import Direction, Effect, Scale, Verdict
from vmtune.stats.ranks import Floats

LEAST_PAIRED = 6
"""Blocks: with 5 not even the most extreme outcome has a two-sided p below 0.05."""
LEAST_UNPAIRED = 4
"""Runs of each arm, for the same reason."""
MOST_MORE_BLOCKS = 500
"""Above that "so many more blocks" is no advice."""
_TINY = 1e-12  # borders are reached, although logarithms are rounded


class Place(IntEnum):
    """Where an interval lies about the margin."""

    BELOW = -1
    WITHIN = 0
    ABOVE = 1
    ACROSS = 2


def places(
    low: Floats | np.float64, high: Floats | np.float64, least: float, most: float
) -> npt.NDArray[np.int64]:
    """The :class:`Place` of each interval about the margin from *least* to *most*."""
    return np.select(
        [(low >= least - _TINY) & (high <= most + _TINY), low > most + _TINY, high < least - _TINY],
        [Place.WITHIN, Place.ABOVE, Place.BELOW],
        Place.ACROSS,
    )


def place_of(effect: Effect) -> Place:
    """Where an effect's interval lies; across, where it has no end."""
    low = -math.inf if effect.low is None else effect.low
    high = math.inf if effect.high is None else effect.high
    where = places(np.float64(low), np.float64(high), effect.margin_low, effect.margin_high)
    return Place(int(where))


def verdict_of(place: Place, direction: Direction) -> Verdict | None:
    """What the place means; None where neither direction is better."""
    if direction is Direction.NONE:
        return None
    if place is Place.WITHIN:
        return Verdict.EQUIVALENT
    if place is Place.ACROSS:
        return Verdict.INCONCLUSIVE
    good = Place.BELOW if direction is Direction.LOWER else Place.ABOVE
    return Verdict.BETTER if place is good else Verdict.WORSE


def more_blocks(effect: Effect, blocks: int) -> int | None:
    """About how many more blocks would settle an inconclusive *effect* of so many.

    An interval shrinks with the root of the number of blocks. It has to become so short that it
    does not reach the border of the margin that is nearest to the estimate, which is taken for
    true. None if the estimate is so near to a border, or the interval so long, that
    :data:`MOST_MORE_BLOCKS` would not do, and where the interval has no end.
    """
    if effect.low is None or effect.high is None:
        return None
    line = math.log if effect.scale is Scale.RATIO else float
    estimate, low, high = line(effect.estimate), line(effect.low), line(effect.high)
    least, most = line(effect.margin_low), line(effect.margin_high)
    below, above = estimate - low, high - estimate  # how far the interval reaches
    if estimate > most:
        short = below / (estimate - most)
    elif estimate < least:
        short = above / (least - estimate)
    elif least < estimate < most:
        short = max(below / (estimate - least), above / (most - estimate))
    else:
        return None
    more = math.ceil(blocks * (short**2 - 1))
    return max(1, more) if more <= MOST_MORE_BLOCKS else None


def extent(effect: Effect, unit: str) -> str:
    """The interval in words: ``17 % to 29 % lower``, ``from 15 % lower to 5 % higher``."""
    low, high = effect.low, effect.high
    if low is None and high is None:
        return "anything"
    if low is None or high is None:
        size, side = _end(low if high is None else high or 0.0, effect.scale, unit)
        return f"{size} {side} at the {'least' if high is None else 'most'}".replace("  ", " ")
    (first, side), (last, other) = (_end(end, effect.scale, unit) for end in (low, high))
    if (first, side) == (last, other):
        return f"{first} {side}".rstrip()
    if side != other:
        return f"from {first} {side} to {last} {other}".replace("  ", " ")
    nearer, farther = (first, last) if side == "higher" else (last, first)
    return f"{nearer} to {farther} {side}"


def margin_words(effect: Effect, unit: str) -> str:
    """The margin in words: ``5 %``, ``20 ms``, ``5 percentage points``."""
    if effect.scale is Scale.RATIO:
        return f"{_number(100 * (effect.margin_high - 1))} %"
    if effect.scale is Scale.SHARE:
        return f"{_number(100 * effect.margin_high)} percentage points"
    return f"{_number(effect.margin_high)} {unit}".rstrip()


def _end(value: float | None, scale: Scale, unit: str) -> tuple[str, str]:
    """How far from no difference, and to which side: ``("29 %", "lower")``."""
    size, per = (value or 0.0), unit
    if scale is Scale.RATIO:
        size, per = 100 * (size - 1), "%"
    elif scale is Scale.SHARE:
        size, per = 100 * size, "percentage points"
    if abs(size) < _TINY * 100:
        return "no different", ""
    return f"{_number(abs(size))} {per}".rstrip(), "higher" if size > 0 else "lower"


def _number(value: float) -> str:
    """Two figures, or all of a number that is larger: ``0.31``, ``4.2``, ``17``, ``1,530``."""
    return f"{value:,.0f}" if value >= 99.5 else f"{value:.2g}"
