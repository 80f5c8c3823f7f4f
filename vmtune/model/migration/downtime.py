"""Whether the guest stood still for longer than was asked for."""

from __future__ import annotations

from dataclasses import dataclass

from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.record import Migration, MigrationState
from vmtune.model.migration.steps import StepAction
from vmtune.model.plan.outcome import Status

_LIMIT = "downtime_limit_ms"


@dataclass(frozen=True, slots=True)
class DowntimeKept:
    """The downtime of a completed migration, held against what was asked for.

    QEMU takes its limit for an estimate of how long sending the rest will take: the guest stands
    still for longer where the throughput falls, or its devices take long.

    :param limit_ms: the highest that was in force at some time of the migration: the profile's, or
        what a step or a user set meanwhile.
    """

    downtime_ms: int
    limit_ms: int

    @property
    def exceeded(self) -> bool:
        """The guest stood still for longer."""
        return self.downtime_ms > self.limit_ms


def downtime_kept(record: Migration) -> DowntimeKept | None:
    """None where no limit was asked for or it was left to the VM's manager, where it did not
    complete, and where a step paused the guest, as it was told to."""
    if record.state is not MigrationState.COMPLETED or record.totals is None:
        return None
    asked = _limit_asked(record)
    limits = [] if asked is None else [asked]
    limits += [limit for each in record.step_records if (limit := limit_set(each))]
    if not limits or record.did(StepAction.PAUSE):
        return None
    return DowntimeKept(record.totals.downtime_ms, max(limits))


def limit_in_force_ms(record: Migration) -> int | None:
    """The downtime limit that QEMU heeds now, as far as the record tells: what a step or a user set
    last, else the profile's. None where none was set, so that it is QEMU's own."""
    for each in reversed(record.step_records):
        if (limit := limit_set(each)) is not None:
            return limit
    return _limit_asked(record)


def _limit_asked(record: Migration) -> int | None:
    """What the migration began with; None where no limit was asked for, and where it was left to
    the VM's manager."""
    left = any(o.tunable == _LIMIT and o.status is Status.NOT_APPLIED for o in record.outcomes)
    asked = None if left else record.wanted.get(_LIMIT)
    return asked if isinstance(asked, int) else None


def limit_set(done: StepRecord) -> int | None:
    """The downtime limit that a step or a user set, or may have set; None where none was."""
    value = None if done.effect is StepEffect.REFUSED else done.values.get(_LIMIT)
    return value if isinstance(value, int) else None
