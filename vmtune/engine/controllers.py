"""Runs the reaper and the convergence steps of one migration, alongside its observation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from uuid import UUID

from vmtune.engine.context import Clock, Monotonic, NoteStep
from vmtune.engine.reaper.loop import Reaper
from vmtune.engine.reaper.settings import ReaperSettings
from vmtune.engine.steered import Begin, Recorded, Steered
from vmtune.engine.steps.executor import StepExecutor
from vmtune.hypervisor.protocol import Controls
from vmtune.intent.steering import Steering
from vmtune.model.host.managers import Manager
from vmtune.model.migration.controller_record import ReaperReport, ReaperRound, StepRecord
from vmtune.model.migration.record import QemuStatus, Sample
from vmtune.model.migration.steps import Step


@dataclass(frozen=True, slots=True)
class Past:
    """What an earlier process did for the same migration and has left in its record.

    :param report: of the reaper; None where none was stored.
    :param samples: in order; what steps count goes on from them.
    """

    report: ReaperReport | None = None
    step_records: Sequence[StepRecord] = ()
    samples: Sequence[Sample] = ()


class Controllers:
    """The reaper and the convergence steps of one migration, run beside it::

        async with Controllers(driver, vm, reaper=ReaperSettings(), steps=steps) as controllers:
            controllers.migration_starts()
            handle = await driver.start_migration(order, destination)
            await watch(...)  # and for each sample: await controllers.on_sample(sample)
        controllers.report, controllers.step_records

    Entering it begins to reap, and returns when the rings have been emptied once, or after two
    seconds; leaving it ends the reaper, when a round that is under way has ended, so that no
    tracking stays on. Neither raises, and no error of the reaper or of a step is raised anywhere:
    they end up in the report and in the records. Without *reaper* and *steps* nothing happens.

    A guest that a step has paused is left paused: whoever starts the migration lets it go on
    when that has ended, on the host where it then is (:attr:`paused`).

    :param driver: of the source.
    :param reaper: None for no reaper.
    :param past: of a migration that was begun by another process: steps that were done are not
        done again, one that was under way is looked up, and the report goes on.
    :param note_step: where steps have to be stored before they are done.
    :param unpaused: a full ring can end the guest: reap without a pause, and have the guest
        throttled when its rings begin to fill.
    :param steering: where to steer it from, or how to find that out; None where it is not steered.
    :param shadow: what steering would do is recorded, and not done.
    :param recorded: all step records, those of what users change meanwhile included.
    :param held: steps wait until :meth:`let_steps_act`.
    """

    def __init__(
        self,
        driver: Controls,
        vm: UUID,
        *,
        reaper: ReaperSettings | None = None,
        steps: Sequence[Step] = (),
        past: Past | None = None,
        note_step: NoteStep | None = None,
        time: Clock | None = None,
        unpaused: bool = False,
        steering: Steering | Begin | None = None,
        shadow: bool = False,
        held: bool = False,
        recorded: Recorded | None = None,
    ) -> None:
        past = past or Past()
        self._time = time or Monotonic()
        self._reaper: Reaper | None = None
        if reaper is not None:
            self._reaper = Reaper(driver, vm, reaper, self._time, past.report, unpaused=unpaused)
        self._executor = StepExecutor(driver, vm, steps, past.step_records, note_step, past.samples)
        self._executor.held = held
        self._steered: Steered | None = None
        if steering is not None:
            self._steered = Steered(steering, self._executor, recorded, shadow=shadow)

    async def __aenter__(self) -> Self:
        """Begin to reap."""
        if self._reaper is not None:
            try:
                await self._reaper.start()
            except asyncio.CancelledError:
                self._reaper.abandon()
                raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop the reaper. If cancelled, QEMU still ends the round by itself, and the report has no
        end, so that another process can continue it."""
        if self._reaper is None:
            return
        if isinstance(error, asyncio.CancelledError):
            self._reaper.abandon()
            return
        try:
            await self._reaper.stop()
        except asyncio.CancelledError:
            self._reaper.abandon()
            raise

    def migration_starts(self, at: float | None = None) -> None:
        """Say that the migration is started now, or was at *at* (:func:`time.monotonic`): what
        the times of rounds and steps count from, and the samples' ``at_ms`` too."""
        if self._reaper is not None:
            self._reaper.migration_starts(self._time.now() if at is None else at)

    def memory_begins(self, at_ms: int) -> None:
        """Say when the memory began to be sent, where disks were copied before; by the samples'
        time. What steps wait for counts from then."""
        self._executor.memory_begins(at_ms)

    def let_steps_act(self, manager: Manager | None) -> None:
        """Let steps act that were held; none on what is the *manager*'s of the VM."""
        self._executor.held, self._executor.manager = False, manager

    async def on_sample(self, sample: Sample) -> None:
        """Execute the steps that *sample* makes due. Samples come in the order of time."""
        if self._reaper is not None:
            if sample.status is QemuStatus.ACTIVE:
                self._reaper.migration_is_active(sample.iteration)
            elif sample.status.in_postcopy:
                self._reaper.finish()  # the guest writes elsewhere now
        if self._reaper is not None and sample.status is QemuStatus.ACTIVE:
            share = self._reaper.fills_up
            if share:
                reason = f"a ring was {share:.0%} full after one round, and a full one can end QEMU"
                await self._executor.throttle(sample, reason)
        await self._executor.on_sample(sample)
        if self._steered is not None:
            await self._steered.on_sample(sample)

    async def waiting(self, at_ms: int) -> None:
        """Say that QEMU sends no memory yet, *at_ms* after the migration's start: its disks are
        copied, or it is set up."""
        if self._steered is not None:
            await self._steered.waiting(at_ms)

    @property
    def unprotected(self) -> bool:
        """Whether a full ring can end the guest, and none was emptied yet."""
        return self._reaper is not None and self._reaper.unprotected

    @property
    def report(self) -> ReaperReport | None:
        """The reaper's report so far, with the rounds not taken yet; None without a reaper.
        Final once the context is left."""
        return self._reaper.report if self._reaper is not None else None

    def take_rounds(self) -> list[ReaperRound]:
        """The rounds not taken yet: for storing them in parts, which keeps them out of
        :attr:`report`. Empty until the migration is started."""
        return self._reaper.take_rounds() if self._reaper is not None else []

    @property
    def latest_round(self) -> ReaperRound | None:
        """The last round, for showing progress."""
        return self._reaper.latest_round if self._reaper is not None else None

    @property
    def step_records(self) -> tuple[StepRecord, ...]:
        """The steps that came due so far, the past's included, in order."""
        return tuple(self._executor.records)

    @property
    def paused(self) -> bool:
        """Whether a step has paused the guest, or may have."""
        return self._executor.paused
