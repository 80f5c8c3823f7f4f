"""What the command shows of several services that share the hosts."""

from __future__ import annotations

from typing import Any

from tests.support.examples import api_documents as docs
from tests.support.served.api import Api
from tests.support.served.stub_service import StubService, page
from tests.unit.client.conftest import Vmtune


def a_host(name: str, owner: str) -> dict[str, Any]:
    return docs.host(name, uri=f"qemu+ssh://root@{name}/system", owner=owner)


def test_who_drives_a_host_is_shown_where_several_share(
    service: StubService, vmtune: Vmtune
) -> None:
    service.on("GET", "/hosts", page(a_host("a", "node1-vmtune"), a_host("b", "")))
    lines = vmtune("host", "list").out.splitlines()
    assert "MANAGED BY" in lines[0]
    assert "node1-vmtune" in lines[1]
    service.on("GET", "/hosts", page(a_host("a", "")))
    assert "MANAGED BY" not in vmtune("host", "list").out


def test_a_host_is_given_to_a_service(service: StubService, vmtune: Vmtune) -> None:
    service.on("PUT", "/hosts/a/owner", a_host("a", "node2-vmtune"))
    ran = vmtune("host", "give", "a", "node2-vmtune")
    assert (ran.code, ran.out) == (0, "node2-vmtune manages host a\n")
    assert service.only("PUT", "/hosts/a/owner").body == {"service": "node2-vmtune"}


def test_the_services_are_listed(service: StubService, vmtune: Vmtune) -> None:
    one = {
        "name": "node1-vmtune", "machine": "node1", "version": "1", "state": "running",
        "here": True, "hosts": ["a", "c"], "started_at": docs.AT, "seen_at": docs.AT,
    }  # fmt: skip
    dead = {**one, "name": "node2-vmtune", "here": False, "state": "taken over", "hosts": []}
    service.on("GET", "/services", {"items": [one, dead]})
    header, first, second = vmtune("service", "list").out.splitlines()
    assert header.split() == ["NAME", "MACHINE", "STATE", "HOSTS", "LAST", "SEEN"]
    assert "node1-vmtune (this one)" in first
    assert "a, c" in first
    assert "taken over" in second


def test_one_service_says_that_it_drives_all(real: Api, vmtune: Vmtune) -> None:
    assert "a single service manages all hosts" in vmtune("service", "list").out
    refused = vmtune("host", "give", "a", "other")
    assert refused.code == 1
    assert "use PostgreSQL to run several services" in refused.err


def test_the_addresses_of_a_host_are_changed(service: StubService, vmtune: Vmtune) -> None:
    service.on("PATCH", "/hosts/a", a_host("a", ""))
    ran = vmtune("host", "change", "a", "--migrate-uri", "tcp://{host}", "--listen-address", "")
    assert (ran.code, ran.out) == (0, "host a changed\n")
    asked = service.only("PATCH", "/hosts/a").body
    assert asked == {"migrate_uri": "tcp://{host}", "listen_address": "", "disks_uri": None}
