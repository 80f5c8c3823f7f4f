"""Lets the service share its work where several use the same PostgreSQL database."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import cast

from vmtune import __version__
from vmtune.bench.machine.environment import host_name
from vmtune.config.settings import Settings
from vmtune.hypervisor.guard import OPEN
from vmtune.hypervisor.protocol import Driver
from vmtune.jobs.base import JobEngine
from vmtune.services.cluster.cluster import Cluster, ClusterEngine
from vmtune.services.cluster.jobs import ClusterJobs, runnable_on
from vmtune.services.cluster.lease import Lease
from vmtune.services.events import EventBus
from vmtune.services.hosts.connections import DriverFactory, ServiceIdentity
from vmtune.services.hosts.hosts import HostService
from vmtune.services.tuning.applications import ApplyService
from vmtune.storage import Store


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
    fleet = Cluster(store, bus, hosts, identity, lease, __version__)
    stack.push_async_callback(fleet.close)
    await fleet.join()
    return hosts, fleet


def cluster_jobs(own: JobEngine, store: Store, fleet: Cluster | None) -> JobEngine:
    """The job engine as services see it.

    :param own: this service's.
    """
    return own if fleet is None else ClusterJobs(own, store, fleet.name)


async def share(
    fleet: Cluster | None, own: JobEngine, store: Store, applications: ApplyService
) -> None:
    """Begin to share, once jobs run."""
    if fleet is not None:
        mine = runnable_on(store, fleet.machine)
        await fleet.start(cast(ClusterEngine, own), mine, applications.reconcile)
