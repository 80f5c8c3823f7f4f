"""The Hodges-Lehmann shift between two arms, and its interval.

Unpaired, all differences ``b - a``; paired, all Walsh averages ``(d_i + d_j) / 2`` with i <= j of
the differences d within blocks. The estimate is their median. The interval's ends are the rank-th
smallest and the rank-th largest of them, with the rank from the exact null distribution
(:func:`~vmtune.stats.ranks.unpaired_cut`, :func:`~vmtune.stats.ranks.paired_cut`): exactly the
shifts that the rank test does not reject. It assumes no shape: only that the arms' distributions
are shifted (on logs: scaled) copies, or that differences within blocks are symmetric. With ties
the closed interval holds the shift at least as often.

A value need not be known exactly. A run that did not converge took *more* than its limit, and a
rounded one stands for a span. Each value is therefore a span from low to high, each difference
too, and the interval runs from the low differences' end to the high differences' end. Whatever
the true values in the spans are, their interval lies within this one, so it holds the shift at
least as often as promised, and only becomes wider.

All functions take arrays whose last axis is the runs, and work on many experiments at once.

Hodges, J. L., & Lehmann, E. L. (1963). Estimates of location based on rank tests. Ann. Math.
Statist. 34. Bauer, D. F. (1972). Constructing confidence sets using rank statistics. JASA 67.
Manski, C. F. (2003). Partial identification of probability distributions (spans as bounds).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vmtune.stats.ranks import Cut, Floats, Integers, paired_cut, unpaired_cut
from vmtune.stats.studentised import LEAST_RUNS, studentised_rank


@dataclass(frozen=True, slots=True)
class Spans:
    """Values that are known to lie from *low* to *high*; *near* is what was read.

    *low* and *high* are the very array *near* where all values are known exactly.
    """

    near: Floats
    low: Floats
    high: Floats

    @property
    def exact(self) -> bool:
        """All values are known exactly."""
        return self.low is self.near and self.high is self.near

    @classmethod
    def known(cls, values: Floats) -> Spans:
        """Values that are known exactly."""
        return cls(values, values, values)

    def log(self) -> Spans:
        """The spans' logarithms. A span that reaches down to 0 has no lower end."""
        if self.exact:
            return Spans.known(np.log(self.near))
        with np.errstate(divide="ignore"):
            low = np.log(np.maximum(self.low, 0.0))
        return Spans(np.log(self.near), low, np.log(self.high))


@dataclass(frozen=True, slots=True)
class Shift:
    """By how much B lies above A, for each experiment.

    :param estimate: from what was read; *estimate_low* to *estimate_high* is where it lies for
        certain.
    :param low: the interval's ends, infinite where there is none; for *cut*'s level.
    :param rank: of the end *low* among the differences, of each experiment; 0 where there is none.
    """

    estimate: Floats
    estimate_low: Floats
    estimate_high: Floats
    low: Floats
    high: Floats
    cut: Cut
    rank: Integers


def shift(a: Spans, b: Spans, *, paired: bool, confidence: float) -> Shift:
    """Estimate and interval; paired values stand at the same place in both arms."""
    if paired:
        cut = paired_cut(a.near.shape[-1], confidence)
        near = _walsh(b.near - a.near)
        if a.exact and b.exact:
            return _of(near, near, near, cut)
        return _of(near, _walsh(b.low - a.high), _walsh(b.high - a.low), cut)
    sizes = a.near.shape[-1], b.near.shape[-1]
    cut = unpaired_cut(*sizes, confidence) if min(sizes) >= LEAST_RUNS else Cut(0, 0.0)
    near = _pairwise(a.near, b.near)
    ranks = None
    if cut.rank:
        studentised = studentised_rank(a.near, b.near, np.median(near, axis=-1), confidence)
        ranks = np.minimum(cut.rank, studentised)
        if ranks.min() < cut.rank:
            cut = Cut(cut.rank, confidence)
    if a.exact and b.exact:
        return _of(near, near, near, cut, ranks)
    return _of(near, _pairwise(a.high, b.low), _pairwise(a.low, b.high), cut, ranks)


def _pairwise(a: Floats, b: Floats) -> Floats:
    differences = b[..., None, :] - a[..., :, None]
    return np.reshape(differences, (*differences.shape[:-2], -1))


def _walsh(differences: Floats) -> Floats:
    first, second = np.triu_indices(differences.shape[-1])
    return (differences[..., first] + differences[..., second]) / 2


def _of(near: Floats, low: Floats, high: Floats, cut: Cut, ranks: Integers | None = None) -> Shift:
    if ranks is not None:
        return _sorted(near, low, high, cut, ranks)
    count = near.shape[-1]
    middle = ((count - 1) // 2, count // 2)
    least, most = (cut.rank - 1, count - cut.rank) if cut.rank else (0, count - 1)
    places = sorted({least, *middle, most})
    exact = low is near and high is near
    near = np.partition(near, places, axis=-1)
    if exact:
        low = high = near
    else:
        low, high = (np.partition(each, places, axis=-1) for each in (low, high))
    nothing = np.full(near.shape[:-1], np.inf)
    return Shift(
        _median(near, middle),
        _median(low, middle),
        _median(high, middle),
        low[..., least] if cut.rank else -nothing,
        high[..., most] if cut.rank else nothing,
        cut,
        np.full(near.shape[:-1], cut.rank, dtype=np.int64),
    )


def _sorted(near: Floats, low: Floats, high: Floats, cut: Cut, ranks: Integers) -> Shift:
    """:func:`_of` with a rank of each experiment's own."""
    count = near.shape[-1]
    middle = ((count - 1) // 2, count // 2)
    ordered = np.sort(near, axis=-1)
    below = ordered if low is near else np.sort(low, axis=-1)
    above = ordered if high is near else np.sort(high, axis=-1)
    place = ranks[..., None]
    return Shift(
        _median(ordered, middle),
        _median(below, middle),
        _median(above, middle),
        np.take_along_axis(below, place - 1, axis=-1)[..., 0],
        np.take_along_axis(above, count - place, axis=-1)[..., 0],
        cut,
        ranks,
    )


def _median(ordered: Floats, middle: tuple[int, int]) -> Floats:
    first, second = middle
    half: Floats = (ordered[..., first] + ordered[..., second]) / 2
    return half
