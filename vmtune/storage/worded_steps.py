"""Step records of before what a step sets was stored: it is in the action's words alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from vmtune.model.migration.controller_record import StepRecord
from vmtune.model.migration.copy_changes import OF_COPIES
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import Value
from vmtune.storage.mapping import converter

_SET = "set "
_load = converter(StepRecord)


def load_step_records(
    raw: Sequence[Mapping[str, Any]] | None,
) -> tuple[StepRecord, ...]:  # any JSON
    """Stored step records, each with the values that it sets."""
    return tuple(_load(one) if "values" in one else _read(_load(one)) for one in raw or ())


def _read(record: StepRecord) -> StepRecord:
    _, sets, changes = record.action.partition(_SET)
    if not sets:
        return record
    found: dict[str, Value] = {}
    for change in changes.split(", "):
        name, _, shown = change.partition(" to ")
        value = _value(name, shown)
        if value is not None:
            found[name] = value
    return replace(record, values=found, of_copies=record.action.startswith(OF_COPIES))


def _value(name: str, shown: str) -> Value | None:
    """The value that is *shown* as a tunable's; None where no value is shown so."""
    if name not in BUILT_IN:
        return None
    row = BUILT_IN[name]
    plain = shown.replace(",", "").replace(" ", "").removesuffix("%")
    for text in (0, plain):  # zero may be shown as a word
        try:
            value = row.accept(text)
        except ValueError:
            continue
        if row.render(value) == shown:
            return value
    return None
