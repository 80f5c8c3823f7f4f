"""A migration that another client started: applies what it still can of the VM's profile while the
session observes it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Iterable
from contextlib import asynccontextmanager
from uuid import UUID

import structlog

from vmtune.engine.session import MigrationSession
from vmtune.engine.setting import set_each
from vmtune.errors import NotFound, VmtuneError
from vmtune.model.host.facts import Connection, Reading
from vmtune.model.host.managers import MANAGERS, Manager
from vmtune.model.migration.observed import can_be_set, when_found, when_set
from vmtune.model.migration.record import Migration, MigrationFields
from vmtune.model.plan.changes import Change, undo
from vmtune.model.plan.outcome import Outcome, Status
from vmtune.model.plan.plan import Plan
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.model.tunables.rows.storage import CALL_ARGUMENTS

log = structlog.get_logger(__name__)

_OVER = "it ended before it could be read"
_APPLIES_WITHIN_S = 5.0
"""How long its end waits for running changes to be recorded."""


class Observed:
    """The :class:`~vmtune.engine.session.Origin` of a migration that was found.

    :param plan: what the record's values would change on the source.
    :param find_destination: the host where the VM arrives; empty if not found.
    :param departed: the hosts, and the VMs of which they have reported that they migrated away.
    """

    reads_back = False
    """Values are read back after they were applied."""
    holds_steps = True
    """Until it is known whose VM it is."""

    def __init__(
        self,
        plan: Callable[[Migration], Awaitable[Plan]],
        find_destination: Callable[[Migration], Awaitable[str]],
        departed: Container[tuple[str, UUID]],
    ) -> None:
        self._plan = plan
        self._find_destination = find_destination
        self._departed = departed

    def left(self, record: Migration) -> bool:
        """Whether the source has reported that the VM has migrated away."""
        return (record.source, record.vm) in self._departed

    @asynccontextmanager
    async def alongside(self, session: MigrationSession) -> AsyncIterator[None]:
        """Apply the profile while the migration is watched already: a short one would be over
        before it was."""
        applying = asyncio.create_task(self._adopt(session), name="apply to observed migration")
        try:
            yield
            await asyncio.wait([applying], timeout=_APPLIES_WITHIN_S)
        finally:
            applying.cancel()
            await asyncio.gather(applying, return_exceptions=True)

    async def _adopt(self, session: MigrationSession) -> None:
        """Find the destination, set what can be set, and read back what is. Continues from the
        record of an earlier process."""
        notes = session.notes
        record = await notes.record()
        try:
            if not record.destination:
                found = await self._find_destination(record)
                if found:
                    await notes.save(MigrationFields(destination=found))
            manager = MANAGERS.get(await self._managed_by(session, record.vm))
            try:
                if record.wanted or manager is not None:
                    await self._apply(session, record, manager)
            finally:  # not before: what a step sets would be set back
                session.let_steps_act(manager)
        except VmtuneError as error:
            log.info("not applied", migration_id=str(record.id), reason=error.message)
            await notes.save(MigrationFields(problems=tuple(error.problems)))
        except Exception:
            # A fault of ours must not end the recording.
            log.exception("an observed migration was not tuned", migration_id=str(record.id))

    async def afterwards(self, session: MigrationSession) -> None:
        """Of one that was over before it could be looked at, record whose its values were."""
        record = await session.notes.record()
        if record.outcomes:
            return
        try:
            manager = MANAGERS.get(await self._managed_by(session, record.vm))
        except VmtuneError:
            return  # it is on no host that can be asked
        if manager is None:
            return
        names = (set(manager.owns) - CALL_ARGUMENTS) | set(record.wanted)
        now = dict.fromkeys(names, Reading(None, why_unknown=_OVER))
        waiting = [Outcome(n, Status.PENDING_MIGRATION, v) for n, v in record.wanted.items()]
        applied = when_set(waiting, now, {}, session.tunables, True, manager)
        await session.notes.save(MigrationFields(outcomes=applied.outcomes))

    async def _managed_by(self, session: MigrationSession, vm: UUID) -> str:
        """Who manages the VM; of one that has just left, as its destination says."""
        try:
            return await (await session.hosts.source()).managed_by(vm)
        except NotFound:
            destination = await session.hosts.destination()
            if destination is None:
                raise
            return await destination.managed_by(vm)

    async def _apply(
        self, session: MigrationSession, record: Migration, manager: Manager | None
    ) -> None:
        outcomes = record.outcomes
        if not outcomes and record.wanted:
            outcomes = await self._journal(session, record, manager)
        changes = _changes(record, outcomes, session.tunables, manager)
        source = await session.hosts.source()
        refused = await set_each(source, record.vm, changes) if changes else {}
        names = {outcome.tunable for outcome in outcomes}
        if manager is not None:
            names |= set(manager.owns) - CALL_ARGUMENTS
        try:
            now = await source.read(record.vm, names)
        except NotFound:  # it has just left
            now = dict.fromkeys(names, Reading(None, why_unknown=_OVER))
        libvirt = await session.hosts.connection() is Connection.LIBVIRT
        applied = when_set(outcomes, now, refused, session.tunables, libvirt, manager)
        problems = (*record.problems, *applied.problems)
        await session.notes.save(MigrationFields(outcomes=applied.outcomes, problems=problems))

    async def _journal(
        self, session: MigrationSession, record: Migration, manager: Manager | None
    ) -> tuple[Outcome, ...]:
        """Journal the prior values before anything is set."""
        plan = await self._plan(record)
        outcomes = tuple(when_found(plan))
        changes = _changes(record, outcomes, session.tunables, manager)
        journal = tuple(undo(changes, plan.readings))
        await session.notes.save(MigrationFields(journal=journal, outcomes=outcomes))
        return outcomes


def _changes(
    record: Migration,
    outcomes: Iterable[Outcome],
    tunables: TunableRegistry,
    manager: Manager | None,
) -> list[Change]:
    """What can still be set, without what is its manager's."""
    owned = manager.owns if manager is not None else {}
    return [
        Change(o.tunable, record.wanted[o.tunable])
        for o in outcomes
        if can_be_set(o, tunables) and o.tunable not in owned
    ]
