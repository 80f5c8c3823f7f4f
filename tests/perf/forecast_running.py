"""How far the time left that a running migration shows is from the truth, beside what users had.

Replays the migrations that tests.perf.dataset recorded, sample by sample, as the service follows a
running one. The truth is when the guest ran on the destination. Beside it: what remains divided by
the throughput. A migration counts once for each number of synchronisations that were seen, with the
median of its errors there; moments within 0.3 s of the end do not count.

    python -m tests.perf.forecast_running RESULTS
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.perf.report import Check, environment, finish
from vmtune.forecast.course import AutoConverge, Conditions
from vmtune.forecast.following import Followed, observe, throughput_bytes_per_s
from vmtune.forecast.outlook import Judged, judge
from vmtune.model.migration.record import QemuStatus, Sample

_MOST_SYNCS = 4
_TOO_NEAR_MS = 300
_USUAL_PERCENT = 50


def replay(migration: dict[str, Any]) -> Iterator[tuple[int, Sample, Judged, float]]:  # any: JSON
    """Of each sample in pre-copy: synchronisations seen, the judgement, and the throughput."""
    values = migration["values"]
    conditions = Conditions(
        1.0,
        values["downtime_limit_ms"],
        auto_converge=AutoConverge() if values.get("auto_converge") else None,
    )
    seen, judged = Followed(), Judged()
    for stored in migration["samples"]:
        sample = Sample(**{**stored, "status": QemuStatus(stored["status"])})
        if sample.status is not QemuStatus.ACTIVE:
            return
        seen = observe(seen, sample)
        judged = judge(judged, seen, conditions)
        pace = throughput_bytes_per_s(seen)
        if pace is not None:
            yield min(seen.syncs, _MOST_SYNCS), sample, judged, pace


def main() -> None:
    """Replay and report."""
    where = environment()
    results = Path(sys.argv[1]) / "migrations.jsonl"
    migrations = [json.loads(line) for line in results.read_text().splitlines()]
    ours: dict[int, list[float]] = {}
    naive: dict[int, list[float]] = {}
    wrong = endless = ended = 0
    for migration in migrations:
        if not migration.get("samples"):
            continue
        completed = migration["state"] == "completed"
        ended += completed
        end_ms = migration["samples"][-1]["at_ms"]
        of_one: dict[int, list[tuple[float, float]]] = {}
        said_endless = False
        for syncs, sample, judged, pace in replay(migration):
            said_endless = said_endless or judged.outlook.ends is False
            left_ms, expected_ms = end_ms - sample.at_ms, judged.outlook.left_ms
            if completed and expected_ms is not None and left_ms > _TOO_NEAR_MS:
                simple_ms = sample.remaining_bytes / pace * 1000
                errors = (abs(expected_ms / left_ms - 1), abs(simple_ms / left_ms - 1))
                of_one.setdefault(syncs, []).append(errors)
        wrong += completed and said_endless
        endless += not completed and said_endless
        for syncs, errors in of_one.items():
            ours.setdefault(syncs, []).append(statistics.median(e for e, _ in errors))
            naive.setdefault(syncs, []).append(statistics.median(e for _, e in errors))
    print(f"{'syncs seen':>10}{'migrations':>12}{'median error':>14}{'remaining/throughput':>22}")
    for syncs in sorted(ours):
        mine, theirs = statistics.median(ours[syncs]), statistics.median(naive[syncs])
        print(f"{syncs:>10}{len(ours[syncs]):>12}{mine:>13.0%}{theirs:>21.0%}")
    print(f"{ended} completed, of which {wrong} had been said not to end; "
          f"{endless} of {len(migrations) - ended} others were said not to end")  # fmt: skip
    first = statistics.median(ours.get(1, [1.0])) * 100
    finish(
        "forecast_running",
        [Check("median error after the first synchronisation", first, "%", _USUAL_PERCENT, "max")],
        {"errors": ours, "remaining_by_throughput": naive},
        where,
    )


if __name__ == "__main__":
    main()
