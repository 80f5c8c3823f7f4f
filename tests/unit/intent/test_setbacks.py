"""Steering where not all goes its way."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.simulated.control import sample
from vmtune.intent.bounds import first_limit_ms, highest_limit_ms
from vmtune.intent.setbacks import came_of, left_to_others, too_late
from vmtune.intent.steering import Abilities, Act, Relax, Steering, steer
from vmtune.intent.throttling import DirtyLimit
from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.intent import Goal, Intent, Means, Otherwise
from vmtune.model.migration.steps import SetValues, StepAction
from vmtune.model.tunables.tunable import Value
from vmtune.testing.migration_simulation import MIB, Guest, Simulated, run

PATH = 100 * MIB
ALL = Abilities(auto_converge=True, postcopy=True)
LOST, REFUSED = StepEffect.UNKNOWN, StepEffect.REFUSED
MAY = (Means.THROTTLE,)
RAISED = SetValues((("downtime_limit_ms", 200),))
HARDER = SetValues((("downtime_limit_ms", 200), ("max_cpu_throttle_percent", 50)))


def steered(intent: Intent, mib_per_s: float, effects: dict[int, StepEffect]) -> Simulated:
    there = Guest(1024 * MIB, 400 * MIB, lambda _: mib_per_s * MIB)
    start = Steering(intent, ALL, first_limit_ms(intent), held=False)
    return run(there, PATH, start, effects=effects)


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(st.integers(0, 4), st.sampled_from((LOST, REFUSED)), max_size=3),
    st.sampled_from((60.0, 90.0, 150.0)),
)
def test_an_intent_is_kept_although_some_actions_have_no_effect(
    effects: dict[int, StepEffect], mib_per_s: float
) -> None:
    intent = Intent(300, 120, 80, may=MAY)
    done = steered(intent, mib_per_s, effects)
    assert done.outcome == "completed", done
    assert done.total_ms <= 120_000
    assert max(done.limits) <= highest_limit_ms(intent)


@pytest.mark.parametrize("effect", [LOST, REFUSED])
def test_an_abort_without_effect_is_tried_again(effect: StepEffect) -> None:
    intent = Intent(100, 40)
    usual = steered(intent, 300, {})
    last = len(usual.acts) - 1
    assert usual.acts[last].action is StepAction.ABORT
    done = steered(intent, 300, {last: effect, last + 1: effect})
    assert done.outcome == "aborted"
    assert [act.action for act in done.acts[last:]] == [StepAction.ABORT] * 3
    assert 42_000 <= done.total_ms <= 45_000, "each time somewhat later"


def test_where_postcopy_is_refused_the_migration_is_given_up() -> None:
    intent = Intent(100, 40, may=(Means.POSTCOPY,))
    number = len(steered(intent, 300, {}).acts) - 1
    done = steered(intent, 300, {number: REFUSED})
    actions = [act.action for act in done.acts]
    assert actions.count(StepAction.POSTCOPY) == 1
    assert done.outcome == "aborted"
    assert done.total_ms <= 40_100
    assert steered(intent, 300, {number: LOST}).outcome == "postcopy"


def test_a_throttle_that_is_always_refused_does_not_hold_up_the_limit() -> None:
    state = Steering(Intent(500, 60, 80, may=MAY), ALL, 100)
    for number in range(5):
        assert state.able.auto_converge
        after = replace(state, limit_ms=200, throttle_percent=50)
        state = came_of(state, after, Act(HARDER, ""), REFUSED, 1000 * number)
        assert (state.limit_ms, state.throttle_percent) == (100, 0)
    assert not state.able.auto_converge
    assert state.able.postcopy


def test_to_hold_the_throttle_back_is_no_condition() -> None:
    """QEMU refuses it where a user has set a harder first throttle."""
    state = Steering(Intent(500, 60, 80, may=MAY), ALL, 100, held=False)
    after, (act,) = steer(state, sample(at_ms=100))
    assert came_of(state, after, act, REFUSED, 100).held
    lost = came_of(state, after, act, LOST, 100)
    assert not lost.held
    assert steer(lost, sample(at_ms=1000))[1] == []
    assert steer(lost, sample(at_ms=1100))[1] == [act]


def test_nothing_waits_beyond_the_deadline() -> None:
    state = replace(Steering(Intent(500, 60), ALL, 100), failures=9)
    after = replace(state, limit_ms=200)
    assert came_of(state, after, Act(RAISED, ""), REFUSED, 4_000).waits_until_ms == 11_000
    assert came_of(state, after, Act(RAISED, ""), REFUSED, 58_000).waits_until_ms == 59_000
    assert came_of(state, after, Act(RAISED, ""), REFUSED, 70_000).waits_until_ms == 100_000


def by_user(effect: StepEffect = StepEffect.DONE, **values: Value) -> StepRecord:
    """What it sets counts, and no words."""
    return StepRecord(None, 900, 2, "any words", "requested by a user", effect, values=values)


def test_what_others_have_set_meanwhile_is_left_to_them() -> None:
    state = Steering(Intent(500, 60, 80, 1000, may=MAY), ALL, 100)
    limit = left_to_others(state, [by_user(downtime_limit_ms=2000)])
    assert (limit.highest_limit_ms, limit.able.downtime_limit) == (2000, False)
    assert limit.able.auto_converge
    ring = replace(state, able=replace(ALL, dirty_limit=DirtyLimit(4 * MIB, 1e8)))
    for name in ("max_cpu_throttle_percent", "vcpu_dirty_limit_mib_per_s"):
        left = left_to_others(ring, [by_user(**{name: 9})])
        assert left.most_throttle_percent == 0
        assert left.able.downtime_limit
    own = replace(by_user(downtime_limit_ms=2000), steering=True)
    refused = by_user(REFUSED, downtime_limit_ms=2000)
    worded = replace(by_user(), action="set downtime_limit_ms to 2,000 ms")
    assert left_to_others(state, [own, refused, worded]) == state


def test_the_bandwidth_of_the_copies_of_disks_is_not_the_memorys() -> None:
    state = Steering(Intent(500, 60, None, 1000), Abilities(), 100)
    sets = by_user(max_bandwidth_bytes_per_s=9)
    assert not left_to_others(state, [sets]).able.bandwidth
    assert left_to_others(state, [replace(sets, of_copies=True)]).able.bandwidth


@pytest.mark.parametrize("pinned", [False, True])
def test_a_bandwidth_that_a_user_has_set_is_not_lifted(pinned: bool) -> None:
    relax = (Goal.BANDWIDTH,)
    goals = Intent(100, 10, None, 1000, (), Otherwise.RELAX, relax)
    state = Steering(goals, Abilities(), 25)
    if pinned:
        state = left_to_others(state, [by_user(max_bandwidth_bytes_per_s=2000)])
    _, acts = steer(state, sample(at_ms=10_100))
    lifted = SetValues((("max_bandwidth_bytes_per_s", 0),))
    assert [act.action for act in acts] == [*([] if pinned else [lifted]), Relax(Goal.BANDWIDTH)]


def test_what_has_not_begun_by_its_deadline_is_given_up() -> None:
    state = Steering(Intent(100, 10), Abilities(), 25)
    assert too_late(state, 9_999) == (state, [])
    after, (act,) = too_late(state, 10_000)
    assert act.action is StepAction.ABORT
    assert too_late(after, 10_500)[1] == []
    again = came_of(state, after, act, LOST, 10_000)
    assert too_late(again, 10_500)[1] == []
    assert too_late(again, 11_000)[1] == [act]


@pytest.mark.parametrize(
    ("otherwise", "relax", "given_up"),
    [
        (Otherwise.KEEP_TRYING, (), False),
        (Otherwise.RELAX, (Goal.SILENCE, Goal.DEADLINE), False),
        (Otherwise.RELAX, (Goal.SILENCE,), True),
    ],
)
def test_an_intent_may_go_on_beyond_its_deadline(
    otherwise: Otherwise, relax: tuple[Goal, ...], given_up: bool
) -> None:
    state = Steering(Intent(100, 10, otherwise=otherwise, relax=relax), Abilities(), 25)
    assert bool(too_late(state, 20_000)[1]) is given_up
