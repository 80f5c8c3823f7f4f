"""The course of a pre-copy migration: its passes, from any moment of it to its end.

As QEMU does it (migration/migration.c, migration_iteration_run and migration_update_counters, 7.2
to 11.1): what is dirty is sent; once less remains than throughput times the downtime limit, the
bitmap is synchronised, and if less remains even so the guest is stopped and the rest is sent.
Otherwise the next pass begins. Under a bandwidth limit it sends in bursts
(:mod:`vmtune.forecast.bursts`). Auto-converge throttles the guest when it dirtied more than the
trigger's share of what was sent, in a second or more, twice (migration/ram.c,
migration_bitmap_sync, migration_trigger_throttle).
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, replace

from vmtune.forecast.bursts import Bursts
from vmtune.forecast.dirty_curve import DirtyCurve
from vmtune.forecast.rhythm import Rhythm

LONGEST_MS = 24 * 3600 * 1000.0
_MOST_PASSES = 20_000
_SHORTEST_PASS_MS = 50.0
"""QEMU looks at what remains at the end of a burst of sending: MAX_WAIT in migration/ram.c."""
_ROUNDING = 1e-9
_LEAST_SHARE = 1e-9
_STANDS = 0.97
"""A pass that leaves more than this of what the one before left above the threshold makes no
progress: that dirtying and sending balance is known no better than to some percent."""
_STANDS_PASSES = 24
"""In bursts long and short passes take turns: so many in a row, without progress."""
_STANDS_PERIODS, _STANDS_MS = 8, 10_000.0
"""Of a guest that works and rests, how long no end and no higher throttle make it endless: so many
turns of it, and at least so long."""
_CACHED_MORE = 0.01
"""While XBZRLE's cache holds more of what is sent by more than this, later passes are shorter."""
_TRIGGERS = 2
"""How many passes in all dirty too much before the throttle is raised."""
_THROTTLED_EVERY_MS = 1000.0
"""The throttle is judged at a synchronisation at least this long after the last judgement."""


@dataclass(frozen=True, slots=True)
class AutoConverge:
    """QEMU's throttle, each in percent: the first, each one more, the most, and the trigger."""

    initial_percent: int = 20
    increment_percent: int = 10
    max_percent: int = 99
    trigger_percent: int = 50


@dataclass(frozen=True, slots=True)
class Conditions:
    """What decides about the course, as long as nobody changes it.

    :param throughput_bytes_per_s: above 0.
    :param wire_share: bytes sent for a dirty byte, 0 to 1: less than 1 where pages hold zeros or
        are compressed.
    :param downtime_limit_ms: QEMU's ``downtime-limit``.
    :param device_ms: of silence besides sending: stopping, the devices' state, starting.
    :param auto_converge: None where it is off.
    :param first_wire_share: the same in the first pass, where that differs.
    :param busy_share: of the CPU time that the guest may have, what it needs for what it does,
        above 0: one that is throttled makes up for it as long as it has that much.
    :param switchover_bytes_per_s: the throughput once the guest stands still, when QEMU lifts
        its bandwidth limit (migration/migration.c, migration_completion); None: the same.
    :param limited: it is a bandwidth limit that holds the throughput.
    :param cache_bytes: XBZRLE's cache of pages that were sent; None without it.
    :param delta_share: bytes sent for a dirty byte of a page that is in the cache, 0 to 1.
    :param packed_bytes_per_s: of memory, what its threads compress at most; None without limit.
    :param limit_bytes_per_s: the bandwidth limit on the wire; None without one, or not known. It
        decides nothing by itself: see *limited*.
    :param burst_bytes_per_s: what the path takes while a limited migration sends; None where that
        is as in the switchover.
    """

    throughput_bytes_per_s: float
    downtime_limit_ms: float
    wire_share: float = 1.0
    device_ms: float = 0.0
    auto_converge: AutoConverge | None = None
    switchover_bytes_per_s: float | None = None
    first_wire_share: float | None = None
    busy_share: float = 1.0
    limited: bool = False
    cache_bytes: float | None = None
    delta_share: float = 1.0
    packed_bytes_per_s: float | None = None
    limit_bytes_per_s: float | None = None
    burst_bytes_per_s: float | None = None

    @property
    def threshold_bytes(self) -> float:
        """Less than this may remain when the guest is stopped."""
        return self.throughput_bytes_per_s * self.downtime_limit_ms / 1000

    def sending_ms(self, dirty_bytes: float) -> float:
        """How long sending takes."""
        return dirty_bytes * self.wire_share / self.throughput_bytes_per_s * 1000

    def bursts(self) -> Bursts | None:
        """Those in which it sends; None where no bandwidth limit holds it."""
        if not self.limited:
            return None
        pace = self.throughput_bytes_per_s
        burst = self.burst_bytes_per_s or self.switchover_bytes_per_s or 0.0
        return Bursts(pace, max(pace, burst))

    def in_pass(self, number: int, cached_share: float = 0.0) -> Conditions:
        """Those of a pass, counted from 1.

        :param cached_share: of what it sends, how much is in XBZRLE's cache.
        """
        if number == 1 and self.first_wire_share is not None:
            return replace(self, wire_share=self.first_wire_share).packing()
        if number == 1 or not cached_share:
            return self.packing()
        saved = cached_share * (1 - self.delta_share)
        return replace(self, wire_share=self.wire_share * (1 - saved))

    def packing(self) -> Conditions:
        """Those of pages that are not compressed faster than its threads can."""
        if self.packed_bytes_per_s is None:
            return self
        packed = self.packed_bytes_per_s * self.wire_share
        most = (
            None
            if self.switchover_bytes_per_s is None
            else min(self.switchover_bytes_per_s, packed)
        )
        if packed >= self.throughput_bytes_per_s:
            return replace(self, switchover_bytes_per_s=most)
        return replace(
            self, throughput_bytes_per_s=packed, switchover_bytes_per_s=most, limited=False
        )

    def cached_share(self, curve: DirtyCurve, before_ms: float, pass_ms: float) -> float:
        """Of what the guest wrote in a pass of *pass_ms*, how much it had written before, and
        XBZRLE's cache still holds.

        QEMU puts a page into the cache when it sends it after the first pass, and leaves those that
        are in use there when there is no room for another (migration/ram.c, save_xbzrle_page;
        migration/page_cache.c, cache_insert).

        :param before_ms: how long the guest had written since the migration's beginning.
        """
        if self.cache_bytes is None or pass_ms <= 0:
            return 0.0
        known, every = (curve.dirty_bytes(ms) for ms in (before_ms, before_ms + pass_ms))
        wrote = curve.dirty_bytes(pass_ms)
        again = 1 - (every - known) / wrote if wrote > 0 else 0.0
        return max(0.0, min(1.0, again)) * min(1.0, self.cache_bytes / max(1.0, every))

    def does_share(self, throttle_percent: float) -> float:
        """How much the guest does under a throttle of what it would do without."""
        return min(1.0, (1 - throttle_percent / 100) / self.busy_share)

    def silence_ms(self, dirty_bytes: float) -> float:
        """How long the guest stands still when so much is left."""
        rate = self.switchover_bytes_per_s or self.throughput_bytes_per_s
        return dirty_bytes * self.wire_share / rate * 1000 + self.device_ms


@dataclass(frozen=True, slots=True)
class Moment:
    """Where a migration stands within a pass.

    :param remaining_bytes: dirty pages that are not sent yet.
    :param since_clean_ms: how long ago the bitmap was synchronised.
    :param sent_bytes: dirty bytes sent since then.
    :param throttle_percent: of the guest's CPU time that QEMU withholds.
    :param used_share: of what remains in this pass, above 0: the rest are pages that the guest
        never used, which QEMU passes over.
    :param passed_over_bytes_per_s: how fast it does.
    :param burst_sent_ms: how long ago the tenth of a second began of which, under a bandwidth
        limit, the burst has been sent; None where none has.
    """

    remaining_bytes: float
    since_clean_ms: float = 0.0
    sent_bytes: float = 0.0
    throttle_percent: float = 0.0
    used_share: float = 1.0
    passed_over_bytes_per_s: float = math.inf
    burst_sent_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Course:
    """How it goes on.

    :param ends: whether the guest is switched over by itself; else the rest says how far it was
        followed.
    :param left_ms: until the guest runs on the destination.
    :param silence_ms: of that, the guest's standing still.
    :param passes: that end, the present one included.
    :param sent_bytes: over the network.
    :param least_bytes: the least that remained after a synchronisation; None where none came.
    :param throttle_percent: the highest.
    """

    ends: bool
    left_ms: float
    silence_ms: float
    passes: int
    sent_bytes: float
    least_bytes: float | None
    throttle_percent: float


@dataclass(slots=True)
class _Throttle:
    """Auto-converge's, in percent of the guest's CPU time."""

    schedule: AutoConverge | None
    percent: float
    judged_ms: float = -_THROTTLED_EVERY_MS
    dirtied: float = 0.0
    sent: float = 0.0
    triggered: int = 0

    @property
    def may_rise(self) -> bool:
        return self.schedule is not None and self.percent < self.schedule.max_percent

    def synchronised(self, at_ms: float, dirtied: float, sent: float) -> None:
        """After a pass that ended at *at_ms*."""
        schedule = self.schedule
        self.dirtied, self.sent = self.dirtied + dirtied, self.sent + sent
        if schedule is None or at_ms - self.judged_ms < _THROTTLED_EVERY_MS:
            return
        self.triggered += self.dirtied > self.sent * schedule.trigger_percent / 100
        self.judged_ms, self.dirtied, self.sent = at_ms, 0.0, 0.0
        if self.triggered >= _TRIGGERS:
            self.triggered = 0
            raised = self.percent + schedule.increment_percent if self.percent else 0
            self.percent = min(max(raised, schedule.initial_percent), schedule.max_percent)


@dataclass(slots=True)
class _Progress:
    """The least that remained above the threshold after a synchronisation, and for how many passes
    it has been so."""

    threshold: float
    fewest_passes: int
    compared: float | None = None
    passes: int = 0

    def stands(self, remaining: float) -> bool:
        """Whether it makes none any more, *remaining* being left now."""
        above = remaining - self.threshold
        if self.compared is None or above <= _STANDS * self.compared:
            self.compared, self.passes = above, 0
        else:
            self.passes += 1
        return self.passes >= self.fewest_passes


@dataclass(frozen=True, slots=True)
class _Sent:
    """One pass.

    :param done_bytes: of memory, sent or passed over.
    :param sent_bytes: of these, what was used.
    :param left_bytes: what was used and is not sent yet.
    :param unused_bytes: what was never used and is not passed over yet.
    """

    ms: float
    done_bytes: float
    sent_bytes: float
    left_bytes: float
    unused_bytes: float = 0.0


def _send(
    moment: Moment, number: int, remaining: float, here: Conditions, bursts: Bursts | None
) -> _Sent:
    share, threshold = moment.used_share if number == 1 else 1.0, here.threshold_bytes
    if bursts is not None:
        return _burst(moment, remaining, share, here, bursts)
    to_send = max(0.0, remaining - threshold)
    passed_over_ms = to_send * (1 - share) / moment.passed_over_bytes_per_s * 1000
    pass_ms = max(here.sending_ms(to_send * share), passed_over_ms)
    if number > 1 or moment.since_clean_ms == 0:
        pass_ms = max(pass_ms, _SHORTEST_PASS_MS)
    to_send = min(remaining, max(to_send, pass_ms / here.sending_ms(share)))
    left = remaining - to_send
    return _Sent(pass_ms, to_send, to_send * share, left * share, left * (1 - share))


def _burst(
    moment: Moment, remaining: float, share: float, here: Conditions, bursts: Bursts
) -> _Sent:
    """What is used first, then what was never used: that lies together, and while QEMU passes
    over it, it sends nothing."""
    used, unused, threshold = remaining * share, remaining * (1 - share), here.threshold_bytes
    wire_share = max(_LEAST_SHARE, here.wire_share)
    pass_ms, left = bursts.send(used, wire_share, max(0.0, threshold - unused))
    over = 0.0 if left > 0 else max(0.0, unused - threshold)
    over_ms = over / moment.passed_over_bytes_per_s * 1000
    bursts.wait(over_ms)
    return _Sent(pass_ms + over_ms, used - left + over, used - left, left, unused - over)


def follow(
    curve: DirtyCurve, moment: Moment, conditions: Conditions, rhythm: Rhythm | None = None
) -> Course:
    """The course from *moment* on.

    :param curve: by the time that the guest works.
    :param rhythm: when it does; None: always.
    """
    remaining, clean_ms, sent = moment.remaining_bytes, moment.since_clean_ms, moment.sent_bytes
    throttle = _Throttle(conditions.auto_converge, moment.throttle_percent)
    left_ms = on_wire = 0.0
    least: float | None = None
    threshold, bursts = conditions.packing().threshold_bytes, conditions.bursts()
    if bursts is not None and moment.burst_sent_ms is not None:
        bursts.is_sent(moment.burst_sent_ms)
    progress = _Progress(threshold, 1 if bursts is None else _STANDS_PASSES)
    # At the passes' beginnings: how long the guest had written, what was sent, what was dirty.
    starts = deque([(0.0, 0.0, remaining + sent)])
    written_ms, sent_all, all_sent, cached = clean_ms, sent, False, 0.0
    settled_ms = 0.0
    for number in range(1, _MOST_PASSES + 1):
        here, does = conditions.in_pass(number, cached), conditions.does_share(throttle.percent)
        done = _send(moment, number, remaining, here, bursts if here.limited else None)
        worked_ms = done.ms if rhythm is None else rhythm.worked_ms(left_ms, left_ms + done.ms)
        left_ms += done.ms
        on_wire += done.sent_bytes * here.wire_share
        sent += done.sent_bytes
        dirtied = curve.dirty_bytes((clean_ms + worked_ms) * does)
        left, unused = done.left_bytes, done.unused_bytes
        written_ms += worked_ms * does
        before, start_ms = cached, starts[-1][0]
        cached = conditions.cached_share(curve, start_ms, written_ms - start_ms)
        sent_all += done.done_bytes
        while len(starts) > 1 and sent_all - starts[1][1] >= starts[1][2]:
            starts.popleft()
        all_sent = all_sent or sent_all - starts[0][1] >= starts[0][2]
        if all_sent:
            # What was dirty then was sent since: what is dirty now was written since.
            dirty = min(left + dirtied, curve.dirty_bytes(written_ms - starts[0][0]))
            left = min(left, max(0.0, dirty - dirtied))
        remaining = left + dirtied
        if remaining + unused <= threshold * (1 + _ROUNDING):
            last = conditions.in_pass(number + 1, cached)
            silence_ms = last.silence_ms(remaining)
            silence_ms += unused / moment.passed_over_bytes_per_s * 1000
            on_wire += remaining * last.wire_share
            left_ms += silence_ms
            return Course(True, left_ms, silence_ms, number, on_wire, least, throttle.percent)
        least = remaining if least is None else min(least, remaining)
        stands = progress.stands(remaining) and cached <= before + _CACHED_MORE
        throttled = throttle.percent
        throttle.synchronised(left_ms, dirtied, sent * here.wire_share)
        if rhythm is not None:
            if not all_sent or throttle.percent > throttled:
                settled_ms = left_ms
            stands = left_ms - settled_ms > max(_STANDS_MS, _STANDS_PERIODS * rhythm.period_ms)
        elif throttle.may_rise or throttle.percent > throttled:
            stands = False
        if (stands and all_sent) or left_ms > LONGEST_MS:
            return Course(False, left_ms, 0.0, number, on_wire, least, throttle.percent)
        clean_ms = sent = 0.0
        starts.append((written_ms, sent_all, remaining))
    return Course(False, left_ms, 0.0, _MOST_PASSES, on_wire, least, throttle.percent)
