"""Simulated histories: one metric of one scenario, run after run, with and without a change."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from vmtune.stats.ranks import Floats

Random = np.random.Generator
LEVEL_MS = 1000.0


def autoregressive(random: Random, runs: int, again: float) -> Floats:
    """Standard normal values of which each resembles the one before by *again*, from 0 to 1."""
    values = random.normal(size=runs)
    for place in range(1, runs):
        values[place] = again * values[place - 1] + np.sqrt(1 - again**2) * values[place]
    return values


def normal(random: Random, runs: int, again: float) -> Floats:
    """A standard deviation of 10 %."""
    return 0.1 * autoregressive(random, runs, again)


def quiet(random: Random, runs: int, again: float) -> Floats:
    """A standard deviation of 5 %."""
    return 0.05 * autoregressive(random, runs, again)


def skewed(random: Random, runs: int, again: float) -> Floats:
    """Half of the time is fixed, the other half lognormal with a sigma of 1."""
    return np.asarray(np.log(0.5 + 0.5 * np.exp(autoregressive(random, runs, again))))


def with_outliers(random: Random, runs: int, again: float) -> Floats:
    """10 %, and one in ten takes half as long again up to three times as long."""
    slow = np.where(random.random(runs) < 0.1, np.log(random.uniform(1.5, 3.0, runs)), 0.0)
    return normal(random, runs, again) + slow


def contaminated(random: Random, runs: int, again: float) -> Floats:
    """10 %, and one in ten lies five times as far from the level, on either side."""
    return normal(random, runs, again) * np.where(random.random(runs) < 0.1, 5.0, 1.0)


def bimodal(random: Random, runs: int, again: float) -> Floats:
    """Three in ten take a round more, at random; about each mode 3 % that wander."""
    return 0.03 * autoregressive(random, runs, again) + 0.25 * (random.random(runs) < 0.3)


def heavy_tailed(random: Random, runs: int, again: float) -> Floats:
    """Student's t with 3 degrees of freedom, times 10 %; wandering normal values stretched to it
    where runs resemble each other."""
    if not again:
        return 0.1 * random.standard_t(3, size=runs)
    values = autoregressive(random, runs, again)
    return np.asarray(0.1 * np.sign(values) * np.abs(values) ** 1.5)


NOISES: Mapping[str, Callable[[Random, int, float], Floats]] = {
    "normal": normal,
    "skewed": skewed,
    "outliers": with_outliers,
    "contaminated": contaminated,
    "bimodal": bimodal,
    "heavy-tailed": heavy_tailed,
}
"""What is added to the logarithm of the level."""


def history(
    random: Random,
    noise: Callable[[Random, int, float], Floats],
    runs: int,
    *,
    again: float = 0.0,
    step: float = 1.0,
    at: int | None = None,
) -> Floats:
    """Times in ms; from run *at* on longer by the factor *step*."""
    logs = noise(random, runs, again)
    if at is not None:
        logs[at:] += np.log(step)
    return np.asarray(LEVEL_MS * np.exp(logs))
