"""Convergence steps while disks are copied: taken when they are due, noted, never repeated."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, cast
from uuid import UUID

import pytest

from tests.support.examples.migrations import make_migration
from vmtune.engine.notes import Notes
from vmtune.engine.steps.copy_steps import CopySteps
from vmtune.errors import CommandRefused, HostUnreachable, TooLate, VmtuneError
from vmtune.hypervisor.protocol import Driver
from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.disks import CopiedDisk
from vmtune.model.migration.record import Trigger
from vmtune.model.migration.steps import AfterSeconds, Later, SetValues, Stalled, Step
from vmtune.model.migration.steps import Trigger as When

VDA, VDB = (CopiedDisk(name, f"/{name}", total_bytes=9) for name in ("vda", "vdb"))
MEMORY = Step(AfterSeconds(1), SetValues((("downtime_limit_ms", 500),)))


def waits(when: When) -> Step:
    return Step(when, SetValues((("copy_synchronous_writes", True),)))


class Trial:
    """A migration that copies disks, looked at by the second."""

    def __init__(self, *steps: Step, errors: Sequence[VmtuneError] = (), **fields: Any) -> None:
        self.record = make_migration(steps=steps, **fields)
        self.errors = list(errors)
        self.asked: list[list[str]] = []
        self.noted: list[StepEffect] = []
        self.steps = CopySteps(cast(Notes, self))

    async def step(self, step: StepRecord, undo: Sequence[object]) -> None:
        assert not undo
        self.noted.append(step.effect)
        known = [each for each in self.record.step_records if each.number != step.number]
        self.record = replace(self.record, step_records=(*known, step))

    async def help_copies(self, vm: UUID, targets: Collection[str], *, synchronous: bool) -> None:
        assert synchronous and (not self.noted or self.noted[-1] is not StepEffect.UNKNOWN)
        self.asked.append(sorted(targets))
        if self.errors:
            raise self.errors.pop(0)

    async def at(self, second: float, *disks: CopiedDisk, going: Collection[str] = ()) -> None:
        going = going or [disk.target for disk in disks]
        source = cast(Driver, self)
        await self.steps.look(self.record, source, disks, going, round(second * 1000))

    def taken(self) -> list[tuple[int | None, int, StepEffect]]:
        return [(each.number, each.at_ms, each.effect) for each in self.record.step_records]


async def test_a_step_is_noted_then_taken_once() -> None:
    t = Trial(MEMORY, waits(AfterSeconds(60)))
    for second in (1, 59, 60, 61, 62):
        await t.at(second, VDA)
    assert t.taken() == [(1, 60_000, StepEffect.DONE)]
    assert t.noted == [StepEffect.PENDING, StepEffect.DONE]
    assert t.asked == [["vda"]]
    (done,) = t.record.step_records
    assert done.action == "set copy_synchronous_writes to on"
    assert done.reason == "60.0 s passed, and 60 were to be waited for"


async def test_one_that_stalls_has_had_no_less_left_for_as_long() -> None:
    t = Trial(waits(Stalled(40)))
    stands = replace(VDB, converges=False)
    await t.at(50, VDA, stands)  # for 30 s, which is when it is known
    await t.at(59, VDA, stands)
    assert t.asked == []
    await t.at(60, VDA, stands)
    assert t.asked == [["vda", "vdb"]]
    assert t.record.step_records[0].reason == "vdb has had no less left for 40.0 s"


async def test_what_goes_on_in_between_has_not_stalled() -> None:
    t = Trial(waits(Stalled(40)))
    stands = replace(VDA, converges=False)
    for second, disk in ((50, stands), (55, VDA), (70, stands), (79, stands)):
        await t.at(second, disk)
    assert t.asked == []
    await t.at(80, stands)
    assert t.asked == [["vda"]]


async def test_each_waits_for_the_one_before() -> None:
    refused = CommandRefused("this QEMU is older")
    t = Trial(waits(Later(10)), waits(Later(20)), errors=[refused])
    for second in range(60):
        await t.at(second, VDA)
    assert t.taken() == [(0, 10_000, StepEffect.REFUSED), (1, 30_000, StepEffect.DONE)]
    assert t.record.step_records[0].detail == "this QEMU is older"


async def test_a_copy_that_begins_later_gets_the_same() -> None:
    t = Trial(waits(AfterSeconds(5)), errors=[])
    await t.at(5, VDA, VDB, going=["vda"])
    t.errors = [HostUnreachable("it is away")]
    for second in (6, 7, 8):
        await t.at(second, VDA, VDB, going=["vda", "vdb"])
    assert t.asked == [["vda"], ["vdb"], ["vdb"]]


@pytest.mark.parametrize(
    ("error", "effect"),
    [
        (TooLate("it has ended"), StepEffect.REFUSED),
        (HostUnreachable("it is away"), StepEffect.UNKNOWN),
    ],
)
async def test_what_came_of_it_is_recorded(error: VmtuneError, effect: StepEffect) -> None:
    t = Trial(waits(AfterSeconds(5)), errors=[error])
    for second in (5, 6):
        await t.at(second, VDA)
    assert (t.taken(), len(t.asked)) == ([(0, 5000, effect)], 1)


async def test_one_that_was_under_way_when_the_service_ended_is_taken_again() -> None:
    past = StepRecord(0, 5000, 0, "set copy_synchronous_writes to on", "", StepEffect.PENDING)
    t = Trial(waits(AfterSeconds(5)), step_records=(past,))
    await t.at(9, VDA)
    assert (t.taken(), t.asked) == ([(0, 5000, StepEffect.DONE)], [["vda"]])


@pytest.mark.parametrize("case", ["caught up", "begun by others", "not begun", "no step"])
async def test_nothing_is_done_where_nothing_helps(case: str) -> None:
    steps = () if case == "no step" else (waits(AfterSeconds(5)),)
    by = Trigger.OBSERVED if case == "begun by others" else Trigger.VMTUNE
    t = Trial(*steps, trigger=by)
    disk = replace(VDA, ready_ms=4) if case == "caught up" else VDA
    disks = () if case == "not begun" else (disk,)
    await t.at(60, *disks)
    assert (t.asked, t.taken()) == ([], [])
