"""What users change while disks are copied."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, cast
from uuid import UUID

import pytest

from tests.support.examples.migrations import make_migration
from vmtune.errors import CommandRefused, InvalidInput, OutcomeUnknown, VmtuneError
from vmtune.hypervisor.protocol import Driver
from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.disks import CopiedDisk
from vmtune.model.migration.record import Migration, MigrationState
from vmtune.model.plan.changes import Change
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.services.migrations.copies import accept_for_copies, change_copies
from vmtune.services.migrations.records import MigrationRecords

COPIES = make_migration(state=MigrationState.STARTING, disks=(CopiedDisk("vda", "/x"),))


class Records:
    def __init__(self) -> None:
        self.effects: list[StepEffect] = []
        self.last: StepRecord | None = None

    async def step(self, id: UUID, step: StepRecord, undo: Sequence[Change]) -> Migration:
        self.effects.append(step.effect)
        self.last = step
        return replace(COPIES, step_records=(step,))


class Source:
    def __init__(self, fails: VmtuneError | None = None) -> None:
        self._fails = fails
        self.asked: tuple[object, ...] = ()

    async def help_copies(
        self,
        vm: UUID,
        targets: Collection[str],
        bytes_per_s: int | None = None,
        *,
        synchronous: bool = False,
    ) -> None:
        if self._fails is not None:
            raise self._fails
        self.asked = (list(targets), bytes_per_s, synchronous)


async def change(source: Source, **values: Any) -> Records:
    records = Records()
    accepted = accept_for_copies(values, BUILT_IN)
    kept, driver = cast(MigrationRecords, records), cast(Driver, source)
    try:
        await change_copies(kept, COPIES, driver, accepted)
    except CommandRefused:
        assert records.effects[-1] is StepEffect.REFUSED
    return records


@pytest.mark.parametrize(
    ("values", "asked"),
    [
        ({"max_bandwidth_bytes_per_s": "4MiB/s"}, (["vda"], 4 << 20, False)),
        ({"copy_synchronous_writes": "on"}, (["vda"], None, True)),
    ],
)
async def test_it_is_done_now_and_recorded_before_and_after(
    values: dict[str, Any], asked: tuple[object, ...]
) -> None:
    source = Source()
    records = await change(source, **values)
    assert source.asked == asked
    assert records.effects == [StepEffect.PENDING, StepEffect.DONE]
    assert records.last is not None
    assert records.last.action.startswith("of the copies of disks, ")
    assert (records.last.values.keys(), records.last.of_copies) == (values.keys(), True)


@pytest.mark.parametrize(
    ("error", "effect"),
    [
        (CommandRefused("no"), StepEffect.REFUSED),
        (OutcomeUnknown("gone"), StepEffect.UNKNOWN),
    ],
)
async def test_what_did_not_work_is_recorded(error: VmtuneError, effect: StepEffect) -> None:
    records = await change(Source(error), copy_synchronous_writes=True)
    assert records.effects == [StepEffect.PENDING, effect]


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"downtime_limit_ms": 300},
        {"max_bandwidth_bytes_per_s": None},
        {"copy_synchronous_writes": False},
        {"max_bandwidth_bytes_per_s": "fast"},
        {"no_such_tunable": 1},
    ],
)
def test_what_cannot_be_set_then_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        accept_for_copies(values, BUILT_IN)
