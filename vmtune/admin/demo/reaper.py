"""The demo's benchmark: one run of each way to empty dirty rings, and one with bitmap tracking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vmtune.client.connection.http import Client, Document
from vmtune.client.views.output import Column, table
from vmtune.client.views.progress import RunProgression, viewer
from vmtune.client.views.render import metric
from vmtune.client.watch import RUN, watch_to_end
from vmtune.errors import SetupError

MIB = 1 << 20
_RING = 16384
ARMS: Mapping[str, str] = {
    "bitmap": "dirty-ring/bitmap",
    "ring, reaped by QEMU": f"dirty-ring/{_RING}-stock",
    "ring, by predict": f"dirty-ring/{_RING}-predict",
    "ring, by levels": f"dirty-ring/{_RING}-levels",
    "ring, by aimd": f"dirty-ring/{_RING}-aimd",
}
"""The arms by what the table calls them, and their scenarios."""
HELD_S = 2
# The guest fills a ring in a third of a second, so that one that is emptied each second is full
# most of the time; and the migration is too slow to end by itself.
CHANGES: Mapping[str, Any] = {  # any JSON: parts of a scenario
    "vm": {"memory_bytes": 128 * MIB},
    "workload": {"region_bytes": 80 * MIB, "dirty_mb_per_s": 200},
    "values": {"max_bandwidth_bytes_per_s": 40_000_000},
    "warmup_s": 1,
    "cooldown_s": 0,
    "max_seconds": HELD_S,
    "max_iterations": 10_000,
}
_SHOWN = {
    "guest_write_share_percent": "GUEST WRITES AT",
    "guest_silence_ms": "LONGEST SILENCE",
    "ring_full_exits": "RING-FULL EXITS",
    "reaper_rounds": "ROUNDS",
    "source_cpu_ms": "SOURCE'S CPU",
}
_MEASURED = ("completed", "not converged")


def measure(client: Client, verbose: bool) -> Iterator[Document]:
    """One run of each arm, one after the other.

    :raise SetupError: one could not be measured.
    """
    for number, (arm, scenario) in enumerate(ARMS.items(), 1):
        name = f"demo/{scenario.partition('/')[2]}"
        order = {"scenario": scenario, "changes": {**CHANGES, "name": name}}
        run = client.post("/runs", order)
        title = f"Run {number} of {len(ARMS)}: {arm}"
        with viewer(verbose, RunProgression(title)) as shown:
            record = watch_to_end(client, str(run["id"]), shown, kind=RUN)
        if record["state"] not in _MEASURED:
            raise SetupError(
                f"the run {name} ended as {record['state']}: {record['failure']}",
                code="demo_run",
                remedy="`make demo KEEP=1` keeps everything running for inspection",
            )
        yield record


def report(runs: Sequence[Document]) -> Iterator[str]:
    """What each arm took, and what not to read into it."""
    yield (
        "A guest that writes 200 MB/s. Its dirty pages are tracked in a bitmap, and in a ring of "
        f"{_RING:,} entries"
    )
    yield f"with several reaper policies. Its migration is cancelled after {HELD_S} s:"
    columns = [Column("DIRTY PAGES IN"), *(Column(t, right=True) for t in _SHOWN.values())]
    rows = [
        (arm, *(metric(name, run["metrics"].get(name)) for name in _SHOWN))
        for arm, run in zip(ARMS, runs, strict=True)
    ]
    yield from table(columns, rows, "no runs")
    yield "One run each, with both hosts on one machine: it shows the effect, not its size."
    yield ("With nested KVM a full ring stops the guest for longer than elsewhere.")
