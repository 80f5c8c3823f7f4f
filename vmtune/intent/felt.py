"""What a guest felt of its migration, from the samples; and what that makes of its intent."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace

from vmtune.forecast.bursts import LIMIT_HELD_MS
from vmtune.model.migration.disks import caught_up_ms
from vmtune.model.migration.record import Migration, QemuStatus, Sample, Totals
from vmtune.model.migration.stated_intent import Happened, StatedIntent, goals_kept, relaxed
from vmtune.model.migration.steps import StepAction

_WINDOW_MS = 1000
_LEAST_WINDOW_MS = 500
"""Of a migration that is over within the window: less says little."""
_SEEN_TO_THE_END_MS = 3000
"""A throttle that came later than this before the end was not seen."""


class Felt:
    """Collects what counts of samples as they come. One that is thinned out still has its peaks."""

    def __init__(self, samples: Iterable[Sample] = ()) -> None:
        self._hardest = 0.0
        self._most_bytes_per_s: float | None = None
        self._last_at_ms: int | None = None
        self._postcopy = False
        self._cut_off = False
        self._window: deque[tuple[int, int]] = deque()
        for sample in samples:
            self.add(sample)

    def add(self, sample: Sample) -> None:
        """The next one in time."""
        self._last_at_ms = sample.at_ms
        self._postcopy |= sample.status.in_postcopy
        self._cut_off |= sample.status is QemuStatus.POSTCOPY_PAUSED
        if sample.status is not QemuStatus.ACTIVE:
            return
        self._hardest = max(self._hardest, sample.withheld_percent)
        self._window.append((sample.at_ms, sample.transferred_bytes))
        while len(self._window) > 2 and sample.at_ms - self._window[1][0] >= _WINDOW_MS:
            self._window.popleft()
        since_ms, before = self._window[0]
        if sample.at_ms - since_ms >= _WINDOW_MS:
            sent = _per_s(sample.transferred_bytes - before, sample.at_ms - since_ms)
            self._most_bytes_per_s = max(self._most_bytes_per_s or 0.0, sent)

    def __or__(self, other: Felt) -> Felt:
        """What both saw, each a part of the same migration; of its last window the longer part."""
        both = Felt()
        both._hardest = max(self._hardest, other._hardest)
        rates = (self._most_bytes_per_s, other._most_bytes_per_s)
        both._most_bytes_per_s = max((rate for rate in rates if rate is not None), default=None)
        ends = (self._last_at_ms, other._last_at_ms)
        both._last_at_ms = max((at for at in ends if at is not None), default=None)
        both._postcopy = self._postcopy or other._postcopy
        both._cut_off = self._cut_off or other._cut_off
        both._window = max(self._window, other._window, key=len).copy()
        return both

    def of(self, record: Migration, totals: Totals) -> Happened:
        """What *record*'s migration came to by all that was seen of it. QEMU's time begins when the
        disks are copied. A guest that steering has paused stood still from then on, which QEMU's
        downtime does not count; in post-copy it waited for pages, for how long is not known, and
        stood still where it needed one while the hosts did not reach each other."""
        total_ms = _whole_ms(record, totals)
        silence_ms = totals.downtime_ms
        paused = record.did(StepAction.PAUSE)
        if paused is not None:
            # Both by vmtune's clock, which begins somewhat earlier than QEMU's.
            ended_ms = max(total_ms, self._last_at_ms or 0)
            silence_ms = max(silence_ms, ended_ms - paused.at_ms)
        unseen = self.until_ms(total_ms, silence_ms) is not None
        waited = self._postcopy or record.did(StepAction.POSTCOPY) is not None
        return Happened(
            total_ms,
            None if self._cut_off else silence_ms,
            None if unseen or waited else self._hardest,
            None if unseen else self._most_with_copies(record),
        )

    def _most_with_copies(self, record: Migration) -> float | None:
        """What was sent of the memory, or of the disks before it in the mean."""
        memory, took_ms = self._sent_bytes_per_s(), caught_up_ms(record.disks)
        if memory is None or not took_ms:
            return memory
        return max(memory, sum(disk.copied_bytes for disk in record.disks) / took_ms * 1000)

    def _sent_bytes_per_s(self) -> float | None:
        """The most over a window; of a migration that is shorter, over all of it that was seen."""
        if self._most_bytes_per_s is not None or not self._window:
            return self._most_bytes_per_s
        (since_ms, before), (until_ms, after) = self._window[0], self._window[-1]
        took_ms = until_ms - since_ms
        if took_ms < _LEAST_WINDOW_MS:
            return None
        return _per_s(after - before, took_ms)

    def until_ms(self, total_ms: int, silence_ms: int) -> int | None:
        """When the migration was seen last, 0 for never; None where that was its end."""
        last = self._last_at_ms or 0
        return last if total_ms - last > silence_ms + _SEEN_TO_THE_END_MS else None


def _per_s(sent_bytes: int, in_ms: int) -> float:
    """The rate that a limit allows. QEMU sends at the beginning of each time that it holds its
    limit over: a window has the bytes of one such time more than it is long."""
    return sent_bytes / (in_ms + LIMIT_HELD_MS) * 1000


def _whole_ms(record: Migration, totals: Totals) -> int:
    """From the migration's start, the copy of its disks included."""
    return totals.total_time_ms + caught_up_ms(record.disks)


def with_kept(record: Migration, totals: Totals, felt: Felt) -> StatedIntent | None:
    """The record's intent with what was kept of it; None without one."""
    stated = record.intent
    if stated is None:
        return None
    happened = felt.of(record, totals)
    still_ms = max(totals.downtime_ms, happened.silence_ms or 0)
    until_ms = felt.until_ms(_whole_ms(record, totals), still_ms)
    kept = tuple(goals_kept(stated.intent, happened))
    given_up = relaxed(record.step_records)
    broken = any(each.kept is False for each in kept if each.goal not in given_up)
    return replace(
        stated, kept=kept, steered_until_ms=until_ms, broken=broken and not stated.shadow
    )
