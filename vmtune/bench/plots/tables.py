"""The tables below a picture of a run: metrics, tunables, and where it ran."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from vmtune import units
from vmtune.bench.model.metrics.metric import Metric
from vmtune.bench.model.metrics.table import HEADLINE, METRICS, METRICS_OF, SUCCESS
from vmtune.bench.model.runs.run import Run
from vmtune.model.plan.outcome import Status
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import Value
from vmtune.units import Unit

_MAX_FACTS = 500
_STYLES = {
    Status.EFFECTIVE: "good",
    Status.REJECTED: "bad",
    Status.OVERWRITTEN: "bad",
}


def value_text(metric: Metric, value: float) -> str:
    """A metric's value as people read it."""
    if metric.name in SUCCESS.values():
        return "yes" if value >= 1 else "no"
    if metric.unit is Unit.MS and abs(value) >= 10_000:
        return f"{value / 1000:,.1f} s"
    return units.approximate(value, metric.unit)


def headline(metrics: Mapping[str, float]) -> list[tuple[str, str]]:
    """The few figures that come first: title and value."""
    return [
        (METRICS[name].title, value_text(METRICS[name], metrics[name]))
        for name in HEADLINE
        if name in metrics
    ]


def metric_groups(metrics: Mapping[str, float]) -> list[tuple[str, list[tuple[Metric, str]]]]:
    """Every metric that the run has, with its value, group by group."""
    known = [metric for name, metric in METRICS.items() if name in metrics]
    return [
        (
            group.value[0].upper() + group.value[1:],
            [(metric, value_text(metric, metrics[metric.name])) for metric in members],
        )
        for group, members in itertools.groupby(known, lambda metric: metric.group)
    ]


def missing_metrics(run: Run) -> list[str]:
    """The titles of the metrics that runs of its kind may have and this one has not."""
    return [m.title for name, m in METRICS_OF[run.kind].items() if name not in run.metrics]


def tunables(run: Run) -> list[tuple[str, ...]]:
    """Of each tunable: name, the value requested, the value observed, style and name of its
    outcome, and the reason."""
    outcomes = {o.tunable: o for o in (run.record.outcomes if run.record else ())}
    rows: list[tuple[str, ...]] = []
    for name in dict.fromkeys([*run.values, *outcomes]):
        wanted, outcome = _value(name, run.values.get(name)), outcomes.get(name)
        if outcome is None:
            rows.append((name, wanted, "", "dim", "not read back", ""))
        else:
            style = _STYLES.get(outcome.status, "warn")
            seen = _value(name, outcome.seen)
            rows.append((name, wanted, seen, style, outcome.status.value, outcome.reason))
    return rows


def _value(name: str, value: Value | None) -> str:
    if value is None:
        return ""
    row = BUILT_IN.get(name)
    return row.render(value) if row else str(value)


def reaper_summary(run: Run) -> str:
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
        f"The reaper ({report.policy}, rings of {report.ring_entries:,} entries) made "
        f"{len(rounds):,} rounds{between}; it ended: {report.end.value}.{ends}{full}"
    )


def sections(run: Run) -> list[tuple[str, list[tuple[str, Any]]]]:  # any JSON
    """What was run, and where: names and values by title."""
    setup = {
        k: v for k, v in run.setup.items() if k not in ("name", "title", "why", "values", "steps")
    }
    groups: dict[str, Iterable[tuple[str, Any]]] = {
        "The run": _of_run(run),
        "The scenario": _flat("", setup),
        "The machine": itertools.chain(
            [("fingerprint", run.fingerprint)],
            _flat("", run.environment),
            _flat("at the start:", run.conditions),
        ),
    }
    return [
        (title, [(name, value) for name, value in rows if value not in ("", None)][:_MAX_FACTS])
        for title, rows in groups.items()
    ]


def _of_run(run: Run) -> Iterator[tuple[str, Any]]:  # any JSON
    yield "id", run.id
    yield "profile", f"{run.profile} (revision {run.revision})" if run.profile else ""
    yield "started", run.started_at.strftime("%Y-%m-%d %H:%M:%S %Z") if run.started_at else ""
    yield "testbed", run.testbed.value
    yield "host", run.host
    yield "QEMU", run.qemu
    yield "imported from", run.imported_from


def _flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:  # any JSON
    """A nested object as paths and plain values, with units where the names have them."""
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
