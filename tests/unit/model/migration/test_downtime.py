from dataclasses import replace

import pytest

from tests.support.examples.migrations import make_migration
from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.downtime import downtime_kept, limit_in_force_ms
from vmtune.model.migration.record import Migration, MigrationState, Totals
from vmtune.model.migration.step_text import describe, values_of
from vmtune.model.migration.steps import AfterSeconds, SetValues, Step, StepAction
from vmtune.model.plan.outcome import Outcome, Status

COMPLETED = make_migration(
    wanted={"downtime_limit_ms": 200},
    state=MigrationState.COMPLETED,
    totals=Totals(30_000, 694, 10, 1 << 30, 5),
)


def done(
    number: int | None, action: SetValues | StepAction, effect: StepEffect = StepEffect.DONE
) -> StepRecord:
    words = describe(action)
    return StepRecord(number, 1000, 2, words, "it was due", effect, values=values_of(action))


def with_users_limit(limit_ms: int, effect: StepEffect = StepEffect.DONE) -> Migration:
    action = SetValues((("downtime_limit_ms", limit_ms),))
    return replace(COMPLETED, step_records=(done(None, action, effect),))


def with_step(action: SetValues | StepAction) -> Migration:
    step = Step(AfterSeconds(5), action)
    return replace(COMPLETED, steps=(step,), step_records=(done(0, action),))


@pytest.mark.parametrize(
    ("limit_ms", "exceeded"), [(200, True), (693, True), (694, False), (2000, False)]
)
def test_the_profiles_limit_is_held_against_the_downtime(limit_ms: int, exceeded: bool) -> None:
    kept = downtime_kept(replace(COMPLETED, wanted={"downtime_limit_ms": limit_ms}))
    assert kept is not None
    assert (kept.downtime_ms, kept.limit_ms, kept.exceeded) == (694, limit_ms, exceeded)


@pytest.mark.parametrize("limit_ms", [500, 1500, 12_345, 2_000_000])
def test_a_higher_limit_that_was_set_meanwhile_counts(limit_ms: int) -> None:
    for record in (
        with_users_limit(limit_ms),
        with_users_limit(limit_ms, StepEffect.UNKNOWN),
        with_step(SetValues((("downtime_limit_ms", limit_ms),))),
    ):
        kept = downtime_kept(record)
        assert kept is not None
        assert kept.limit_ms == limit_ms


def test_what_was_refused_or_is_lower_changes_nothing() -> None:
    for record in (
        with_users_limit(5000, StepEffect.REFUSED),
        with_users_limit(100),
        with_step(SetValues((("max_bandwidth_bytes_per_s", 1 << 30),))),
    ):
        kept = downtime_kept(record)
        assert kept is not None
        assert kept.limit_ms == 200


def test_the_limit_in_force_is_what_was_set_last() -> None:
    assert limit_in_force_ms(COMPLETED) == 200
    assert limit_in_force_ms(replace(COMPLETED, wanted={})) is None
    left = Outcome("downtime_limit_ms", Status.NOT_APPLIED, 200, None, "left to the manager")
    assert limit_in_force_ms(replace(COMPLETED, outcomes=(left,))) is None
    once, again = with_users_limit(5000), with_users_limit(100)
    both = replace(COMPLETED, step_records=once.step_records + again.step_records)
    assert limit_in_force_ms(both) == 100
    assert limit_in_force_ms(with_users_limit(5000, StepEffect.REFUSED)) == 200
    assert limit_in_force_ms(with_step(SetValues((("downtime_limit_ms", 900),)))) == 900
    assert limit_in_force_ms(with_step(StepAction.PAUSE)) == 200


def test_nothing_is_judged_where_nothing_was_promised() -> None:
    assert downtime_kept(replace(COMPLETED, wanted={})) is None
    assert downtime_kept(replace(COMPLETED, state=MigrationState.CANCELLED)) is None
    assert downtime_kept(replace(COMPLETED, totals=None)) is None
    assert downtime_kept(with_step(StepAction.PAUSE)) is None
