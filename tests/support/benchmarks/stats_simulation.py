"""Simulated experiments of which the truth is known, many at once.

A batch goes through the very functions that a comparison goes through
(:func:`vmtune.stats.shift.shift`, :func:`vmtune.stats.verdict.positions`), which work on many
experiments at once; that a comparison of each comes to the same is tested apart.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vmtune.stats.model import Observation, Sample
from vmtune.stats.ranks import Floats
from vmtune.stats.schedule import schedule
from vmtune.stats.shift import Shift, Spans, shift
from vmtune.stats.verdict import MarginPosition, positions

EXPERIMENTS = 2000
SEED = int(os.environ.get("SEED", "0"))
SIZES = (6, 10, 20)
CONFIDENCE = 0.95
BASE_MS = 1000.0

Random = np.random.Generator
Draw = Callable[[Random, tuple[int, ...]], Floats]


def lognormal(random: Random, size: tuple[int, ...]) -> Floats:
    """Times spread by 15 %, to the right more than to the left."""
    return BASE_MS * np.exp(0.15 * random.normal(size=size))


def steady(random: Random, size: tuple[int, ...]) -> Floats:
    """Times so much alike that arms can be found equivalent."""
    return BASE_MS * np.exp(0.02 * random.normal(size=size))


def outliers(random: Random, size: tuple[int, ...]) -> Floats:
    """One in ten takes half as long again up to three times as long."""
    slow = np.where(random.random(size) < 0.1, random.uniform(1.5, 3.0, size), 1.0)
    return BASE_MS * slow * np.exp(0.1 * random.normal(size=size))


def quantised(random: Random, size: tuple[int, ...]) -> Floats:
    """Clusters: some migrations take a round of pre-copy more, or two."""
    return rounds(random, size) * np.exp(0.02 * random.normal(size=size))


def rounds(random: Random, size: tuple[int, ...]) -> Floats:
    """Nothing but rounds: most values are equal to others."""
    return BASE_MS * (1 + 0.25 * random.poisson(0.8, size))


SHAPES: Mapping[str, Draw] = {
    "lognormal": lognormal,
    "steady": steady,
    "outliers": outliers,
    "quantised": quantised,
    "rounds": rounds,
}


@dataclass(frozen=True)
class Batch:
    """Experiments of two arms, B being A's distribution times *ratio*."""

    a: Floats
    b: Floats
    ratio: float
    paired: bool

    def shift(self, resolution: float = 0.0) -> Shift:
        """The intervals of all experiments, on logs."""
        a, b = (
            Spans(v, v - resolution / 2, v + resolution / 2) if resolution else Spans.known(v)
            for v in (self.a, self.b)
        )
        return shift(a.log(), b.log(), paired=self.paired, confidence=CONFIDENCE)

    def samples(self, number: int) -> tuple[Sample, Sample]:
        """One experiment, as a comparison takes it."""
        return (
            Sample.of("a", self.a[number].tolist(), blocks=self.paired),
            Sample.of("b", self.b[number].tolist(), blocks=self.paired),
        )


def batch(shape: str, size: int, *, paired: bool, ratio: float = 1.0, seed: int = 0) -> Batch:
    """:data:`EXPERIMENTS` of them; in blocks that differ among themselves, when paired."""
    random = np.random.default_rng([SEED + seed, size, paired, list(SHAPES).index(shape)])
    a, b = SHAPES[shape](random, (2, EXPERIMENTS, size))
    block = np.exp(0.1 * random.normal(size=(EXPERIMENTS, size))) if paired else 1.0
    return Batch(a * block, b * block * ratio, ratio, paired)


def drifting(size: int, *, blocks: bool, drift: float, seed: int = 0) -> Batch:
    """Two equal arms on a host that becomes slower or faster by *drift* while they run, and
    wanders besides.

    :param blocks: in randomised blocks and paired; otherwise all of A and then all of B.
    """
    random = np.random.default_rng([SEED + seed, size, blocks])
    runs = 2 * size
    wander = np.cumsum(0.01 * random.normal(size=(EXPERIMENTS, runs)), axis=1)
    whole = np.log1p(drift) * random.choice([-1.0, 1.0], (EXPERIMENTS, 1))
    way = whole * np.linspace(0, 1, runs)
    times = lognormal(random, (EXPERIMENTS, runs)) * np.exp(way + wander)
    if not blocks:
        return Batch(times[:, :size], times[:, size:], 1.0, paired=False)
    first_is_a = np.array(
        [
            [slot.arm == "a" for slot in schedule("ab", size, seed=number, warm_ups=0)[::2]]
            for number in range(EXPERIMENTS)
        ]
    )
    first, second = times[:, ::2], times[:, 1::2]
    return Batch(
        np.where(first_is_a, first, second), np.where(first_is_a, second, first), 1.0, paired=True
    )


def limited(batch: Batch, limit: float, number: int) -> tuple[Sample, Sample]:
    """One experiment in which runs end at *limit*, converged or not."""
    a, b = (
        Sample(
            name,
            tuple(
                Observation(min(value, limit), value > limit, block if batch.paired else None)
                for block, value in enumerate(values[number].tolist(), 1)
            ),
        )
        for name, values in (("a", batch.a), ("b", batch.b))
    )
    return a, b


def positions_of(found: Shift, margin: float) -> npt.NDArray[np.int64]:
    """Where the intervals lie about the margin."""
    border = float(np.log1p(margin))
    return positions(found.low, found.high, -border, border)


def covered(found: Shift, ratio: float) -> float:
    """The share of intervals that hold the true ratio."""
    truth, tiny = np.log(ratio), 1e-9  # for a ratio that is hit, but for rounding
    return float(((found.low <= truth + tiny) & (found.high >= truth - tiny)).mean())


def false_verdicts(found: Shift, ratio: float, margin: float) -> float:
    """The share of "better", "worse" and "equivalent" that is not so."""
    where = positions_of(found, margin)
    beyond = abs(np.log(ratio)) > np.log1p(margin) + 1e-9
    if not beyond:
        return float(np.isin(where, (MarginPosition.BELOW, MarginPosition.ABOVE)).mean())
    wrong = MarginPosition.BELOW if ratio > 1 else MarginPosition.ABOVE
    return float(np.isin(where, (MarginPosition.WITHIN, wrong)).mean())
