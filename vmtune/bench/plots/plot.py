"""A run as one picture: `vmtune bench migration --plot FILE`."""

from __future__ import annotations

from vmtune import __version__
from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.runs.run import Run, RunState
from vmtune.bench.plots.marks import Marks, marks_of
from vmtune.bench.plots.style import STYLE
from vmtune.bench.plots.svg import draw, plain
from vmtune.bench.plots.tables import (
    facts_table,
    marks_table,
    metrics_table,
    reaper_line,
    steps_table,
    tiles,
    tunables_table,
)
from vmtune.bench.plots.tracks import tracks_of, window_of

_STATES = {
    RunState.COMPLETED: "good",
    RunState.NOT_CONVERGED: "warn",
    RunState.FAILED: "bad",
}
_NOTHING_ELSE = "default-src 'none'; style-src 'unsafe-inline'"


def plot_run(run: Run) -> str:
    """*run* as one HTML page that needs nothing else: no script, no font, no network.

    Above, on one axis of time: the guest's pace, throughput and dirty rate, what is left to
    send, throttling, the CPU time of both QEMUs, and the reaper; with iterations, stops, steps
    and the switchover marked in all of them. Below: metrics, tunables, steps, environment. A
    track that the run has nothing for is left out, and one with more points than there are
    pixels keeps its outline. Of a load there is what QEMU took of its host, and of a boot a table
    of what it reached.
    """
    title = f"{run.scenario}: {run.state.value}"
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        '<head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_NOTHING_ELSE}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{plain(title)}</title>",
        f"<style>{STYLE}</style></head>",
        "<body>",
        _header(run),
        tiles(run.metrics),
        _picture(run),
        reaper_line(run),
        steps_table(run),
        marks_table(run),
        metrics_table(run),
        tunables_table(run),
        facts_table(run),
        f"<footer>Made by vmtune {plain(__version__)} of the run's record.</footer>",
        "</body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _header(run: Run) -> str:
    words = [str(run.setup.get("title", ""))]
    if run.profile:
        words.append(f"with profile {run.profile}, revision {run.revision}")
    if run.started_at:
        words.append(run.started_at.strftime("%Y-%m-%d %H:%M:%S %Z"))
    accelerator = str(run.environment.get("accelerator", "")).upper()
    words += [run.host, accelerator]
    if run.imported_from:
        words.append(f"imported from {run.imported_from}")
    line = " · ".join(plain(word) for word in words if word)
    kind = _STATES.get(run.state, "soft")
    why = str(run.setup.get("why", ""))
    return (
        f'<header><h1>{plain(run.scenario)}</h1><span class="state {kind}">'
        f"{plain(run.state.value)}</span></header>"
        f'<p class="soft">{line}</p>'
        + (f"<p>{plain(why)}</p>" if why else "")
        + (
            f'<p class="failure {kind}"><span>{plain(run.failure)}</span></p>'
            if run.failure
            else ""
        )
    )


def _picture(run: Run) -> str:
    if run.record is None:
        return f"<p>It is {plain(run.state.value)}: there is no record yet.</p>"
    if run.record.boot is not None:
        return ""  # its few marks are in a table
    window = window_of(run.record)
    tracks = tracks_of(run, window)
    if not tracks:
        return "<p>Nothing was recorded over time.</p>"
    marks = marks_of(run, window)
    caption = _caption(marks, run.kind is ScenarioKind.MIGRATION)
    return (
        f"<figure>{draw(tracks, marks, window)}<figcaption>{plain(caption)}</figcaption></figure>"
    )


def _caption(marks: Marks, migration: bool) -> str:
    words = []
    if marks.iterations:
        words.append("Thin lines: an iteration begins.")
    if marks.silences:
        words.append("Red: the guest was not heard.")
    if marks.switchover is not None:
        words.append("Dashed: the guest goes over to the destination; beside it, the downtime.")
    if marks.steps:
        words.append("Numbers in circles: the steps below.")
    if migration:
        words.append("A guest's pace counts the time in which it stood still.")
    return " ".join(words)
