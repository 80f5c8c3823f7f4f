"""The service as the package runs it, without root: what it can do, and what it says it may not."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.support.hosts.live import Live
from tests.support.hosts.machines import (
    PackagedService,
    on,
    packaged_machines,
    said,
    why_no_machines,
    why_not_packaged,
)
from vmtune.client.connection.errors import Refused
from vmtune.model.workload import Workload

NONE = why_no_machines() or why_not_packaged()
pytestmark = pytest.mark.skipif(bool(NONE), reason=NONE or "never")
KEYS = """
cd /root/.ssh
install -d -o vmtune -g vmtune -m 700 /var/lib/vmtune/.ssh
install -o vmtune -g vmtune -m 600 id_ed25519 known_hosts /var/lib/vmtune/.ssh
"""
CALM = Workload(region_bytes=32 << 20, dirty_mb_per_s=5)


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    """Its own host by the socket, through polkit; the other as a member of ``libvirt`` there."""
    with packaged_machines() as made:
        a, b = made.status.hosts
        said(a, "sh", "-ec", KEYS)
        here = {"uri": "qemu:///system", "peer_uri": f"qemu+tls://{a.name}/system"}
        made.client.post("/hosts", {"name": "a", **here})
        there = {"uri": f"qemu+ssh://operator@{b.name}/system"}
        made.client.post("/hosts", {"name": "b", **there})
        made.profile("paced", multifd=True, multifd_channels=2, downtime_limit_ms=500)
        yield made


def test_it_has_a_user_of_its_own_and_no_capability(live: Live) -> None:
    process = live.service.process
    assert process is not None
    a = live.host("a")
    assert said(a, "stat", "-c", "%U", f"/proc/{process.pid}") == PackagedService.USER
    status = said(a, "cat", f"/proc/{process.pid}/status")
    shown = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert [int(shown[kind], 16) for kind in ("CapPrm", "CapEff", "CapBnd")] == [0, 0, 0]
    assert {"libvirt", "kvm"} <= set(said(a, "id", "-nG", PackagedService.USER).split())


def test_it_tunes_and_migrates_there_and_back(live: Live) -> None:
    with live.vm(workload=CALM) as vm:
        plan = live.client.post(f"/vms/{vm.uuid}/plan", {"profile": "paced", "destination": "b"})
        assert plan["blockers"] == []
        applied = live.client.post(f"/vms/{vm.uuid}/applications", {"profile": "paced"})
        assert applied["state"] == "applied"
        for to in "ba":
            record = live.ended(live.migrate(vm, to, profile="paced"))
            assert record["state"] == "completed", record["failure"]
            proven = {each["tunable"]: each["status"] for each in record["outcomes"]}
            assert proven["multifd_channels"] == "effective", record["outcomes"]
            assert live.states(vm) == {to: "running"}
        reverted = live.client.post(f"/applications/{applied['id']}/revert", {})
        assert reverted["state"] == "reverted"


def test_the_doctor_says_what_it_may_not_do(live: Live) -> None:
    with live.vm(workload=CALM) as vm:
        diagnosis = live.client.get("/hosts/a/findings")
        told = {each["code"]: each for each in diagnosis["findings"]}
        closed = told["qemus_of_others"]
        assert closed["severity"] == "info"
        assert closed["evidence"]["user"] == PackagedService.USER
        assert "run `vmtune doctor` as root" in closed["remedy"]
        # Which then sees it.
        a = live.host("a")
        asked = on(a, sys.executable, "-m", "vmtune", "doctor", "--all")
        assert "qemus_of_others" not in asked.stdout
        pools = live.client.get(f"/vms/{vm.uuid}/pools")
        assert pools["maps"] is None


def test_limits_of_the_host_are_not_raised(live: Live) -> None:
    a = live.host("a")
    before = said(a, "sysctl", "-n", "vm.max_map_count")
    live.profile("maps", vm_max_map_count=int(before) + 1)
    with live.vm(workload=CALM) as vm:
        plan = live.client.post(f"/vms/{vm.uuid}/plan", {"profile": "maps"})
        (told,) = [f for f in plan["findings"] if f["code"] == "host_value_differs"]
        assert "sysctl -w vm.max_map_count=" in told["remedy"]
    assert said(a, "sysctl", "-n", "vm.max_map_count") == before


def test_who_is_not_in_the_group_is_refused(live: Live) -> None:
    """Polkit's rule is that of libvirt's package."""
    a = live.host("a")
    words = ("-c", "qemu:///system", "list")
    visitor = ("setpriv", "--reuid=visitor", "--regid=visitor", "--init-groups")
    denied = on(a, *visitor, "virsh", *words)
    assert denied.returncode != 0
    assert "polkit" in denied.stderr or "authenticat" in denied.stderr
    said(a, "gpasswd", "--delete", PackagedService.USER, "libvirt")
    live.service.kill()
    try:
        live.service.start()
        with pytest.raises(Refused) as refusal:
            live.client.get("/hosts/a/findings")
        (problem,) = refusal.value.problems
        assert "the user vmtune may not use libvirt on this machine" in problem.message
        assert "usermod --append --groups libvirt vmtune" in problem.remedy
    finally:
        said(a, "gpasswd", "--add", PackagedService.USER, "libvirt")
        live.service.kill()
        live.service.start()
