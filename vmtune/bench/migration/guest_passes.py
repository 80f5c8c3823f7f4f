"""The guest's passes over its memory, laid on the host's clock. Pure.

A guest reports each pass with its own clock, which stands still while the guest does. How long
a pass took for those who wait for the guest is the time between two reports by the host's
clock, less what the guest rested: the rest it knows by its own clock.
A report's way takes a few milliseconds, so passes that are much shorter are taken together.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from vmtune.bench.model.metrics.table import LEAST_STRETCH_MS
from vmtune.bench.model.runs.run import GuestPass

_LATELY = 100
"""Of how many stretches a usual rest is the median."""

Span = tuple[float, float]
"""From and to, milliseconds on the run's timeline."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """What one worker did from one report to the next.

    :param since_ms: the report before, or when its first pass began.
    :param until_ms: this report; or the end of the record, for a pass that had not ended.
    :param rest_ms: how long it rested in between, before it worked.
    :param passes: how many passes it stands for: more than 1 where they are short, or where
        reports were lost.
    :param first: the worker's first report, of passes that find its memory unused.
    :param ended: it was reported.
    """

    worker: int
    since_ms: float
    until_ms: float
    rest_ms: float
    written_bytes: int
    passes: int = 1
    first: bool = False
    ended: bool = True

    @property
    def work_ms(self) -> float:
        """How long one pass took."""
        return (self.until_ms - self.since_ms - self.rest_ms) / self.passes

    @property
    def pace(self) -> float:
        """Milliseconds for each byte."""
        return self.work_ms / self.written_bytes

    @property
    def working(self) -> Span:
        """When it worked."""
        return self.since_ms + self.rest_ms, self.until_ms


def stretches(passes: Iterable[GuestPass], ended_ms: float) -> list[Stretch]:
    """What all workers did, in the order of its ends, the unfinished passes last.

    Reports that contradict each other (a clock that goes back, no memory) are left out.

    :param ended_ms: when the record ends.
    """
    by_worker: dict[int, list[GuestPass]] = defaultdict(list)
    for each in passes:
        if each.written_bytes > 0 and each.duration_us >= 0:
            by_worker[each.worker].append(each)
    found: list[Stretch] = []
    for worker in by_worker.values():
        found += _of_worker(sorted(worker, key=lambda p: (p.at_ms, p.number)), ended_ms)
    return sorted(found, key=lambda s: (not s.ended, s.until_ms, s.worker))


def _of_worker(passes: Sequence[GuestPass], ended_ms: float) -> list[Stretch]:
    first = passes[0]
    found = [
        Stretch(
            first.worker,
            first.at_ms - first.duration_us / 1000,
            first.at_ms,
            0.0,
            first.written_bytes,
            first=True,
        )
    ]
    before, together = first, list[GuestPass]()
    for each, after in itertools.zip_longest(passes[1:], passes[2:]):
        together.append(each)
        anew = each.number <= before.number
        short = each.at_ms - before.at_ms < LEAST_STRETCH_MS
        if not anew and (short or _same_report(each, after)):
            continue
        stretch = None if anew else _between(before, together, found)
        if stretch is not None:
            found.append(stretch)
        before, together = each, []
    rest = _usual_rest(found)
    if ended_ms - before.at_ms > rest:
        found.append(
            Stretch(before.worker, before.at_ms, ended_ms, rest, before.written_bytes, ended=False)
        )
    return found


def _usual_rest(found: Sequence[Stretch]) -> float:
    """What this worker has rested lately after a pass; its first has nothing before it."""
    return median([s.rest_ms / s.passes for s in found[max(1, len(found) - _LATELY) :]] or [0.0])


def _same_report(each: GuestPass, after: GuestPass | None) -> bool:
    """Whether the next report comes sooner than its pass can have been worked."""
    if after is None or after.number <= each.number:
        return False
    return (after.at_ms - each.at_ms) * 1000 < after.duration_us / 2


def _between(
    before: GuestPass, reported: Sequence[GuestPass], found: Sequence[Stretch]
) -> Stretch | None:
    now = reported[-1]
    count = now.number - before.number
    wall_ms = now.at_ms - before.at_ms
    if wall_ms <= 0:
        return None
    # A report may cover several passes, and has their average duration.
    numbers = itertools.pairwise([before.number, *(p.number for p in reported)])
    parts = zip(reported, numbers, strict=True)
    worked_ms = sum(p.duration_us * max(0, last - first) for p, (first, last) in parts) / 1000
    guest_ms = (now.guest_us - before.guest_us) / 1000
    # If the guest's clock was set back, its rest is unknown.
    rest_ms = guest_ms - worked_ms if guest_ms >= 0 else _usual_rest(found) * count
    # The two clocks differ by a few milliseconds of the report's way: no rest is negative, and
    # none is so long that the passes took less than the guest says.
    rest_ms = max(0.0, min(rest_ms, wall_ms - worked_ms))
    return Stretch(now.worker, before.at_ms, now.at_ms, rest_ms, now.written_bytes, count)


def overlap(one: Span, other: Span) -> float:
    """How long both last."""
    return max(0.0, min(one[1], other[1]) - max(one[0], other[0]))


def union(spans: Iterable[Span]) -> float:
    """How long at least one of them lasts."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total
