"""The lease under which a service changes what its hosts run, and where it is looked at."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from vmtune.errors import HostUnreachable, SchemaMismatch, SetupError, TakenOver
from vmtune.hypervisor.libvirt.calls.connection import Connection
from vmtune.hypervisor.libvirt.connection import Link
from vmtune.hypervisor.qmp.monitor import QmpMonitor
from vmtune.services import retry
from vmtune.services.cluster import lease as leases
from vmtune.services.cluster.lease import LEASE_S, Lease


class Clock:
    """Stands until it is moved."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(leases, "now_s", clock)
    return clock


def test_it_holds_from_when_the_database_was_asked(clock: Clock) -> None:
    lease = Lease()
    assert not lease.holds
    asked = clock.now
    clock.now += LEASE_S / 2  # it answers much later
    lease.renew(asked)
    lease.check()
    clock.now = asked + LEASE_S
    with pytest.raises(TakenOver) as caught:
        lease.check()
    assert caught.value.problems[0].code == "lease_not_renewed"


async def test_a_change_waits_for_a_database_that_is_back_soon(clock: Clock) -> None:
    lease = Lease()
    waiting = asyncio.create_task(lease.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    lease.renew(clock.now)
    await waiting


async def test_what_was_taken_over_never_holds_again(clock: Clock) -> None:
    lease = Lease()
    waiting = asyncio.create_task(lease.wait())
    await asyncio.sleep(0)
    lease.lose()
    with pytest.raises(TakenOver, match="another service"):
        await waiting
    lease.renew(clock.now)
    with pytest.raises(TakenOver):
        lease.check()


class Ended:
    """A guard that lets one through to the last look, and nothing past it."""

    async def wait(self) -> None:
        pass

    def check(self) -> None:
        raise TakenOver("the lease ended between")


class Lost(Ended):
    """A guard that lets nothing through."""

    async def wait(self) -> None:
        self.check()


async def test_a_monitor_asks_on_and_changes_nothing(tmp_path: Path) -> None:
    monitor = QmpMonitor(tmp_path / "none", lambda *_: None, lambda: None, guard=Lost())
    for command in ("query-status", "qom-get"):
        with pytest.raises(HostUnreachable):  # nothing is connected: it would have been sent
            await monitor.execute(command, {"path": "/objects/x", "property": "y"})
    for command in ("migrate_cancel", "stop", "cont"):
        with pytest.raises(TakenOver):
            await monitor.execute(command)


async def test_the_last_look_is_in_the_thread_that_calls_libvirt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connection = Connection.__new__(Connection)
    calls: list[str] = []
    link = Link("qemu:///system", guard=Ended())

    async def connected() -> Connection:
        return connection

    monkeypatch.setattr(link, "connection", connected)
    assert await link.ask(lambda _: calls.append("asked")) is None
    with pytest.raises(TakenOver, match="between"):
        await link.change(lambda _: calls.append("changed"))
    assert calls == ["asked"]


async def test_jobs_wait_for_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "RETRY_INTERVAL_S", 0)
    failures: list[Exception] = [SetupError("locked"), SetupError("full")]

    async def work() -> str:
        if failures:
            raise failures.pop()
        return "written"

    assert await retry.retry_until_available(work) == "written"
    for error in (SchemaMismatch("older"), TakenOver("another")):
        failures.append(error)
        with pytest.raises(type(error)):
            await retry.retry_until_available(work)
