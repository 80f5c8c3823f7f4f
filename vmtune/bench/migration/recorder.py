"""What a run records, all on one clock."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from dataclasses import replace

from vmtune.bench.machine.cpu_times import QemuCpu
from vmtune.bench.migration.send_counters import SendLog
from vmtune.bench.migration.stage import Stage
from vmtune.bench.model.runs.run import CpuSample, HostSide, RunRecord
from vmtune.engine.controllers import Controllers
from vmtune.errors import VmtuneError
from vmtune.model.migration.controller_record import ReaperReport, StepRecord
from vmtune.model.migration.postcopy_figures import PostcopyFigures
from vmtune.model.migration.record import Sample, Totals
from vmtune.model.plan.outcome import Outcome

_CPU_EVERY_S = 0.2
_THREADS_END_WITHIN_S = 1.0


class Recorder:
    """Collects a run's record.

    :param origin: where its timeline begins (:func:`time.monotonic`): the guest works.
    """

    def __init__(self, stage: Stage, origin: float) -> None:
        self._stage = stage
        self.origin = origin
        self.migration: float | None = None
        self.ended: float | None = None
        self.samples: list[Sample] = []
        self.totals: Totals | None = None
        self.outcomes: tuple[Outcome, ...] = ()
        self.ring_full_exits: int | None = None
        self.postcopy: PostcopyFigures | None = None
        self._sends: SendLog | None = None
        self._cpu: list[CpuSample] = []
        self._readers: dict[HostSide, QemuCpu] = {}
        self._sampling: asyncio.Task[None] | None = None

    def at_ms(self, moment: float | None = None) -> float:
        """A moment, or now, on the timeline."""
        return ((time.monotonic() if moment is None else moment) - self.origin) * 1000

    def start(self) -> None:
        """Sample the CPU times from now on."""
        self._sampling = asyncio.create_task(self._sample(), name="cpu times")

    async def stop(self) -> None:
        """End that. Nothing stays open."""
        if self._sampling is not None:
            self._sampling.cancel()
            await asyncio.wait([self._sampling])
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()

    def sample_cpu(self) -> None:
        """Note both QEMUs' CPU times now."""
        for side in HostSide:
            pid = self._stage.pid(side)
            reader = self._readers.get(side)
            if pid is None:
                continue
            if reader is None or reader.pid != pid:
                if reader is not None:
                    reader.close()
                reader = self._readers[side] = QemuCpu(pid, side)
            sample = reader.sample(self.at_ms(), self._migrating())
            if sample is not None:
                self._cpu.append(sample)

    def _migrating(self) -> bool:
        """Whether threads that come and go are the migration's: they outlive it a little."""
        if self.migration is None:
            return False
        return self.ended is None or time.monotonic() - self.ended < _THREADS_END_WITHIN_S

    def migration_starts(self) -> float:
        """Note that the migration is begun now; when that is."""
        self._stage.listener.watch(on=True)
        self.sample_cpu()
        self.migration = time.monotonic()
        return self.migration

    def migration_ends(self) -> None:
        """Note that it is over now, unless that was noted before."""
        if self.ended is None and self.migration is not None:
            self.ended = time.monotonic()
            self.sample_cpu()
            self._stage.listener.watch(on=False)

    def add(self, sample: Sample) -> None:
        """A sample of the migration, whose time counts from its start."""
        self.samples.append(sample)
        self.sample_cpu()

    def record(self, controllers: Controllers | None) -> RunRecord:
        """All of it, up to now."""
        listener = self._stage.listener
        offset = None if self.migration is None else round(self.at_ms(self.migration))
        ended = None if self.ended is None else round(self.at_ms(self.ended))
        shift = offset or 0
        return RunRecord(
            migration_ms=offset,
            migration_ended_ms=ended,
            ended_ms=math.ceil(self.at_ms()),
            samples=tuple(replace(s, at_ms=s.at_ms + shift) for s in self.samples),
            passes=listener.passes(self.origin),
            beat_interval_ms=listener.beat.interval_ms if listener.beat else None,
            silences=listener.silences(self.origin),
            cpu=tuple(self._cpu),
            totals=self.totals,
            outcomes=self.outcomes,
            reaper=self._reaper(controllers, shift),
            steps=_steps(controllers, shift),
            ring_full_exits=self.ring_full_exits,
            postcopy=self.postcopy,
            sends=self._sends.record() if self._sends else None,
        )

    def _reaper(self, controllers: Controllers | None, shift: int) -> ReaperReport | None:
        report = controllers.report if controllers else None
        if report is None:
            return None
        rounds = tuple(replace(r, at_ms=r.at_ms + shift) for r in report.rounds)
        return replace(report, rounds=rounds, ring_full_exits=self.ring_full_exits)

    async def sends_begin(self) -> None:
        """Count sends from now on, where the source's QEMU does. Call it before the migration:
        looking whether it does takes time."""
        with contextlib.suppress(VmtuneError):  # then it is as with any other QEMU
            if await self._stage.sends.prepare():
                before = await self._stage.sends.read()
                self._sends = SendLog(before) if before else None

    async def look_at_sends(self, iteration: int | None = None) -> None:
        """Note the counters now.

        :param iteration: which one it is; None for the last.
        """
        if self._sends is None:
            return
        with contextlib.suppress(VmtuneError):  # its QEMU has ended: the look before was the last
            counts = await self._stage.sends.read()
            if counts is not None:
                at = self._sends.newest if iteration is None else iteration
                self._sends.add(at, self.at_ms(), counts)

    async def _sample(self) -> None:
        while True:
            self.sample_cpu()
            await asyncio.sleep(_CPU_EVERY_S)


def _steps(controllers: Controllers | None, shift: int) -> tuple[StepRecord, ...]:
    records = controllers.step_records if controllers else ()
    return tuple(replace(record, at_ms=record.at_ms + shift) for record in records)
