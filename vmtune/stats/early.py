"""An early sign of a change: what the last runs of a history look like, before a change can be
confirmed.

A change is confirmed from :data:`~vmtune.stats.steps.LEAST_SEGMENT` runs on, and a small one
later. Somebody who waits for that has a slower host for a week of nightly runs. So the last 2 and
the last 3 runs are held against those since the last change: their mean score must be farther out
than the noise makes it, and than most such means before it. Scores are distances from the median,
cut off at 2.5 standard deviations, so that one outlier gives no clear sign, and two seldom. The
noise's standard deviation is estimated robustly, its autocorrelation from the runs before, and
taken a standard error higher. Where most values are the same one there is no spread; then counts
how seldom others were.

It errs, and how often is a choice, so there are two strengths with an error rate each
(:data:`FALSE_AT_MOST`): of histories without a change so many show one when they are looked at
once (``tests/perf/verdicts/stats_signs.py`` simulates it). It is provisional, and never a verdict:
later runs confirm it or it goes away.

No method does much better within 3 runs. A step of 20 % of runs that are spread by 10 % moves the
sum of 3 runs by 3.2 of its standard deviations. A test that knows the level, the spread, the place
and the size of the step, and finds 90 % of the steps both up and down, has by Neyman and Pearson's
lemma a false sign in at least 6 % of any 3 runs without one (10 % where one run in ten is an
outlier, 16 to 20 % with an autocorrelation of 0.3 to 0.5). Spread by 5 % it is 1 in 2 million.

Huber, P. J. (1964). Robust estimation of a location parameter. Ann. Math. Statist. 35. Neyman, J.,
& Pearson, E. S. (1933). On the problem of the most efficient tests of statistical hypotheses.
Phil. Trans. R. Soc. A 231.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from vmtune.stats.ranks import Floats

LEAST_BEFORE = 15
"""Runs without a change that the last ones are held against."""
NEWEST = (2, 3)
"""How many of the last runs are looked at."""
_CUT_OFF = 2.5
_TINY = 1e-9
_TO_SIGMA = 1.4826
_CENTRAL = (0.15, 0.85)
_CENTRAL_SPAN = 2.073  # of a normal distribution, in standard deviations


class Strength(StrEnum):
    """How far the last runs lie apart."""

    FAINT = "faint"
    """Finds nine in ten steps of two standard deviations within 3 runs, and errs often."""
    CLEAR = "clear"
    """Finds half of these, and nearly all of twice the size."""


FALSE_AT_MOST = {Strength.FAINT: 0.16, Strength.CLEAR: 0.035}
"""The share of histories without a change that show a sign at a look, of the worst shape of noise;
the clear ones count among the faint ones too."""
_LIMITS = {Strength.FAINT: (1.4, 0.95), Strength.CLEAR: (2.7, 0.99)}
"""In standard deviations of the mean; and the share of the means before that it is beyond."""


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
    strength: Strength


def early_sign(values: Floats) -> EarlySign | None:
    """Whether the last of the values since the last change show the next one; the clearest sign
    of those that they give."""
    scores = np.log(values) if len(values) and values.min() > 0 else values
    places = [len(values) - newest for newest in NEWEST if len(values) - newest >= LEAST_BEFORE]
    apart = {at: _apart(scores[:at], scores[at:]) for at in places}
    for strength in (Strength.CLEAR, Strength.FAINT):
        at = max(places, key=lambda place: apart[place][strength], default=0)
        if at and apart[at][strength] > 1:
            before, after = (float(np.median(part)) for part in (values[:at], values[at:]))
            return EarlySign(at, before, after, strength)
    return None


def _apart(before: Floats, last: Floats) -> dict[Strength, float]:
    """How far the last lie from those before, by the limit of each strength."""
    count, newest = len(before), len(last)
    middle = float(np.median(before))
    low, high = np.quantile(before, _CENTRAL)
    scale = max(_TO_SIGMA * float(np.median(np.abs(before - middle))), (high - low) / _CENTRAL_SPAN)
    scale *= 1 + 1.5 / count
    if not scale:
        return _unlike_most(before - middle, last - middle)
    scores = np.clip((before - middle) / scale, -_CUT_OFF, _CUT_OFF)
    size = abs(float(np.clip((last - middle) / scale, -_CUT_OFF, _CUT_OFF).mean()))
    about = scores - scores.mean()
    again = float((about[1:] * about[:-1]).sum() / (about**2).sum())
    again = min(0.95, max(0.0, again + 1 / math.sqrt(count)))
    places = np.arange(newest)
    variance = (again ** np.abs(places[:, None] - places)).mean() + (1 + again) / (
        1 - again
    ) / count
    means = np.abs(_means(scores, newest))
    return {
        strength: (size - _TINY)
        / max(limit * math.sqrt(variance), float(np.quantile(means, farther_than)))
        for strength, (limit, farther_than) in _LIMITS.items()
    }


def _unlike_most(before: Floats, last: Floats) -> dict[Strength, float]:
    """Likewise where most values are the same one, and have no spread: how rare as many others on
    one side are, one after the other. At least as many in a row before are no rarity."""
    side = np.sign(last[0])
    if not side or (np.sign(last) != side).any():
        return dict.fromkeys(Strength, 0.0)
    others = np.sign(before) == side
    in_a_row = np.convolve(others, np.ones(len(last)), "valid") == len(last)
    rarity = ((others.sum() + 1) / (len(before) + 2)) ** len(last)
    return {
        strength: 0.0 if in_a_row.any() else (1 - farther_than) / rarity
        for strength, (_, farther_than) in _LIMITS.items()
    }


def _means(scores: Floats, size: int) -> Floats:
    """The means of all so many in a row."""
    sums = np.concatenate(([0.0], scores.cumsum()))
    means: Floats = (sums[size:] - sums[:-size]) / size
    return means
