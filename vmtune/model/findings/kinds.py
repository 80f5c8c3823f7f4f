"""What a row of the table of findings is; the table is in :mod:`vmtune.model.findings.table`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """A blocker stops the work, a warning does not, an info needs no action."""

    BLOCKER = "blocker"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class FindingKind:
    """A row of the table of findings.

    :param why: why it matters, a sentence; *remedy*: what to do about it. Both may
        name the evidence's keys in braces.
    """

    code: str
    severity: Severity
    why: str
    remedy: str


def blocker(code: str, why: str, remedy: str) -> FindingKind:
    """A row of a finding that stops the work."""
    return FindingKind(code, Severity.BLOCKER, why, remedy)


def warning(code: str, why: str, remedy: str) -> FindingKind:
    """A row of a finding that costs something, or fails under some settings."""
    return FindingKind(code, Severity.WARNING, why, remedy)


def info(code: str, why: str, remedy: str) -> FindingKind:
    """A row of a finding that needs no action."""
    return FindingKind(code, Severity.INFO, why, remedy)
