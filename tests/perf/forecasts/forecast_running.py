"""How far the time left that a running migration shows is from the truth, beside what users had.

Replays the migrations that tests.perf.forecasts.dataset recorded, sample by sample, as the service
follows a running one. The truth is when the guest was stopped, by QEMU's totals, which is what is
shown; the last sample comes later, on a busy machine by 0.1 to 0.3 s. Beside it: what remains
divided by the throughput. Of the published ones those count that tests.perf.forecasts.forecast
counts, each once for each number of synchronisations that were seen, with the median of its errors
there; moments within 0.3 s of the end do not count.

Without a folder of RESULTS it first does COUNT migrations itself, some 5 s each.

    python -m tests.perf.forecasts.forecast_running [RESULTS [COUNT [SEED]]]
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.perf.forecasts.dataset import collect
from tests.perf.forecasts.dataset_drawn import SEED
from tests.perf.forecasts.forecast import counted, points_of
from tests.perf.report import Check, environment, finish
from tests.perf.support import folder
from vmtune.forecast.conditions import conditions_of
from vmtune.forecast.following import Followed, observe, throughput_bytes_per_s
from vmtune.forecast.outlook import Judged, judge
from vmtune.forecast.probe import curve_of
from vmtune.model.migration.record import QemuStatus, Sample

COUNT = 160
_MOST_SYNCS = 4
_TOO_NEAR_MS = 300
_MOST_PERCENT = 15
"""Of the median error from the second pass on."""


def replay(migration: dict[str, Any]) -> Iterator[tuple[int, Sample, Judged, float]]:  # any: JSON
    """Of each sample in pre-copy: synchronisations seen, the judgement, and the throughput."""
    conditions = conditions_of(migration["values"])
    known = curve_of(points_of(migration["probe"])).points
    seen, judged = Followed(), Judged()
    for stored in migration["samples"]:
        sample = Sample(**{**stored, "status": QemuStatus(stored["status"])})
        if sample.status is not QemuStatus.ACTIVE:
            return
        seen = observe(seen, sample)
        judged = judge(judged, seen, conditions, known)
        pace = throughput_bytes_per_s(seen)
        if pace is not None:
            yield min(seen.syncs, _MOST_SYNCS), sample, judged, pace


@dataclass(slots=True)
class Tally:
    """What was seen of all migrations, by synchronisations.

    :param ours: the median error of each migration that completed; *naive*: of remaining bytes by
        throughput.
    :param held: for each, the share of the moments at which the bounds held the truth.
    :param wrong: completed, and had been said not to end.
    :param endless: did not complete, and were said not to end; of *unended*.
    """

    ours: dict[int, list[float]] = field(default_factory=dict)
    naive: dict[int, list[float]] = field(default_factory=dict)
    held: dict[int, list[float]] = field(default_factory=dict)
    completed: int = 0
    wrong: int = 0
    unended: int = 0
    endless: int = 0

    def add(self, migration: dict[str, Any]) -> None:  # any: JSON
        """Replay one."""
        completed = migration["state"] == "completed"
        totals = migration["totals"]
        end_ms = totals["total_time_ms"] - totals["downtime_ms"] if totals else 0
        moments: dict[int, list[tuple[float, float, bool]]] = {}
        said_endless = False
        for syncs, sample, judged, pace in replay(migration):
            outlook = judged.outlook
            said_endless = said_endless or outlook.ends is False
            left_ms = end_ms - sample.at_ms
            if not completed or outlook.left_ms is None or left_ms <= _TOO_NEAR_MS:
                continue
            simple_ms = sample.remaining_bytes / pace * 1000
            held = (outlook.least_left_ms or 0) <= left_ms <= (outlook.most_left_ms or math.inf)
            errors = abs(outlook.left_ms / left_ms - 1), abs(simple_ms / left_ms - 1), held
            moments.setdefault(syncs, []).append(errors)
        self.completed += completed
        self.wrong += completed and said_endless
        self.unended += not completed
        self.endless += not completed and said_endless
        for syncs, seen in moments.items():
            ours, naive, held_there = zip(*seen, strict=True)
            self.ours.setdefault(syncs, []).append(statistics.median(ours))
            self.naive.setdefault(syncs, []).append(statistics.median(naive))
            self.held.setdefault(syncs, []).append(statistics.fmean(held_there))


def main() -> None:
    """Collect what is not there, replay and report."""
    where = environment()
    count = int(sys.argv[2]) if len(sys.argv) > 2 else COUNT
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else SEED
    with ExitStack() as stack:
        results = Path(sys.argv[1]) if len(sys.argv) > 1 else stack.enter_context(folder())
        migrations = collect(results / "migrations.jsonl", count, seed)
    tally = Tally()
    for migration in counted(migrations, seed):
        if migration.get("samples"):
            tally.add(migration)
    print("syncs seen  migrations  median error  remaining/throughput  within the bounds")
    for syncs in sorted(tally.ours):
        mine, theirs = (statistics.median(of[syncs]) for of in (tally.ours, tally.naive))
        held = statistics.fmean(tally.held[syncs])
        number = len(tally.ours[syncs])
        print(f"{syncs:>10}{number:>12}{mine:>14.0%}{theirs:>22.0%}{held:>19.0%}")
    print(
        f"{tally.completed} completed, of which {tally.wrong} had been said not to end; "
        f"{tally.endless} of {tally.unended} others were said not to end"
    )
    later = [error for syncs, errors in tally.ours.items() if syncs for error in errors]
    middle = statistics.median(later or [1.0]) * 100
    finish(
        "forecast_running",
        [Check("median error from the second pass on", middle, "%", _MOST_PERCENT, "max")],
        {"errors": tally.ours, "remaining_by_throughput": tally.naive, "within": tally.held},
        where,
    )


if __name__ == "__main__":
    main()
