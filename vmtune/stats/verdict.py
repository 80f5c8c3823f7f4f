"""From an effect and its interval to a verdict, by a margin that was fixed before.

====================  ==================================================================
the interval          the verdict
====================  ==================================================================
beyond the margin     better or worse, by the metric's direction
within the margin     equivalent
across a border       inconclusive, with about how many blocks would settle it
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
from vmtune.stats.studentised import LEAST_RUNS

LEAST_PAIRED = 6
"""Blocks: with 5 not even the most extreme outcome has a two-sided p below 0.05."""
LEAST_UNPAIRED = LEAST_RUNS
"""Runs of each arm (:mod:`~vmtune.stats.studentised`)."""
MAX_BLOCKS_NEEDED = 1000
"""Above that "so many blocks" is no advice: no campaign has more."""
_TINY = 1e-12  # borders are reached, although logarithms are rounded


class MarginPosition(IntEnum):
    """Where an interval lies about the margin."""

    BELOW = -1
    WITHIN = 0
    ABOVE = 1
    ACROSS = 2


def positions(
    low: Floats | np.float64, high: Floats | np.float64, least: float, most: float
) -> npt.NDArray[np.int64]:
    """The :class:`MarginPosition` of each interval about the margin from *least* to *most*."""
    return np.select(
        [(low >= least - _TINY) & (high <= most + _TINY), low > most + _TINY, high < least - _TINY],
        [MarginPosition.WITHIN, MarginPosition.ABOVE, MarginPosition.BELOW],
        MarginPosition.ACROSS,
    )


def position_of(effect: Effect) -> MarginPosition:
    """Where an effect's interval lies; across, where it has no end."""
    low = -math.inf if effect.low is None else effect.low
    high = math.inf if effect.high is None else effect.high
    where = positions(np.float64(low), np.float64(high), effect.margin_low, effect.margin_high)
    return MarginPosition(int(where))


def verdict_of(position: MarginPosition, direction: Direction) -> Verdict | None:
    """What the position means; None where neither direction is better."""
    if direction is Direction.NONE:
        return None
    if position is MarginPosition.WITHIN:
        return Verdict.EQUIVALENT
    if position is MarginPosition.ACROSS:
        return Verdict.INCONCLUSIVE
    good = MarginPosition.BELOW if direction is Direction.LOWER else MarginPosition.ABOVE
    return Verdict.BETTER if position is good else Verdict.WORSE


def blocks_needed(effect: Effect, blocks: int) -> int | None:
    """About how many blocks a new campaign needs to settle an inconclusive *effect* of so many, in
    80 % of cases, if the estimate is true.

    What an interval reaches by chance shrinks with the root of the number of blocks; what it
    reaches because values are rounded, or known only as limits, does not. It has to become so
    short that it does not reach the border of the margin that is nearest to the estimate. None if
    the estimate is so near to a border, or the interval so long, that :data:`MAX_BLOCKS_NEEDED`
    would not do, where the interval has no end, and where rounding alone reaches the border.
    """
    if effect.low is None or effect.high is None:
        return None
    line = math.log if effect.scale is Scale.RATIO else float
    estimate, low, high = line(effect.estimate), line(effect.low), line(effect.high)
    least, most = line(effect.margin_low), line(effect.margin_high)
    sure_low = estimate if effect.sure_low is None else line(effect.sure_low)
    sure_high = estimate if effect.sure_high is None else line(effect.sure_high)
    # On each side: how far to the border, what is fixed of it, and what is chance.
    down = (estimate - least, estimate - sure_low, sure_low - low)
    up = (most - estimate, sure_high - estimate, high - sure_high)
    if estimate > most:
        sides, power = [(estimate - most, *down[1:])], _POWER_ONE
    elif estimate < least:
        sides, power = [(least - estimate, *up[1:])], _POWER_ONE
    else:
        sides, power = [down, up], _POWER_BOTH
    if any(distance <= fixed + _TINY for distance, fixed, _ in sides):
        return None
    short = max(power * chance / (distance - fixed) for distance, fixed, chance in sides)
    needed = math.ceil(blocks * short**2)
    return max(LEAST_PAIRED, needed) if needed <= MAX_BLOCKS_NEEDED else None


_POWER_ONE = 1 + 0.8416 / 1.96
"""By how much shorter the interval must be for 80 % power than for half."""
_POWER_BOTH = 1 + 1.2816 / 1.96
"""Likewise where either end may be the one that reaches too far."""


def extent(effect: Effect, unit: str) -> str:
    """The interval in words: ``17 % to 29 % lower``, ``from 15 % lower to 5 % higher``."""
    low, high, figures = effect.low, effect.high, _figures(effect)
    if low is None and high is None:
        return "anything"
    if high is None:
        return _one_end(_end(low, effect.scale, unit, figures), ("higher", "lower"))
    if low is None:
        return _one_end(_end(high, effect.scale, unit, figures), ("lower", "higher"))
    (first, side), (last, other) = (_end(end, effect.scale, unit, figures) for end in (low, high))
    if (first, side) == (last, other):
        return f"{first} {side}".rstrip()
    if side != other:
        return " ".join(f"from {first} {side} to {last} {other}".split())
    nearer, farther = (first, last) if side == "higher" else (last, first)
    return f"{nearer} to {farther} {side}"


def _one_end(end: tuple[str, str], sides: tuple[str, str]) -> str:
    """An interval without an end to the first of *sides*."""
    (size, side), (open_, closed) = end, sides
    if not side:
        return f"no {closed}"
    if side == open_:
        return f"at least {size} {side}"
    return f"at most {size} {side}, or any amount {open_}"


def margin_words(effect: Effect, unit: str) -> str:
    """The margin in words: ``a factor of 1.2 (17 % lower to 20 % higher)``, ``20 ms``,
    ``5 percentage points``."""
    figures = _figures(effect)
    if effect.scale is Scale.RATIO:
        low, high = (
            _end(end, effect.scale, unit, figures)[0]
            for end in (effect.margin_low, effect.margin_high)
        )
        if effect.margin_high - 1 < _TINY:
            return "0 %"
        return f"a factor of {effect.margin_high:.6g} ({low} lower to {high} higher)"
    if effect.scale is Scale.SHARE:
        return f"{_number(100 * effect.margin_high, figures)} percentage points"
    return f"{_number(effect.margin_high, figures)} {unit}".rstrip()


def _figures(effect: Effect) -> int:
    """How many figures tell the interval's ends from the margin's, and from all of A."""
    ends = [end for end in (effect.low, effect.high) if end is not None]
    borders = [effect.margin_low, effect.margin_high]
    for figures in range(2, _MOST_FIGURES):
        told = {border: _end(border, effect.scale, "", figures) for border in borders}
        alike = any(
            _end(end, effect.scale, "", figures) == words and abs(end - border) > _TINY
            for end in ends
            for border, words in told.items()
        )
        all_of_it = effect.scale is Scale.RATIO and any(
            _end(end, effect.scale, "", figures)[0] == "100 %" and end < 1 for end in ends
        )
        if not alike and not all_of_it:
            return figures
    return _MOST_FIGURES


_MOST_FIGURES = 16  # what a number has
_LEAST_RATIO = 1e-6


def _end(value: float | None, scale: Scale, unit: str, figures: int) -> tuple[str, str]:
    """How far from no difference, and to which side: ``("29 %", "lower")``."""
    size, per = (value or 0.0), unit
    if scale is Scale.RATIO:
        if 0 < size < _LEAST_RATIO:
            return f"more than {100 * (1 - _LEAST_RATIO):.6g} %", "lower"
        size, per = 100 * (size - 1), "%"
    elif scale is Scale.SHARE:
        size, per = 100 * size, "percentage points"
    if abs(size) < _TINY * 100:
        return "no different", ""
    return f"{_number(abs(size), figures)} {per}".rstrip(), "higher" if size > 0 else "lower"


def _number(value: float, figures: int) -> str:
    """So many figures, or all before the point of a number that has more: ``0.31``, ``1,530``."""
    if value <= 0:
        return "0"
    decimals = max(0, figures - 1 - math.floor(math.log10(value)))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
