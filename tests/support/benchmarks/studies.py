"""Studies for tests, and a machine whose runs follow from their settings."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.support.benchmarks.bench_runs import FakeRunner, small
from tests.support.benchmarks.records import make_record
from vmtune.bench.migration.order import RunOrder
from vmtune.bench.model.runs.run import RunRecord
from vmtune.bench.order import AnyOrder

DEFAULT_MS = 8000
_BASE = make_record(20)


def study_json(**changes: Any) -> dict[str, Any]:  # any JSON
    """A study of two tunables with a small budget, as JSON."""
    return {
        "name": "mine",
        "scenario": small(warmup_s=0, cooldown_s=0),
        "objective": "minimise total_time_ms where completed",
        "space": {"multifd": {}, "multifd_channels": {"low": 1, "high": 8}},
        "budget": {"runs": 44},
        "confirm_blocks": 6,
        "finalists": 1,
        "rivals": False,
        "seed": 7,
        "kvm": False,
        **changes,
    }


def total_ms(values: Mapping[str, object], best: float) -> float:
    """How long a migration takes: *best* of the usual time with many channels."""
    channels = values.get("multifd_channels", 2) if values.get("multifd") else 0
    assert isinstance(channels, int)
    return DEFAULT_MS * (1 - (1 - best) * min(channels, 6) / 6)


@dataclass
class TunedRunner(FakeRunner):
    """Runs whose time follows from their settings, with some noise.

    :param best: the best time by the default's; 1 where nothing helps.
    """

    best: float = 0.6
    chance: random.Random = field(default_factory=lambda: random.Random(5))

    def _recorded(self, order: AnyOrder) -> RunRecord:
        assert isinstance(order, RunOrder)
        time = total_ms(order.scenario.values, self.best) * self.chance.uniform(0.98, 1.02)
        assert _BASE.totals is not None
        return replace(_BASE, totals=replace(_BASE.totals, total_time_ms=round(time)))
