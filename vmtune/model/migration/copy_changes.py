"""What users change of the copies of disks while they are made, as it is recorded: like a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.step_text import describe
from vmtune.model.migration.steps import SetValues
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import Value

BANDWIDTH, WRITES = "max_bandwidth_bytes_per_s", "copy_synchronous_writes"
_OF_COPIES = "of the copies of disks, "


def change_of_copies(values: Mapping[str, Value]) -> str:
    """The action of a step that sets *values* of the copies."""
    return _OF_COPIES + describe(SetValues(tuple(values.items())))


def last_bandwidth(steps: Sequence[StepRecord]) -> int | None:
    """What a user has set last as the most for each copy; None where nobody has."""
    for step in reversed(steps):
        if step.number is not None or step.effect is StepEffect.REFUSED:
            continue
        if step.action.startswith(_OF_COPIES):
            found = _bandwidth(step.action.removeprefix(_OF_COPIES).removeprefix("set "))
            if found is not None:
                return found
    return None


def _bandwidth(changes: str) -> int | None:
    row = BUILT_IN[BANDWIDTH]
    for change in changes.split(", "):
        name, _, shown = change.partition(" to ")
        if name == BANDWIDTH:
            plain = shown.replace(",", "").replace(" ", "")
            value = 0 if shown == row.render(0) else row.accept(plain)
            return value if isinstance(value, int) else None
    return None
