"""Lets the service share its work where several use the same PostgreSQL database."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import cast

from vmtune import __version__
from vmtune.bench.machine.environment import host_name
from vmtune.config.settings import Settings
from vmtune.hypervisor.guard import OPEN
from vmtune.hypervisor.protocol import Driver
from vmtune.jobs.base import JobEngine
from vmtune.jobs.file_lock import records_held
from vmtune.services.cluster.cluster import Cluster, ClusterEngine
from vmtune.services.cluster.jobs import ClusterJobs, runnable_on
from vmtune.services.cluster.lease import Lease
from vmtune.services.events import EventBus
from vmtune.services.hosts.connections import DriverFactory, ServiceIdentity
from vmtune.services.hosts.hosts import HostService
from vmtune.services.tuning.applications import ApplyService
from vmtune.storage import Store
from vmtune.storage.failures import parse_url


async def open_store(settings: Settings, stack: AsyncExitStack) -> Store:
    """The records, for this service alone where they are a SQLite file.

    :raise SetupError: they cannot be opened, or another service uses the file.
    :raise SchemaMismatch: the schema is another one.
    """
    stack.enter_context(_unshared(settings))
    store = await asyncio.to_thread(Store.open, settings.database_url)
    stack.callback(store.close)
    return store


@contextmanager
def _unshared(settings: Settings) -> Iterator[None]:
    """Within the block this service has a SQLite file of records for itself; on PostgreSQL others
    share them. A file that is not there is left so: the schema is missing.

    :raise SetupError: another service uses it.
    """
    records, jobs = parse_url(settings.database_url), parse_url(settings.jobs_database_url)
    if records.get_backend_name() != "sqlite" or not Path(str(records.database)).exists():
        yield
        return
    file = Path(str(jobs.database)) if jobs.get_backend_name() == "sqlite" else None
    with records_held(Path(str(records.database)), file):
        yield


async def open_hosts(
    settings: Settings,
    store: Store,
    bus: EventBus,
    make: Callable[..., Driver],
    factory: DriverFactory | None,
    stack: AsyncExitStack,
) -> tuple[HostService, Cluster | None]:
    """The hosts; and the cluster that this service has joined, if it shares them.

    :param make: makes a host's driver, with a guard of its changes.
    :param factory: makes it instead, in tests.
    :raise SetupError: another service of the same name lives.
    """

    more_commands = tuple(sorted(settings.consents))
    lease = Lease()
    guard = lease if settings.shared else OPEN
    guarded = functools.partial(make, more_commands=more_commands, guard=guard)
    identity = ServiceIdentity(settings.service_name, host_name()) if settings.shared else None
    hosts = HostService(store, bus, factory or guarded, identity, settings.connection_keys_dir)
    stack.push_async_callback(hosts.close)
    if identity is None:
        return hosts, None
    cluster = Cluster(store, bus, hosts, identity, lease, __version__)
    stack.push_async_callback(cluster.close)
    await cluster.join()
    return hosts, cluster


def cluster_jobs(own: JobEngine, store: Store, cluster: Cluster | None) -> JobEngine:
    """The job engine as services see it.

    :param own: this service's.
    """
    return own if cluster is None else ClusterJobs(own, store, cluster.name)


async def share(
    cluster: Cluster | None, own: JobEngine, store: Store, applications: ApplyService
) -> None:
    """Begin to share, once jobs run."""
    if cluster is not None:
        mine = runnable_on(store, cluster.machine)
        await cluster.start(cast(ClusterEngine, own), mine, applications.reconcile)
