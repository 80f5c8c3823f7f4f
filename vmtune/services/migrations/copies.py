"""Helping the copies of a migration's disks while they are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from vmtune.errors import InvalidInput, OutcomeUnknown, Problem, VmtuneError
from vmtune.hypervisor.protocol import Driver
from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.copy_changes import BANDWIDTH, WRITES, change_of_copies
from vmtune.model.migration.record import Migration
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.model.tunables.rules import accept_values
from vmtune.model.tunables.tunable import Value
from vmtune.services.migrations.records import MigrationRecords

BY_USER = "requested by a user"


def accept_for_copies(
    values: Mapping[str, object], tunables: TunableRegistry
) -> Mapping[str, Value]:
    """*values* that can be set while disks are copied.

    :raise InvalidInput: with a problem for each that cannot.
    """
    problems = [
        Problem(
            f"values.{name}",
            "not_settable",
            "the writes cannot be let go again while the copy runs"
            if name == WRITES
            else "disks are copied, and the memory is not sent yet",
            f"set {BANDWIDTH}, or {WRITES}=on; others once the memory is sent",
        )
        for name, value in values.items()
        if name in tunables and (name not in (BANDWIDTH, WRITES) or value is None)
    ]
    given = {name: value for name, value in values.items() if value is not None}
    if problems or not given:
        problems = problems or [
            Problem("values", "no_value", "no value is given", f"set {BANDWIDTH}, or {WRITES}=on")
        ]
        raise InvalidInput("some values cannot be set now", problems=problems)
    accepted = accept_values({"copy_storage": True, **given}, tunables)
    if accepted.get(WRITES) is False:
        raise InvalidInput(
            "the guest's writes cannot be let go again while the copy runs",
            field=f"values.{WRITES}",
            code="not_settable",
            remedy="abort the migration, and begin it without",
        )
    return {name: accepted[name] for name in given}


async def change_copies(
    records: MigrationRecords, record: Migration, source: Driver, values: Mapping[str, Value]
) -> Migration:
    """Set *values* of the copies now; recorded like a step.

    :raise TooLate: no disk is copied any more.
    :raise CommandRefused: with QEMU's message.
    """
    since = datetime.now(UTC) - (record.started_at or record.created_at)
    step = StepRecord(
        number=None,
        at_ms=round(since.total_seconds() * 1000),
        iteration=0,
        action=change_of_copies(values),
        reason=BY_USER,
        effect=StepEffect.PENDING,
        values=values,
        of_copies=True,
    )
    await records.step(record.id, step, ())
    limit = values.get(BANDWIDTH)
    try:
        await source.help_copies(
            record.vm,
            [disk.target for disk in record.disks],
            limit if isinstance(limit, int) else None,
            synchronous=values.get(WRITES) is True,
        )
    except OutcomeUnknown as error:
        unknown = replace(step, effect=StepEffect.UNKNOWN, detail=error.message)
        return await records.step(record.id, unknown, ())
    except VmtuneError as error:
        refused = replace(step, effect=StepEffect.REFUSED, detail=error.message)
        await records.step(record.id, refused, ())
        raise
    return await records.step(record.id, replace(step, effect=StepEffect.DONE), ())
