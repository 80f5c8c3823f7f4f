"""What would let a migration end that does not end by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from vmtune.forecast.course import Conditions, Moment, follow
from vmtune.forecast.dirty_curve import DirtyCurve

LEAST_BUSY = 0.5
"""Of the CPU time that it may have, what a guest is taken to need at least: a throttle slows it
only below that."""
_MOST_DOWNTIME_MS = 2_000_000.0
"""The largest downtime limit that QEMU takes (MAX_MIGRATE_DOWNTIME in migration/options.c)."""
_MOST_TIMES_FASTER = 1024.0
_MOST_THROTTLE_PERCENT = 99.0
_MARGIN = 1.1
"""What is named is more by this than what just suffices."""
_NEAR = 1.01
"""What just suffices is known as near as this."""


@dataclass(frozen=True, slots=True)
class Needs:
    """Each alone would let it end; None where none of its kind would.

    :param downtime_limit_ms: a downtime limit.
    :param throughput_bytes_per_s: a throughput, on the wire.
    :param throttle_percent: of the guest's CPU time withheld.
    :param postcopy: it can be switched to post-copy.
    """

    downtime_limit_ms: float | None
    throughput_bytes_per_s: float | None
    throttle_percent: float | None
    postcopy: bool = True

    def open_to(self, *, throttle: bool, postcopy: bool) -> Needs:
        """Without what a migration that runs was not started for: QEMU cannot switch it on then.

        :param throttle: the guest can be throttled.
        :param postcopy: it can be switched to post-copy.
        """
        percent = self.throttle_percent if throttle else None
        return replace(self, throttle_percent=percent, postcopy=self.postcopy and postcopy)


def needs(curve: DirtyCurve, moment: Moment, conditions: Conditions) -> Needs:
    """What would let it end from *moment* on, each by itself."""
    now = conditions.throughput_bytes_per_s

    def ends(changed: Conditions, throttle: float = moment.throttle_percent) -> bool:
        return follow(curve, replace(moment, throttle_percent=throttle), changed).ends

    downtime = _least(
        conditions.downtime_limit_ms or 1.0,
        _MOST_DOWNTIME_MS,
        lambda ms: ends(replace(conditions, downtime_limit_ms=ms)),
    )
    throughput = _least(
        now,
        now * _MOST_TIMES_FASTER,
        lambda rate: ends(replace(conditions, throughput_bytes_per_s=rate)),
    )
    # A throttle that QEMU is told to keep: the schedule would raise it further.
    fixed = replace(conditions, auto_converge=None)
    throttle = _least(
        max(1.0, moment.throttle_percent),
        _MOST_THROTTLE_PERCENT,
        lambda percent: ends(fixed, percent),
    )
    return Needs(
        None if downtime is None else min(downtime * _MARGIN, _MOST_DOWNTIME_MS),
        None if throughput is None else throughput * _MARGIN,
        None if throttle is None else min(throttle * _MARGIN, _MOST_THROTTLE_PERCENT),
    )


def _least(low: float, high: float, suffices: Callable[[float], bool]) -> float | None:
    """About the least from *low* to *high* that suffices, by taking the root of their ratio; None
    where not even *high* does."""
    if not suffices(high):
        return None
    while high > low * _NEAR:
        middle = (low * high) ** 0.5
        if suffices(middle):
            high = middle
        else:
            low = middle
    return high
