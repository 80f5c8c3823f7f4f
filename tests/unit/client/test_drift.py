"""``vmtune vm drift``."""

from __future__ import annotations

from tests.support.served.api import Api
from tests.support.served.stub_service import StubService, page
from tests.support.simulated.fakes import VM
from tests.unit.client.conftest import Vmtune

SCAN = {
    "host": "rack1", "pending": True, "ended_at": None, "service": "", "result": None,
    "problems": [],
}  # fmt: skip


def test_drift_is_shown_once_it_was_looked_for(real: Api, vmtune: Vmtune) -> None:
    assert vmtune("profile", "create", "p", "downtime_limit_ms=700").code == 0
    assert vmtune("apply", str(VM), "--profile", "p").code == 0
    real.source.parameters["downtime-limit"] = 5
    shown = vmtune("vm", "drift")
    assert shown.code == 0
    assert "no drift in the scanned VMs" in shown.out
    assert "not scanned yet: a, b" in shown.out
    found = vmtune("vm", "drift", "--now")
    assert found.code == 2, found.err
    assert "downtime_limit_ms" in found.out
    assert "scanned 1 VMs of 2 hosts" in found.out
    assert vmtune("vm", "drift", "--host", "b").code == 0
    again = vmtune("vm", "drift", "--json")
    assert [row["vm"] for row in again.document["items"]] == [str(VM)]
    assert len(again.document["scans"]) == 2
    real.source.parameters["downtime-limit"] = 700
    assert vmtune("vm", "drift", "--now", "--host", "a").code == 0
    assert vmtune("vm", "drift", "--host", "none").code == 1


def test_why_some_could_not_be_asked_is_shown(service: StubService, vmtune: Vmtune) -> None:
    problem = {"field": "vms.x", "code": "monitor_busy", "message": "taken", "remedy": "let go"}
    counts = {"checked": 0, "drifted": 0, "without_profile": 0, "skipped": 0, "failed": 1}
    made = {"result": {**counts, "took_ms": 5}, "ended_at": "2026-11-21T09:00:00Z"}
    scan = {**SCAN, **made, "pending": False, "problems": [problem]}
    service.on("GET", "/drifts", page())
    service.on("GET", "/drift-scans", page(scan))
    ran = vmtune("vm", "drift")
    assert ran.code == 0
    assert "rack1 vms.x: taken" in ran.out


def test_a_scan_that_nobody_makes_is_not_waited_for_for_ever(
    service: StubService, vmtune: Vmtune
) -> None:
    service.on("POST", "/drift-scans", {"hosts": ["rack1"]})
    service.on("GET", "/drift-scans", page(SCAN))
    ran = vmtune("vm", "drift", "--now", "--within", "1")
    assert ran.code == 1
    assert "1 hosts were not scanned within 1 s: rack1" in ran.err
    assert "vmtune service list" in ran.err
