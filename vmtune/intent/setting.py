"""Which downtime limit and throttle end a migration in time at the least cost for the guest.

First the downtime limit rises, up to what the silence allows; only where no limit suffices the
guest is throttled, at the highest limit. What is expected of the rest is often wrong, so that a
setting has to keep the deadline with some time in reserve and for a guest that writes more than is
known, as long as there is one that does.

A throttle costs the guest its percentage for as long as it lasts: a mild one that just keeps the
deadline can cost more than a hard one that ends it soon. Of the throttles that keep it, it is the
mildest of those that cost about the least. QEMU changes a throttle only at every second
synchronisation: one that does not suffice is raised by much, and one is taken back only if the
migration ends early without it.

Auto-converge withholds CPU time, and a guest that does not need all of its CPU time does as much
under a mild throttle as without. How much it needs shows only once it is throttled. So the first
throttle has to suffice for a guest that needs half of it, unless there is time for another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from vmtune.forecast.course import Conditions, Course, Moment, follow
from vmtune.forecast.dirty_curve import DirtyCurve
from vmtune.forecast.needs import LEAST_BUSY
from vmtune.model.migration.intent import TURN_MS, still_ms

_LIMITS = 8
"""How many downtime limits are compared between the present and the highest one."""
_THROTTLE_STEP = 5
_WORTH_MS = 500.0
_WORTH_SHARE = 1.15
"""A higher downtime limit within the silence that is allowed is worth it where the rest takes
longer by this share and time without."""
_NEAR = 1.1
_MORE = 1.3
"""A guest may come to write more than is known by this share."""
_LESS = 0.85
"""Or less by this: of what was seen the highest counts."""
_AMPLE = 0.65
"""An end within this share of the time left leaves time to see whether it comes."""
_COST_SHARE = 1.25
"""Throttles that cost the guest about the least differ by this share."""
_TRIED_PASSES = 3
"""What a throttle without effect costs: QEMU heeds it at the second synchronisation, the one after
that shows what it did, and the next throttle waits for another."""
_WORTH_TAKING_BACK_MS = 1000.0
"""A throttle is taken back where the guest would otherwise lose more of its work."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a migration stands.

    :param curve: of the guest, not throttled.
    :param now: with the throughput that was measured; its downtime limit does not count.
    :param left_ms: until the deadline; infinite without one.
    :param spare_ms: of that, what is to be kept in reserve.
    """

    curve: DirtyCurve
    moment: Moment
    now: Conditions
    left_ms: float
    spare_ms: float
    _known: dict[tuple[int, float, float, float], Course] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def pass_ms(self) -> float:
        """How long it takes to send what remains."""
        return self.now.sending_ms(self.moment.remaining_bytes)

    def course(
        self, limit_ms: int, throttle_percent: float, writes: float = 1.0, busy_share: float = 1.0
    ) -> Course:
        """What is expected with these settings, where the guest writes *writes* times as much and
        needs *busy_share* of its CPU time."""
        asked = (limit_ms, throttle_percent, writes, busy_share)
        if asked not in self._known:
            self._known[asked] = self._follow(*asked)
        return self._known[asked]

    def _follow(
        self, limit_ms: int, throttle_percent: float, writes: float, busy_share: float
    ) -> Course:
        curve = self.curve if writes == 1.0 else self.curve.times(writes)
        moment = replace(self.moment, throttle_percent=throttle_percent)
        there = replace(self.now, downtime_limit_ms=limit_ms, busy_share=busy_share)
        return follow(curve, moment, there)


@dataclass(frozen=True, slots=True)
class Scope:
    """What is set, and what may be.

    :param highest_limit_ms: likewise the present one is the lowest that may be.
    :param throttle_percent: in force; 0 for none.
    :param most_throttle_percent: 0: the guest must not be throttled.
    :param thrifty: silence is no goal: of limits that suffice the lowest is enough.
    :param turn_ms: for how long a throttled guest runs between two times of standing still.
    :param by_time: the throttle withholds CPU time, and not what the guest dirties.
    """

    limit_ms: int
    highest_limit_ms: int
    throttle_percent: int
    most_throttle_percent: int
    thrifty: bool = False
    turn_ms: float = TURN_MS
    by_time: bool = True

    def limits(self) -> Iterator[int]:
        """From the present to the highest."""
        low, high = self.limit_ms, self.highest_limit_ms
        if low >= high:
            yield low
            return
        for number in range(_LIMITS):
            limit = round(low * (high / low) ** (number / (_LIMITS - 1)))
            yield max(low, min(high, limit))

    def throttled_limit_ms(self, throttle_percent: int) -> int:
        """The highest downtime limit with a throttle: the guest may stand still for a turn of it
        just before it is stopped."""
        if self.thrifty:
            return self.highest_limit_ms
        return max(self.limit_ms, self.highest_limit_ms - still_ms(throttle_percent, self.turn_ms))

    def harder(self) -> Iterator[int]:
        """Throttles to try: harder than the present one by so much that the difference shows."""
        most, present = self.most_throttle_percent, self.throttle_percent
        first = 100 - (100 - present) // 2 if present else _THROTTLE_STEP
        yield from range(first - first % -_THROTTLE_STEP, most, _THROTTLE_STEP)
        if most > present:
            yield most


@dataclass(frozen=True, slots=True)
class Setting:
    """A downtime limit and a throttle, and what is expected with them.

    :param surely: also where the guest writes more, and with time in reserve.
    """

    limit_ms: int
    throttle_percent: int
    course: Course
    surely: bool = True


def choose_setting(scope: Scope, stands: Standing) -> Setting | None:
    """The mildest setting that keeps the deadline; None where none does."""
    within_ms = stands.left_ms - stands.spare_ms
    if scope.throttle_percent:
        return _throttled(scope, stands, within_ms)
    return (
        _unthrottled(scope, stands, within_ms, _MORE)
        or _unthrottled(scope, stands, stands.left_ms * _AMPLE)
        or _first(scope, stands, within_ms, _MORE)
        or _unthrottled(scope, stands, stands.left_ms)
        or _first(scope, stands, stands.left_ms)
    )


def without_throttle(scope: Scope, stands: Standing) -> Setting | None:
    """The setting that ends it early enough without the throttle in force; None where none does, or
    where it would spare the guest little."""
    throttle = scope.throttle_percent
    limit = scope.throttled_limit_ms(throttle)
    present = stands.course(limit, throttle)
    if present.ends and present.left_ms * throttle / 100 < _WORTH_TAKING_BACK_MS:
        return None
    within_ms = (stands.left_ms - stands.spare_ms) * _AMPLE
    return _unthrottled(scope, stands, within_ms, _MORE)


def _throttled(scope: Scope, stands: Standing, within_ms: float) -> Setting | None:
    """The present throttle as long as it suffices, else a harder one."""
    limit = scope.throttled_limit_ms(scope.throttle_percent)
    present = stands.course(limit, scope.throttle_percent)
    surely = _in_time(stands.course(limit, scope.throttle_percent, _MORE), within_ms)
    stays = Setting(limit, scope.throttle_percent, present, surely)
    if surely or _in_time(present, stands.left_ms * _AMPLE):
        return stays
    return (
        _harder(scope, stands, within_ms, _MORE)
        or _harder(scope, stands, stands.left_ms)
        or (stays if _in_time(present, stands.left_ms) else None)
    )


def _unthrottled(
    scope: Scope, stands: Standing, within_ms: float, writes: float = 1.0
) -> Setting | None:
    """The lowest downtime limit that does, and not a much slower one than a higher would be."""
    does = (n for n in scope.limits() if _in_time(stands.course(n, 0, writes), within_ms))
    good = [(limit, course) for limit in does if (course := stands.course(limit, 0)).ends]
    if not good:
        return None
    limit, course = good[0]
    if not scope.thrifty:
        best_ms = min(course.left_ms for _, course in good)
        if course.left_ms > best_ms * _WORTH_SHARE + _WORTH_MS:
            limit, course = next(one for one in good if one[1].left_ms <= best_ms * _NEAR)
    return Setting(limit, 0, course, writes > 1.0)


def _first(scope: Scope, stands: Standing, within_ms: float, writes: float = 1.0) -> Setting | None:
    """The first throttle. Where there is no time for another, it is one for a guest that needs
    half of its CPU time, or the hardest."""
    found = _harder(scope, stands, within_ms, writes)
    if found is None or not scope.by_time or _time_for_another(scope, stands):
        return found
    hardest = scope.most_throttle_percent
    limit = scope.throttled_limit_ms(hardest)
    return _harder(scope, stands, within_ms, writes, LEAST_BUSY) or Setting(
        limit, hardest, stands.course(limit, hardest), found.surely
    )


def _time_for_another(scope: Scope, stands: Standing) -> bool:
    """Whether the hardest throttle would still end it if the first one had no effect."""
    hardest = scope.most_throttle_percent
    limit = scope.throttled_limit_ms(hardest)
    course = stands.course(limit, hardest, busy_share=LEAST_BUSY)
    return _in_time(course, stands.left_ms - _TRIED_PASSES * stands.pass_ms)


def _harder(
    scope: Scope,
    stands: Standing,
    within_ms: float,
    writes: float = 1.0,
    busy_share: float = 1.0,
) -> Setting | None:
    """A harder throttle, at the highest downtime limit, that costs the guest about the least.

    A guest that writes a little less than the path carries loses least by a mild throttle, and one
    that writes more by a hard one. What is known is near to both where it would end by itself if
    the guest wrote a little less: its loss is counted as it is known then, and else for one that
    comes to write more.
    """
    ends = stands.course(scope.highest_limit_ms, 0, _LESS).ends
    good: list[tuple[Setting, float]] = []
    for throttle in scope.harder():
        limit = scope.throttled_limit_ms(throttle)
        course = stands.course(limit, throttle, writes, busy_share)
        if not _in_time(course, within_ms):
            continue
        expected = stands.course(limit, throttle, busy_share=busy_share)
        counted = expected if ends else course
        setting = Setting(limit, throttle, expected, writes > 1.0)
        good.append((setting, counted.left_ms * throttle))
    if not good:
        return None
    least = min(cost for _, cost in good)
    return next(setting for setting, cost in good if cost <= least * _COST_SHARE)


def _in_time(course: Course, within_ms: float) -> bool:
    return course.ends and course.left_ms <= within_ms
