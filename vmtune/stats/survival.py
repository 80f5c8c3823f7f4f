"""Times of which some are known only to be longer than a limit.

A migration that was cancelled at its limit did not take that long, it would have taken longer:
its time is right-censored. Dropping it would praise the arm that failed to converge, and so would
taking the limit as its time. The logrank test compares the arms' whole curves of "still
migrating": at each time at which a run ended it compares the runs of B that ended with those
expected if both arms were alike.

Mantel, N. (1966). Evaluation of survival data and two new rank order statistics arising in its
consideration. Cancer Chemotherapy Reports 50.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import numpy.typing as npt

from vmtune.stats.model import Survival
from vmtune.stats.ranks import Floats

Flags = npt.NDArray[np.bool_]


def logrank(a: Floats, a_censored: Flags, b: Floats, b_censored: Flags) -> Survival:
    """The test of B against A, censored values being their limits."""
    from scipy import stats  # noqa: PLC0415 - takes a second

    with warnings.catch_warnings():  # without any variance its statistic is 0 / 0
        warnings.simplefilter("ignore", RuntimeWarning)
        found = stats.logrank(
            stats.CensoredData(uncensored=b[~b_censored], right=b[b_censored]),
            stats.CensoredData(uncensored=a[~a_censored], right=a[a_censored]),
        )
    lowest_limit = min(a[a_censored].min(initial=np.inf), b[b_censored].min(initial=np.inf))
    highest = max(a[~a_censored].max(initial=-np.inf), b[~b_censored].max(initial=-np.inf))
    limits_highest = bool(lowest_limit >= highest)
    statistic = float(found.statistic)
    if math.isnan(statistic) or statistic == 0:
        return Survival(1.0, None, limits_highest)
    return Survival(float(found.pvalue), statistic > 0, limits_highest)
