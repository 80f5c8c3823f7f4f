"""What vmtune's controllers did during a migration: the record, kept with the migration."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class ReaperRound:
    """One emptying of the dirty rings, on the migration's timeline.

    :param at_ms: when it ended, milliseconds since the migration was started; negative in the
        rounds before it.
    :param interval_ms: the wait that the policy had asked for.
    :param elapsed_ms: since the end of the round before.
    :param cost_ms: the part of *elapsed_ms* that was not the wait.
    :param fills: pages collected from each vCPU's ring by the ring's size.
    """

    at_ms: int
    interval_ms: int
    elapsed_ms: float
    cost_ms: float
    fills: tuple[float, ...]


class ReaperEnd(StrEnum):
    """Why the reaper stopped."""

    MIGRATION_ENDED = "migration ended"
    NOT_STARTED = "not started"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class ReaperReport:
    """What the reaper did during one migration.

    :param filled_rounds: rounds in which some ring must have been full
        (:attr:`vmtune.control.reaping.Round.filled`).
    :param ring_full_exits: counted by QEMU's trace event ``kvm_dirty_ring_full``; None where
        nobody counted.
    :param reason: what went wrong; empty when it stopped with the migration.
    """

    policy: str
    ring_entries: int
    end: ReaperEnd
    rounds: tuple[ReaperRound, ...] = ()
    filled_rounds: int = 0
    ring_full_exits: int | None = None
    reason: str = ""


class StepEffect(StrEnum):
    """What became of a convergence step."""

    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A convergence step that came due.

    :param number: its place in the profile's list, from 0.
    :param action: what it did, in words: ``set downtime_limit_ms to 500 ms``.
    :param reason: why it was due, with the figures.
    :param detail: QEMU's words where it was refused.
    """

    number: int
    at_ms: int
    iteration: int
    action: str
    reason: str
    effect: StepEffect
    detail: str = ""
