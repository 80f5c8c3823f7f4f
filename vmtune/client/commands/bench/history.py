"""``vmtune bench history``: a metric of a scenario over time."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import click

from vmtune.client.complete import profiles, scenarios
from vmtune.client.connection.http import Document
from vmtune.client.ids import short
from vmtune.client.session import Session, common, pass_session
from vmtune.client.views import render
from vmtune.client.views.output import Column, table
from vmtune.units import share_text

_MARKS = "▁▂▃▄▅▆▇█"
_NEWEST = 60


@click.command()
@click.argument("scenario", shell_complete=scenarios)
@click.option(
    "--metric", default="total_time_ms", show_default=True, help="Metric, see `bench metrics`."
)
@click.option("--profile", shell_complete=profiles, help="Only runs with this profile.")
@click.option(
    "--csv",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write a CSV file for each setup to this folder, and otava.yaml for Apache Otava.",
)
@common
@pass_session
def history(
    session: Session, scenario: str, metric: str, profile: str | None, folder: Path | None
) -> None:
    """Show a metric of a scenario over time.

    From 20 runs on it shows change points and what changed in the environment there. Runs with
    other values, QEMUs, testbeds or hosts are shown separately.
    """
    query = {"scenario": scenario, "metric": metric, "profile": profile}
    pages = list(session.client.pages("/history", query))
    document = {
        **pages[-1],
        "items": [entry for page in pages for entry in page["items"]],
    }
    if folder is not None:
        files = _write_csv(session, document, folder)
        session.show({"files": files}, lambda: files)
        return
    session.show(document, lambda: lines(document))


def _write_csv(session: Session, document: Document, folder: Path) -> list[str]:
    """A file for each setup, and the configuration with which Otava reads them."""
    scenario, metric = document["scenario"], document["metric"]
    better = _DIRECTIONS[document["direction"]]
    folder.mkdir(parents=True, exist_ok=True)
    tests: dict[str, object] = {}
    written = []
    for entry in document["items"]:
        query = {"scenario": scenario, "metric": metric, "setup": entry["id"]}
        name = f"{scenario.replace('/', '-')}-{metric}-{entry['id']}"
        file = folder / f"{name}.csv"
        file.write_bytes(session.client.download("/history/export", query))
        written.append(str(file))
        tests[name] = {
            "type": "csv",
            "file": str(file.resolve()),
            "time_column": "time",
            "attributes": ["run", "environment"],
            "metrics": {metric: {"scale": 1, "direction": better}},
            "csv_options": {"delimiter": ",", "quote_char": '"'},
        }
    # JSON is YAML.
    (folder / "otava.yaml").write_text(json.dumps({"tests": tests}, indent=2) + "\n", "utf-8")
    return [*written, str(folder / "otava.yaml")]


_DIRECTIONS = {"lower": -1, "none": 0, "higher": 1}


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
        entry["testbed"],
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
    for place, (first, beyond) in enumerate(pairwise(ends) if values else ()):
        point = entry["points"][first]
        change = entry["changes"][place - 1] if place else None
        change_text = _change_text(change) if change else ""
        rows.append(
            (
                render.moment(point["at"]),
                short(point["run"]),
                str(beyond - first),
                render.metric(metric, statistics.median(values[first:beyond])),
                change_text,
            )
        )
    if values:
        yield from table(columns, rows, "no runs")
    yield from _completion(entry)
    if entry["sign"]:
        yield f"{entry['sign']['strength']} early sign: {entry['sign']['text']}"
    if entry["reason"]:
        yield entry["reason"]
    elif not entry["changes"]:
        yield "no change"


def _change_text(change: Document) -> str:
    """What changed, what became another near it, and what people decided."""
    parts = [change["text"]]
    after = change["environment_after"]
    for each in change["environment"]:
        away = f" ({abs(after)} runs {'later' if after > 0 else 'earlier'})" if after else ""
        parts.append(each + away)
    found = change["found"]
    if found and found["triage"] != "open":
        note = f": {found['note']}" if found["note"] else ""
        parts.append(found["triage"].replace("_", " ") + note)
    return "; ".join(parts)


def _completion(entry: Document) -> Iterator[str]:
    """How many runs did not complete, and when that changed."""
    at_limit = sum(point["at_limit"] for point in entry["points"])
    lost = len(entry["lost"])
    if at_limit or lost:
        runs = len(entry["points"]) + lost
        yield (
            f"{at_limit + lost} of {runs} runs did not complete: {at_limit} with the limit as "
            f"value, {lost} without a value"
        )
    for change in entry["completion"] or ():
        yield (
            f"since {render.moment(change['since'])}, run {short(change['run'])}: "
            f"{share_text(change['after'])} complete, before {share_text(change['before'])}"
        )


def sparkline(values: Sequence[float]) -> str:
    """Values as blocks of eight heights, from the smallest to the largest."""
    low, high = min(values), max(values)
    if low == high:
        return _MARKS[0] * len(values)
    steps = len(_MARKS) - 1
    return "".join(_MARKS[round((value - low) / (high - low) * steps)] for value in values)
