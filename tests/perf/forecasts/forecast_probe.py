"""What the measurement before a forecast takes from the guest that is measured.

A guest of one vCPU writes over a region as fast as it can. It is measured as for a forecast, and
left alone for as long, in turns; its progress is the passes over the region that it reports.

    python -m tests.perf.forecasts.forecast_probe [ROUNDS]
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.perf.forecasts.dataset_guest import WanderingGuest, wandering_guest
from tests.perf.report import Check, environment, finish, spread
from tests.perf.support import folder
from vmtune.bench.migration.guest_listener import GuestReport
from vmtune.bench.model.scenario.migration import Scenario, VmShape
from vmtune.bench.model.scenario.parts import MIB
from vmtune.lab.guest_serial import GuestPass
from vmtune.model.workload import Workload

ROUNDS = 6
_SCENARIO = Scenario(
    "forecast/probe",
    vm=VmShape(256 * MIB, 1),
    workload=Workload(region_bytes=64 * MIB, dirty_mb_per_s=0, beat_ms=0, cpu_ring=3),
    warmup_s=2,
)


def passes_per_s(reports: Sequence[GuestReport], since: float, until: float) -> float:
    """How fast the guest went on, by its reports that came between two moments.

    :raise ValueError: there are fewer than two.
    """
    seen = [
        (report.at, report.event.number)
        for report in reports
        if isinstance(report.event, GuestPass) and since <= report.at <= until
    ]
    if len(seen) < 2:
        raise ValueError("the guest reported too little")
    (first_at, first), (last_at, last) = seen[0], seen[-1]
    return (last - first) / (last_at - first_at)


async def measure(at: Path, rounds: int) -> tuple[list[float], list[float]]:
    """The guest's progress while it is measured by that before and after it, of each round; and how
    long measuring took, in seconds."""
    shares, took_s = [], []
    async with wandering_guest(at, _SCENARIO) as guest:
        alone_s = await _left_alone(guest, 10.0)
        for number in range(rounds):
            began = time.monotonic()
            await guest.probe()
            ended = time.monotonic()
            measured = passes_per_s(guest.reports(), began, ended)
            took_s.append(ended - began)
            after = await _left_alone(guest, ended - began)
            shares.append(measured / statistics.fmean((alone_s, after)))
            alone_s = after
            print(f"round {number}: {shares[-1]:.4f} times, {took_s[-1]:.1f} s", flush=True)
    return shares, took_s


async def _left_alone(guest: WanderingGuest, for_s: float) -> float:
    began = time.monotonic()
    await asyncio.sleep(for_s)
    return passes_per_s(guest.reports(), began, time.monotonic())


def main() -> None:
    """Measure and report."""
    where = environment()
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with folder() as at:
        shares, took_s = asyncio.run(measure(at, rounds))
    lost = (1 - statistics.median(shares)) * 100
    print(f"progress while measured by that without: {spread(shares)}")
    finish(
        "forecast_probe",
        [
            Check("of the guest's progress, lost while it is measured", lost, "%", 1, "max"),
            Check("measuring takes, longest", max(took_s), "s", 60, "max"),
        ],
        {"shares": shares, "took_s": took_s},
        where,
    )


if __name__ == "__main__":
    main()
