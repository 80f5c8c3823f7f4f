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
from vmtune.services.cluster.cluster import Engine, Fleet
from vmtune.services.cluster.jobs import SharedJobs, carried_at
from vmtune.services.cluster.lease import Lease
from vmtune.services.events import EventBus
from vmtune.services.hosts.hosts import DriverFactory, HostService, Place
from vmtune.services.tuning.applications import ApplyService
from vmtune.storage import Store


async def open_hosts(
    settings: Settings,
    store: Store,
    bus: EventBus,
    make: Callable[..., Driver],
    factory: DriverFactory | None,
    stack: AsyncExitStack,
) -> tuple[HostService, Fleet | None]:
    """The hosts; and this service among others, where it shares them: it has joined them.

    :param make: makes a host's driver, with a guard of what it changes.
    :param factory: makes it instead, in tests.
    :raise SetupError: another service of the same name lives.
    """

    more_commands = tuple(sorted(settings.consents))
    lease = Lease()
    guard = lease if settings.shared else OPEN
    guarded = functools.partial(make, more_commands=more_commands, guard=guard)
    place = Place(settings.service_name, host_name()) if settings.shared else None
    hosts = HostService(store, bus, factory or guarded, place, settings.connection_keys_dir)
    stack.push_async_callback(hosts.close)
    if place is None:
        return hosts, None
    fleet = Fleet(store, bus, hosts, place, lease, __version__)
    stack.push_async_callback(fleet.close)
    await fleet.join()
    return hosts, fleet


def shared_jobs(own: JobEngine, store: Store, fleet: Fleet | None) -> JobEngine:
    """The job engine as services see it.

    :param own: this service's.
    """
    return own if fleet is None else SharedJobs(own, store, fleet.name)


async def share(
    fleet: Fleet | None, own: JobEngine, store: Store, applications: ApplyService
) -> None:
    """Begin to share, once jobs run."""
    if fleet is not None:
        mine = carried_at(store, fleet.machine)
        await fleet.start(cast(Engine, own), mine, applications.reconcile)
