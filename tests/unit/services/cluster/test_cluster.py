"""Services that share the hosts, over real stores on one database and hosts that are fakes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.simulated.fakes import fake_pair
from tests.support.stores.databases import empty_database
from vmtune.errors import HostUnreachable, SetupError
from vmtune.hypervisor.protocol import Driver
from vmtune.model.cluster import ServiceState
from vmtune.model.host.inventory import EventTopic, Host
from vmtune.services.cluster import cluster as fleets
from vmtune.services.cluster.cluster import TAKEOVER_AFTER_S, Cluster
from vmtune.services.cluster.jobs import ClusterJobs
from vmtune.services.cluster.lease import Lease
from vmtune.services.events import EventBus
from vmtune.services.hosts.connections import ServiceIdentity
from vmtune.services.hosts.hosts import HostService
from vmtune.storage import Store
from vmtune.testing.inline_jobs import InlineEngine


class ClusterEngine(InlineEngine):
    """Notes whose jobs it takes over."""

    def __init__(self) -> None:
        super().__init__()
        self.took: list[str] = []

    async def take_over(
        self, dead: str, mine: Callable[[str, str], Awaitable[bool]]
    ) -> list[tuple[str, str]]:
        self.took.append(dead)
        return []


@dataclass
class One:
    """One of several services."""

    store: Store
    bus: EventBus
    hosts: HostService
    fleet: Cluster
    engine: ClusterEngine
    jobs: ClusterJobs
    adopted: list[str] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)

    async def start(self) -> None:
        async def adopt(dead: str) -> None:
            self.adopted.append(dead)

        self.hosts.follow(
            lambda h: self.heard.append(f"+{h}"), lambda h: self.heard.append(f"-{h}")
        )
        await self.fleet.join()
        await self.engine.start()
        await self.fleet.start(self.engine, {}, adopt)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not condition():  # noqa: ASYNC110 - it is the loop's work that is waited for
                await asyncio.sleep(0.01)


Make = Callable[..., One]


class Clock:
    """Goes with the loop's, and may be set forward."""

    ahead = 0.0

    def __call__(self) -> float:
        return asyncio.get_running_loop().time() + self.ahead


@pytest.fixture
async def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Make]:
    url = empty_database(tmp_path / "fleet.db")
    monkeypatch.setattr(fleets, "HEARTBEAT_INTERVAL_S", 0.2)
    monkeypatch.setattr(fleets, "TAKEOVER_AFTER_S", 3.0)
    monkeypatch.setattr(fleets, "_ORDER_POLL_S", 0.05)
    a, b = fake_pair()
    drivers: dict[str, Driver] = {"a": a, "b": b}

    def driver(host: Host) -> Driver:
        return drivers[host.name]

    async with AsyncExitStack() as stack:

        def make(name: str, machine: str = "m") -> One:
            store = stack.enter_context(Store.open(url))
            bus = EventBus(store)
            identity = ServiceIdentity(name, machine)
            hosts = HostService(store, bus, driver, identity)
            fleet = Cluster(store, bus, hosts, identity, Lease(), "0")
            engine = ClusterEngine()

            async def phase(job_id: str) -> None:
                one.heard.append(job_id)

            one = One(store, bus, hosts, fleet, engine, ClusterJobs(engine, store, name))
            one.jobs.register("demo", [("only", phase)])
            stack.push_async_callback(engine.stop)
            stack.push_async_callback(fleet.close)
            return one

        yield make


async def test_a_host_is_its_adders_and_a_job_about_it_goes_there(make: Make) -> None:
    one, two = make("one"), make("two")
    await one.start()
    await two.start()
    await one.hosts.add("a", "qmp+unix:///a")
    assert one.hosts.drives("a")
    assert one.heard == ["+a"]
    await two.jobs.submit("demo", "job-1", on="a")
    await one.until(lambda: "job-1" in one.heard)
    assert (await one.jobs.wait("job-1")).status.ended
    await one.jobs.submit("demo", "job-2", on="a")
    await one.until(lambda: "job-2" in one.heard)
    assert "job-1" not in two.heard
    assert not two.hosts.drives("a")


async def test_a_job_that_waits_for_its_service_is_queued_and_can_be_cancelled(make: Make) -> None:
    one, two = make("one"), make("two")
    await one.fleet.join()  # and begins nothing that is ordered
    await one.hosts.add("a", "qmp+unix:///a")
    await two.start()
    await two.jobs.submit("demo", "job-1", on="a")
    assert (await two.jobs.state("job-1")).status == "queued"
    assert await two.jobs.is_active("job-1")
    assert (await two.jobs.wait("job-1", timeout_s=0)).status == "queued"
    assert await two.jobs.cancel("job-1")
    (order,) = two.store.services.orders("one")
    assert order.cancelled


async def test_a_silent_one_loses_its_hosts_and_jobs(make: Make) -> None:
    one, two = make("one"), make("two")
    lost: list[str] = []
    one.fleet.on_lost(lambda: lost.append("one"))
    await one.start()
    await two.start()
    await one.hosts.add("a", "qmp+unix:///a")
    await one.hosts.add("b", "qmp+unix:///b")
    beating = one.store.services.beat
    one.store.services.beat = lambda lease: True  # type: ignore[method-assign] # its heart stands
    await two.until(lambda: two.hosts.drives("a") and two.hosts.drives("b"))

    def settled() -> bool:
        one_now = two.store.services.get("one")
        return two.adopted == ["one"] and one_now is not None and not one_now.heir

    await two.until(settled)
    assert two.engine.took == ["one"]
    assert sorted(two.heard) == ["+a", "+b"]
    dead = two.store.services.get("one")
    assert dead is not None
    assert dead.state is ServiceState.TAKEN_OVER
    one.store.services.beat = beating  # type: ignore[method-assign]
    await one.until(lambda: lost == ["one"])
    assert not one.fleet.lease.holds


async def test_who_has_not_looked_for_a_while_begins_to_count_anew(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = make("one"), make("two")
    await one.fleet.join()
    await one.hosts.add("a", "qmp+unix:///a")
    await two.fleet.join()
    two.fleet.lease.renew(float("inf"))
    clock = Clock()
    monkeypatch.setattr(fleets, "now_s", clock)
    monkeypatch.setattr(fleets, "HEARTBEAT_INTERVAL_S", 2.0)
    monkeypatch.setattr(fleets, "TAKEOVER_AFTER_S", TAKEOVER_AFTER_S)
    silent = two.fleet._silent
    services = await two.fleet.services()
    assert silent(services) == []
    clock.ahead += 60  # it was stopped, or its database was away
    assert silent(services) == []
    for _ in range(4):
        clock.ahead += 4
        found = silent(services)
    assert [each.name for each in found] == ["one"]


async def test_a_free_host_is_claimed_by_who_reaches_it(make: Make) -> None:
    one = make("one")
    await one.start()
    one.store.hosts.add(Host("a", "qmp+unix:///a", "", "", datetime.now(UTC)))
    await one.until(lambda: one.hosts.drives("a"))
    assert (one.store.hosts.get("a").owner, one.store.hosts.get("a").machine) == ("one", "m")


async def test_an_address_without_a_machine_means_the_adders(make: Make) -> None:
    one, two = make("one", "rack1"), make("two", "rack2")
    await one.start()
    await two.start()
    await one.hosts.add("a", "qmp+unix:///a")
    with pytest.raises(HostUnreachable, match="rack1") as caught:
        await two.hosts.driver("a")
    assert "the service one there" in caught.value.problems[0].remedy


async def test_a_name_that_lives_is_refused(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        fleets, "HEARTBEAT_INTERVAL_S", 1.0
    )  # two are waited for: one comes on a busy machine
    one, twin = make("one"), make("one", "elsewhere")
    await one.start()
    with pytest.raises(SetupError, match="another service of the name one runs on m") as caught:
        await twin.fleet.join()
    assert caught.value.problems[0].field == "service_name"


async def test_a_host_is_given_by_hand(make: Make) -> None:
    one, two = make("one"), make("two")
    await one.start()
    await two.start()
    await one.hosts.add("a", "qmp+unix:///a")
    assert (await one.fleet.give("a", "two")).owner == "two"
    await two.until(lambda: two.hosts.drives("a"))
    assert one.heard == ["+a", "-a"]


async def test_events_of_one_are_told_by_the_other_in_their_order(make: Make) -> None:
    one, two = make("one"), make("two")
    await one.start()
    await two.start()
    seen: list[str] = []

    async def listen() -> None:
        async for message in two.bus.subscribe():
            seen.append(message.subject)

    listening = asyncio.create_task(listen())
    buses = one.bus, two.bus
    await two.until(lambda: bool(two.bus._queues) and all(bus._relaying for bus in buses))
    for number in range(6):
        teller = (one, two)[number % 2]
        await teller.bus.publish(EventTopic.HOST, number, {})
    await two.until(lambda: len(seen) >= 6)
    listening.cancel()
    assert seen == [str(number) for number in range(6)]
