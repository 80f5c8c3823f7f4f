"""``vmtune doctor``: what it asks, prints and exits with."""

from __future__ import annotations

from typing import Any

import pytest

import vmtune.admin.doctor
from tests.support.served.api import Api
from tests.support.served.stub_service import StubService, page
from tests.unit.client.conftest import Vmtune
from vmtune.client.session import Session

FINDING = {
    "code": "map_count_low", "severity": "warning", "tunable": "vm_max_map_count",
    "message": "a process may have 4096 memory maps", "remedy": "run: sysctl -w x",
    "evidence": {"value": 4096, "where": "/proc/sys/vm/max_map_count"},
}  # fmt: skip
NOTE = {**FINDING, "code": "nic_slow", "severity": "info", "message": "eth0 is slow"}
UNSEEN = {"what": "the speed of eth1", "why": "its driver does not say"}


def diagnosis(host: str, *findings: dict[str, Any], skipped_checks: tuple[object, ...] = ()) -> Any:
    healthy = all(f["severity"] == "info" for f in findings)
    return {
        "host": host,
        "healthy": healthy,
        "findings": [*findings],
        "skipped_checks": [*skipped_checks],
    }


def test_a_fault_is_shown_with_its_evidence_and_exits_2(
    service: StubService, vmtune: Vmtune
) -> None:
    service.on("GET", "/hosts/a/findings", diagnosis("a", FINDING, NOTE, skipped_checks=(UNSEEN,)))
    ran = vmtune("doctor", "a")
    assert ran.code == 2
    assert "a: 1 problem" in ran.out
    assert "evidence: value 4096 (/proc/sys/vm/max_map_count)" in ran.out
    assert "run: sysctl -w x" in ran.out
    assert "eth0 is slow" not in ran.out
    assert "1 note and 1 check that could not run: --all shows them" in ran.out
    everything = vmtune("doctor", "a", "--all").out
    assert "eth0 is slow" in everything
    assert "the speed of eth1: its driver does not say" in everything
    assert vmtune("doctor", "a", "--json").document["findings"] == [FINDING, NOTE]


def test_a_note_alone_exits_0(service: StubService, vmtune: Vmtune) -> None:
    service.on("GET", "/hosts/a/findings", diagnosis("a", NOTE))
    ran = vmtune("doctor", "a")
    assert ran.code == 0
    assert "a: no problems" in ran.out


def test_without_a_host_this_machine_is_looked_at_and_no_service_is_asked(
    vmtune: Vmtune, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vmtune_api(), "diagnose_here", lambda srcu: diagnosis("here", FINDING))
    ran = vmtune("doctor", "--json")
    assert (ran.code, ran.document["host"]) == (2, "here")
    monkeypatch.undo()
    assert vmtune("doctor").code in (0, 2)


def vmtune_api() -> Any:
    return vmtune.admin.doctor


def test_with_a_url_every_host_of_that_service_is_looked_at(
    service: StubService, vmtune: Vmtune, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = Session(socket=service.socket).client
    monkeypatch.setattr(Session, "connect", lambda self: local)
    service.on("GET", "/hosts", page({"name": "a"}, {"name": "b"}))
    service.on("GET", "/hosts/a/findings", diagnosis("a"))
    service.on("GET", "/hosts/b/findings", diagnosis("b", FINDING))
    ran = vmtune("doctor", "--url", "https://rack7:8470", "--json")
    assert ran.code == 2
    assert [each["host"] for each in ran.document["items"]] == ["a", "b"]


def test_a_host_of_the_real_service(
    real: Api, vmtune: Vmtune, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two looks at this machine are to agree, on which other QEMUs start and end.
    monkeypatch.setattr("vmtune.hypervisor.linux.doctor_probe._qemus", lambda root: iter(()))
    ran = vmtune("doctor", "a", "--json")
    assert ran.code in (0, 2)
    assert ran.document["host"] == "a"
    assert vmtune("doctor", "nobody").code == 1
    shown = vmtune("host", "show", "a", "--json").document
    assert shown["findings"] == [f for f in ran.document["findings"] if f["severity"] != "info"]


TIMES = {"count": 1000, "median_us": 62.4, "p90_us": 5622.0, "p99_us": 47056.0,
         "most_us": 175574.0, "mean_us": 2837.0}  # fmt: skip
COST = {
    "vcpus": 2, "add": TIMES, "delete": TIMES, "idle_add": TIMES, "idle_delete": TIMES,
    "grace_period_us": 51.0, "usual_boot_s": 0.459, "mean_boot_s": 20.0,
    "published_grace_period_us": {"5.19-rc1": 16044}, "parameters": {"srcu_max_nodelay": "1000"},
    "config_hz": 250, "default_parameters": {"srcu_max_nodelay": 1000},
}  # fmt: skip


def test_what_updates_of_memory_maps_cost_is_shown_beside_the_published(
    vmtune: Vmtune, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def here(srcu: bool) -> dict[str, Any]:
        asked.append(srcu)
        return {**diagnosis("here"), "srcu": COST}

    monkeypatch.setattr(vmtune_api(), "diagnose_here", here)
    ran = vmtune("doctor", "--srcu")
    assert (ran.code, asked) == (0, [True])
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert "add a slot 1,000 62 5,622 47,056 175,574 2,837" in lines
    assert "here, at the median 51 0.5 s" in lines
    assert "published, 5.19-rc1 16,044 144.4 s" in lines
    assert "here, at the mean: with the host's other work 2,222 20.0 s" in lines
    assert "Linux's defaults at CONFIG_HZ=250: srcu_max_nodelay=1000" in lines
    assert vmtune("doctor", "--srcu", "--json").document["srcu"] == COST


@pytest.mark.parametrize("arguments", [("a",), ("--url", "https://rack7:8470")])
def test_another_hosts_updates_cannot_be_timed_from_here(
    vmtune: Vmtune, arguments: tuple[str, ...]
) -> None:
    ran = vmtune("doctor", "--srcu", *arguments)
    assert ran.code == 1
    assert "--srcu measures this machine" in ran.err
