"""What a run of updates takes, its phases, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.runs.srcu_record import SrcuRecord
from vmtune.bench.model.scenario.srcu import SrcuScenario


@dataclass(frozen=True, slots=True)
class SrcuOrder:
    """Updates to time."""

    scenario: SrcuScenario


class SrcuPhase(StrEnum):
    """What a run is doing."""

    TIMING = "timing updates"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class SrcuResult:
    """How it ended.

    :param state: completed: all updates that were asked for were timed; not converged: the
        scenario's limit came first.
    """

    state: RunState
    record: SrcuRecord
