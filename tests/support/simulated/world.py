"""All services over a real SQLite store and fake QEMUs: two hosts, one VM."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.simulated.fakes import NEWEST, VM, fake_pair, only
from tests.support.simulated.fleet import Fleet
from tests.support.stores.databases import empty_database
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.inventory import Host
from vmtune.model.migration.admission import Limits
from vmtune.model.migration.record import Migration, MigrationState, Trigger
from vmtune.model.plan.situation import Permissions
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.services.evacuations.evacuations import EvacuationService
from vmtune.services.evacuations.job import EvacuationJob
from vmtune.services.evacuations.plan import EvacuationPlanner
from vmtune.services.evacuations.vm_mover import VmMover
from vmtune.services.events import EventBus
from vmtune.services.forecasts.forecasts import ForecastService
from vmtune.services.forecasts.intents import IntentService
from vmtune.services.hosts.hosts import HostService
from vmtune.services.migrations.admission import Admission
from vmtune.services.migrations.job import MigrationJob
from vmtune.services.migrations.migrations import MigrationService
from vmtune.services.migrations.observer import Observer
from vmtune.services.migrations.records import MigrationRecords
from vmtune.services.tuning.applications import ApplyService
from vmtune.services.tuning.planning import PlanService
from vmtune.services.tuning.profiles import AssignmentService, ProfileService
from vmtune.storage import Store
from vmtune.testing.fake.driver import FakeDriver
from vmtune.testing.fake.qemu import DIRTIED_BYTES_PER_S, FakeQemu
from vmtune.testing.inline_jobs import InlineEngine


@dataclass
class World:
    """The services, and the fakes beneath them."""

    store: Store
    drivers: dict[str, FakeDriver]
    bus: EventBus
    hosts: HostService
    profiles: ProfileService
    assignments: AssignmentService
    plans: PlanService
    applications: ApplyService
    job: MigrationJob
    jobs: InlineEngine
    migrations: MigrationService
    observer: Observer
    admission: Admission
    evacuations: EvacuationService

    @property
    def source(self) -> FakeQemu:
        """The QEMU on host a."""
        return only(self.drivers["a"])

    @property
    def waiting(self) -> FakeQemu:
        """The QEMU on host b."""
        return only(self.drivers["b"])

    async def profile(self, name: str = "p", **values: object) -> None:
        """Store a profile."""
        await self.profiles.create(name, values)

    async def begin(self, profile: str | None = None, **fields: Any) -> Migration:
        """Start a migration that does not converge, and wait until QEMU runs it."""
        self.source.parameters["max-bandwidth"] = DIRTIED_BYTES_PER_S
        record = await self.migrations.start(VM, "b", profile, **fields)
        await self.until(
            lambda: self.store.migrations.get(record.id).state is MigrationState.ACTIVE
        )
        return record

    async def migrate(self, profile: str | None = None, **fields: object) -> Migration:
        """Migrate the VM from a to b, slowly enough to be watched, and wait for the end."""
        before = self.source.parameters["max-bandwidth"]
        self.source.parameters["max-bandwidth"] = DIRTIED_BYTES_PER_S
        record = await self.migrations.start(
            VM,
            "b",
            profile,
            **fields,  # type: ignore[arg-type] # as named
        )

        def seen() -> bool:
            now = self.store.migrations.get(record.id)
            read_back = now.state is MigrationState.ACTIVE and (now.outcomes or not now.wanted)
            return bool(read_back) or now.state.ended

        await self.until(seen)
        self.source.parameters["max-bandwidth"] = before
        return await self.ended(record)

    async def ended(self, record: Migration) -> Migration:
        """The record once its job is over."""
        async with asyncio.timeout(60):
            await self.jobs.wait(str(record.id))
        return self.store.migrations.get(record.id)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until *condition* holds."""
        async with asyncio.timeout(60):
            while not condition():  # noqa: ASYNC110 - the fakes have no event for it
                await asyncio.sleep(0.01)


@asynccontextmanager
async def world(folder: Path, version: str = NEWEST, **qemu: object) -> AsyncIterator[World]:
    """A world with hosts a (which has the VM) and b (where a QEMU waits for it)."""
    url = empty_database(folder / "world.db")
    a, b = fake_pair(version, **qemu)
    drivers = {"a": a, "b": b}

    def factory(host: Host) -> FakeDriver:
        return drivers[host.name]

    with Store.open(url) as store:
        made = assemble(store, drivers, factory)
        await made.jobs.start()
        for name in drivers:
            await made.hosts.add(name, f"qmp+unix:///fake/{name}")
        try:
            yield made
        finally:
            await made.jobs.stop()
            await made.job.close()
            await made.admission.close()
            await made.hosts.close()
            await made.bus.drain()


def assemble(
    store: Store,
    drivers: dict[str, FakeDriver],
    factory: Callable[[Host], Driver],
    jobs: InlineEngine | None = None,
    limits: Limits = Limits(),  # noqa: B008 - frozen
) -> World:
    """The services over a store; *jobs* of an earlier service, to go on after it died."""
    bus = EventBus(store)
    hosts = HostService(store, bus, factory)
    profiles = ProfileService(store, bus, BUILT_IN)
    assignments = AssignmentService(store, bus, profiles)
    plans = PlanService(hosts, assignments, Permissions(), BUILT_IN, store)
    applications = ApplyService(store, bus, hosts, plans)
    admission = Admission(store, bus, limits)
    migrating = store, bus, hosts, plans, applications, admission, 50
    job = MigrationJob(*migrating)
    jobs = jobs or InlineEngine()
    job.register(jobs)
    found = MigrationJob(*migrating, Trigger.OBSERVED)
    found.register(jobs)
    forecasts = ForecastService(store, plans)
    records = MigrationRecords(store, bus)
    observer = Observer(store, hosts, assignments, jobs, found.departed, records, forecasts)
    intents = IntentService(forecasts, plans, hosts)
    migrations = MigrationService(store, bus, hosts, plans, jobs, job, intents)
    planner = EvacuationPlanner(store, hosts, plans)
    mover = VmMover(store, bus, planner, migrations, job, jobs)
    evacuating = EvacuationJob(store, bus, planner, mover, admission, jobs)
    evacuating.register()
    return World(
        store,
        drivers,
        bus,
        hosts,
        profiles,
        assignments,
        plans,
        applications,
        job,
        jobs,
        migrations,
        observer,
        admission,
        EvacuationService(store, bus, planner, admission, jobs, evacuating),
    )


@asynccontextmanager
async def fleet_world(
    folder: Path,
    fleet: Fleet,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    jobs: InlineEngine | None = None,
    remember: Callable[[World, Fleet], None] | None = None,
) -> AsyncIterator[World]:
    """A world over a simulated fleet; the same folder and *jobs* again go on after a death.

    :param remember: makes the hosts known instead, where each is not to be asked.
    """
    url = empty_database(folder / "fleet.db")
    with Store.open(url) as store:
        made = assemble(store, {}, lambda host: fleet.driver(host.name), jobs, limits)
        await made.jobs.start()
        if remember is not None:
            remember(made, fleet)
        known = {host.name for host in await made.hosts.all()}
        for name in fleet.hosts:
            if name not in known:
                await made.hosts.add(name, f"qemu+tcp://{name}/system")
        try:
            yield made
        finally:
            await made.jobs.stop()
            await made.admission.close()
            await made.hosts.close()
            await made.bus.drain()


def after_death(jobs: InlineEngine) -> InlineEngine:
    """The engine of a service that died, as the next one finds it: with the jobs, without the
    phases."""
    jobs._started = False
    jobs._runner = type(jobs._runner)()
    return jobs
