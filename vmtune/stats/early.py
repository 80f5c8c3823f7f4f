"""An early sign of a change: what the last runs of a history look like, before a change can be
confirmed.

A change is confirmed from :data:`~vmtune.stats.steps.LEAST_SEGMENT` runs on. Somebody who waits
for that has a slower host for a week of nightly runs. So the last 2 and the last 3 runs are held
against those since the last change: their mean score must be farther out than the noise makes it,
and than 99 % of all such means before it. Scores are distances from the median, cut off at 2.5
standard deviations, so that one outlier gives no sign, and two seldom. The noise's
standard deviation is estimated robustly, its autocorrelation from the runs before, and taken a
standard error higher.

It errs: of histories without a change up to 2.5 % show a sign when they are looked at (once;
``tests/perf/stats_trends.py`` simulates it). It is provisional, and never a verdict: later runs
confirm it or it goes away. A step of 20 % gives it within 3 runs nearly always where runs are
spread by 5 %, and in half of the cases by 10 %.

Huber, P. J. (1964). Robust estimation of a location parameter. Ann. Math. Statist. 35.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from vmtune.stats.ranks import Floats

LEAST_BEFORE = 15
"""Runs without a change that the last ones are held against."""
NEWEST = (2, 3)
"""How many of the last runs are looked at."""
_CUT_OFF = 2.5
_LIMIT = 2.7
_FARTHER_THAN = 0.99
_TO_SIGMA = 1.4826
_CENTRAL = (0.15, 0.85)
_CENTRAL_SPAN = 2.073  # of a normal distribution, in standard deviations


@dataclass(frozen=True, slots=True)
class EarlySign:
    """The last runs lie apart from those before.

    :param at: the index of the first of them.
    :param before: their median's counterpart: the median of those since the last change.
    :param after: their own median.
    """

    at: int
    before: float
    after: float


def early_sign(values: Floats) -> EarlySign | None:
    """Whether the last of the values since the last change show the next one."""
    scale_of = np.log(values) if len(values) and values.min() > 0 else values
    strongest, found = 0.0, None
    for newest in NEWEST:
        at = len(values) - newest
        if at < LEAST_BEFORE:
            continue
        strength = _strength(scale_of[:at], scale_of[at:])
        if strength > strongest:
            strongest = strength
            found = EarlySign(at, float(np.median(values[:at])), float(np.median(values[at:])))
    return found


def _strength(before: Floats, last: Floats) -> float:
    """How much the last lie beyond the limit, as a ratio; 0 if they do not."""
    count, newest = len(before), len(last)
    middle = float(np.median(before))
    low, high = np.quantile(before, _CENTRAL)
    scale = max(_TO_SIGMA * float(np.median(np.abs(before - middle))), (high - low) / _CENTRAL_SPAN)
    scale *= 1 + 1.5 / count
    if not scale:
        return 0.0
    scores = np.clip((before - middle) / scale, -_CUT_OFF, _CUT_OFF)
    size = abs(float(np.clip((last - middle) / scale, -_CUT_OFF, _CUT_OFF).mean()))
    about = scores - scores.mean()
    again = float((about[1:] * about[:-1]).sum() / (about**2).sum())
    again = min(0.95, max(0.0, again + 1 / math.sqrt(count)))
    places = np.arange(newest)
    variance = (again ** np.abs(places[:, None] - places)).mean() + (1 + again) / (
        1 - again
    ) / count
    bar = max(
        _LIMIT * math.sqrt(variance),
        float(np.quantile(np.abs(_means(scores, newest)), _FARTHER_THAN)),
    )
    return size / bar if size > bar + 1e-9 else 0.0


def _means(scores: Floats, size: int) -> Floats:
    """The means of all so many in a row."""
    sums = np.concatenate(([0.0], scores.cumsum()))
    means: Floats = (sums[size:] - sums[:-size]) / size
    return means
