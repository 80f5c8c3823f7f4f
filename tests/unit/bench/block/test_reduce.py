"""The block benchmark's figures, from records made by hand."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.bench.block.reduce import reduce_block
from vmtune.bench.model.metrics.block import METRICS
from vmtune.bench.model.metrics.metric import Group
from vmtune.bench.model.scenario.block import BlockRecord, CpuMark, LoadPhase, ProcessSample
from vmtune.model.guest_io import GuestIo, GuestLatency, LatencyBin


def direction(requests: int, **latency: Any) -> dict[str, Any]:
    clat = {"min": 1, "max": 9, "mean": 2500.0, "stddev": 1.0, "N": requests, **latency}
    figures = {"total_ios": requests, "iops": requests / 2, "bw_bytes": requests * 2048}
    return {**figures, "runtime": 2000, "clat_ns": clat}


PERCENTILES = {"50.000000": 2000, "99.000000": 9000, "99.900000": 12500}
FIO: dict[str, Any] = {
    "fio version": "fio-3.33",
    "jobs": [
        {
            "jobname": "load", "error": 0, "usr_cpu": 1.0, "sys_cpu": 2.0, "job_runtime": 2000,
            "read": direction(600), "write": direction(400), "trim": direction(0),
            "mixed": direction(1000, percentile=PERCENTILES),
        }
    ],
}  # fmt: skip


def look(at_ms: float, phase: LoadPhase, maps: int) -> ProcessSample:
    return ProcessSample(at_ms, phase, maps, 2, maps << 20, maps << 10)


RECORD = BlockRecord(
    qemu="10.0.2",
    load_ms=700,
    measured_ms=(1000, 3000),
    load_ended_ms=3050,
    ended_ms=4000,
    fio=FIO,
    fio_status=0,
    processes=(
        look(0, LoadPhase.BEFORE, 310),
        look(600, LoadPhase.BEFORE, 300),
        look(800, LoadPhase.DURING, 320),
        look(2000, LoadPhase.DURING, 500),
        look(2900, LoadPhase.DURING, 400),
        look(3500, LoadPhase.AFTER, 390),
        look(3900, LoadPhase.AFTER, 350),
    ),
    # 10 ms of CPU time in the ramp, then a tenth of a processor.
    cpu=(CpuMark(700, 100), CpuMark(900, 100), CpuMark(1100, 120), CpuMark(3100, 320)),
)


def test_each_figure() -> None:
    assert reduce_block(RECORD) == {
        "iops": 500,
        "bandwidth_bytes_per_s": 1000 * 2048,
        "latency_mean_us": 2.5,
        "latency_p50_us": 2,
        "latency_p99_us": 9,
        "latency_p999_us": 12.5,
        # from 110 ms at 1000 to 310 ms at 3000, for 1000 requests
        "qemu_cpu_us_per_io": 200,
        "maps_before": 300, "maps_during": 500, "maps_after": 350,
        "vsz_before_bytes": 300 << 20, "vsz_during_bytes": 500 << 20, "vsz_after_bytes": 350 << 20,
        "rss_before_bytes": 300 << 10, "rss_during_bytes": 500 << 10, "rss_after_bytes": 350 << 10,
    }  # fmt: skip


def of_load(record: BlockRecord) -> set[str]:
    return {name for name in reduce_block(record) if METRICS[name].group is not Group.MEMORY}


def test_a_load_that_failed_has_no_figures_but_memory_has() -> None:
    failed = copy.deepcopy(FIO)
    failed["jobs"][0]["error"] = 5
    assert of_load(replace(RECORD, fio=failed)) == set()
    assert of_load(replace(RECORD, fio=None)) == set()
    assert of_load(replace(RECORD, fio={"jobs": "none"})) == set()
    assert of_load(replace(RECORD, qemu_ended="died of SIGABRT")) == set()
    assert "maps_during" in reduce_block(replace(RECORD, fio=None))
    assert of_load(replace(RECORD, fio_status=1)) == set()


def test_what_was_not_seen_is_missing() -> None:
    without = of_load(RECORD) - {"qemu_cpu_us_per_io"}
    for cpu in ((), RECORD.cpu[:1], RECORD.cpu[2:], RECORD.cpu[:3]):
        assert of_load(replace(RECORD, cpu=cpu)) == without
    assert of_load(replace(RECORD, measured_ms=None)) == without
    ended = replace(RECORD, processes=RECORD.processes[:3])
    assert "maps_after" not in reduce_block(ended)


def test_of_one_direction_its_latency_is_taken_and_of_two_none_is_made_up() -> None:
    one = copy.deepcopy(FIO)
    (job,) = one["jobs"]
    del job["mixed"]
    assert "latency_mean_us" not in reduce_block(replace(RECORD, fio=one))
    job["write"] = direction(0)
    assert reduce_block(replace(RECORD, fio=one))["latency_mean_us"] == 2.5


@given(
    st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e3)), max_size=20),
    st.none() | st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)),
)
def test_no_series_of_looks_is_a_fault(
    marks: list[tuple[float, float]], measured: tuple[float, float] | None
) -> None:
    used, cpu = 0.0, []
    for at_ms, more in sorted(marks):
        used += more
        cpu.append(CpuMark(at_ms, used))
    span = None if measured is None else (min(measured), max(measured))
    found = reduce_block(replace(RECORD, cpu=tuple(cpu), measured_ms=span))
    assert 0 <= found.get("qemu_cpu_us_per_io", 0) <= used + 1e-6
    assert set(found) <= set(METRICS)


BINS = (LatencyBin(1000, 1032, 3), LatencyBin(5000, 5160, 1))
BY_GUEST = replace(
    RECORD,
    fio=None,
    fio_status=None,
    guest_io=GuestIo(
        block_bytes=4096, disks=1, queues=2, places=256, depth=64, disk_bytes=1 << 30,
        counted_us=2_000_000,
        read=GuestLatency(4, 2010, 1001, 5100, BINS),
        write=GuestLatency(4, 3000, 1000, 5000, BINS),
    ),
)  # fmt: skip


def test_what_a_guest_measured() -> None:
    found = reduce_block(BY_GUEST)
    assert (found["iops"], found["bandwidth_bytes_per_s"]) == (4, 4 * 4096)
    assert found["latency_mean_us"] == 2.505
    assert found["latency_p50_us"] == 1.016
    assert found["latency_p99_us"] == found["latency_p999_us"] == 5.08
    # 200 ms while they counted, as of fio's.
    assert found["qemu_cpu_us_per_io"] == 200_000 / 8
    assert found["maps_during"] == 500


@pytest.mark.parametrize("change", [{"errors": 1}, {"wrong": 1}, {"read": GuestLatency(0, 0, 0, 0),
    "write": GuestLatency(0, 0, 0, 0)}])  # fmt: skip
def test_a_guest_that_met_errors_measured_nothing(change: dict[str, Any]) -> None:
    assert BY_GUEST.guest_io is not None
    record = replace(BY_GUEST, guest_io=replace(BY_GUEST.guest_io, **change))
    assert "iops" not in reduce_block(record)
    assert "iops" not in reduce_block(replace(BY_GUEST, qemu_ended="died of SIGABRT"))
