"""A run that is drawn: its samples, passes, CPU times and reaper, each as it is asked for."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from vmtune.bench.model.runs.run import (
    CpuSample,
    GuestPass,
    HostSide,
    Run,
    RunRecord,
    RunState,
    Silence,
)
from vmtune.bench.model.scenario.migration import Scenario, to_json
from vmtune.bench.model.scenario.parts import MIB
from vmtune.bench.reduce import reduce
from vmtune.model.migration.controller_record import (
    ReaperEnd,
    ReaperReport,
    ReaperRound,
    StepEffect,
    StepRecord,
)
from vmtune.model.migration.record import QemuStatus, Sample, Totals
from vmtune.model.plan.outcome import Outcome, Status

ID = UUID("7f0c2c9e-1a51-4c05-8b7e-6f3c0d5f2a11")
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
BEGUN, OVER, ENDED = 3000, 9000, 12_000


def sample(at_ms: int, iteration: int, **changes: Any) -> Sample:
    made = Sample(
        at_ms=at_ms, status=QemuStatus.ACTIVE, iteration=iteration, boundary=False,
        transferred_bytes=at_ms * 1000, remaining_bytes=512 * MIB - at_ms * 1000,
        total_bytes=512 * MIB, zero_pages=0, normal_pages=at_ms, page_size_bytes=4096,
        dirty_pages_per_s=25_600, throughput_bytes_per_s=125 * MIB, multifd_bytes=0,
        postcopy_bytes=0, expected_downtime_ms=None, throttle_percent=0, missed_zero_copy=0,
        dirty_limit_throttle_us=0, dirty_limit_ring_full_us=0,
    )  # fmt: skip
    return replace(made, **changes)


def passes(workers: int = 1, every_ms: int = 500, slow: int = 4) -> tuple[GuestPass, ...]:
    """Each worker's passes over 64 MiB; the fourth second's take *slow* times as long."""
    made = []
    for worker in range(workers):
        at, number = 10.0 * worker, 0
        while at < ENDED:
            lasted = every_ms * (slow if 4000 <= at < 5000 else 1)
            at, number = at + lasted, number + 1
            made.append(GuestPass(worker, number, at, round(at * 1000), lasted * 1000, 64 * MIB))
    return tuple(made)


def cpu() -> tuple[CpuSample, ...]:
    """vCPUs at half a core, migration at a quarter, in readings half a second apart."""
    return tuple(
        CpuSample(float(at), side, at * 0.5, at * 0.25, 0.0, at * 0.0)
        for at in range(0, ENDED + 1, 500)
        for side in HostSide
    )


def reaper(vcpus: int = 1) -> ReaperReport:
    rounds = tuple(
        ReaperRound(at, 200 + at // 100, 210.0, 9.0, tuple(0.1 * (v + 1) for v in range(vcpus)))
        for at in range(BEGUN - 200, OVER, 300)
    )
    return ReaperReport("predict", 65536, ReaperEnd.MIGRATION_ENDED, rounds)


def a_run(state: RunState = RunState.COMPLETED, **changes: Any) -> Run:
    scenario = Scenario("mine/busy", title="A busy guest", why="To see it.",
                        values={"auto_converge": True})  # fmt: skip
    record = RunRecord(
        migration_ms=BEGUN,
        migration_ended_ms=OVER,
        ended_ms=ENDED,
        samples=tuple(sample(at, 1 + (at - BEGUN) // 1500) for at in range(3050, OVER, 50)),
        passes=passes(),
        beat_interval_ms=5.0,
        silences=(Silence(8950, 90.0), Silence(5000, 41.0), Silence(6000, 12.0)),
        cpu=cpu(),
        totals=Totals(5990, 87, 12, 640 * MIB, 5) if state is RunState.COMPLETED else None,
        outcomes=(
            Outcome("auto_converge", Status.EFFECTIVE, True, True),
            Outcome("multifd_channels", Status.OVERWRITTEN, 8, 2, "overwritten by libvirt"),
        ),
        reaper=reaper(),
        steps=(
            StepRecord(0, 5500, 2, "set downtime_limit_ms to 900 ms", "2 iterations completed",
                       StepEffect.DONE),
        ),
        ring_full_exits=17,
    )  # fmt: skip
    record = replace(record, **changes)
    return Run(
        id=ID, scenario=scenario.name, setup=to_json(scenario), values=scenario.values,
        state=state, created_at=NOW, started_at=NOW, ended_at=NOW, host="a.example",
        qemu="qemu-10", environment={"accelerator": "kvm", "cpu": {"model": "A fast one"}},
        fingerprint="0123456789abcdef", conditions={"load_1min": 0.25},
        metrics=reduce(record, state, scenario.values), record=record,
    )  # fmt: skip
