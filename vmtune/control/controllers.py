"""Runs the reaper and the convergence steps of one migration, beside whoever watches it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self
from uuid import UUID

from vmtune.control.reaping import ReaperSettings
from vmtune.domain.changes import Change
from vmtune.domain.controlled import ReaperReport, ReaperRound, StepRecord
from vmtune.domain.dirty_rates import DirtyRates
from vmtune.domain.facts import Reading
from vmtune.domain.migration import Sample, Snapshot
from vmtune.domain.steps import Step


class Controls(Protocol):
    """What the controllers need of a driver: every :class:`vmtune.drivers.base.Driver` has it,
    and says there which errors it raises."""

    async def read(self, vm: UUID, tunables: Collection[str]) -> Mapping[str, Reading]:
        """What the named tunables are set to right now."""

    async def write(self, vm: UUID, changes: Sequence[Change]) -> None:
        """Set values."""

    async def migration(self, vm: UUID, at_ms: int = 0) -> Snapshot:
        """The VM's outgoing migration, as QEMU says right now."""

    async def measure_dirty_rates(self, vm: UUID, over_ms: int) -> None:
        """Begin to measure, which empties all dirty rings at its end."""

    async def dirty_rates(self, vm: UUID) -> DirtyRates:
        """How far the measurement is."""

    async def is_paused(self, vm: UUID) -> bool:
        """Whether the guest stands still because somebody has paused it."""

    async def pause(self, vm: UUID) -> None:
        """Stop the guest."""

    async def start_postcopy(self, vm: UUID) -> None:
        """Switch the migration to post-copy."""

    async def abort_migration(self, vm: UUID) -> None:
        """Ask for the migration's end."""


class Time(Protocol):
    """The clock that the controllers go by."""

    def now(self) -> float:
        """Seconds, monotonic."""

    async def sleep(self, seconds: float) -> None:
        """Let so much time pass."""


NoteStep = Callable[[StepRecord, Sequence[Change]], Awaitable[None]]
"""Is told each step twice: before it is done, with the effect ``unknown`` and with the changes
that put back what was set before, and after it, with its effect and no changes. A step whose
first telling fails is not done."""


@dataclass(frozen=True, slots=True)
class Past:
    """What an earlier process did for the same migration and has left in its record.

    :param report: of the reaper; None where none was stored.
    """

    report: ReaperReport | None = None
    step_records: Sequence[StepRecord] = ()


class Controllers:
    """The reaper and the convergence steps of one migration, run beside it::

        async with Controllers(driver, vm, reaper=ReaperSettings(), steps=steps) as controllers:
            controllers.migration_starts()
            handle = await driver.start_migration(order, destination)
            await watch(...)  # and for each sample: await controllers.on_sample(sample)
        controllers.report, controllers.step_records

    Entering it begins to reap, and returns when the rings have been emptied once, or after half
    a second; leaving it ends the reaper, when a round that is under way has ended, so that no
    tracking stays on. Neither raises, and no error of the reaper or of a step is raised anywhere:
    they end up in the report and in the records. Without *reaper* and *steps* nothing happens.

    A guest that a step has paused is left paused: whoever starts the migration lets it go on
    when that has ended, on the host where it then is (:attr:`paused`).

    :param driver: of the source.
    :param reaper: None for no reaper.
    :param past: of a migration that was begun by another process: steps that were done are not
        done again, one that was under way is looked up, and the report goes on.
    :param note_step: where steps have to be stored before they are done.
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
        time: Time | None = None,
    ) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        """Begin to reap."""
        raise NotImplementedError

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the reaper. Where that is cancelled, QEMU still ends the round by itself."""
        raise NotImplementedError

    def migration_starts(self, at: float | None = None) -> None:
        """Say that the migration is started now, or was at *at* (:func:`time.monotonic`): what
        the times of rounds and steps count from, and the samples' ``at_ms`` too."""
        raise NotImplementedError

    async def on_sample(self, sample: Sample) -> None:
        """Carry out the steps that *sample* makes due. Samples come in the order of time."""
        raise NotImplementedError

    @property
    def report(self) -> ReaperReport | None:
        """What the reaper has done so far, with the rounds that nobody has taken; None where
        none was wanted. Final once the context is left."""
        raise NotImplementedError

    def take_rounds(self) -> list[ReaperRound]:
        """The rounds that nobody has taken yet: for storing them piece by piece, which keeps
        them out of :attr:`report`. Empty until the migration is started."""
        raise NotImplementedError

    @property
    def latest_round(self) -> ReaperRound | None:
        """The last round, for showing progress."""
        raise NotImplementedError

    @property
    def step_records(self) -> tuple[StepRecord, ...]:
        """The steps that came due so far, the past's included, in order."""
        raise NotImplementedError

    @property
    def paused(self) -> bool:
        """Whether a step has paused the guest, or may have."""
        raise NotImplementedError
