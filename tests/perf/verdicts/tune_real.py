"""One real study: a migration over a link capped at 1 Gbit/s, six tunables, at most 20 minutes.

The guest writes 60 MB/s in 128 MiB. The bound is that the study ends with a verdict of fresh runs,
or says that there is nothing to confirm: whatever it finds is the result.

    python -m tests.perf.verdicts.tune_real [SECONDS]
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.perf.report import Check, environment, finish
from tests.perf.support import folder
from tests.support.hosts.live import Service
from vmtune.client.commands.tune.views import lines
from vmtune.client.connection.http import Document

SECONDS = 780
MOST_S = 1200
SEED = 20261126
STUDY: dict[str, Any] = {
    "name": "capped-link",
    "title": "A migration over a link of 1 Gbit/s",
    "scenario": {
        "name": "perf/capped-link",
        "vm": {"memory_bytes": "256Mi"},
        "workload": {"region_bytes": "128Mi", "dirty_mb_per_s": 60, "beat_ms": 5},
        "values": {"max_bandwidth_bytes_per_s": "1Gbit/s", "downtime_limit_ms": "300ms"},
        "warmup_s": 1,
        "cooldown_s": 1,
        "max_seconds": 30,
    },
    "objective": "minimise total_time_ms where guest_silence_ms <= 500 and completed",
    "space": {
        "multifd": {},
        "multifd_channels": {"low": 1, "high": 8},
        "multifd_compression": {"choices": ["none", "zlib", "zstd"]},
        "xbzrle": {},
        "auto_converge": {},
        "cpu_throttle_initial_percent": {"low": 10, "high": 60, "step": 10},
    },
    "confirm_blocks": 6,
    "finalists": 2,
    "seed": SEED,
}


def study(base: Path, seconds: int) -> tuple[Document, list[Document], float]:
    """The study's record at its end, its trials, and how long it took in seconds."""
    os.environ["VMTUNE_BENCH_DIR"] = str(base / "b")
    service = Service(base)
    service.start()
    try:
        began = time.monotonic()
        order = {**STUDY, "budget": {"seconds": seconds}}
        id = service.client.post("/studies", order)["id"]
        while True:
            record = service.client.get(f"/studies/{id}")
            if record["ended"]:
                break
            time.sleep(2)
        took = time.monotonic() - began
        trials = list(service.client.items(f"/studies/{id}/trials"))
        return record, trials, took
    finally:
        service.stop()


def said(record: Document, trials: list[Document]) -> Iterator[str]:
    """What docs/benchmarks.md tells beside the verdicts."""
    runs = [run for one in trials for run in one["runs"]]
    loads = [run["host_load"] for run in runs if run["host_load"] is not None]
    if loads:
        yield (
            f"before each run of the search something waited for a CPU for {min(loads):.0f} to "
            f"{max(loads):.0f} % of the time"
        )
    origins = Counter(one["origin"] for one in trials if one["origin"] != "sampled")
    yield f"settings tried: {len(trials)}, among them {', '.join(origins)}"
    ends = Counter(run["outcome"] for run in runs)
    yield "runs of the search: " + ", ".join(f"{count} {name}" for name, count in ends.items())
    winner = (record["result"] or {}).get("trial")
    for one in trials:
        if one["number"] in (0, winner):
            silences = [run["metrics"].get("guest_silence_ms") for run in one["runs"]]
            known = [each for each in silences if each is not None]
            median = f"{statistics.median(known):.0f} ms" if known else "none"
            yield f"silence of trial {one['number']} ({one['origin']}) in the search: {median}"


def main() -> None:
    """Run it, and print what it found."""
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    with folder() as base:
        record, trials, took = study(base, seconds)
    print(*lines(record), sep="\n")
    print()
    for one in trials:
        medians = ", ".join(f"{name} {value:.0f}" for name, value in one["medians"].items())
        texts = ", ".join(f"{name} {value}" for name, value in one["texts"].items())
        print(f"{one['number']:3} {one['origin']:10} {len(one['runs'])} runs  {medians}  {texts}")
    print(*said(record, trials), sep="\n")
    checks = [
        Check("the study completed", float(record["state"] == "completed"), "", 1, "min"),
        Check("it took", took, "s", MOST_S, "max"),
    ]
    raw = {"study": record, "trials": trials}
    finish("tune_real", checks, raw, environment())


if __name__ == "__main__":
    main()
