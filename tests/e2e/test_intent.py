"""Migrations by intent between two real libvirt hosts, through the real service."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.hosts.live import Live, live, wait_for, why_no_lab
from vmtune.client.connection.errors import ClientError
from vmtune.client.connection.http import Document
from vmtune.lab.domain_xml import kvm_usable
from vmtune.model.workload import Workload

NO_LAB = why_no_lab()
pytestmark = pytest.mark.skipif(bool(NO_LAB), reason=NO_LAB or "never")
MIB = 1 << 20
BUSY = Workload(region_bytes=24 * MIB)
"""24 MiB that are written over and over: at 40 MiB/s they take 600 ms."""
PATH = 40 * MIB


@pytest.fixture(scope="module")
def it(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("live"), number=97) as made:
        yield made


@pytest.fixture(autouse=True)
def _serving(it: Live) -> None:
    it.service.revive()


def steered(record: Document) -> list[str]:
    """What was done on the way, in words."""
    return [step["action"] for step in record["step_records"]]


def test_it_begins_with_the_least_downtime_limit_that_ends_it_soon(it: Live) -> None:
    """At least a quarter of the highest, which leaves of the silence what a full socket takes."""
    goals = {
        "max_silence_ms": "2s",
        "deadline_s": "2min",
        "max_bandwidth_bytes_per_s": PATH,
    }
    # Long enough for what it sends to be measured: the first pass takes 1.2 s.
    with it.vm(workload=Workload(region_bytes=48 * MIB, dirty_mb_per_s=20)) as vm:
        done = it.ended(it.migrate(vm, "b", intent=goals))
        assert done["state"] == "completed", done["failure"]
        assert 400 <= done["values"]["downtime_limit_ms"] <= 1700
        assert done["intent"]["forecast"].startswith("will be kept")
        assert all(step["effect"] == "done" for step in done["step_records"])
        *goals, sent = done["intent"]["goals"]
        assert [(g["goal"], g["kept"], g["by"]) for g in goals] == [
            ("max_silence_ms", True, "qemu"),
            ("deadline_s", True, "qemu"),
        ]
        # Where it is over before enough samples were taken, that is not known.
        assert (sent["goal"], sent["kept"], sent["by"]) in [
            ("max_bandwidth_bytes_per_s", True, "sent"),
            ("max_bandwidth_bytes_per_s", None, "unknown"),
        ]


def test_what_cannot_be_kept_is_refused_with_the_nearest_that_can(it: Live) -> None:
    goals = {"max_silence_ms": 50, "deadline_s": 60, "max_bandwidth_bytes_per_s": PATH}
    with it.vm(workload=BUSY) as vm:
        with pytest.raises(ClientError) as refused:
            it.migrate(vm, "b", intent=goals)
        assert "a silence of" in str(refused.value)


def test_a_service_that_was_killed_steers_on(it: Live) -> None:
    """The first pass outlasts the kill; what follows was never seen by the first process: sending
    what the guest works on takes 1 s, so that it has to be throttled. Whether that ends it is up
    to when QEMU lets the guest run, which writes all of it within milliseconds."""
    goals = {
        "max_silence_ms": "500ms",
        "max_slowdown_percent": 99,
        "max_bandwidth_bytes_per_s": 8 * MIB,
        "deadline_s": 300,
        "otherwise": "keep-trying",
    }
    with it.vm(workload=Workload(region_bytes=8 * MIB)) as vm:
        record = it.migrate(vm, "b", intent=goals)
        it.until_active(record)
        it.service.kill()
        it.service.revive()

        def throttled() -> bool:
            now = it.client.get(f"/migrations/{record['id']}")
            return any("cpu_throttle_initial_percent" in said for said in steered(now))

        wait_for(throttled, "the guest to be throttled", within_s=120)
        it.client.delete(f"/migrations/{record['id']}")
        done = it.ended(record)
        assert done["state"] in ("cancelled", "completed"), done["failure"]
        assert done["intent"]["steered_until_ms"] is None


def test_it_gives_up_at_the_deadline_and_the_guest_stays(it: Live) -> None:
    """Relaxing the silence is not enough by then: the first pass alone takes longer."""
    goals = {
        "max_silence_ms": 50,
        "deadline_s": 8,
        "max_bandwidth_bytes_per_s": MIB,
        "otherwise": "relax",
        "relax": ["max_silence_ms"],
    }
    with it.vm(workload=BUSY) as vm:
        done = it.ended(it.migrate(vm, "b", intent=goals))
        assert (done["state"], steered(done)[-1]) == ("cancelled", "abort the migration")
        assert it.states(vm) == {"a": "running"}


RINGED = {
    "max_silence_ms": "1s",
    "deadline_s": 40,
    "max_slowdown_percent": 99,
    "max_bandwidth_bytes_per_s": 120 * MIB,
    "may": ["throttle"],
}


@pytest.mark.skipif(not kvm_usable(), reason="a dirty ring takes KVM")
def test_the_dirty_limit_throttles_where_full_rings_are_safe(it: Live) -> None:
    """On a kernel on which they are not, it is not chosen, and the migration is blocked."""
    load = Workload(region_bytes=360 * MIB, dirty_mb_per_s=220)
    with it.vm(workload=load, memory_bytes=512 * MIB, dirty_ring_entries=1024) as vm:
        body = {"destination": "b", "intent": RINGED}
        plan = it.client.post(f"/vms/{vm.uuid}/plan", body)
        found = {finding["code"] for finding in plan["findings"]}
        chosen = {choice["tunable"] for choice in plan["intent"]["choices"]}
        if "ring_without_reaper" in found:
            assert "auto_converge" in chosen
            assert "dirty_limit" not in chosen
            return
        assert "dirty_limit" in chosen
        done = it.ended(it.migrate(vm, "b", intent=RINGED))
        assert done["state"] == "completed", done["failure"]
        said = [said for said in steered(done) if "vcpu_dirty_limit_mib_per_s" in said]
        assert said, done["step_records"]
