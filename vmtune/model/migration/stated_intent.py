"""The intent that a migration was started with, as its record keeps it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from vmtune.model.host.dirty_rates import DirtyPoint
from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.intent import Goal, Intent

_RELAX = "relax "


@dataclass(frozen=True, slots=True)
class StatedIntent:
    """What was asked for, and what was made of it before the start.

    :param chosen: why each tunable was chosen.
    :param pinned: tunables that the user or the profile has set, and that vmtune would otherwise
        have chosen: it does not change them.
    :param forecast: whether the intent was expected to be kept, in words.
    :param curve: of what the guest dirties, as measured before the start, in the order of time;
        empty where it was not measured.
    :param shadow: what would be done is recorded, and nothing is.
    """

    intent: Intent
    chosen: Mapping[str, str]
    pinned: tuple[str, ...]
    forecast: str
    curve: tuple[DirtyPoint, ...] = ()
    shadow: bool = False


@dataclass(frozen=True, slots=True)
class GoalKept:
    """A goal held against what happened, both in the goal's unit."""

    goal: Goal
    bound: int
    measured: float

    @property
    def kept(self) -> bool:
        """Whether it was kept."""
        return self.measured <= self.bound


def goals_kept(intent: Intent, total_ms: int, downtime_ms: int) -> Iterator[GoalKept]:
    """The silence, by QEMU's downtime, and the deadline of a completed migration."""
    if intent.max_silence_ms is not None:
        yield GoalKept(Goal.SILENCE, intent.max_silence_ms, downtime_ms)
    if intent.deadline_s is not None:
        yield GoalKept(Goal.DEADLINE, intent.deadline_s, total_ms / 1000)


def relaxing(goal: Goal) -> str:
    """The action of a step record by which *goal* was given up."""
    return f"{_RELAX}{goal}"


def relaxed(records: Sequence[StepRecord]) -> frozenset[Goal]:
    """The goals that were given up."""
    said = {r.action for r in records if r.number is None and r.effect is not StepEffect.REFUSED}
    return frozenset(goal for goal in Goal if relaxing(goal) in said)
