"""A run's record, reduced to the metrics of :data:`vmtune.domain.metrics.METRICS`. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from vmtune.domain.runs import RunRecord, RunState
from vmtune.domain.tunables import Value


def reduce(record: RunRecord, state: RunState, values: Mapping[str, Value]) -> dict[str, float]:
    """The metrics of a run that has ended; those that could not be had are missing.

    :param values: what the migration was tuned with: without auto-converge there is no throttle
        to tell of.
    """
    raise NotImplementedError
