"""The controllers of a migration, and where what they do is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import structlog

from vmtune.engine.controllers import Controllers, Past
from vmtune.engine.reaper.settings import ReaperSettings, wanted_reaper
from vmtune.engine.steps.executor import carry_out, prior_values
from vmtune.errors import CommandRefused, InvalidInput, NotFound, TooLate
from vmtune.hypervisor.protocol import Driver
from vmtune.model.migration.controller_record import ReaperRound, StepEffect, StepRecord
from vmtune.model.migration.record import Migration
from vmtune.model.migration.step_text import told
from vmtune.model.migration.steps import SetValues
from vmtune.model.plan.changes import Change
from vmtune.model.plan.outcome import Status
from vmtune.model.tunables.tunable import Value
from vmtune.services.metrics import telemetry
from vmtune.services.migrations.records import MigrationRecords
from vmtune.storage import Store

log = structlog.get_logger(__name__)

BY_USER = "asked for by a user"


class Controlling:
    """Begins controllers for migrations, and stores what they do."""

    def __init__(self, store: Store, records: MigrationRecords) -> None:
        self._store = store
        self._records = records

    def begin(self, record: Migration, source: Driver) -> Controllers:
        """The controllers that the record asks for; what it tells of an earlier process's is
        gone on with. What stands against a tunable stands against its controller."""
        rejected = {o.tunable for o in record.outcomes if o.status is Status.REJECTED}
        values = {name: v for name, v in record.wanted.items() if name not in rejected}

        async def note(step: StepRecord, undo: Sequence[Change]) -> None:
            await self._note(record.id, step, undo)

        return Controllers(
            source,
            record.vm,
            reaper=_reaper(values),
            steps=record.steps,
            past=Past(record.reaper, record.step_records),
            note_step=note,
        )

    async def flush(self, migration: UUID, controllers: Controllers) -> None:
        """Store the rounds since the last time, and the report so far."""
        report = controllers.report
        if report is not None:
            done = controllers.take_rounds()
            await asyncio.to_thread(
                self._store.migrations.add_rounds, migration, done, replace(report, rounds=())
            )

    async def change(self, record: Migration, values: SetValues, source: Driver) -> Migration:
        """Set values while the migration runs, because a user asks for it.

        :raise TooLate: it has ended.
        :raise CommandRefused: QEMU's words. The record tells of it too.
        """
        try:
            snapshot = await source.migration(record.vm)
        except NotFound as error:
            raise TooLate("the VM has left the source", field="migration") from error
        if not snapshot.status.running:
            raise TooLate(f"QEMU says that it is {snapshot.status.value}", field="migration")
        since = datetime.now(UTC) - (record.started_at or record.created_at)
        step = StepRecord(
            number=None,
            at_ms=round(since.total_seconds() * 1000),
            iteration=snapshot.sample.iteration if snapshot.sample else 0,
            action=told(values),
            reason=BY_USER,
            effect=StepEffect.PENDING,
        )
        await self._note(record.id, step, await prior_values(source, record.vm, values))
        effect, detail = await carry_out(source, record.vm, values)
        changed = await self._note(record.id, replace(step, effect=effect, detail=detail), ())
        if effect is StepEffect.REFUSED:
            raise CommandRefused(detail, field="values", remedy="set something else")
        return changed

    async def close(self, record: Migration) -> Migration:
        """The record of a migration that is no longer carried: a step of which nobody saw what
        became is unknown from now on."""
        for step in record.step_records:
            if step.effect is StepEffect.PENDING:
                why = "vmtune ended before it could see what became of it"
                unknown = replace(step, effect=StepEffect.UNKNOWN, detail=why)
                record = await self._note(record.id, unknown, ())
        return record

    async def _note(self, id: UUID, step: StepRecord, undo: Sequence[Change]) -> Migration:
        record = await asyncio.to_thread(self._store.migrations.note_step, id, step, undo)
        if step.effect is not StepEffect.PENDING:
            log.info("a step", migration_id=str(id), action=step.action, effect=step.effect.value)
            telemetry.step_came_due(step.effect)
            await self._records.tell(record, step)
        return record


def _reaper(values: Mapping[str, Value]) -> ReaperSettings | None:
    """The reaper that *values* ask for. A migration does not fail for settings that an older
    vmtune has accepted and this one does not."""
    try:
        return wanted_reaper(values)
    except (InvalidInput, ValueError) as error:
        log.warning("no reaper", reason=str(error))
        return None


def reaper_progress(latest: ReaperRound | None) -> dict[str, object]:
    """What a progress bar shows of the reaper; nothing where none runs."""
    if latest is None:
        return {}
    shown = {"interval_ms": latest.interval_ms, "fullest": round(latest.fullest, 3)}
    return {"reaper": shown}
