"""Convergence steps for the copies of disks: which are due, and taking them.

They are taken in their order, each once, until all copies have caught up. *Stalled for s seconds*:
a copy has had no less left for so long, which is not known before a window of
:data:`~vmtune.model.migration.copy_progress.WINDOW_MS` is over. Copies that begin later get the
same.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import structlog

from vmtune.engine.notes import Notes
from vmtune.errors import CommandRefused, TooLate, VmtuneError
from vmtune.hypervisor.protocol import Driver
from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.copy_progress import WINDOW_MS, behind
from vmtune.model.migration.disks import CopiedDisk
from vmtune.model.migration.record import Migration, Trigger
from vmtune.model.migration.step_text import describe, values_of
from vmtune.model.migration.steps import AfterSeconds, Later, Stalled, Step

log = structlog.get_logger(__name__)


class CopySteps:
    """Those of one migration. No error of the source is raised: it ends up in the record. Copies
    that others have begun are left to them."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._stands_since: dict[str, int] = {}
        self._helped: set[str] = set()

    async def look(
        self,
        record: Migration,
        source: Driver,
        disks: Sequence[CopiedDisk],
        going: Collection[str],
        at_ms: int,
    ) -> None:
        """Take a step that is due.

        :param disks: how far they are now.
        :param going: the targets of those that are copied right now.
        :param at_ms: since the migration's start.
        """
        steps = [(number, step) for number, step in enumerate(record.steps) if step.of_copies]
        caught_up = all(disk.ready_ms is not None for disk in disks)
        if not steps or not going or caught_up or record.trigger is Trigger.OBSERVED:
            return
        stand = {disk.target for disk in behind(disks)}
        self._stands_since = {t: self._stands_since.get(t, at_ms - WINDOW_MS) for t in stand}
        known = {each.number: each for each in record.step_records if each.number is not None}
        last_ms = 0
        for number, step in steps:
            taken = known.get(number)
            if taken is not None and taken.effect is not StepEffect.PENDING:
                last_ms = taken.at_ms
                if taken.effect is StepEffect.DONE:
                    await self._help_others(record, source, going)
                continue
            if taken is None:
                reason = self._reason(step, at_ms, last_ms)
                if not reason:
                    return
                taken = StepRecord(
                    number,
                    at_ms,
                    0,
                    describe(step.action),
                    reason,
                    StepEffect.PENDING,
                    values=values_of(step.action),
                    of_copies=True,
                )
            await self._take(taken, record, source, going)
            return

    def _reason(self, step: Step, at_ms: int, last_ms: int) -> str:
        """Why it is due; empty where it is not."""
        match step.trigger:
            case AfterSeconds(seconds) if at_ms >= seconds * 1000:
                return f"{at_ms / 1000:.1f} s passed, and {seconds} were to be waited for"
            case Later(seconds) if at_ms - last_ms >= seconds * 1000:
                since = "the step before" if last_ms else "the start"
                return f"{(at_ms - last_ms) / 1000:.1f} s passed since {since}"
            case Stalled(seconds):
                for target, since_ms in self._stands_since.items():
                    stood_ms = at_ms - max(since_ms, last_ms)
                    if stood_ms >= seconds * 1000:
                        return f"{target} has had no less left for {stood_ms / 1000:.1f} s"
        return ""

    async def _take(
        self, step: StepRecord, record: Migration, source: Driver, going: Collection[str]
    ) -> None:
        await self._notes.step(step, ())
        effect, detail = StepEffect.DONE, ""
        try:
            await source.help_copies(record.vm, going, synchronous=True)
        except (CommandRefused, TooLate) as refusal:
            effect, detail = StepEffect.REFUSED, refusal.message
        except VmtuneError as error:
            effect, detail = StepEffect.UNKNOWN, error.message
        else:
            self._helped.update(going)
        await self._notes.step(replace(step, effect=effect, detail=detail), ())

    async def _help_others(self, record: Migration, source: Driver, going: Collection[str]) -> None:
        others = [target for target in going if target not in self._helped]
        if not others:
            return
        try:
            await source.help_copies(record.vm, others, synchronous=True)
        except VmtuneError as error:
            log.info("copies not helped", vm=str(record.vm), reason=error.message)
            if not isinstance(error, CommandRefused):
                return  # it is tried again
        self._helped.update(others)
