"""What several benchmarks share: ten settings, a machine of one's own, clocks."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from vmtune.lab import LabSettings

LAB = LabSettings(
    name_a="vmtune-perf-a",
    name_b="vmtune-perf-b",
    address_a="10.96.0.1/24",
    address_b="10.96.0.2/24",
    folder=Path("/run/vmtune-perf"),
)

# Ten settings of the routes monitor and live, twice, so that every repeat changes all of
# them. auto_converge is there for the throttle settings, which mean nothing without it; it
# waits for a migration.
SETTINGS: tuple[dict[str, bool | int | str], ...] = tuple(
    {
        "auto_converge": True,
        "downtime_limit_ms": 300 + n,
        "zero_page_detection": ("none", "legacy")[n],
        "max_cpu_throttle_percent": 80 + n,
        "cpu_throttle_tailslow": bool(n),
        "throttle_trigger_threshold_percent": 60 + n,
        "iothread_thread_pool_min": n,
        "iothread_thread_pool_max": 32 + n,
        "iothread_poll_max_ns": 20000 + n,
        "main_loop_thread_pool_min": n,
        "main_loop_thread_pool_max": 32 + n,
    }
    for n in (0, 1)
)
COUNTED = 10


def timed_ms(work: Callable[[], object]) -> float:
    """How long *work* takes, in milliseconds."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def interleaved(
    arms: Sequence[Callable[[int], object]], repeats: int, warm_up: int = 2
) -> list[list[float]]:
    """Each arm's times in milliseconds; the arms take turns, and which is first alternates."""
    times: list[list[float]] = [[] for _ in arms]
    for repeat in range(-warm_up, repeats):
        order = range(len(arms)) if repeat % 2 else reversed(range(len(arms)))
        for index in order:
            took = timed_ms(lambda arm=arms[index], n=repeat: arm(n % 2))  # type: ignore[misc]
            if repeat >= 0:
                times[index].append(took)
    return times


def median_ratio(slow: Sequence[float], fast: Sequence[float]) -> float:
    """The median over pairs of how many times longer *slow* took."""
    return statistics.median(s / f for s, f in zip(slow, fast, strict=True))


@contextmanager
def folder() -> Iterator[Path]:
    """A temporary folder with a path short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="vt-") as name:
        yield Path(name)


@contextmanager
def variables(**values: str) -> Iterator[None]:
    """The settings of the services that are started meanwhile."""
    before = {name: os.environ.get(name) for name in values}
    os.environ |= values
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
