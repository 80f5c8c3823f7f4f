"""A change of a metric over time, as it is kept: what it is, and what people made of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID


class ChangeKind(StrEnum):
    """How values changed; the words of :class:`vmtune.stats.changes.ChangeKind`, whose import
    takes a second."""

    STEP = "step"
    RAMP = "ramp"
    SPREAD = "spread"


class SignStrength(StrEnum):
    """How far the newest runs lie apart; the words of :class:`vmtune.stats.early.Strength`."""

    FAINT = "faint"
    CLEAR = "clear"


class Triage(StrEnum):
    """What people made of a change."""

    OPEN = "open"
    """Nobody has decided yet."""
    KNOWN = "known"
    """Its cause is known."""
    ACCEPTED = "accepted"
    """It is as it should be from now on."""
    TO_FIX = "to_fix"
    """It is a fault that is to be fixed."""


@dataclass(frozen=True, slots=True)
class FoundChange:
    """A change that was found.

    :param setup: the id of the setup in the history.
    :param run: the first run after it, when it was found or triaged.
    :param worse: the values became worse by more than the margin.
    """

    id: UUID
    scenario: str
    metric: str
    setup: str
    run: UUID
    since: datetime
    kind: ChangeKind
    text: str
    worse: bool
    found_at: datetime
    triage: Triage = Triage.OPEN
    note: str = ""
    triaged_by: str = ""
    triaged_at: datetime | None = None
