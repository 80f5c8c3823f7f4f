"""What is told of a running migration's end: whether, when, and what would help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from vmtune.forecast.course import Conditions, Course, Moment, follow
from vmtune.forecast.dirty_curve import DirtyCurve
from vmtune.forecast.following import Followed, measured, standing
from vmtune.forecast.needs import LEAST_BUSY, Needs, needs
from vmtune.model.host.dirty_rates import DirtyPoint

_FLAT = 0.3
"""A curve that begins by less than this power of the time is not taken for proportional."""
_STAYS_SYNCS = 5
"""What the guest dirtied in so many passes is compared..."""
_STAYS_SHARE = 0.97
"""...and stays where the last is at least this share of the first: at a steady rate that the path
can carry, each pass would be shorter than the one before."""
SURE_AFTER_SYNCS = 2
"""That it will not end is told when so many synchronisations in a row say so."""


@dataclass(frozen=True, slots=True)
class Factors:
    """The time left as a share of what was expected: 5 % and 95 % of migrations are below."""

    low: float
    high: float


FACTORS = (
    Factors(0.3, 2.0),
    Factors(0.3, 1.6),
    Factors(0.26, 1.9),
    Factors(0.28, 2.8),
    Factors(0.15, 6.0),
)
"""By synchronisations that were seen, the last for all above. From 486 of the published migrations
(dataset/). The bounds widen with the count, because the migrations that go on for long are the
ones near to not ending; of those, one in twenty goes on for far longer than any bound."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is expected of a running migration.

    :param ends: whether it will end by itself; None while too little was seen.
    :param left_ms: until the guest is stopped to be switched over, with the bounds between which
        90 % of the migrations of the benchmark ``forecast_running`` ended; None where it will not
        end or is not known.
    :param silence_ms: how long the guest will stand still, at most where the throughput is held by
        a limit, which QEMU lifts then; None likewise.
    :param needs: what would let it end; None where it will.
    :param pass_left_ms: until the present pass has been sent; None where that is not known.
    """

    ends: bool | None
    left_ms: float | None = None
    least_left_ms: float | None = None
    most_left_ms: float | None = None
    silence_ms: float | None = None
    needs: Needs | None = None
    pass_left_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """The judgement so far; ``Judged()`` at the beginning.

    :param endless: at how many synchronisations in a row it would not end; *at* the last of them.
    """

    endless: int = 0
    at: int = 0
    outlook: Outlook = Outlook(None)


def judge(
    before: Judged, seen: Followed, conditions: Conditions, known: Sequence[DirtyPoint] = ()
) -> Judged:
    """The judgement by what was *seen* up to now.

    :param conditions: what is set; of what is measured it takes nothing.
    :param known: of the guest's dirty curve, what was measured before the migration.
    """
    now = measured(seen, conditions)
    if now is None or seen.last is None:
        return before
    rest_ms = now.sending_ms(max(0.0, seen.last.remaining_bytes - now.threshold_bytes))
    if seen.last.status.in_postcopy:
        left_ms = now.sending_ms(seen.last.remaining_bytes)
        return replace(before, outlook=Outlook(True, left_ms, left_ms, left_ms))
    stands = standing(seen, known)
    if stands is None:
        return replace(before, outlook=Outlook(None, pass_left_ms=rest_ms))
    course = follow(*stands, now)
    flat = (replace(stands[0], bend=0.0), stands[1])
    throttles = now.auto_converge is not None  # then what stayed so far will not
    if course.ends and not throttles and _stays(seen) and not follow(*flat, now).ends:
        stands = flat  # it has dirtied all that it works on again before each pass is over
    elif course.ends and seen.syncs > 1 and not _ends_bent(*stands, now):
        return Judged(0, seen.syncs, Outlook(None, pass_left_ms=rest_ms))
    elif course.ends:
        return Judged(0, seen.syncs, _ends(course, seen.syncs, rest_ms))
    again = seen.syncs > before.at
    endless = before.endless + again
    if endless < SURE_AFTER_SYNCS:
        return Judged(endless, seen.syncs, Outlook(None, pass_left_ms=rest_ms))
    helps = before.outlook.needs
    if again or helps is None:
        # What it did under a throttle is taken as if it had needed all that was withheld.
        busy = 1.0 if stands[1].throttle_percent else LEAST_BUSY
        helps = needs(*stands, replace(now, busy_share=busy))
    return Judged(endless, seen.syncs, Outlook(False, needs=helps, pass_left_ms=rest_ms))


def _stays(seen: Followed) -> bool:
    """Whether as much is left at each of the last synchronisations as at the one before."""
    dirtied = [point.dirty_bytes for point in seen.points[-_STAYS_SYNCS:]]
    return len(dirtied) == _STAYS_SYNCS and min(dirtied[-2:]) >= _STAYS_SHARE * max(dirtied[:2])


def _ends_bent(curve: DirtyCurve, moment: Moment, conditions: Conditions) -> bool:
    """Whether it ends however soon the guest dirties what it works on."""
    bent = curve.bent()
    return bent.bend > _FLAT or follow(bent, moment, conditions).ends


def _ends(course: Course, syncs: int, rest_ms: float) -> Outlook:
    factors = FACTORS[min(syncs, len(FACTORS) - 1)]
    # Whether the rest goes faster once QEMU lifts its limit is not known: the bounds have both.
    left_ms = course.left_ms - course.silence_ms
    return Outlook(
        True,
        left_ms,
        left_ms * factors.low,
        left_ms * factors.high + course.silence_ms,
        course.silence_ms,
        pass_left_ms=rest_ms,
    )
