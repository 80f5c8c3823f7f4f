"""What ran beside a migration: steps, their records, the reaper's report and its rounds."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from tests.support.examples.rounds import REPORT, make_rounds
from vmtune.errors import NotFound
from vmtune.model.migration.controller_record import ReaperEnd, ReaperRound, StepEffect, StepRecord
from vmtune.model.migration.record import Migration
from vmtune.model.migration.steps import (
    AfterIterations,
    AfterSeconds,
    SetValues,
    Stalled,
    Step,
    StepAction,
)
from vmtune.model.plan.changes import Change
from vmtune.storage import Store
from vmtune.storage.series.chunks import ROUNDS

VM = UUID("00000000-0000-4000-8000-00000000000a")
STEPS = (
    Step(AfterIterations(4), SetValues((("downtime_limit_ms", 500),))),
    Step(Stalled(10, 5), StepAction.PAUSE),
    Step(AfterSeconds(300), StepAction.ABORT),
)
DUE = StepRecord(
    *(0, 900, 5, "set downtime_limit_ms to 500 ms", "5 > 4", StepEffect.PENDING),
    values={"downtime_limit_ms": 500},
    of_copies=True,
)


def begin(store: Store) -> Migration:
    return store.migrations.begin(
        vm=VM, vm_name="guest", source="a", destination="b", steps=STEPS,
        journal=[Change("max_cpu_throttle_percent", 99)],
    )  # fmt: skip


def test_a_revision_has_its_steps(store: Store) -> None:
    made = store.profiles.create("p", "", {"multifd": True}, steps=STEPS)
    assert made.current.steps == store.profiles.get("p").current.steps == STEPS
    same = store.profiles.revise("p", {"multifd": True}, steps=STEPS)
    assert same.current.number == 1
    fewer = store.profiles.revise("p", {"multifd": True}, steps=STEPS[:1])
    assert (fewer.current.number, fewer.current.steps) == (2, STEPS[:1])
    assert store.profiles.revision("p", 1).steps == STEPS
    assert [r.steps for r in store.profiles.revisions("p").items] == [STEPS[:1], STEPS]


def test_other_steps_alone_make_a_revision(store: Store) -> None:
    store.profiles.create("p", "", {"multifd": True}, steps=STEPS)
    assert store.profiles.revise("p", {"multifd": True}).current.steps == ()


def test_a_migration_has_its_steps_and_nothing_has_come_of_them(store: Store) -> None:
    found = store.migrations.get(begin(store).id)
    assert (found.steps, found.step_records, found.reaper) == (STEPS, (), None)


def test_a_step_is_noted_before_it_is_done_and_settled_after(store: Store) -> None:
    id = begin(store).id
    store.migrations.note_step(id, DUE, [Change("downtime_limit_ms", 300)])
    (noted,) = store.migrations.get(id).step_records
    assert noted == DUE
    skipped_checks = replace(DUE, effect=StepEffect.UNKNOWN)
    assert store.migrations.note_step(id, skipped_checks).step_records == (skipped_checks,)
    done = replace(DUE, effect=StepEffect.DONE)
    store.migrations.note_step(id, done)
    found = store.migrations.get(id)
    assert found.step_records == (done,)
    assert found.journal == (
        Change("max_cpu_throttle_percent", 99),
        Change("downtime_limit_ms", 300),
    )


def test_what_was_there_before_all_steps_is_what_is_put_back(store: Store) -> None:
    id = begin(store).id
    store.migrations.note_step(id, DUE, [Change("downtime_limit_ms", 300)])
    later = replace(DUE, at_ms=1000, number=None)
    undo = [Change("downtime_limit_ms", 500), Change("max_cpu_throttle_percent", 60)]
    store.migrations.note_step(id, later, undo)
    found = store.migrations.get(id)
    assert found.step_records == (DUE, later)
    assert [change.value for change in found.journal] == [99, 300]


def test_a_settled_step_is_never_settled_again(store: Store) -> None:
    id = begin(store).id
    refused = replace(DUE, effect=StepEffect.REFUSED, detail="no \0 such thing")
    store.migrations.note_step(id, refused)
    store.migrations.note_step(id, replace(refused, effect=StepEffect.DONE))
    first, second = store.migrations.get(id).step_records
    assert (first.effect, second.effect) == (StepEffect.REFUSED, StepEffect.DONE)
    assert first.detail == "no ? such thing"


def test_the_reapers_report_is_kept_without_its_rounds(store: Store) -> None:
    id = begin(store).id
    report = replace(REPORT, rounds=tuple(make_rounds(3)), end=ReaperEnd.RUNNING)
    store.migrations.update(id, reaper=report)
    assert store.migrations.update(id, failure="x").reaper == replace(report, rounds=())
    store.migrations.add_rounds(id, [], REPORT)
    assert store.migrations.get(id).reaper == REPORT
    store.migrations.add_rounds(id, make_rounds(1))
    assert store.migrations.get(id).reaper == REPORT


def test_rounds_come_back_in_pages(store: Store) -> None:
    id = begin(store).id
    rounds = make_rounds(900)
    for start in range(0, 900, 7):
        store.migrations.add_rounds(id, rounds[start : start + 7])
    assert list(store.migrations.rounds(id)) == rounds
    found: list[ReaperRound] = []
    while page := store.migrations.rounds(id, found[-1].at_ms if found else None, 100):
        assert len(page) <= 101
        found += page
    assert found == rounds


def test_rounds_of_one_millisecond_are_never_separated_nor_go_back(store: Store) -> None:
    id = begin(store).id
    first, second, third = make_rounds(3)
    store.migrations.add_rounds(id, [second])
    store.migrations.add_rounds(id, [first, third])
    found = store.migrations.rounds(id, limit=1)
    assert found == (second, replace(first, at_ms=second.at_ms))


def test_only_the_newest_of_very_many_rounds_are_kept(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ROUNDS, "size", 10)
    monkeypatch.setattr(ROUNDS, "most", 3)
    id = begin(store).id
    rounds = make_rounds(75)
    store.migrations.add_rounds(id, rounds[:28])
    store.migrations.add_rounds(id, rounds[28:])
    assert list(store.migrations.rounds(id)) == rounds[50:]


def test_there_are_none_of_a_migration_that_is_not(store: Store) -> None:
    for call in (
        lambda: store.migrations.note_step(uuid4(), DUE),
        lambda: store.migrations.add_rounds(uuid4(), make_rounds(1)),
        lambda: store.migrations.rounds(uuid4()),
    ):
        with pytest.raises(NotFound):
            call()
