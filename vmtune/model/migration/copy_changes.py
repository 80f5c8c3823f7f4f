"""What users change of the copies of disks while they are made, as it is recorded: like a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.step_text import describe
from vmtune.model.migration.steps import SetValues
from vmtune.model.tunables.tunable import Value

BANDWIDTH, WRITES = "max_bandwidth_bytes_per_s", "copy_synchronous_writes"
OF_COPIES = "of the copies of disks, "


def change_of_copies(values: Mapping[str, Value]) -> str:
    """The action of a step that sets *values* of the copies."""
    return OF_COPIES + describe(SetValues(tuple(values.items())))


def last_bandwidth(steps: Sequence[StepRecord]) -> int | None:
    """What a user has set last as the most for each copy; None where nobody has."""
    for step in reversed(steps):
        if step.number is not None or step.effect is StepEffect.REFUSED:
            continue
        value = step.values.get(BANDWIDTH) if step.of_copies else None
        if isinstance(value, int):
            return value
    return None
