"""Steering a running migration towards its intent: a policy over samples.

At each synchronisation of QEMU's bitmap the course is computed for the settings in force, and for
those that the intent allows (:mod:`vmtune.forecast.course`). Of these the mildest that keep the
deadline with some time to spare are set, else the mildest that keep it: first the downtime limit
rises, then the guest is throttled; a throttle that is no longer needed is taken back. Where no
setting would end it, the downtime limit goes to the least that remained lately, so that QEMU
switches over at the next such minimum, as KubeVirt's VEP 248 proposes. Post-copy and a pause come
at the last moment that keeps the deadline. What cannot be kept any more is given up: a goal that
may be relaxed, or the migration.

A new process continues from what QEMU says is set and from the goals that were relaxed; what it has
not seen it learns at the next synchronisations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from vmtune.forecast.course import Conditions, Course, Moment, follow
from vmtune.forecast.dirty_curve import DirtyCurve
from vmtune.forecast.following import Followed, measured, observe, standing
from vmtune.intent.bounds import highest_limit_ms
from vmtune.intent.choosing import HELD_PERCENT
from vmtune.model.migration.intent import MAX_SILENCE_MS, Goal, Intent, Means, Otherwise
from vmtune.model.migration.record import QemuStatus, Sample
from vmtune.model.migration.steps import SetValues, StepAction

_LIMITS = 8
"""How many downtime limits are compared between the present and the highest one."""
_THROTTLE_STEP = 5
_WORTH_MS = 500.0
_WORTH_SHARE = 1.15
"""A higher downtime limit within the silence that is allowed is worth it where the rest takes
longer by this share and time without."""
_NEAR = 1.1
_SPARE_SHARE = 0.2
"""Of the deadline, what is kept in reserve as long as a setting allows it: what is expected of the
rest is wrong by this share at times, and a throttle takes effect with the next synchronisation."""
_MINIMUM_SHARE = 1.05
"""The downtime limit exceeds by this share what suffices for the minimum of what remained."""
_LOWS = 5
"""Of how many synchronisations the minimum is taken."""
_STALLED_AFTER = 3
"""At how many synchronisations in a row no setting would end it."""
_LATE_SHARE, _LATE_MS = 1.3, 1000.0
"""A migration is late that goes on for this share and time longer than expected."""
_RESCUE_SHARE = 1.3
_RESCUE_MS = 2000.0
"""Post-copy or a pause begins when sending all that remains takes so much of the time left: the
throughput varies, and the guest still dirties until then."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """What the migration was started with, since capabilities cannot change while it runs."""

    auto_converge: bool = False
    postcopy: bool = False
    downtime_limit: bool = True
    """Whether the downtime limit may be changed: not where the user has set it."""


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
        auto-converge may withhold.
    :param syncs: synchronisations that were judged.
    :param endless: at how many in a row no setting would end it in time.
    :param lows: what remained at the last synchronisations.
    :param overdue_ms: when it should have ended by what was expected of the settings in force, and
        some more; a time of the migration.
    :param held: auto-converge's throttle is bounded by *throttle_percent*. It cannot be before the
        migration: QEMU wants the bound to be at least the first throttle, which is set with it.
    :param done: post-copy, a pause or an abort was ordered: nothing more is to be done.
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
        return max(self.limit_ms, highest_limit_ms(self.intent))

    @property
    def most_throttle_percent(self) -> int:
        """The hardest throttle that may be set; 0 for none."""
        return self.goals.most_throttle_percent if self.able.auto_converge else 0


def steer(before: Steering, sample: Sample) -> tuple[Steering, list[Act]]:
    """What is to be done at *sample*, and the state after it. Samples come in the order of time."""
    seen = observe(before.seen, sample)
    state = replace(before, seen=seen)
    if state.done or sample.status is not QemuStatus.ACTIVE:
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
        state, acts = _end(state, sample, now)
    return state, acts


@dataclass(frozen=True, slots=True)
class _Setting:
    limit_ms: int
    throttle_percent: int
    course: Course


def _adjust(state: Steering, sample: Sample, now: Conditions) -> tuple[Steering, list[Act]]:
    """The mildest settings that keep the deadline."""
    stands = standing(state.seen)
    if stands is None:
        return state, []
    left_ms = _left_ms(state, sample)
    deadline_s = state.goals.deadline_s or 0
    spare_ms = deadline_s * 1000.0 * _SPARE_SHARE
    setting = _mildest(state, stands, now, left_ms - spare_ms) or _mildest(
        state, stands, now, left_ms
    )
    if setting is not None:
        changed, acts = _to(replace(state, endless=0), setting, _reason(state, setting))
        return (changed, acts) if acts else _overdue(changed, sample, now, setting)
    state = replace(state, endless=state.endless + 1)
    hardest = state.most_throttle_percent
    limit = state.limit_ms
    if state.endless >= _STALLED_AFTER:
        needed = now.sending_ms(min(state.lows)) * _MINIMUM_SHARE
        limit = min(state.highest_limit_ms, max(limit, math.ceil(needed)))
    throttle = max(state.throttle_percent, hardest)
    course = _follow(stands, now, limit, throttle)
    why = "no setting that the intent allows is expected to end it in time"
    if limit > state.limit_ms:
        why += f"; the least that remained lately takes {now.sending_ms(min(state.lows)):.0f} ms"
    return _to(state, _Setting(limit, throttle, course), why)


def _overdue(
    state: Steering, sample: Sample, now: Conditions, setting: _Setting
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


def _mildest(
    state: Steering, stands: tuple[DirtyCurve, Moment], now: Conditions, left_ms: float
) -> _Setting | None:
    """None where none keeps the deadline."""
    for throttle in _throttles(state):
        tried = [
            _Setting(limit, throttle, _follow(stands, now, limit, throttle))
            for limit in _limits(state)
        ]
        roomy = _NEAR if throttle < state.throttle_percent else 1.0
        good = [
            each for each in tried if each.course.ends and each.course.left_ms * roomy <= left_ms
        ]
        if not good:
            continue
        if state.goals.max_silence_ms is None:
            return good[0]
        best_ms = min(each.course.left_ms for each in good)
        enough = best_ms * _WORTH_SHARE + _WORTH_MS
        if good[0].course.left_ms <= enough:
            return good[0]
        return next(each for each in good if each.course.left_ms <= best_ms * _NEAR)
    return None


def _throttles(state: Steering) -> Iterator[int]:
    """From none to the hardest."""
    most = state.most_throttle_percent
    yield 0
    yield from range(_THROTTLE_STEP, most, _THROTTLE_STEP)
    if most:
        yield most


def _limits(state: Steering) -> Iterator[int]:
    """From the present to the highest."""
    low, high = state.limit_ms, state.highest_limit_ms
    for number in range(_LIMITS):
        limit = round(low * (high / low) ** (number / (_LIMITS - 1)))
        yield max(low, min(high, limit))
        if low == high:
            return


def _follow(
    stands: tuple[DirtyCurve, Moment], now: Conditions, limit_ms: int, throttle: int
) -> Course:
    curve, moment = stands
    return follow(
        curve,
        replace(moment, throttle_percent=throttle),
        replace(now, downtime_limit_ms=limit_ms),
    )


def _to(state: Steering, setting: _Setting, reason: str) -> tuple[Steering, list[Act]]:
    """Sets what differs."""
    values: list[tuple[str, int]] = []
    if setting.limit_ms > state.limit_ms:
        values.append(("downtime_limit_ms", setting.limit_ms))
    held = max(HELD_PERCENT, setting.throttle_percent)
    if state.able.auto_converge and held != max(HELD_PERCENT, state.throttle_percent):
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
    return changed, [Act(SetValues(tuple(values)), reason, _expected(setting.course))]


def _end(state: Steering, sample: Sample, now: Conditions | None) -> tuple[Steering, list[Act]]:
    """What comes where no setting keeps the goals: post-copy, a pause, goals given up, an abort."""
    goals, left_ms = state.goals, _left_ms(state, sample)
    missed = left_ms <= 0
    stuck = state.endless >= _STALLED_AFTER
    sending_ms = math.inf if now is None else now.sending_ms(sample.remaining_bytes)
    last_moment = left_ms <= sending_ms * _RESCUE_SHARE + _RESCUE_MS and now is not None
    no_deadline = goals.deadline_s is None
    ending = not stuck and state.syncs > 0 and state.endless == 0
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


def _relaxed(state: Steering, goal: Goal, why: str) -> tuple[Steering, list[Act]]:
    changed = replace(state, relaxed=state.relaxed | {goal}, endless=0)
    acts = [Act(Relax(goal), why)]
    if goal is Goal.BANDWIDTH:
        acts.append(Act(SetValues((("max_bandwidth_bytes_per_s", 0),)), why))
    return changed, acts


def _left_ms(state: Steering, sample: Sample) -> float:
    deadline_s = state.goals.deadline_s
    return math.inf if deadline_s is None else deadline_s * 1000.0 - sample.at_ms


def _reason(state: Steering, setting: _Setting) -> str:
    if setting.throttle_percent > state.throttle_percent:
        return "no downtime limit within the silence alone ends it in time"
    if setting.throttle_percent < state.throttle_percent:
        return "it ends in time with less throttling"
    return "with the present downtime limit it would not end, or take longer"


def _expected(course: Course) -> str:
    if not course.ends:
        return "it would not end"
    silence = f"{course.silence_ms:.0f} ms of silence"
    return f"ends in about {course.left_ms / 1000:.1f} s, {silence}"
