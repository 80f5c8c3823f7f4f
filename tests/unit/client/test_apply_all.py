"""``vmtune apply --all``: which VMs, with what, when it stops, and the sum."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.examples import api_documents as docs
from tests.support.served.api import Api
from tests.support.served.stub_service import Reply, StubService, page, refusal
from tests.unit.client.conftest import Vmtune

ALL = ("apply", "--all", "--tuning", "drifted")


def _vms(service: StubService, *names: str, **changes: Any) -> list[str]:
    uuids = [f"5f5b1f5e-6c0e-4c8f-9d1a-{n:012}" for n in range(len(names))]
    rows = [{**docs.vm(name, uuid), **changes} for name, uuid in zip(names, uuids, strict=True)]
    service.on("GET", "/vms", page(*rows, problems=[]))
    for uuid in uuids:
        service.on("POST", f"/vms/{uuid}/applications", docs.application("applied", "effective"))
    return uuids


def _posts(service: StubService) -> list[Any]:
    return [asked.body for asked in service.asked if asked.method == "POST"]


def test_each_vm_gets_again_what_it_was_compared_with(service: StubService, vmtune: Vmtune) -> None:
    _vms(service, "db1", "db2")
    ran = vmtune(*ALL, "--host", "rack1")
    assert ran.code == 0
    asked = service.only("GET", "/vms").query
    assert (asked["tuning_state"], asked["host"]) == (["drifted"], ["rack1"])
    tuning = docs.vm()["tuning"]
    assert [(body["profile"], body["revision"]) for body in _posts(service)] == [
        (tuning["profile"], tuning["revision"])
    ] * 2
    assert "2 VMs: 2 applied" in ran.out
    assert "1 of 2: db1 on rack1: applied" in ran.err
    assert vmtune(*ALL, "--profile", "other").code == 0
    assert _posts(service)[-1]["profile"] == "other"


def test_it_stops_at_its_limits_and_says_so(service: StubService, vmtune: Vmtune) -> None:
    uuids = _vms(service, *(f"vm{n}" for n in range(5)))
    ran = vmtune(*ALL, "--most", "2", "--json")
    assert (ran.code, ran.document["counts"]) == (2, {"applied": 2, "skipped": 3})
    for uuid, reply in zip(
        uuids, (refusal(409, {"message": "blocked"}), Reply(cut=True)), strict=False
    ):
        service.on("POST", f"/vms/{uuid}/applications", reply)
    before = len(_posts(service))
    ran = vmtune(*ALL, "--stop-after-failures", "2", "--json")
    assert ran.code == 1
    assert ran.document["counts"] == {"refused": 1, "unknown": 1, "skipped": 3}
    assert ran.document["items"][0]["reason"] == "blocked"
    assert len(_posts(service)) - before == 2


def test_what_differs_or_does_not_run_is_told(service: StubService, vmtune: Vmtune) -> None:
    (uuid,) = _vms(service, "db1")
    service.on("POST", f"/vms/{uuid}/applications", docs.application("applied", "overwritten"))
    ran = vmtune(*ALL)
    assert ran.code == 2
    assert "1 VM: 1 differs" in ran.out
    _vms(service, "db1", state="shut off")
    ran = vmtune(*ALL)
    assert (ran.code, ran.out) == (0, "no running VM is selected\n")


@pytest.mark.parametrize(
    "words",
    [("apply",), ("apply", "--all"), ("apply", "db1", "--all", "--tuning", "drifted"),
     ("apply", "db1", "--tuning", "drifted")],
)  # fmt: skip
def test_a_vm_or_a_selection_is_given(
    service: StubService, vmtune: Vmtune, words: tuple[str, ...]
) -> None:
    assert vmtune(*words).code == 1
    assert service.asked == []


def test_against_the_real_service(real: Api, vmtune: Vmtune) -> None:
    name = real.source.name
    assert vmtune("profile", "create", "fast", "downtime_limit_ms=200ms").code == 0
    assert vmtune("assign", "add", "fast", "--host", "a").code == 0
    ran = vmtune("apply", "--all", "--tuning", "untuned", "--host", "a", "--dry-run")
    assert "1 would apply" in ran.out, ran.err
    assert vmtune("assign", "remove", "1").code == 0
    for more in ((), ("--dry-run",)):  # nothing was tried: no failure
        ran = vmtune("apply", "--all", "--tuning", "untuned", "--host", "a", *more)
        assert (ran.code, "1 VM: 1 skipped" in ran.out) == (2, True), ran.out
        assert "no profile is assigned" in ran.out
    assert vmtune("assign", "add", "fast", "--host", "a").code == 0
    ran = vmtune("apply", "--all", "--tuning", "untuned", "--host", "a")
    assert (ran.code, name in ran.out) == (0, True), ran.err
    assert "1 VM: 1 applied" in ran.out
