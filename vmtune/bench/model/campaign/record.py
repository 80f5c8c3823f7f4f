"""What becomes of a campaign: what it was expected to find, and where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from vmtune.bench.model.campaign.campaign import Arm, Campaign, Cell
from vmtune.bench.model.runs.run import RunState


class CampaignState(StrEnum):
    """How a campaign ended, or where it stands."""

    RUNNING = "running"
    PAUSED = "paused"
    """No run starts until it is resumed; the run that was active ran to its end."""
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"
    """It stopped because of a fault that resuming does not fix."""

    @property
    def ended(self) -> bool:
        """No run of it will be made any more."""
        return self not in (CampaignState.RUNNING, CampaignState.PAUSED)


_C = CampaignState
_ENDS = frozenset(state for state in CampaignState if state.ended)
NEXT: Mapping[CampaignState, frozenset[CampaignState]] = {
    _C.RUNNING: _ENDS | {_C.PAUSED},
    _C.PAUSED: _ENDS | {_C.RUNNING},
    **dict.fromkeys(_ENDS, frozenset()),
}
"""Which state may follow which."""
assert set(NEXT) == set(CampaignState), "a state without its followers"


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a campaign can detect, and how long it takes: shown before its first run.

    :param detectable: the smallest ratio above 1 that 80 % of such campaigns would call better
        or worse; downwards it is 1 divided by it. None where so few blocks never give a verdict.
    :param noise: of a run, the standard deviation of its logarithm: 0.1 is about 10 %.
    :param noise_reason: where that is from, in a sentence.
    :param duration_reason: likewise of the duration.
    """

    runs: int
    detectable: float | None
    noise: float
    noise_reason: str
    duration_s: float
    duration_reason: str


@dataclass(frozen=True, slots=True)
class CampaignRecord:
    """A requested campaign, with all that was left open in its file filled in.

    :param host: the machine that runs it.
    :param reason: why it is paused, or failed; empty where a person said so.
    """

    id: UUID
    campaign: Campaign
    forecast: Forecast
    state: CampaignState
    host: str
    created_at: datetime
    reason: str = ""
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class CampaignRun:
    """A run of a campaign, as far as its course depends on it."""

    id: UUID
    scenario: str
    arm: str
    block: int
    position: int
    state: RunState
    started_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run to be made.

    :param number: its place in the campaign, from 1.
    :param block: from 1; 0 is the warm-up, which does not count.
    :param position: its place in the block, from 1.
    """

    number: int
    block: int
    position: int
    cell: Cell
    arm: Arm


def scenario_name(campaign: Campaign, cell: Cell) -> str:
    """What the runs of *cell* are called."""
    return f"{campaign.scenario.family}/{cell.name}" if campaign.cells else campaign.scenario.name
