"""Dirty-rate traces: what the vCPUs of a guest dirty in each millisecond.

The generators make the same trace each time. Rates are in pages a second, times in milliseconds.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from vmtune.engine.reaper.settings import PAGES_PER_MIB
from vmtune.units import PAGE_BYTES

Row = tuple[float, ...]
"""Pages that each vCPU dirties in one millisecond."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One guest's dirtying.

    :param rows: pages dirtied, one row a millisecond.
    :param working_set_pages: how many different pages each vCPU writes to. A page is in a ring
        once until the ring is emptied, so this bounds what a ring collects.
    """

    name: str
    rows: tuple[Row, ...]
    working_set_pages: int | None = None

    def __post_init__(self) -> None:
        widths = {len(row) for row in self.rows}
        if (
            len(widths) != 1
            or widths == {0}
            or any(pages < 0 for row in self.rows for pages in row)
        ):
            raise ValueError(f"{self.name} is not a trace: a row a millisecond, a column a vCPU")

    @property
    def duration_ms(self) -> int:
        """How long it is."""
        return len(self.rows)

    @property
    def vcpus(self) -> int:
        """How many vCPUs it has."""
        return len(self.rows[0])


def _shaped(
    name: str,
    pages_per_s: Sequence[float],
    duration_ms: int,
    share: Callable[[int, int], float],
) -> Trace:
    """Each vCPU at *share(millisecond, vCPU)* of its rate."""
    rows = tuple(
        tuple(rate / 1000 * share(at, vcpu) for vcpu, rate in enumerate(pages_per_s))
        for at in range(duration_ms)
    )
    return Trace(name, rows)


def constant(name: str, pages_per_s: Sequence[float], duration_ms: int) -> Trace:
    """Each vCPU at a steady rate of its own."""
    return _shaped(name, pages_per_s, duration_ms, lambda at, vcpu: 1.0)


def bursts(
    name: str,
    pages_per_s: Sequence[float],
    duration_ms: int,
    *,
    every_ms: int,
    lasting_ms: int,
    out_of_phase: bool = False,
    background: float = 0.02,
) -> Trace:
    """Each vCPU at its rate for *lasting_ms* of *every_ms*, and at a *background* share of it
    otherwise: long bursts are phases of work and of idling.

    :param out_of_phase: the vCPUs' bursts begin spread over the period, else together.
    """
    apart = every_ms // len(pages_per_s) if out_of_phase else 0

    def share(at: int, vcpu: int) -> float:
        # The guest is quiet first: what a policy does at a burst depends on where it comes from.
        busy = (at - apart * vcpu) % every_ms >= every_ms - lasting_ms
        return 1.0 if busy else background

    return _shaped(name, pages_per_s, duration_ms, share)


def ramp(name: str, pages_per_s: Sequence[float], duration_ms: int) -> Trace:
    """Each vCPU from rest to its rate and back, evenly."""
    middle = duration_ms / 2
    return _shaped(name, pages_per_s, duration_ms, lambda at, vcpu: 1 - abs(at - middle) / middle)


def jitter(trace: Trace, seed: int, share: float = 0.5, step_ms: int = 20) -> Trace:
    """*trace* with each vCPU's rate changed by up to *share*, anew each *step_ms*."""
    chance = random.Random(seed)  # noqa: S311 (not a secret: the same trace each time)
    rows: list[Row] = []
    factors: Row = ()
    for at, row in enumerate(trace.rows):
        if at % step_ms == 0:
            factors = tuple(chance.uniform(1 - share, 1 + share) for _ in row)
        rows.append(tuple(pages * factor for pages, factor in zip(row, factors, strict=True)))
    return Trace(f"{trace.name}, jitter", tuple(rows), trace.working_set_pages)


def side_by_side(name: str, traces: Sequence[Trace]) -> Trace:
    """One guest with the vCPUs of all *traces*, as long as the shortest.

    The working set is the largest: the bound is then too high for some vCPUs, never too low.
    """
    shortest = min(trace.duration_ms for trace in traces)
    sets = [trace.working_set_pages for trace in traces]
    known = [pages for pages in sets if pages is not None]
    columns = zip(*(trace.rows[:shortest] for trace in traces), strict=True)
    rows = tuple(tuple(pages for row in rows for pages in row) for rows in columns)
    return Trace(name, rows, max(known) if len(known) == len(sets) else None)


def read_recording(path: Path) -> Trace:
    """A trace of one vCPU that tests/data/dirty_rates/record.py has written.

    The pages that a round collected are spread evenly over the time since the round before:
    bursts shorter than a round, of 50 ms and more, are lost.
    """
    document = json.loads(path.read_text())
    working_set = document["region_bytes"] // PAGE_BYTES
    rows: list[Row] = []
    ended = 0.0
    for elapsed, measured, rate in zip(
        document["elapsed_ms"], document["measured_ms"], document["mib_per_s"], strict=True
    ):
        ended += elapsed
        length = max(1, round(ended) - len(rows))
        pages = rate * PAGES_PER_MIB * measured / 1000
        rows += [(pages / length,)] * length
    return Trace(f"recorded {path.stem}", tuple(rows), working_set)
