"""How the service is."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from vmtune.api.schemas.common import Model, ProblemItem


class HealthStatus(StrEnum):
    """Whether the service does all of its work."""

    OK = "ok"
    DEGRADED = "degraded"


class Health(Model):
    """Health of the service."""

    status: HealthStatus = Field(
        description="Degraded: the service reads, and what has to be written is refused."
    )
    problems: list[ProblemItem] = Field(description="Why it is degraded; else empty.")
    version: str
    schema_revision: str
    jobs_running: int
    postcopy_paused: int = 0
    """Migrations whose guest's memory is on two hosts that do not reach each other."""
    hosts: int
