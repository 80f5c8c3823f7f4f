"""Early signs in histories of which the truth is known: how soon a step gives one, how often there
is one without a step, and what is attainable. Tables for ``stats_sim``.

What is attainable is computed for somebody who knows all but whether there was a step: by Neyman
and Pearson's lemma the likelihood ratio of the 3 runs is the best test, and what it errs at 90 %
power every other method does, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from tests.perf.verdicts.stats_histories import HISTORIES, Row, all_seen, random_of, share
from tests.perf.verdicts.stats_histories import otava as otava_share
from tests.support.benchmarks.histories import (
    NOISES,
    contaminated,
    heavy_tailed,
    history,
    normal,
    quiet,
    with_outliers,
)
from vmtune.stats.early import Strength
from vmtune.stats.ranks import Floats

STEP = 1.2
NEWEST = 3
CONFIRMED_AFTER = (5, 10, 20)
_EXPERIMENTS = 200_000
_POWER = 0.9
_FOLLOWED = 70  # looks at one history, from run 31 to run 100


def signs() -> list[Row]:
    """A step of 20 %, looked at after 1, 2 and 3 runs: a sign, or a change, at any of them."""
    rows: list[Row] = []
    for name, noise in (("5 %", quiet), ("10 %", normal), ("10 %, outliers", with_outliers)):
        for before in (30, 50, 97):
            runs = before + max(CONFIRMED_AFTER)
            random = random_of("sign", name, before)
            series = [history(random, noise, runs, step=STEP, at=before) for _ in range(HISTORIES)]
            looks = [all_seen([each[: before + seen] for each in series])
                     for seen in range(1, NEWEST + 1)]  # fmt: skip
            by_history = list(zip(*looks, strict=True))
            confirmed = {
                f"confirmed_after_{after}": share(
                    [look.changes for look in all_seen([each[: before + after] for each in series])]
                )
                for after in CONFIRMED_AFTER
            }
            rows.append(
                {
                    "spread": name,
                    "before": before,
                    "signalled": share([any(x.changes or x.sign for x in h) for h in by_history]),
                    "signalled_clearly": share(
                        [any(x.changes or x.sign is Strength.CLEAR for x in h) for h in by_history]
                    ),
                    "otava": otava_share([each[: before + NEWEST] for each in series], before),
                    **confirmed,
                }
            )
    return rows


def false_signs() -> list[Row]:
    """Nothing changed: signs in 100 looks, one after each run, and how many begin in 100 runs."""
    rows: list[Row] = []
    count = max(10, HISTORIES // 20)
    for name, noise in NOISES.items():
        for again in (0.0, 0.3, 0.5, 0.7):
            random = random_of("followed", name, again)
            series = [history(random, noise, 100, again=again) for _ in range(count)]
            looks = all_seen(
                [each[: 101 - back] for each in series for back in range(_FOLLOWED, 0, -1)]
            )
            followed = [
                [look.sign for look in looks[first : first + _FOLLOWED]]
                for first in range(0, len(looks), _FOLLOWED)
            ]
            row: Row = {"noise": name, "autocorrelation": again}
            for what, strengths in (("any", list(Strength)), ("clear", [Strength.CLEAR])):
                shown = [[sign in strengths for sign in each] for each in followed]
                row[f"{what}_at_a_look"] = share([flag for each in shown for flag in each])
                begin = sum(
                    now and not last for each in shown for last, now in pairwise([False, *each])
                )
                row[f"{what}_begin_per_100_runs"] = 100 * begin / len(looks)
            rows.append(row)
    return rows


def attainable() -> list[Row]:
    """By noise, what part of any 3 runs without a step the best test calls one, if it finds 90 %
    of steps of 20 %, up and down."""
    densities: dict[str, tuple[Callable[..., Floats], Callable[[Floats], Floats]]] = {
        "quiet": (quiet, lambda x: _normal(x, 0.05)),
        "normal": (normal, lambda x: _normal(x, 0.1)),
        "outliers": (with_outliers, _with_outliers),
        "contaminated": (contaminated, lambda x: 0.9 * _normal(x, 0.1) + 0.1 * _normal(x, 0.5)),
        "heavy-tailed": (heavy_tailed, _student),
    }
    rows: list[Row] = []
    for name, (noise, density) in densities.items():
        random = random_of("attainable", name)
        runs = noise(random, NEWEST * _EXPERIMENTS, 0.0).reshape(_EXPERIMENTS, NEWEST)
        rows.append({"noise": name, "autocorrelation": 0.0, "false": _least_false(runs, density)})
    for again in (0.3, 0.5):
        size = math.log(STEP) / 0.1
        # After whitening by the run before, the step is whole once and then less.
        apart = size * math.sqrt((1 + (NEWEST - 1) * (1 - again) ** 2) / (1 - again**2))
        false = math.erfc((apart - 1.2816) / math.sqrt(2))
        rows.append({"noise": "normal", "autocorrelation": again, "false": false})
    return rows


def _least_false(runs: Floats, density: Callable[[Floats], Floats]) -> float:
    both = 0.0
    for step in (math.log(STEP), -math.log(STEP)):
        without, after = (
            np.log(density(values - step) / density(values)).sum(axis=1)
            for values in (runs, runs + step)
        )
        both += float((without >= np.quantile(after, 1 - _POWER)).mean())
    return both


def _normal(values: Floats, spread: float) -> Floats:
    found: Floats = np.exp(-((values / spread) ** 2) / 2) / (spread * math.sqrt(2 * math.pi))
    return found + 1e-300


def _student(values: Floats) -> Floats:
    """Of 3 degrees of freedom, times 0.1; up to a factor."""
    found: Floats = (1 + (values / 0.1) ** 2 / 3) ** -2
    return found


def _with_outliers(values: Floats) -> Floats:
    places = np.linspace(-1.5, 3.0, 2001)
    slow = np.log(np.linspace(1.5, 3.0, 301))
    known = 0.9 * _normal(places, 0.1) + 0.1 * _normal(places[:, None] - slow, 0.1).mean(axis=1)
    found: Floats = np.interp(values, places, known)
    return found


def worst_sign(rows: Sequence[Row], what: str) -> float:
    """The largest share of looks that show a sign."""
    return max(float(str(row[f"{what}_at_a_look"])) for row in rows)
