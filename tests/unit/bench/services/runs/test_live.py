"""Runs on VMs that run: whose the VM is meanwhile, and what is refused. Without QEMUs."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.support.benchmarks.bench_runs import FakeRunner
from tests.support.simulated.fakes import VM, fake_pair
from tests.unit.bench.services.runs.run_service import It, assemble, started
from vmtune.bench.block.live_order import LiveOrder
from vmtune.bench.machine.environment import Subject, host_name
from vmtune.bench.model.runs.run import Run, RunState
from vmtune.bench.model.scenario.any_kind import to_json
from vmtune.bench.services.runs import live as runs_live
from vmtune.bench.services.runs.runs import RunRequest
from vmtune.errors import (
    Conflict,
    HostUnreachable,
    InvalidInput,
    NotFound,
    OperationInProgress,
    SetupError,
)
from vmtune.hypervisor.qemu.block_export import BlockNode
from vmtune.model.host.facts import MemoryMaps, VmFacts
from vmtune.model.plan.outcome import ApplicationState
from vmtune.storage import Store
from vmtune.testing.fake.driver import FakeDriver


class Seen(FakeDriver):
    """A host whose VM has a process on this machine, and one disk."""

    pid: int | None = os.getpid()
    maps: MemoryMaps | None = None

    async def vm_facts(self, vm: Any) -> VmFacts:
        return replace(await super().vm_facts(vm), pid=self.pid, maps=self.maps)

    async def block_nodes(self, vm: Any) -> list[BlockNode]:
        return [BlockNode("disk0", "raw", 1 << 20, False, on_main_loop=True)]


@pytest.fixture(autouse=True)
def tools(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A fio that only says its version, and a machine that is not looked at."""
    program = tmp_path / "bin" / "fio"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho fio-3.33\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    monkeypatch.setattr("vmtune.bench.block.live_order.require_programs", lambda *names: None)

    def looked(subject: Subject) -> dict[str, Any]:
        return {"qemu": {"program": str(subject.qemu)}, "network": {}}

    monkeypatch.setattr(runs_live, "read_environment", looked)


@pytest.fixture
def driver() -> Seen:
    return Seen(list(fake_pair()[0].fakes.values()), "a")


@pytest.fixture
async def it(store: Store, tmp_path: Path, driver: Seen) -> AsyncIterator[It]:
    made = assemble(store, tmp_path, FakeRunner(), make_driver=lambda host: driver)
    await made.hosts.add("a", driver.uri)
    async with started(made) as running:
        yield running


def asked(**target: str) -> RunRequest:
    cell = {"rw": "randread", **({} if target else {"node": "null-co"})}
    return RunRequest({"kind": "block", "cell": cell, "target": {"vm": str(VM), **target}})


def apply_to_it(it: It) -> None:
    record = it.store.applications.begin(VM, "a", "p", 1, {}, False, [])
    it.store.applications.finish(record.id, ApplicationState.APPLIED)


async def test_the_vm_is_the_runs_alone_and_recorded_with_it(it: It) -> None:
    it.runner.held = True
    run = (await it.runs.start(asked(node="disk0"))).run
    await it.runner.begun()
    assert (run.qemu, run.options) == ("", {"vm_name": "vm", "vm_host": "a"})
    (order,) = it.runner.orders
    assert isinstance(order, LiveOrder) and (order.vm, order.node) == (VM, "disk0")

    with pytest.raises(OperationInProgress, match=f"benchmark {run.id}") as caught:
        await it.runs.start(asked())
    assert caught.value.problems[0].remedy.endswith("or cancel it")
    with pytest.raises(OperationInProgress, match="benchmark"):
        apply_to_it(it)
    with pytest.raises(OperationInProgress, match="benchmark"):
        it.store.migrations.begin(vm=VM, vm_name="vm", source="a", destination="b")
    with pytest.raises(Conflict, match=f"benchmark {run.id} is open"):
        it.store.hosts.remove("a")

    it.runner.release()
    done = await it.ended(run)
    assert (done.state, done.metrics["iops"]) == (RunState.COMPLETED, 30_001)
    assert done.environment == {"qemu": {"program": f"/proc/{os.getpid()}/exe"}, "fio": "fio-3.33"}
    apply_to_it(it)


async def test_it_is_refused_while_something_else_has_the_vm(it: It) -> None:
    record = it.store.applications.begin(VM, "a", "p", 1, {}, False, [])
    with pytest.raises(OperationInProgress, match="application"):
        await it.runs.start(asked())
    assert it.store.runs.list().items == ()
    it.store.applications.finish(record.id, ApplicationState.APPLIED)
    assert (await it.do(asked())).state is RunState.COMPLETED


async def test_however_it_ends_the_vm_is_free_again(it: It) -> None:
    it.runner.held = True
    running = (await it.runs.start(asked())).run
    await it.runner.begun()
    await it.runs.cancel(running.id)
    assert (await it.ended(running)).state is RunState.CANCELLED
    it.runner.held = False
    it.runner.error = SetupError("no")
    assert (await it.do(asked())).state is RunState.FAILED
    apply_to_it(it)


async def test_a_service_that_died_in_its_middle_frees_it(
    it: It, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleared: list[Run] = []
    scenario = await it.runs.check(asked())
    dead = store.runs.begin(
        scenario=scenario.name, setup=to_json(scenario), values={}, host=host_name(),
        options={"vm_name": "vm", "vm_host": "a"},
    )  # fmt: skip
    store.runs.start(dead.id, {}, "", {})

    async def clear() -> None:
        cleared.append(store.runs.get(dead.id))

    monkeypatch.setattr(it.live, "clear", clear)
    with pytest.raises(OperationInProgress):
        apply_to_it(it)
    await it.runs.resume()
    assert (await it.ended(dead)).state is RunState.INTERRUPTED
    assert [run.state for run in cleared] == [RunState.RUNNING], "before the VM is free"
    apply_to_it(it)


async def test_what_cannot_be_measured_is_refused_when_it_is_ordered(it: It, driver: Seen) -> None:
    with pytest.raises(InvalidInput) as unknown:
        await it.runs.start(asked(node="disk9"))
    (problem,) = unknown.value.problems
    assert (problem.field, problem.code) == ("target.node", "unknown_node")
    assert "there are disk0;" in problem.remedy
    with pytest.raises(InvalidInput) as other:
        await it.runs.start(replace(asked(), qemu="old"))
    assert [(p.field, p.code) for p in other.value.problems] == [("qemu", "not_for_kind")]
    with pytest.raises(NotFound):
        await it.runs.start(replace(asked(), changes={"target": {"vm": str(UUID(int=9))}}))
    driver.maps = MemoryMaps(1 << 40, 0)
    with pytest.raises(SetupError, match="ends itself at") as full:
        await it.runs.start(asked())
    assert full.value.problems[0].code == "maps_would_run_out"
    driver.pid, driver.maps = None, None
    with pytest.raises(SetupError, match="not on this machine") as far:
        await it.runs.start(asked())
    assert far.value.problems[0].code == "not_local"
    assert it.store.runs.list().items == ()


async def test_an_exports_host_is_found_by_its_address(
    it: It, store: Store, driver: Seen, tmp_path: Path
) -> None:
    """Also of a host that was removed since, and not where it does not answer."""
    left = tmp_path / "live" / "run-00000000"
    removed: list[str] = []

    async def remove(vm: Any) -> None:
        removed.append(str(vm))

    driver.remove_export = remove  # type: ignore[method-assign] # seen here
    for gone in (False, True):
        left.mkdir(parents=True)
        (left / "live.json").write_text(f'{{"uri": "{driver.uri}", "vm": "{VM}"}}')
        if gone:
            store.hosts.remove("a")
        await it.runs.clear_live()
        assert not left.exists()
    assert removed == [str(VM)] * 2

    async def silent(vm: Any) -> None:
        raise HostUnreachable("no")

    driver.remove_export = silent  # type: ignore[method-assign]
    left.mkdir(parents=True)
    (left / "live.json").write_text(f'{{"uri": "{driver.uri}", "vm": "{VM}"}}')
    await it.runs.clear_live()
    assert left.exists()
