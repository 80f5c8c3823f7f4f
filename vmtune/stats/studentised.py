"""Arms of unequal spread, shape or size, without blocks: Brunner and Munzel's variance.

Mann and Whitney's null distribution supposes arms of one shape. If the smaller arm is the less
steady one, its test finds a difference between equal medians in 10 to 24 % of cases instead of
5 %. Brunner and Munzel estimate the variance of P(A < B) from each arm's own placements, with
Welch's degrees of freedom. Here the interval is as wide as the wider of both: the rank of its ends
is the smaller of Mann and Whitney's and of Brunner and Munzel's at the estimate; and likewise the
p-value is the larger. It is never more than all differences between the arms: that such an
interval misses has at most 2 * 0.5^n chance with *n* runs of the arm that has fewer, 3 % with 6.

Brunner, E., & Munzel, U. (2000). The nonparametric Behrens-Fisher problem: asymptotic theory and
a small-sample approximation. Biometrical Journal 42. Neubert, K., & Brunner, E. (2007). A
studentized permutation test for the non-parametric Behrens-Fisher problem. CSDA 51.
"""

from __future__ import annotations

import numpy as np

from vmtune.stats.ranks import Floats, Integers

LEAST_RUNS = 6
"""Of each arm: with 4 of an unsteady arm and a steady other one, all of one arm lie on one side of
the other in 12 % of cases by chance."""
_EQUAL = 1e-12
"""Differences up to this share of the largest are due to rounding."""


def studentised_rank(a: Floats, b: Floats, estimate: Floats, confidence: float) -> Integers:
    """Which of the sorted pairwise differences is the interval's lower end, from 1.

    :param a: the last axis is the runs; before it, experiments.
    :param estimate: the shift at which the arms are held against each other.
    """
    from scipy.special import stdtrit  # noqa: PLC0415 - takes a while

    _, error, freedom = _placements(a, b - estimate[..., None])
    reach = stdtrit(freedom, (1 + confidence) / 2) * error
    pairs = a.shape[-1] * b.shape[-1]
    ranks: Integers = np.maximum(1, np.floor(pairs * (0.5 - reach) + 0.5)).astype(np.int64)
    return ranks


def studentised_p(a: Floats, b: Floats) -> float:
    """How likely a share of pairs with a larger B, so large or larger, is without a difference.

    0 where every value of B is above every one of A, which has no variance to judge by.
    """
    if min(a.shape[-1], b.shape[-1]) < 2:
        return 1.0
    from scipy.special import stdtr  # noqa: PLC0415 - takes a while

    share, error, freedom = _placements(a, b)
    if error <= 0:
        return 0.0 if share > 0.5 else 1.0
    return float(stdtr(freedom, (0.5 - share) / error))


def _placements(a: Floats, b: Floats) -> tuple[Floats, Floats, Floats]:
    """The share of pairs in which B is larger, its standard error, its degrees of freedom."""
    with np.errstate(invalid="ignore"):  # infinite ones are equal: their difference is not a number
        apart = b[..., None, :] - a[..., :, None]
    size = np.where(np.isfinite(apart), np.abs(apart), 0.0).max(axis=(-2, -1), keepdims=True)
    above = (apart > _EQUAL * size) + 0.5 * ~(np.abs(apart) > _EQUAL * size)
    of_a, of_b = above.mean(axis=-1), above.mean(axis=-2)
    part_a = of_a.var(axis=-1, ddof=1) / a.shape[-1]
    part_b = of_b.var(axis=-1, ddof=1) / b.shape[-1]
    variance = part_a + part_b
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = variance**2 / (part_a**2 / (a.shape[-1] - 1) + part_b**2 / (b.shape[-1] - 1))
    freedom = np.where(variance > 0, freedom, 1.0)
    return above.mean(axis=(-2, -1)), np.sqrt(variance), freedom
