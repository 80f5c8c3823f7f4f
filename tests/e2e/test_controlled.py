"""The reaper and convergence steps between two real libvirt hosts, through the real service."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.hosts.live import Live, live, wait_for, why_no_lab
from vmtune.client.connection.http import Document
from vmtune.lab.domain_xml import kvm_usable
from vmtune.model.workload import Workload

NO_LAB = why_no_lab()
NO_KVM = "" if kvm_usable() else "a dirty ring takes KVM, and there is no usable /dev/kvm"
pytestmark = pytest.mark.skipif(bool(NO_LAB), reason=NO_LAB or "never")
MIB = 1 << 20
# 64 MiB that are written over and over do not fit through 30 MB/s in 300 ms.
TIGHT = 30_000_000 // MIB * MIB
# The first iteration alone takes longer than a service needs to start again.
SLOW = MIB
# Its pages fit the ring, also while nobody reaps. In ring 3 each is noted once until the ring is
# emptied; a KVM that emulates a guest kernel's writes notes every one.
BUSY = Workload(region_bytes=64 * MIB, cpu_ring=3)


@pytest.fixture(scope="module")
def it(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("live"), number=94) as made:
        yield made


@pytest.fixture(autouse=True)
def _serving(it: Live) -> None:
    it.service.revive()


def profile(it: Live, name: str, steps: list[dict[str, Any]] | None = None, **values: Any) -> None:
    it.client.post("/profiles", {"name": name, "values": values, "steps": steps or []})


def until_steps(it: Live, record: Document, count: int) -> None:
    """Until so many steps have been done."""

    def done() -> bool:
        taken = it.record(record)["step_records"]
        return sum(step["effect"] != "pending" for step in taken) >= count

    wait_for(done, f"{count} steps")


def rounds(it: Live, record: Document) -> list[Document]:
    return list(it.client.items(f"/migrations/{record['id']}/rounds"))


def effects(record: Document) -> list[tuple[int | None, str]]:
    return [(step["number"], step["effect"]) for step in record["step_records"]]


@pytest.mark.skipif(bool(NO_KVM), reason=NO_KVM or "never")
def test_the_rings_are_reaped_from_before_to_the_end(it: Live) -> None:
    """The guest does not converge until a user raises the bandwidth."""
    profile(it, "reaped", reaper_policy="predict", max_bandwidth_bytes_per_s=SLOW)
    with it.vm(workload=BUSY, dirty_ring_entries=65536) as vm:
        record = it.migrate(vm, "b", profile="reaped")
        it.until_active(record)

        wait_for(lambda: len(rounds(it, record)) >= 8, "8 rounds")
        freed = {"max_bandwidth_bytes_per_s": 0, "downtime_limit_ms": 2000}
        it.client.patch(f"/migrations/{record['id']}", {"values": freed})
        done = it.ended(record)
        assert done["state"] == "completed", done["failure"]
        reaper = done["reaper"]
        assert (reaper["end"], reaper["reason"], reaper["throughout"]) == (
            "migration ended", "", True
        )  # fmt: skip
        assert reaper["filled_rounds"] == 0
        found = rounds(it, record)
        assert len(found) == reaper["round_count"]
        assert found[0]["at_ms"] <= 0 < found[-1]["at_ms"]
        assert max(max(each["fills"]) for each in found if each["at_ms"] > 1000) > 0.02
        assert {o["tunable"]: o["status"] for o in done["outcomes"]} == {
            "reaper_policy": "effective",
            "max_bandwidth_bytes_per_s": "effective",
        }
        assert effects(done) == [(None, "done")]
        assert it.states(vm) == {"b": "running"}


@pytest.mark.skipif(bool(NO_KVM), reason=NO_KVM or "never")
def test_a_vm_without_a_ring_is_told_beforehand(it: Live) -> None:
    profile(it, "blocked", reaper_policy="predict")
    with it.vm() as vm:
        plan = it.client.post(f"/vms/{vm.uuid}/plan", {"profile": "blocked", "destination": "b"})
        assert plan["blockers"] == ["reaper_needs_ring"]


def test_a_schedule_brings_a_migration_to_its_end(it: Live) -> None:
    """Downtime and bandwidth are of no use to it: post-copy is."""
    steps = [
        {"when": {"after_iterations": 1}, "then": {"set": {"downtime_limit_ms": 320}}},
        {
            "when": {"after_iterations": 2},
            "then": {"set": {"max_bandwidth_bytes_per_s": TIGHT + MIB + 1}},
        },
        {"when": {"after_iterations": 3}, "then": {"do": "postcopy"}},
    ]
    profile(
        it,
        "schedule",
        steps,
        postcopy=True,
        max_bandwidth_bytes_per_s=TIGHT,
        max_postcopy_bandwidth_bytes_per_s=8 * MIB,  # long enough to be seen
    )
    with it.vm(workload=BUSY) as vm:
        done = it.ended(it.migrate(vm, "b", profile="schedule"))
        assert done["state"] == "completed", done["failure"]
        assert effects(done) == [(0, "done"), (1, "done"), (2, "done")]
        iterations = [step["iteration"] for step in done["step_records"]]
        assert iterations == sorted(iterations)
        samples = list(it.client.items(f"/migrations/{done['id']}/samples"))
        assert samples[-1]["postcopy_bytes"] > 0 or any(
            sample["status"].startswith("postcopy") for sample in samples
        )
        assert it.states(vm) == {"b": "running"}


def test_a_paused_guest_runs_where_it_arrives(it: Live) -> None:
    steps = [{"when": {"after_iterations": 1}, "then": {"do": "pause"}}]
    profile(it, "pausing", steps, max_bandwidth_bytes_per_s=TIGHT)
    with it.vm(workload=BUSY) as vm:
        done = it.ended(it.migrate(vm, "b", profile="pausing"))
        assert (done["state"], done["problems"]) == ("completed", []), done["failure"]
        assert effects(done) == [(0, "done")]
        assert it.states(vm) == {"b": "running"}


def test_a_step_aborts_and_what_steps_set_is_put_back(it: Live) -> None:
    steps = [
        {
            "when": {"after_iterations": 0},
            "then": {"set": {"downtime_limit_ms": 350, "max_cpu_throttle_percent": 70}},
        },
        {"when": {"after_s": 1}, "then": {"do": "abort"}},
    ]
    profile(it, "giving-up", steps, auto_converge=True, max_bandwidth_bytes_per_s=TIGHT)
    with it.vm(workload=BUSY) as vm:
        before = it.client.get(f"/vms/{vm.uuid}/effective")["readings"]
        done = it.ended(it.migrate(vm, "b", profile="giving-up"))
        assert done["state"] == "cancelled"
        assert done["failure"].startswith("aborted by a convergence step")
        assert effects(done) == [(0, "done"), (1, "done")]
        assert done["problems"] == []
        assert it.client.get(f"/vms/{vm.uuid}/effective")["readings"] == before
        assert it.states(vm) == {"a": "running"}


def test_killed_in_the_middle_it_goes_on_with_reaper_and_steps(it: Live) -> None:
    """Nothing is done twice, the rounds go on, and the guest arrives."""
    steps = [
        {"when": {"after_iterations": 0}, "then": {"set": {"downtime_limit_ms": 350}}},
        {"when": {"after_iterations": 1}, "then": {"set": {"downtime_limit_ms": 360}}},
        {"when": {"after_iterations": 2}, "then": {"do": "postcopy"}},
    ]
    reaped: dict[str, Any] = {} if NO_KVM else {"reaper_policy": "predict"}
    ring = None if NO_KVM else 65536
    profile(it, "killed", steps, postcopy=True, max_bandwidth_bytes_per_s=SLOW, **reaped)
    with it.vm(workload=BUSY, dirty_ring_entries=ring) as vm:
        record = it.migrate(vm, "b", profile="killed")
        until_steps(it, record, 1)
        it.service.kill()
        it.service.start()
        assert effects(it.record(record)) == [(0, "done")]
        if not NO_KVM:
            before = len(rounds(it, record))
            wait_for(lambda: len(rounds(it, record)) > before, "the rounds to go on")
        on = {"max_bandwidth_bytes_per_s": TIGHT}
        it.client.patch(f"/migrations/{record['id']}", {"values": on})
        done = it.ended(record)
        assert done["state"] == "completed", done["failure"]
        assert effects(done) == [(0, "done"), (None, "done"), (1, "done"), (2, "done")]
        assert it.states(vm) == {"b": "running"}
        if not NO_KVM:
            assert (done["reaper"]["end"], done["reaper"]["interruptions"]) == (
                "migration ended", 1
            )  # fmt: skip
            outcome = next(o for o in done["outcomes"] if o["tunable"] == "reaper_policy")
            assert outcome["status"] == "unknown"
            assert "could not go on for a while" in outcome["reason"]
            moments = [each["at_ms"] for each in rounds(it, record)]
            assert moments == sorted(moments)
