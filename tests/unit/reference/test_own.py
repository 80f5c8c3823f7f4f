"""The conditions of an own run, in the words of the published tables."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from vmtune.bench.model.runs.run import Run, RunRecord, RunState
from vmtune.bench.model.scenario.any_kind import AnyScenario
from vmtune.bench.model.scenario.any_kind import to_json as any_to_json
from vmtune.bench.model.scenario.block import BlockScenario
from vmtune.bench.model.scenario.boot import BootScenario
from vmtune.bench.model.scenario.guest_driver import GuestDriver
from vmtune.bench.model.scenario.matrix_cells import (
    Accelerator,
    BlockCell,
    BootCell,
    BootGuest,
    Firmware,
    IoPattern,
    NodeKind,
)
from vmtune.bench.model.scenario.migration import Scenario, VmShape, to_json
from vmtune.bench.model.scenario.parts import GIB, MIB
from vmtune.model.migration.controller_record import ReaperEnd, ReaperReport
from vmtune.model.workload import Workload
from vmtune.reference.facts import FACTS, Facts
from vmtune.reference.own import facts_of_run

SCENARIO = Scenario(
    "drop/small",
    vm=VmShape(512 * MIB, 1),
    workload=Workload(region_bytes=384 * MIB, dirty_mb_per_s=200),
    values={"max_bandwidth_bytes_per_s": 125_000_000},
)
ENVIRONMENT = {
    "accelerator": "kvm",
    "qemu": {"version": "10.0.2", "digest": "0011"},
    "kernel": {"release": "6.1.0-40-amd64"},
    "cpu": {"model": "Some CPU"},
    "memory": {"total_bytes": 16 * GIB},
}


def run(record: RunRecord | None = None, **values: Any) -> Run:
    laid_over = SCENARIO.with_values(values)
    return Run(
        UUID(int=1),
        SCENARIO.name,
        to_json(laid_over),
        laid_over.values,
        RunState.COMPLETED,
        datetime(2026, 1, 1, tzinfo=UTC),
        environment=ENVIRONMENT,
        record=record,
    )


def test_an_untuned_run() -> None:
    assert facts_of_run(run(RunRecord())) == {
        "tool": "vmtune",
        "vcpus": 1,
        "memory_bytes": 512 * MIB,
        "region_bytes": 384 * MIB,
        "dirty_mb_per_s": 200,
        "guest_content": "zeros but for the bytes written",
        "zero_copy_send": False,
        "multifd_channels": 1,
        "multifd_compression": "none",
        "convergence": "none",
        "link_bytes_per_s": 125_000_000,
        "reaping": "none",
        "accelerator": "kvm",
        "qemu": "10.0.2",
        "kernel": "6.1.0-40-amd64",
        "host_cpu_model": "Some CPU",
        "host_memory_bytes": 16 * GIB,
    }


def test_no_limit_is_no_size() -> None:
    free = replace(
        SCENARIO, workload=Workload(region_bytes=384 * MIB, random_percent=30), values={}
    )
    found = facts_of_run(replace(run(RunRecord()), setup=to_json(free), values={}))
    assert not {"dirty_mb_per_s", "link_bytes_per_s"} & set(found)
    assert found["guest_content"] == "30 % incompressible, 0 % zeros, the rest a pattern"


def test_a_tuned_run() -> None:
    tuned = facts_of_run(run(RunRecord(), multifd=True, zero_copy_send=True, auto_converge=True))
    assert tuned["multifd_channels"] == 2  # QEMU's own
    assert (tuned["zero_copy_send"], tuned["convergence"]) == (True, "auto_converge")
    packed = facts_of_run(
        run(RunRecord(), multifd=True, multifd_channels=8, multifd_compression="zstd")
    )
    assert (packed["multifd_channels"], packed["multifd_compression"]) == (8, "zstd")


def test_how_the_rings_were_emptied_says_the_record() -> None:
    def reaping(record: RunRecord | None, **more: Any) -> Any:
        found = facts_of_run(run(record, dirty_ring_size_entries=4096, **more))
        assert found["dirty_ring_size_entries"] == 4096
        return found.get("reaping"), found.get("reaper_policy")

    assert reaping(None) == ("stock", None)
    assert reaping(None, reaper_policy="levels") == ("adaptive", "levels")
    assert reaping(RunRecord(), reaper_policy="levels") == ("stock", None)  # it came to nothing
    assert reaping(RunRecord()) == ("stock", None)
    report = ReaperReport("predict", 4096, ReaperEnd.MIGRATION_ENDED)
    assert reaping(RunRecord(reaper=report)) == ("adaptive", "predict")
    never = replace(report, end=ReaperEnd.NOT_STARTED)
    assert reaping(RunRecord(reaper=never)) == ("stock", None)


def test_rings_that_a_patched_qemu_empties_are_the_sources_optimised_ones() -> None:
    ring = run(RunRecord(), dirty_ring_size_entries=4096)

    def reaping(policy: str) -> Facts:
        return facts_of_run(replace(ring, values={**ring.values, "qemu_reaper_policy": policy}))

    found = reaping("levels")
    place = found["reaping"], found["reaper_policy"], found["reaper_place"]
    assert place == ("adaptive", "levels", "inside QEMU")
    assert reaping("stock")["reaping"] == "stock"
    outside = ReaperReport("predict", 4096, ReaperEnd.MIGRATION_ENDED)
    found = facts_of_run(replace(ring, record=RunRecord(reaper=outside)))
    assert found["reaper_place"] == "outside QEMU"


def test_a_host_load_that_was_made_is_known() -> None:
    busy = replace(run(RunRecord()), setup={**to_json(SCENARIO), "host_load": "busy"})
    assert facts_of_run(busy)["host_load"] == "busy"
    assert "host_load" not in facts_of_run(run(RunRecord()))


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.dictionaries(
        st.sampled_from(["vm", "workload", "vcpus", "qemu", "version", "random_percent"]), inner
    ),
    max_leaves=8,
)


@given(json, json)
def test_records_of_other_versions_are_read_as_far_as_they_can_be(
    setup: Any, environment: Any
) -> None:
    odd = replace(
        run(None),
        setup=setup if isinstance(setup, dict) else {"vm": setup},
        environment=environment if isinstance(environment, dict) else {"qemu": environment},
        values={},
    )
    for name, value in facts_of_run(odd).items():
        assert FACTS[name].accept(value) == value


def run_of(scenario: AnyScenario, **environment: Any) -> Run:
    return Run(
        UUID(int=2), scenario.name, any_to_json(scenario), scenario.values, RunState.COMPLETED,
        datetime(2026, 1, 1, tzinfo=UTC), environment={**ENVIRONMENT, **environment},
    )  # fmt: skip


def test_a_run_of_blocks() -> None:
    cell = BlockCell(NodeKind.RAW, IoPattern.RANDREAD, 4096, 64, 2)
    here = {"qemu": {"version": "7.2.22 (Debian 1:7.2+dfsg-7)"}}
    found = facts_of_run(run_of(BlockScenario(cell), **here))
    assert found["coroutine_pool"] == "per_thread"
    assert (found["rw"], found["iodepth"], found["numjobs"]) == ("randread", 64, 2)
    assert (found["node"], found["device"], found["tool"]) == ("raw", "NBD export", "fio")
    by_guest = facts_of_run(run_of(BlockScenario(cell, driver=GuestDriver()), **here))
    assert (by_guest["device"], by_guest["tool"]) == ("virtio-blk", "vmtune")
    assert "vcpus" not in found and "reaping" not in found
    assert "rw" not in facts_of_run(run_of(BlockScenario(cell), qemu={"version": "unknown"}))


def test_a_boot() -> None:
    def facts(accelerator: Accelerator, release: str) -> Facts:
        cell = BootCell(BootGuest.LINUX, Firmware.OVMF, accelerator, 2, GIB)
        return facts_of_run(run_of(BootScenario(cell), kernel={"release": release}))

    found = facts(Accelerator.KVM, "6.1.0-40-amd64")
    assert (found["srcu"], found["firmware"], found["vcpus"]) == ("fixed", "ovmf", 2)
    assert facts(Accelerator.KVM, "5.19.0-rc3")["srcu"] == "5.19-rc1"
    assert "srcu" not in facts(Accelerator.KVM, "5.10.0-9-amd64")  # may have been changed
    assert "srcu" not in facts(Accelerator.TCG, "6.1.0-40-amd64")
