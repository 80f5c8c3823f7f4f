"""Recovering by itself, where what is paused goes on and is paused anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast
from uuid import UUID

import pytest

from tests.support.examples.migrations import SimulatedClock, make_migration
from vmtune.engine.notes import Hosts, Notes
from vmtune.engine.recovery import Recovery, RecoverySettings, recover
from vmtune.errors import CommandRefused, TooLate, VmtuneError
from vmtune.hypervisor.protocol import Driver
from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.postcopy import NOT_OFFERED
from vmtune.model.migration.record import Migration, MigrationFields, MigrationState
from vmtune.model.tunables.tunable import Value


class Side:
    """A source whose attempts end as they are told, the last for ever."""

    def __init__(self, *ends: VmtuneError | None) -> None:
        self._ends: Iterator[VmtuneError | None] = iter(ends)
        self._last = ends[-1]
        self.asked = 0
        self.over = "", False

    async def recover_postcopy(
        self, vm: UUID, destination: object, address: str = "", *, gives_up: bool = False
    ) -> None:
        self.asked += 1
        self.over = address, gives_up
        end = next(self._ends, self._last)
        if end is not None:
            raise end


class TwoHosts:
    def __init__(self, source: Side) -> None:
        self._source = source

    async def source(self) -> Side:
        return self._source

    async def destination(self) -> Side:
        return self._source


class Kept:
    """A record in memory."""

    def __init__(self) -> None:
        self.migration = make_migration(state=MigrationState.POSTCOPY_PAUSED)
        self.steps: list[StepRecord] = []
        self.saved: list[Any] = []  # any: fields of several types

    async def record(self) -> Migration:
        return self.migration

    async def save(self, fields: MigrationFields) -> Migration:
        self.saved.append(fields)
        return self.migration

    async def step(self, step: StepRecord, undo: object) -> None:
        self.steps.append(step)


async def recovered(source: Side, settings: RecoverySettings) -> Kept:
    kept = Kept()
    hosts, notes = cast("Hosts", TwoHosts(source)), cast("Notes", kept)
    await Recovery(hosts, notes, settings, SimulatedClock()).run()
    return kept


@pytest.mark.parametrize("goes_on", [1, 3])
async def test_one_that_is_paused_anew_is_tried_again(goes_on: int) -> None:
    ends = [TooLate("it is not paused")] * goes_on
    kept = await recovered(Side(*ends, None), RecoverySettings(True, attempts=1, within_s=600))
    assert [step.effect for step in kept.steps] == [StepEffect.DONE]
    assert kept.saved == []


async def test_one_that_is_never_seen_paused_is_no_failure() -> None:
    source = Side(TooLate("it is not paused"))
    kept = await recovered(source, RecoverySettings(True, attempts=3, within_s=60))
    assert source.asked > 3
    assert (kept.steps, kept.saved) == ([], [])


async def test_attempts_that_fail_are_counted() -> None:
    source = Side(CommandRefused("no route"))
    kept = await recovered(source, RecoverySettings(True, attempts=3, within_s=600))
    assert source.asked == 3
    assert [step.effect for step in kept.steps] == [StepEffect.REFUSED] * 3
    (fields,) = kept.saved
    assert "3 attempts: no route" in fields["problems"][-1].message


async def test_what_libvirt_does_not_offer_is_told_with_what_else_helps() -> None:
    """Another attempt is no remedy there."""
    refusal = CommandRefused("libvirt 11.3.0 ends", field="migration", code=NOT_OFFERED)
    source = Side(refusal)
    kept = await recovered(source, RecoverySettings(True, attempts=3, within_s=600))
    assert source.asked == 1
    (fields,) = kept.saved
    (told,) = fields["problems"]
    assert told.code == NOT_OFFERED
    assert "libvirt 11.3.0 ends" in told.message
    assert "by hand" in told.remedy
    assert "migration recover" not in told.remedy


@pytest.mark.parametrize(
    ("wanted", "given", "over"),
    [
        ({}, "", ("", False)),
        ({"migrate_uri": "tcp://10.0.0.2:49300"}, "", ("10.0.0.2", False)),
        ({"migrate_uri": "tcp://10.0.0.2"}, "10.1.0.2", ("10.1.0.2", True)),
    ],
)
async def test_it_is_connected_where_the_migration_was_unless_told_otherwise(
    wanted: dict[str, Value], given: str, over: tuple[str, bool]
) -> None:
    kept, source = Kept(), Side(None)
    kept.migration = replace(kept.migration, wanted=wanted)
    hosts, notes = cast("Hosts", TwoHosts(source)), cast("Notes", kept)
    await recover(hosts, notes, cast("Driver", source), "requested", given)
    assert source.over == over
