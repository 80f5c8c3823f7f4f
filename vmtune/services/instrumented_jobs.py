"""Jobs as they are seen from outside: each phase is counted, traced, and tells in each of its
log lines of which record it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from structlog.contextvars import bound_contextvars

from vmtune import tracing
from vmtune.bench.services.campaigns.job import JOB_KIND as CAMPAIGN_KIND
from vmtune.bench.services.runs.job import JOB_KIND as RUN_KIND
from vmtune.jobs.base import JobEngine, JobState, Phase
from vmtune.services.evacuations.job import JOB_KIND as EVACUATION_KIND
from vmtune.services.metrics import telemetry
from vmtune.services.migrations.job import JOB_KIND as MIGRATION_KIND
from vmtune.services.migrations.observed_job import OBSERVED_KIND

RECORD: Mapping[str, str] = {
    MIGRATION_KIND: "migration_id",
    OBSERVED_KIND: "migration_id",
    EVACUATION_KIND: "evacuation_id",
    RUN_KIND: "run_id",
    CAMPAIGN_KIND: "campaign_id",
}
"""What a job's id is the id of, by its kind: the field of a log line that says so."""


class WatchedJobs:
    """Implements :class:`vmtune.jobs.base.JobEngine`.

    :param engine: carries the jobs out.
    """

    def __init__(self, engine: JobEngine) -> None:
        self._engine = engine

    def register(self, kind: str, phases: Sequence[tuple[str, Phase]]) -> None:
        """See :meth:`JobEngine.register`."""
        self._engine.register(kind, [(name, _watched(kind, name, phase)) for name, phase in phases])

    async def start(self) -> None:
        """See :meth:`JobEngine.start`."""
        await self._engine.start()

    async def submit(self, kind: str, job_id: str, on: str = "") -> None:
        """See :meth:`JobEngine.submit`."""
        await self._engine.submit(kind, job_id, on)

    async def cancel(self, job_id: str) -> bool:
        """See :meth:`JobEngine.cancel`."""
        return await self._engine.cancel(job_id)

    async def carries(self, job_id: str) -> bool:
        """See :meth:`JobEngine.carries`."""
        return await self._engine.carries(job_id)

    async def state(self, job_id: str) -> JobState:
        """See :meth:`JobEngine.state`."""
        return await self._engine.state(job_id)

    async def wait(self, job_id: str, timeout_s: float | None = None) -> JobState:
        """See :meth:`JobEngine.wait`."""
        return await self._engine.wait(job_id, timeout_s)

    async def stop(self) -> None:
        """See :meth:`JobEngine.stop`."""
        await self._engine.stop()


def _watched(kind: str, name: str, phase: Phase) -> Phase:
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
