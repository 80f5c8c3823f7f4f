"""Settings drawn by Optuna's tree-structured Parzen estimator, from what was told of others."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from vmtune.bench.model.tune.space import Dimension, Space
from vmtune.bench.model.tune.spec import Settings

_STARTUP = 8


def sampled(
    space: Space, told: Sequence[tuple[Settings, float]], seed: int, most: int
) -> Iterator[dict[str, bool | int | str]]:
    """At most so many settings, one after the other; less of the score is better."""
    import optuna  # noqa: PLC0415 - takes most of a second to load

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Optuna calls experimental is its best sampler
        sampler = optuna.samplers.TPESampler(
            seed=seed, n_startup_trials=_STARTUP, multivariate=True, constant_liar=True
        )
    study = optuna.create_study(sampler=sampler)
    ranges = {name: _range(optuna, one) for name, one in space.items()}
    for settings, score in told:
        inside = {n: v for n, v in settings.items() if n in space and space[n].holds(v)}
        full = {name: inside.get(name, _usual(one)) for name, one in space.items()}
        study.add_trial(optuna.trial.create_trial(params=full, distributions=ranges, value=score))
    for _ in range(most):
        yield study.ask(ranges).params


def _usual(one: Dimension) -> bool | int | str:
    return one.points(3)[0]


def _range(optuna: Any, one: Dimension) -> Any:  # any: Optuna's
    if one.low is None or one.high is None:
        return optuna.distributions.CategoricalDistribution(one.choices)
    if one.log:
        return optuna.distributions.IntDistribution(one.low, one.high, log=True)
    high = one.low + (one.high - one.low) // one.step * one.step
    return optuna.distributions.IntDistribution(one.low, high, step=one.step)
