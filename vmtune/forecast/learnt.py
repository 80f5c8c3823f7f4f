"""Bounds learnt from forecasts that are compared with what happened.

Split conformal prediction on the ratio of what happened to each bound that was computed (Romano,
Patterson, Candes, Conformalized Quantile Regression, NeurIPS 2019, with ratios for differences,
since times and sizes span decades): bounds by the order statistics of n earlier ratios hold the
next value with the probability that is meant, whatever the distribution, as long as the migrations
are exchangeable. That is so from 19 on for 90 %; fewer say nothing about it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from vmtune.forecast.ranges import Range

BEYOND = 0.05
"""The share of values meant to be beyond each bound."""
FEWEST = 19
"""With fewer the order statistic that is needed does not exist: 1 / BEYOND - 1."""
_LEAST = 0.5
"""A value below counts as this: of a silence of 0 ms there is no ratio."""

Case = tuple[Range, float]
"""What was computed, and what happened, in the same unit."""


def factors(cases: Sequence[Case]) -> Range | None:
    """By what to multiply the lower bound, the likely value and the upper bound; None where there
    are fewer than :data:`FEWEST`. The likely value's is the median."""
    if len(cases) < FEWEST:
        return None
    place = math.floor((len(cases) + 1) * BEYOND + 1e-9) - 1
    lower = sorted(_ratio(happened, computed.low) for computed, happened in cases)
    likely = [_ratio(happened, computed.likely) for computed, happened in cases]
    upper = sorted(_ratio(happened, computed.high) for computed, happened in cases)
    return Range(lower[place], statistics.median(likely), upper[-1 - place])


def learnt(alike: Sequence[Case], every: Sequence[Case], prior: Range) -> Range:
    """The factors by those *alike*, of the same profile and hosts, where they are enough; else by
    *every* case, else the *prior*."""
    for cases in (alike, every):
        found = factors(cases)
        if found is not None:
            return found
    return prior


def _ratio(happened: float, computed: float) -> float:
    return max(_LEAST, happened) / max(_LEAST, computed)
