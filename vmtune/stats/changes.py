"""When a metric changed, over many runs of one scenario in the order of time.

The values are replaced by their ranks, so that neither shape nor outliers matter, and the series
is cut where that pays: so that the sum of squares about the segments' mean ranks, plus a price
for each cut, is the smallest that there is (optimal partitioning). The price decides how often
a series without a change is cut. It depends on nothing but the length of the series: it is what
the best single cut of a shuffled series gains in all but 1 % of 2,000 shufflings. So of a hundred
histories in which nothing changed about one shows a change.

What lies before and after a cut is then compared like two arms, unpaired, between the
neighbouring cuts. That comparison says how large the change is and whether it matters; its test
is not to be read as one, for the cut was put where the difference is.

Jackson, B., et al. (2005). An algorithm for optimal partitioning of data on an interval. IEEE
Signal Processing Letters 12. Lung-Yut-Fong, A., Lévy-Leduc, C., & Cappé, O. (2015).
Homogeneity and change-point detection tests for multivariate data using rank statistics. J. SFdS
156. Truong, C., Oudre, L., & Vayatis, N. (2020). Selective review of offline change point
detection methods. Signal Processing 167.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from vmtune.errors import InvalidInput
from vmtune.stats.compare import compare
from vmtune.stats.model import MOST_RUNS, Comparison, Criterion, Design, Observation, Sample
from vmtune.stats.ranks import Floats, doubled_midranks

LEAST_POINTS = 20
LEAST_SEGMENT = 5
"""Runs between two changes: fewer cannot be distinguished from outliers."""
FALSE_ALARMS = 0.01
_SHUFFLINGS = 2000
_SEED = 1


@dataclass(frozen=True, slots=True)
class Change:
    """A place where the values changed.

    :param at: the index of the first value after it.
    :param comparison: what came after, compared with what was before, between the
        neighbouring changes.
    """

    at: int
    comparison: Comparison


def changes(observations: Sequence[Observation], criterion: Criterion) -> tuple[Change, ...]:
    """Where the values changed, in the order of time; those without a value do not count.

    :raise InvalidInput: too few values, or too many.
    """
    places = [place for place, o in enumerate(observations) if o.value is not None]
    if not LEAST_POINTS <= len(places) <= MOST_RUNS:
        raise InvalidInput(
            f"{len(places)} values; changes are looked for in {LEAST_POINTS} to {MOST_RUNS:,}",
            field="values",
            code="too_few" if len(places) < LEAST_POINTS else "too_many",
            remedy="run the scenario more often"
            if len(places) < LEAST_POINTS
            else "choose a shorter time",
        )
    usable = [observations[place] for place in places]
    cuts = _cuts(np.array([o.value for o in usable], dtype=np.float64))
    found = []
    for (start, cut), (_, end) in pairwise(pairwise([0, *cuts, len(usable)])):
        before, after = (
            Sample(name, tuple(usable[part]))
            for name, part in (("before", slice(start, cut)), ("after", slice(cut, end)))
        )
        found.append(Change(places[cut], compare(before, after, criterion, design=Design.UNPAIRED)))
    return tuple(found)


def _cuts(values: Floats) -> list[int]:
    """The indices at which segments begin, without the first."""
    ranks = doubled_midranks(values).astype(np.float64)
    if not ranks.std():
        return []
    scores = (ranks - ranks.mean()) / ranks.std()
    return _partition(scores, _price(len(values)))


def _partition(scores: Floats, price: float) -> list[int]:
    """The cuts at which squares about the segments' means, and a price for each, sum up to least.

    By dynamic programming: the best of the first n is the best of some fewer and a last segment.
    """
    length = len(scores)
    places = np.arange(length + 1)
    sums = np.concatenate(([0.0], scores.cumsum()))
    best = np.full(length + 1, np.inf)
    best[0] = 0.0
    begins = np.zeros(length + 1, dtype=np.intp)
    for end in range(LEAST_SEGMENT, length + 1):
        starts = places[: end - LEAST_SEGMENT + 1]
        # Squares about a mean: the sum of squares, which is in every partition, less this.
        gains = (sums[end] - sums[starts]) ** 2 / (end - starts)
        costs = best[starts] + price - gains
        begins[end] = costs.argmin()
        best[end] = costs[begins[end]]
    cuts: list[int] = []
    at = int(begins[length])
    while at:
        cuts.insert(0, at)
        at = int(begins[at])
    return cuts


@lru_cache(maxsize=64)
def _price(length: int) -> float:
    """What one cut of a shuffled series gains in all but :data:`FALSE_ALARMS` of shufflings."""
    scores = np.arange(length, dtype=np.float64)
    scores = (scores - scores.mean()) / scores.std()
    random = np.random.default_rng(_SEED)
    sizes = np.arange(LEAST_SEGMENT, length - LEAST_SEGMENT + 1)
    best = [
        float(
            (
                random.permutation(scores).cumsum()[sizes - 1] ** 2
                * length
                / (sizes * (length - sizes))
            ).max()
        )
        for _ in range(_SHUFFLINGS)
    ]
    return float(np.quantile(best, 1 - FALSE_ALARMS))
