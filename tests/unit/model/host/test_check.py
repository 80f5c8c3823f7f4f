"""The steps of a host check: what each fact makes of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from vmtune.errors import Problem
from vmtune.model.host.check import HostCheck, Probed, Result, Step, check_host, check_pair
from vmtune.model.host.facts import Connection, HostFacts
from vmtune.model.host.inventory import Host
from vmtune.model.versions import Version

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def probed(name: str, **changed: object) -> Probed:
    facts = HostFacts(
        Connection.LIBVIRT,
        hostname=f"{name}.example",
        uuid=f"uuid-{name}",
        qemu=Version(10, 0),
        libvirt=Version(11, 3),
        peer_uri=f"qemu+tls://{name}/system",
        kvm=True,
        confined_by="apparmor",
    )
    host = Host(name, f"qemu+tls://{name}/system", "", "", NOW)
    facts = replace(facts, **changed)
    return Probed(host, facts, 0.1, arrival_addresses=("10.0.0.8",))


def results(steps: list[Step]) -> dict[str, Result]:
    return {step.what: step.result for step in steps}


@pytest.mark.parametrize(
    ("addresses", "result", "says"),
    [
        (("10.0.0.8", "fd00::8"), Result.OK, "here that is 10.0.0.8, fd00::8"),
        (("127.0.1.1", "10.0.0.8"), Result.OK, "here that is 10.0.0.8"),
        (("fe80::8%eth0",), Result.OK, "fe80::8%eth0"),
        (("127.0.1.1",), Result.NOT_CHECKED, "which is 127.0.1.1 here"),
        (("::1",), Result.NOT_CHECKED, "which is ::1 here"),
        ((), Result.NOT_CHECKED, "which the service's machine does not know"),
        (None, Result.NOT_CHECKED, "migrations to it go to a.example, its name"),
    ],
)
def test_where_migrations_go_is_looked_up(
    addresses: tuple[str, ...] | None, result: Result, says: str
) -> None:
    seen = replace(probed("a"), arrival_addresses=addresses)
    (step,) = [each for each in check_host(seen, NOW) if each.what == "migration network"]
    assert step.result is result
    assert says in step.message
    assert not addresses or result is Result.OK or "getent hosts a.example" in step.remedy


def test_a_migration_network_of_its_own_is_looked_up_by_its_own_name() -> None:
    seen = probed("a")
    network = {"migrate_uri": "tcp://a.mig:49200"}
    seen = replace(seen, host=seen.host.on_network(network), arrival_addresses=("10.1.0.7",))
    (step,) = [each for each in check_host(seen, NOW) if each.what == "migration network"]
    assert step.message == "migrations to it go to a.mig; here that is 10.1.0.7"


def test_a_good_pair_passes_and_says_what_it_has_not_seen() -> None:
    a, b = probed("a"), probed("b")
    steps = [*check_host(a, NOW), *check_host(b, NOW), *check_pair(a, b)]
    assert HostCheck("a", "b", tuple(steps)).passed
    unseen = [step for step in steps if step.result is Result.NOT_CHECKED]
    assert {step.what for step in unseen} >= {"connection from a", "migration ports", "clocks"}
    assert all(step.remedy for step in unseen)
    # A name is in the sentence where it belongs, not put before all of them.
    told = {step.what: step.remedy for step in unseen}
    assert told["connection from a"] == "run `virsh -c qemu+tls://b/system hostname` as root on a"
    assert told["hook"].endswith("qemu.d/vmtune` on b")
    assert told["clocks"].startswith("compare `date -u` of both hosts")
    assert all(step.result is not Result.WARNING for step in steps)


@pytest.mark.parametrize(
    ("changed", "what", "result"),
    [
        ({"hostname": "localhost.localdomain"}, "host name", Result.FAILED),
        ({"peer_uri": ""}, "peer URI", Result.FAILED),
        ({"kvm": False}, "KVM", Result.WARNING),
        ({"kvm": None}, "KVM", Result.NOT_CHECKED),
        ({"qemu": Version(6, 2)}, "QEMU", Result.WARNING),
        ({"libvirt": Version(8)}, "libvirt", Result.WARNING),
        ({"confined_by": None}, "confinement", Result.NOT_CHECKED),
        ({"no_certificates_in": "/etc/pki/qemu"}, "TLS certificates", Result.WARNING),
    ],
)
def test_a_fact_makes_its_step(changed: dict[str, object], what: str, result: Result) -> None:
    steps = list(check_host(probed("a", **changed), NOW))
    assert results(steps)[what] is result
    (step,) = [step for step in steps if step.what == what]
    assert step.remedy or result is Result.NOT_CHECKED


@pytest.mark.parametrize(
    ("changed", "what", "result"),
    [
        ({"uuid": "uuid-a"}, "identity", Result.FAILED),
        ({"hostname": "a.example"}, "identity", Result.FAILED),
        ({"qemu": Version(9, 2)}, "QEMU of both", Result.WARNING),
        ({"libvirt": Version(11, 2)}, "libvirt of both", Result.WARNING),
        ({"qemu": Version(11, 1)}, "QEMU of both", Result.OK),
        ({"confined_by": "selinux"}, "confinement of both", Result.WARNING),
        ({"confined_by": ""}, "confinement of both", Result.WARNING),
        ({"confined_by": "apparmor"}, "confinement of both", Result.OK),
    ],
)
def test_two_hosts_have_to_fit(changed: dict[str, object], what: str, result: Result) -> None:
    steps = list(check_pair(probed("a"), probed("b", **changed)))
    assert results(steps)[what] is result


def test_a_closed_port_is_told_instead_of_how_to_look() -> None:
    steps = list(check_pair(probed("a"), probed("b"), not_reached="No route to host"))
    (step,) = [each for each in steps if each.what == "migration ports"]
    assert step.result is Result.WARNING
    assert "b.example, the last that libvirt takes, is not reached from a: No route" in step.message
    assert "49152 to 49215 in the firewall of b" in step.remedy


@pytest.mark.parametrize(
    ("confined_by", "says"),
    [("apparmor", "by AppArmor"), ("selinux", "by SELinux"), ("", "neither AppArmor nor SELinux")],
)
def test_what_confines_qemus_is_said(confined_by: str, says: str) -> None:
    steps = list(check_host(probed("a", confined_by=confined_by), NOW))
    (step,) = [step for step in steps if step.what == "confinement"]
    assert step.result is Result.OK
    assert says in step.message


def test_a_host_whose_confinement_is_not_seen_is_compared_with_none() -> None:
    steps = list(check_pair(probed("a", confined_by=None), probed("b")))
    assert "confinement of both" not in results(steps)


def test_a_silent_host_has_one_step() -> None:
    problem = Problem("uri", "host_unreachable", "no connection", "start it")
    silent = replace(probed("a"), facts=None, problem=problem)
    (step,) = check_host(silent, NOW)
    assert (step.result, step.message, step.remedy) == (Result.FAILED, "no connection", "start it")
    assert list(check_pair(silent, probed("b"))) == []
    assert not HostCheck("a", "", (step,)).passed


@pytest.mark.parametrize(("days", "result"), [(29, Result.WARNING), (31, Result.OK)])
def test_a_certificate_that_expires_soon_is_a_warning(days: int, result: Result) -> None:
    seen = replace(probed("a"), certificate_until=NOW + timedelta(days=days))
    assert results(list(check_host(seen, NOW)))["certificate"] is result
