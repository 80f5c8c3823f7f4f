"""Whether a VM runs with what was requested, in one word, as last seen. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from vmtune.model.plan.outcome import Outcome, Status


class TuningState(StrEnum):
    """How a VM stands against its standing application, or else its assigned profile."""

    TUNED = "tuned"
    """All is effective, or waits for the VM's next migration."""
    DRIFTED = "drifted"
    """It was applied, and something differs: overwritten, or refused."""
    PENDING_RESTART = "pending restart"
    """Something takes effect at the VM's next start; all else is as wanted."""
    UNTUNED = "untuned"
    """Nothing was applied, and it does not run as an assigned profile has it."""
    UNKNOWN = "unknown"
    """Something was applied and could not be read back."""


WORST_FIRST = (
    TuningState.DRIFTED,
    TuningState.UNKNOWN,
    TuningState.PENDING_RESTART,
    TuningState.UNTUNED,
    TuningState.TUNED,
)
"""The states in the order in which lists by tuning state have them."""
assert set(WORST_FIRST) == set(TuningState), "a state without its place"
_DIFFERS = frozenset({Status.NOT_APPLIED, Status.OVERWRITTEN, Status.REJECTED, Status.REVERTED})


@dataclass(frozen=True, slots=True)
class Tuning:
    """A VM's state at the last check.

    :param application: what it was compared with; None if only an assignment wants values.
    :param differing: the tunables that are not as wanted, nor wait for a migration.
    :param as_of: when that was.
    :param since: since when it has this state, as far as it was checked.
    """

    vm: UUID
    state: TuningState
    profile: str
    revision: int
    application: UUID | None
    differing: tuple[str, ...]
    as_of: datetime
    since: datetime


def tuning_state(outcomes: Sequence[Outcome], applied: bool) -> TuningState:
    """The state that *outcomes* add up to; the worst of them counts.

    :param applied: whether something was applied, or a profile is only assigned.
    """
    found = {outcome.status for outcome in outcomes}
    if found & _DIFFERS:
        return TuningState.DRIFTED if applied else TuningState.UNTUNED
    if Status.UNKNOWN in found:
        return TuningState.UNKNOWN
    if Status.PENDING_RESTART in found:
        return TuningState.PENDING_RESTART
    return TuningState.TUNED


def differing(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """The tunables that make it anything but tuned."""
    as_wanted = (Status.EFFECTIVE, Status.PENDING_MIGRATION)
    return tuple(o.tunable for o in outcomes if o.status not in as_wanted)
