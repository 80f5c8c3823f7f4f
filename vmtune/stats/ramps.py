"""Whether values changed at once or by and by.

A slow change is found as one step or as some in one direction, at places that mean nothing. So
steps in one direction are held against a ramp: a level, a straight way to another
level, and that level. It is taken for a ramp if that explains the ranks better, with a price for
each place and level that is fitted (a place costs more, for it is chosen among many), and lasts
for :data:`LEAST_RAMP` runs or more.

Zhang, N. R., & Siegmund, D. O. (2007). A modified Bayes information criterion with applications to
the analysis of comparative genomic hybridization data. Biometrics 63.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from vmtune.stats.ranks import Floats, doubled_midranks

LEAST_RAMP = 10
_STEP_COSTS = 3
_RAMP_COSTS = 5
_PLACES = 40


@dataclass(frozen=True, slots=True)
class Level:
    """A change of level.

    :param at: the index of the first value that is changed.
    :param until: the index of the first value at the new level: *at*, or later for a ramp.
    """

    at: int
    until: int


def levels(values: Floats, cuts: Sequence[int]) -> list[Level]:
    """The steps at *cuts*, those that are a ramp together as one."""
    found: list[Level] = []
    groups = _one_way(values, cuts)
    for place, group in enumerate(groups):
        begin = groups[place - 1][-1] if place else 0
        end = groups[place + 1][0] if place + 1 < len(groups) else len(values)
        ramp = _ramp(values[begin:end], [cut - begin for cut in group])
        if ramp is None:
            found += [Level(cut, cut) for cut in group]
        else:
            found.append(Level(begin + ramp.at, begin + ramp.until))
    return found


def _one_way(values: Floats, cuts: Sequence[int]) -> list[list[int]]:
    """Neighbouring cuts whose segments' medians move in one direction."""
    ends = [0, *cuts, len(values)]
    medians = [float(np.median(values[first:beyond])) for first, beyond in pairwise(ends)]
    groups: list[list[int]] = []
    last = 0.0
    for cut, (before, after) in zip(cuts, pairwise(medians), strict=True):
        way = math.copysign(1.0, after - before)
        if groups and way == last:
            groups[-1].append(cut)
        else:
            groups.append([cut])
        last = way
    return groups


def _ramp(values: Floats, cuts: Sequence[int]) -> Level | None:
    ranks = doubled_midranks(values).astype(np.float64)
    length = len(ranks)
    ends = [0, *cuts, length]
    by_steps = sum(float(ranks[a:b].var()) * (b - a) for a, b in pairwise(ends))
    best, found = math.inf, None
    places = np.unique(np.linspace(0, length - 1, min(length, _PLACES)).round().astype(int))
    about = ranks - ranks.mean()
    time = np.arange(length)
    for first in places:
        for last in places[places >= first + LEAST_RAMP]:
            way = np.clip((time - first) / (last - first), 0.0, 1.0)
            way -= way.mean()
            left = float((about**2).sum() - (about @ way) ** 2 / (way @ way))
            if left < best:
                best, found = left, Level(int(first) + 1, int(last))
    tiny = 1e-9 * float((about**2).sum())
    price = math.log(length)
    gain = length * math.log((by_steps + tiny) / (best + tiny)) if found else -math.inf
    return found if gain > price * (_RAMP_COSTS - _STEP_COSTS * len(cuts)) else None
