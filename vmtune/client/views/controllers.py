"""A migration's control as text: its steps and its reaper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vmtune.client.connection.http import Document
from vmtune.client.views.output import Column, fields, table

_MS_IN_S = 1000


def step_lines(texts: Sequence[str]) -> Iterator[str]:
    """A profile's steps, in their order; nothing where there are none."""
    if texts:
        yield ""
        yield "steps, until the migration completes:"
        yield from (f"  {number}. {text}" for number, text in enumerate(texts, start=1))


def record_lines(records: Sequence[Document]) -> Iterator[str]:
    """What became of each step that came due; nothing where none did."""
    if not records:
        return
    yield ""
    columns = (
        Column("STEP", right=True),
        Column("AT", right=True),
        Column("DID", wraps=True),
        Column("EFFECT"),
        Column("BECAUSE", wraps=True),
    )
    cells = [
        (
            "-" if record["number"] is None else str(record["number"] + 1),
            f"{record['at_ms'] / _MS_IN_S:,.1f} s",
            record["action"],
            record["effect"],
            "; ".join(filter(None, (record["reason"], _expected(record), record["detail"]))),
        )
        for record in records
    ]
    yield from table(columns, cells, "")


def _expected(record: Document) -> str:
    return f"expected: {record['forecast']}" if record.get("forecast") else ""


def reaper_lines(reaper: Document | None) -> Iterator[str]:
    """What the reaper did, in a few lines; nothing where none ran."""
    if reaper is None:
        return
    yield ""
    yield from fields(
        [
            ("reaper", f"{reaper['policy']}, rings of {reaper['ring_entries']:,} entries"),
            ("  ended", _end(reaper)),
            ("  rounds", _rounds(reaper)),
            ("  intervals", _intervals(reaper)),
            ("  highest ring fill", f"{reaper['fullest']:.0%}" if reaper["round_count"] else ""),
            ("  full rings", _full(reaper)),
        ]
    )


def _end(reaper: Document) -> str:
    end, reason = reaper["end"], reaper["reason"]
    if reason:
        return f"{end}: {reason}"
    count = reaper["interruptions"]
    gaps = "" if not count else f", after {count} interruption{'' if count == 1 else 's'}"
    return ("at the migration's end" if end == "migration ended" else str(end)) + gaps


def _rounds(reaper: Document) -> str:
    skipped = reaper["skipped_rounds"]
    others = f", {skipped} skipped for another client's measurement" if skipped else ""
    before = f"{reaper['rounds_before']} before the migration"
    return f"{reaper['round_count']:,}, {before}{others}" if reaper["round_count"] else "none"


def _intervals(reaper: Document) -> str:
    if not reaper["round_count"]:
        return ""
    reach = f"{reaper['shortest_interval_ms']:,} to {reaper['longest_interval_ms']:,} ms"
    mean, cost = reaper["mean_interval_ms"], reaper["mean_cost_ms"]
    return f"{reach}, mean {mean:,.0f} ms; {cost:,.1f} ms per round"


def _full(reaper: Document) -> str:
    if not reaper["round_count"]:
        return ""
    exits = reaper["ring_full_exits"]
    counted = "" if exits is None else f"; {exits:,} ring-full exits"
    return f"in {reaper['filled_rounds']:,} rounds{counted}"


def progress_part(data: Document) -> str:
    """The reaper's part of a progress line; empty where none runs."""
    reaper = data.get("reaper")
    if not reaper:
        return ""
    return f"rings {reaper['fullest']:.0%} full every {reaper['interval_ms']:,} ms"
