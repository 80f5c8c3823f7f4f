"""The job engine of a service that shares the work: a job about a host goes to who drives it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from vmtune.errors import NotFound
from vmtune.jobs.base import Instrument, JobEngine, JobState, JobStatus, Phase
from vmtune.jobs.kinds import CAMPAIGN_KIND, MIGRATION_KIND, OBSERVED_KIND, RUN_KIND
from vmtune.services.cluster.cluster import Mine
from vmtune.storage import Store

_LOOK_AGAIN_S = 0.25


class SharedJobs:
    """Implements :class:`vmtune.jobs.base.JobEngine`.

    :param engine: carries out what is this service's.
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
        """See :meth:`JobEngine.submit`. What another service is to carry is left to it, and begun
        by it within a second."""
        if on:
            to = await asyncio.to_thread(self._store.fleet.order, job_id, kind, on, self._name)
            if to != self._name:
                return
        await self._engine.submit(kind, job_id)

    async def cancel(self, job_id: str) -> bool:
        """See :meth:`JobEngine.cancel`."""
        if await asyncio.to_thread(self._store.fleet.cancel_order, job_id):
            return True
        return await self._engine.cancel(job_id)

    async def is_active(self, job_id: str) -> bool:
        """See :meth:`JobEngine.is_active`."""
        if await self._engine.is_active(job_id):
            return True
        return await asyncio.to_thread(self._store.fleet.ordered, job_id) is not None

    async def state(self, job_id: str) -> JobState:
        """See :meth:`JobEngine.state`."""
        order = await asyncio.to_thread(self._store.fleet.ordered, job_id)
        if order is not None:
            return JobState(job_id, order.kind, JobStatus.QUEUED)
        return await self._engine.state(job_id)

    async def wait(self, job_id: str, timeout_s: float | None = None) -> JobState:
        """See :meth:`JobEngine.wait`."""
        loop = asyncio.get_running_loop()
        give_up = None if timeout_s is None else loop.time() + timeout_s
        while True:
            order = await asyncio.to_thread(self._store.fleet.ordered, job_id)
            left = None if give_up is None else max(give_up - loop.time(), 0)
            if order is None:
                try:
                    return await self._engine.wait(job_id, left)
                except NotFound:
                    # It may just be going from the one to the other.
                    order = await asyncio.to_thread(self._store.fleet.ordered, job_id)
                    if order is None:
                        raise
            if left == 0:
                return JobState(job_id, order.kind, JobStatus.QUEUED)
            await asyncio.sleep(_LOOK_AGAIN_S)

    async def stop(self) -> None:
        """See :meth:`JobEngine.stop`."""
        await self._engine.stop()


def carried_at(store: Store, machine: str) -> Mapping[str, Mine]:
    """For each kind of job, whether a service on *machine* can carry one out: a migration where
    its source can be reached, a run where it was ordered. Other kinds anywhere."""

    def of_migration(job: str) -> bool:
        try:
            host = store.hosts.get(store.migrations.get(UUID(job)).source)
        except NotFound:
            return True  # there is nothing left to reach: its job finds that out
        return host.machine in ("", machine)

    def of_run(job: str) -> bool:
        return store.runs.get(UUID(job)).host == machine

    def of_campaign(job: str) -> bool:
        return store.campaigns.get(UUID(job)).host == machine

    def beside(look: Callable[[str], bool]) -> Mine:
        async def asked(job: str) -> bool:
            return await asyncio.to_thread(look, job)

        return asked

    return {
        MIGRATION_KIND: beside(of_migration),
        OBSERVED_KIND: beside(of_migration),
        RUN_KIND: beside(of_run),
        CAMPAIGN_KIND: beside(of_campaign),
    }
