"""Services that share one database: which are alive, and which took over another's work."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class ServiceState(StrEnum):
    """What a service was, when it last said something of itself."""

    RUNNING = "running"
    STOPPED = "stopped"
    """It was stopped; it resumes its work when it starts again, or another service does soon."""
    TAKEN_OVER = "taken over"
    """It did not answer, and another service has its work."""


@dataclass(frozen=True, slots=True)
class Service:
    """A service that uses the database, or did.

    :param machine: the machine that it runs on.
    :param epoch: grows with each start, and when its work is taken over.
    :param beats: counts on while it lives. Others compare it with what it was: no clock is read.
    :param heir: which service took its work over, and is not done with that yet; else empty.
    """

    name: str
    machine: str
    pid: int
    version: str
    state: ServiceState
    epoch: int
    beats: int
    heir: str
    started_at: datetime
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class JobOrder:
    """A job that another service has requested here.

    :param cancelled: it was cancelled before it began.
    """

    job: str
    kind: str
    service: str
    cancelled: bool
