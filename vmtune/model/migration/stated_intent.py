"""The intent that a migration was started with, as its record keeps it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from vmtune.model.host.dirty_rates import DirtyPoint
from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.intent import Goal, Intent

_RELAX = "relax "


class Measure(StrEnum):
    """By what it is known how far a goal was kept."""

    QEMU = "qemu"
    """QEMU's own times."""
    THROTTLE = "throttle"
    """The hardest throttle that was seen: the guest lost at most that share of its CPU time."""
    SENT = "sent"
    """What was sent in the second in which most was."""
    UNKNOWN = "unknown"
    """By nothing."""


@dataclass(frozen=True, slots=True)
class GoalKept:
    """A goal held against what happened, both in the goal's unit.

    :param measured: None where it is not known.
    """

    goal: Goal
    bound: int
    measured: float | None
    by: Measure = Measure.QEMU

    @property
    def kept(self) -> bool | None:
        """Whether it was kept; None where that is not known."""
        if self.measured is None:
            return None
        return self.measured <= self.bound * (1 + _TOLERANCE.get(self.goal, 0.0))


_TOLERANCE = {Goal.BANDWIDTH: 0.1}
"""QEMU sends what it has begun, and on a busy host a sample is somewhat older or younger than its
time."""


@dataclass(frozen=True, slots=True)
class Beyond:
    """For how long guests stand still beyond their downtime limit on a path.

    :param migrations: how many say so; with fewer than :data:`TELLING` it is rather assumed.
    """

    ms: int
    migrations: int

    @property
    def measured(self) -> bool:
        """Whether enough migrations say so."""
        return self.migrations >= TELLING


TELLING = 3


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
    :param beyond: what is left out of the silence for the downtime limit; None where nothing told.
    :param steered_until_ms: when it was seen last, by the migration's time, where that was before
        its end: the connection to its host was lost, or no service ran. None where it was steered
        to its end.
    :param kept: what was kept of each goal; empty until the migration has completed.
    :param broken: a goal was not kept that nobody has given up; not in shadow, where nothing was
        promised.
    """

    intent: Intent
    chosen: Mapping[str, str]
    pinned: tuple[str, ...]
    forecast: str
    curve: tuple[DirtyPoint, ...] = ()
    shadow: bool = False
    kept: tuple[GoalKept, ...] = ()
    beyond: Beyond | None = None
    steered_until_ms: int | None = None
    broken: bool = False


@dataclass(frozen=True, slots=True)
class Happened:
    """What a completed migration came to.

    :param total_ms: from its start, the copy of disks included.
    :param silence_ms: for how long the guest stood still by QEMU; None where its hosts did not
        reach each other in post-copy, in which it stands still whenever it needs a page.
    :param withheld_percent: of the guest's time, the most at a moment; None where it was not seen
        to the end, or the guest waited for its pages in post-copy.
    :param most_bytes_per_s: sent while the guest ran; None where it was not seen.
    """

    total_ms: int
    silence_ms: int | None
    withheld_percent: float | None = None
    most_bytes_per_s: float | None = None


def goals_kept(intent: Intent, happened: Happened) -> Iterator[GoalKept]:
    """Each goal of *intent* held against what happened."""
    found: dict[Goal, tuple[float | None, Measure]] = {
        Goal.SILENCE: (happened.silence_ms, Measure.QEMU),
        Goal.DEADLINE: (happened.total_ms / 1000, Measure.QEMU),
        Goal.SLOWDOWN: (happened.withheld_percent, Measure.THROTTLE),
        Goal.BANDWIDTH: (happened.most_bytes_per_s, Measure.SENT),
    }
    for goal in Goal:
        bound, (measured, by) = intent.goal(goal), found[goal]
        if bound is not None:
            yield GoalKept(goal, bound, measured, Measure.UNKNOWN if measured is None else by)


def relaxing(goal: Goal) -> str:
    """The action of a step record by which *goal* was given up."""
    return f"{_RELAX}{goal}"


def relaxed(records: Sequence[StepRecord]) -> frozenset[Goal]:
    """The goals that were given up."""
    said = {r.action for r in records if r.number is None and r.effect is not StepEffect.REFUSED}
    return frozenset(goal for goal in Goal if relaxing(goal) in said)
