"""What QEMU's dirty limit leaves behind where a migration does not complete, between two real
libvirt hosts, through the real service."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.hosts.live import Live, live, wait_for, why_no_lab
from vmtune import lab
from vmtune.client.connection.http import Document
from vmtune.lab.domain_xml import kvm_usable
from vmtune.model.workload import Workload

NO_LAB = why_no_lab() or ("" if kvm_usable() else "a dirty ring takes KVM")
pytestmark = pytest.mark.skipif(bool(NO_LAB), reason=NO_LAB or "never")
MIB = 1 << 20
BUSY = Workload(region_bytes=64 * MIB, cpu_ring=3)
"""Its pages fit the ring, so that none is ever full: on some kernels that would end the guest."""
LIMITED = {
    "dirty_limit": True,
    "vcpu_dirty_limit_mib_per_s": 1,
    "throttle_trigger_threshold_percent": 1,
    "max_bandwidth_bytes_per_s": 30 * MIB,
    "downtime_limit_ms": 1,
}


@pytest.fixture(scope="module")
def it(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("live"), number=91) as made:
        yield made


def limits(it: Live, vm: lab.LabVm) -> list[dict[str, Any]]:
    """Of the vCPUs, by what the source's QEMU says; empty where none is limited."""
    command = json.dumps({"execute": "query-vcpu-dirty-limit"})
    said = lab.virsh(it.host("a").uri, "qemu-monitor-command", vm.name, command)
    return list(json.loads(said)["return"])


def fail(it: Live, vm: lab.LabVm, _: Document) -> None:
    """End the QEMU that waits on the destination."""
    lab.virsh(it.host("b").uri, "destroy", vm.name)


def cancel(it: Live, _: lab.LabVm, record: Document) -> None:
    """By request."""
    it.client.delete(f"/migrations/{record['id']}")


@pytest.mark.parametrize(
    ("end", "state"),
    [
        (fail, "failed"),
        # What is put back is the same.
        pytest.param(cancel, "cancelled", marks=pytest.mark.long),
    ],
)
def test_the_guest_is_not_held_back_any_longer(
    it: Live, end: Callable[[Live, lab.LabVm, Document], None], state: str
) -> None:
    with it.vm(workload=BUSY, dirty_ring_entries=65536) as vm:
        plan = it.client.post(f"/vms/{vm.uuid}/plan", {"destination": "b", "values": LIMITED})
        record = it.migrate(vm, "b", values=LIMITED, overrides=plan["blockers"])
        it.until_active(record)
        wait_for(lambda: bool(limits(it, vm)), "QEMU to limit the vCPUs")
        end(it, vm, record)
        done = it.ended(record)
        assert done["state"] == state, done["failure"]
        assert limits(it, vm) == []
        assert it.states(vm) == {"a": "running"}


KEEPS_TRYING = {
    "max_silence_ms": 100,
    "deadline_s": 300,
    "max_slowdown_percent": 20,
    "max_bandwidth_bytes_per_s": 30 * MIB,
    "otherwise": "keep-trying",
}


def settings(it: Live, vm: lab.LabVm) -> dict[str, Any]:
    """What a migration of it would run with, by what its QEMU says."""
    command = json.dumps({"execute": "query-migrate-parameters"})
    said = lab.virsh(it.host("a").uri, "qemu-monitor-command", vm.name, command)
    return dict(json.loads(said)["return"])


def test_what_steering_set_is_gone_with_the_migration(it: Live) -> None:
    with it.vm(workload=BUSY) as vm:
        before = settings(it, vm)
        record = it.migrate(vm, "b", intent=KEEPS_TRYING)
        it.until_active(record)
        wait_for(
            lambda: sum(s["effect"] == "done" for s in it.record(record)["step_records"]) >= 2,
            "it to be steered",
        )
        cancel(it, vm, record)
        done = it.ended(record)
        assert done["state"] == "cancelled", done["failure"]
        assert done["problems"] == []
        assert settings(it, vm) == before
