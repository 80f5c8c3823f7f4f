"""Runs that did not succeed: they failed, or were given up at their limit.

Leaving them out praises the arm that fails: those that are left are the easy ones. A run that did
not succeed and has no value counts as worse than every value that was measured in either arm
(Lachin's worst rank). Its value is then a span: from the worst measured one to infinity or, where
higher is better, downwards without an end. Intervals widen to all of it.

What is a lower bound stays one: a run that was given up had been silent for 20 ms, and would have
been for longer. Its caller says so by *censored*.

Lachin, J. M. (1999). Worst-rank score analysis with informatively missing observations in
clinical trials. Controlled Clinical Trials 20.
"""

from __future__ import annotations

from dataclasses import replace

from vmtune.stats.model import Criterion, Direction, Observation, Rates, Sample
from vmtune.stats.rates import rates


def with_worst(a: Sample, b: Sample, criterion: Criterion) -> tuple[Sample, Sample]:
    """Both arms, with runs that did not succeed and have no value as the worst of all.

    Unchanged for shares, for a metric of which neither direction is better, and where nothing was
    measured.
    """
    known = [o.value for o in (*a.observations, *b.observations) if o.value is not None]
    if criterion.share or criterion.direction is Direction.NONE or not known:
        return a, b
    above = criterion.direction is Direction.LOWER
    worst = max(known) if above else min(known)

    def filled(o: Observation) -> Observation:
        lost = o.failed and o.value is None
        return replace(o, value=worst, censored=above, below=not above) if lost else o

    return (
        replace(a, observations=tuple(map(filled, a.observations))),
        replace(b, observations=tuple(map(filled, b.observations))),
    )


def succeeded(a: Sample, b: Sample, confidence: float) -> Rates | None:
    """The shares of runs that succeeded; None where all did, or an arm has no runs."""
    of_a, of_b = (
        (sum(not o.failed for o in sample.observations), len(sample.observations))
        for sample in (a, b)
    )
    if not of_a[1] or not of_b[1] or (of_a[0] == of_a[1] and of_b[0] == of_b[1]):
        return None
    return rates("succeeded", of_a, of_b, confidence)
