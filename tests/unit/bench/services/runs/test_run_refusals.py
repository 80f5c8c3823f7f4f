"""Benchmark runs that are refused, and how often a machine is looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.benchmarks.bench_runs import a_program, small
from tests.unit.bench.services.runs.run_service import It
from vmtune.bench.migration.order import LibvirtTestbed
from vmtune.bench.model.runs.run import RunState, Testbed
from vmtune.bench.services.runs.runs import RunRequest
from vmtune.errors import Blocked, CommandRefused, InvalidInput, LabError, NotFound


@pytest.mark.parametrize(
    ("request_", "field", "code"),
    [
        (RunRequest("nonsense"), "scenarios.0", "unknown_scenario"),
        (RunRequest("plain"), "scenario", "not_one_scenario"),
        (RunRequest({"name": "x"}), "scenario.name", "invalid_name"),
        (RunRequest(small(vm={"vcpus": 0})), "scenario.vm.vcpus", "invalid_value"),
        (RunRequest(small(), {"warmup": 1}), "changes.warmup", "unknown_field"),
        (RunRequest(small(), values={"multifd_chanels": 2}), "values.multifd_chanels", ""),
        (RunRequest(small(title="\ud800")), "scenario", "no_json"),
        (RunRequest(small(), qemu="../../bin/sh"), "qemu", "unknown_qemu"),
        (RunRequest(small(), revision=2), "revision", ""),
        (RunRequest(small(), profile="none"), "profile", ""),
    ],
)
async def test_a_bad_order_is_refused_and_changes_nothing(
    it: It, request_: RunRequest, field: str, code: str
) -> None:
    with pytest.raises((InvalidInput, NotFound)) as caught:
        await it.runs.start(request_)
    problem = caught.value.problems[0]
    assert problem.field == field
    assert not code or problem.code == code
    assert it.store.runs.list().items == ()


async def test_what_this_machine_cannot_do_is_refused_with_the_reason(it: It) -> None:
    ring = small(values={"dirty_ring_size_entries": 4096})
    with pytest.raises(Blocked, match="it needs KVM") as caught:
        await it.runs.start(RunRequest(ring))
    assert caught.value.problems[0].code == "not_applicable"
    it.look.error = CommandRefused("it does not start")
    with pytest.raises(CommandRefused):
        await it.runs.start(RunRequest(small(), kvm=True))
    assert it.store.runs.list().items == ()


async def test_a_machine_is_looked_at_once(it: It, tmp_path: Path) -> None:
    for _ in range(3):
        await it.do()
    assert it.look.looked == 1
    a_program(tmp_path)  # replaced: its time of change is another
    await it.do()
    assert it.look.looked == 2


async def test_what_an_operator_mends_counts_at_once(it: It) -> None:
    it.sysctls["net_core_optmem_max_bytes"] = 4096
    request = RunRequest(small(values={"multifd": True, "zero_copy_send": True}))
    with pytest.raises(Blocked, match="optmem"):
        await it.runs.start(request)
    it.sysctls["net_core_optmem_max_bytes"] = 1 << 20
    assert (await it.do(request)).state is RunState.COMPLETED
    assert it.look.looked == 1


async def test_a_lab_is_looked_at_each_time(it: It) -> None:
    lab = RunRequest(small(), testbed=Testbed.LAB)
    await it.do(lab)
    it.look.error = LabError("no lab is up")
    with pytest.raises(LabError):
        await it.runs.start(lab)
    assert it.look.looked == 2
    assert isinstance(it.look.testbed, LibvirtTestbed)
    assert len(it.store.runs.list().items) == 1
