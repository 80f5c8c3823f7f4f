"""The demo's picture of a guest while its dirty pages are tracked: by a bitmap, in a ring that QEMU
empties, and in one that vmtune's reaper empties.

A kernel and a QEMU can be such that a full ring ends QEMU (docs/how-to/full-dirty-rings.md). Then
that is the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vmtune.client.connection.http import Client, Document
from vmtune.client.views.output import Column, table
from vmtune.client.views.progress import RunProgression, viewer
from vmtune.client.views.render import metric
from vmtune.client.watch import RUN, watch_to_end

MIB = 1 << 20
_RING = 16384
ARMS: Mapping[str, str] = {
    "bitmap": "dirty-ring/bitmap",
    "ring, reaped by QEMU": f"dirty-ring/{_RING}-stock",
    "ring, vmtune's reaper": f"dirty-ring/{_RING}-predict",
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
    "ends_at_limit": True,
}
_SHOWN = {
    "guest_silence_ms": "LONGEST SILENCE",
    "guest_write_share_percent": "GUEST WRITES AT",
    "ring_full_exits": "RING-FULL EXITS",
}
_WIDTH = 50
_RUNS, _SILENT = "█", "·"
_ROWS = 1000
_LEAST_MS = HELD_S * 1000 / _WIDTH
"""A shorter gap of the heartbeat is none that the picture could show."""


@dataclass(frozen=True, slots=True)
class RingRun:
    """One arm's run.

    :param silences: begin and length in milliseconds from the migration's start.
    """

    arm: str
    record: Document
    silences: tuple[tuple[float, float], ...] = ()

    @property
    def died(self) -> str:
        """Why it has no figures; empty where it has."""
        return "" if self.record["counts"] else str(self.record["failure"] or self.record["state"])

    @property
    def longest_ms(self) -> float | None:
        """The guest's longest silence."""
        value = self.record["metrics"].get("guest_silence_ms")
        return None if value is None else float(value)


def measure(client: Client, verbose: bool) -> Iterator[RingRun]:
    """One run of each arm, one after the other. One that fails is a result."""
    for number, (arm, scenario) in enumerate(ARMS.items(), 1):
        name = f"demo/{scenario.partition('/')[2]}"
        order = {"scenario": scenario, "changes": {**CHANGES, "name": name}}
        run = client.post("/runs", order)
        title = f"Run {number} of {len(ARMS)}: {arm}"
        with viewer(verbose, RunProgression(title)) as shown:
            record = watch_to_end(client, str(run["id"]), shown, kind=RUN)
        yield RingRun(arm, record, _silences(client, str(run["id"])))


def _silences(client: Client, id: str) -> tuple[tuple[float, float], ...]:
    """The gaps of the guest's heartbeat from when the first sample of its migration was taken."""
    rows = {"limit": str(_ROWS)}
    samples = client.get(f"/runs/{id}/samples", rows)["items"]
    if not samples:
        return ()
    began = float(samples[0]["at_ms"])
    gaps = client.get(f"/runs/{id}/silences", rows)["items"]
    return tuple((float(gap["at_ms"]) - began, float(gap["duration_ms"])) for gap in gaps)


def timeline(silences: Sequence[tuple[float, float]], width: int = _WIDTH) -> str:
    """The guest over time, a character for each stretch: whether it ran for most of it."""
    step = HELD_S * 1000 / width
    texts = []
    for number in range(width):
        begin, end = number * step, (number + 1) * step
        silent = sum(
            max(0.0, min(end, at + long) - max(begin, at))
            for at, long in silences
            if long >= _LEAST_MS
        )
        texts.append(_SILENT if silent > step / 2 else _RUNS)
    return "".join(texts)


def report(runs: Sequence[RingRun]) -> Iterator[str]:
    """The picture and the figures of each arm, and what not to read into it."""
    yield "2. The guest while it migrates, its dirty pages tracked in several ways."
    yield f"   It writes 200 MB/s; a ring has {_RING:,} entries; each run ends after {HELD_S} s."
    each = f"({HELD_S * 1000 // _WIDTH} ms each)"
    yield f"   {_RUNS} the guest runs   {_SILENT} it stands still   {each}"
    yield ""
    wide = max(map(len, ARMS))
    for run in runs:
        shown = f"no picture: {run.died}" if run.died else timeline(run.silences)
        yield f"{run.arm:<{wide}}  {shown}"
    yield ""
    columns = [Column("DIRTY PAGES IN"), *(Column(t, right=True) for t in _SHOWN.values())]
    rows = [
        (run.arm, *(metric(name, run.record["metrics"].get(name)) for name in _SHOWN))
        for run in runs
    ]
    yield from table(columns, rows, "no runs")
    if any(run.died for run in runs):
        yield "   A full ring can end QEMU on this kernel: docs/how-to/full-dirty-rings.md."
    yield "   One run each: it shows the effect, not its size. With nested KVM a full ring"
    yield "   stops the guest for longer than elsewhere."
