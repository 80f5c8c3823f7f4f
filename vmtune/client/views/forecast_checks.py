"""Forecasts next to what happened, as people read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from vmtune.client.views.outlook import about
from vmtune.client.views.output import Column, fields, paint, table
from vmtune.client.views.render import size

if TYPE_CHECKING:
    from vmtune.client.connection.http import Document

_FIGURES: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("total_time", "total time", about),
    ("silence", "silence", about),
    ("bytes", "bytes sent", size),
)
_BASES = {
    "before": "Made before the migration, by a measurement of the guest",
    "running": "Made while it ran, when it could first be told whether it ends",
}
_GROUPS = (("by_profile", "PROFILE"), ("by_path", "HOSTS"), ("by_week", "WEEK"))
_BAND = (0.80, 0.97)
_FEW = 10
"""Of fewer the share within the bounds says little."""


def check_lines(document: Document) -> Iterator[str]:
    """Each basis: all together, then by profile, hosts and week."""
    if not document["items"]:
        yield "no forecasts of migrations that have ended"
    for number, found in enumerate(document["items"]):
        if number:
            yield ""
        yield from _basis(found)
    if document["truncated"]:
        yield ""
        yield "older ones were left out: --since chooses"


def _basis(found: Document) -> Iterator[str]:
    overall = found["overall"]
    yield f"{_BASES[found['basis']]}: {overall['forecasts']} forecasts; {_ends(overall)}"
    columns = (
        Column("FIGURE"),
        Column("OF", right=True),
        Column("ERROR", right=True),
        Column("90 % WITHIN", right=True),
        Column("WITHIN BOUNDS", right=True),
        Column("WITHOUT FORECASTS", right=True),
    )
    rows = [
        _figure(name, overall[key], word)
        for key, name, word in _FIGURES
        if overall[key] is not None
    ]
    if rows:
        yield from table(columns, rows, "")
    for key, title in _GROUPS:
        if len(found[key]) > (key != "by_week"):
            yield ""
            yield from _group(title, found[key])


def _ends(row: Document) -> str:
    if not row["ends_known"]:
        return "for none is it known whether it would have ended by itself"
    right = "" if row["ends_right"] is None else f", right for {row['ends_right']:.0%}"
    unsure = f", {row['may_not']} said it may not" if row["may_not"] else ""
    return f"whether it ends: known for {row['ends_known']}{right}{unsure}"


def _figure(name: str, found: Document, word: Callable[[float], str]) -> tuple[str, ...]:
    without = "-"
    if found["others_median_error"] is not None:
        middle, most = found["others_median_error"], found["others_p90_error"]
        without = f"{middle:.0%}, 90 % within {most:.0%}"
    return (
        name,
        str(found["count"]),
        f"{found['median_error']:.0%}, {word(found['median_off'])}",
        f"{found['p90_error']:.0%}, {word(found['p90_off'])}",
        _within(found),
        without,
    )


def _within(found: Document | None) -> str:
    if found is None:
        return "-"
    share = f"{found['within']:.0%}"
    low, high = _BAND
    off = found["count"] >= _FEW and not low <= found["within"] <= high
    return paint(share, "yellow") if off else share


def _group(title: str, rows: list[Document]) -> Iterator[str]:
    columns = (
        Column(title),
        Column("FORECASTS", right=True),
        Column("ENDS RIGHT", right=True),
        Column("TIME: ERROR", right=True),
        Column("WITHIN", right=True),
        Column("SILENCE: OFF", right=True),
        Column("WITHIN", right=True),
    )
    yield from table(columns, [_row(row) for row in rows], "")


def _row(row: Document) -> tuple[str, ...]:
    total, silence = row["total_time"], row["silence"]
    return (
        row["key"] or "no profile",
        str(row["forecasts"]),
        "-" if row["ends_right"] is None else f"{row['ends_right']:.0%}",
        "-" if total is None else f"{total['median_error']:.0%} to {total['p90_error']:.0%}",
        _within(total),
        "-"
        if silence is None
        else f"{about(silence['median_off'])} to {about(silence['p90_off'])}",
        _within(silence),
    )


def _off(found: Document | None) -> str:
    return "-" if found is None else f"{about(found['median_off'])} to {about(found['p90_off'])}"


def kept_lines(document: Document) -> Iterator[str]:
    """A migration's forecasts, each figure next to what happened, or why there is none."""
    shown = [(f"forecast {_WHEN[row['basis']]}", _kept(row)) for row in document["items"]]
    missing = document.get("none_before")
    if missing is not None:
        shown.insert(0, (f"forecast {_WHEN['before']}", f"none: {missing['message']}"))
    if shown:
        yield ""
        yield from fields(shown)


def corrections(row: Document) -> str:
    """``adjusted using 43 recorded migrations``; empty where nothing is."""
    counts = row.get("corrected_by", {}).values()
    return f"adjusted using {max(counts)} recorded migrations" if counts else ""


def compared(row: Document) -> Iterator[tuple[str, str, str]]:
    """Each figure of a kept forecast: its name, what was said, and what happened."""
    happened = row["happened"] or {}
    for key, name, text in (
        ("total_ms", "total time", about),
        ("silence_ms", "silence", about),
        ("sent_bytes", "sent", size),
    ):
        found, came = row[key], happened.get(key)
        if found is not None:
            yield name, _next_to(found, None, text), "-" if came is None else text(came)


_WHEN = {"before": "before it", "running": "as it ran"}


def _kept(row: Document) -> str:
    happened = row["happened"] or {}
    ends = {True: "ends", False: "does not end by itself", None: "may not end"}[row["ends"]]
    came = {True: "it did", False: "it did not", None: ""}[happened.get("ended")]
    if came and (row["ends"] is True) is (happened["ended"] is False):
        came = paint("it did" if happened["ended"] else "it did not", "yellow")
    said = [f"{ends} ({came})" if came else ends]
    for key, word, text in (
        ("total_ms", "time", about),
        ("silence_ms", "silence", about),
        ("sent_bytes", "sent", size),
    ):
        found = row[key]
        if found is not None:
            said.append(f"{word} {_next_to(found, happened.get(key), text)}")
    return ", ".join(filter(None, [*said, corrections(row)]))


def _next_to(found: Document, happened: float | None, text: Callable[[float], str]) -> str:
    low, likely, high = text(found["low"]), text(found["likely"]), text(found["high"])
    said = likely if low == high else f"{likely} ({low} to {high})"
    if happened is None:
        return said
    took = text(happened)
    within = found["low"] <= happened <= found["high"]
    return f"{said}: {took if within else paint(took, 'yellow')}"
