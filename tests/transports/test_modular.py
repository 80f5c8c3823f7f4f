"""Machines with one daemon for each driver: virtqemud runs QEMU, and virtproxyd takes connections.

Debian has no package of them: `make test-transports` builds the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.support.hosts.broken_ways import SSH, TLS, Broken, hosts, refused_as
from tests.support.hosts.live import Live
from tests.support.hosts.machines import CHECKOUT, by_its_bus, live_machines, said, why_no_machines
from tests.support.hosts.ways import (
    WANTED_ROUNDS,
    asked_for_by_the_hook,
    default_profile,
    install_hook,
    observed_where_virsh_migrates,
    tuned_there_and_back,
)

DAEMON = CHECKOUT / ".cache/libvirt-modular/virtqemud"
NONE = why_no_machines() or (
    "" if DAEMON.exists() else "virtqemud is not built: see tests/releases"
)
pytestmark = pytest.mark.skipif(bool(NONE), reason=NONE or "never")


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    with live_machines(https=True, libvirtd=DAEMON.resolve()) as made:
        for host in made.status.hosts:
            running = said(host, "sh", "-c", "ls /run/*.pid /run/libvirt")
            assert {"/run/virtqemud.pid", "/run/virtproxyd.pid", "virtqemud-sock"} <= {
                *running.split()
            }
            assert "libvirtd.pid" not in running
        hosts_ = tuple(map(by_its_bus, made.status.hosts))
        made.status = replace(made.status, hosts=hosts_)
        yield made


@pytest.mark.parametrize("transport", ["ssh", "tls", "tcp"])
def test_a_vm_is_tuned_and_migrates_there_and_back(live: Live, transport: str) -> None:
    with hosts(live, transport):
        tuned_there_and_back(live, f"by-{transport}")


@pytest.mark.parametrize("transport", ["ssh", "tls"])
def test_others_migrations_are_observed_and_the_hook_is_asked(live: Live, transport: str) -> None:
    with hosts(live, transport):
        observed_where_virsh_migrates(live)
        for which in "ab":
            install_hook(live, which, live.host("a").name)
        with default_profile(live, f"loud-{transport}", {"announce_rounds": WANTED_ROUNDS}):
            asked_for_by_the_hook(live)


def test_the_services_own_machine_is_looked_into(live: Live) -> None:
    """By the daemon that runs QEMU."""
    live.client.post("/hosts", {"name": "own", "uri": "qemu:///system"})
    try:
        told = live.client.get("/hosts/own/check")
        steps = {step["what"]: step["result"] for step in told["steps"]}
        assert steps["connection"] == steps["libvirt"] == steps["confinement"] == "ok"
    finally:
        live.client.delete("/hosts/own")


@pytest.mark.parametrize("uri", [TLS, SSH])
@pytest.mark.parametrize("how", ["TERM", "KILL"])
def test_a_virtqemud_that_is_gone_is_named(live: Live, how: str, uri: str) -> None:
    """virtproxyd answers for it; killed, it leaves its socket behind."""
    refused_as(
        live,
        Broken(
            uri, "b",
            f"kill -{how} $(cat /run/virtqemud.pid);"
            " while pgrep --ns $$ --nslist net -x virtqemud; do sleep 0.1; done",
            f"{DAEMON.resolve()} --daemon --pid-file /run/virtqemud.pid",
            "libvirt's daemon does not run on {b}", "virtqemud.socket",
        ),
    )  # fmt: skip
