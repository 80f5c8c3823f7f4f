"""A migration's record as the services change it, and the events about it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import structlog

from vmtune.engine.controllers import Controllers
from vmtune.errors import NotFound, SetupError
from vmtune.forecast.bar import time_share
from vmtune.forecast.outlook import Outlook
from vmtune.model.host.dirty_rates import DirtyPoint
from vmtune.model.host.inventory import EventTopic
from vmtune.model.migration.controller_record import ReaperRound, StepEffect, StepRecord
from vmtune.model.migration.copy_progress import CopyProgress, DiskSample, MigrationPhase
from vmtune.model.migration.disks import CopiedDisk
from vmtune.model.migration.record import (
    Migration,
    MigrationFields,
    MigrationState,
    QemuStatus,
    Sample,
    Snapshot,
)
from vmtune.model.plan.changes import Change
from vmtune.services.events import EventBus
from vmtune.services.forecasts.kept import by_outlook, dirtied_before, keep, settle
from vmtune.services.metrics import telemetry
from vmtune.services.retry import retry_until_available
from vmtune.storage import Store

log = structlog.get_logger(__name__)

_FLUSH_SAMPLES = 20
_FLUSH_DISKS = 5
"""Looks at copied disks, one a second."""


class MigrationRecords:
    """Writes a migration's record, and publishes it as an event once it is written.

    :param retries: wait while the database cannot be used, as jobs do.
    """

    def __init__(self, store: Store, bus: EventBus, retries: bool = False) -> None:
        self.store = store
        self.bus = bus
        self._retries = retries

    async def save(self, migration: UUID, fields: MigrationFields) -> Migration:
        """Change the record; a changed state or abort is published."""

        async def update() -> Migration:
            return await asyncio.to_thread(self.store.migrations.update, migration, **fields)

        record = await (retry_until_available(update) if self._retries else update())
        if "state" in fields or "abort" in fields:
            await self.publish(record)
        if "state" in fields and record.state.ended:
            _note_end(record)
            await self._note_arrived(record)
            await settle(self.store, record)
        return record

    async def _note_arrived(self, record: Migration) -> None:
        """A VM that has arrived is known there, as one that was listed is."""
        completed = record.state is MigrationState.COMPLETED
        if not (completed and record.vm_name and record.destination):
            return
        names = {record.vm: record.vm_name}
        seen_at = record.ended_at or datetime.now(UTC)
        remember = self.store.vms.remember_all
        with contextlib.suppress(NotFound, SetupError):  # the next listing of that host notes it
            await asyncio.to_thread(remember, record.destination, names, seen_at)

    async def step(self, id: UUID, step: StepRecord, undo: Sequence[Change]) -> Migration:
        """Record a step, once before it is done and once after."""
        record = await asyncio.to_thread(self.store.migrations.note_step, id, step, undo)
        if step.effect is not StepEffect.PENDING:
            log.info("a step", migration_id=str(id), action=step.action, effect=step.effect.value)
            telemetry.step_came_due(step.effect)
            await self.publish(record, step)
        return record

    async def publish(self, record: Migration, step: StepRecord | None = None) -> None:
        """Publish the migration's state, or a step's outcome."""
        data: dict[str, object] = {
            "state": record.state.value,
            "abort": record.abort.value,
            "vm": str(record.vm),
            "source": record.source,
            "destination": record.destination,
            "failure": record.failure,
        }
        if step is not None:
            data["step"] = {
                "action": step.action,
                "values": dict(step.values),
                "of_copies": step.of_copies,
                "reason": step.reason,
                "effect": step.effect.value,
                "detail": step.detail,
            }

        async def out() -> None:
            await self.bus.publish(EventTopic.MIGRATION, record.id, data)

        await (retry_until_available(out) if self._retries else out())


class DurableNotes:
    """The :class:`~vmtune.engine.notes.Notes` of a service: the record in the database, samples
    packed as they come, progress as events."""

    def __init__(self, records: MigrationRecords, migration: UUID) -> None:
        self.share = 0.0
        self._records = records
        self._id = migration
        self._samples: list[Sample] = []
        self._store_at = _FLUSH_SAMPLES
        self._disks: dict[str, object] = {}
        self._disk_looks: list[tuple[DiskSample, ...]] = []
        self._forecast = False
        self._first_ms: int | None = None

    async def record(self) -> Migration:
        """The record, from the database."""
        get = self._records.store.migrations.get
        return await retry_until_available(lambda: asyncio.to_thread(get, self._id))

    async def save(self, fields: MigrationFields) -> Migration:
        """Change the record."""
        return await self._records.save(self._id, fields)

    async def step(self, step: StepRecord, undo: Sequence[Change]) -> None:
        """Record a step."""
        await self._records.step(self._id, step, undo)

    async def sampled(
        self, snapshot: Snapshot, controllers: Controllers, outlook: Outlook | None
    ) -> None:
        """Buffer the sample, store several at a time, and publish the progress. Where post-copy is
        paused nothing more comes: what there is is stored then, with a sample of the pause or
        without."""
        sample = snapshot.sample
        if sample is not None:
            self._samples.append(sample)
        stands = snapshot.status is QemuStatus.POSTCOPY_PAUSED and bool(self._samples)
        if len(self._samples) >= self._store_at or stands:
            await self.flush(controllers)
        if sample is None:
            return
        if self._first_ms is None:
            self._first_ms = sample.at_ms
        if outlook is not None:
            self.share = time_share(sample.at_ms, outlook, self.share)
            await self._forecasts(sample, outlook)
        if not self._records.bus.is_heard:
            return
        shown = progress_data(sample, self.share, outlook, sample.at_ms - self._first_ms)
        shown |= _reaper_progress(controllers.latest_round) | self._disks
        self._records.bus.progress(EventTopic.MIGRATION, self._id, shown)

    async def _forecasts(self, sample: Sample, outlook: Outlook) -> None:
        """Keep the first that can be told, to be held against what happens."""
        if self._forecast or outlook.ends is None or sample.status.in_postcopy:
            return
        self._forecast = True
        now = datetime.now(UTC)
        await keep(self._records.store, self._id, lambda: by_outlook(sample, outlook, now))

    async def note_disks(self, disks: Sequence[CopiedDisk]) -> None:
        """Record how far the copies are."""
        note = self._records.store.migrations.note_disks
        await retry_until_available(lambda: asyncio.to_thread(note, self._id, disks))

    async def copying(self, progress: CopyProgress, memory_bytes: int | None) -> None:
        """Publish the progress of the disks; once all have caught up, along with the memory's."""
        await self._disks_sampled(progress)
        phase = MigrationPhase.MEMORY if progress.ready else MigrationPhase.DISKS
        self._disks = {"phase": phase.value, "disks": disks_data(progress)}
        if progress.ready:
            return
        self.share = max(self.share, progress.share(memory_bytes))
        shown = copying_data(progress, self.share) | self._disks
        self._records.bus.progress(EventTopic.MIGRATION, self._id, shown)

    async def _disks_sampled(self, progress: CopyProgress) -> None:
        self._disk_looks.append(progress.samples)
        if len(self._disk_looks) % _FLUSH_DISKS:
            return
        try:
            await self._store_disks()
        except SetupError as error:  # kept for the next time
            log.info("samples are not stored yet", migration_id=str(self._id), reason=str(error))

    async def _store_disks(self) -> None:
        """:raise SetupError: the database cannot be used; nothing is lost."""
        looks, self._disk_looks = self._disk_looks, []
        taken = [sample for look in looks for sample in look]
        try:
            if taken:
                add = self._records.store.migrations.add_disk_samples
                await asyncio.to_thread(add, self._id, taken)
        except SetupError:
            self._disk_looks = looks + self._disk_looks
            raise

    async def dirtied_before(self) -> Sequence[DirtyPoint]:
        """As kept with the forecast of before the migration."""
        return await dirtied_before(self._records.store, self._id)

    async def samples(self) -> Sequence[Sample]:
        """Those that are in the database; an earlier process may not have stored its last ones."""
        get = self._records.store.migrations.samples
        return await retry_until_available(lambda: asyncio.to_thread(get, self._id))

    async def flush(self, controllers: Controllers) -> None:
        """Store what is not stored yet; on failure it is kept for the next time."""
        try:
            await self.store_samples(controllers)
        except SetupError as error:
            # The migration continues, and is still watched.
            self._store_at = len(self._samples) + _FLUSH_SAMPLES
            log.info("samples are not stored yet", migration_id=str(self._id), reason=str(error))

    async def store_samples(self, controllers: Controllers | None) -> None:
        """Store the samples, those of disks, and the reaper's rounds and report so far.

        :raise SetupError: the database cannot be used; nothing is lost.
        """
        samples, self._samples = self._samples, []
        migrations = self._records.store.migrations
        try:
            if samples:
                await asyncio.to_thread(migrations.add_samples, self._id, samples)
        except SetupError:
            self._samples = samples + self._samples
            raise
        self._store_at = _FLUSH_SAMPLES
        await self._store_disks()
        report = controllers.report if controllers is not None else None
        if controllers is not None and report is not None:
            done = controllers.take_rounds()
            report = replace(report, rounds=())
            await asyncio.to_thread(migrations.add_rounds, self._id, done, report)


_THROUGHPUT_KNOWN_AFTER_MS = 1000  # QEMU measures it every 100 ms; then zero says: nothing is sent
_DIRTY_KNOWN_AFTER_MS = 1000  # QEMU measures it at the first end of an iteration after a second


def progress_data(
    sample: Sample, share: float, outlook: Outlook | None = None, since_ms: int | None = None
) -> dict[str, object]:
    """What a progress bar shows: the share done (0 to 1, never going back), the rates, and what is
    expected. A figure is None while QEMU has not measured it: of the downtime it gives its limit
    until then, of the rates zero.

    :param since_ms: how long QEMU has been seen to send memory; None for as long as the migration
        has run.
    """
    since_ms = sample.at_ms if since_ms is None else since_ms
    measured = sample.iteration > 1 and since_ms >= _DIRTY_KNOWN_AFTER_MS
    dirty_known = measured or sample.dirty_pages_per_s > 0
    sent_known = (
        sample.throughput_bytes_per_s > 0
        or sample.iteration > 1
        or sample.at_ms >= _THROUGHPUT_KNOWN_AFTER_MS
    )
    return {
        "share": round(share, 4),
        "at_ms": sample.at_ms,
        "status": sample.status.value,
        "iteration": sample.iteration,
        "transferred_bytes": sample.transferred_bytes,
        "remaining_bytes": sample.remaining_bytes,
        "total_bytes": sample.total_bytes,
        "dirty_bytes_per_s": (
            sample.dirty_pages_per_s * sample.page_size_bytes if dirty_known else None
        ),
        "throughput_bytes_per_s": sample.throughput_bytes_per_s if sent_known else None,
        "throttle_percent": sample.throttle_percent,
        "expected_downtime_ms": sample.expected_downtime_ms if dirty_known else None,
        "outlook": None if outlook is None else _outlook_data(outlook),
    }


def copying_data(progress: CopyProgress, share: float) -> dict[str, object]:
    """What a progress bar shows while disks are copied; nothing of the memory is sent yet."""
    return {
        "share": round(share, 4),
        "at_ms": progress.at_ms,
        "status": QemuStatus.SETUP.value,
        "iteration": 0,
        "transferred_bytes": 0,
        "remaining_bytes": 0,
        "total_bytes": 0,
        "dirty_bytes_per_s": None,
        "throughput_bytes_per_s": None,
        "throttle_percent": 0,
        "expected_downtime_ms": None,
        "outlook": None,
        "disks_left_ms": progress.left_ms,
    }


def disks_data(progress: CopyProgress) -> list[dict[str, object]]:
    """How far each disk is."""
    return [
        {
            "target": disk.target,
            "copied_bytes": disk.copied_bytes,
            "total_bytes": disk.total_bytes,
            "bytes_per_s": disk.bytes_per_s,
            "written_bytes_per_s": disk.written_bytes_per_s,
            "left_ms": disk.left_ms,
            "converges": disk.converges,
            "ready": disk.ready_ms is not None,
        }
        for disk in progress.disks
    ]


def _outlook_data(outlook: Outlook) -> dict[str, object]:
    """What is expected, in whole milliseconds and bytes a second."""

    def whole(value: float | None) -> int | None:
        return None if value is None else round(value)

    needs = outlook.needs
    return {
        "ends": outlook.ends,
        "left_ms": whole(outlook.left_ms),
        "least_left_ms": whole(outlook.least_left_ms),
        "most_left_ms": whole(outlook.most_left_ms),
        "silence_ms": whole(outlook.silence_ms),
        "pass_left_ms": whole(outlook.pass_left_ms),
        "needs": None
        if needs is None
        else {
            "downtime_limit_ms": whole(needs.downtime_limit_ms),
            "throughput_bytes_per_s": whole(needs.throughput_bytes_per_s),
            "throttle_percent": whole(needs.throttle_percent),
            "postcopy": needs.postcopy,
        },
    }


def _reaper_progress(latest: ReaperRound | None) -> dict[str, object]:
    """The reaper's part of the progress; empty if none runs."""
    if latest is None:
        return {}
    shown = {"interval_ms": latest.interval_ms, "fullest": round(latest.fullest, 3)}
    return {"reaper": shown}


def _note_end(record: Migration) -> None:
    telemetry.migration_ended(record)
    log.info(
        "migration ended",
        migration_id=str(record.id),
        vm=str(record.vm),
        host=record.source,
        destination=record.destination,
        state=record.state.value,
        failure=record.failure,
    )
