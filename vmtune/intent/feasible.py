"""Whether an intent can be kept, by the forecast; and if not, the nearest that can."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from vmtune import units
from vmtune.forecast.conditions import conditions_of
from vmtune.forecast.course import Course
from vmtune.forecast.needs import LEAST_BUSY
from vmtune.forecast.path import Throughput
from vmtune.forecast.probe import DirtyProbe
from vmtune.forecast.prospect import first_share, likely_course, used_bytes
from vmtune.intent.bounds import highest_limit_ms
from vmtune.intent.pinned import contradiction, limit_of, throttle_of
from vmtune.model.migration.intent import (
    GOAL_UNITS,
    MAX_BANDWIDTH,
    MAX_DEADLINE_S,
    MAX_SILENCE_MS,
    MAX_SLOWDOWN_PERCENT,
    Goal,
    Intent,
    Means,
)
from vmtune.model.migration.stated_intent import Beyond
from vmtune.model.migration.steps import Step
from vmtune.model.tunables.tunable import Value

_NEAR = 1.1
"""A forecast that exceeds the deadline by less than this share does not say that it is missed;
what is offered instead has as much to spare."""
_RESCUE_MS = 1000.0
"""What a switch to post-copy, or a pause, takes besides sending."""
_ROUNDS = 20
_IN_DOUBT = (
    ", and if its QEMU still throttles: it aborted a throttled migration, after which it may never "
    "throttle again until the VM is restarted or has moved"
)


@dataclass(frozen=True, slots=True)
class Basis:
    """What a judgement rests on.

    :param compressed: pages are compressed.
    :param history: the migrations that say what the path carries, the newest first.
    :param beyond: for how long guests stand still beyond their downtime limit on this path.
    :param copy_ms: how long local disks are copied before the memory; 0 where none is.
    :param deltas: by what changed in them (XBZRLE), which saves nothing in the first pass.
    :param pinned: what the user or the profile has set, which stays; likewise *steps*.
    :param by_time: a throttle withholds CPU time, and not what the guest dirties.
    :param means: that can be used: others that an intent allows do not count.
    :param throttle_in_doubt: QEMU may not withhold CPU time although it says so.
    """

    probe: DirtyProbe
    throughput: Throughput
    compressed: bool = False
    history: tuple[UUID, ...] = ()
    beyond: Beyond | None = None
    copy_ms: float = 0.0
    deltas: bool = False
    pinned: Mapping[str, Value] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    by_time: bool = True
    means: frozenset[Means] = frozenset(Means)
    throttle_in_doubt: bool = False

    @property
    def least_busy(self) -> float:
        """Of its CPU time, what the guest is taken to need at least: a throttle takes idle time
        first, and the dirty limit does not."""
        limited = not self.by_time or self.pinned.get("dirty_limit") is True
        return 1.0 if limited else LEAST_BUSY

    def course(self, limit_ms: int, throttle_percent: int, busy_share: float = 1.0) -> Course:
        """What is likely with a downtime limit and a throttle, of a guest that needs *busy_share*
        of its CPU time."""
        asked = {"downtime_limit_ms": limit_ms, "auto_converge": False, "xbzrle": self.deltas}
        limits = conditions_of({**self.pinned, **asked})
        on_path = (self.probe, self.throughput, limits, self.compressed)
        return likely_course(*on_path, throttle_percent, busy_share)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether an intent can be kept.

    :param kept: None where the forecast is too near to the bound to say.
    :param needs: the means without which it would not be; None where pre-copy alone does.
    :param total_ms: how long it is expected to take; None where it would not end.
    :param silence_ms: how long the guest is expected to stand still; likewise.
    :param reason: in a sentence, with the figures.
    """

    kept: bool | None
    needs: Means | None
    total_ms: float | None
    silence_ms: float | None
    reason: str


def judge(intent: Intent, basis: Basis) -> Judgement:
    """By the highest downtime limit and throttle that *intent* allows; then by post-copy; then by a
    pause, where they may be used."""
    intent = _within(intent, basis.means)
    beyond, silence = basis.beyond, intent.max_silence_ms
    broken = contradiction(intent, basis.pinned, basis.steps)
    if broken is not None:
        return broken_by(broken)
    if beyond is not None and beyond.measured and silence is not None and silence <= beyond.ms:
        said = (
            f"guests stand still for {beyond.ms} ms beyond their downtime limit on this path, by "
            f"{beyond.migrations} migrations"
        )
        return broken_by(said)
    deadline_ms = _deadline_ms(intent)
    course = _course(intent, basis, busy_share=basis.least_busy)
    spare = course.ends and basis.copy_ms + course.left_ms <= deadline_ms
    if not spare:  # a guest that needs all of its CPU time is slowed more
        course = _course(intent, basis)
    total_ms = basis.copy_ms + course.left_ms
    if course.ends and total_ms <= deadline_ms * _NEAR:
        sure = total_ms <= deadline_ms
        needs = Means.THROTTLE if _throttle_needed(intent, basis) else None
        still_ms = course.silence_ms + (0 if beyond is None else beyond.ms)
        if silence is not None and limit_of(basis.pinned) is None:  # the limit leaves room for it
            still_ms = min(still_ms, silence)
        sure &= silence is None or still_ms <= silence
        if needs is not None and _throttle_percent(intent, basis) > _throttle_allowed(intent):
            sure = False  # the user's throttle is harder
        took, still = _took(total_ms, basis), _time(still_ms)
        said = f"expected to end after {took}, with {still} of silence"
        if needs is not None:
            sure &= spare
            said += _if_busy(intent, basis, deadline_ms)
            if basis.throttle_in_doubt and basis.least_busy < 1:
                sure = False
                said += _IN_DOUBT
        return Judgement(sure or None, needs, total_ms, still_ms, said)
    sending_ms = _sending_ms(basis) + _RESCUE_MS
    rescued_ms = basis.copy_ms + sending_ms
    for means in (Means.POSTCOPY, Means.PAUSE):
        paused = means is Means.PAUSE
        if not intent.allows(means) or rescued_ms > deadline_ms:
            continue
        if paused and intent.max_silence_ms is not None:
            continue  # only once the silence is relaxed
        ended, alone = _took(rescued_ms, basis), _why(course, basis)
        said = f"{means} ends it within some {ended}; pre-copy alone {alone}"
        return Judgement(True, means, rescued_ms, sending_ms if paused else None, said)
    said = f"with all that may be used it {_why(course, basis)}"
    return Judgement(False, None, total_ms if course.ends else None, None, said)


def _if_busy(intent: Intent, basis: Basis, deadline_ms: float) -> str:
    """On what it depends, where the guest has to be throttled: idle CPU time is what a throttle
    takes first."""
    if basis.least_busy == 1:
        return ""
    low, high = 0, 100
    while high - low > 1:
        percent = (low + high) // 2
        course = _course(intent, basis, busy_share=percent / 100)
        if course.ends and basis.copy_ms + course.left_ms <= deadline_ms:
            high = percent
        else:
            low = percent
    return f", if the guest needs at least {high} % of its CPU time"


def broken_by(reason: str) -> Judgement:
    """An intent that cannot be kept whatever the guest does."""
    return Judgement(False, None, None, None, reason)


def nearest(intent: Intent, basis: Basis) -> tuple[Intent, ...]:
    """Intents that differ from *intent* in one goal or one means and can be kept, the nearest
    first; where none can, those that have a later deadline besides. Empty where none of that kind
    can."""
    offers = list(_offers(intent, basis)) or list(_later_offers(intent, basis))
    offers.sort(key=lambda offer: offer[0])
    return tuple(offer for _, offer in offers if judge(offer, basis).kept)


def unthrottled(basis: Basis, limit_ms: int) -> Course:
    """The course with that downtime limit, where the guest is not throttled."""
    return basis.course(limit_ms, 0)


def difference(intent: Intent, other: Intent) -> str:
    """In what *other* differs: ``a deadline of 95 s``, ``postcopy allowed``."""
    said = [
        f"{_CALLED[goal]} of {units.render(bound, GOAL_UNITS[goal])}"
        for goal in Goal
        if (bound := other.goal(goal)) is not None and bound != intent.goal(goal)
    ]
    slower = other.max_slowdown_percent != intent.max_slowdown_percent
    added = [means for means in other.may if means not in intent.may]
    added = [means for means in added if means is not Means.THROTTLE or not slower]
    if added:
        said.append(f"{', '.join(added)} allowed")
    return " and ".join(said)


_CALLED = {
    Goal.SILENCE: "a silence",
    Goal.DEADLINE: "a deadline",
    Goal.SLOWDOWN: "a slowdown",
    Goal.BANDWIDTH: "a bandwidth",
}
assert set(_CALLED) == set(Goal), "a goal without a word"


def _offers(intent: Intent, basis: Basis) -> Iterator[tuple[float, Intent]]:
    """Each with how far it is: the factor by which its goal is weaker."""

    def kept(other: Intent) -> bool:
        return judge(other, basis).kept is True

    for goal, loosest in _LOOSEST.items():
        most, bound = loosest, intent.goal(goal)
        if bound is None:
            continue
        loosened = _allowing(intent, Means.THROTTLE) if goal is Goal.SLOWDOWN else intent

        def suffices(value: int, goal: Goal = goal, loosened: Intent = loosened) -> bool:
            return kept(loosened.having(goal, value))

        if goal is Goal.SILENCE and intent.deadline_s is not None:
            most = min(most, intent.deadline_s * 1000 - 1)
        found = _least(bound, most, suffices)
        if found is None:
            continue
        if goal is Goal.SLOWDOWN:
            yield (100 - bound) / (100 - found), loosened.having(goal, found)
        else:
            roomy = min(most, math.ceil(found * _NEAR))
            yield roomy / bound, loosened.having(goal, roomy)
    for means in (Means.THROTTLE, Means.POSTCOPY):
        if means not in basis.means:
            continue
        if means is Means.THROTTLE and intent.max_slowdown_percent is not None:
            continue
        more = _allowing(intent, means)
        if not intent.allows(means) and kept(more):
            yield math.inf, more


def _later_offers(intent: Intent, basis: Basis) -> Iterator[tuple[float, Intent]]:
    """As :func:`_offers`, each with the earliest deadline with which it can be kept."""
    deadline_s = intent.deadline_s
    if deadline_s is None:
        return
    for far, other in _offers(intent.having(Goal.DEADLINE, MAX_DEADLINE_S), basis):

        def suffices(value: int, other: Intent = other) -> bool:
            return judge(other.having(Goal.DEADLINE, value), basis).kept is True

        found = _least(deadline_s, MAX_DEADLINE_S, suffices)
        if found is not None:
            longer = (other.max_silence_ms or 0) // 1000 + 1
            roomy = max(longer, min(MAX_DEADLINE_S, math.ceil(found * _NEAR)))
            yield max(far, roomy / deadline_s), other.having(Goal.DEADLINE, roomy)


_LOOSEST = {
    Goal.SILENCE: MAX_SILENCE_MS,
    Goal.DEADLINE: MAX_DEADLINE_S,
    Goal.SLOWDOWN: MAX_SLOWDOWN_PERCENT,
    Goal.BANDWIDTH: MAX_BANDWIDTH,
}
"""Another bandwidth helps where one that is set exceeds it: what is expected is by the present."""
assert set(_LOOSEST) == set(Goal), "a goal without its loosest bound"


def _least(bound: int, most: int, suffices: Callable[[int], bool]) -> int | None:
    """The least above *bound* that suffices, about; None where not even *most* does."""
    low, high = bound, most
    if high <= low or not suffices(high):
        return None
    for _ in range(_ROUNDS):
        middle = round((max(low, 1) * high) ** 0.5)
        if middle in (low, high):
            break
        if suffices(middle):
            high = middle
        else:
            low = middle
    return high


def _within(intent: Intent, means: frozenset[Means]) -> Intent:
    return replace(intent, may=tuple(each for each in intent.may if each in means))


def _allowing(intent: Intent, more: Means) -> Intent:
    may = tuple(means for means in Means if means in intent.may or means is more)
    return replace(intent, may=may)


def _course(
    intent: Intent, basis: Basis, throttle_percent: int | None = None, busy_share: float = 1.0
) -> Course:
    """By the highest throttle, or by *throttle_percent*."""
    limit = limit_of(basis.pinned)
    highest = highest_limit_ms(intent, basis.beyond) if limit is None else limit
    throttle = _throttle_percent(intent, basis) if throttle_percent is None else throttle_percent
    return basis.course(highest, throttle, busy_share)


def _throttle_percent(intent: Intent, basis: Basis) -> int:
    fastest = max(p.dirty_bytes / p.after_ms * 1000 for p in basis.probe.points)
    return throttle_of(basis.pinned, intent.most_throttle_percent, fastest)


def _throttle_allowed(intent: Intent) -> int:
    """The hardest by the goals, whoever throttles."""
    return _allowing(intent, Means.THROTTLE).most_throttle_percent


def _throttle_needed(intent: Intent, basis: Basis) -> bool:
    if not _throttle_percent(intent, basis):
        return False
    course = _course(intent, basis, 0)
    return not course.ends or basis.copy_ms + course.left_ms > _deadline_ms(intent)


def _deadline_ms(intent: Intent) -> float:
    return math.inf if intent.deadline_s is None else intent.deadline_s * 1000.0


def _sending_ms(basis: Basis) -> float:
    """How long all of the guest's memory takes."""
    share = first_share(basis.probe, basis.compressed and not basis.deltas).likely
    pace = basis.throughput.bytes_per_s.likely
    return used_bytes(basis.probe).likely * share / pace * 1000


def _why(course: Course, basis: Basis) -> str:
    if not course.ends:
        return "would not end"
    return f"takes about {_took(basis.copy_ms + course.left_ms, basis)}"


def _took(ms: float, basis: Basis) -> str:
    """A whole migration's time, with the part of it that its disks take."""
    return f"{_time(ms)} ({_time(basis.copy_ms)} for the disks)" if basis.copy_ms else _time(ms)


def _time(ms: float) -> str:
    return f"{ms / 1000:.3g} s" if ms >= 1000 else f"{ms:.0f} ms"
