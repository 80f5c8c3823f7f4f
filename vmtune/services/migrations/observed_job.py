"""Migrations that somebody else started: followed and completed like vmtune's own, with what of
the profile can still be applied."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from uuid import UUID

import structlog

from vmtune.engine.setting import set_each
from vmtune.errors import VmtuneError
from vmtune.hypervisor.protocol import Driver
from vmtune.jobs.base import JobEngine
from vmtune.jobs.kinds import OBSERVED_KIND
from vmtune.model.host.facts import Connection
from vmtune.model.migration.observed import Applied, can_be_set, when_found, when_set
from vmtune.model.migration.record import Migration, MigrationState, QemuStatus, Snapshot, Trigger
from vmtune.model.plan.changes import Change, undo
from vmtune.model.plan.outcome import Outcome
from vmtune.services.migrations.end_state import Evidence
from vmtune.services.migrations.job import MigrationJob, Run
from vmtune.services.migrations.records import Fields
from vmtune.services.tuning.profiles import Chosen

log = structlog.get_logger(__name__)

_APPLIES_WITHIN_S = 5.0
"""How long its end waits for what is being applied to be told."""


_REMEMBERED = 1000


class Departures:
    """Which host said of which VM that it has migrated away, most recently; the oldest are
    forgotten."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, UUID], None] = {}

    def add(self, where: tuple[str, UUID]) -> None:
        """The host said so of the VM."""
        self._known.pop(where, None)
        self._known[where] = None
        if len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]

    def discard(self, where: tuple[str, UUID]) -> None:
        """It is there again."""
        self._known.pop(where, None)

    def __contains__(self, where: tuple[str, UUID]) -> bool:
        return where in self._known


class ObservedJob(MigrationJob):
    """Carries observed migrations, phase by phase: from finding them to their record's end."""

    _trigger = Trigger.OBSERVED
    departed: Departures
    """Filled by who listens to the hosts."""

    def register(self, jobs: JobEngine) -> None:
        """Give the job engine the phases."""
        self.departed = Departures()
        jobs.register(OBSERVED_KIND, (("carry", self.carry), ("settle", self.settle)))

    @asynccontextmanager
    async def _beside(self, record: Migration, source: Driver) -> AsyncIterator[None]:
        """Apply the profile while the migration is watched already: a short one would be over
        before it was."""
        applying = asyncio.create_task(self._adopt(record, source), name=f"adopt {record.vm}")
        try:
            yield
            await asyncio.wait([applying], timeout=_APPLIES_WITHIN_S)
        finally:
            applying.cancel()
            await asyncio.gather(applying, return_exceptions=True)

    async def _adopt(self, record: Migration, source: Driver) -> None:
        """Find the destination, set what can be set, and read back what is. Where an earlier
        process has begun with it, go on from what it has recorded."""
        try:
            if not record.destination:
                found = await self._hosts.find_other(record)
                if found:
                    await self._records.save(record.id, Fields(destination=found))
            if record.wanted:
                await self._apply(record, source)
        except VmtuneError as error:
            log.info("not applied", migration_id=str(record.id), reason=error.message)
            await self._records.save(record.id, Fields(problems=tuple(error.problems)))
        except Exception:
            # A fault of ours must not end the recording.
            log.exception("an observed migration was not tuned", migration_id=str(record.id))

    async def _apply(self, record: Migration, source: Driver) -> None:
        outcomes = record.outcomes or await self._begin_to_apply(record)
        changes = [
            Change(o.tunable, record.wanted[o.tunable])
            for o in outcomes
            if can_be_set(o, self._plans.tunables)
        ]
        refused = await set_each(source, record.vm, changes)
        now = await source.read(record.vm, [outcome.tunable for outcome in outcomes])
        host = await self._hosts.get(record.source)
        applied = when_set(
            outcomes, now, refused, self._plans.tunables, host.connection is Connection.LIBVIRT
        )
        await self._note(record, applied)

    async def _begin_to_apply(self, record: Migration) -> tuple[Outcome, ...]:
        """Journal what is there before anything is set."""
        chosen = Chosen(record.profile, record.revision, record.wanted, record.steps)
        planned = await self._plans.plan_on(record.source, record.vm, chosen)
        outcomes = tuple(when_found(planned.plan))
        changes = [
            Change(o.tunable, record.wanted[o.tunable])
            for o in outcomes
            if can_be_set(o, self._plans.tunables)
        ]
        journal = tuple(undo(changes, planned.facts.readings))
        await self._records.save(record.id, Fields(journal=journal, outcomes=outcomes))
        return outcomes

    async def _note(self, record: Migration, applied: Applied) -> None:
        problems = (*record.problems, *applied.problems)
        await self._records.save(record.id, Fields(outcomes=applied.outcomes, problems=problems))

    async def _on_running(
        self, record: Migration, run: Run, source: Driver, snapshot: Snapshot
    ) -> None:
        """Record that it is active; what it runs with is read beside."""
        if run.active or snapshot.status is QemuStatus.SETUP:
            return
        run.active = True
        await self._became_active(record, source)

    def _evidence(self, record: Migration, run: Run) -> Evidence:
        left = (record.source, record.vm) in self.departed
        return Evidence(run.handle, run.snapshot, run.error, left)


def started_at(heard_at: datetime, snapshot: Snapshot | None, from_start: bool) -> datetime:
    """When a migration was started: when its first sign was heard, or as long ago as QEMU says.

    :param from_start: it was its first sign.
    """
    if from_start or snapshot is None or snapshot.elapsed_ms is None:
        return heard_at
    since_epoch = heard_at.timestamp() - snapshot.elapsed_ms / 1000
    return datetime.fromtimestamp(since_epoch, UTC)


STARTED = MigrationState.STARTING
"""The state in which an observed migration begins: somebody has given the order."""
