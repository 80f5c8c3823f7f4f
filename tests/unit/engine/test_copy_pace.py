"""The bandwidth that the copies of disks get."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any, cast
from uuid import UUID

import pytest

from tests.support.examples.migrations import make_migration
from vmtune.engine.copy_pace import CopyPace
from vmtune.engine.notes import Notes
from vmtune.errors import CommandRefused, HostUnreachable, TooLate, VmtuneError
from vmtune.hypervisor.protocol import Driver
from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.copy_changes import change_of_copies
from vmtune.model.migration.record import Migration, Trigger
from vmtune.model.plan.outcome import Outcome, Status
from vmtune.model.tunables.tunable import Value

NAME = "copy_bandwidth_bytes_per_s"
WAITS = Outcome(NAME, Status.PENDING_MIGRATION, 7)
OTHER = Outcome("tls", Status.EFFECTIVE, True, True)


def changed(effect: StepEffect = StepEffect.DONE, **values: Value) -> StepRecord:
    """What a user has changed of the copies."""
    words, by = change_of_copies(values), "requested by a user"
    return StepRecord(None, 5, 0, words, by, effect, values=values, of_copies=True)


class Source:
    def __init__(self, *errors: VmtuneError) -> None:
        self.errors = list(errors)
        self.asked: list[tuple[list[str], int]] = []

    async def help_copies(self, vm: UUID, targets: Collection[str], bytes_per_s: int) -> None:
        self.asked.append((list(targets), bytes_per_s))
        if self.errors:
            raise self.errors.pop(0)


class Kept:
    def __init__(self, **fields: Any) -> None:
        usual = {"wanted": {NAME: 7}, "outcomes": (WAITS, OTHER)}
        self.record = make_migration(**(usual | fields))

    async def save(self, fields: Any) -> Migration:
        self.record = replace(self.record, **fields)
        return self.record


async def looked(kept: Kept, source: Source, *going: Collection[str]) -> Outcome:
    """What is recorded of it after these looks."""
    pace = CopyPace(cast(Notes, kept))
    for targets in going:
        await pace.keep(kept.record, cast(Driver, source), targets)
    outcome, other = kept.record.outcomes
    assert other == OTHER
    return outcome


async def test_each_copy_gets_it_once_it_has_begun() -> None:
    source = Source()
    outcome = await looked(Kept(), source, (), ["vda"], ["vda"], ["vda", "vdb"], ["vdb"])
    assert source.asked == [(["vda"], 7), (["vdb"], 7)]
    assert (outcome.status, outcome.seen) == (Status.EFFECTIVE, 7)


async def test_no_limit_is_a_value_too() -> None:
    source = Source()
    await looked(Kept(wanted={NAME: 0}), source, ["vda"])
    assert source.asked == [(["vda"], 0)]


@pytest.mark.parametrize(
    "fields",
    [{"wanted": {}}, {"trigger": Trigger.OBSERVED}],
    ids=["not wanted", "begun by others"],
)
async def test_what_is_not_to_be_changed_is_left(fields: dict[str, Any]) -> None:
    source = Source()
    assert await looked(Kept(**fields), source, ["vda"]) == WAITS
    assert source.asked == []


@pytest.mark.parametrize("limit", [0, 1, 9999, 1 << 20, 400 << 20, (1 << 40) + 1])
async def test_a_copy_that_begins_later_gets_what_a_user_has_set(limit: int) -> None:
    step = changed(max_bandwidth_bytes_per_s=limit, copy_synchronous_writes=True)
    for wanted in ({NAME: 7}, {}):
        source = Source()
        kept = Kept(wanted=wanted, step_records=(step,))
        assert await looked(kept, source, ["vda"], ["vda", "vdb"]) == WAITS
        assert source.asked == [(["vda"], limit), (["vdb"], limit)]


@pytest.mark.parametrize(
    "step",
    [
        changed(copy_synchronous_writes=True),
        changed(StepEffect.REFUSED, max_bandwidth_bytes_per_s=9),
        StepRecord(0, 5, 0, "words", "", StepEffect.DONE, values={"max_bandwidth_bytes_per_s": 9}),
        replace(changed(max_bandwidth_bytes_per_s=9), of_copies=False),
    ],
    ids=["another change", "refused", "by a step", "of the memory"],
)
async def test_what_else_a_user_changes_leaves_it(step: StepRecord) -> None:
    source = Source()
    outcome = await looked(Kept(step_records=(step,)), source, ["vda"], ["vda", "vdb"])
    assert source.asked == [(["vda"], 7), (["vdb"], 7)]
    assert outcome.status is Status.EFFECTIVE


@pytest.mark.parametrize(
    ("error", "status", "asked"),
    [
        (HostUnreachable("gone"), Status.EFFECTIVE, 2),
        (TooLate("over"), Status.EFFECTIVE, 2),
        (CommandRefused("no"), Status.REJECTED, 1),
    ],
)
async def test_what_does_not_answer_is_asked_again_and_what_refuses_is_not(
    error: VmtuneError, status: Status, asked: int
) -> None:
    source = Source(error)
    outcome = await looked(Kept(), source, ["vda"], ["vda"])
    assert (outcome.status, len(source.asked)) == (status, asked)
    assert outcome.reason == ("no" if status is Status.REJECTED else "")


async def test_one_that_refuses_is_told_whatever_the_others_do() -> None:
    outcome = await looked(Kept(), Source(CommandRefused("no")), ["vda"], ["vda", "vdb"])
    assert (outcome.status, outcome.reason) == (Status.REJECTED, "no")
