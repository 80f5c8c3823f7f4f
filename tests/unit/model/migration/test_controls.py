from dataclasses import replace

import pytest

from tests.support.examples.migrations import make_migration
from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.controls import Control, why_not
from vmtune.model.migration.disks import CopiedDisk
from vmtune.model.migration.record import MigrationState
from vmtune.model.migration.step_text import describe
from vmtune.model.migration.steps import StepAction
from vmtune.model.plan.outcome import Outcome, Status

RUNS = make_migration(wanted={"postcopy": True, "auto_converge": True}, state=MigrationState.ACTIVE)


def after(action: StepAction, effect: StepEffect = StepEffect.DONE) -> StepRecord:
    return StepRecord(None, 1000, 2, describe(action), "requested by a user", effect)


MEMORY = set(Control) - {Control.DISK_WRITES}
"""What is possible while the memory is sent."""


def possible(**fields: object) -> set[Control]:
    record = replace(RUNS, **fields)  # type: ignore[arg-type]  # as named
    return {control for control in Control if not why_not(control, record)}


def test_all_is_possible_with_a_migration_that_was_started_for_it() -> None:
    assert possible() == MEMORY


@pytest.mark.parametrize("state", [s for s in MigrationState if s is not MigrationState.ACTIVE])
def test_nothing_is_before_it_is_active_and_after(state: MigrationState) -> None:
    assert possible(state=state) == set()
    assert all(why_not(control, replace(RUNS, state=state)) for control in Control)


def test_what_was_not_switched_on_is_named() -> None:
    assert possible(wanted={}) == MEMORY - {Control.POSTCOPY, Control.THROTTLE}
    why = why_not(Control.THROTTLE, replace(RUNS, wanted={}))
    assert "auto_converge" in why


def test_what_qemu_runs_with_counts_more_than_what_was_asked_for() -> None:
    off = Outcome("postcopy", Status.OVERWRITTEN, True, False, "by virsh")
    assert Control.POSTCOPY not in possible(outcomes=(off,))
    on = Outcome("postcopy", Status.EFFECTIVE, True, True)
    assert Control.POSTCOPY in possible(wanted={}, outcomes=(on,))
    unread = Outcome("postcopy", Status.UNKNOWN, True, None)
    assert Control.POSTCOPY in possible(outcomes=(unread,))


def test_each_action_is_for_once() -> None:
    assert possible(step_records=(after(StepAction.PAUSE),)) == MEMORY - {Control.PAUSE}
    refused = after(StepAction.PAUSE, StepEffect.REFUSED)
    assert possible(step_records=(refused,)) == MEMORY
    assert possible(step_records=(after(StepAction.POSTCOPY),)) == set()


def test_while_disks_are_copied_only_what_helps_them_is_possible() -> None:
    disks = (CopiedDisk("vda", "/x"),)
    copies = possible(state=MigrationState.STARTING, disks=disks)
    assert copies == {Control.BANDWIDTH, Control.DISK_WRITES}
    assert possible(disks=disks) == MEMORY
