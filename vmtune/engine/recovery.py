"""Recovers a migration that is paused in post-copy: once, or again and again until it goes on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import structlog

from vmtune.engine.context import Clock
from vmtune.engine.notes import Hosts, Notes
from vmtune.engine.postcopy import NOT_RECOVERED, not_offered
from vmtune.errors import (
    CommandRefused,
    Conflict,
    NotFound,
    OutcomeUnknown,
    Problem,
    TooLate,
    VmtuneError,
)
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.network import direct_address
from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.postcopy import NOT_OFFERED
from vmtune.model.migration.record import Migration, MigrationFields, Sample, Trigger
from vmtune.model.tunables.rows.postcopy import ATTEMPTS, WITHIN_S, PostcopyRecovery

log = structlog.get_logger(__name__)

BY_ITSELF = "postcopy_recovery is auto"
_FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 60.0


@dataclass(frozen=True, slots=True)
class RecoverySettings:
    """When a migration is recovered by itself.

    :param attempts: at most so many for each pause.
    :param within_s: no attempt begins later after a pause.
    """

    auto: bool
    attempts: int = ATTEMPTS
    within_s: int = WITHIN_S

    @classmethod
    def of(cls, record: Migration) -> RecoverySettings:
        """The record's. What others have started is left to them, unless its profile says
        ``auto``."""
        own = record.trigger is Trigger.VMTUNE
        default = PostcopyRecovery.AUTO if own else PostcopyRecovery.MANUAL
        values = record.wanted
        return cls(
            values.get("postcopy_recovery", default) == PostcopyRecovery.AUTO,
            int(values.get("postcopy_recovery_attempts", ATTEMPTS)),
            int(values.get("postcopy_recovery_within_s", WITHIN_S)),
        )

    def last_for(self, record: Migration, samples: Sequence[Sample]) -> bool:
        """Whether the time is not over in which a paused migration is recovered by itself. Its last
        sample is of the pause."""
        last_ms = samples[-1].at_ms if samples else 0
        paused_at = (record.started_at or record.created_at) + timedelta(milliseconds=last_ms)
        return datetime.now(UTC) - paused_at < timedelta(seconds=self.within_s)


async def recover(
    hosts: Hosts, notes: Notes, destination: Driver, reason: str, address: str = ""
) -> None:
    """Give post-copy a new connection, and record the attempt like a step.

    :param reason: who wants it.
    :param address: what to connect to instead of the migration's own address; a connection that
        QEMU still believes in is given up then.
    :raise TooLate: it is not paused; nothing is recorded.
    :raise VmtuneError: the attempt's failure, which is recorded.
    """
    record = await notes.record()
    source = await hosts.source()
    since = datetime.now(UTC) - (record.started_at or record.created_at)
    step = StepRecord(
        number=None,
        at_ms=round(since.total_seconds() * 1000),
        iteration=0,
        action=f"recover post-copy over {address}" if address else "recover post-copy",
        reason=reason,
        effect=StepEffect.PENDING,
    )
    try:
        over = address or direct_address(record.wanted, "").connect
        await source.recover_postcopy(record.vm, destination, over, gives_up=bool(address))
    except TooLate:
        raise
    except VmtuneError as error:
        refused = isinstance(error, CommandRefused | Conflict | NotFound)
        effect = StepEffect.REFUSED if refused else StepEffect.UNKNOWN
        await notes.step(replace(step, effect=effect, detail=error.message), ())
        raise
    await notes.step(replace(step, effect=StepEffect.DONE), ())


class Recovery:
    """Recovers one migration by itself, beside its observation.

    Waits double from one second to a minute: an attempt is the only certain test whether the path
    is there again, and on a path that is not it costs a few packets.
    """

    def __init__(
        self, hosts: Hosts, notes: Notes, settings: RecoverySettings, clock: Clock
    ) -> None:
        self._hosts = hosts
        self._notes = notes
        self._settings = settings
        self._clock = clock

    async def run(self) -> None:
        """Try until post-copy goes on, or no attempt is left; then the record says so.

        Where it is not paused at the moment, somebody else recovers it, or it has just gone on and
        may be paused anew before anybody has seen so: it is looked at again, and whoever observes
        the migration cancels this when it goes on.
        """
        began, wait_s, why = self._clock.now(), _FIRST_WAIT_S, ""
        attempts = 0
        while attempts < self._settings.attempts:
            await self._clock.sleep(wait_s)
            if self._clock.now() - began > self._settings.within_s:
                if not attempts:
                    return  # it never was paused when it was looked at
                break
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
            attempts += 1
            try:
                destination = await self._hosts.destination()
                if destination is None:
                    why = "it is not known to which host it goes"
                    break
                await self._attempt(destination)
            except TooLate:
                attempts -= 1
                continue
            except OutcomeUnknown as error:
                why = error.message
            except CommandRefused as error:
                why = error.message
                if error.problems[0].code == NOT_OFFERED:
                    problems = not_offered((await self._notes.record()).problems, why)
                    await self._notes.save(MigrationFields(problems=problems))
                    return
            except VmtuneError as error:
                why = error.message
            else:
                return
        await self._give_up(attempts, why)

    async def _attempt(self, destination: Driver) -> None:
        """An attempt that has begun is recorded, though the migration may go on, and be cancelled
        for it, before the attempt has seen so."""
        recovery = recover(self._hosts, self._notes, destination, BY_ITSELF)
        attempt = asyncio.create_task(recovery)
        try:
            await asyncio.shield(attempt)
        except asyncio.CancelledError:
            with contextlib.suppress(VmtuneError):
                await attempt
            raise

    async def _give_up(self, attempts: int, why: str) -> None:
        record = await self._notes.record()
        log.warning("post-copy is not recovered", migration_id=str(record.id), reason=why)
        problem = Problem(
            "vm",
            NOT_RECOVERED,
            f"post-copy was not recovered in {attempts} attempts: {why}",
            f"restore the path between the hosts, then: vmtune migration recover {record.id}; "
            "shut down neither host",
        )
        others = [known for known in record.problems if known.code != NOT_RECOVERED]
        await self._notes.save(MigrationFields(problems=(*others, problem)))
