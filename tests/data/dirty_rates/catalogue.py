"""The traces that the reaper's policies are compared on, each with the size of its rings."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from vmtune.testing import dirty_rate_traces as traces
from vmtune.testing.dirty_rate_traces import Trace

HERE = Path(__file__).parent
DURATION_MS = 20_000
LARGE, MEDIUM, SMALL = 65536, 4096, 1024
HOPELESS = "too fast for ring 4096"
"""Its ring fills before the shortest round can come: the exits themselves empty it."""
RECORDED = ("steady", "bursts", "phases", "small-set")


def recording(name: str) -> Trace:
    """One vCPU, as tests/data/dirty_rates/record.py has recorded it."""
    return traces.read_recording(HERE / f"{name}.json")


def synthetic() -> list[tuple[Trace, int]]:
    """Made traces: they show one thing each."""
    ms = DURATION_MS
    steady = traces.constant("steady, 4 vCPUs", (120_000, 60_000, 20_000, 2_000), ms)
    return [
        (traces.constant("idle, 4 vCPUs", (500, 200, 100, 100), ms), LARGE),
        (steady, LARGE),
        (traces.jitter(steady, seed=7), LARGE),
        (traces.ramp("ramp, 2 vCPUs", (300_000, 150_000), ms), LARGE),
        (
            traces.bursts(
                "short bursts together", (250_000,) * 4, ms, every_ms=2000, lasting_ms=400
            ),
            LARGE,
        ),
        (
            traces.bursts(
                "short bursts out of phase",
                (250_000,) * 4,
                ms,
                every_ms=2000,
                lasting_ms=400,
                out_of_phase=True,
            ),
            LARGE,
        ),
        (
            traces.bursts(
                "work and idle phases", (200_000, 100_000), ms, every_ms=9000, lasting_ms=3000
            ),
            LARGE,
        ),
        (traces.constant("steady, ring 4096", (12_000, 8_000, 1_000), ms), MEDIUM),
        (
            traces.bursts(
                "bursts, ring 4096", (25_000, 15_000), ms, every_ms=3000, lasting_ms=1000
            ),
            MEDIUM,
        ),
        (traces.constant("steady, ring 1024", (2_500, 1_000), ms), SMALL),
        (traces.constant(HOPELESS, (145_000,), ms), MEDIUM),
    ]


def recorded() -> list[tuple[Trace, int]]:
    """What a real vCPU has dirtied, alone and as one of four."""
    each = [recording(name) for name in RECORDED]
    together = traces.side_by_side("recorded, 4 vCPUs", each)
    return [*((trace, LARGE) for trace in (*each, together)), (recording("bursts"), 16384)]


@cache
def scenarios() -> tuple[tuple[Trace, int], ...]:
    """All of them."""
    return (*synthetic(), *recorded())
