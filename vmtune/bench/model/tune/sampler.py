"""Optuna, the one place that knows it: which settings to try next, and what they depend on.

An Optuna study is built anew from the records each time (ask and tell), so that they stay the only
truth. Its sampler is the tree-structured Parzen estimator with constraints, and with groups: a
setting that has no effect without another is drawn only with it.

Import this module only where it computes: Optuna takes a tenth of a second to load.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    IntDistribution,
)
from optuna.exceptions import ExperimentalWarning
from optuna.importance import PedAnovaImportanceEvaluator
from optuna.trial import FrozenTrial, create_trial

from vmtune.bench.model.tune.estimates import Estimate
from vmtune.bench.model.tune.records import TrialRecord
from vmtune.bench.model.tune.space import Dimension, Space, settle
from vmtune.bench.model.tune.spec import StudySpec
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.model.tunables.tunable import Value

STARTUP = 10
"""Trials that are drawn at random before there is anything to learn from."""
_PROBES = 3
_BEST_SHARE = 0.25
"""Of the trials, those that importance compares with all."""
_WORSE = 1.0
"""What a trial without a value is worse than all others by."""


class Sampler:
    """Draws settings; the same for the same spec, records and *number*."""

    def __init__(
        self,
        spec: StudySpec,
        trials: Sequence[TrialRecord],
        found: Mapping[int, Estimate],
        tunables: TunableRegistry,
        number: int,
    ) -> None:
        assert spec.space is not None and spec.seed is not None, "the spec is not ready"
        self._space: Space = spec.space
        self._base = spec.base
        self._tunables = tunables
        self._goals = len(spec.goal.goals)
        self._study = self._begin((spec.seed * 1_000_003 + number) % (1 << 32))
        worst = [
            max((one.values[place] for one in found.values() if one.values), default=0.0) + _WORSE
            for place in range(self._goals)
        ]
        for trial in trials:
            known = found.get(trial.number)
            params = self._params(trial.settings)
            if known is not None and params:
                self._study.add_trial(self._frozen(params, known, worst))

    def _begin(self, seed: int) -> optuna.Study:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            sampler = optuna.samplers.TPESampler(
                seed=seed, multivariate=True, group=True, n_startup_trials=STARTUP
            )
        return optuna.create_study(sampler=sampler, directions=["minimize"] * self._goals)

    def _frozen(
        self, params: Mapping[str, Value], known: Estimate, worst: Sequence[float]
    ) -> FrozenTrial:
        kept = known.violation if math.isfinite(known.violation) else 1.0
        return create_trial(
            params=dict(params),
            distributions={name: distribution(self._space[name]) for name in params},
            values=list(known.values or worst),
            constraints={"beyond": 1.0 if known.pruned else kept},
        )

    def _params(self, settings: Mapping[str, Value]) -> dict[str, Value]:
        """The point of the space that *settings* are; empty where they are none."""
        found: dict[str, Value] = {}
        for name, dimension in self._space.items():
            value = settings.get(name)
            if value is None:
                if not self._active(name, dimension, found):
                    continue
                value = self._base.get(name, self._tunables[name].default)
            if value is None or not dimension.holds(value):
                return {}
            found[name] = _on_step(dimension, value)
        return found

    def _active(self, name: str, dimension: Dimension, chosen: Mapping[str, Value]) -> bool:
        """Whether it makes a difference which of its values is set beside *chosen*."""
        kept = sum(
            name in settle({**chosen, name: value}, self._base)[0]
            for value in dimension.points(_PROBES)
        )
        return kept > 1

    def draws(self) -> Iterator[dict[str, Value]]:
        """Settings to try, without end; some may break rules, or have been tried."""
        while True:
            trial = self._study.ask()
            chosen: dict[str, Value] = {}
            for name, dimension in self._space.items():
                if self._active(name, dimension, chosen):
                    chosen[name] = _drawn(trial, name, dimension)
            yield chosen

    def importance(self) -> dict[str, float]:
        """How much each tunable's values differ between the best quarter of the trials and all of
        them, for the first goal, as a share of all tunables together; the largest first. By
        PED-ANOVA (Watanabe et al., IJCAI 2023), each tunable among the trials that have it; 0 where
        these are too few.
        """
        trials = self._study.trials
        found: dict[str, float] = {}
        for name in self._space:
            having = [one for one in trials if name in one.params]
            found[name] = self._importance_of(name, having) if len(having) > STARTUP else 0.0
        total = sum(found.values())
        shares = {name: value / total if total else 0.0 for name, value in found.items()}
        return dict(sorted(shares.items(), key=lambda each: -each[1]))

    def _importance_of(self, name: str, having: Sequence[FrozenTrial]) -> float:
        if len({one.params[name] for one in having}) < 2:
            return 0.0
        of_it = optuna.create_study(directions=["minimize"] * self._goals)
        for one in having:
            of_it.add_trial(one)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            warnings.simplefilter("ignore", UserWarning)  # that less is better, which it is
            evaluator = PedAnovaImportanceEvaluator(target_quantile=_BEST_SHARE)
            found = evaluator.evaluate(of_it, [name], target=lambda one: one.values[0])
        return found[name]


def distribution(dimension: Dimension) -> BaseDistribution:
    """What Optuna calls it."""
    bounds = dimension.bounds
    if bounds is None:
        return CategoricalDistribution(dimension.choices)
    return IntDistribution(*bounds, log=dimension.log, step=dimension.step)


def _on_step(dimension: Dimension, value: Value) -> Value:
    bounds = dimension.bounds
    if bounds is None or not isinstance(value, int):
        return value
    return bounds[0] + round((value - bounds[0]) / dimension.step) * dimension.step


def _drawn(trial: optuna.Trial, name: str, dimension: Dimension) -> Value:
    bounds = dimension.bounds
    if bounds is not None:
        return trial.suggest_int(name, *bounds, log=dimension.log, step=dimension.step)
    value = trial.suggest_categorical(name, dimension.choices)
    assert isinstance(value, bool | int | str)
    return value
