"""Runs of updates of a real memory map, and the one that is cancelled."""

from __future__ import annotations

import asyncio
import os

import pytest

from vmtune.bench.migration.order import RunProgress
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.scenario.matrix_cells import SrcuCell
from vmtune.bench.model.scenario.srcu import SrcuScenario
from vmtune.bench.srcu.order import SrcuOrder
from vmtune.bench.srcu.reduce import reduce_srcu
from vmtune.bench.srcu.run import run_srcu

pytestmark = pytest.mark.skipif(
    not os.access("/dev/kvm", os.R_OK | os.W_OK) or os.uname().machine != "x86_64",
    reason="/dev/kvm cannot be used here, or this is no x86-64",
)


def scenario(updates: int, max_seconds: int) -> SrcuScenario:
    return SrcuScenario(SrcuCell(2), updates=updates, max_seconds=max_seconds)


def test_all_updates_are_timed() -> None:
    told: list[RunProgress] = []
    result = asyncio.run(run_srcu(SrcuOrder(scenario(20, 60)), told.append))
    assert result.state is RunState.COMPLETED
    cost = result.record.cost
    assert (cost.vcpus, cost.add.count, cost.delete.count) == (2, 10, 10)
    found = reduce_srcu(result.record)
    assert 0 < found["slot_add_us"] <= found["slot_add_p99_us"]
    assert found["srcu_boot_ms"] == pytest.approx(9 * found["grace_period_us"])
    assert result.record.host_kernel == os.uname().release
    assert [each.share for each in told] == [0, 1]


def test_one_that_its_limit_ends_has_not_converged() -> None:
    result = asyncio.run(run_srcu(SrcuOrder(scenario(1_000_000, 1)), lambda _: None))
    assert result.state is RunState.NOT_CONVERGED
    assert 0 < result.record.cost.add.count < 500_000


def children() -> set[str]:
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return set(file.read().split())


async def test_cancelling_ends_the_program() -> None:
    before = children()
    begun = asyncio.Event()
    task = asyncio.create_task(run_srcu(SrcuOrder(scenario(1_000_000, 600)), lambda _: begun.set()))
    await begun.wait()
    while children() == before:  # noqa: ASYNC110 - nothing tells that a child was started
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert children() == before
