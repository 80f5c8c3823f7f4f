"""The job engine of a cluster: the service that manages a host runs its jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from vmtune.errors import NotFound
from vmtune.jobs.base import Instrument, JobEngine, JobState, JobStatus, Phase
from vmtune.jobs.kinds import CAMPAIGN_KIND, MIGRATION_KIND, OBSERVED_KIND, RUN_KIND, STUDY_KIND
from vmtune.services.cluster.cluster import CanRun
from vmtune.storage import Store

_POLL_INTERVAL_S = 0.25


class ClusterJobs:
    """Implements :class:`vmtune.jobs.base.JobEngine`.

    :param engine: runs this service's own jobs.
    :param name: this service.
    """

    def __init__(self, engine: JobEngine, store: Store, name: str) -> None:
        self._engine = engine
        self._store = store
        self._name = name

    def register(self, kind: str, phases: Sequence[tuple[str, Phase]]) -> None:
        """See :meth:`JobEngine.register`."""
        self._engine.register(kind, phases)

    def instrument(self, with_: Instrument) -> None:
        """See :meth:`JobEngine.instrument`."""
        self._engine.instrument(with_)

    async def start(self) -> None:
        """See :meth:`JobEngine.start`."""
        await self._engine.start()

    async def submit(self, kind: str, job_id: str, on: str = "") -> None:
        """See :meth:`JobEngine.submit`. A job of another service is requested from it; it begins
        within a second."""
        if on:
            to = await asyncio.to_thread(self._store.services.order, job_id, kind, on, self._name)
            if to != self._name:
                return
        await self._engine.submit(kind, job_id)

    async def cancel(self, job_id: str) -> bool:
        """See :meth:`JobEngine.cancel`."""
        if await asyncio.to_thread(self._store.services.cancel_order, job_id):
            return True
        return await self._engine.cancel(job_id)

    async def is_active(self, job_id: str) -> bool:
        """See :meth:`JobEngine.is_active`."""
        if await self._engine.is_active(job_id):
            return True
        return await asyncio.to_thread(self._store.services.ordered, job_id) is not None

    async def state(self, job_id: str) -> JobState:
        """See :meth:`JobEngine.state`."""
        order = await asyncio.to_thread(self._store.services.ordered, job_id)
        if order is not None:
            return JobState(job_id, order.kind, JobStatus.QUEUED)
        return await self._engine.state(job_id)

    async def wait(self, job_id: str, timeout_s: float | None = None) -> JobState:
        """See :meth:`JobEngine.wait`."""
        loop = asyncio.get_running_loop()
        deadline = None if timeout_s is None else loop.time() + timeout_s
        while True:
            order = await asyncio.to_thread(self._store.services.ordered, job_id)
            left = None if deadline is None else max(deadline - loop.time(), 0)
            if order is None:
                try:
                    return await self._engine.wait(job_id, left)
                except NotFound:
                    # The order may just have become a job.
                    order = await asyncio.to_thread(self._store.services.ordered, job_id)
                    if order is None:
                        raise
            if left == 0:
                return JobState(job_id, order.kind, JobStatus.QUEUED)
            await asyncio.sleep(_POLL_INTERVAL_S)

    async def stop(self) -> None:
        """See :meth:`JobEngine.stop`."""
        await self._engine.stop()


def runnable_on(store: Store, machine: str) -> Mapping[str, CanRun]:
    """For each kind of job, whether a service on *machine* can run one: a migration where its
    source can be reached, a run where it was requested. Other kinds anywhere."""

    def of_migration(job: str) -> bool:
        try:
            host = store.hosts.get(store.migrations.get(UUID(job)).source)
        except NotFound:
            return True  # its source was removed: the job reports that
        return host.machine in ("", machine)

    def of_run(job: str) -> bool:
        return store.runs.get(UUID(job)).host == machine

    def of_campaign(job: str) -> bool:
        return store.campaigns.get(UUID(job)).host == machine

    def of_study(job: str) -> bool:
        return store.studies.get(UUID(job)).host == machine

    def in_thread(check: Callable[[str], bool]) -> CanRun:
        async def can_run(job: str) -> bool:
            return await asyncio.to_thread(check, job)

        return can_run

    return {
        MIGRATION_KIND: in_thread(of_migration),
        OBSERVED_KIND: in_thread(of_migration),
        RUN_KIND: in_thread(of_run),
        CAMPAIGN_KIND: in_thread(of_campaign),
        STUDY_KIND: in_thread(of_study),
    }
