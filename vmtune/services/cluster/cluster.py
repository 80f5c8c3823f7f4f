"""Shares the hosts with the other services on the same PostgreSQL database.

Each service writes a heartbeat to the database. A service that has seen no heartbeat of another
for :data:`TAKEOVER_AFTER_S`, by its own clock, takes over its hosts and jobs. From then on the
database refuses what the silent service still writes; its lease has expired before
(:mod:`vmtune.services.cluster.lease`), so it does not change hosts either.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import structlog

from vmtune.errors import SetupError, VmtuneError
from vmtune.jobs.base import JobEngine
from vmtune.model.cluster import Service, ServiceState
from vmtune.model.host.inventory import EventTopic, Host
from vmtune.services.cluster.lease import LEASE_S, Lease, now_s
from vmtune.services.events import EventBus
from vmtune.services.hosts.connections import ServiceIdentity
from vmtune.services.hosts.hosts import HostService
from vmtune.storage import Store
from vmtune.storage.database import Lease as StoreLease

log = structlog.get_logger(__name__)

HEARTBEAT_INTERVAL_S = 2.0
TAKEOVER_AFTER_S = 15.0
_ORDER_POLL_S = 1.0
_CLAIM_WITHIN_S = 5.0
assert LEASE_S + HEARTBEAT_INTERVAL_S < TAKEOVER_AFTER_S, (
    "a lease runs out before the work is taken over"
)

CanRun = Callable[[str], Awaitable[bool]]
"""Whether this service can run a job, by its id."""

Reconcile = Callable[[str], Awaitable[None]]
"""Reconciles what a dead service, by its name, left open outside its jobs."""


class ClusterEngine(JobEngine, Protocol):
    """A job engine whose database others use, too."""

    async def take_over(
        self, dead: str, runnable: Callable[[str, str], Awaitable[bool]]
    ) -> list[tuple[str, str]]:
        """See :meth:`vmtune.jobs.durable.DurableEngine.take_over`."""


@dataclass(slots=True)
class _LastHeartbeat:
    """The last heartbeat that was seen of another service.

    :param since_s: when it was first seen, by this service's clock.
    """

    epoch: int
    beats: int
    since_s: float


class Cluster:
    """This service among others, from :meth:`join` to :meth:`close`.

    :param lease: renewed with each heartbeat.
    """

    def __init__(
        self,
        store: Store,
        bus: EventBus,
        hosts: HostService,
        identity: ServiceIdentity,
        lease: Lease,
        version: str,
    ) -> None:
        self._store = store
        self._bus = bus
        self._hosts = hosts
        self.name = identity.service
        self.machine = identity.machine
        self.lease = lease
        self._version = version
        self.lost = asyncio.Event()
        self._on_lost: list[Callable[[], None]] = []
        self._known: dict[str, _LastHeartbeat] = {}
        self._checked_s = now_s()
        self._hosts_known: dict[str, Host] = {}
        self._tasks: list[asyncio.Task[None]] = []
        # Its own thread: the others may all be waiting for the database.
        self._heartbeat_thread = ThreadPoolExecutor(1, "vmtune-heartbeat")

    def on_lost(self, call: Callable[[], None]) -> None:
        """Have *call* called when another service has taken over."""
        self._on_lost.append(call)

    async def join(self) -> None:
        """Begin this service's life.

        :raise SetupError: another one of the same name lives.
        """
        before = await asyncio.to_thread(self._store.services.get, self.name)
        if before is not None and before.state is ServiceState.RUNNING:
            await self._refuse_duplicate(before)
        await self._wait_for_takeover()
        asked_s = now_s()
        await asyncio.to_thread(
            self._store.services.join, self.name, self.machine, os.getpid(), self._version
        )
        self.lease.renew(asked_s)
        self._spawn(self._send_heartbeats())
        await self._refresh()

    async def start(
        self, engine: ClusterEngine, runnable: Mapping[str, CanRun], reconcile: Reconcile
    ) -> None:
        """Share the work from now on.

        :param runnable: for each kind of job, whether this service can run one.
        :param reconcile: reconciles what a dead service left open outside its jobs.
        """
        self._spawn(self._bus.relay())
        self._spawn(self._watch_services(engine, runnable, reconcile))
        self._spawn(self._run_orders(engine))
        self._spawn(self._claim_free_hosts())

    async def close(self) -> None:
        """Stop. Its hosts stay with it; another takes them over unless it starts again soon."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._heartbeat_thread.shutdown(wait=False)
        if not self.lost.is_set():
            try:
                await asyncio.to_thread(self._store.services.stop)
            except VmtuneError as error:
                log.info("cannot write that this service stops", reason=str(error))

    def check_kept(self) -> None:
        """:raise TakenOver: another service has taken over."""
        if self.lost.is_set():
            self.lease.check()

    async def services(self) -> tuple[Service, ...]:
        """Every service, by name."""
        return await asyncio.to_thread(self._store.services.all)

    async def give(self, host: str, service: str) -> Host:
        """Hand a host over to another service.

        :raise NotFound: there is no such host, or no such service.
        :raise Conflict: an operation is open on the host, or the service does not reach it.
        """
        given = await asyncio.to_thread(self._store.services.give, host, service)
        await self._bus.publish(EventTopic.HOST, host, {"change": "owner", "owner": service})
        await self._refresh()
        return given

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        self._tasks.append(asyncio.create_task(work))

    async def _refuse_duplicate(self, before: Service) -> None:
        """:raise SetupError: a service of this name still writes heartbeats."""
        if before.machine == self.machine and not _is_running(before.pid):
            return
        await asyncio.sleep(2 * HEARTBEAT_INTERVAL_S)
        after = await asyncio.to_thread(self._store.services.get, self.name)
        if after is not None and after.beats != before.beats:
            raise SetupError(
                f"another service of the name {self.name} runs on {after.machine}, with pid "
                f"{after.pid}",
                field="service_name",
                code="service_name_taken",
                remedy="stop it, or give this one a service_name of its own",
            )

    async def _wait_for_takeover(self) -> None:
        """Wait until a takeover of this service's former work is complete."""
        for _ in range(round(TAKEOVER_AFTER_S / _ORDER_POLL_S)):
            me = await asyncio.to_thread(self._store.services.get, self.name)
            if me is None or not me.heir:
                return
            await asyncio.sleep(_ORDER_POLL_S)

    async def _send_heartbeats(self) -> None:
        loop = asyncio.get_running_loop()
        lease = self._store.lease
        assert lease is not None, "it has joined"
        while True:
            asked_s = now_s()
            try:
                alive = await loop.run_in_executor(
                    self._heartbeat_thread, self._store.services.beat, lease
                )
            except VmtuneError as error:
                log.warning("heartbeat not written", reason=error.message)
            else:
                if not alive:
                    self._lose(lease)
                    return
                self.lease.renew(asked_s)
            await asyncio.sleep(HEARTBEAT_INTERVAL_S)

    def _lose(self, lease: StoreLease) -> None:
        log.warning("another service has taken over", service=lease.service)
        self.lease.lose()
        self.lost.set()
        for call in self._on_lost:
            call()

    async def _watch_services(
        self, engine: ClusterEngine, runnable: Mapping[str, CanRun], reconcile: Reconcile
    ) -> None:
        while True:
            try:
                services = await self.services()
                silent = self._silent(services)
                for dead in silent:
                    await self._take_over(dead)
                for one in await self.services() if silent else services:
                    if one.heir == self.name:
                        await self._finish_takeover(one.name, engine, runnable, reconcile)
            except VmtuneError as error:
                log.warning("cannot read the other services", reason=error.message)
            except Exception:
                log.exception("cannot read the other services")
            await asyncio.sleep(HEARTBEAT_INTERVAL_S)

    def _silent(self, services: tuple[Service, ...]) -> list[Service]:
        """Services without a heartbeat for :data:`TAKEOVER_AFTER_S`. Where this service itself
        has not looked for a while (stopped, database away), it starts its timers again."""
        at_s = now_s()
        if at_s - self._checked_s > 3 * HEARTBEAT_INTERVAL_S:
            self._known.clear()
        self._checked_s = at_s
        silent: list[Service] = []
        for one in services:
            if one.name == self.name or one.state is ServiceState.TAKEN_OVER:
                self._known.pop(one.name, None)
                continue
            known = self._known.get(one.name)
            if known is None or (known.epoch, known.beats) != (one.epoch, one.beats):
                self._known[one.name] = _LastHeartbeat(one.epoch, one.beats, at_s)
            elif at_s - known.since_s > TAKEOVER_AFTER_S and self.lease.holds:
                silent.append(one)
        return silent

    async def _take_over(self, dead: Service) -> None:
        taken = await asyncio.to_thread(
            self._store.services.take_over, dead, self.name, self.machine
        )
        if taken is None:
            return
        log.warning(
            "took over from a service without heartbeats",
            service=dead.name,
            hosts=list(taken.hosts),
            left=list(taken.left),
        )
        await self._refresh()
        for host in taken.hosts:
            data = {"change": "owner", "owner": self.name}
            await self._bus.publish(EventTopic.HOST, host, data)

    async def _finish_takeover(
        self, dead: str, engine: ClusterEngine, runnable: Mapping[str, CanRun], reconcile: Reconcile
    ) -> None:
        async def can_run(kind: str, job_id: str) -> bool:
            return kind not in runnable or await runnable[kind](job_id)

        jobs = await engine.take_over(dead, can_run)
        await reconcile(dead)
        await asyncio.to_thread(self._store.services.settle_estate, dead)
        for kind, job in jobs:
            log.info("job resumed after takeover", kind=kind, job_id=job, service=dead)

    async def _run_orders(self, engine: ClusterEngine) -> None:
        while True:
            try:
                for order in await asyncio.to_thread(self._store.services.orders, self.name):
                    await engine.submit(order.kind, order.job)
                    if order.cancelled:
                        await engine.cancel(order.job)
                    await asyncio.to_thread(self._store.services.begun, order.job)
            except VmtuneError as error:
                log.warning("cannot read job requests", reason=error.message)
            except Exception:
                log.exception("cannot read job requests")
            await asyncio.sleep(_ORDER_POLL_S)

    async def _claim_free_hosts(self) -> None:
        while True:
            try:
                await self._refresh()
                free = [host for host in self._hosts_known.values() if not host.owner]
                await asyncio.gather(*map(self._claim, free))
            except VmtuneError as error:
                log.warning("cannot read the hosts", reason=error.message)
            except Exception:
                log.exception("cannot read the hosts")
            await asyncio.sleep(HEARTBEAT_INTERVAL_S)

    async def _claim(self, host: Host) -> None:
        """Claim a host that no service manages, if it answers here."""
        machine = self.machine if host.names_no_machine else ""
        if host.machine not in ("", machine):
            return
        try:
            async with asyncio.timeout(_CLAIM_WITHIN_S):
                await (await self._hosts.driver(host.name)).host_facts()
        except (VmtuneError, TimeoutError):
            return
        claim = partial(self._store.services.claim, host.name, self.name, machine)
        if await asyncio.to_thread(claim):
            log.info("claimed a host", host=host.name)
            await self._refresh()

    async def _refresh(self) -> None:
        """Read which hosts this service manages, and notify their watchers."""
        now = {host.name: host for host in await self._hosts.all()}
        for name, host in self._hosts_known.items():
            if name not in now or now[name].uri != host.uri:
                await self._hosts.forget_driver(name)
        self._hosts_known = now
        self._hosts.drive({name for name, host in now.items() if host.owner == self.name})


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
