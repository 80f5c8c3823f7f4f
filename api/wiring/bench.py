"""Builds the services of the benchmark."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

from vmtune import lab
from vmtune.bench.migration.order import DirectTestbed, Testbed
from vmtune.bench.migration.scenarios import BenchHosts
from vmtune.bench.model.settable import choose
from vmtune.bench.services.campaigns.campaigns import CampaignService
from vmtune.bench.services.campaigns.job import CampaignJob
from vmtune.bench.services.campaigns.schedules import ScheduleService
from vmtune.bench.services.runs.job import RunJob, Runner
from vmtune.bench.services.runs.live import LiveRuns
from vmtune.bench.services.runs.runs import RunService
from vmtune.bench.services.runs.scenarios import ScenarioService
from vmtune.bench.services.runs.sites import Look, Sweep, Testbeds
from vmtune.bench.services.tune.job import StudyJob
from vmtune.bench.services.tune.studies import StudyService
from vmtune.config.settings import Settings
from vmtune.errors import LabError
from vmtune.jobs.base import JobEngine
from vmtune.lab.settings import LabSettings
from vmtune.model.host.facts import HostFacts
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.services.events import EventBus
from vmtune.services.heavy.work import Work
from vmtune.services.hosts.hosts import HostService
from vmtune.services.tuning.profiles import ProfileService
from vmtune.storage import Store


@dataclass(frozen=True, slots=True)
class BenchTools:
    """What the benchmark does to the machine; replaced in tests."""

    run: Runner
    look: Look
    sweep: Sweep


@dataclass(frozen=True, slots=True)
class Bench:
    """The benchmark's services."""

    scenarios: ScenarioService
    runs: RunService
    campaigns: CampaignService
    schedules: ScheduleService
    studies: StudyService

    async def resume(self) -> None:
        """At the service's start: go on with what an earlier one had begun."""
        await self.runs.resume()
        await self.campaigns.resume_all()
        await self.studies.resume_all()


def real_tools() -> BenchTools:
    """Real QEMUs."""
    from vmtune.bench.migration.capabilities import look  # noqa: PLC0415
    from vmtune.bench.migration.libvirt_stage import clear_lab  # noqa: PLC0415
    from vmtune.bench.run import run_any  # noqa: PLC0415 - only where runs are made
    from vmtune.bench.run_folder import clear_left_behind  # noqa: PLC0415

    async def look_at(testbed: Testbed, kvm: bool) -> BenchHosts:
        if isinstance(testbed, DirectTestbed):
            return await look(testbed, kvm)
        program = DirectTestbed(testbed.lab.qemu, consents=testbed.consents)
        return await look(program, kvm, await _lab_hosts(testbed.lab))

    def sweep(folder: Path, scratch: Path, settings: LabSettings) -> None:
        clear_left_behind(folder)
        clear_left_behind(scratch)
        clear_lab(settings)

    return BenchTools(run_any, look_at, sweep)


async def _lab_hosts(settings: LabSettings) -> tuple[HostFacts, HostFacts]:
    """What libvirt says of the lab's two hosts.

    :raise LabError: no lab is up.
    """
    from vmtune.hypervisor.libvirt.driver import LibvirtDriver  # noqa: PLC0415 - needs libvirt's library

    status = await asyncio.to_thread(lab.status, settings)
    if not status.running:
        raise LabError(
            f"no lab is running in {settings.folder}",
            field="testbed",
            code="lab_down",
            remedy="run `vmtune lab up` first",
        )
    found: list[HostFacts] = []
    for host in status.hosts:
        driver = LibvirtDriver(host.uri, peer_uri=host.peer_uri)
        try:
            found.append(await driver.host_facts())
        finally:
            await driver.close()
    source, destination = found
    return source, destination


def make_bench(
    settings: Settings,
    store: Store,
    bus: EventBus,
    profiles: ProfileService,
    hosts: HostService,
    jobs: JobEngine,
    tools: BenchTools,
    work: Work,
    tunables: TunableRegistry,
) -> Bench:
    """The services, with their job registered: before the job engine is started.

    :param tunables: what runs can set, packs included.
    """
    choose(tunables)
    testbeds = Testbeds(
        settings.qemus,
        settings.bench_dir,
        tools.look,
        tools.sweep,
        LabSettings.from_variables(os.environ),
        settings.bench_scratch_dir,
        settings.state_dir / "boot",
        consents=settings.consents,
    )
    live = LiveRuns(hosts, settings.bench_live_dir)
    RunJob(store, bus, testbeds, live, tools.run).register(jobs)
    runs = RunService(store, bus, profiles, testbeds, live, jobs)
    job = CampaignJob(store, bus, profiles, runs, jobs)
    job.register()
    campaigns = CampaignService(store, bus, profiles, runs, jobs, job)
    schedules = ScheduleService(store, campaigns)
    tuning = StudyJob(store, bus, profiles, runs, campaigns, jobs, work)
    tuning.register()
    studies = StudyService(store, bus, profiles, runs, testbeds, campaigns, jobs, tuning, work)
    return Bench(ScenarioService(testbeds), runs, campaigns, schedules, studies)
