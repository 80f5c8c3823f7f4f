"""Nova's own libvirt driver migrates VMs between two real hosts, beside the service.

`make test-nova` runs them: they take minutes, and install two Novas.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from tests.support.hosts.live import Live, live, wait_for, why_no_lab
from tests.support.hosts.nova import (
    Compute,
    computes,
    debians_nova,
    mark_as_novas,
    newest_nova,
    until_migrating,
)
from vmtune import lab
from vmtune.client.connection.errors import ClientError
from vmtune.client.connection.http import Document
from vmtune.model.host.managers import NOVA
from vmtune.model.workload import Workload

NO_LAB = why_no_lab()
pytestmark = [
    pytest.mark.timeout(1800),
    pytest.mark.skipif(bool(NO_LAB), reason=NO_LAB or "never"),
]
CALM = Workload(region_bytes=4 << 20, idle_ms=500)
LASTING = Workload(region_bytes=32 << 20, random_percent=100, idle_ms=60_000)
"""Writes much, and then nothing for a minute: it takes seconds, and ends."""
SLOW = {"live_migration_bandwidth": 2}
"""MiB/s: nothing ends before it is told to."""


@pytest.fixture(scope="module", params=[newest_nova, debians_nova], ids=["newest", "debian"])
def at_work(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Live, dict[str, Compute]]]:
    nova = request.param()
    print(f"\n# {nova.name}", flush=True)
    folder = tmp_path_factory.mktemp("nova")
    with ExitStack() as open_ones:
        it = open_ones.enter_context(live(folder, number=73))
        yield it, open_ones.enter_context(computes(nova, it, folder))


@pytest.fixture
def it(at_work: tuple[Live, dict[str, Compute]]) -> Live:
    at_work[0].service.revive()
    return at_work[0]


@pytest.fixture
def nova(at_work: tuple[Live, dict[str, Compute]]) -> dict[str, Compute]:
    return at_work[1]


@contextmanager
def novas_vm(it: Live, **settings: Any) -> Iterator[lab.LabVm]:
    with it.vm(**{"workload": CALM, **settings}) as vm:
        mark_as_novas(it, vm)
        yield vm


def records(it: Live, vm: lab.LabVm) -> list[Document]:
    return list(it.client.items("/migrations", {"vm": vm.uuid}))


def newest(it: Live, vm: lab.LabVm, count: int) -> Document:
    """The record of the VM's *count*th migration, once it has ended."""
    wait_for(lambda: len(records(it, vm)) == count, "the migration to be found")
    return it.ended(records(it, vm)[0])


def limits(it: Live, vm: lab.LabVm, on: str) -> dict[str, int]:
    text = '{"execute": "query-migrate-parameters"}'
    answer = json.loads(lab.virsh(it.host(on).uri, "qemu-monitor-command", vm.name, text))
    return dict(answer["return"])


def is_complete(it: Live, record: Document, state: str, source: str, to: str) -> bool:
    """Whether the record says all that was to be seen of it."""
    owners = {o["tunable"]: o["owner"] for o in record["outcomes"]}
    return (
        record["trigger"] == "observed"
        and (record["state"], record["source"], record["destination"]) == (state, source, to)
        and (record["totals"] is not None) == (state == "completed")
        and None not in (record["started_at"], record["ended_at"])
        and owners.get("downtime_limit_ms") == NOVA.name
        and "pending migration" not in {o["status"] for o in record["outcomes"]}
    )


ORDERS: list[tuple[str, dict[str, Any]]] = [
    ("", {}),
    ("", {"live_migration_parallel_connections": 2}),
    ("abort", SLOW),
    ("", {"live_migration_permit_auto_converge": True}),
    ("force_complete", {"live_migration_bandwidth": 16}),
] * 4
"""Twenty migrations, as operators order them."""


def test_each_of_twenty_is_recorded_completely(it: Live, nova: dict[str, Compute]) -> None:
    at, recorded, ended = "a", 0, []
    with novas_vm(it) as vm:
        for number, (then, options) in enumerate(ORDERS, start=1):
            to = "b" if at == "a" else "a"
            found = nova[at].migrate(it, vm, to, then, after_s=1, options=options)
            state = "cancelled" if then == "abort" else "completed"
            assert found["ended"] == state, (number, then, options, found)
            ended.append(found["ended"])
            record = newest(it, vm, number)
            recorded += is_complete(it, record, state, at, to)
            if not is_complete(it, record, state, at, to):
                print(json.dumps(record))
            at = to if state == "completed" else at
            wait_for(lambda at=at: it.states(vm) == {at: "running"}, "libvirt to be done")
    print(f"# {recorded} of {len(ORDERS)} recorded completely: {ended}")
    assert recorded == len(ORDERS)


def test_the_record_says_whose_each_value_is(it: Live, nova: dict[str, Compute]) -> None:
    busy = Workload(region_bytes=64 << 20, random_percent=100, idle_ms=100)
    steps = [
        {"when": {"after_s": 1}, "then": {"set": {"downtime_limit_ms": 1999}}},
        {"when": {"after_s": 1}, "then": {"set": {"max_cpu_throttle_percent": 81}}},
        {"when": {"after_s": 1}, "then": {"do": "pause"}},
    ]
    values = {
        "downtime_limit_ms": 450, "multifd": True, "max_cpu_throttle_percent": 77,
        "auto_converge": True, "cpu_throttle_initial_percent": 33,
    }  # fmt: skip
    with novas_vm(it, workload=busy) as vm:
        it.client.post("/profiles", {"name": f"p-{vm.name}", "values": values, "steps": steps})
        target = {"target": "vm", "key": vm.uuid, "profile": f"p-{vm.name}"}
        it.client.post("/assignments", target)
        options = {**SLOW, "live_migration_permit_auto_converge": True}
        nova["a"].order(it, vm, "b", "abort", after_s=15, options=options)
        wait_for(lambda: bool(records(it, vm)), "it to be found")
        (record,) = records(it, vm)
        wait_for(lambda: len(it.record(record)["step_records"]) == 3, "the steps to come due")
        during = limits(it, vm, "a")
        assert nova["a"].answer()["ended"] == "cancelled"
        done = it.ended(record)
        # Nova's own stays Nova's.
        assert during["downtime-limit"] == 50
        assert during["max-bandwidth"] == 2 << 20
        assert during["max-cpu-throttle"] == 81
        assert during["cpu-throttle-initial"] == 33
        said = {
            o["tunable"]: (o["owner"], (o["seen"] or {}).get("value")) for o in done["outcomes"]
        }
        assert said["downtime_limit_ms"] == (NOVA.name, 50)
        assert said["multifd"] == (NOVA.name, False)
        assert said["auto_converge"] == (NOVA.name, True)
        assert said["max_bandwidth_bytes_per_s"] == (NOVA.name, 2 << 20)  # no profile wants it
        assert said["max_cpu_throttle_percent"] == ("vmtune", 77)
        assert said["cpu_throttle_initial_percent"] == ("vmtune", 33)
        (problem,) = done["problems"]
        assert problem["code"] == "left_to_manager"
        assert "live_migration_parallel_connections" in problem["remedy"]
        assert done["missing_flags"] == []
        effects = [(s["effect"], NOVA.name in s["detail"]) for s in done["step_records"]]
        assert effects == [("refused", True), ("done", False), ("refused", True)]
        wait_for(lambda: limits(it, vm, "a")["max-cpu-throttle"] == 99, "it to be restored")


def test_vmtune_itself_moves_such_a_vm_only_if_told_to(it: Live) -> None:
    with novas_vm(it) as vm:
        with pytest.raises(ClientError) as refused:
            it.migrate(vm, "b")
        (problem,) = refused.value.problems
        assert problem.code == "managed_elsewhere"
        assert NOVA.migrate in problem.remedy
        done = it.ended(it.migrate(vm, "b", overrides=["managed_elsewhere"]))
        assert done["state"] == "completed"


def install_hooks(it: Live) -> None:
    """On both hosts, as an operator does it."""
    for name in "ab":
        hooks = it.settings.folder / name / "etc/hooks"
        subprocess.run(
            [sys.executable, "-m", "vmtune", "install-hook", "--timeout", "500ms", "--hooks-dir",
             str(hooks), "--socket", str(it.client.socket_path), "--json"],
            check=True, capture_output=True,
        )  # fmt: skip
        pid = it.host(name).libvirtd_pid
        assert pid is not None
        subprocess.run(["kill", "-HUP", str(pid)], check=True)


@pytest.mark.parametrize("how", ["stopped", "hanging", "killed"])
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_none_fails_whatever_becomes_of_vmtune(
    it: Live, nova: dict[str, Compute], how: str, when: str
) -> None:
    install_hooks(it)
    at, tries, completed = "a", 4, 0
    sent = {"stopped": signal.SIGTERM, "hanging": signal.SIGSTOP, "killed": signal.SIGKILL}[how]
    with novas_vm(it, workload=LASTING if when == "meanwhile" else CALM) as vm:
        it.client.post("/profiles", {"name": f"p-{vm.name}", "values": {"downtime_limit_ms": 450}})
        target = {"target": "vm", "key": vm.uuid, "profile": f"p-{vm.name}"}
        it.client.post("/assignments", target)
        for _ in range(tries):
            it.service.revive()
            # Where a VM has been meanwhile can only be seen before it is back.
            wait_for(lambda: all(r["ended"] for r in records(it, vm)), "the records to end")
            process = it.service.process
            assert process is not None
            to = "b" if at == "a" else "a"
            options = {"live_migration_bandwidth": 4 if when == "meanwhile" else 0}
            try:
                if when == "before":
                    process.send_signal(sent)
                nova[at].order(it, vm, to, options=options)
                if when == "meanwhile":
                    until_migrating(it, vm, at)
                    process.send_signal(sent)
                completed += nova[at].answer()["ended"] == "completed"
            finally:
                process.send_signal(signal.SIGCONT)
                if how != "hanging":
                    process.wait(30)
            wait_for(lambda to=to: it.states(vm) == {to: "running"}, "libvirt to be done")
            at = to
        it.service.revive()
        wait_for(lambda: all(r["ended"] for r in records(it, vm)), "the records to be complete")
        known = [(r["state"], r["failure"]) for r in records(it, vm)]
    states = [state for state, _ in known]
    print(f"# vmtune {how} {when}: {completed} of {tries} of Nova's completed; records: {states}")
    assert completed == tries
    assert set(states) <= {"completed"}, known
