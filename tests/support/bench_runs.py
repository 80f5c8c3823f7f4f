"""A benchmark without QEMUs: a runner that does what a test tells it to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.facts import QEMU_10, direct_host, vm
from tests.support.records import make_record
from vmtune.api.bench import BenchTools
from vmtune.bench.any_order import AnyOrder
from vmtune.bench.order import Phase, Place, RunProgress, RunResult
from vmtune.bench.scenarios import Ground
from vmtune.domain.runs import RunRecord, RunState
from vmtune.domain.versions import Version


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
    most_running: int = 0
    ended: int = 0
    cleaned_up: int = 0
    _go: asyncio.Event = field(default_factory=asyncio.Event)
    _begun: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(
        self, order: AnyOrder, on_progress: Callable[[RunProgress], None]
    ) -> RunResult:
        self.orders.append(order)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        self._begun.set()
        try:
            on_progress(RunProgress(Phase.WARM_UP, 0.25, 500))
            if self.held:
                await self._go.wait()
            await asyncio.sleep(0)
            if self.error is not None:
                raise self.error
            record = self.record(len(self.orders))
            on_progress(RunProgress(Phase.MIGRATING, 0.5, 3000, record.samples[0]))
            self.ended += 1
            return RunResult(self.state, record, self.failure)
        finally:
            self.running -= 1
            self.cleaned_up += 1

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
    place: Place | None = None

    async def __call__(self, place: Place, kvm: bool) -> Ground:
        self.looked, self.place = self.looked + 1, place
        if self.error is not None:
            raise self.error
        host = direct_host(qemu=self.version)
        why = "" if kvm else "it is switched off"
        return Ground(host, host, vm(self.version, may_lock_memory=True), kvm, why)


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
