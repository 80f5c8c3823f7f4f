"""The bandwidth of disks' copies, where it is another than the memory's."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import structlog

from vmtune.engine.notes import Notes
from vmtune.errors import CommandRefused, TooLate, VmtuneError
from vmtune.hypervisor.protocol import Driver
from vmtune.model.migration.copy_changes import last_bandwidth
from vmtune.model.migration.record import Migration, MigrationFields, Trigger
from vmtune.model.plan.outcome import Outcome, Status
from vmtune.model.tunables.rows.storage import COPY_BANDWIDTH

log = structlog.get_logger(__name__)


class CopyPace:
    """Sets the bandwidth that a record wants of its copies, of each once it has begun.

    Where a user has set another since, copies that begin later get that. Copies that others have
    begun are left to them.
    """

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._set: set[str] = set()

    async def keep(self, record: Migration, source: Driver, going: Collection[str]) -> None:
        """Set it of those of *going* that are new. One that does not take it is asked once.

        :param going: the targets of disks that are copied right now.
        """
        by_user = last_bandwidth(record.step_records)
        wanted = record.wanted.get(COPY_BANDWIDTH) if by_user is None else by_user
        new = [target for target in going if target not in self._set]
        if not isinstance(wanted, int) or not new or record.trigger is Trigger.OBSERVED:
            return
        try:
            await source.help_copies(record.vm, new, wanted)
        except TooLate:
            return  # they have just ended
        except CommandRefused as refusal:
            status, seen, why = Status.REJECTED, None, refusal.message
        except VmtuneError as error:
            log.debug("copies not paced", vm=str(record.vm), reason=error.message)
            return  # it is tried again
        else:
            status, seen, why = Status.EFFECTIVE, wanted, ""
        self._set.update(new)
        if by_user is not None and status is Status.EFFECTIVE:
            return  # it is not what the record wanted
        await self._notes.save(
            MigrationFields(
                outcomes=tuple(
                    _judged(outcome, status, seen, why)
                    if outcome.tunable == COPY_BANDWIDTH
                    else outcome
                    for outcome in record.outcomes
                )
            )
        )


def _judged(outcome: Outcome, status: Status, seen: int | None, why: str) -> Outcome:
    if outcome.status is Status.REJECTED:
        return outcome  # of another disk
    return replace(outcome, status=status, seen=seen, reason=why)
