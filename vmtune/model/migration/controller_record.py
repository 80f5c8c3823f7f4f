"""What vmtune's controllers did during a migration: the record, kept with the migration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from vmtune.model.tunables.tunable import Value


@dataclass(frozen=True, slots=True)
class ReaperRound:
    """One emptying of the dirty rings, on the migration's timeline.

    :param at_ms: when it ended, milliseconds since the migration was started; negative in the
        rounds before it.
    :param interval_ms: the wait that the policy had requested.
    :param elapsed_ms: since the end of the round before.
    :param cost_ms: the part of *elapsed_ms* that was not the wait.
    :param fills: pages collected from each vCPU's ring by the ring's size. Before the migration
        pages are only noted while a round measures, so these are then emptier.
    """

    at_ms: int
    interval_ms: int
    elapsed_ms: float
    cost_ms: float
    fills: tuple[float, ...]

    @property
    def fullest(self) -> float:
        """The fullest ring's fill ratio; 0 without vCPUs."""
        return max(self.fills, default=0.0)


class ReaperEnd(StrEnum):
    """Why the reaper stopped, or that it has not."""

    RUNNING = "running"
    MIGRATION_ENDED = "migration ended"
    NOT_STARTED = "not started"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    """vmtune ended before the migration did, and no service resumed the reaper."""


@dataclass(frozen=True, slots=True)
class ReaperReport:
    """What the reaper did during one migration.

    :param rounds: the rounds themselves, where they are not kept elsewhere;
        :attr:`round_count` counts all.
    :param filled_rounds: rounds in which some ring must have been full
        (:attr:`vmtune.engine.reaper.settings.Round.filled`); not those in which the migration
        emptied the rings as well, for which that is unknown.
    :param ring_full_exits: counted by QEMU's trace event ``kvm_dirty_ring_full``; None if it was
        not counted.
    :param reason: what went wrong; empty when it stopped with the migration.
    :param rounds_before: how many rounds had ended when the migration was started.
    :param skipped_rounds: rounds that QEMU refused because somebody else was measuring, which
        empties the rings as well.
    :param interruptions: how often it could not go on for a while and then did: vmtune was
        started anew, or the connection was lost.
    :param fullest: the fill ratio of the fullest ring that a round found.
    :param shortest_interval_ms: the shortest wait that was asked for, likewise the longest.
    :param waits_ms: all waits that were asked for, together; likewise *costs_ms*.
    """

    policy: str
    ring_entries: int
    end: ReaperEnd
    rounds: tuple[ReaperRound, ...] = ()
    filled_rounds: int = 0
    ring_full_exits: int | None = None
    reason: str = ""
    round_count: int = 0
    rounds_before: int = 0
    skipped_rounds: int = 0
    interruptions: int = 0
    fullest: float = 0.0
    shortest_interval_ms: int = 0
    longest_interval_ms: int = 0
    waits_ms: int = 0
    costs_ms: float = 0.0

    @property
    def throughout(self) -> bool:
        """Whether it ran from before the migration to its end, without a gap."""
        ended = self.end is ReaperEnd.MIGRATION_ENDED
        return ended and self.rounds_before > 0 and not self.interruptions

    @property
    def mean_interval_ms(self) -> float:
        """The mean of the requested waits; 0 without rounds."""
        return self.waits_ms / self.round_count if self.round_count else 0.0

    @property
    def mean_cost_ms(self) -> float:
        """What a round cost in the mean; 0 without rounds."""
        return self.costs_ms / self.round_count if self.round_count else 0.0


class StepEffect(StrEnum):
    """What became of a convergence step."""

    PENDING = "pending"
    """It is about to be done; vmtune may have died before it was."""
    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    """It may have been done, and its effect could not be seen."""

    @property
    def settled(self) -> bool:
        """Nobody has to look what became of it."""
        return self in (StepEffect.DONE, StepEffect.REFUSED)


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A convergence step that came due, a change that a user asked for meanwhile, or an action of
    steering.

    :param number: its place in the profile's list, from 0; None for a user's change, likewise for
        steering.
    :param at_ms: when it came due, milliseconds since the migration was started.
    :param action: what it did, in words: ``set downtime_limit_ms to 500 ms``.
    :param reason: why it was due, with the figures.
    :param detail: QEMU's words where it was refused, and what is known where it is unknown.
    :param forecast: what was expected with it; empty where that was not known.
    :param steering: it was done to keep the migration's intent.
    :param values: that it set, or was to set, in QEMU's units; empty where it did something else.
    :param of_copies: these are of the copies of disks, not of the memory's migration.
    """

    number: int | None
    at_ms: int
    iteration: int
    action: str
    reason: str
    effect: StepEffect
    detail: str = ""
    forecast: str = ""
    steering: bool = False
    values: Mapping[str, Value] = field(default_factory=dict)
    of_copies: bool = False
