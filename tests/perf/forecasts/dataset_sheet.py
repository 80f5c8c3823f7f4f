"""The figures in the dataset's datasheet, by the data."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

BEGIN, END = "<!-- figures: by the data -->", "<!-- end of the figures -->"
_MB = 1e6
_Migration = dict[str, Any]  # any: JSON


def with_figures(sheet: str, migrations: Sequence[_Migration]) -> str:
    """The *sheet* with the figures of *migrations* between its marks.

    :raise ValueError: it has no such marks.
    """
    before, begin, rest = sheet.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the datasheet lacks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{figures(migrations)}\n\n{END}{after}"


def figures(migrations: Sequence[_Migration]) -> str:
    """As Markdown: a sentence for each, and a table of the profiles."""
    states = Counter(one["state"] for one in migrations)
    ended = [one for one in migrations if one["totals"]]
    probes = {json.dumps(one["probe"]) for one in migrations if one["probe"]}
    kinds = Counter(one["kind"] for one in migrations)
    busy = [one["load"]["busy"] for one in migrations if one["load"]]
    shares = [share for one in ended if (share := _share_of_limit(one)) is not None]
    rows = [_profile(name, migrations) for name in sorted({one["profile"] for one in migrations})]
    parts = [
        f"- {len(migrations):,} migrations of {_workloads(migrations)} workloads, with "
        f"{len(probes)} probes: {_counted(states)}.",
        f"- What guests do: {_counted(kinds)}.",
        f"- Of these repeat another one of the same guest: {_repeats(migrations):,}.",
        f"- Total time: {_quantiles((o['totals']['total_time_ms'] for o in ended), ' ms')}.",
        f"- Downtime: {_quantiles((o['totals']['downtime_ms'] for o in ended), ' ms')}.",
        f"- CPU time of the machine that was busy: {_quantiles(busy, '', 2)}.",
        f"- Sent, as a share of the bandwidth limit, without multifd: {_quantiles(shares, '', 2)}.",
    ]
    table = [
        "| profile | migrations | completed | median total time | downtime | bytes sent |",
        "|---|---|---|---|---|---|",
        *rows,
    ]
    return "\n".join([*parts, "", *table])


def _profile(name: str, migrations: Sequence[_Migration]) -> str:
    every = [one for one in migrations if one["profile"] == name]
    totals = [one["totals"] for one in every if one["totals"]]

    def middle(field: str) -> float:
        return _quantile([one[field] for one in totals], 0.5) if totals else 0.0

    cells = (
        name,
        f"{len(every):,}",
        f"{len(totals):,}",
        f"{middle('total_time_ms'):,.0f} ms",
        f"{middle('downtime_ms'):,.0f} ms",
        f"{middle('transferred_bytes') / _MB:,.1f} MB",
    )
    return f"| {' | '.join(cells)} |"


def _workloads(migrations: Iterable[_Migration]) -> int:
    return len({json.dumps([o["workload"], o["memory_bytes"], o["vcpus"]]) for o in migrations})


def _repeats(migrations: Sequence[_Migration]) -> int:
    known = {
        json.dumps([one["workload"], one["memory_bytes"], one["vcpus"], one["values"]])
        for one in migrations
    }
    return len(migrations) - len(known)


def _share_of_limit(migration: _Migration) -> float | None:
    totals, values = migration["totals"], migration["values"]
    took_ms = totals["total_time_ms"] - totals["downtime_ms"]
    if values.get("multifd") or took_ms <= 0:
        return None
    sent = totals["transferred_bytes"] / took_ms * 1000
    return float(sent / values["max_bandwidth_bytes_per_s"])


def _counted(found: Counter[str]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in found.most_common())


def _quantiles(values: Iterable[float], unit: str, digits: int = 0) -> str:
    every = sorted(values)
    if not every:
        return "none"
    low, middle, high = (
        f"{_quantile(every, share):,.{digits}f}{unit}" for share in (0.1, 0.5, 0.9)
    )
    return f"median {middle}, eight of ten {low} to {high}"


def _quantile(values: Sequence[float], share: float) -> float:
    every = sorted(values)
    return float(every[min(len(every) - 1, int(share * len(every)))])
