"""Shares of runs: how many converged, how many have a value at all.

Boschloo's test is exact and finds more than Fisher's: it takes Fisher's p as its statistic and
looks for the share at which that is least surprising. The interval of the difference is
Newcombe's, from the two arms' Wilson intervals.

Boschloo, R. D. (1970). Raised conditional level of significance for the 2 x 2 table when testing
the equality of two probabilities. Statistica Neerlandica 24. Newcombe, R. G. (1998). Interval
estimation for the difference between independent proportions. Statistics in Medicine 17.
Wilson, E. B. (1927). Probable inference, the law of succession, and statistical inference. JASA 22.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from vmtune.stats.model import Rates

_MAX_BOSCHLOO = 100
"""Runs of an arm; above that Fisher's test takes over, which is cautious but quick."""


def rates(what: str, a: tuple[int, int], b: tuple[int, int], confidence: float) -> Rates:
    """Compare two shares, each a count of a number of runs that is not 0."""
    low, high = _newcombe(a, b, NormalDist().inv_cdf((1 + confidence) / 2))
    return Rates(what, *a, *b, b[0] / b[1] - a[0] / a[1], low, high, _p(a, b))


@lru_cache(maxsize=1024)
def _p(a: tuple[int, int], b: tuple[int, int]) -> float:
    if a[0] * b[1] == b[0] * a[1]:
        return 1.0
    from scipy.stats import boschloo_exact, fisher_exact  # noqa: PLC0415 - takes a second

    table = np.array([[a[0], b[0]], [a[1] - a[0], b[1] - b[0]]])
    if max(a[1], b[1]) <= _MAX_BOSCHLOO:
        return min(1.0, float(boschloo_exact(table).pvalue))
    return min(1.0, float(fisher_exact(table).pvalue))


def _newcombe(a: tuple[int, int], b: tuple[int, int], z: float) -> tuple[float, float]:
    (share_a, low_a, high_a), (share_b, low_b, high_b) = wilson(*a, z), wilson(*b, z)
    difference = share_b - share_a
    return (
        difference - math.hypot(share_b - low_b, high_a - share_a),
        difference + math.hypot(high_b - share_b, share_a - low_a),
    )


def wilson(count: int, runs: int, z: float) -> tuple[float, float, float]:
    """The share of *count* of *runs*, and its interval of *z* standard errors to either side."""
    share = count / runs
    weight = 1 + z * z / runs
    middle = (share + z * z / (2 * runs)) / weight
    half = z / weight * math.sqrt(share * (1 - share) / runs + z * z / (4 * runs * runs))
    return share, max(0.0, middle - half), min(1.0, middle + half)
