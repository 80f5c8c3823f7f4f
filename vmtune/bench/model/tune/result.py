"""What a study has found. Only the confirming campaign's verdicts count: a search praises what was
lucky."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from vmtune.bench.model.tune.spec import Settings


class Finding(StrEnum):
    """How a study ended."""

    BETTER = "better"
    """A finalist is better than the default and the current profile, by the campaign's verdict."""
    NO_BETTER = "no better settings found"
    """None is, to within the margin of what was tried."""
    NOTHING_FEASIBLE = "nothing feasible"
    """No settings that were tried keep the objective's constraints, or none can run here."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A finalist against one of the arms that it has to beat, in the confirming campaign: of one
    goal.

    :param baseline: ``default`` or ``current``.
    :param verdict: of the statistics, in its words.
    :param estimate: the finalist's values by the baseline's: 0.8 is 20 % less; *low* and *high*
        are the interval's ends. None where there is none. A difference where *ratio* is False.
    :param broken_share: the share of the finalist's runs that break a constraint of the objective.
    :param reason: why that verdict, in a sentence.
    """

    trial: int
    baseline: str
    metric: str
    verdict: str
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    ratio: bool = True
    broken_share: float = 0.0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class StudyResult:
    """How a study ended, and what it rests on.

    :param trial: the winner's number; None without one.
    :param settings: the winner's.
    :param gain_percent: by how much the winner's first goal is better than the best of what it had
        to beat, as the campaign estimates it; None where it has no ratio.
    :param within_percent: without a winner, gains above this would most likely have been found: in
        percent of the baseline's value, in the first goal's direction.
    :param evidence: every comparison of every finalist, in each goal.
    :param reason: in a sentence.
    """

    finding: Finding
    trial: int | None = None
    settings: Settings = field(default_factory=dict)
    gain_percent: float | None = None
    within_percent: float | None = None
    evidence: tuple[Evidence, ...] = ()
    reason: str = ""
