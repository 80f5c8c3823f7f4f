"""Whether values have more than one mode: times do when some runs need a round more.

Hartigan's dip is the least distance between the values' distribution function and any unimodal
one. It is found by closing in on the modal interval: between its ends lie the greatest convex
minorant and the least concave majorant; where they are farthest apart the interval is cut, until
they are no farther apart than the function already is from the unimodal one outside of it.

The flag is raised when the dip is above what 95 % of samples of the uniform distribution show,
of all unimodal ones the one with the largest dips. So it errs in at most 5 % of samples with one
mode, skewed and heavy-tailed ones included (``tests/perf/verdicts/stats_sim.py`` simulates it). It
finds two clear clusters if the smaller has more than a fifth of the values: 3 of 10, 5 of 20.

Hartigan, J. A., & Hartigan, P. M. (1985). The dip test of unimodality. Ann. Statist. 13.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vmtune.stats.ranks import Floats

LEAST_VALUES = 6
"""With fewer, nothing can be said."""

CRITICAL = {
    6: 0.4035, 7: 0.4235, 8: 0.4355, 9: 0.440, 10: 0.4415, 12: 0.451, 15: 0.460,
    20: 0.470, 30: 0.483, 50: 0.496, 100: 0.511, 200: 0.520, 500: 0.528,
}  # fmt: skip
"""By number of values: what the dip times the root of that number exceeds in 5 % of uniform
samples, of which 10,000 were simulated for each (150,000 up to 30). In between: interpolated."""


def multimodal(values: Floats, resolution: float = 0.0) -> bool | None:
    """Whether one mode is rejected at 5 %; None with fewer than :data:`LEAST_VALUES`.

    :param resolution: the step that the values were rounded to; 0 takes the smallest step
        between two of them. Equal values are spread over it, for they are no modes of their own.
    """
    if len(values) < LEAST_VALUES:
        return None
    spread = _scaled(_spread(np.sort(values), resolution))
    count = len(values)
    critical = np.interp(count, list(CRITICAL), list(CRITICAL.values()))
    return bool(dip(spread) * np.sqrt(count) > critical)


def _scaled(values: Floats) -> Floats:
    """Sorted values from 0 to 1, which changes no dip, rounded to 12 digits: between the smallest
    numbers that there are, slopes would be infinite."""
    span = values[-1] - values[0]
    scaled: Floats = np.round((values - values[0]) / span, 12) if span > 0 else values
    return scaled


def dip(values: Floats) -> float:
    """Hartigan's dip of sorted values, from ``1 / (2 n)`` to 1/4."""
    count = len(values)
    plain: list[float] = values.tolist()
    low, high = 0, count - 1
    farthest = 1.0  # in steps of the distribution function; a step is never hit better
    while low < high:
        convex = _hull(plain, low, high, -1)
        concave = _hull(plain, low, high, 1)
        inside = np.arange(low, high + 1)
        minorant = np.interp(values[inside], values[convex], np.asarray(convex, np.float64))
        majorant = np.interp(values[inside], values[concave], np.asarray(concave, np.float64) + 1)
        gap = majorant - minorant
        at_convex = max(convex, key=lambda place: gap[place - low])
        at_concave = max(concave, key=lambda place: gap[place - low])
        if max(gap[at_convex - low], gap[at_concave - low]) <= farthest:
            break
        if gap[at_convex - low] >= gap[at_concave - low]:
            next_low = at_convex
            next_high = next(place for place in concave if place >= at_convex)
        else:
            next_low = next(place for place in reversed(convex) if place <= at_concave)
            next_high = at_concave
        left = (inside + 1 - minorant)[: next_low - low + 1]
        right = (majorant - inside)[next_high - low :]
        farthest = max(farthest, float(left.max()), float(right.max()))
        if (next_low, next_high) == (low, high):
            break
        low, high = next_low, next_high
    return farthest / (2 * count)


def _hull(values: Sequence[float], low: int, high: int, side: int) -> list[int]:
    """The corners of the lower (-1) or upper (1) hull of the points (value, place)."""
    corners: list[int] = []
    for place in range(low, high + 1):
        while len(corners) > 1:
            first, last = corners[-2], corners[-1]
            turn = (values[last] - values[first]) * (place - first) - (last - first) * (
                values[place] - values[first]
            )
            if side * turn < 0:
                break
            corners.pop()
        corners.append(place)
    return corners


def _spread(ordered: Floats, resolution: float) -> Floats:
    """Equal values spread evenly over the step to which they were rounded."""
    distinct, counts = np.unique(ordered, return_counts=True)
    if len(distinct) == len(ordered):
        return ordered
    step = resolution or float(np.diff(distinct).min(initial=np.inf))
    if np.isinf(step):
        step = 1.0  # all are equal: one mode, however wide
    within = np.arange(len(ordered)) - np.repeat(np.cumsum(counts) - counts, counts)
    places = (within + 0.5) / np.repeat(counts, counts) - 0.5
    spread: Floats = np.repeat(distinct, counts) + step * places
    return spread
