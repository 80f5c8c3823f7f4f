"""Tables of benchmark runs: one row for each scenario and profile."""

# ruff: noqa: PLC0415 - imported where needed: a command is to start in a blink

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence

from vmtune.client.connection.http import Document
from vmtune.client.views.output import Column, table
from vmtune.client.views.render import metric

_TITLES = {
    "total_time_ms": "TOTAL TIME",
    "downtime_ms": "DOWNTIME",
    "guest_silence_ms": "SILENCE",
    "guest_write_share_percent": "GUEST WRITES AT",
    "source_cpu_ms": "SOURCE CPU",
    "transferred_bytes": "SENT",
    "iterations": "ITERATIONS",
    "ring_full_exits": "RING FULL",
}
"""Short for a column; where a metric has none here, its own name is the column's."""
_SPARE = ("source_cpu_ms", "transferred_bytes", "iterations")
"""Left out on a narrow terminal."""


def results(records: Sequence[Document], skipped: Sequence[Document]) -> Iterator[str]:
    """What was measured, and what was not and why."""
    if records:
        yield from measured(records)
    if skipped:
        yield ""
        columns = (Column("SKIPPED"), Column("WHY", wraps=True))
        yield from table(columns, [(row["name"], row["reason"]) for row in skipped], "")


def measured(records: Sequence[Document]) -> Iterator[str]:
    """A row for each scenario and profile: medians, with the smallest and the largest where
    there are several runs."""
    names = _metrics(records)
    groups: dict[tuple[str, str], list[Document]] = {}
    for record in records:
        key = (record["scenario"], record["profile"] or "")
        groups.setdefault(key, []).append(record)
    profiles = any(profile for _, profile in groups)
    columns = [Column("SCENARIO"), Column("RESULT")]
    columns += [Column(_TITLES.get(name, name), right=True, spare=name in _SPARE) for name in names]
    if profiles:
        columns.insert(1, Column("PROFILE"))
    rows = [
        (
            scenario,
            *((profile or "none",) if profiles else ()),
            states(runs),
            *(cell(name, runs) for name in names),
        )
        for (scenario, profile), runs in groups.items()
    ]
    yield from table(columns, rows, "no runs")
    if any(len(runs) > 1 for runs in groups.values()):
        yield "Medians, with minimum and maximum in parentheses. Too few runs for a verdict."


def _metrics(records: Sequence[Document]) -> list[str]:
    """The columns: the headline, and ring-full exits where they were counted."""
    from vmtune.bench.model.metrics.table import HEADLINE

    wanted = (*HEADLINE, "ring_full_exits")
    return [name for name in wanted if any(name in r["metrics"] for r in records)]


def states(runs: Sequence[Document]) -> str:
    """``completed``; ``completed 2, failed 1`` where they differ."""
    counts = Counter(run["state"] for run in runs)
    if len(counts) == 1:
        (state,) = counts
        return str(state)
    return ", ".join(f"{state} {count}" for state, count in counts.items())


def cell(name: str, runs: Sequence[Document]) -> str:
    """The median of a metric, with the smallest and the largest value where there are several."""
    values = sorted(run["metrics"][name] for run in runs if name in run["metrics"])
    if len(values) < 2:
        return metric(name, values[0] if values else None)
    middle = metric(name, statistics.median(values))
    return f"{middle} ({metric(name, values[0])} to {metric(name, values[-1])})"
