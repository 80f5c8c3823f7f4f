"""``vmtune host check``: what it asks, prints and exits with."""

from __future__ import annotations

from tests.support.served.stub_service import StubService
from tests.unit.client.conftest import Vmtune

STEPS = [
    {"host": "a", "what": "connection", "result": "ok", "message": "answered", "remedy": ""},
    {"host": "b", "what": "host name", "result": "failed", "message": "it is localhost",
     "remedy": "run hostnamectl"},
    {"host": "b", "what": "clocks", "result": "not checked", "message": "not here",
     "remedy": "compare"},
]  # fmt: skip


def test_a_failed_step_is_shown_with_its_remedy_and_exits_2(
    service: StubService, vmtune: Vmtune
) -> None:
    check = {"host": "a", "to": "b", "passed": False, "steps": STEPS}
    service.on("GET", "/hosts/a/check", check)
    ran = vmtune("host", "check", "a", "--to", "b")
    assert ran.code == 2
    assert "failed       b: host name: it is localhost" in ran.out
    assert "remedy: run hostnamectl" in ran.out
    assert "a to b: 1 failed, 1 not checked" in ran.out
    assert vmtune("host", "check", "a", "--to", "b", "--json").document == check


def test_what_was_not_seen_is_no_fault(service: StubService, vmtune: Vmtune) -> None:
    steps = [STEPS[0], STEPS[2]]
    service.on("GET", "/hosts/a/check", {"host": "a", "to": "", "passed": True, "steps": steps})
    ran = vmtune("host", "check", "a")
    assert ran.code == 0
    assert "a: nothing failed, 1 not checked" in ran.out
