"""The campaigns of the coroutine pool from inside a guest, cut short, by the real service."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.hosts.live import Service, wait_for
from tests.support.qemus.qemu import OLD_QEMU, installed, old
from vmtune.bench.report.report import from_document
from vmtune.reference.files import scenario_file

WHY_NOT = installed().why_not or old().why_not
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "never")


@pytest.fixture(scope="module")
def more_environment() -> Mapping[str, str]:
    return {"VMTUNE_BENCH_QEMUS": f"qemu-7.2={OLD_QEMU}"}


def cut(name: str, **block: Any) -> dict[str, Any]:
    """The file as it ships, but for what *block* has, in one block of short runs."""
    plan = tomllib.loads(scenario_file(name).text)
    plan["blocks"] = 1
    plan["block"] |= {"runtime_s": 1, "ramp_s": 0, "size_bytes": 64 << 20} | block
    return plan


def measured(service: Service, plan: dict[str, Any]) -> Any:
    """The report, of as many runs as were meant."""
    id = service.client.post("/campaigns", plan)["id"]
    wait_for(
        lambda: bool(service.client.get(f"/campaigns/{id}")["ended"]), "it to end", within_s=1800
    )
    record = service.client.get(f"/campaigns/{id}")
    assert (record["state"], record["done"]) == ("completed", record["total"])
    return from_document(service.client.get("/comparisons", {"campaign": id}))


@pytest.mark.long
def test_the_table_of_the_global_pool(service: Service) -> None:
    plan = cut("coroutine-pool-guest", nodes=["null-co"], iodepth=[1, 64])
    report = measured(service, plan)
    assert len(report.cells) == 2 * 2
    for cell in report.cells:
        assert cell.primary.criterion.metric == "iops"
        # One block gives no interval; the published pair stands beside it all the same.
        (beside,) = [note for note in report.notes if f", {cell.name}, " in note]
        assert "table iops, new against old, ratio" in beside


def test_the_tables_of_the_resized_pool(service: Service) -> None:
    plan = cut("coroutine-pool-memory-guest", numjobs=[16], iothreads=[4])
    report = measured(service, plan)
    assert len(report.cells) == 1
    for run in report.runs:
        assert run.values["iops"] > 0
        for memory in ("vsz", "rss"):
            assert run.values[f"{memory}_during_bytes"] >= run.values[f"{memory}_before_bytes"] > 0
    # The source's arms are a limited pool and one of each thread: neither QEMU has the first.
    (beside,) = report.notes[-1:]
    assert "no published figure matches" in beside
