"""Builds everything once; the only place that chooses concrete drivers."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import structlog

from vmtune import __version__
from vmtune.api.http.known_bodies import KnownBodies
from vmtune.api.wiring.bench import BenchTools, make_bench, real_tools
from vmtune.api.wiring.cluster import cluster_jobs, open_hosts, open_store, share
from vmtune.api.wiring.limits import make_limits
from vmtune.api.wiring.retention import retention_of, scanning
from vmtune.bench.migration.libvirt_stage import is_of_a_run
from vmtune.bench.services.campaigns.campaigns import CampaignService
from vmtune.bench.services.campaigns.schedules import ScheduleService
from vmtune.bench.services.comparisons.history import HistoryService
from vmtune.bench.services.packs import use_packs
from vmtune.bench.services.runs.runs import RunService
from vmtune.bench.services.runs.scenarios import ScenarioService
from vmtune.bench.services.trends import TrendService
from vmtune.bench.services.tune.studies import StudyService
from vmtune.config.settings import Settings
from vmtune.errors import VmtuneError
from vmtune.hypervisor.guard import OPEN, Guard
from vmtune.hypervisor.libvirt.arriving_xml import LibvirtArrivingXml
from vmtune.hypervisor.libvirt.certificates import certificate_until
from vmtune.hypervisor.linux.doctor_probe import examine
from vmtune.hypervisor.protocol import Driver
from vmtune.jobs.base import JobEngine
from vmtune.model.host.facts import Connection
from vmtune.model.host.inventory import Host
from vmtune.model.migration.admission import Limits
from vmtune.model.migration.record import Trigger
from vmtune.model.plan.situation import Permissions
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.packs import registry
from vmtune.services.access.access import Access
from vmtune.services.access.users import LocalUsers
from vmtune.services.cluster.cluster import Cluster
from vmtune.services.evacuations.evacuations import EvacuationService
from vmtune.services.evacuations.job import EvacuationJob
from vmtune.services.evacuations.plan import EvacuationPlanner
from vmtune.services.evacuations.vm_mover import VmMover
from vmtune.services.events import EventBus
from vmtune.services.forecasts.forecasts import ForecastService
from vmtune.services.forecasts.intents import IntentService
from vmtune.services.forecasts.kept import settle_left
from vmtune.services.freshness import Freshness
from vmtune.services.heavy.work import HeavyWork, Work
from vmtune.services.hosts.check import HostCheckService
from vmtune.services.hosts.checks import HostChecks
from vmtune.services.hosts.connections import DriverFactory
from vmtune.services.hosts.doctor import DoctorService
from vmtune.services.hosts.hosts import HostService
from vmtune.services.hosts.limits import HostLimits
from vmtune.services.hosts.pools import PoolService
from vmtune.services.idempotency import IdempotencyService
from vmtune.services.instrumented_jobs import instrumented
from vmtune.services.inventory_lists import InventoryLists
from vmtune.services.metrics import telemetry
from vmtune.services.metrics.exposition import Exposition
from vmtune.services.migrations.admission import Admission
from vmtune.services.migrations.hook import HookService
from vmtune.services.migrations.job import MigrationJob
from vmtune.services.migrations.migrations import MigrationService
from vmtune.services.migrations.observer import Observer
from vmtune.services.migrations.records import MigrationRecords
from vmtune.services.overview import OverviewService
from vmtune.services.queries import Queries
from vmtune.services.retention import RetentionService
from vmtune.services.tuning.applications import ApplyService
from vmtune.services.tuning.drift import DriftService
from vmtune.services.tuning.planning import PlanService
from vmtune.services.tuning.profiles import AssignmentService, ProfileService
from vmtune.services.webhooks.webhooks import Outbox, WebhookService
from vmtune.storage import Store, head_revision

log = structlog.get_logger(__name__)

_SETTLE_EVERY_S = 15.0
_RECONCILE_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True)
class Container:
    """The services, as the routes use them.

    :param tunables: vmtune's own and those of the loaded packs.
    :param cluster: None where one service manages every host.
    :param known_samples: pages of samples as they were answered.
    :param stopping: set when the service begins to stop: streams end at once.
    """

    settings: Settings
    tunables: TunableRegistry
    access: Access
    bus: EventBus
    hosts: HostService
    limits: HostLimits
    pools: PoolService
    profiles: ProfileService
    assignments: AssignmentService
    plans: PlanService
    forecasts: ForecastService
    applications: ApplyService
    migrations: MigrationService
    evacuations: EvacuationService
    admission: Admission
    scenarios: ScenarioService
    runs: RunService
    campaigns: CampaignService
    studies: StudyService
    heavy: Work
    history: HistoryService
    trends: TrendService
    schedules: ScheduleService
    hooks: HookService
    queries: Queries
    inventory: InventoryLists
    overview: OverviewService
    freshness: Freshness
    exposition: Exposition
    doctor: DoctorService
    host_check: HostCheckService
    drift: DriftService
    idempotency: IdempotencyService
    webhooks: WebhookService
    cluster: Cluster | None = None
    known_samples: KnownBodies = field(default_factory=KnownBodies)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)


def make_driver(
    host: Host,
    more_commands: Collection[str] = (),
    guard: Guard = OPEN,
    tunables: TunableRegistry = BUILT_IN,
) -> Driver:
    """The driver for a host's URI.

    :param more_commands: QMP commands that the operator allows in addition to vmtune's.
    :param guard: admits changes of the host.
    :param tunables: what it reads and sets, packs included.
    :raise SetupError: libvirt's library is not installed.
    """
    if host.connection is Connection.QMP:
        from vmtune.hypervisor.qmp.driver import QmpDriver  # noqa: PLC0415 - only where it is used

        options: dict[str, Any] = {
            "more_commands": more_commands,
            "guard": guard,
            "tunables": tunables,
        }
        if host.migration_address:
            options["migration_address"] = host.migration_address
        return QmpDriver(host.uri, **options)
    from vmtune.hypervisor.libvirt.driver import LibvirtDriver  # noqa: PLC0415 - needs libvirt's library

    return LibvirtDriver(
        host.uri,
        peer_uri=host.peer_uri,
        more_commands=more_commands,
        guard=guard,
        tunables=tunables,
    )


def _limits(settings: Settings) -> Limits:
    return Limits(
        settings.max_outgoing_migrations,
        settings.max_incoming_migrations,
        settings.max_migrations,
        settings.max_copying_migrations,
    )


def make_jobs(settings: Settings, given: JobEngine | None = None) -> JobEngine:
    """The job engine, instrumented: *given*, or the durable one, whose import takes most of a
    second."""
    if given is None:
        from vmtune.jobs.durable import DurableEngine  # noqa: PLC0415

        given = DurableEngine(settings.jobs_database_url, settings.service_name)
    given.instrument(instrumented)
    return given


@asynccontextmanager
async def open_container(
    settings: Settings,
    *,
    driver_factory: DriverFactory | None = None,
    jobs: JobEngine | None = None,
    bench_tools: BenchTools | None = None,
    heavy: Callable[[Store], Work] | None = None,
) -> AsyncIterator[Container]:
    """Everything, ready to serve: the store is open, interrupted work is settled or resumed, and
    jobs run. All is closed at the end.

    :raise SchemaMismatch: the database is of another version; names the command that fixes it.
    :raise SetupError: a database cannot be opened.
    :raise InvalidInput: a tunable pack cannot be accepted.
    """
    users = LocalUsers(settings.socket_group)
    async with AsyncExitStack() as stack:
        tunables = await asyncio.to_thread(registry, settings.packs)
        store = await open_store(settings, stack)
        bus = EventBus(store)
        stack.push_async_callback(bus.drain)
        make = functools.partial(make_driver, tunables=tunables)
        hosts, cluster = await open_hosts(settings, store, bus, make, driver_factory, stack)
        access = Access.make(settings, users, store, hosts)
        stack.push_async_callback(access.tokens.note_uses)
        profiles = ProfileService(store, bus, tunables)
        assignments = AssignmentService(store, bus, profiles)
        permissions = Permissions(
            settings.destination_command_line,
            settings.host_changes,
            pack_consents=settings.consents,
        )
        plans = PlanService(hosts, assignments, permissions, tunables, store)
        limits = make_limits(settings, hosts, bus)
        applications = ApplyService(store, bus, hosts, plans, limits)
        admission = Admission(store, bus, _limits(settings))
        stack.push_async_callback(admission.close)
        migrating = store, bus, hosts, plans, applications, admission, settings.sample_hz
        own = await asyncio.to_thread(make_jobs, settings, jobs)
        engine = cluster_jobs(own, store, cluster)
        job, found = _migration_jobs(functools.partial(MigrationJob, *migrating), engine, stack)
        migrations = MigrationService(
            store,
            bus,
            hosts,
            plans,
            engine,
            job,
            IntentService(ForecastService(store, plans, settings.sample_guest_pages), plans, hosts),
        )
        planner = EvacuationPlanner(store, hosts, plans)
        evacuating = EvacuationJob(
            store,
            bus,
            planner,
            VmMover(store, bus, planner, migrations, job, engine),
            admission,
            engine,
        )
        evacuating.register()
        evacuations = EvacuationService(store, bus, planner, admission, engine, evacuating)
        tools = bench_tools or real_tools()
        work = await stack.enter_async_context(_working(settings, store, heavy))
        bench = make_bench(settings, store, bus, profiles, hosts, engine, tools, work, tunables)
        await stack.enter_async_context(_reconciling(applications))
        stack.push_async_callback(engine.stop)
        await engine.start()
        await bench.resume()
        await evacuations.resume_all()
        if settings.observe_migrations:
            records = MigrationRecords(store, bus)
            observer = Observer(
                store,
                hosts,
                assignments,
                engine,
                found.departed,
                records,
                migrations.intents.forecasts,
                ignored=is_of_a_run,
            )
            stack.push_async_callback(observer.close)
            await observer.start()
        await share(cluster, own, store, applications)
        trends = TrendService(store, HistoryService(store))
        chores = (
            job.settle_unknown,
            lambda: job.settle_orphans(engine),
            lambda: found.settle_orphans(engine),
            applications.settle_unknown,
            limits.settle,
            lambda: settle_left(store),
            bench.runs.clear_live,
            bus.forget_old,
            access.drop_expired,
            RetentionService(store, retention_of(settings)).run,
            bench.schedules.run,
            trends.run,
        )
        await stack.enter_async_context(_settling(*chores, outbox=_outbox(settings, store)))
        drift = await stack.enter_async_context(scanning(settings, store, bus, hosts, plans))
        yield Container(
            settings=settings,
            tunables=tunables,
            access=access,
            bus=bus,
            hosts=hosts,
            limits=limits,
            pools=PoolService(hosts),
            profiles=profiles,
            assignments=assignments,
            plans=plans,
            forecasts=migrations.intents.forecasts,
            applications=applications,
            migrations=migrations,
            evacuations=evacuations,
            admission=admission,
            scenarios=bench.scenarios,
            runs=bench.runs,
            campaigns=bench.campaigns,
            studies=bench.studies,
            heavy=work,
            history=trends.history,
            trends=trends,
            schedules=bench.schedules,
            hooks=HookService(store, bus, assignments, permissions, LibvirtArrivingXml()),
            queries=Queries(store, hosts, tunables),
            inventory=InventoryLists(store, hosts),
            overview=OverviewService(store, hosts.contacts),
            freshness=Freshness(store),
            exposition=Exposition(
                store, __version__, head_revision(), cluster.name if cluster else ""
            ),
            doctor=(
                doctor := await stack.enter_async_context(
                    _checking(settings, hosts, DoctorService(store, hosts, profiles, examine))
                )
            ),
            host_check=HostCheckService(hosts, doctor, certificate_until),
            drift=drift,
            idempotency=IdempotencyService(store),
            webhooks=WebhookService(store),
            cluster=cluster,
        )


@asynccontextmanager
async def _working(
    settings: Settings, store: Store, given: Callable[[Store], Work] | None
) -> AsyncIterator[Work]:
    """Where heavy work is done: *given*, or in processes."""
    if given is not None:
        yield given(store)
        return
    work = HeavyWork(settings.database_url, begin=(use_packs, (settings.packs,)))
    try:
        yield work
    finally:
        await work.close()


@asynccontextmanager
async def _background(work: Coroutine[object, object, None]) -> AsyncIterator[asyncio.Task[None]]:
    """Run *work* during the block, and end it with the block."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def _checking(
    settings: Settings, hosts: HostService, doctor: DoctorService
) -> AsyncIterator[DoctorService]:
    """Ask all hosts now and then how they are."""
    if not settings.host_check_interval_s:
        yield doctor
        return
    async with _background(HostChecks(hosts, doctor, settings.host_check_interval_s).run()):
        yield doctor


@asynccontextmanager
async def _reconciling(applications: ApplyService) -> AsyncIterator[None]:
    """Settle interrupted applications before anything new begins. One whose host does not answer
    keeps its VM reserved and is settled in the background."""
    async with _background(applications.reconcile()) as task:
        await asyncio.wait({task}, timeout=_RECONCILE_WITHIN_S)
        if task.done():
            task.result()
        yield


def _outbox(settings: Settings, store: Store) -> Outbox:
    return Outbox(store, settings.webhook_own_addresses)


def _migration_jobs(
    make: Callable[[Trigger], MigrationJob], engine: JobEngine, stack: AsyncExitStack
) -> tuple[MigrationJob, MigrationJob]:
    """Those of vmtune's own migrations, and of others'."""
    own, others = make(Trigger.VMTUNE), make(Trigger.OBSERVED)
    for job in (own, others):
        job.register(engine)
        stack.push_async_callback(job.close)
    return own, others


@asynccontextmanager
async def _settling(*chores: Callable[[], Awaitable[None]], outbox: Outbox) -> AsyncIterator[None]:
    """Look again at what ended as unknown, and drop what has expired: now, and every 15 s. Send
    what webhooks are to be told."""

    async def settle() -> None:
        while True:
            for chore in chores:
                try:
                    await chore()
                except VmtuneError as error:
                    # The database is away for a moment, or another service has taken over.
                    log.warning("a background task failed", reason=error.message)
                    telemetry.task_failed()
                except Exception:
                    # Tried again in 15 s; what fails once must not end the looking.
                    log.exception("a background task failed")
                    telemetry.task_failed()
            await asyncio.sleep(_SETTLE_EVERY_S)

    async with _background(settle()), _background(outbox.run()):
        yield
