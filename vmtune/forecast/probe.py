"""What is asked of a running VM before its migration: its dirty curve, and the memory it uses."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from vmtune.forecast.dirty_curve import DirtyCurve, fitted, of_about_one_time
from vmtune.model.host.dirty_rates import DirtyPoint
from vmtune.model.host.page_contents import PageContents

WINDOWS_MS = (64, 256, 1024, 4096, 128, 512, 2048, 8192, 64, 256, 1024, *(64, 128) * 8)
"""Measured one after the other, some 20 s in all: the short ones at different moments, since a
guest does more at one time than at another. The last sixteen tell one that writes in bursts
(:mod:`vmtune.forecast.rhythm`)."""
WHOLE_SECONDS_MS = (1000, 2000, 4000, 8000)
"""For a QEMU older than 8.2."""
_SHORT_MS = 700
_SAMPLED_PAGES = 8192
_LEAST_PER_GIB, _MOST_PER_GIB = 128, 16384
"""What QEMU takes (MIN_SAMPLE_PAGE_COUNT and MAX_SAMPLE_PAGE_COUNT in migration/dirtyrate.h)."""
_GIB = 1 << 30


def pages_per_gib(memory_bytes: int) -> int:
    """How many pages to sample of each GiB: enough for a few percent, and few enough that hashing
    them takes some ten milliseconds, whatever the size of the VM."""
    wanted = math.ceil(_SAMPLED_PAGES * _GIB / max(1, memory_bytes))
    return min(_MOST_PER_GIB, max(_LEAST_PER_GIB, wanted))


@dataclass(frozen=True, slots=True)
class DirtyProbe:
    """What a VM does with its memory.

    :param points: as measured, each from a moment of its own on.
    :param memory_bytes: of the guest.
    :param used_bytes: of these, what is backed by memory; None where that cannot be seen.
    :param contents: what its pages hold; None where that cannot be seen.
    :param held_bytes: of the guest's memory, what holds anything but zeros; None likewise.
    :param changed: what those hold that it changed meanwhile; None likewise, and where it changed
        none of those that were looked at.
    :param measured_at: when it was done.
    :param took_ms: how long it took.
    """

    points: tuple[DirtyPoint, ...]
    memory_bytes: int
    used_bytes: int | None
    measured_at: datetime
    took_ms: float
    contents: PageContents | None = None
    changed: PageContents | None = None
    held_bytes: int | None = None

    @property
    def lacks_short_times(self) -> bool:
        """Nothing was measured over less than about a second: the QEMU is older than 8.2. Whether
        the guest dirties in proportion to the time there, or most at once, is not known."""
        return min(point.after_ms for point in self.points) >= _SHORT_MS

    def curve(self) -> DirtyCurve:
        """The dirty curve."""
        return curve_of(self.points)


def curve_of(points: Sequence[DirtyPoint]) -> DirtyCurve:
    """The dirty curve, by the mean of the points of about the same time."""
    means = (
        DirtyPoint(
            statistics.fmean(point.after_ms for point in group),
            statistics.fmean(point.dirty_bytes for point in group),
        )
        for group in of_about_one_time(points)
    )
    return fitted(means)
