"""The tables below a picture of a run: metrics, tunables, steps, and where it ran."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from vmtune import units
from vmtune.bench.model.metrics.boot import BOOT_SHARE
from vmtune.bench.model.metrics.metric import Direction, Metric
from vmtune.bench.model.metrics.table import HEADLINE, METRICS, METRICS_OF
from vmtune.bench.model.runs.run import Run
from vmtune.bench.plots.svg import plain
from vmtune.model.plan.outcome import Outcome, Status
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import Value
from vmtune.units import Unit

_BETTER = {
    Direction.LOWER: "lower is better",
    Direction.HIGHER: "higher is better",
    Direction.NONE: "",
}
_MOST_ROWS = 500
_KINDS = {
    Status.EFFECTIVE: "good",
    Status.REJECTED: "bad",
    Status.OVERWRITTEN: "bad",
    Status.UNKNOWN: "warn",
}


def shown(metric: Metric, value: float) -> str:
    """A metric's value as people read it."""
    if metric.name in ("converged", BOOT_SHARE):
        return "yes" if value >= 1 else "no"
    if metric.unit is Unit.MS and abs(value) >= 10_000:
        return f"{value / 1000:,.1f} s"
    return units.approximate(value, metric.unit)


def tiles(metrics: Mapping[str, float]) -> str:
    """The few figures that come first."""
    found = [(METRICS[name], metrics[name]) for name in HEADLINE if name in metrics]
    if not found:
        return ""
    items = "".join(
        f'<li class="tile"><b>{plain(shown(metric, value))}</b>'
        f"<span>{plain(metric.title)}</span></li>"
        for metric, value in found
    )
    return f'<ul class="tiles">{items}</ul>'


def metrics_table(run: Run) -> str:
    """Every metric that the run has, with its unit, its direction and what it is."""
    metrics = run.metrics
    rows = []
    group = None
    for name, metric in METRICS.items():
        if name not in metrics:
            continue
        if metric.group is not group:
            group = metric.group
            title = group.value[0].upper() + group.value[1:]
            rows.append(f'<tr class="group"><th colspan="4">{plain(title)}</th></tr>')
        rows.append(
            f"<tr><th>{plain(metric.title)}</th>"
            f'<td class="figure">{plain(shown(metric, metrics[name]))}</td>'
            f'<td class="short"><small>{_BETTER[metric.direction]}</small></td>'
            f'<td title="{plain(metric.description)}"><small>{plain(metric.measures)}</small></td>'
            "</tr>"
        )
    of_kind = METRICS_OF[run.kind]
    missing = [metric.title for name, metric in of_kind.items() if name not in metrics]
    lack = (
        f'<p class="soft lack">Not to be had in this run: {plain("; ".join(missing))}.</p>'
        if missing
        else ""
    )
    if not rows:
        return _section("Metrics", "<p>There are none.</p>")
    head = '<tr><th>Metric</th><th class="figure">Value</th><th></th><th>What it is</th></tr>'
    return _section("Metrics", _table(head, rows) + lack)


def marks_table(run: Run) -> str:
    """What a boot reached, and when; empty for other runs."""
    boot = run.record.boot if run.record else None
    if boot is None:
        return ""
    rows = [
        f"<tr><th>{plain(mark.name.value)}</th>"
        f'<td class="figure">{mark.at_ms:,.0f} ms</td><td class="figure">'
        f"{'' if mark.region_updates is None else f'{mark.region_updates:,}'}</td></tr>"
        for mark in boot.marks
    ]
    head = '<tr><th>Reached</th><th class="figure">At</th><th class="figure">Updates of memory '
    return _section("The boot", _table(head + "regions by then</th></tr>", rows))


def tunables_table(run: Run) -> str:
    """What was wanted, and what QEMU ran with."""
    outcomes = {o.tunable: o for o in (run.record.outcomes if run.record else ())}
    names = list(dict.fromkeys([*run.values, *outcomes]))
    if not names:
        return _section("Tunables", "<p>None was set.</p>")
    rows = [_tunable(name, run.values.get(name), outcomes.get(name)) for name in names]
    head = "<tr><th>Tunable</th><th>Wanted</th><th>Seen</th><th>Outcome</th><th></th></tr>"
    return _section("Tunables: what was wanted, and what QEMU ran with", _table(head, rows))


def _tunable(name: str, wanted: Value | None, outcome: Outcome | None) -> str:
    status = outcome.status.value if outcome else "not read back"
    kind = _KINDS.get(outcome.status, "warn") if outcome else "soft"
    seen = _value(name, outcome.seen) if outcome else ""
    reason = outcome.reason if outcome else ""
    return (
        f"<tr><th>{plain(name)}</th><td>{plain(_value(name, wanted))}</td>"
        f'<td>{plain(seen)}</td><td class="{kind}">{plain(status)}</td>'
        f"<td><small>{plain(reason)}</small></td></tr>"
    )


def _value(name: str, value: Value | None) -> str:
    if value is None:
        return ""
    row = BUILT_IN.get(name)
    return row.render(value) if row else str(value)


def steps_table(run: Run) -> str:
    """What was done while it migrated; empty where nothing was."""
    record = run.record
    if record is None or not record.steps:
        return ""
    zero = record.migration_ms or 0
    rows = [
        f"<tr><td>{number}</td>"
        f'<td class="short">{(step.at_ms - zero) / 1000:,.2f} s</td>'
        f"<td>{step.iteration}</td><td>{plain(step.action)}</td>"
        f"<td>{plain(step.effect.value)}</td>"
        f"<td><small>{plain('; '.join(filter(None, (step.reason, step.detail))))}</small></td></tr>"
        for number, step in enumerate(record.steps[:_MOST_ROWS], 1)
    ]
    titles = ("Step", "At", "Iteration", "What", "Effect", "Why")
    head = f"<tr>{''.join(f'<th>{title}</th>' for title in titles)}</tr>"
    return _section("Steps", _table(head, rows))


def reaper_line(run: Run) -> str:
    """What the reaper did, in a sentence; empty without one."""
    report = run.record.reaper if run.record else None
    if report is None:
        return ""
    rounds = report.rounds
    ends = f" {report.reason}." if report.reason else ""
    waits = [r.interval_ms for r in rounds]
    between = (
        f", {min(waits):,} to {max(waits):,} ms apart, the fullest ring at "
        f"{100 * max(r.fullest for r in rounds):,.0f} %"
        if rounds
        else ""
    )
    exits = run.record.ring_full_exits if run.record else None
    full = f" Ring-full exits: {exits:,}." if exits is not None else ""
    return (
        f"<p>The reaper ({plain(report.policy)}, rings of {report.ring_entries:,} entries) made "
        f"{len(rounds):,} rounds{between}; it ended: {plain(report.end.value)}.{plain(ends)}"
        f"{full}</p>"
    )


def facts_table(run: Run) -> str:
    """What was run, and where."""
    setup = {k: v for k, v in run.setup.items() if k not in ("name", "title", "why", "values")}
    groups = {
        "The run": _of_run(run),
        "The scenario": _flat("", {k: v for k, v in setup.items() if k != "steps"}),
        "The machine": itertools.chain(
            [("fingerprint", run.fingerprint)],
            _flat("", run.environment),
            _flat("at the start:", run.conditions),
        ),
    }
    return "".join(_facts(title, rows) for title, rows in groups.items())


def _facts(title: str, rows: Iterable[tuple[str, Any]]) -> str:  # any JSON
    items = [
        f"<div><dt>{plain(name)}</dt><dd>{plain(value)}</dd></div>"
        for name, value in rows
        if value not in ("", None)
    ]
    listed = "".join(items[:_MOST_ROWS])
    return _section(title, f'<dl class="facts">{listed}</dl>') if items else ""


def _of_run(run: Run) -> Iterator[tuple[str, Any]]:  # any JSON
    yield "id", run.id
    yield "profile", f"{run.profile} (revision {run.revision})" if run.profile else ""
    yield "started", run.started_at.strftime("%Y-%m-%d %H:%M:%S %Z") if run.started_at else ""
    yield "place", run.place.value
    yield "host", run.host
    yield "QEMU", run.qemu
    yield "imported from", run.imported_from


def _flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:  # any JSON
    """A nested object as paths and plain values, with units where the names tell them."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _flat(f"{path} {name}".strip().replace("_", " "), inner)
    elif isinstance(value, list | tuple):
        yield path, ", ".join(str(each) for each in value)
    elif path.endswith(" bytes") and isinstance(value, int | float):
        yield path.removesuffix(" bytes"), units.approximate(value, Unit.BYTES)
    elif isinstance(value, bool):
        yield path, "yes" if value else "no"
    else:
        yield path, value


def _table(head: str, rows: Iterable[str]) -> str:
    titles = f"<thead>{head}</thead>" if head else ""
    return f'<div class="wide"><table>{titles}<tbody>{"".join(rows)}</tbody></table></div>'


def _section(title: str, body: str) -> str:
    return f"<section><h2>{plain(title)}</h2>{body}</section>"
