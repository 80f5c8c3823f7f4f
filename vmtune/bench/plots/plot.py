"""A run as one picture: `vmtune bench migration --plot FILE`."""

from __future__ import annotations

from vmtune import __version__
from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.runs.run import Run
from vmtune.bench.plots import tables
from vmtune.bench.plots.marks import Marks, marks_of
from vmtune.bench.plots.picture import picture
from vmtune.bench.plots.tracks import tracks_of, window_of
from vmtune.rendering import render


def plot_run(run: Run) -> str:
    """*run* as one HTML page that needs nothing else: no script, no font, no network.

    Above, on one axis of time: the guest's pace, throughput and dirty rate, what is left to
    send, throttling, the CPU time of both QEMUs, and the reaper; with iterations, stops, steps
    and the switchover marked in all of them. Below: metrics, tunables, steps, environment. A
    track that the run has nothing for is left out, and one with more points than there are
    pixels keeps its outline. Of a load there is what QEMU took of its host, and of a boot a table
    of what it reached; of updates there are their metrics.
    """
    record = run.record
    window = window_of(record) if record else None
    timed = record and not (record.boot or record.srcu)
    tracks = tracks_of(run, window) if window and record and timed else []
    marks = marks_of(run, window) if window else Marks()
    return render(
        "run.html",
        run=run,
        record=record,
        version=__version__,
        summary=_summary(run),
        headline=tables.headline(run.metrics),
        **(picture(tracks, marks, window) if window and tracks else {"tracks": ()}),
        caption=_caption(marks, run.kind is ScenarioKind.MIGRATION),
        reaper=tables.reaper_summary(run),
        groups=tables.metric_groups(run.metrics),
        missing=tables.missing_metrics(run),
        tunables=tables.tunables(run),
        sections=tables.sections(run),
    )


def _summary(run: Run) -> list[str]:
    words = (
        str(run.setup.get("title", "")),
        f"with profile {run.profile}, revision {run.revision}" if run.profile else "",
        run.started_at.strftime("%Y-%m-%d %H:%M:%S %Z") if run.started_at else "",
        run.host,
        str(run.environment.get("accelerator", "")).upper(),
        f"imported from {run.imported_from}" if run.imported_from else "",
    )
    return [word for word in words if word]


def _caption(marks: Marks, migration: bool) -> str:
    words = (
        (marks.iterations, "Thin lines: an iteration begins."),
        (marks.silences, "Red: no heartbeat of the guest arrived."),
        (
            marks.switchover,
            "Dashed: the guest goes over to the destination; next to it, the downtime.",
        ),
        (marks.steps, "Numbers in circles: the steps below."),
        (migration, "A guest's pace counts the time in which it stood still."),
    )
    return " ".join(sentence for shown, sentence in words if shown)
