"""Comparing in a database that is full: 10,000 runs with 20 metrics and 1,000 samples each.

On SQLite and on PostgreSQL: how fast runs are stored with their samples and how much room these
take, and then, in the full database, how long it takes to list a page of runs, to compare two arms
of 50 runs over 20 metrics (in blocks of a campaign, and unpaired by filters), and to fetch the
samples of a run. Each through the store and the services, the database's time included; what a
process does only once (importing scipy) is not. Times are the 95th percentile of 20 calls, each
about other runs than the one before.

``python -m tests.perf.verdicts.compare_scale 500`` does it with fewer runs.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid5

import psycopg

from tests.perf.report import Check, environment, finish, spread
from tests.support.benchmarks.campaigns import FORECAST, a_campaign
from tests.support.examples.samples import make_samples
from tests.support.stores.postgres import libpq_url, new_database, running_postgres, why_no_postgres
from vmtune.bench.model.campaign.record import CampaignState
from vmtune.bench.model.metrics.table import METRICS, Direction
from vmtune.bench.model.runs.run import Run, RunRecord, RunState, Slot
from vmtune.bench.model.runs.series import Series
from vmtune.bench.model.scenario.migration import to_json
from vmtune.bench.services.comparisons.comparisons import Asked, ComparisonService
from vmtune.storage import Store, upgrade
from vmtune.storage.repositories.bench.run_rows import RunFilter

RUNS = 10_000
SAMPLES = 1000
BLOCKS = 50
CALLS = 20
LIST_MS, COMPARE_MS, SAMPLES_MS = 50.0, 200.0, 50.0
LEAST_SAMPLES_PER_S = 50_000.0
MAX_BYTES = 60.0
_IDS = UUID(int=4)
_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
_PLACE = {"cpu": {"count": 2}, "qemu": {"version": "10.0.2"}}
_NAMES = ["total_time_ms", *[
    name for name, metric in METRICS.items()
    if metric.direction is not Direction.NONE and name not in ("total_time_ms", "converged")
]][:20]  # fmt: skip
assert len(_NAMES) == 20


def campaign_of(number: int) -> UUID:
    """Each hundred runs are a campaign of two arms."""
    return uuid5(_IDS, f"campaign {number // (2 * BLOCKS)}")


def make_runs(number: int) -> Iterator[Run]:
    """Runs as campaigns leave them; their values spread by 10 %, and differ by arm."""
    records = [RunRecord(500, 99_000, 100_000, tuple(make_samples(SAMPLES, n))) for n in range(8)]
    chance = random.Random(1)
    setup = to_json(a_campaign().scenario)
    for index in range(number):
        place = index % (2 * BLOCKS)
        arm = ("stock", "tuned")[place % 2]
        middle = 1000 if arm == "stock" else 800
        at = _BEGAN + timedelta(minutes=index)
        yield Run(
            id=uuid5(_IDS, str(index)),
            scenario="mine/small",
            setup=setup,
            values={"multifd": True} if arm == "tuned" else {},
            state=RunState.COMPLETED,
            created_at=at,
            started_at=at,
            ended_at=at + timedelta(seconds=30),
            profile=arm,
            revision=1,
            qemu="system",
            host=f"h{index // (2 * BLOCKS)}",
            slot=Slot(campaign_of(index), arm, place // 2 + 1, place % 2 + 1),
            fingerprint="here",
            environment=_PLACE,
            metrics={name: middle * chance.lognormvariate(0, 0.1) for name in _NAMES},
            record=records[index % len(records)],
        )


@contextmanager
def databases() -> Iterator[dict[str, tuple[str, Callable[[], int]]]]:
    """Empty ones by name, each with what tells its size in bytes."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        file = folder / "runs.db"

        def sqlite_size() -> int:
            return sum(path.stat().st_size for path in folder.iterdir())

        found: dict[str, tuple[str, Callable[[], int]]] = {
            "sqlite": (f"sqlite:///{file}", sqlite_size)
        }
        why_not = why_no_postgres()
        if why_not:
            print(f"without PostgreSQL: {why_not}")
        else:
            url = stack.enter_context(new_database(stack.enter_context(running_postgres())))

            def postgres_size() -> int:
                with psycopg.connect(libpq_url(url)) as connection:
                    row = connection.execute("SELECT pg_database_size(current_database())")
                    (size,) = row.fetchone() or (0,)
                    return int(size)

            found["postgresql"] = (url, postgres_size)
        yield found


def timed(call: Callable[[int], object]) -> list[float]:
    """Milliseconds of each of :data:`CALLS` calls, after one that does not count."""
    call(0)
    took = []
    for number in range(CALLS):
        begun = time.perf_counter()
        call(number)
        took.append((time.perf_counter() - begun) * 1000)
    return took


def late(values: Sequence[float]) -> float:
    """The 95th percentile: the second highest of 20."""
    return sorted(values)[-2]


def measure(
    name: str, url: str, size: Callable[[], int], number: int
) -> tuple[list[Check], dict[str, object]]:
    """Fill a database, and ask it."""
    upgrade(url)
    empty = size()
    with Store.open(url) as store:
        storing = 0.0
        for index, run in enumerate(make_runs(number)):
            if index % (2 * BLOCKS) == 0:
                plan = replace(a_campaign(blocks=BLOCKS), name=f"c{index}")
                store.campaigns.begin(plan, FORECAST, "h", campaign_of(index))
                store.campaigns.enter(campaign_of(index), CampaignState.COMPLETED)
            begun = time.perf_counter()
            store.runs.add(run)
            storing += time.perf_counter() - begun
        per_s = number * SAMPLES / storing
        per_sample = (size() - empty) / (number * SAMPLES)
        print(f"{name}: {number:,} runs stored in {storing:.0f} s")
        comparing = ComparisonService(store)
        step = max(1, number // (2 * BLOCKS) // CALLS) * 2 * BLOCKS

        def ids(call: int) -> int:
            return call * step % number

        def blocks(call: int) -> None:
            report = comparing.compared(Asked(campaign=str(campaign_of(ids(call)))))
            (cell,) = report.cells
            assert len(cell.comparisons) == len(_NAMES) + 1  # and how many completed
            assert cell.primary.size == BLOCKS

        def filters(call: int) -> None:
            host = f"h{ids(call) // (2 * BLOCKS)}"
            report = comparing.compared(
                Asked(f"profile=stock,host={host}", f"profile=tuned,host={host}")
            )
            assert report.cells[0].primary.size == BLOCKS

        def samples(call: int) -> None:
            page = store.runs.series(uuid5(_IDS, str(ids(call))), Series.SAMPLES, None, SAMPLES)
            assert len(page.items) == SAMPLES

        def listing(call: int) -> None:
            page = store.runs.list(RunFilter(profile=("stock", "tuned")[call % 2]), None, 50)
            assert len(page.items) == 50

        took = {
            "list a page": (timed(listing), LIST_MS),
            "compare in blocks": (timed(blocks), COMPARE_MS),
            "compare unpaired": (timed(filters), COMPARE_MS),
            "fetch samples": (timed(samples), SAMPLES_MS),
        }
    checks = [
        Check(f"{name}: {what}", late(values), "ms", bound, "max")
        for what, (values, bound) in took.items()
    ]
    for what, (values, _) in took.items():
        print(f"{name}: {what}: {spread(values)} ms")
    checks.append(Check(f"{name}: store", per_s, "samples/s", LEAST_SAMPLES_PER_S, "min"))
    checks.append(Check(f"{name}: room", per_sample, "bytes/sample", MAX_BYTES, "max"))
    return checks, {what: values for what, (values, _) in took.items()}


def main() -> None:
    """Both databases."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    where = environment()
    checks: list[Check] = []
    raw: dict[str, object] = {"runs": number, "samples": SAMPLES, "metrics": len(_NAMES)}
    with databases() as found:
        for name, (url, size) in found.items():
            more, raw[name] = measure(name, url, size, number)
            checks += more
    finish("compare_scale", checks, raw, where)


if __name__ == "__main__":
    main()
