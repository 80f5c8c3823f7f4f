"""The patched QEMU through the real service, and in libvirt beside an unpatched one. Where no
patched QEMU is built, all of this is skipped and says so."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID, uuid4
from xml.etree.ElementTree import fromstring, tostring

import pytest

from tests.perf.pools.pool_model import Monitor
from tests.support.hosts.live import ENDED, QEMU, Live, Service, live, wait_for, why_no_lab
from tests.support.qemus.patched_build import OBJECT, TYPE, patched
from tests.support.qemus.qemu import SMALL_PC, running
from vmtune import lab
from vmtune.bench.migration.capabilities import look
from vmtune.bench.migration.order import DirectTestbed, RunOrder
from vmtune.bench.migration.runner import run_migration
from vmtune.bench.migration.scenarios import offered, why_not
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.scenario.migration import Scenario, VmShape
from vmtune.bench.model.settable import choose
from vmtune.bench.services.packs import use_packs
from vmtune.client.connection.errors import Refused
from vmtune.client.connection.http import Client, Document
from vmtune.hypervisor.linux.qemu_process import QemuProcess
from vmtune.lab.domain_xml import kvm_usable
from vmtune.lab.namespaces import namespace_inode, processes_in
from vmtune.model.plan.outcome import Status
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import Value
from vmtune.model.workload import Workload
from vmtune.packs import load

WHY_NOT = patched().why_not
WHY_NOT = WHY_NOT or ("" if kvm_usable() else "a dirty ring takes KVM, which cannot be used")
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "never")
RINGED = ("-machine", "pc", "-accel", "kvm,dirty-ring-size=65536", "-cpu", "qemu64", *SMALL_PC[4:])
"""A guest with dirty rings: without them its reaper has nothing to do, and is refused."""
NO_LAB = why_no_lab()
VALUES = {
    "qemu_reaper_policy": "levels",
    "qemu_reaper_least_interval_us": 20_000,
    "qemu_pool_hard_limit_count": 512,
    "qemu_pool_resize_period_s": 15,
}
STOCK = {
    "qemu_reaper_policy": "stock",
    "qemu_reaper_least_interval_us": 50_000,
    "qemu_pool_hard_limit_count": 0,
    "qemu_pool_resize_period_s": 0,
}
LEAST = "qemu_reaper_least_interval_us"
COUNTERS = {
    "qemu_ring_full_exits_count", "qemu_reaper_rounds_count", "qemu_pages_reaped_count",
    "qemu_coroutines_in_use_count", "qemu_coroutines_pooled_count",
    "qemu_coroutines_created_count", "qemu_coroutines_peak_count",
    "qemu_sends_count", "qemu_send_cpu_us", "qemu_zero_copy_copied_count", "qemu_flush_time_us",
}  # fmt: skip


def with_the_pack(monkeypatch: pytest.MonkeyPatch) -> None:
    (pack,) = load(["qemu-patched"])
    consents = ",".join(name.removeprefix("qom:") for name in sorted(pack.consents))
    monkeypatch.setenv("VMTUNE_PACKS", "qemu-patched")
    monkeypatch.setenv("VMTUNE_ALLOW_QOM", consents)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with pytest.MonkeyPatch.context() as patch:
        with_the_pack(patch)
        made = Service(tmp_path_factory.mktemp("patched"))
        made.start()
    try:
        made.client.post("/profiles", {"name": "p", "values": VALUES})
        made.client.post("/profiles", {"name": "s", "values": STOCK})
        yield made
    finally:
        made.stop()


def values_of(service: Service, vm: UUID) -> dict[str, object]:
    readings = service.client.get(f"/vms/{vm}/effective")["readings"]
    return {name: readings[name]["value"] for name in VALUES}


def test_planned_applied_verified_drifted_and_reverted(service: Service, tmp_path: Path) -> None:
    vm, name, client = uuid4(), f"a-{secrets.token_hex(2)}", service.client
    more = tmp_path / "more.sock"
    extra = ("-qmp", f"unix:{more},server=on,wait=off")
    with running(patched(), tmp_path / "a", uuid=vm, machine=RINGED, extra=extra) as qemu:
        client.post("/hosts", {"name": name, "uri": f"qmp+unix://{tmp_path / 'a'}"})
        assert values_of(service, vm) == STOCK
        plan = client.post(f"/vms/{vm}/plan", {"profile": "p"})
        assert plan["findings"] == []
        assert {item["tunable"] for item in plan["items"] if item["differs"]} == set(VALUES)

        done = client.post(f"/vms/{vm}/applications", {"profile": "p"})
        assert done["state"] == "applied", done["problems"]
        assert {o["status"] for o in done["outcomes"]} == {"effective"}
        assert values_of(service, vm) == VALUES
        assert client.post(f"/vms/{vm}/verify")["clean"] is True
        readings = client.get(f"/vms/{vm}/effective")["readings"]
        assert all(readings[counter]["value"] >= 0 for counter in COUNTERS)
        assert readings["qemu_coroutines_created_count"]["value"] > 0
        assert readings["qemu_reaper_interval_us"]["value"] == 80_000

        with Monitor(more) as monitor:  # behind vmtune's back
            monitor.execute("qom-set", path=OBJECT, property="pool-resize-period", value=3)
        verified = client.post(f"/vms/{vm}/verify")
        assert verified["clean"] is False
        drifted = {o["tunable"] for o in verified["outcomes"] if o["status"] == "overwritten"}
        assert drifted == {"qemu_pool_resize_period_s"}

        assert client.post(f"/applications/{done['id']}/revert")["state"] == "reverted"
        assert values_of(service, vm) == STOCK
        assert qemu.process.poll() is None, qemu.said()
        client.delete(f"/hosts/{name}")


def test_a_migration_carries_it_along_to_another_patched_qemu(
    service: Service, tmp_path: Path
) -> None:
    """QEMU hands nothing of it on: vmtune makes the object where the VM arrives."""
    vm, names, client = uuid4(), [f"{side}-{secrets.token_hex(2)}" for side in "ab"], service.client
    folders = [tmp_path / "a", tmp_path / "b"]
    waits = ("-incoming", "defer")
    with (
        running(patched(), folders[0], uuid=vm, machine=RINGED),
        running(patched(), folders[1], uuid=vm, machine=RINGED, extra=waits),
    ):
        for name, folder in zip(names, folders, strict=True):
            client.post("/hosts", {"name": name, "uri": f"qmp+unix://{folder}"})
        order = {"vm": str(vm), "destination": names[1], "profile": "p"}
        record = client.post("/migrations", order)

        def now() -> Document:
            return client.get(f"/migrations/{record['id']}")

        wait_for(lambda: now()["state"] in ENDED, "the migration to end")
        assert now()["state"] == "completed", now()["failure"]
        assert {o["status"] for o in now()["outcomes"]} == {"effective"}
        assert client.get(f"/vms/{vm}")["host"] == names[1]
        assert values_of(service, vm) == VALUES
        for name in names:
            client.delete(f"/hosts/{name}")


def test_what_this_qemu_refuses_is_put_back_and_said(service: Service, tmp_path: Path) -> None:
    """The pack's limit reaches further than vm.max_map_count lets this QEMU's."""
    room = (int(Path("/proc/sys/vm/max_map_count").read_text()) - 5000) // 2
    if room >= 1_000_000:
        pytest.skip(f"vm.max_map_count has room for {room:,} coroutines: nothing is refused")
    vm, name, client = uuid4(), f"a-{secrets.token_hex(2)}", service.client
    wants = {"qemu_reaper_policy": "aimd", "qemu_pool_hard_limit_count": 1_000_000}
    client.post("/profiles", {"name": name, "values": wants})
    with running(patched(), tmp_path, uuid=vm, machine=RINGED):
        client.post("/hosts", {"name": name, "uri": f"qmp+unix://{tmp_path}"})
        failed = client.post(f"/vms/{vm}/applications", {"profile": name})
        assert failed["state"] == "failed"
        (problem,) = failed["problems"]
        assert problem["field"] == "values.qemu_pool_hard_limit_count"
        assert problem["message"].startswith("pool-hard-limit expects a value between 0 and ")
        assert values_of(service, vm) == STOCK
        client.delete(f"/hosts/{name}")


# --- In libvirt ---


@pytest.fixture
def it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    if NO_LAB:
        pytest.skip(NO_LAB)
    with_the_pack(monkeypatch)
    with live(tmp_path, number=177) as made:
        yield made


def with_emulator(xml: str, program: str) -> str:
    """A domain's XML with another QEMU."""
    domain = fromstring(xml)
    emulator = domain.find("./devices/emulator")
    assert emulator is not None
    emulator.text = program
    return tostring(domain, encoding="unicode")


def program_on(host: lab.HostStatus) -> str:
    """Which QEMU runs on the host."""
    found = set()
    for pid in processes_in(namespace_inode(host.namespace)):
        with contextlib.suppress(OSError):  # it has ended
            found.add(Path(f"/proc/{pid}/exe").readlink())
    (qemu,) = (str(path) for path in found if path.name.startswith("qemu-system"))
    return qemu


def ended(client: Client, vm: str) -> int:
    """How many migrations of a VM have ended, as far as vmtune knows."""
    return sum(one["ended"] for one in client.items("/migrations", {"vm": vm}))


def test_one_vm_in_libvirt_there_and_back_between_patched_and_unpatched(
    it: Live, tmp_path: Path
) -> None:
    ours = patched().program
    stock = str(QEMU)
    client = it.client
    it.profile("p", **VALUES)
    with it.vm(dirty_ring_entries=65536) as vm:
        a, b = (it.host(which) for which in "ab")
        # As docs/how-to/patched-qemu.md says: the emulator of one VM, from its next start on.
        at_rest = lab.virsh(a.uri, "dumpxml", "--inactive", vm.name)
        lab.virsh(a.uri, "define", "/proc/self/fd/0", stdin=with_emulator(at_rest, ours))
        lab.virsh(a.uri, "destroy", vm.name)
        lab.virsh(a.uri, "start", vm.name)
        assert program_on(a) == str(Path(ours).resolve())
        done = client.post(f"/vms/{vm.uuid}/applications", {"profile": "p"})
        assert done["state"] == "applied", done["problems"]
        assert client.post(f"/vms/{vm.uuid}/verify")["clean"] is True

        for number, (source, target, program) in enumerate(((a, b, stock), (b, a, ours)), 1):
            arrives = tmp_path / "arrives.xml"
            running_xml = lab.virsh(source.uri, "dumpxml", "--migratable", vm.name)
            arrives.write_text(with_emulator(running_xml, program))
            lab.virsh(
                source.uri, "migrate", "--live", "--p2p", "--persistent", "--undefinesource",
                "--xml", str(arrives), "--persistent-xml", str(arrives), vm.name, target.peer_uri,
                timeout_s=60,
            )  # fmt: skip
            assert program_on(target) == str(Path(program).resolve())
            where = "ab"[(a, b).index(target)]
            assert it.states(vm) == {where: "running"}
            wait_for(lambda: client.get(f"/vms/{vm.uuid}")["host"] == where, "vmtune to see it")  # noqa: B023
            # virsh began it, and vmtune has to have seen its end too before it changes anything.
            wait_for(lambda: ended(client, vm.uuid) == number, "vmtune to see its end")  # noqa: B023
            said = len(vm.serial.read_text())
            wait_for(lambda: len(vm.serial.read_text()) > said, "the guest to go on")  # noqa: B023
            if program == stock:
                plan = client.post(f"/vms/{vm.uuid}/plan", {"profile": "p"})
                assert "not_offered_by_qemu" in plan["blockers"]
                with pytest.raises(Refused):
                    client.post(f"/vms/{vm.uuid}/applications", {"profile": "p"})
        # It came back without the object, as to any QEMU: vmtune sets it anew.
        again = client.post(f"/vms/{vm.uuid}/applications", {"profile": "p"})
        assert again["state"] == "applied", again["problems"]


def test_a_benchmark_runs_with_what_the_pack_adds(pack: frozenset[str]) -> None:
    values: dict[str, Value] = {**VALUES, "dirty_ring_size_entries": 4096}
    scenario = Scenario(
        "test/patched",
        vm=VmShape(64 << 20, 1),
        workload=Workload(16 << 20, beat_ms=5),
        values=values,
        warmup_s=0,
        cooldown_s=0,
        max_seconds=60,
    )
    with tempfile.TemporaryDirectory(prefix="vt-") as name:
        testbed = DirectTestbed(Path(patched().program), folder=Path(name) / "b", consents=pack)
        hosts = asyncio.run(look(testbed, kvm=True))
        assert why_not(scenario, hosts) is None
        assert VALUES.keys() <= offered(hosts, {name: (value,) for name, value in VALUES.items()}
                                        | {"qemu_reaper_policy": ("stock",)})  # fmt: skip
        assert not offered(replace(hosts, consents=frozenset()), {LEAST: (20_000,)})
        result = asyncio.run(run_migration(RunOrder(scenario, testbed=testbed), lambda _: None))
    assert result.state is RunState.COMPLETED, result.failure
    found = {outcome.tunable: outcome for outcome in result.record.outcomes}
    outcomes = {name: (found[name].status, found[name].seen) for name in VALUES}
    assert outcomes == {name: (Status.EFFECTIVE, value) for name, value in VALUES.items()}


@pytest.fixture
def pack() -> Iterator[frozenset[str]]:
    """This process's benchmarks can set what the pack adds; what that takes of consents."""
    use_packs(["qemu-patched"])
    try:
        yield load(["qemu-patched"])[0].consents
    finally:
        choose(BUILT_IN)


def test_the_patched_qemu_offers_the_object(tmp_path: Path) -> None:
    with running(patched(), tmp_path) as qemu:
        assert QemuProcess(qemu.pid).maps() is not None
        with Monitor(qemu.socket) as monitor:
            types = monitor.execute("qom-list-types", implements="user-creatable")
            assert TYPE in {row["name"] for row in types}
            version = monitor.execute("query-version")
            assert TYPE in version["package"]
