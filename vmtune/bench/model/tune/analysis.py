"""What the trials of a study say so far: of each tunable's importance, and which trade the goals
against each other best. The search's own figures, and no verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vmtune.bench.model.settable import settable
from vmtune.bench.model.tune.estimates import estimates, pareto_front
from vmtune.bench.model.tune.records import TrialRecord
from vmtune.bench.model.tune.spec import StudySpec
from vmtune.model.tunables.registry import TunableRegistry

LEAST_TRIALS = 12
"""With a value, so that an importance can be told: three make the best quarter."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """What trials say.

    :param front: the numbers of the trials that keep the constraints and that no other such trial
        beats in every goal, the best first; with one goal there is one.
    :param importance: by tunable, the share (0 to 1, together 1) of what makes the best quarter of
        the trials differ from all of them, for the first goal, the largest first; empty where
        fewer than :data:`LEAST_TRIALS` trials have a value.
    """

    front: tuple[int, ...]
    importance: Mapping[str, float]


def analyse(
    spec: StudySpec, trials: Sequence[TrialRecord], tunables: TunableRegistry | None = None
) -> Analysis:
    """Analyse the trials of a study that is ready (:meth:`StudySpec.ready`)."""
    found = estimates(spec.goal, trials)
    valued = [one for one in trials if one.number in found and found[one.number].values]
    importance: Mapping[str, float] = {}
    if len(valued) >= LEAST_TRIALS:
        from vmtune.bench.model.tune.sampler import Sampler  # noqa: PLC0415 - loads Optuna

        importance = Sampler(spec, valued, found, tunables or settable(), 0).importance()
    front = tuple(one.number for one in pareto_front([*found.values()]))
    return Analysis(front, importance)
