"""What a study does next."""

from __future__ import annotations

from dataclasses import dataclass, field

from vmtune.bench.model.tune.result import Finding
from vmtune.bench.model.tune.spec import Settings


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    """Settings that are to be run once in a block: a trial of this number, new or known."""

    number: int
    origin: str
    settings: Settings = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunBlock:
    """Run each of these once, in this order, which is drawn; then ask again.

    After a run that says nothing (cancelled, interrupted) ask again, too: what is left of the
    block comes back.

    :param block: its number, from 1: that of the runs' records.
    :param why: what it is for, in a few words.
    """

    block: int
    trials: tuple[PlannedTrial, ...]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Confirm:
    """The search is over: hold these, the best first, against the default and the current profile
    in a campaign of fresh runs."""

    finalists: tuple[PlannedTrial, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Finish:
    """There is nothing to confirm."""

    finding: Finding
    reason: str
    within_percent: float | None = None


Step = RunBlock | Confirm | Finish
