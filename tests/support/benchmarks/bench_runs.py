"""A benchmark without QEMUs: a runner that does what a test tells it to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.benchmarks.records import make_record
from tests.support.examples.facts import QEMU_10, direct_host, vm
from vmtune.api.wiring.bench import BenchTools
from vmtune.bench.block.live_order import GuestOrder, LiveOrder
from vmtune.bench.block.order import BlockOrder
from vmtune.bench.boot.order import BootOrder
from vmtune.bench.migration.order import Phase, RunProgress, RunResult, Testbed
from vmtune.bench.migration.scenarios import BenchHosts
from vmtune.bench.model.runs.boot_record import BootEnd, BootMark, BootMarkName, BootRecord
from vmtune.bench.model.runs.run import RunRecord, RunState
from vmtune.bench.model.runs.srcu_record import SrcuRecord
from vmtune.bench.model.scenario.block import (
    BlockRecord,
    CpuMark,
    LoadPhase,
    PoolForecast,
    ProcessSample,
)
from vmtune.bench.order import AnyOrder
from vmtune.bench.srcu.order import SrcuOrder
from vmtune.model.host.srcu_cost import Distribution, SrcuCost
from vmtune.model.versions import Version


@dataclass
class FakeRunner:
    """Runs that end as they are told to, at once unless they are held.

    :param orders: what it was told to do, in the order in which it was.
    """

    state: RunState = RunState.COMPLETED
    failure: str = ""
    error: Exception | None = None
    held: bool = False
    record: Callable[[int], RunRecord] = lambda number: make_record(20, number)
    orders: list[AnyOrder] = field(default_factory=list)
    running: int = 0
    max_running: int = 0
    ended: int = 0
    cleaned_up: int = 0
    _go: asyncio.Event = field(default_factory=asyncio.Event)
    _begun: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(
        self, order: AnyOrder, on_progress: Callable[[RunProgress], None]
    ) -> RunResult:
        self.orders.append(order)
        self.running += 1
        self.max_running = max(self.max_running, self.running)
        self._begun.set()
        try:
            on_progress(RunProgress(Phase.WARM_UP, 0.25, 500))
            if self.held:
                await self._go.wait()
            await asyncio.sleep(0)
            if self.error is not None:
                raise self.error
            record = self._recorded(order)
            sample = record.samples[0] if record.samples else None
            on_progress(RunProgress(Phase.MIGRATING, 0.5, 3000, sample))
            self.ended += 1
            return RunResult(self.state, record, self.failure)
        finally:
            self.running -= 1
            self.cleaned_up += 1

    def _recorded(self, order: AnyOrder) -> RunRecord:
        number = len(self.orders)
        if isinstance(order, BlockOrder | LiveOrder | GuestOrder):
            return RunRecord(ended_ms=2500, block=block_record(number))
        if isinstance(order, BootOrder):
            return RunRecord(ended_ms=900, boot=boot_record(number))
        if isinstance(order, SrcuOrder):
            return RunRecord(ended_ms=700, srcu=srcu_record(number))
        return self.record(number)

    async def begun(self) -> None:
        """Wait until a run has begun."""
        await self._begun.wait()
        self._begun.clear()

    def release(self) -> None:
        """Let what is held go on, and all that follow."""
        self.held = False
        self._go.set()


@dataclass
class FakeLook:
    """What a QEMU can do, without starting it.

    :param looked: how often it was asked.
    """

    version: Version = QEMU_10
    error: Exception | None = None
    looked: int = 0
    testbed: Testbed | None = None

    async def __call__(self, testbed: Testbed, kvm: bool) -> BenchHosts:
        self.looked, self.testbed = self.looked + 1, testbed
        if self.error is not None:
            raise self.error
        host = direct_host(qemu=self.version)
        why = "" if kvm else "it is switched off"
        return BenchHosts(host, host, vm(self.version, may_lock_memory=True), kvm, why)


def block_record(number: int = 1, processes: int = 5) -> BlockRecord:
    """A load's record with all that belongs to it; each *number* is a little faster."""
    phases = [LoadPhase.BEFORE, *[LoadPhase.DURING] * (processes - 2), LoadPhase.AFTER]
    return BlockRecord(
        qemu="10.0.2",
        load_ms=500.0,
        load_ended_ms=1500.0,
        measured_ms=(500.0, 1500.0),
        ended_ms=2500.0,
        fio=fio_json(30_000 + number),
        fio_status=0,
        processes=tuple(
            ProcessSample(at * 400.0, phase, 300 + at, 4 * at, (1 << 30) + at, (40 << 20) + at)
            for at, phase in enumerate(phases)
        ),
        cpu=tuple(CpuMark(at * 500.0, at * 250.0) for at in range(6)),
        pool_forecast=PoolForecast("thread-local", 16, 64, None, 64, 2000, 65530),
    )


def fio_json(iops: int) -> dict[str, Any]:
    """What fio reports of a second of random reads, as far as it is read."""
    clat = {
        "min": 9000,
        "max": 90_000,
        "mean": 33_000.5,
        "stddev": 10.25,
        "N": iops,
        "percentile": {"50.000000": 30_000, "99.000000": 60_000, "99.900000": 80_000},
    }
    nothing = {"total_ios": 0, "iops": 0.0, "bw_bytes": 0, "runtime": 0}
    read = {
        **nothing,
        "total_ios": iops,
        "iops": float(iops),
        "bw_bytes": iops * 4096,
        "runtime": 1000,
        "clat_ns": clat,
    }
    job = {
        "jobname": "load",
        "error": 0,
        "job options": {"rw": "randread"},
        "read": read,
        "write": nothing,
        "usr_cpu": 10.0,
        "sys_cpu": 20.0,
        "job_runtime": 1000,
    }
    return {"fio version": "fio-3.33", "jobs": [job], "not read": {"kept": [1, 2.5, None, "x"]}}


def boot_record(number: int = 1) -> BootRecord:
    """A boot's record with all that belongs to it."""
    name = BootMarkName
    marks = ((name.GUEST, 100.5), (name.FIRMWARE, 120.0), (name.LOADING, 250.0),
             (name.KERNEL, 400.0 + number), (name.USER_SPACE, 800.0 + number))  # fmt: skip
    return BootRecord(
        end=BootEnd.USER_SPACE,
        ended_ms=800.0 + number,
        marks=tuple(BootMark(each, at, 10 + round(at / 100)) for each, at in marks),
        region_updates={"kvm_set_user_memory": 32},
        cpu_ms=700.0,
        qemu="10.0.2",
        kernel="the project's guest",
        firmware="SeaBIOS 1.16.2",
        host_kernel="6.1.0",
        srcutree={"srcu_max_nodelay": "400"},
        serial_tail="vmtune guest",
    )


def srcu_record(number: int = 1) -> SrcuRecord:
    """A record of updates of which each grace period took so many milliseconds."""
    add = Distribution.of([number * 1_000_000] * 1000)
    delete = Distribution.of([number * 2_000_000] * 1000)
    return SrcuRecord(
        SrcuCost(2, add, delete, add, delete),
        700.0,
        2000,
        "6.1.0",
        {"srcu_max_nodelay": "400"},
        250,
    )


def fake_tools(runner: FakeRunner | None = None, look: FakeLook | None = None) -> BenchTools:
    """The benchmark's tools, without QEMUs."""
    return BenchTools(
        runner or FakeRunner(), look or FakeLook(), lambda _folder, _scratch, _lab: None
    )


def a_program(folder: Path) -> Path:
    """A QEMU that only says its version."""
    path = folder / "qemu"
    path.write_text("#!/bin/sh\necho 'QEMU emulator version 10.0.2'\n")
    path.chmod(0o755)
    return path


def small(**changes: Any) -> dict[str, Any]:
    """A scenario of one's own, as JSON."""
    return {
        "name": "mine/small",
        "vm": {"memory_bytes": "64Mi"},
        "workload": {"region_bytes": "16Mi"},
        **changes,
    }
