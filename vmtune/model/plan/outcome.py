"""What became of a plan: one outcome for each tunable, one record for each application."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from vmtune.errors import Problem
from vmtune.model.host.facts import Reading
from vmtune.model.plan.changes import Change
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import Value


class Status(StrEnum):
    """How a tunable ended."""

    EFFECTIVE = "effective"
    PENDING_MIGRATION = "pending migration"
    PENDING_RESTART = "pending restart"
    NOT_APPLIED = "not applied"
    OVERWRITTEN = "overwritten"
    REJECTED = "rejected"
    REVERTED = "reverted"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one tunable ended.

    :param seen: what was read back; None where nothing could be read.
    :param reason: why it is not effective, or what limits it; empty when there is nothing.
    :param owner: of a migration that others started, who set the value that QEMU has: vmtune,
        libvirt, or the program that manages the VM. Empty where that is not known.
    """

    tunable: str
    status: Status
    wanted: Value | None
    seen: Value | None = None
    reason: str = ""
    owner: str = ""


def judge(tunable: str, wanted: Value, reading: Reading, overwriter: str = "") -> Outcome:
    """The outcome of a value that was set, from what was read back."""
    if reading.value is None:
        differing = [v for v in reading.parts.values() if not _reads_back(tunable, wanted, v)]
        if reading.parts and not differing:
            return Outcome(tunable, Status.EFFECTIVE, wanted, wanted)
        if differing:
            return Outcome(
                tunable, Status.OVERWRITTEN, wanted, differing[0], reading.why_unknown or overwriter
            )
        return Outcome(tunable, Status.UNKNOWN, wanted, None, reading.why_unknown)
    if _reads_back(tunable, wanted, reading.value):
        return Outcome(tunable, Status.EFFECTIVE, wanted, reading.value)
    by = f"overwritten by {overwriter}" if overwriter else "somebody else set it"
    return Outcome(tunable, Status.OVERWRITTEN, wanted, reading.value, by)


def _reads_back(tunable: str, wanted: Value, seen: Value) -> bool:
    row = BUILT_IN.get(tunable)
    if row is None:  # a pack's
        return seen == wanted and type(seen) is type(wanted)
    return row.reads_back(wanted, seen)


class ApplicationState(StrEnum):
    """Where an application stands. ``intended`` and ``reverting`` are checked again when the
    service starts."""

    INTENDED = "intended"
    APPLIED = "applied"
    FAILED = "failed"
    REVERTING = "reverting"
    REVERTED = "reverted"
    UNKNOWN = "unknown"

    @property
    def open(self) -> bool:
        """Work on it has begun and its end is not recorded."""
        return self in (ApplicationState.INTENDED, ApplicationState.REVERTING)


@dataclass(frozen=True, slots=True)
class Application:
    """A plan that was executed on one VM.

    :param journal: what has to be set to restore everything.
    :param wanted: the values of the revision.
    :param problems: why it failed or is unknown.
    """

    id: UUID
    vm: UUID
    host: str
    profile: str
    revision: int
    wanted: Mapping[str, Value]
    state: ApplicationState
    best_effort: bool
    journal: tuple[Change, ...]
    outcomes: tuple[Outcome, ...]
    problems: tuple[Problem, ...]
    created_at: datetime
    ended_at: datetime | None = None
