"""Migrations between two real libvirt hosts, through the real service."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.hosts.live import Live, live, wait_for, why_no_lab
from vmtune import lab
from vmtune.client.connection.errors import Refused
from vmtune.client.connection.http import Document
from vmtune.model.workload import Workload

NO_LAB = why_no_lab()
pytestmark = pytest.mark.skipif(bool(NO_LAB), reason=NO_LAB or "never")
TUNED = {"multifd": True, "multifd_channels": 3, "multifd_compression": "zstd"}
# What nothing packs lasts two seconds: long enough to be seen while it runs.
PACED = {"max_bandwidth_bytes_per_s": "16MiB/s"}
LASTING = Workload(region_bytes=32 << 20, random_percent=100, idle_ms=60_000)
# Slow enough to be caught in the middle: 128 MiB at 8 MiB/s.
SLOW = {"max_bandwidth_bytes_per_s": "8MiB/s"}


@pytest.fixture(scope="module")
def it(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("live"), number=95) as made:
        made.profile("tuned", **TUNED, downtime_limit_ms=450, **PACED)
        made.profile("slow", **SLOW, downtime_limit_ms=450)
        yield made


@pytest.fixture(autouse=True)
def _serving(it: Live) -> None:
    """A test that failed with the service dead does not fail the ones after it."""
    it.service.revive()


def statuses(record: dict[str, object]) -> dict[str, str]:
    outcomes = record["outcomes"]
    assert isinstance(outcomes, list)
    return {o["tunable"]: o["status"] for o in outcomes}


def effective(it: Live, vm: lab.LabVm) -> dict[str, dict[str, object]]:
    """What the VM's tunables are set to, by name."""
    return dict(it.client.get(f"/vms/{vm.uuid}/effective")["readings"])


def qemu_pid(it: Live, which: str, vm: lab.LabVm) -> int:
    """The pid of the VM's QEMU on a host, from the file that libvirt keeps."""
    files = list((it.settings.folder / which).rglob(f"run/libvirt/qemu/{vm.name}.pid"))
    assert files, f"no QEMU of {vm.name} on {which}"
    return int(files[0].read_text())


def test_there_and_back_tuned_and_proven(it: Live) -> None:
    with it.vm(workload=LASTING) as vm:
        there = it.ended(it.migrate(vm, "b", profile="tuned"))
        assert there["state"] == "completed", there["failure"]
        expected = dict.fromkeys([*TUNED, "downtime_limit_ms", *PACED], "effective")
        assert statuses(dict(there)) == expected
        assert there["totals"]["total_time_ms"] > 0
        assert there["totals"]["transferred_bytes"] > 0
        assert it.states(vm) == {"b": "running"}
        back = it.ended(it.migrate(vm, "a"))
        assert back["state"] == "completed", back["failure"]
        assert back["profile"] is None
        assert it.states(vm) == {"a": "running"}


def test_samples_hold_every_iteration_that_was_seen(it: Live) -> None:
    with it.vm() as vm:
        record = it.migrate(vm, "b", profile="slow")
        it.until_active(record)

        def seen() -> list[Document]:
            return list(it.client.items(f"/migrations/{record['id']}/samples"))

        wait_for(lambda: len(seen()) >= 10, "10 samples")
        it.client.delete(f"/migrations/{record['id']}")
        it.ended(record)
        samples = seen()
        assert samples[0]["boundary"] is True
        moments = [s["at_ms"] for s in samples]
        assert moments == sorted(moments)


def test_abort_leaves_the_vm_on_the_source_with_nothing_changed(it: Live) -> None:
    with it.vm() as vm:
        before = effective(it, vm)
        record = it.migrate(vm, "b", profile="slow")
        it.until_active(record)
        it.client.delete(f"/migrations/{record['id']}")
        done = it.ended(record)
        assert (done["state"], done["abort"]) == ("cancelled", "aborted")
        assert it.states(vm) == {"a": "running"}
        assert effective(it, vm) == before
        with pytest.raises(Refused) as caught:
            it.client.delete(f"/migrations/{record['id']}")
        assert caught.value.problems[0].code == "too_late"


def test_killed_with_the_migration_running_it_is_found_again(it: Live) -> None:
    it.profile("slow-tuned", **SLOW, multifd=True, multifd_channels=3)
    with it.vm() as vm:
        record = it.migrate(vm, "b", profile="slow-tuned")
        it.until_active(record)
        it.service.kill()
        assert it.states(vm)["a"] == "running"
        it.service.start()
        found = it.record(record)
        assert found["state"] == "active"
        proven = dict.fromkeys(
            ["max_bandwidth_bytes_per_s", "multifd", "multifd_channels"], "effective"
        )
        wait_for(lambda: statuses(dict(it.record(record))) == proven, "it to be read back")
        it.client.delete(f"/migrations/{record['id']}")
        done = it.ended(record)
        assert (done["state"], done["abort"]) == ("cancelled", "aborted")
        assert statuses(dict(done)) == proven
        assert it.states(vm) == {"a": "running"}


def test_a_migration_that_ends_while_the_service_is_dead_ends_as_libvirt_says(it: Live) -> None:
    it.profile("killed", max_bandwidth_bytes_per_s="8MiB/s")
    # One pass over 64 MiB, then rest: it takes eight seconds, and then it is over.
    with it.vm(workload=Workload(region_bytes=64 << 20, idle_ms=60_000)) as vm:
        record = it.migrate(vm, "b", profile="killed")
        it.until_active(record)
        it.service.kill()
        wait_for(lambda: it.states(vm) == {"b": "running"}, "the migration to end skipped_checks")
        it.service.start()
        done = it.ended(record)
        assert done["state"] == "completed"
        assert done["totals"]["total_time_ms"] > 0


def test_a_source_qemu_that_dies_is_a_failure(it: Live) -> None:
    with it.vm() as vm:
        record = it.migrate(vm, "b", profile="slow")
        it.until_active(record)
        os.kill(qemu_pid(it, "a", vm), signal.SIGKILL)
        done = it.ended(record)
        assert done["state"] == "failed"
        assert done["failure"]
        over = ({}, {"a": "shut off"})
        wait_for(lambda: it.states(vm) in over, "libvirt to be done with it")


def test_a_destination_qemu_that_dies_leaves_the_source_running(it: Live) -> None:
    with it.vm() as vm:
        record = it.migrate(vm, "b", profile="slow")
        it.until_active(record)
        os.kill(qemu_pid(it, "b", vm), signal.SIGKILL)
        done = it.ended(record)
        assert done["state"] == "failed"
        assert done["failure"]
        assert it.states(vm) == {"a": "running"}
        assert effective(it, vm)["downtime_limit_ms"]["value"] == 300


def test_one_operation_at_a_time_for_each_vm(it: Live) -> None:
    with it.vm() as vm:
        record = it.migrate(vm, "b", profile="slow")
        it.until_active(record)
        for path, body in (
            ("/migrations", {"vm": vm.uuid, "destination": "b"}),
            (f"/vms/{vm.uuid}/applications", {"profile": "tuned"}),
        ):
            with pytest.raises(Refused) as caught:
                it.client.post(path, body)
            assert caught.value.status == 409
        it.client.delete(f"/migrations/{record['id']}")
        it.ended(record)


def test_the_destination_is_another_host(it: Live) -> None:
    with it.vm() as vm:
        with pytest.raises(Refused) as caught:
            it.migrate(vm, "a")
        assert caught.value.status == 422
        assert caught.value.problems[0].field == "destination"


def test_zero_copy_is_foreseen_where_libvirt_may_not_lock_memory(it: Live) -> None:
    if int(_cap_eff(), 16) >> 24 & 1:
        pytest.skip("this machine grants CAP_SYS_RESOURCE: libvirt may raise the limit")
    it.profile("zero-copy", multifd=True, zero_copy_send=True)
    with it.vm() as vm:
        plan = it.client.post(f"/vms/{vm.uuid}/plan", {"profile": "zero-copy", "destination": "b"})
        assert "locked_memory_too_low" in [f["code"] for f in plan["findings"]]
        with pytest.raises(Refused) as caught:
            it.migrate(vm, "b", profile="zero-copy")
        assert caught.value.status == 409


def _cap_eff() -> str:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return line.split()[1]
    raise LookupError("CapEff")


def test_the_standing_application_goes_with_the_vm(it: Live) -> None:
    it.profile("standing", downtime_limit_ms=777)
    with it.vm() as vm:
        applied = it.client.post(f"/vms/{vm.uuid}/applications", {"profile": "standing"})
        assert applied["state"] == "applied"
        done = it.ended(it.migrate(vm, "b", profile="standing"))
        assert done["state"] == "completed", done["failure"]
        verified = it.client.post(f"/vms/{vm.uuid}/verify")
        assert verified["clean"] is True
        assert verified["host"] == "b"
        reverted = it.client.post(f"/applications/{applied['id']}/revert")
        assert reverted["state"] == "reverted"


def test_the_boot_route_writes_the_persistent_configuration(it: Live) -> None:
    if it.client.get("/hosts/a")["facts"]["kvm"] is not True:
        pytest.skip("a dirty ring needs KVM, and this machine has none")
    # With a reaper: on some kernels a ring that nobody empties is refused.
    it.profile("ring", dirty_ring_size_entries=65536, reaper_policy="predict")
    with it.vm() as vm:
        applied = it.client.post(f"/vms/{vm.uuid}/applications", {"profile": "ring"})
        assert statuses(dict(applied)) == {
            "dirty_ring_size_entries": "pending restart",
            "reaper_policy": "pending migration",
        }
        inactive = lab.virsh(it.host("a").uri, "dumpxml", "--inactive", vm.name)
        assert "dirty-ring" in inactive
        it.client.post(f"/applications/{applied['id']}/revert")
        inactive = lab.virsh(it.host("a").uri, "dumpxml", "--inactive", vm.name)
        assert "size='65536'" not in inactive


def test_no_traceback_was_logged(it: Live) -> None:
    assert "Traceback" not in it.service.said()
