"""``vmtune bench history``: a metric of a scenario over time."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from itertools import pairwise

import click

from vmtune.client.complete import profiles, scenarios
from vmtune.client.connection.http import Document
from vmtune.client.runs import short
from vmtune.client.session import Session, common, pass_session
from vmtune.client.views import render
from vmtune.client.views.output import Column, table

_MARKS = "▁▂▃▄▅▆▇█"
_NEWEST = 60


@click.command()
@click.argument("scenario", shell_complete=scenarios)
@click.option(
    "--metric", default="total_time_ms", show_default=True, help="Metric, see `bench metrics`."
)
@click.option("--profile", shell_complete=profiles, help="Only runs with this profile.")
@common
@pass_session
def history(session: Session, scenario: str, metric: str, profile: str | None) -> None:
    """Show a metric of a scenario over time.

    From 20 runs on it shows change points and what changed in the environment there. Runs with
    other values, QEMUs, places or hosts are shown separately.
    """
    query = {"scenario": scenario, "metric": metric, "profile": profile}
    pages = list(session.client.pages("/history", query))
    document = {
        **pages[-1],
        "items": [entry for page in pages for entry in page["items"]],
    }
    session.show(document, lambda: lines(document))


def lines(document: Document) -> Iterator[str]:
    """A history as people read it."""
    yield f"{document['metric']} of {document['scenario']}"
    for entry in document["items"]:
        yield ""
        yield from _entry(document["metric"], entry)


def _entry(metric: str, entry: Document) -> Iterator[str]:
    values = [point["value"] for point in entry["points"]]
    texts = ", ".join(f"{name} {text}" for name, text in entry["texts"].items())
    setup = (
        entry["profile"],
        texts,
        f"QEMU {entry['qemu']}",
        entry["place"],
        entry["host"],
    )
    yield f"{', '.join(part for part in setup if part)}: {len(values)} runs"
    newest = values[-_NEWEST:]
    if len(newest) > 1:
        yield f"  {sparkline(newest)}  the newest {len(newest)}"
    ends = [0, *(change["at"] for change in entry["changes"] or ()), len(values)]
    columns = (
        Column("SINCE"),
        Column("RUN"),
        Column("RUNS", right=True),
        Column("MEDIAN", right=True),
        Column("CHANGE", wraps=True),
    )
    rows = []
    for place, (first, beyond) in enumerate(pairwise(ends)):
        point = entry["points"][first]
        change = entry["changes"][place - 1] if place else None
        change_text = "; ".join([change["text"], *change["environment"]]) if change else ""
        rows.append(
            (
                render.moment(point["at"]),
                short(point["run"]),
                str(beyond - first),
                render.metric(metric, statistics.median(values[first:beyond])),
                change_text,
            )
        )
    yield from table(columns, rows, "no runs")
    if entry["reason"]:
        yield entry["reason"]
    elif not entry["changes"]:
        yield "no change"


def sparkline(values: Sequence[float]) -> str:
    """Values as blocks of eight heights, from the smallest to the largest."""
    low, high = min(values), max(values)
    if low == high:
        return _MARKS[0] * len(values)
    steps = len(_MARKS) - 1
    return "".join(_MARKS[round((value - low) / (high - low) * steps)] for value in values)
