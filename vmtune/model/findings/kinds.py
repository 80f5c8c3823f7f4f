"""What a row of the table of findings is; the table is in :mod:`vmtune.model.findings.table`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """A blocker stops the work, a warning does not, an info needs no action."""

    BLOCKER = "blocker"
    WARNING = "warning"
    INFO = "info"


class Lifted(StrEnum):
    """What is done where an operator overrides a blocker."""

    LEAVES_OUT = "leaves out"
    """The work goes on without the tunable that it concerns."""
    GOES_ON = "goes on"
    """The work goes on with all of it: the operator has looked."""
    NEVER = "never"
    """It cannot be overridden."""


@dataclass(frozen=True, slots=True)
class FindingKind:
    """A row of the table of findings.

    :param why: why it matters, a sentence; *remedy*: what to do about it. Both may
        name the evidence's keys in braces.
    :param lifted: of a blocker.
    """

    code: str
    severity: Severity
    why: str
    remedy: str
    lifted: Lifted = Lifted.LEAVES_OUT


def blocker(code: str, why: str, remedy: str, lifted: Lifted = Lifted.LEAVES_OUT) -> FindingKind:
    """A row of a finding that stops the work."""
    return FindingKind(code, Severity.BLOCKER, why, remedy, lifted)


def warning(code: str, why: str, remedy: str) -> FindingKind:
    """A row of a finding that costs something, or fails under some settings."""
    return FindingKind(code, Severity.WARNING, why, remedy)


def info(code: str, why: str, remedy: str) -> FindingKind:
    """A row of a finding that needs no action."""
    return FindingKind(code, Severity.INFO, why, remedy)
