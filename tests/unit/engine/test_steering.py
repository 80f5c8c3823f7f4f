"""Steering begins from what is set, and continues where another process left it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from tests.support.examples.migrations import make_migration
from tests.support.simulated.control import BUSY, MadeQemu, MadeTime, sample
from tests.support.simulated.control import VM as MADE
from vmtune.engine.controllers import Controllers
from vmtune.engine.steered import Steered
from vmtune.engine.steering import begin_steering
from vmtune.engine.steps.executor import StepExecutor
from vmtune.errors import HostUnreachable
from vmtune.intent.steering import Abilities, Steering
from vmtune.model.host.dirty_rates import DirtyPoint
from vmtune.model.host.facts import VmState
from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.intent import Goal, Intent, Means, Otherwise
from vmtune.model.migration.record import Migration
from vmtune.model.migration.stated_intent import StatedIntent, relaxing
from vmtune.model.migration.steps import StepAction

DONE = StepEffect.DONE
THROTTLING = Intent(500, 60, 30, may=(Means.THROTTLE,))


def stated(goals: Intent, **fields: Any) -> Migration:
    chosen = {"auto_converge": "so that", "downtime_limit_ms": "begins low"}
    usual = {
        "vm": MADE,
        "intent": StatedIntent(goals, chosen, (), "will be kept"),
        "wanted": {"auto_converge": True, "downtime_limit_ms": 95},
    }
    return make_migration(**(usual | fields))


def qemu(entries: int = 65536, **values: Any) -> MadeQemu:
    usual = {"downtime_limit_ms": 300, "max_cpu_throttle_percent": 99}
    return MadeQemu(MadeTime(), migrating=True, values=usual | values, entries=entries)


async def test_without_an_intent_nothing_is_steered() -> None:
    assert await begin_steering(make_migration(), qemu()) is None


async def test_it_continues_from_what_qemu_says_is_set() -> None:
    sets = {"max_cpu_throttle_percent": 25}
    step = StepRecord(None, 9, 2, "words", "late", StepEffect.DONE, steering=True, values=sets)
    record = stated(THROTTLING, step_records=(step,))
    found = await begin_steering(record, qemu(downtime_limit_ms=200, max_cpu_throttle_percent=25))
    assert found == Steering(THROTTLING, Abilities(True), 200, 25)


@pytest.mark.parametrize("slowdown", [30, 99])
async def test_what_qemu_may_throttle_before_it_is_steered_is_not_what_it_does(
    slowdown: int,
) -> None:
    goals = replace(THROTTLING, max_slowdown_percent=slowdown)
    fresh = await begin_steering(stated(goals), qemu(max_cpu_throttle_percent=99))
    assert fresh == Steering(goals, Abilities(True), 300, 0, held=False)


async def test_what_was_measured_before_is_known() -> None:
    curve = (DirtyPoint(64.0, 1e6), DirtyPoint(1024.0, 9e6))
    record = stated(THROTTLING, intent=StatedIntent(THROTTLING, {}, (), "", curve))
    found = await begin_steering(record, qemu())
    assert found is not None
    assert found.curve == curve


async def test_what_the_user_has_set_is_left_alone() -> None:
    intent = StatedIntent(THROTTLING, {}, ("downtime_limit_ms", "auto_converge"), "")
    found = await begin_steering(stated(THROTTLING, intent=intent), qemu())
    assert found is not None
    assert found.able == Abilities(auto_converge=False, downtime_limit=False)
    assert found.highest_limit_ms == 300


async def test_goals_that_were_given_up_stay_so() -> None:
    order = (Goal.SILENCE, Goal.DEADLINE)
    intent = replace(THROTTLING, otherwise=Otherwise.RELAX, relax=order)
    gone = StepRecord(None, 9, 2, relaxing(Goal.SILENCE), "late", StepEffect.DONE)
    found = await begin_steering(stated(intent, step_records=(gone,)), qemu())
    assert found is not None
    assert found.goals.max_silence_ms is None
    assert found.highest_limit_ms > 500


async def test_an_action_is_recorded_with_its_reason() -> None:
    told: list[StepRecord] = []

    async def note(record: StepRecord, before: object) -> None:
        told.append(record)

    made = qemu(max_cpu_throttle_percent=99)
    start = Steering(THROTTLING, Abilities(True), 95, held=False)
    controllers = Controllers(made, MADE, note_step=note, steering=start)
    await controllers.on_sample(sample(at_ms=100))
    (done,) = controllers.step_records
    assert (done.action, done.effect) == ("set max_cpu_throttle_percent to 1 %", StepEffect.DONE)
    assert done.reason
    assert [record.effect for record in told] == [StepEffect.PENDING, StepEffect.DONE]


async def relaxing_bandwidth(refusals: int, *at_ms: int) -> tuple[MadeQemu, Controllers]:
    """Steering beyond the deadline, of a QEMU that refuses to be told so often."""
    goals = Intent(100, 10, None, 1000, (), Otherwise.RELAX, (Goal.BANDWIDTH, Goal.SILENCE))
    made = qemu(max_bandwidth_bytes_per_s=1000)
    made.errors["write"] = [BUSY] * refusals
    controllers = Controllers(made, MADE, steering=Steering(goals, Abilities(), 25))
    for each in at_ms:
        await controllers.on_sample(sample(at_ms=each))
    return made, controllers


async def test_a_goal_is_given_up_once_what_that_asks_for_is_done() -> None:
    made, controllers = await relaxing_bandwidth(1, 10_100, 12_000)
    words = [(record.action, record.effect) for record in controllers.step_records]
    lifts = "set max_bandwidth_bytes_per_s to 0 (no limit)"
    assert words == [
        (lifts, StepEffect.REFUSED), (lifts, DONE), (relaxing(Goal.BANDWIDTH), DONE)
    ]  # fmt: skip
    assert made.values["max_bandwidth_bytes_per_s"] == 0


async def test_what_is_always_refused_does_not_keep_further_goals_from_being_given_up() -> None:
    _, controllers = await relaxing_bandwidth(99, *range(10_100, 900_000, 20_000))
    done = [record.action for record in controllers.step_records if record.effect is DONE]
    assert done[:2] == [relaxing(Goal.BANDWIDTH), relaxing(Goal.SILENCE)]


@pytest.mark.parametrize("action", [StepAction.ABORT, StepAction.PAUSE])
async def test_an_abort_or_pause_by_steering_counts_as_one(action: StepAction) -> None:
    words = {StepAction.ABORT: "abort the migration", StepAction.PAUSE: "pause the guest"}
    record = StepRecord(None, 9, 2, words[action], "late", StepEffect.DONE)
    migration = stated(THROTTLING, step_records=(record,))
    assert migration.did(action) == record
    found = await begin_steering(migration, qemu())
    assert found is not None
    assert found.done


@pytest.mark.parametrize("effect", [StepEffect.PENDING, StepEffect.UNKNOWN])
@pytest.mark.parametrize(
    ("words", "state", "done"),
    [
        ("abort the migration", VmState.RUNNING, False),
        ("switch to post-copy", VmState.RUNNING, False),
        ("pause the guest", VmState.RUNNING, False),
        ("pause the guest", VmState.PAUSED, True),
    ],
)
async def test_what_was_under_way_at_the_end_of_a_process_may_not_have_been_done(
    words: str, state: VmState, done: bool, effect: StepEffect
) -> None:
    """As long as QEMU sends, it was neither aborted nor switched to post-copy."""
    record = StepRecord(None, 9, 2, words, "late", effect, steering=True)
    made = qemu()
    made.state = state
    found = await begin_steering(stated(THROTTLING, step_records=(record,)), made)
    assert found is not None
    assert found.done is done


async def test_what_a_user_has_set_meanwhile_is_left_alone_by_the_next_process() -> None:
    sets = {"downtime_limit_ms": 700}
    theirs = StepRecord(None, 9, 2, "any words", "as asked", StepEffect.DONE, values=sets)
    found = await begin_steering(
        stated(THROTTLING, step_records=(theirs,)), qemu(downtime_limit_ms=700)
    )
    assert found is not None
    assert found.highest_limit_ms == 700
    assert found.able == Abilities(True, downtime_limit=False)


async def test_in_shadow_all_is_told_and_nothing_is_done() -> None:
    """The guest dirties as much as is sent: each act is told once, as long as it stays."""
    goals = replace(THROTTLING, max_silence_ms=100, deadline_s=20)
    record = stated(goals, intent=StatedIntent(goals, {"auto_converge": ""}, (), "", shadow=True))
    made = qemu()
    start = await begin_steering(replace(record, wanted={}), made)
    assert start is not None
    assert start.able.auto_converge
    controllers = Controllers(made, MADE, steering=start, shadow=True)
    mib, page = 1 << 20, 4096
    for tick in range(220):
        at_ms, sent = tick * 100, tick * 10 * mib
        remaining = 100 * mib - sent % (100 * mib)
        await controllers.on_sample(
            replace(
                sample(at_ms=at_ms, iteration=1 + tick // 10, remaining_bytes=remaining),
                transferred_bytes=sent,
                normal_pages=sent // page,
            )
        )
    told = controllers.step_records
    assert {record.effect for record in told} == {StepEffect.REFUSED}
    assert all("shadow" in record.detail for record in told)
    actions = [record.action for record in told]
    assert any("max_cpu_throttle_percent to 30 %" in action for action in actions), actions
    assert actions[-1] == "abort the migration"
    assert all(one != other for one, other in pairwise(actions))
    assert made.writes == []
    assert not {"abort_migration", "pause", "start_postcopy", "write"} & set(made.calls)


LIMITED = {"dirty_limit": True, "vcpu_dirty_limit_mib_per_s": 1 << 20, "downtime_limit_ms": 95}
WRITES = (DirtyPoint(100.0, 40 * (1 << 20)), DirtyPoint(4000.0, 400 * (1 << 20)))
"""400 MiB/s at first."""


def limited(**fields: Any) -> Migration:
    goals = replace(THROTTLING, max_slowdown_percent=99)
    intent = StatedIntent(goals, dict.fromkeys(LIMITED, "so that"), (), "", WRITES)
    return stated(goals, **({"intent": intent, "wanted": LIMITED} | fields))


@pytest.mark.parametrize(
    ("mib_per_s", "percent", "goes_on_with"),
    [(1 << 20, 0, 1 << 20), (100, 75, 100), (5, 92, 5), (1, 92, 5)],
)
async def test_it_continues_from_the_dirty_limit_that_is_set(
    mib_per_s: int, percent: int, goes_on_with: int
) -> None:
    """One that is lower than the intent allows was set because no vCPU came to a higher one; it
    goes on with none that is lower than what fills a ring of 4 MiB in time."""
    made = qemu(entries=1024, vcpu_dirty_limit_mib_per_s=mib_per_s)
    found = await begin_steering(limited(), made)
    assert found is not None
    assert found.throttle_percent == percent
    ring = found.able.dirty_limit
    assert ring is not None
    assert not found.able.auto_converge
    assert ring.mib_per_s(percent) == goes_on_with
    assert ring.ring_bytes == 4 << 20


@pytest.mark.parametrize("shadow", [False, True])
async def test_it_begins_once_the_source_says_what_is_set(shadow: bool) -> None:
    """Before that the hardest throttle would be taken for the one in force."""
    made = qemu(max_cpu_throttle_percent=25)
    made.errors["read"] = [HostUnreachable("a does not answer"), HostUnreachable("still not")]
    sets = {"max_cpu_throttle_percent": 25}
    step = StepRecord(None, 9, 2, "words", "late", StepEffect.DONE, steering=True, values=sets)
    record = stated(THROTTLING, step_records=(step,))
    with pytest.raises(HostUnreachable):
        await begin_steering(record, made)
    begin = partial(begin_steering, record, made)
    steered = Steered(begin, StepExecutor(made, MADE, ()), shadow=shadow)
    for at_ms in (100, 200):
        await steered.on_sample(sample(at_ms=at_ms))
    assert made.calls.count("read") == 3
    assert steered.steering.throttle_percent == 25


async def test_without_its_ring_nothing_is_throttled_by_the_dirty_limit() -> None:
    found = await begin_steering(limited(), qemu(entries=0))
    assert found is not None
    assert found.able == Abilities()
    assert found.most_throttle_percent == 0


async def test_a_dirty_limit_of_the_user_is_not_steered() -> None:
    intent = StatedIntent(THROTTLING, {}, ("dirty_limit",), "", WRITES)
    made = qemu(entries=1024, vcpu_dirty_limit_mib_per_s=9)
    found = await begin_steering(limited(intent=intent), made)
    assert found is not None
    assert found.able.dirty_limit is None
