"""A job engine without a database, for tests.

It keeps the contract but for durability: what it knows lives in the object, so
jobs resume when the same object is started again, not after the process died.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from vmtune.errors import NotFound
from vmtune.jobs.base import Instrument, JobState, JobStatus, Phase, not_started
from vmtune.jobs.phases import Outcome, PhaseRunner, run_in_order

STOP_GRACE_S = 1.0


class _Job:
    def __init__(self, kind: str, job_id: str, names: list[str]) -> None:
        self.kind = kind
        self.job_id = job_id
        self.names = names
        self.completed: dict[str, Outcome] = {}
        self.outcome: Outcome | None = None
        self.task: asyncio.Task[None] | None = None

    @property
    def state(self) -> JobState:
        if self.outcome is None:
            return JobState(self.job_id, self.kind, JobStatus.RUNNING)
        return JobState(self.job_id, self.kind, self.outcome.status, self.outcome.error)


class InlineEngine:
    """Implements :class:`vmtune.jobs.base.JobEngine` in memory."""

    def __init__(self) -> None:
        self._runner = PhaseRunner()
        self._jobs: dict[str, _Job] = {}
        self._started = False

    def register(self, kind: str, phases: Sequence[tuple[str, Phase]]) -> None:
        if self._started:
            raise RuntimeError("register before start")
        self._runner.register(kind, phases)

    def instrument(self, with_: Instrument) -> None:
        self._runner.instrument = with_

    async def start(self) -> None:
        if self._started:
            raise RuntimeError("the job engine is started already")
        self._started = True
        self._runner.start()
        for job in self._jobs.values():
            if job.outcome is None:
                job.task = asyncio.create_task(self._run(job))

    async def submit(self, kind: str, job_id: str, on: str = "") -> None:
        self._require_started()
        names = self._runner.names(kind)
        if names is None:
            raise NotFound(f"there is no job kind {kind!r}")
        if job_id not in self._jobs:
            job = self._jobs[job_id] = _Job(kind, job_id, names)
            job.task = asyncio.create_task(self._run(job))

    async def cancel(self, job_id: str) -> bool:
        job = self._job(job_id)
        if job.outcome is not None or self._runner.in_final_phase(job_id):
            return False
        self._runner.cancel(job_id)
        return True

    async def is_active(self, job_id: str) -> bool:
        job = self._jobs.get(job_id)
        return job is not None and job.task is not None and not job.task.done()

    async def state(self, job_id: str) -> JobState:
        return self._job(job_id).state

    async def wait(self, job_id: str, timeout_s: float | None = None) -> JobState:
        job = self._job(job_id)
        if job.task is not None:
            await asyncio.wait({job.task}, timeout=timeout_s)
        return self._job(job_id).state

    async def stop(self) -> None:
        if not self._started:
            return
        self._started = False
        await self._runner.stop(STOP_GRACE_S)
        tasks = {job.task for job in self._jobs.values() if job.task is not None}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self, job: _Job) -> None:
        async def run(name: str, final: bool) -> Outcome:
            if name not in job.completed:
                job.completed[name] = await self._runner.run(job.kind, job.job_id, name, final)
            return job.completed[name]

        job.outcome = await run_in_order(job.names, run)

    def _job(self, job_id: str) -> _Job:
        self._require_started()
        try:
            return self._jobs[job_id]
        except KeyError:
            raise NotFound(f"there is no job {job_id!r}") from None

    def _require_started(self) -> None:
        if not self._started:
            raise not_started()
