"""The service of benchmark runs with all beneath it, without QEMUs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.benchmarks.bench_runs import FakeLook, FakeRunner, a_program, small
from vmtune.bench.model.runs.run import Run
from vmtune.bench.services.runs.job import RunJob
from vmtune.bench.services.runs.live import LiveRuns
from vmtune.bench.services.runs.runs import RunRequest, RunService
from vmtune.bench.services.runs.sites import Testbeds
from vmtune.config.settings import BenchQemu
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.inventory import Host
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.services.events import EventBus
from vmtune.services.hosts.connections import DriverFactory
from vmtune.services.hosts.hosts import HostService
from vmtune.services.tuning.profiles import ProfileService
from vmtune.storage import Store
from vmtune.testing.inline_jobs import InlineEngine

SMALL = RunRequest(small())


@dataclass
class It:
    """The service, and what is beneath it."""

    store: Store
    bus: EventBus
    profiles: ProfileService
    runner: FakeRunner
    look: FakeLook
    jobs: InlineEngine
    runs: RunService
    swept: list[Path]
    sysctls: dict[str, int]
    hosts: HostService
    live: LiveRuns

    async def ended(self, run: Run) -> Run:
        async with asyncio.timeout(60):
            await self.jobs.wait(str(run.id))
        return self.store.runs.get(run.id)

    async def do(self, request: RunRequest = SMALL) -> Run:
        return await self.ended((await self.runs.start(request)).run)


def no_host(host: Host) -> Driver:
    raise AssertionError(f"there are no hosts: {host}")


def assemble(
    store: Store,
    folder: Path,
    runner: FakeRunner,
    jobs: InlineEngine | None = None,
    make_driver: DriverFactory = no_host,
    kvm: bool = False,
) -> It:
    bus = EventBus(store)
    profiles = ProfileService(store, bus, BUILT_IN)
    program = a_program(folder)
    qemus = {name: BenchQemu(name, program) for name in ("system", "old")}
    look = FakeLook()
    swept: list[Path] = []
    sysctls = {"vm_max_map_count": 262144, "net_core_optmem_max_bytes": 131072}
    testbeds = Testbeds(
        qemus,
        folder / "bench",
        look,
        lambda base, *_others: swept.append(base),
        kvm_usable=lambda: kvm,
        sysctls=lambda: sysctls,
    )
    made = jobs or InlineEngine()
    hosts = HostService(store, bus, make_driver)
    live = LiveRuns(hosts, folder / "live")
    RunJob(store, bus, testbeds, live, runner, write_again_after_s=0.01).register(made)
    runs = RunService(store, bus, profiles, testbeds, live, made)
    return It(store, bus, profiles, runner, look, made, runs, swept, sysctls, hosts, live)


@asynccontextmanager
async def started(it: It) -> AsyncIterator[It]:
    await it.jobs.start()
    await it.runs.resume()
    try:
        yield it
    finally:
        await it.jobs.stop()
        await it.bus.drain()
