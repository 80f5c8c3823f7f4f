"""When a host answered last, and what it said then. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from vmtune.errors import Problem
from vmtune.model.host.facts import HostFacts


class HostState(StrEnum):
    """Whether a host answers."""

    UP = "up"
    UNREACHABLE = "unreachable"
    UNKNOWN = "unknown"
    """It was not asked since the service started."""


@dataclass(frozen=True, slots=True)
class Contact:
    """A host as it was seen last.

    :param answered_at: when it answered last; None if not since the service started.
    :param silent_since: when it was found not to answer; None if it answers.
    :param problem: why it does not answer.
    :param facts: what it said of itself last.
    :param findings: how many problems host diagnostics found last; None if it did not look.
    """

    answered_at: datetime | None = None
    silent_since: datetime | None = None
    problem: Problem | None = None
    facts: HostFacts | None = None
    findings: int | None = None

    @property
    def state(self) -> HostState:
        """Whether it answers."""
        if self.silent_since is not None:
            return HostState.UNREACHABLE
        return HostState.UNKNOWN if self.answered_at is None else HostState.UP

    def answered(self, at: datetime, facts: HostFacts | None = None) -> Contact:
        """It has answered; *facts* replace what was known."""
        return replace(
            self, answered_at=at, silent_since=None, problem=None, facts=facts or self.facts
        )

    def silent(self, at: datetime, problem: Problem) -> Contact:
        """It has not answered; it stays silent since the first time."""
        return replace(self, silent_since=self.silent_since or at, problem=problem)


NEVER = Contact()
