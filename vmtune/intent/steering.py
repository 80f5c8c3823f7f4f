"""Steering a running migration towards its intent: a policy over samples.

At each synchronisation of QEMU's bitmap the course is computed for the settings in force, and for
those that the intent allows; the mildest that keep the deadline are set
(:mod:`vmtune.intent.setting`). Where no setting would end it, the downtime limit goes to the least
that remained lately, so that QEMU switches over at the next such minimum, as KubeVirt's VEP 248
proposes; to the highest where the guest is throttled, or half of the deadline has gone. Post-copy
and a pause come at the last moment that keeps the deadline. What cannot be kept any more is given
up: a goal that may be relaxed, or the migration.

A new process continues from what QEMU says is set and from the goals that were relaxed; what it has
not seen it learns at the next synchronisations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from vmtune.forecast.course import Conditions, Course
from vmtune.forecast.dirty_curve import concave
from vmtune.forecast.following import Followed, measured, observe, standing
from vmtune.intent.bounds import highest_limit_ms
from vmtune.intent.choosing import DIRTY_LIMIT, HELD_PERCENT
from vmtune.intent.setting import Scope, Setting, Standing, choose_setting, without_throttle
from vmtune.intent.throttling import DirtyLimit
from vmtune.model.host.dirty_rates import DirtyPoint
from vmtune.model.migration.intent import (
    MAX_SILENCE_MS,
    MAX_SLOWDOWN_PERCENT,
    TURN_MS,
    Goal,
    Intent,
    Means,
    Otherwise,
)
from vmtune.model.migration.record import QemuStatus, Sample
from vmtune.model.migration.stated_intent import Beyond
from vmtune.model.migration.steps import SetValues, StepAction

_SPARE_SHARE = 0.2
"""Of the deadline, what is kept in reserve as long as a setting allows it: what is expected of the
rest is wrong by this share at times, and a throttle takes effect with the next synchronisation."""
_LATE = 0.5
"""Within this share of the deadline nothing is gained by waiting for a minimum."""
_EASY_AFTER = 2
"""At how many synchronisations in a row the migration has to do without a throttle before it is
taken back: QEMU changes it at every second one."""
_LESS_SYNCS = 2
_LESS_SHARE = 0.7
"""In so many passes a guest dirties less than this share of what it did before: it has changed."""
_STAYS_SYNCS = 3
_STAYS_SHARE = 0.9
_UNKNOWN_BEND = 0.5
"""What is dirtied in a part of such a pass is between all of it and that part of it."""
_MINIMUM_SHARE = 1.05
"""The downtime limit exceeds by this share what suffices for the minimum of what remained."""
_LOWS = 5
"""Of how many synchronisations the minimum is taken."""
_STALLED_AFTER = 3
"""At how many synchronisations in a row no setting would end it."""
_LATE_SHARE, _LATE_MS = 1.3, 1000.0
"""A migration is late that goes on for this share and time longer than expected."""
_SURE_SHARE, _SURE_MS = 1.3, 500.0
"""What is expected to end does in this share and time more, or is not waited for."""
_SETTLED_SYNCS, _SETTLED_MS = 3, 5000
"""QEMU heeds a dirty limit at the second synchronisation after it that comes a second after the one
before, and measures for a second before it holds a vCPU back."""
_RESCUE_SHARE = 1.3
_RESCUE_MS = 2000.0
"""Post-copy or a pause begins when sending all that remains takes so much of the time left: the
throughput varies, and the guest still dirties until then."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """What the migration was started with, since capabilities cannot change while it runs.

    :param downtime_limit: whether it may be changed: not where the user has set it; likewise
        *bandwidth*.
    :param dirty_limit: by which the guest is throttled instead of by auto-converge; None where it
        is not.
    """

    auto_converge: bool = False
    postcopy: bool = False
    downtime_limit: bool = True
    dirty_limit: DirtyLimit | None = None
    bandwidth: bool = True


@dataclass(frozen=True, slots=True)
class Relax:
    """A goal is given up: from now on it does not count."""

    goal: Goal


@dataclass(frozen=True, slots=True)
class Act:
    """What is to be done now.

    :param reason: in a sentence, with the figures.
    :param forecast: what is expected with it; empty where that is not known.
    """

    action: SetValues | StepAction | Relax
    reason: str
    forecast: str = ""


@dataclass(frozen=True, slots=True)
class Steering:
    """The state between samples.

    :param intent: what was asked for; *relaxed* are the goals that were given up since.
    :param limit_ms: the downtime limit in force, likewise *throttle_percent*, the most that
        auto-converge may withhold, or what the dirty limit does.
    :param limited: at how many synchronisations, and when, the dirty limit was set last.
    :param syncs: synchronisations that were judged.
    :param endless: at how many in a row no setting would end it in time.
    :param lows: what remained at the last synchronisations.
    :param overdue_ms: when it should have ended by what was expected of the settings in force, and
        some more; a time of the migration.
    :param held: auto-converge's throttle is bounded by *throttle_percent*. It cannot be before the
        migration: QEMU wants the bound to be at least the first throttle, which is set with it.
    :param curve: of what the guest dirties, as measured before the migration; empty if it was not.
    :param easy: at how many synchronisations in a row less throttling would do.
    :param would: what would have been done last, where nothing is.
    :param beyond: what is left out of the silence for the downtime limit.
    :param done: post-copy, a pause or an abort was ordered: nothing more is to be done.
    :param failures: actions in a row that had no effect; until *waits_until_ms* none is tried
        again, by the migration's time.
    """

    intent: Intent
    able: Abilities
    limit_ms: int
    throttle_percent: int = 0
    relaxed: frozenset[Goal] = frozenset()
    seen: Followed = field(default_factory=Followed)
    syncs: int = 0
    endless: int = 0
    lows: tuple[int, ...] = ()
    overdue_ms: float = math.inf
    done: bool = False
    held: bool = True
    curve: tuple[DirtyPoint, ...] = ()
    easy: int = 0
    would: SetValues | StepAction | Relax | None = None
    limited: tuple[int, int] = (0, 0)
    beyond: Beyond | None = None
    failures: int = 0
    waits_until_ms: int = 0

    @property
    def goals(self) -> Intent:
        """What still has to be kept."""
        kept = self.intent
        for goal in self.relaxed:
            kept = kept.having(goal, None)
        return kept

    @property
    def highest_limit_ms(self) -> int:
        """Up to where the downtime limit may rise."""
        if not self.able.downtime_limit:
            return self.limit_ms
        if Goal.SILENCE in self.relaxed:
            return MAX_SILENCE_MS
        return max(self.limit_ms, highest_limit_ms(self.intent, self.beyond))

    @property
    def most_throttle_percent(self) -> int:
        """The hardest throttle that may be set; 0 for none."""
        if self.able.dirty_limit is not None:
            return self.able.dirty_limit.most_percent(self.goals)
        return self.goals.most_throttle_percent if self.able.auto_converge else 0


def steer(before: Steering, sample: Sample) -> tuple[Steering, list[Act]]:
    """What is to be done at *sample*, and the state after it. Samples come in the order of time."""
    seen = observe(before.seen, sample)
    state = replace(before, seen=seen)
    waits = sample.at_ms < state.waits_until_ms
    if state.done or waits or sample.status is not QemuStatus.ACTIVE:
        return state, []
    if state.able.auto_converge and not state.held:
        why = f"auto-converge is held at {HELD_PERCENT} % until more is needed"
        hold = SetValues((("max_cpu_throttle_percent", HELD_PERCENT),))
        return replace(state, held=True), [Act(hold, why)]
    fresh = seen.syncs > state.syncs
    if fresh:
        lows = (*state.lows, sample.remaining_bytes)[-_LOWS:]
        state = replace(state, syncs=seen.syncs, lows=lows)
    now = measured(seen, Conditions(1.0, state.limit_ms))
    acts: list[Act] = []
    if now is not None and fresh:
        state, acts = _adjust(state, sample, now)
    if not acts:
        state, acts = _correct(state, sample)
    if not acts:
        state, acts = _end(state, sample, now)
    return state, acts


def shadow(before: Steering, sample: Sample) -> tuple[Steering, list[Act]]:
    """What :func:`steer` would do at *sample*, where nothing of it is done: what is set stays. What
    it would set is told again only if that has changed."""
    after, acts = steer(before, sample)
    fresh = [act for act in acts if act.action != before.would]
    kept = replace(
        after,
        limit_ms=before.limit_ms,
        throttle_percent=before.throttle_percent,
        would=acts[-1].action if acts else before.would,
    )
    return kept, fresh


def _adjust(state: Steering, sample: Sample, now: Conditions) -> tuple[Steering, list[Act]]:
    """The mildest settings that keep the deadline."""
    stands = _standing(state, sample, now)
    if stands is None:
        return state, []
    scope = _scope(state)
    setting = choose_setting(scope, stands)
    if setting is not None:
        back = without_throttle(scope, stands) if state.throttle_percent else None
        state = replace(state, endless=0, easy=state.easy + 1 if back else 0)
        if back is not None and state.easy >= _EASY_AFTER:
            setting, state = back, replace(state, easy=0)
        changed, acts = _to(state, setting, _reason(state, setting))
        return (changed, acts) if acts else _overdue(changed, sample, now, setting)
    state = replace(state, endless=state.endless + 1, easy=0)
    throttle = max(state.throttle_percent, state.most_throttle_percent)
    limit, why = state.limit_ms, "no setting that the intent allows is expected to end it in time"
    if throttle or stands.left_ms < stands.spare_ms / _SPARE_SHARE * _LATE:
        limit = scope.throttled_limit_ms(throttle)
    elif state.endless >= _STALLED_AFTER:
        least_ms = now.sending_ms(min(state.lows))
        limit = min(state.highest_limit_ms, max(limit, math.ceil(least_ms * _MINIMUM_SHARE)))
        if limit > state.limit_ms:
            why += f"; the least that remained lately takes {least_ms:.0f} ms"
    return _to(state, Setting(limit, throttle, stands.course(limit, throttle)), why)


def _scope(state: Steering) -> Scope:
    return Scope(
        state.limit_ms,
        state.highest_limit_ms,
        state.throttle_percent,
        state.most_throttle_percent,
        thrifty=state.goals.max_silence_ms is None,
        turn_ms=TURN_MS if state.able.dirty_limit is None else state.able.dirty_limit.turn_ms,
        by_time=state.able.dirty_limit is None,
    )


def _correct(state: Steering, sample: Sample) -> tuple[Steering, list[Act]]:
    """Another dirty limit where QEMU withholds more or less by the present one than was meant."""
    limit, percent = state.able.dirty_limit, state.throttle_percent
    syncs, since_ms = state.limited
    settled = state.syncs - syncs >= _SETTLED_SYNCS and sample.at_ms - since_ms >= _SETTLED_MS
    if limit is None or not settled:
        return state, []
    slowdown = state.goals.max_slowdown_percent
    bound = MAX_SLOWDOWN_PERCENT if slowdown is None else slowdown
    other = limit.corrected(percent, sample.withheld_percent, bound)
    if other is None:
        return state, []
    able = replace(state.able, dirty_limit=other)
    changed = replace(state, able=able, limited=(state.syncs, sample.at_ms))
    why = f"{percent} % was to be withheld, and {sample.withheld_percent:.0f} % is"
    return changed, [Act(SetValues(((DIRTY_LIMIT, other.mib_per_s(percent)),)), why)]


def _standing(state: Steering, sample: Sample, now: Conditions) -> Standing | None:
    """None before the first synchronisation."""
    found = standing(_lately(state.seen), state.curve)
    if found is None:
        return None
    curve, moment = found
    if not state.curve and _stays(state.seen):
        curve = replace(curve, bend=_UNKNOWN_BEND)
    deadline_s = state.goals.deadline_s or 0
    return Standing(curve, moment, now, _left_ms(state, sample), deadline_s * 1000.0 * _SPARE_SHARE)


def _lately(seen: Followed) -> Followed:
    """Without what was seen before the guest came to write much less."""
    old, new = seen.points[:-_LESS_SYNCS], seen.points[-_LESS_SYNCS:]
    if not old:
        return seen
    curve = concave(old)
    less = all(p.dirty_bytes < _LESS_SHARE * curve.dirty_bytes(p.after_ms) for p in new)
    return replace(seen, points=new) if less else seen


def _stays(seen: Followed) -> bool:
    """Whether as much was dirtied in the last passes as before: the guest may write to all that it
    works on within a part of a pass."""
    dirtied = [point.dirty_bytes for point in seen.points[-_STAYS_SYNCS:]]
    return len(dirtied) > 1 and dirtied[-1] >= _STAYS_SHARE * max(dirtied)


def _overdue(
    state: Steering, sample: Sample, now: Conditions, setting: Setting
) -> tuple[Steering, list[Act]]:
    """A higher downtime limit where the migration goes on although it was expected to end: QEMU's
    own estimate of the throughput is lower then, or the guest writes more than is known."""
    if sample.at_ms <= state.overdue_ms:
        ends_ms = sample.at_ms + setting.course.left_ms * _LATE_SHARE + _LATE_MS
        return replace(state, overdue_ms=min(state.overdue_ms, ends_ms)), []
    needed = max(now.sending_ms(min(state.lows)), state.limit_ms) * _MINIMUM_SHARE
    limit = min(state.highest_limit_ms, math.ceil(needed))
    why = f"it should have ended with a downtime limit of {state.limit_ms} ms, and goes on"
    return _to(state, replace(setting, limit_ms=limit), why)


def _to(state: Steering, setting: Setting, reason: str) -> tuple[Steering, list[Act]]:
    """Sets what differs."""
    values: list[tuple[str, int]] = []
    if setting.limit_ms > state.limit_ms:
        values.append(("downtime_limit_ms", setting.limit_ms))
    limited = state.able.dirty_limit
    held = max(HELD_PERCENT, setting.throttle_percent)
    if limited is not None:
        if setting.throttle_percent != state.throttle_percent:
            values.append((DIRTY_LIMIT, limited.mib_per_s(setting.throttle_percent)))
    elif state.able.auto_converge and held != max(HELD_PERCENT, state.throttle_percent):
        values += [
            ("cpu_throttle_initial_percent", held),
            ("cpu_throttle_increment_percent", held),
            ("max_cpu_throttle_percent", held),
        ]
    if not values:
        return state, []
    changed = replace(
        state,
        limit_ms=max(state.limit_ms, setting.limit_ms),
        throttle_percent=setting.throttle_percent,
        overdue_ms=math.inf,
    )
    if setting.throttle_percent != state.throttle_percent and state.seen.last is not None:
        changed = replace(changed, limited=(state.syncs, state.seen.last.at_ms))
    return changed, [Act(SetValues(tuple(values)), reason, _expected(setting.course))]


def _end(state: Steering, sample: Sample, now: Conditions | None) -> tuple[Steering, list[Act]]:
    """What comes where no setting keeps the goals: post-copy, a pause, goals given up, an abort."""
    goals, left_ms = state.goals, _left_ms(state, sample)
    missed = left_ms <= 0
    stuck = state.endless >= _STALLED_AFTER
    sending_ms = math.inf if now is None else now.sending_ms(sample.remaining_bytes)
    last_moment = left_ms <= sending_ms * _RESCUE_SHARE + _RESCUE_MS and now is not None
    no_deadline = goals.deadline_s is None
    ending = last_moment and now is not None and _ends_soon(state, sample, now)
    if (last_moment and not ending and sending_ms <= left_ms) or (stuck and no_deadline):
        left = "" if no_deadline else f", and {left_ms / 1000:.1f} s are left"
        why = f"what remains takes {sending_ms / 1000:.1f} s to send{left}"
        if goals.allows(Means.POSTCOPY) and state.able.postcopy:
            return replace(state, done=True), [Act(StepAction.POSTCOPY, why)]
        if goals.allows(Means.PAUSE) and goals.max_silence_ms is None:
            said = f"the guest stands still for about {sending_ms / 1000:.1f} s"
            return replace(state, done=True), [Act(StepAction.PAUSE, why, said)]
    if missed and goals.otherwise is not Otherwise.RELAX:
        if goals.otherwise is Otherwise.REFUSE:
            why = f"the deadline of {goals.deadline_s} s has come, and the guest stays where it is"
            return replace(state, done=True), [Act(StepAction.ABORT, why)]
        why = "the deadline has come, and the intent says to keep trying"
        return _relaxed(state, Goal.DEADLINE, why)
    if missed or stuck:
        for goal in goals.relax:
            if goal not in state.relaxed:
                why = "the deadline has come" if missed else "it is not expected to end in time"
                return _relaxed(state, goal, why)
    if missed:
        why = f"the deadline of {goals.deadline_s} s has come, and nothing is left to relax"
        return replace(state, done=True), [Act(StepAction.ABORT, why)]
    return state, []


def _ends_soon(state: Steering, sample: Sample, now: Conditions) -> bool:
    """Whether it ends before the deadline by what is in force, even if that takes longer than is
    expected."""
    stands = _standing(state, sample, now)
    if stands is None or state.endless or sample.at_ms > state.overdue_ms:
        return False
    course = stands.course(state.limit_ms, sample.withheld_percent)
    return course.ends and course.left_ms * _SURE_SHARE + _SURE_MS <= stands.left_ms


def _relaxed(state: Steering, goal: Goal, why: str) -> tuple[Steering, list[Act]]:
    changed = replace(state, relaxed=state.relaxed | {goal}, endless=0)
    acts = []
    if goal is Goal.BANDWIDTH and state.able.bandwidth:
        acts.append(Act(SetValues((("max_bandwidth_bytes_per_s", 0),)), why))
    return changed, [*acts, Act(Relax(goal), why)]  # told once it is so


def _left_ms(state: Steering, sample: Sample) -> float:
    deadline_s = state.goals.deadline_s
    return math.inf if deadline_s is None else deadline_s * 1000.0 - sample.at_ms


def _reason(state: Steering, setting: Setting) -> str:
    if setting.throttle_percent > state.throttle_percent > 0:
        return f"{state.throttle_percent} % of throttling does not end it in time"
    if setting.throttle_percent > state.throttle_percent:
        return "without throttling no downtime limit within the silence is sure to end it in time"
    if setting.throttle_percent < state.throttle_percent:
        return "it ends early enough without throttling"
    return "with the present downtime limit it would not end, or take longer"


def _expected(course: Course) -> str:
    if not course.ends:
        return "it would not end"
    silence = f"{course.silence_ms:.0f} ms of silence"
    return f"ends in about {course.left_ms / 1000:.1f} s, {silence}"
