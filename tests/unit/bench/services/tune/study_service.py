"""The service of studies with all beneath it, without QEMUs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.support.benchmarks.bench_runs import FakeRunner
from tests.support.benchmarks.studies import study_json
from tests.unit.bench.services.runs.run_service import It, assemble
from vmtune.bench.model.tune.kept import StudyState
from vmtune.bench.model.tune.steps import Step
from vmtune.bench.services.campaigns.campaigns import CampaignService
from vmtune.bench.services.campaigns.job import CampaignJob
from vmtune.bench.services.tune.deciding import decide
from vmtune.bench.services.tune.job import StudyJob
from vmtune.bench.services.tune.reading import Study
from vmtune.bench.services.tune.studies import StudyService
from vmtune.services.heavy.work import InThreads
from vmtune.storage import Store
from vmtune.testing.inline_jobs import InlineEngine

S = StudyState


@dataclass
class Bench:
    """The studies, and what is beneath them."""

    it: It
    campaigns: CampaignService
    studies: StudyService

    @property
    def store(self) -> Store:
        return self.it.store

    async def ended(self, id: object) -> Study:
        async with asyncio.timeout(240):
            await self.it.jobs.wait(str(id))
        return await self.studies.get(str(id))

    async def do(self, **changes: Any) -> Study:
        return await self.ended((await self.studies.start(study_json(**changes))).kept.id)


def make(
    store: Store,
    folder: Path,
    runner: FakeRunner,
    deciding: Callable[[Store, UUID], Step] = decide,
    **more: Any,
) -> Bench:
    jobs = InlineEngine()
    it = assemble(store, folder, runner, jobs)
    job = CampaignJob(store, it.bus, it.profiles, it.runs, jobs)
    job.register()
    campaigns = CampaignService(store, it.bus, it.profiles, it.runs, jobs, job)
    work = InThreads(store)
    tuning = StudyJob(store, it.bus, it.profiles, it.runs, campaigns, jobs, work, deciding, **more)
    tuning.register()
    testbeds = it.runs._testbeds
    studies = StudyService(
        store, it.bus, it.profiles, it.runs, testbeds, campaigns, jobs, tuning, work
    )
    return Bench(it, campaigns, studies)


@asynccontextmanager
async def started(bench: Bench) -> AsyncIterator[Bench]:
    await bench.it.jobs.start()
    await bench.it.runs.resume()
    await bench.campaigns.resume_all()
    await bench.studies.resume_all()
    try:
        yield bench
    finally:
        await bench.it.jobs.stop()
        await bench.it.bus.drain()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0.005)


def counted(store: Store, id: UUID) -> None:
    """Every run that counts is in one trial, once, and none runs twice in one block."""
    study = store.studies.get(id)
    told = [run["run_id"] for trial in store.studies.trials(id) for run in trial["runs"]]
    runs = [str(run.id) for run in store.studies.runs(id) if run.state.counts]
    assert Counter(filter(None, told)) == Counter(runs)
    for trial in store.studies.trials(id):
        blocks = [run["block"] for run in trial["runs"]]
        assert len(blocks) == len(set(blocks))
    assert study.state.ended
