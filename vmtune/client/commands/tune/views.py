"""Studies as people read them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial

from vmtune.client.connection.http import Document
from vmtune.client.views import render
from vmtune.client.views.output import Column, fields, table
from vmtune.client.views.progress import Progression

_SHOWN = 10
_WHOLE_FROM = 100


class StudyProgression(Progression):
    """Progress of a study."""

    def read(self, record: Document) -> bool:
        before = self.stage
        self.stage = f"{record['name']}  {record['state']}"
        if record["state"] == "paused" and record["reason"]:
            self.stage += f": {record['reason']}"
        if record["state"] == "completed":
            self.share = 1.0
        return self.stage != before

    def advance(self, data: Document) -> None:
        self.share = max(self.share, float(data["share"]))
        if "waits" in data:
            self.figures = str(data["waits"])
        elif data["phase"] == "confirming":
            self.figures = f"confirming: run {data['done'] + 1} of {data['total']}"
        else:
            self.figures = (
                f"run {data['runs'] + 1}, block {data['block']}, trial {data['trial']} "
                f"({data['origin']})"
            )


def planned(document: Document) -> Iterator[str]:
    """What a study would do."""
    study = document["study"]
    yield from fields(
        [
            ("name", study["name"]),
            ("objective", study["objective"]),
            ("varies", ", ".join(document["space"])),
            ("begins with", ", ".join(["default", *document["seeds"]])),
            ("budget", _budget(study["budget"]["runs"], study["budget"]["seconds"])),
            ("confirmation", f"at most {document['confirm_runs']} runs of it"),
            ("seed", str(study["seed"])),
        ]
    )


def _budget(runs: int | None, seconds: int | None) -> str:
    parts = [
        f"{runs} runs" if runs is not None else "",
        f"{seconds / 60:g} min" if seconds is not None else "",
    ]
    return ", ".join(part for part in parts if part)


def lines(record: Document) -> Iterator[str]:
    """A study, and what it found."""
    used = record["used"]
    breaches = ", ".join(f"{count} of {limit}" for limit, count in record["breaches"].items())
    pruned = f", {record['pruned']} cannot run" if record["pruned"] else ""
    yield from fields(
        [
            ("study", record["id"]),
            ("name", record["name"]),
            ("title", record["title"]),
            ("scenario", record["scenario"]),
            ("objective", record["objective"]),
            ("varies", ", ".join(record["space"])),
            ("state", record["state"]),
            ("reason", record["reason"]),
            ("budget", _budget(record["budget_runs"], record["budget_seconds"])),
            ("used", f"{used['runs']} runs, {used['seconds'] / 60:.1f} min in the search"),
            ("trials", f"{record['trials']}{pruned}"),
            ("breaches", breaches),
            ("campaign", record["campaign"] or ""),
            ("created", render.moment(record["created_at"])),
            ("ended", render.moment(record["ended_at"])),
        ]
    )
    if record["result"] is not None:
        yield ""
        yield from _result(record["result"])


def analysed(found: Document) -> Iterator[str]:
    """What the trials say so far."""
    importance = [f"{one['tunable']} {one['share']:.0%}" for one in found["importance"]]
    front = [str(one["trial"]) for one in found["points"] if one["front"]]
    several = len(found["goals"]) > 1
    yield from fields(
        [
            ("importance", ", ".join(importance) or "not known before more trials have run"),
            ("front", f"trials {', '.join(front)}" if several and front else ""),
        ]
    )


def tried(trials: Sequence[Document], goals: Collection[str]) -> Iterator[str]:
    """The trials that ran most often. A narrow terminal has the *goals* and the settings."""
    metrics = list(dict.fromkeys(name for one in trials for name in one["medians"]))
    most = max(len(one["runs"]) for one in trials)
    newest = sorted(trials, key=lambda one: (-len(one["runs"]), one["number"]))[:_SHOWN]
    columns = (
        Column("TRIAL", right=True),
        Column("ORIGIN", spare=3),
        Column("RUNS", right=True, spare=1),
        *(Column(name.upper(), right=True, spare=0 if name in goals else 2) for name in metrics),
        Column("SETTINGS", wraps=True),
    )
    rows = [
        (
            f"{one['number']}{'*' if one['finalist'] else ''}",
            one["origin"],
            str(len(one["runs"])),
            *(_figure(one["medians"][name]) if name in one["medians"] else "" for name in metrics),
            ", ".join(f"{name} {value}" for name, value in one["texts"].items()),
        )
        for one in newest
    ]
    yield from table(columns, rows, "")
    if len(trials) > len(newest):
        yield f"{len(trials) - len(newest)} more trials, of at most {most} runs: see --json"


def _figure(value: float) -> str:
    """Without its unit, which the title has; small ones would all be the same whole number."""
    return f"{value:,.0f}" if abs(value) >= _WHOLE_FROM else f"{value:.3g}"


def _result(result: Document) -> Iterator[str]:
    yield from fields(
        [
            ("result", f"{result['finding']}: {result['reason']}"),
            ("settings", ", ".join(f"{n} {v}" for n, v in result["texts"].items())),
            (
                "gain",
                f"{result['gain_percent']:g} %" if result["gain_percent"] is not None else "",
            ),
            *((f"trial {one['trial']}", _evidence(one)) for one in result["evidence"]),
            ("profile", _draft(result["draft"])),
        ]
    )


def _evidence(one: Document) -> str:
    text = f"{one['metric']} against {one['baseline']}: {one['verdict']}"
    if one["estimate"] is not None:
        figure = _apart if one["ratio"] else partial(render.metric, one["metric"])
        text += f", {figure(one['estimate'])}"
        if one["low"] is not None and one["high"] is not None:
            text += f" ({figure(one['low'])} to {figure(one['high'])})"
    if one["broken_share"]:
        text += f"; {one['broken_share']:.0%} of its runs break a constraint"
    return text


def _apart(ratio: float) -> str:
    """How far it is from 1: ``+4.3 %``."""
    return f"{100 * (ratio - 1):+.3g} %"


def _draft(draft: Document | None) -> str:
    if draft is None:
        return ""
    return f"{draft['profile']} revision {draft['revision']}, assigned to nothing"
