"""What room a fleet's records take on PostgreSQL: for each VM, each migration, each sample.

The service's own code writes them, with its jobs; only the hosts are simulated. Each migration gets
a minute's samples at 10 Hz, stored as the service stores them. Sizes are those of PostgreSQL
(``pg_total_relation_size``: rows, indexes, what is stored aside), divided by how many there are;
before that ``VACUUM FULL`` packs every table, and how much more there was tells what writing leaves
behind until it is used again.

    python -m tests.perf.fleets.room [MIGRATIONS]
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import cast
from uuid import UUID

import psycopg
import structlog

from tests.perf.report import Check, environment, finish
from tests.perf.support import SETTINGS
from tests.support.examples.samples import make_samples
from tests.support.simulated.fleet import Fleet
from tests.support.simulated.world import assemble
from tests.support.stores.postgres import libpq_url, new_database, running_postgres, why_no_postgres
from vmtune.jobs.durable import DurableEngine
from vmtune.model.migration.admission import Limits
from vmtune.storage import Store, upgrade
from vmtune.testing.inline_jobs import InlineEngine

MIGRATIONS = 400
SAMPLES, FLUSHED = 600, 20
MAX_SAMPLE, MAX_MIGRATION, MAX_VM = 60.0, 24_000.0, 12_000.0
LEAST_FLUSHES_PER_S = 100.0
WRITERS, TURNS = 8, 100
GROUPS: Mapping[str, tuple[str, ...]] = {
    "sample": ("sample_chunks",),
    "migration's record": ("migrations", "slots", "operations"),
    "migration's events": ("events",),
    "migration's audit entries": ("audit",),
    "migration's job": ("dbos.workflow_status", "dbos.operation_outputs"),
    "VM": ("vms", "tunings", "applications"),
}
TUNED = {"multifd": True, "multifd_channels": 4, "downtime_limit_ms": 300,
         "max_bandwidth_bytes_per_s": "1GiB/s", "multifd_compression": "zstd"}  # fmt: skip


def sizes(url: str, pack: bool = True) -> dict[str, int]:
    """Bytes by table, with its indexes.

    :param pack: first give back what is not used.
    """
    found: dict[str, int] = {}
    with psycopg.connect(libpq_url(url), autocommit=True) as connection:
        for table in (table for tables in GROUPS.values() for table in tables):
            if pack:
                connection.execute(f"VACUUM FULL {table}".encode())
            query = "SELECT pg_total_relation_size(%s::regclass)"
            (found[table],) = connection.execute(query, [table]).fetchone() or (0,)
    return found


async def fill(url: str, number: int) -> dict[str, int]:
    """Apply a profile to so many VMs; migrate each; give each migration its samples.

    :return: by group, how many bytes the first half of it all had taken.
    """
    sim = Fleet(lasts_s=0.0)
    sim.add("h0", number, room=number << 31)
    sim.add("h1", 0, room=number << 31)
    engine = DurableEngine(url, "room")
    with Store.open(url) as store:
        limits = Limits(20, 20, 20)
        it = assemble(
            store, {}, lambda host: sim.driver(host.name), cast(InlineEngine, engine), limits
        )
        await engine.start()
        try:
            for name in sim.hosts:
                await it.hosts.add(name, f"qemu+tcp://{name}/system")
            await it.hosts.list_vms()
            await it.profile("ten", **SETTINGS[0])
            await it.profile("tuned", **TUNED)
            vms = list(sim.hosts["h0"].vms)
            for vm in vms:
                await it.applications.apply(vm, "ten", best_effort=True)
            taken = make_samples(SAMPLES)
            before = await asyncio.to_thread(sizes, url)
            for vm in vms:
                record = await it.migrations.start(vm, "h1", "tuned", overrides=())
                await engine.wait(str(record.id))
                for start in range(0, SAMPLES, FLUSHED):
                    flushed = taken[start : start + FLUSHED]
                    await asyncio.to_thread(store.migrations.add_samples, record.id, flushed)
            return before
        finally:
            await engine.stop()
            await it.admission.close()
            await it.hosts.close()
            await it.bus.drain()


def flushes_per_s(url: str) -> float:
    """How many times a second eight writers at once can store two seconds' samples of one of as
    many migrations: they take turns, on all services together."""
    taken = make_samples(SAMPLES)
    with Store.open(url) as store, ThreadPoolExecutor(WRITERS) as pool:
        ids = [record.id for record in store.migrations.list(limit=WRITERS).items]

        def flush(id: UUID) -> None:
            for number in range(TURNS):
                start = number * FLUSHED % SAMPLES
                store.migrations.add_samples(id, taken[start : start + FLUSHED])

        begun = time.perf_counter()
        list(pool.map(flush, ids))
        return WRITERS * TURNS / (time.perf_counter() - begun)


def costs(before: Mapping[str, int], after: Mapping[str, int], number: int) -> dict[str, float]:
    """Bytes of each thing. What a table had *before* the migrations is the VMs'."""
    each = {
        what: sum(after[table] - before[table] for table in tables) / number
        for what, tables in GROUPS.items()
    }
    each["sample"] /= SAMPLES
    of_vms = (*GROUPS["VM"], "events", "audit")
    each["VM"] = sum(before[table] for table in of_vms) / number
    return each


def main() -> None:
    """Measure and report."""
    where = environment()
    number = int(sys.argv[1]) if len(sys.argv) > 1 else MIGRATIONS
    if why_no_postgres():
        sys.exit(why_no_postgres())
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with running_postgres() as server, new_database(server) as url:
        upgrade(url)
        before = asyncio.run(fill(url, number))
        loose = sizes(url, pack=False)
        after = sizes(url)
        rate = flushes_per_s(url)
    each = costs(before, after, number)
    for what, size in each.items():
        print(f"{what}: {size:,.1f} bytes")
    whole = sum(after.values())
    print(f"not packed, the same takes {sum(loose.values()) / whole:.2f} times as much")
    print(f"{rate:.0f} times a second samples can be stored")
    migration = sum(size for what, size in each.items() if what.startswith("migration"))
    checks = [
        Check("a sample", each["sample"], "bytes", MAX_SAMPLE, "max"),
        Check("a migration beside its samples", migration, "bytes", MAX_MIGRATION, "max"),
        Check("a VM with an application", each["VM"], "bytes", MAX_VM, "max"),
        Check("stores of samples", rate, "/s", LEAST_FLUSHES_PER_S, "min"),
    ]
    raw = {"each": each, "flushes_per_s": rate, "before": before, "loose": loose, "after": after}
    finish("room", checks, raw, where)


if __name__ == "__main__":
    main()
