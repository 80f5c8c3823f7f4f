"""``virsh migrate`` between two real libvirt hosts, seen by the real service."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.hosts.daemons import without_libvirtd
from tests.support.hosts.live import ENDED, Live, live, wait_for, why_no_lab
from vmtune import lab
from vmtune.client.connection.http import Document
from vmtune.lab.domain_xml import kvm_usable
from vmtune.model.workload import Workload

NO_LAB = why_no_lab()
NO_KVM = "" if kvm_usable() else "a dirty ring takes KVM, and there is no usable /dev/kvm"
pytestmark = pytest.mark.skipif(bool(NO_LAB), reason=NO_LAB or "never")
MIB = 1 << 20
BUSY = Workload(region_bytes=64 * MIB, cpu_ring=3)
TUNED = {"multifd": True, "multifd_channels": 3, "downtime_limit_ms": 450}


@pytest.fixture(scope="module")
def it(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("live"), number=92) as made:
        yield made


@pytest.fixture(autouse=True)
def _serving(it: Live) -> None:
    it.service.revive()


@contextmanager
def virsh_migrate(it: Live, vm: lab.LabVm, *options: str) -> Iterator[subprocess.Popen[str]]:
    """What an operator types on host a."""
    a, b = it.status.hosts
    command = (
        *("virsh", "-c", a.uri, "migrate", "--live", "--p2p", "--persistent", "--undefinesource"),
        *(*options, vm.name, b.peer_uri),
    )
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def assign(it: Live, vm: lab.LabVm, name: str, steps: Any = (), **values: Any) -> None:
    it.client.post("/profiles", {"name": name, "values": values, "steps": list(steps)})
    it.client.post("/assignments", {"target": "vm", "key": vm.uuid, "profile": name})


def records(it: Live, vm: lab.LabVm) -> list[Document]:
    return list(it.client.items("/migrations", {"vm": vm.uuid}))


def found(it: Live, vm: lab.LabVm) -> Document:
    wait_for(lambda: bool(records(it, vm)), "the migration to be found")
    (record,) = records(it, vm)
    return record


def statuses(record: Document) -> dict[str, str]:
    return {o["tunable"]: o["status"] for o in record["outcomes"]}


def applied(it: Live, record: Document) -> Document:
    def done() -> bool:
        now = statuses(it.record(record))
        return bool(now) and "pending migration" not in now.values()

    wait_for(done, "the profile to be applied")
    return it.record(record)


@pytest.mark.skipif(bool(NO_KVM), reason=NO_KVM or "never")
def test_the_rings_are_reaped_and_what_is_missing_is_told(it: Live) -> None:
    steps = [{"when": {"after_s": 2}, "then": {"set": {"max_bandwidth_bytes_per_s": 4 * MIB}}}]
    with it.vm(workload=BUSY, dirty_ring_entries=65536) as vm:
        assign(it, vm, "observed", steps, reaper_policy="predict", **TUNED)
        with virsh_migrate(it, vm, "--bandwidth", "3") as process:
            record = found(it, vm)
            assert (record["trigger"], record["source"]) == ("observed", "a")

            def every(what: str) -> list[Document]:
                return list(it.client.items(f"/migrations/{record['id']}/{what}"))

            def enough() -> bool:
                steps_done = [s["effect"] for s in it.record(record)["step_records"]] == ["done"]
                return steps_done and len(every("rounds")) >= 5 and len(every("samples")) >= 10

            wait_for(enough, "enough to be seen")
            lab.virsh(it.host("a").uri, "migrate-setspeed", vm.name, "10000")
            done = it.ended(record)
            assert process.wait(30) == 0, process.communicate()
        assert (done["state"], done["destination"]) == ("completed", "b"), done["failure"]
        assert statuses(done) == {
            "multifd": "rejected",
            "multifd_channels": "rejected",
            "downtime_limit_ms": "effective",
            "reaper_policy": "effective",
        }
        assert done["missing_flags"] == ["--parallel", "--parallel-connections", "3"]
        assert [p["code"] for p in done["problems"]] == ["begun_without"]
        assert done["totals"]["total_time_ms"] > 0
        assert done["reaper"]["end"] == "migration ended"
        assert done["reaper"]["round_count"] >= 5
        assert [(s["number"], s["effect"]) for s in done["step_records"]] == [(0, "done")]
        assert it.states(vm) == {"b": "running"}


def test_the_flags_that_vmtune_prints_apply_the_profile(it: Live) -> None:
    # What nothing packs, and what is written anew again and again: 1 MiB/s holds it.
    lasting = Workload(region_bytes=8 * MIB, random_percent=100, idle_ms=1000)
    with it.vm(workload=lasting) as vm:
        assign(it, vm, "by-flags", **TUNED, multifd_compression="zstd", multifd_zstd_level=2)
        plan = it.client.post(f"/vms/{vm.uuid}/plan", {"destination": "b"})
        said = plan["virsh"]
        assert [not_expressed["tunable"] for not_expressed in said["not_expressed"]] == [
            "downtime_limit_ms"
        ]
        assert f"{' '.join(said['flags'])} {vm.name} " in said["command"]
        with virsh_migrate(it, vm, *said["flags"], "--bandwidth", "1") as process:
            record = applied(it, found(it, vm))
            lab.virsh(it.host("a").uri, "migrate-setspeed", vm.name, "10000")
            done = it.ended(record)
            assert process.wait(30) == 0, process.communicate()
        assert set(statuses(done).values()) == {"effective"}, done["outcomes"]
        assert (done["missing_flags"], done["problems"]) == ([], [])


def test_one_that_is_aborted_leaves_nothing_behind(it: Live) -> None:
    with it.vm() as vm:
        assign(it, vm, "aborted", max_bandwidth_bytes_per_s="4MiB/s", max_cpu_throttle_percent=77,
               auto_converge=True)  # fmt: skip
        before = it.client.get(f"/vms/{vm.uuid}/effective")["readings"]
        with virsh_migrate(it, vm, "--bandwidth", "8", "--auto-converge") as process:
            record = applied(it, found(it, vm))
            assert set(statuses(record).values()) == {"effective"}
            lab.virsh(it.host("a").uri, "domjobabort", vm.name)
            done = it.ended(record)
            assert process.wait(30) != 0
        assert (done["state"], done["abort"]) == ("cancelled", "none")
        assert it.states(vm) == {"a": "running"}
        assert it.client.get(f"/vms/{vm.uuid}/effective")["readings"] == before


def test_a_short_one_is_complete_without_a_profile(it: Live) -> None:
    with it.vm(workload=Workload(region_bytes=1 << 20, idle_ms=1000)) as vm:
        with virsh_migrate(it, vm) as process:
            assert process.wait(60) == 0, process.communicate()
        done = it.ended(found(it, vm))
        assert (done["state"], done["destination"], done["profile"]) == ("completed", "b", None)
        assert done["totals"]["total_time_ms"] > 0
        assert done["values"] == {}


def test_killed_in_between_it_is_gone_on_with(it: Live) -> None:
    with it.vm() as vm:
        with virsh_migrate(it, vm, "--bandwidth", "1") as process:
            record = found(it, vm)
            it.service.kill()
            it.service.start()
            assert it.record(record)["state"] not in ENDED
            assert process.poll() is None
            lab.virsh(it.host("a").uri, "migrate-setspeed", vm.name, "10000")
            done = it.ended(record)
            assert process.wait(30) == 0
        assert done["state"] == "completed", done
        assert len(records(it, vm)) == 1


def test_one_that_began_while_the_service_was_dead_is_found(it: Live) -> None:
    with it.vm() as vm:
        it.service.kill()
        with virsh_migrate(it, vm, "--bandwidth", "1") as process:
            wait_for(lambda: it.states(vm).get("b") is not None, "the VM to be on its way")
            it.service.start()
            record = found(it, vm)
            assert record["trigger"] == "observed"
            lab.virsh(it.host("a").uri, "migrate-setspeed", vm.name, "10000")
            done = it.ended(record)
            assert process.wait(30) == 0
        assert (done["state"], done["destination"]) == ("completed", "b")


def test_vmtunes_own_is_not_observed(it: Live) -> None:
    with it.vm() as vm:
        done = it.ended(it.migrate(vm, "b"))
        assert done["state"] == "completed", done["failure"]
        assert [record["trigger"] for record in records(it, vm)] == ["vmtune"]


def test_a_destination_that_is_no_host_of_vmtunes_is_unknown(it: Live) -> None:
    b = it.host("b")
    it.client.delete("/hosts/b")
    try:
        # What it writes in a second fits: else it would not converge.
        calm = Workload(region_bytes=1 << 20, idle_ms=1000)
        with it.vm(workload=calm) as vm, virsh_migrate(it, vm, "--bandwidth", "16") as process:
            done = it.ended(found(it, vm))
            assert process.wait(30) == 0
            assert (done["state"], done["destination"]) == ("completed", None), done
    finally:
        it.client.post("/hosts", {"name": "b", "uri": b.uri, "peer_uri": b.peer_uri})


@pytest.mark.skipif(bool(NO_KVM), reason=NO_KVM or "never")
def test_a_vm_that_does_not_run_starts_with_its_profile(it: Live) -> None:
    # With a reaper: on some kernels a ring that nobody empties is refused.
    it.profile(
        "starts", dirty_ring_size_entries=65536, reaper_policy="predict", downtime_limit_ms=777
    )
    uri = it.host("a").uri
    with it.vm() as vm:
        lab.virsh(uri, "destroy", vm.name)
        applied = it.client.post(
            f"/vms/{vm.uuid}/applications", {"profile": "starts", "boot_only": True}
        )
        assert statuses(applied) == {"dirty_ring_size_entries": "pending restart"}
        lab.virsh(uri, "start", vm.name)
        verified = it.client.post(f"/vms/{vm.uuid}/verify")
        assert statuses(verified) == {"dirty_ring_size_entries": "effective"}
        lab.virsh(uri, "destroy", vm.name)
        reverted = it.client.post(f"/applications/{applied['id']}/revert")
        assert reverted["state"] == "reverted"
        assert "size='65536'" not in lab.virsh(uri, "dumpxml", "--inactive", vm.name)


@pytest.mark.parametrize("which", ["a", "b"])
def test_when_a_libvirtd_dies_the_migration_has_failed(it: Live, which: str) -> None:
    """libvirt gives up a migration of which one daemon died, and the guest goes on where it was.
    QEMU says that it was cancelled where the source's libvirt did that by itself."""
    with it.vm() as vm:
        assign(it, vm, f"dies-{which}", downtime_limit_ms=450)
        before = it.client.get(f"/vms/{vm.uuid}/effective")["readings"]
        with virsh_migrate(it, vm, "--bandwidth", "1") as process:
            record = applied(it, found(it, vm))
            assert set(statuses(record).values()) == {"effective"}
            with without_libvirtd(it, which, signal.SIGKILL):
                pass
            done = it.ended(record)
            assert process.wait(30) != 0
        assert (done["state"], done["destination"]) == ("failed", "b"), done
        assert done["failure"]
        wait_for(lambda: it.states(vm) == {"a": "running"}, "libvirt to be done with it")
        assert it.client.get(f"/vms/{vm.uuid}/effective")["readings"] == before
        assert len(records(it, vm)) == 1


def test_no_traceback_was_logged(it: Live) -> None:
    assert "Traceback" not in it.service.said()
