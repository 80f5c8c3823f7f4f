"""How soon the abort of a migration is answered while 8 comparisons in a database of 10,000 runs
are computed.

In the lab, over the service's unix socket: migrations that cannot end by themselves are aborted
in turns with and without comparisons under way.

    python -m tests.perf.abort_latency [RUNS]
"""

from __future__ import annotations

import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tests.perf.report import Check, environment, finish, spread
from tests.perf.support import folder
from tests.perf.verdicts.compare_scale import make_runs
from tests.support.hosts.live import Live, live, why_no_lab
from vmtune.client.connection.http import Client
from vmtune.model.workload import Workload
from vmtune.storage import Store, upgrade

RUNS, COMPARISONS, PAIRS = 10_000, 8, 5
MAX_MS = 200.0
ARMS = {"a": "scenario=mine/small,profile=stock", "b": "scenario=mine/small,profile=tuned"}
"""The newest 2,000 runs of each, which is as many as are compared by filters."""
HELD = {"max_bandwidth_bytes_per_s": "1MiB/s", "downtime_limit_ms": 1}
BUSY = Workload(region_bytes=48 << 20, dirty_mb_per_s=2)


def remember(url: str, number: int) -> None:
    """Store *number* runs of two profiles in turns."""
    upgrade(url)
    with Store.open(url) as store:
        for run in make_runs(number):
            store.runs.add(replace(run, slot=None, record=None))


@contextmanager
def comparing(it: Live, took_s: list[float]) -> Iterator[None]:
    """Have comparisons computed, each again as soon as it is answered."""
    ended = threading.Event()

    def compare() -> None:
        client = Client(it.client.socket_path, answer_within_s=600)
        while not ended.is_set():
            begun = time.monotonic()
            client.get("/comparisons", ARMS)
            took_s.append(time.monotonic() - begun)

    threads = [threading.Thread(target=compare, daemon=True) for _ in range(COMPARISONS)]
    for each in threads:
        each.start()
    time.sleep(3)
    try:
        yield
    finally:
        ended.set()


def abort(it: Live) -> float:
    """How long the abort of a migration took, in milliseconds."""
    with it.vm(workload=BUSY) as vm:
        record = it.migrate(vm, "b")
        it.until_active(record)
        time.sleep(0.5)
        begun = time.perf_counter()
        it.client.delete(f"/migrations/{record['id']}")
        took_ms = 1000 * (time.perf_counter() - begun)
        assert it.ended(record)["state"] == "cancelled"
    return took_ms


def measure(at: Path, number: int) -> tuple[list[float], list[float], list[float]]:
    """Milliseconds of aborts at rest and meanwhile, and seconds of the comparisons."""
    remember(f"sqlite:///{at}/vmtune.db", number)
    at_rest: list[float] = []
    meanwhile: list[float] = []
    took_s: list[float] = []
    with live(at, 96) as it:
        it.profile("held", **HELD)
        it.client.post("/assignments", {"target": "default", "key": "", "profile": "held"})
        for _ in range(PAIRS):
            at_rest.append(abort(it))
        with comparing(it, took_s):
            for _ in range(PAIRS):
                meanwhile.append(abort(it))
    return at_rest, meanwhile, took_s


def main() -> None:
    """Measure and report."""
    where = environment()
    number = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    why_not = why_no_lab()
    if why_not:
        sys.exit(why_not)
    with folder() as at:
        at_rest, meanwhile, took_s = measure(at, number)
    print(f"abort of a migration, at rest: {spread(at_rest)} ms")
    print(f"while {COMPARISONS} comparisons are computed: {spread(meanwhile)} ms")
    print(f"{len(took_s)} comparisons were answered meanwhile, in {spread(took_s or [0.0])} s")
    checks = [
        Check("abort meanwhile, median", statistics.median(meanwhile), "ms", MAX_MS, "max"),
        Check("abort meanwhile, slowest", max(meanwhile), "ms", MAX_MS, "max"),
    ]
    raw = {"at_rest_ms": at_rest, "meanwhile_ms": meanwhile, "comparisons_s": took_s}
    finish("abort_latency", checks, raw, where)


if __name__ == "__main__":
    main()
