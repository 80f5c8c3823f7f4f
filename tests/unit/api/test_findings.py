"""The doctor over HTTP: a host's findings, and those that show in the host itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.served.api import Api
from tests.unit.services.hosts.test_doctor import probes
from vmtune.admin.doctor import diagnose_here
from vmtune.hypervisor.linux.doctor_probe import examine
from vmtune.model.findings.table import FINDINGS
from vmtune.services.hosts.doctor import DoctorService


@pytest.fixture
def ill(api: Api, tmp_path: Path) -> Api:
    """The hosts' machine has a planted fault and a note."""
    folder = tmp_path / "machine"
    (folder / "proc/sys/vm").mkdir(parents=True)
    (folder / "proc/sys/kernel").mkdir(parents=True)
    (folder / "proc/sys/vm/unprivileged_userfaultfd").write_text("0")
    (folder / "proc/sys/kernel/osrelease").write_text("5.10.0-28-amd64")
    on = api.container
    store = on.queries._store
    doctor = DoctorService(store, on.hosts, on.profiles, lambda: examine(probes(folder)))
    object.__setattr__(on, "doctor", doctor)
    return api


async def test_findings_come_with_evidence_reason_and_remedy(ill: Api) -> None:
    found = await ill.get("/hosts/a/findings")
    assert (found["host"], found["healthy"]) == ("a", False)
    assert [(f["code"], f["severity"]) for f in found["findings"]] == [
        ("userfaultfd_denied", "warning"),
        ("srcu_unknown", "info"),
    ]
    denied = found["findings"][0]
    assert denied["evidence"] == {
        "value": 0,
        "where": "/proc/sys/vm/unprivileged_userfaultfd",
        "device": "missing",
    }
    assert denied["remedy"] == "run: sysctl -w vm.unprivileged_userfaultfd=1"
    assert denied["tunable"] == "postcopy"
    assert {u["what"] for u in found["skipped_checks"]} >= {"network cards"}


async def test_a_host_shows_its_findings(ill: Api) -> None:
    shown = await ill.get("/hosts/a")
    assert [f["code"] for f in shown["findings"]] == ["userfaultfd_denied"]
    ill.drivers["a"].reachable = False
    silent = await ill.get("/hosts/a")
    assert silent["findings"] == []
    assert silent["problems"]


async def test_unknown_and_silent_hosts_are_refused(api: Api) -> None:
    await api.refused("GET", "/hosts/z/findings", status=404)
    api.drivers["a"].reachable = False
    await api.refused("GET", "/hosts/a/findings", status=424)


def test_this_machine_is_told_without_a_service() -> None:
    told = diagnose_here()
    assert told["host"]
    assert {f["code"] for f in told["findings"]} <= set(FINDINGS)
    assert told["healthy"] is not any(f["severity"] != "info" for f in told["findings"])
