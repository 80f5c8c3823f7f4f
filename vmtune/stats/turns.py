"""Whether two arms took turns, or one ran after the other.

A machine's speed drifts. If all of A ran and then all of B, what changed in between cannot be told
from what B is: a drift of 20 % gives a confident wrong verdict in 34 to 97 % of such comparisons.
No test of the values helps; only the order of the runs does. Arms took turns if the order changes
from one arm to the other at least as often as in the mean of random orders (Wald and Wolfowitz's
number of runs), and neither arm is on the whole the later one: of the pairs of a run of A and one
of B, B's is the later in a third to two thirds.

Wald, A., & Wolfowitz, J. (1940). On a test whether two samples are from the same population. Ann.
Math. Statist. 11.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from vmtune.stats.model import Sample

_MOST_APART = 1 / 3


def took_turns(a: Sequence[float], b: Sequence[float]) -> bool:
    """Whether the arms' runs, by when each began, alternate often enough to be compared."""
    if not a or not b:
        return False
    order = [arm for _, arm in sorted([*((at, 0) for at in a), *((at, 1) for at in b)])]
    stretches = 1 + sum(one != other for one, other in pairwise(order))
    expected = 1 + 2 * len(a) * len(b) / (len(a) + len(b))
    later = sum((y > x) - (y < x) for x in a for y in b) / (len(a) * len(b))
    return stretches >= int(expected) and abs(later) <= _MOST_APART


def in_turns(a: Sample, b: Sample) -> bool:
    """Whether it is known of all runs when they began, and the arms took turns."""
    times = [[o.at_s for o in sample.observations if o.at_s is not None] for sample in (a, b)]
    known = all(len(t) == len(s.observations) for t, s in zip(times, (a, b), strict=True))
    return known and took_turns(*times)
