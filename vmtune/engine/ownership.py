"""Whose migration the source runs: the one of a record, or another client's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TypeVar

from vmtune.engine import asking
from vmtune.engine.asking import ask_again
from vmtune.engine.context import Clock
from vmtune.engine.notes import Hosts
from vmtune.errors import NotFound, VmtuneError
from vmtune.hypervisor.protocol import Driver
from vmtune.model.migration.record import AbortState, Migration, MigrationState, Trigger
from vmtune.model.migration.steps import StepAction

BEGINS_WITHIN_S = 3.0
"""How long after a restart a migration may take to show that was ordered just before. libvirt
begins its job within milliseconds of the call, which it executes though the caller is gone."""
CALLED_WITHIN_S = 30.0
"""How long after its record says that it starts a migration may have begun and still be taken for
it: before the call both hosts are asked, and a host that hangs takes its time."""
_CLOCKS_DIFFER_S = 1.0
_LOOK_EVERY_S = 0.1
_T = TypeVar("_T")


class Ownership:
    """What one session knows of whose migration the source runs."""

    def __init__(self, hosts: Hosts, clock: Clock) -> None:
        self._hosts = hosts
        self._clock = clock
        self._anothers = False

    async def runs(self, record: Migration, *, called_here: bool) -> bool:
        """Whether the record's migration runs. One that was just being started is given
        :data:`BEGINS_WITHIN_S`, since its call may be under way still. A source that does not
        answer is asked for as long as one that is watched.

        :param called_here: this process has called it.
        :return: False, too, if what runs is another client's.
        :raise VmtuneError: the source does not say.
        """
        starting = not called_here and record.state is MigrationState.STARTING
        deadline = self._clock.now() + (BEGINS_WITHIN_S if starting else 0)
        while True:
            try:
                snapshot = await self._ask_source(
                    lambda source: source.migration(record.vm), asking.LOST_AFTER_S
                )
            except NotFound:
                return False
            if snapshot.status.running or self._clock.now() >= deadline:
                break
            await self._clock.sleep(_LOOK_EVERY_S)
        if not snapshot.status.running:
            return False
        return not await self.is_anothers(record, called_here=called_here)

    async def is_anothers(self, record: Migration, *, called_here: bool) -> bool:
        """Whether the migration that runs was begun by another client: before this one was called,
        or long after an earlier process died that had not called yet or was refused. Once this one
        was seen to run it is known, and only its age tells as long as it was not.

        :param called_here: this process has called it.
        """
        if record.trigger is Trigger.OBSERVED:
            return False  # another client's from the beginning, and begun before it was seen
        if called_here or record.state is not MigrationState.STARTING:
            return False
        if not self._anothers:
            self._anothers = await self._has_its_age(record, asking.LOST_AFTER_S) is False
        return self._anothers

    async def may_abort(self, record: Migration) -> bool:
        """Whether what runs is the record's, so that an abort of the record is for that. Where its
        end was not seen, the VM may migrate anew by now, and only its age tells."""
        if record.state is not MigrationState.UNKNOWN:
            return True
        asked = record.abort is AbortState.REQUESTED or record.did(StepAction.ABORT) is not None
        return asked and await self._has_its_age(record) is True

    async def _has_its_age(self, record: Migration, within_s: float = 0) -> bool | None:
        """Whether what runs began when the record's was called; None where that is not known.

        :param within_s: for how long a source is asked again that does not answer.
        """
        if record.started_at is None:
            return None
        try:
            for_ms = await self._ask_source(lambda source: source.migrating_ms(record.vm), within_s)
        except VmtuneError:
            return None
        since_s = (datetime.now(UTC) - record.started_at).total_seconds()
        if for_ms is None or since_s < 0:  # the clock was set back
            return None
        return -_CLOCKS_DIFFER_S <= since_s - for_ms / 1000 <= CALLED_WITHIN_S

    async def _ask_source(self, ask: Callable[[Driver], Awaitable[_T]], within_s: float) -> _T:
        """What the source answers."""

        async def asked() -> _T:
            return await ask(await self._hosts.source())

        return await ask_again(asked, within_s)
