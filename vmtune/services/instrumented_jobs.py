"""Instruments jobs: each phase is counted, traced, and names its record in each log line."""

from __future__ import annotations

from collections.abc import Mapping

from structlog.contextvars import bound_contextvars

from vmtune import tracing
from vmtune.jobs.base import Phase
from vmtune.jobs.kinds import (
    CAMPAIGN_KIND,
    EVACUATION_KIND,
    MIGRATION_KIND,
    OBSERVED_KIND,
    RUN_KIND,
    STUDY_KIND,
)
from vmtune.services.metrics import telemetry

RECORD: Mapping[str, str] = {
    MIGRATION_KIND: "migration_id",
    OBSERVED_KIND: "migration_id",
    EVACUATION_KIND: "evacuation_id",
    RUN_KIND: "run_id",
    CAMPAIGN_KIND: "campaign_id",
    STUDY_KIND: "study_id",
}
"""What a job's id is the id of, by its kind: the field of a log line that says so."""


def instrumented(kind: str, name: str, phase: Phase) -> Phase:
    """*phase* as it is to run: for :meth:`vmtune.jobs.base.JobEngine.instrument`."""

    async def run(job_id: str) -> None:
        ids = {"job_id": job_id, "phase": f"{kind}: {name}"}
        if kind in RECORD:
            ids[RECORD[kind]] = job_id
        with (
            bound_contextvars(**ids),
            telemetry.job_phase(kind),
            tracing.job_span(f"{kind}: {name}", job_id),
        ):
            await phase(job_id)

    return run
