"""Where a series takes a step, if it does: the likelihood ratio of a step among noise that
remembers.

Runs one after the other resemble each other: what a host does lasts longer than a run. Such noise
wanders, and a method that takes it for independent finds changes that are none. So the series
is modelled as an autoregression of the first order, and a step after which it goes on about
another level. The statistic is twice the gain of the log-likelihood by the best step, with the
autocorrelation estimated anew for each step: one that is there does not count as autocorrelation,
as it does where that is estimated first. A straight line is tried too, for a slow change among
little noise looks like nothing but autocorrelation to a step; it is cut where the best step is.

It is taken of scores, not of values, and the larger excess counts. Ranks neither know shape nor
outliers. Biweight scores leave far values out, which finds a tenth among outliers
that ranks do not find; where the far values are the step itself, ranks find it.

A step counts above a limit that grows with the autocorrelation that is left besides it and depends
on the number of runs (:data:`LIMITS`). The limits were set so that of 2,000 simulated series
without a change, normal, skewed, with outliers and with two modes, at most 5 % show one, for
autocorrelations of 0 to 0.5. Where the runs besides the step have two modes it must exceed
:data:`FOR_MODES` more. (``tests/perf/verdicts/stats_trends.py`` simulates it with other seeds.)

A level that lasts for a while only hides from a single step in the whole series. So parts of it
are searched too, in a fixed pattern, with a limit that is higher by :data:`FOR_PARTS`.

Andrews, D. W. K. (1993). Tests for parameter instability and structural change with unknown
change point. Econometrica 61. Robbins, M., Gallagher, C., Lund, R., & Aue, A. (2011). Mean shift
testing in correlated data. J. Time Ser. Anal. 32. Kovács, S., et al. (2023). Seeded binary
segmentation. Biometrika 110. Beaton, A. E., & Tukey, J. W. (1974). The fitting of power series.
Technometrics 16 (the biweight).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from vmtune.stats.modes import multimodal
from vmtune.stats.ranks import Floats, doubled_midranks

LEAST_SEGMENT = 5
"""Runs between two changes: fewer cannot be distinguished from outliers."""
LEAST_LENGTH = 12
"""Runs in which a step is looked for."""
LIMITS = {12: 17.0, 16: 13.5, 20: 11.7, 30: 12.0, 50: 10.9, 100: 10.5, 200: 10.6, 400: 11.3,
          2000: 12.5}  # fmt: skip
"""By number of runs: what the statistic must exceed where no autocorrelation is left."""
BY_AUTOCORRELATION = {0.0: 0.0, 0.05: 2.0, 0.1: 4.0, 0.3: 8.0, 0.5: 10.0, 0.7: 12.0,
                      0.95: 14.0}  # fmt: skip
"""How much more it must exceed, by the autocorrelation that is left."""
FOR_PARTS = 10.0
FOR_MODES = 3.0
"""How much more where the runs about the step are of two kinds: which kind comes next is drawn
anew each time, and hides what autocorrelation the runs of one kind have."""
_AUTOCORRELATIONS = np.arange(0, 0.96, 0.05)[:, None]
_PART_SHRINKS = 1 / math.sqrt(2)
_LEAST_PART = 20
_BIWEIGHT = 4.685  # times the scale: 95 % efficient for normal values
_MOST_FAR = 0.2  # more are no outliers but a mode of their own, and not to be left out
_TO_SIGMA = 1.4826  # a normal distribution's standard deviation by median absolute deviation
_SHUFFLINGS = 2000
_SHUFFLED_ABOVE = 0.01
_SEED = 1


@dataclass(frozen=True, slots=True)
class Step:
    """A series' best step.

    :param at: the index of the first value after it.
    :param excess: by how much the statistic is above its limit; no step if it is not above 0.
    :param autocorrelation: what is left besides the step, 0 to 0.95.
    """

    at: int
    excess: float
    autocorrelation: float


def steps(values: Floats, stricter: float = 0.0) -> list[int]:
    """The indices at which the level becomes another, in order.

    :param stricter: what the limits are raised by.
    """
    found = sorted(_split(values, 0, stricter))
    # A cut that its neighbours explain is none; another one may be meant nearby.
    while found:
        ends = [0, *found, len(values)]
        again = [
            best_step(values[first:beyond]) for first, beyond in zip(ends, ends[2:], strict=False)
        ]
        weakest = min(range(len(again)), key=lambda place: again[place].excess)
        if again[weakest].excess > stricter:
            moved = [ends[place] + each.at for place, each in enumerate(again)]
            apart = np.diff([0, *moved, len(values)]) >= LEAST_SEGMENT
            return moved if apart.all() else found
        del found[weakest]
    return found


def best_step(values: Floats) -> Step:
    """The step that explains most of at least :data:`LEAST_LENGTH` values."""
    ranks = doubled_midranks(values).astype(np.float64)
    if len(values) < LEAST_LENGTH or not ranks.std():
        return Step(0, -math.inf, 0.0)
    found = _likeliest(ranks)
    middle = float(np.median(values))
    scale = _TO_SIGMA * float(np.median(np.abs(values - middle)))
    if scale > 0:
        far = (values - middle) / scale / _BIWEIGHT
        scores = np.where(np.abs(far) < 1, far * (1 - far**2) ** 2, 0.0)
        if scores.std() and float((np.abs(far) >= 1).mean()) <= _MOST_FAR:
            found = max(found, _likeliest(scores), key=lambda step: step.excess)
    if found.excess > 0 and not _unlike_shuffled(ranks):
        return Step(found.at, -math.inf, found.autocorrelation)
    if 0 < found.excess <= FOR_MODES and _in_modes(values, found.at):
        return replace(found, excess=found.excess - FOR_MODES)
    return found


def limit(length: int, autocorrelation: float) -> float:
    """What the statistic must exceed."""
    by_length = np.interp(math.log(length), np.log(list(LIMITS)), list(LIMITS.values()))
    more = np.interp(autocorrelation, list(BY_AUTOCORRELATION), list(BY_AUTOCORRELATION.values()))
    return float(by_length + more)


def _split(values: Floats, begin: int, stricter: float) -> list[int]:
    if len(values) < LEAST_LENGTH:
        return []
    best = best_step(values)
    at, excess = best.at, best.excess
    for first, beyond in _parts(len(values)):
        part = best_step(values[first:beyond])
        if part.excess - FOR_PARTS > max(0.0, excess):
            at, excess = first + part.at, part.excess - FOR_PARTS
    if excess <= stricter:
        return []
    return [
        *_split(values[:at], begin, stricter),
        begin + at,
        *_split(values[at:], begin + at, stricter),
    ]


def _parts(length: int) -> Iterator[tuple[int, int]]:
    """Parts of ever shorter length, each beginning in the middle of another at the latest."""
    size = length * _PART_SHRINKS
    while size >= _LEAST_PART:
        count = 2 * math.ceil(length / size) - 1
        for place in range(count):
            first = round(place * (length - size) / (count - 1))
            yield first, min(length, first + math.ceil(size))
        size *= _PART_SHRINKS


def _likeliest(scores: Floats) -> Step:
    """The likelihood is profiled over a grid of autocorrelations, all steps at once: after
    whitening, a step is one regressor besides the level."""
    length = len(scores)
    r = _AUTOCORRELATIONS
    first = np.sqrt(1 - r**2)
    rest = 1 - r
    white = np.concatenate([first * scores[:1], scores[1:] - r * scores[:-1]], axis=1)
    level = first[:, 0] ** 2 + (length - 1) * rest[:, 0] ** 2
    on_level = first[:, 0] * white[:, 0] + rest[:, 0] * white[:, 1:].sum(axis=1)
    unexplained = (white**2).sum(axis=1) - on_level**2 / level
    # The regressor of a step at k is 0 before k, 1 at k and 1 - r after it.
    places = np.arange(LEAST_SEGMENT, length - LEAST_SEGMENT + 1)
    tails = white[:, ::-1].cumsum(axis=1)[:, ::-1]
    after = length - 1 - places
    on_step = (1 - rest) * white[:, places] + rest * tails[:, places]
    step = 1 + rest**2 * after
    both = rest + rest**2 * after
    explained = (on_step - on_level[:, None] / level[:, None] * both) ** 2 / (
        step - both**2 / level[:, None]
    )
    time = np.arange(length) - (length - 1) / 2
    line = np.concatenate([first * time[:1], time[1:] - r * time[:-1]], axis=1)
    line -= (
        (first * line[:, :1] + rest * line[:, 1:].sum(axis=1, keepdims=True))
        / level[:, None]
        * np.concatenate([first, np.broadcast_to(rest, (len(r), length - 1))], axis=1)
    )
    by_line = (line * white).sum(axis=1) ** 2 / (line**2).sum(axis=1)
    least = np.finfo(np.float64).eps * float((scores**2).sum())
    without = _log_likelihood(np.maximum(unexplained, least)[:, None], length)
    explained = np.concatenate([explained, by_line[:, None]], axis=1)
    changed = _log_likelihood(np.maximum(unexplained[:, None] - explained, least), length)
    profile = changed.max(axis=0)
    place, likeliest = int(profile[:-1].argmax()), int(profile.argmax())
    left = float(r[int(changed[:, likeliest].argmax()), 0])
    gain = 2 * float(profile[likeliest] - without.max())
    return Step(int(places[place]), gain - limit(length, left), left)


def _log_likelihood(unexplained: Floats, length: int) -> Floats:
    likelihood: Floats = -length / 2 * np.log(unexplained) + np.log(1 - _AUTOCORRELATIONS**2) / 2
    return likelihood


def _in_modes(values: Floats, at: int) -> bool:
    """Whether the values have more than one mode besides the step."""
    parts = (values[:at], values[at:])
    return bool(multimodal(np.concatenate([part - np.median(part) for part in parts])))


def _unlike_shuffled(ranks: Floats) -> bool:
    """Where more than half of the values are equal, whether the few others lie together more than
    in all but 1 % of shuffled series: of them no model of noise knows how they lie."""
    _, counts = np.unique(ranks, return_counts=True)
    if counts.max() <= len(ranks) / 2:
        return True
    return _best_gain(ranks) > _price(tuple(counts.tolist()))


@lru_cache(maxsize=64)
def _price(counts: tuple[int, ...]) -> float:
    """What one cut gains in all but 1 % of shufflings of ranks that occur so many times."""
    ranks = np.repeat(np.arange(len(counts), dtype=np.float64), counts)
    ranks = doubled_midranks(ranks).astype(np.float64)
    random = np.random.default_rng(_SEED)
    best = [_best_gain(random.permutation(ranks)) for _ in range(_SHUFFLINGS)]
    return float(np.quantile(best, 1 - _SHUFFLED_ABOVE))


def _best_gain(scores: Floats) -> float:
    length = len(scores)
    sizes = np.arange(LEAST_SEGMENT, length - LEAST_SEGMENT + 1)
    sums = ((scores - scores.mean()) / scores.std()).cumsum()[sizes - 1]
    return float((sums**2 * length / (sizes * (length - sizes))).max())
