"""Builds the services of the benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vmtune.jobs.base import JobEngine
from vmtune.lab.settings import LabSettings
from vmtune.services.bus import EventBus
from vmtune.services.profiles import ProfileService
from vmtune.services.runs import RunService
from vmtune.services.runs_job import RunJob, Runner
from vmtune.services.runs_places import BenchPlaces, Look, Sweep
from vmtune.services.runs_scenarios import ScenarioService
from vmtune.settings import Settings
from vmtune.store import Store


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


def real_tools() -> BenchTools:
    """Real QEMUs."""
    from vmtune.bench.ground import look  # noqa: PLC0415 - only where runs are made
    from vmtune.bench.libvirt_stage import clear_lab  # noqa: PLC0415
    from vmtune.bench.run_folder import clear_left_behind  # noqa: PLC0415
    from vmtune.bench.runner import run_migration  # noqa: PLC0415

    def sweep(folder: Path, lab: LabSettings) -> None:
        clear_left_behind(folder)
        clear_lab(lab)

    return BenchTools(run_migration, look, sweep)


def make_bench(
    settings: Settings,
    store: Store,
    bus: EventBus,
    profiles: ProfileService,
    jobs: JobEngine,
    tools: BenchTools,
) -> Bench:
    """The services, with their job registered: before the job engine is started."""
    places = BenchPlaces(settings.qemus, settings.bench_dir, tools.look, tools.sweep)
    RunJob(store, bus, places, tools.run).register(jobs)
    return Bench(ScenarioService(places), RunService(store, bus, profiles, places, jobs))
