"""The ratio of the arms' medians, beside the effect that verdicts are about.

The effect is the median of the ratios of runs: how much more one run of B takes than one of A,
typically. Where the arms have different shapes (one steady, the other with two modes) that is not
the ratio of their medians. Both are kept, each with its own interval.

Each arm's median has the interval of its order statistics (distribution-free); the two are put
together as by Zou and Donner's MOVER. Runs of a block are not independent, which makes it rather
too wide.

Zou, G. Y., & Donner, A. (2008). Construction of confidence limits about effect measures: a
general approach. Statistics in Medicine 27.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from vmtune.stats.ranks import Floats

Ends = tuple[Floats, Floats, Floats]


def difference_of_medians(a: Floats, b: Floats, confidence: float) -> Ends:
    """B's median less A's, and the interval's ends; the last axis is the runs.

    Ends are infinite with fewer than 6 runs of an arm. Give logarithms for a ratio.
    """
    (at_a, low_a, high_a), (at_b, low_b, high_b) = (_median(v, confidence) for v in (a, b))
    at = at_b - at_a
    low = at - np.hypot(at_b - low_b, high_a - at_a)
    high = at + np.hypot(high_b - at_b, at_a - low_a)
    return at, low, high


def _median(values: Floats, confidence: float) -> Ends:
    size = values.shape[-1]
    ordered = np.sort(values, axis=-1)
    at = np.median(values, axis=-1)
    rank = _rank(size, confidence)
    if not rank:
        nothing = np.full(at.shape, np.inf)
        return at, -nothing, nothing
    return at, ordered[..., rank - 1], ordered[..., size - rank]


@lru_cache(maxsize=256)
def _rank(size: int, confidence: float) -> int:
    """The largest rank for which both tails of so many tosses have at most the rest."""
    rank, below = 0, 0.0
    while rank < size // 2:
        below += math.exp(
            math.lgamma(size + 1) - math.lgamma(rank + 1) - math.lgamma(size - rank + 1)
            - size * math.log(2)
        )  # fmt: skip
        if 2 * below > 1 - confidence:
            break
        rank += 1
    return rank
