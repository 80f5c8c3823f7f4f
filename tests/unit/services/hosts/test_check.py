"""The host check's own look at a peer URI: who answers by it, and whether that is the host."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.examples.facts import host
from tests.support.simulated.world import world
from tests.unit.services.hosts.test_doctor import probes
from vmtune.errors import HostUnreachable
from vmtune.hypervisor.linux.doctor_probe import examine
from vmtune.model.host import inventory
from vmtune.model.host.check import Result, Step
from vmtune.model.host.facts import HostFacts
from vmtune.services.hosts import check
from vmtune.services.hosts.check import HostCheckService
from vmtune.services.hosts.doctor import DoctorService
from vmtune.services.hosts.hosts import HostService
from vmtune.testing.fake.driver import FakeDriver

URI, PEER, OTHER = "qemu:///system", "qemu+tls://a/system", "qemu+tls://b/system"
CLOSED = HostUnreachable("no connection to it: no key", remedy="run `ssh-copy-id`")


class Answering(FakeDriver):
    """Who answers at a URI.

    :param says: what it says of itself, or why it does not answer; None: it hangs.
    """

    def __init__(self, says: HostFacts | HostUnreachable | None) -> None:
        super().__init__([], "a")
        self.says = says
        self.closed = False

    async def host_facts(self) -> HostFacts:
        if isinstance(self.says, HostUnreachable):
            raise self.says
        if self.says is None:
            await asyncio.Event().wait()
        assert self.says is not None
        return self.says

    async def close(self) -> None:
        self.closed = True
        await super().close()


def closed(name: str, port: int) -> str:
    return f"{name}:{port} is closed"


@asynccontextmanager
async def checking(
    folder: Path, by_peer: HostFacts | HostUnreachable | None, peer_uri: str = PEER
) -> AsyncIterator[tuple[HostCheckService, list[Answering]]]:
    """A check of host a, and the drivers that were made for its peer URI."""
    made: list[Answering] = []

    def factory(of: inventory.Host) -> FakeDriver:
        if of.uri == URI:
            return Answering(host("a", peer_uri=of.peer_uri))
        if of.uri == OTHER:
            return Answering(host("b", peer_uri=OTHER))
        made.append(Answering(by_peer))
        return made[-1]

    async with world(folder) as it:
        hosts = HostService(it.store, it.bus, factory)
        for name in "ab":
            await it.hosts.remove(name)
        await hosts.add("a", URI, peer_uri)
        await hosts.add("b", OTHER)
        doctor = DoctorService(it.store, hosts, it.profiles, lambda: examine(probes(folder)))
        yield HostCheckService(hosts, doctor, lambda uri: None, lambda name: (), closed), made
        await hosts.close()


async def step(checks: HostCheckService) -> Step:
    (found,) = [each for each in (await checks.check("a")).steps if each.what == "peer URI"]
    return found


async def test_the_host_itself_answers(tmp_path: Path) -> None:
    async with checking(tmp_path, host("a")) as (checks, made):
        found = await step(checks)
        assert (found.result, found.remedy) == (Result.OK, "")
        assert "answered here, too" in found.message
        assert [each.closed for each in made] == [True]


async def test_another_host_answers(tmp_path: Path) -> None:
    async with checking(tmp_path, host("elsewhere")) as (checks, _):
        found = await step(checks)
        assert found.result is Result.FAILED
        assert "leads to another host, elsewhere" in found.message
        assert "--peer-uri" in found.remedy


async def test_nobody_answers_here_and_other_hosts_may_have_the_keys(tmp_path: Path) -> None:
    async with checking(tmp_path, CLOSED) as (checks, made):
        found = await step(checks)
        assert found.result is Result.NOT_CHECKED
        assert "no key" in found.message
        assert f"run `virsh -c {PEER} hostname` as root on another host" in found.remedy
        assert "run `ssh-copy-id`" in found.remedy
        assert [each.closed for each in made] == [True]


async def test_who_hangs_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "_PEER_WITHIN_S", 0.01)
    async with checking(tmp_path, None) as (checks, made):
        found = await step(checks)
        assert found.result is Result.NOT_CHECKED
        assert "it did not answer within 0.01 s" in found.message
        assert [each.closed for each in made] == [True]


async def test_the_uri_of_the_connection_is_not_tried_twice(tmp_path: Path) -> None:
    async with checking(tmp_path, host("a"), peer_uri=URI) as (checks, made):
        assert (await step(checks)).result is Result.OK
        assert made == []


async def test_ports_are_tried_where_the_services_machine_is_the_source(tmp_path: Path) -> None:
    async with checking(tmp_path, host("a")) as (checks, _):
        there = (await checks.check("a", "b")).steps
        (found,) = [each for each in there if each.what == "migration ports"]
        assert found.result is Result.WARNING
        assert "b:49215 is closed" in found.message
        back = (await checks.check("b", "a")).steps
        (found,) = [each for each in back if each.what == "migration ports"]
        assert found.result is Result.NOT_CHECKED


def test_a_port_is_reached_or_refused_or_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        assert check.why_not_reached("127.0.0.1", port) == ""
    assert check.why_not_reached("127.0.0.1", port) == ""
    assert check.why_not_reached("255.255.255.255", 1) != ""


def test_names_are_looked_up() -> None:
    assert "127.0.0.1" in check.addresses_of("127.0.0.1")
    assert check.addresses_of("") == ()
    assert check.addresses_of("x" * 64 + ".invalid") == ()
