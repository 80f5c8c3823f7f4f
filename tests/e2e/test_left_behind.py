"""A source whose libvirt is ended before it hears that the VM has arrived, and keeps its copy."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from tests.support.hosts.daemons import without_libvirtd
from tests.support.hosts.live import Live, live, wait_for, why_no_lab
from vmtune import lab
from vmtune.lab.host import plan_hosts
from vmtune.model.workload import Workload

NO_LAB = why_no_lab()
pytestmark = pytest.mark.skipif(bool(NO_LAB), reason=NO_LAB or "never")
SHORT = Workload(region_bytes=16 << 20, idle_ms=60_000)


@pytest.fixture
def it(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("live"), number=61) as made:
        yield made


def sent(it: Live, name: str) -> bool:
    """Whether the source's QEMU has sent all of it."""
    asked = '{"execute":"query-migrate"}'
    said = lab.virsh(it.host("a").uri, "qemu-monitor-command", name, asked)
    return '"status":"completed"' in said


def test_the_vm_that_runs_is_found_and_the_copy_is_told(it: Live) -> None:
    it.profile("late", downtime_limit_ms=450, max_bandwidth_bytes_per_s="8MiB/s")
    destination = plan_hosts(it.settings)[1].libvirtd_pid()
    assert destination is not None
    with it.vm(workload=SHORT) as vm:
        record = it.migrate(vm, "b", profile="late")
        wait_for(lambda: it.record(record)["state"] == "active", "the migration to be active")
        os.kill(destination, signal.SIGSTOP)  # it is told of the end, and does not answer
        try:
            wait_for(lambda: sent(it, vm.name), "all to be sent")
            time.sleep(1)  # the source's libvirt asks the destination's by then
            with without_libvirtd(it, "a", signal.SIGKILL):
                os.kill(destination, signal.SIGCONT)
                wait_for(lambda: it.states(vm).get("b") == "running", "the VM to run on b")
        finally:
            os.kill(destination, signal.SIGCONT)
        done = it.ended(record)
        assert it.states(vm) == {"a": "paused", "b": "running"}
        assert done["state"] == "completed"
        (problem,) = done["problems"]
        assert problem["code"] == "left_behind"
        assert f"virsh destroy {vm.uuid}` on a" in problem["remedy"]
        assert it.client.get(f"/vms/{vm.uuid}")["host"] == "b"
        readings = it.client.get(f"/vms/{vm.uuid}/effective")["readings"]
        assert readings["downtime_limit_ms"]["value"] == 300
        lab.virsh(it.host("a").uri, "destroy", str(vm.uuid))
        assert it.states(vm) == {"a": "shut off", "b": "running"}
