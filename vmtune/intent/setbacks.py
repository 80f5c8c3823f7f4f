"""What becomes of steering where not all goes its way: an action without effect, a value that
somebody else sets, a deadline that comes before there is anything to steer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from vmtune.intent.choosing import DIRTY_LIMIT
from vmtune.intent.steering import Act, Steering
from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.downtime import limit_set
from vmtune.model.migration.intent import Goal, Otherwise
from vmtune.model.migration.steps import StepAction

_AGAIN_MS, _AGAIN_MOST_MS = 1000, 30_000
"""How long nothing is tried after an action without effect: at first, and at most. It doubles."""
_DOUBLINGS = 5
_OF_LEFT = 1 / 8
"""But no longer than this share of the time left."""
_GIVEN_UP_AFTER = 4
"""What was refused so often before is not tried again."""
_BANDWIDTH = "max_bandwidth_bytes_per_s"
_THROTTLES = frozenset(
    {
        "max_cpu_throttle_percent",
        "cpu_throttle_initial_percent",
        "cpu_throttle_increment_percent",
        DIRTY_LIMIT,
    }
)


def came_of(
    before: Steering, after: Steering, act: Act, effect: StepEffect, at_ms: int
) -> Steering:
    """The state after *act*, which has led from *before* to *after*, had *effect*.

    What QEMU has refused is not in force, and neither is what the connection was lost over, as far
    as is known: it is tried again, after a while that gets longer. What is refused again and again
    is not, so that the rest can be done: a throttle, and post-copy at once.
    """
    if effect is StepEffect.DONE:
        return replace(after, failures=0)
    failures, refused = after.failures, effect is StepEffect.REFUSED
    often = failures >= _GIVEN_UP_AFTER
    if after.held and not before.held and (refused or often):
        return replace(after, failures=failures + 1)
    able = before.able
    if refused and act.action is StepAction.POSTCOPY:
        able = replace(able, postcopy=False)
    if refused and often and after.throttle_percent != before.throttle_percent:
        able = replace(able, auto_converge=False, dirty_limit=None)
    if refused and often and after.relaxed != before.relaxed:
        able = replace(able, bandwidth=False)
    waits_ms: float = min(_AGAIN_MOST_MS, _AGAIN_MS << min(failures, _DOUBLINGS))
    deadline_s = after.goals.deadline_s
    if deadline_s is not None and (left_ms := deadline_s * 1000 - at_ms) > 0:
        waits_ms = min(waits_ms, max(_AGAIN_MS, left_ms * _OF_LEFT))
    return replace(
        in_force(after, before),
        able=able,
        failures=failures + 1,
        waits_until_ms=at_ms + round(waits_ms),
    )


def in_force(state: Steering, other: Steering) -> Steering:
    """*state* with what is in force in *other*."""
    return replace(
        state,
        limit_ms=other.limit_ms,
        throttle_percent=other.throttle_percent,
        able=other.able,
        held=other.held,
        limited=other.limited,
        relaxed=other.relaxed,
        overdue_ms=other.overdue_ms,
        done=other.done,
    )


def left_to_others(state: Steering, records: Iterable[StepRecord]) -> Steering:
    """*state*, where steering leaves alone what others have set meanwhile: a user, one of the
    profile's steps, or what protects a guest with full rings.

    :param records: of the migration, in order.
    """
    for record in records:
        if record.steering or record.of_copies or record.effect is StepEffect.REFUSED:
            continue
        limit = limit_set(record)
        if limit is not None:
            able = replace(state.able, downtime_limit=False)
            state = replace(state, able=able, limit_ms=max(1, limit))
        if record.values.keys() & _THROTTLES:
            able = replace(state.able, auto_converge=False, dirty_limit=None)
            state = replace(state, able=able)
        if _BANDWIDTH in record.values:
            state = replace(state, able=replace(state.able, bandwidth=False))
    return state


def too_late(state: Steering, at_ms: int) -> tuple[Steering, list[Act]]:
    """What is to be done before QEMU sends memory, as while disks are copied: what has not begun
    by its deadline does not keep it, and is given up where the intent does not go on beyond it."""
    goals = state.goals
    goes_on = goals.otherwise is Otherwise.KEEP_TRYING or Goal.DEADLINE in goals.relax
    if goals.deadline_s is None or at_ms < goals.deadline_s * 1000 or goes_on:
        return state, []
    if state.done or at_ms < state.waits_until_ms:
        return state, []
    why = (
        f"the deadline of {goals.deadline_s} s has come before the guest's memory was sent, and "
        "the guest stays where it is"
    )
    return replace(state, done=True), [Act(StepAction.ABORT, why)]
