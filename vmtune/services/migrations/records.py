"""A migration's record as the services change it, and tell of it."""

from __future__ import annotations

import asyncio
from uuid import UUID

import structlog

from vmtune.model.host.inventory import EventTopic
from vmtune.model.migration.controller_record import StepRecord
from vmtune.model.migration.record import Migration
from vmtune.services.events import EventBus
from vmtune.services.metrics import telemetry
from vmtune.services.retry import patiently
from vmtune.storage import Store
from vmtune.storage.repositories.migrations import MigrationFields

log = structlog.get_logger(__name__)


Fields = MigrationFields


class MigrationRecords:
    """Writes a migration's record, and tells of it once it is written.

    :param patient: wait while the database cannot be used, as jobs do.
    """

    def __init__(self, store: Store, bus: EventBus, patient: bool = False) -> None:
        self._store = store
        self._bus = bus
        self._patient = patient

    async def save(self, migration: UUID, fields: Fields) -> Migration:
        """Change the record; a changed state or abort is told as an event."""

        async def update() -> Migration:
            return await asyncio.to_thread(self._store.migrations.update, migration, **fields)

        record = await (patiently(update) if self._patient else update())
        if "state" in fields or "abort" in fields:
            await self.tell(record)
        if "state" in fields and record.state.ended:
            _note_end(record)
        return record

    async def tell(self, record: Migration, step: StepRecord | None = None) -> None:
        """Tell where the migration stands, or what became of a step."""
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
                "reason": step.reason,
                "effect": step.effect.value,
                "detail": step.detail,
            }

        async def out() -> None:
            await self._bus.tell(EventTopic.MIGRATION, record.id, data)

        await (patiently(out) if self._patient else out())


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
