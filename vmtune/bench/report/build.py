"""From runs to the report of how their arms compare. Pure.

What counts: runs that completed, were cancelled at their scenario's limit, or failed. How many
succeeded is judged first, in every comparison: completed, or ended at the limit of a scenario that
is meant to end there. A run that did not succeed and lacks a metric counts as worse than all that
have it (:mod:`vmtune.stats.outcomes`). Of a run that was given up at its limit, each metric that
grows while a migration runs, or is the most of something, is known only to exceed its last value;
its rates are of something else, and not used. Runs that a person cancelled and warm-ups say nothing
about an arm and are not to be given.

Runs of different environments are compared, but get no verdict unless it is said in what they
differ on purpose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from vmtune.bench.machine.environment import Environment, differences
from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.metrics.boot import BOOT_LIMIT, BOOT_TIME
from vmtune.bench.model.metrics.metric import Metric
from vmtune.bench.model.metrics.table import METRICS, METRICS_OF, SUCCESS
from vmtune.bench.model.runs.run import Run, RunState
from vmtune.bench.report.report import (
    EnvironmentDifference,
    Report,
    ReportArm,
    ReportCell,
    ReportEnvironment,
    ReportMetric,
    ReportRun,
    Spread,
)
from vmtune.stats.compare import Contrast, compare_many
from vmtune.stats.judging import withhold
from vmtune.stats.model import (
    DEFAULT_MARGIN,
    Criterion,
    Design,
    NoiseFloor,
    Observation,
    Sample,
)
from vmtune.stats.summary import summarise
from vmtune.units import Unit

TIME, ELAPSED = "total_time_ms", "elapsed_ms"
_GROWING = frozenset(
    {
        TIME,
        ELAPSED,
        "guest_silence_ms",
        "guest_worst_ms_per_gib",
        "throttle_max_percent",
        "dirty_limit_throttle_ms",
        "transferred_bytes",
        "iterations",
        "missed_zero_copy",
        "guest_drop_ms",
        "guest_excess_ms",
        "ring_full_exits",
        "sends",
        "zero_copy_flush_ms",
        *(
            name
            for name in METRICS_OF[ScenarioKind.MIGRATION]
            if "_cpu_" in name and not name.endswith("_per_gib")
        ),
        BOOT_TIME,
        BOOT_LIMIT,
        "boot_cpu_ms",
        "memory_region_updates",
        "memory_region_updates_by_guest",
    }
)
"""Metrics that grow while a migration or a boot runs, or are the most of something."""
_RATES = frozenset({"guest_write_mib_per_s", "guest_write_share_percent", "throughput_bytes_per_s"})
"""Metrics that are rates over a whole migration."""
assert METRICS.keys() >= _RATES | _GROWING
LIMITS = {TIME: ELAPSED, BOOT_TIME: BOOT_LIMIT}
"""For a run that was ended at its scenario's limit: the lower bounds of its metrics."""
_ONE_MS = 1.0
_UNITS = {
    Unit.COUNT: "",
    Unit.ENTRIES: "",
    Unit.PERCENT: "points",
    Unit.BYTES_PER_S: "bytes/s",
    Unit.MIB_PER_S: "MiB/s",
    Unit.MS_PER_GIB: "ms/GiB",
    Unit.US_PER_IO: "us/IO",
}
"""How differences say their unit; others say their name."""


@dataclass(frozen=True, slots=True)
class CellPlan:
    """One set of conditions."""

    name: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is compared with what; fixed before the runs where there is a campaign.

    :param against: pairs of arms, the baseline first: (A, B).
    :param margin: as a share: 0.05 is 5 %.
    :param expected: paths of the environment, or their beginnings, in which the arms differ on
        purpose: ``qemu``. An empty one stands for all.
    :param paired: the runs' blocks are blocks of one campaign.
    :param declared: the primary metric was chosen before the runs.
    """

    title: str
    arms: tuple[ReportArm, ...]
    against: tuple[tuple[str, str], ...]
    cells: tuple[CellPlan, ...] = (CellPlan(""),)
    primary_metric: str = TIME
    margin: float = DEFAULT_MARGIN
    expected: tuple[str, ...] = ()
    paired: bool = True
    declared: bool = True
    campaign: str = ""
    seed: int | None = None
    blocks: int = 0


def report_run(
    run: Run, *, arm: str, cell: str = "", block: int | None = None, number: int = 0,
    environment: str = "",
) -> ReportRun:  # fmt: skip
    """A run as the report has it.

    :param environment: the fingerprint of where it ran.
    """
    values = dict(run.metrics)
    censored: tuple[str, ...] = ()
    if run.state is RunState.NOT_CONVERGED:
        values |= {name: values[least] for name, least in LIMITS.items() if least in values}
        censored = tuple(name for name in METRICS if name in _GROWING and name in values)
    values.pop(SUCCESS[run.kind], None)  # that of a run that ended as planned was kept as 0 once
    if run.state.completed is not None:
        values[SUCCESS[run.kind]] = float(run.state.completed)
    return ReportRun(
        str(run.id),
        cell,
        arm,
        block,
        number,
        run.state,
        environment,
        values,
        censored,
        run.failure,
        run.started_at,
    )


def build(
    plan: Plan,
    runs: Sequence[ReportRun],
    environments: Mapping[str, Environment],
    made_at: datetime,
    floors: Sequence[NoiseFloor] = (),
) -> Report:
    """Compare the runs as planned.

    :param environments: by fingerprint.
    :param floors: of this host; those of other environments than the runs' are not used.
    """
    metrics = _metrics_of(runs, plan.primary_metric)
    contrasts = [
        (cell, _contrast(plan, cell.name, a, b, metric, runs, floors))
        for cell in plan.cells
        for a, b in plan.against
        for metric in metrics
    ]
    compared = compare_many([contrast for _, contrast in contrasts], declared=plan.declared)
    used, differing = _differing(plan, runs, environments)
    withheld = _withheld(used, differing)
    if withheld:
        compared = tuple(withhold(comparison, withheld) for comparison in compared)
    cells = tuple(
        ReportCell(
            cell.name,
            cell.title,
            tuple(
                comparison
                for (of, _), comparison in zip(contrasts, compared, strict=True)
                if of is cell
            ),
            tuple(_spreads(plan, cell.name, metrics, runs)),
        )
        for cell in plan.cells
    )
    return Report(
        title=plan.title,
        made_at=made_at,
        primary_metric=plan.primary_metric,
        arms=tuple(_with_places(arm, runs, environments) for arm in plan.arms),
        environments=used,
        differences=differing,
        metrics=tuple(_metric(metric) for metric in metrics),
        cells=cells,
        runs=tuple(runs),
        campaign=plan.campaign,
        seed=plan.seed,
        blocks=plan.blocks,
        withheld=withheld,
        notes=tuple(_notes(plan, cells)),
    )


_PLACES = {
    "QEMU": ("qemu", "version"),
    "libvirt": ("libvirt",),
    "kernel": ("kernel", "release"),
    "CPU": ("cpu", "model"),
}
"""What an arm ran on, and where an environment has it."""


def _with_places(
    arm: ReportArm, runs: Sequence[ReportRun], environments: Mapping[str, Environment]
) -> ReportArm:
    """*arm* with what its runs ran on; the name that it gave its QEMU stays before the version."""
    facts = dict(arm.facts)
    of_it = dict.fromkeys(run.environment for run in runs if run.arm == arm.name)
    for name, path in _PLACES.items():
        found = dict.fromkeys(_at(environments.get(each, {}), path) for each in of_it)
        text = " or ".join(each for each in found if each)
        if name == "CPU" and text:
            counts = dict.fromkeys(_at(environments.get(e, {}), ("cpu", "count")) for e in of_it)
            text += f", {' or '.join(each for each in counts if each)} CPUs"
        if text:
            facts[name] = f"{facts[name]}: {text}" if facts.get(name) else text
    return ReportArm(arm.name, facts)


def _at(environment: Environment, path: Sequence[str]) -> str:
    """What is there, as text; empty where it is not known."""
    found: object = environment
    for part in path:
        found = found.get(part) if isinstance(found, Mapping) else None
    return "" if found is None or isinstance(found, Mapping) else str(found)


def criterion_of(metric: Metric, values: Iterable[float], plan: Plan) -> Criterion:
    """How a metric is judged. Whole milliseconds were rounded, or cut, to them."""
    whole = metric.unit is Unit.MS and all(value == int(value) for value in values)
    return Criterion(
        metric=metric.name,
        direction=metric.direction,
        unit=_UNITS.get(metric.unit, metric.unit.value),
        margin=plan.margin,
        resolution=_ONE_MS if whole else 0.0,
        least_difference=metric.least_difference or None,
        share=metric.name in SUCCESS.values(),
        primary=metric.name == plan.primary_metric,
        success=metric.name in SUCCESS.values(),
        needs_success=metric.name in _RATES,
    )


def _contrast(
    plan: Plan,
    cell: str,
    a: str,
    b: str,
    metric: Metric,
    runs: Sequence[ReportRun],
    floors: Sequence[NoiseFloor],
) -> Contrast:
    of_a, of_b = ([run for run in runs if (run.cell, run.arm) == (cell, arm)] for arm in (a, b))
    values = [r.values[metric.name] for r in (*of_a, *of_b) if metric.name in r.values]
    here = {run.environment for run in (*of_a, *of_b)}
    return Contrast(
        sample_of(a, of_a, metric.name),
        sample_of(b, of_b, metric.name),
        criterion_of(metric, values, plan),
        next((f for f in floors if f.metric == metric.name and {f.environment} == here), None),
        None if plan.paired else Design.UNPAIRED,
        in_time=True,
    )


def _spreads(
    plan: Plan, cell: str, metrics: Sequence[Metric], runs: Sequence[ReportRun]
) -> Iterable[Spread]:
    """The values of the arms that are compared with none."""
    compared = {arm for pair in plan.against for arm in pair}
    for arm in plan.arms:
        if arm.name in compared:
            continue
        of_it = [run for run in runs if (run.cell, run.arm) == (cell, arm.name)]
        for metric in metrics:
            sample = sample_of(arm.name, of_it, metric.name)
            values = [run.values[metric.name] for run in of_it if metric.name in run.values]
            resolution = criterion_of(metric, values, plan).resolution
            yield Spread(metric.name, summarise(sample, resolution))


def sample_of(arm: str, runs: Sequence[ReportRun], metric: str) -> Sample:
    """What the runs of an arm say of *metric*."""
    return Sample(
        arm,
        tuple(_observation(run, metric) for run in runs),
    )


def _observation(run: ReportRun, metric: str) -> Observation:
    """What *run* says of *metric*: of that which says how many completed, whether it succeeded."""
    succeeded = run.state.succeeded
    value = run.values.get(metric) if run.counts else None
    if metric in SUCCESS.values():
        value = float(succeeded)
    elif metric in _RATES and not succeeded:
        value = None
    return Observation(
        value,
        censored=value is not None and metric in run.censored,
        block=run.block,
        run=run.run,
        failure=run.failure,
        failed=not succeeded,
        at_s=run.began.timestamp() if run.began else None,
    )


def _metrics_of(runs: Sequence[ReportRun], primary: str) -> list[Metric]:
    """The metrics that any run has: whether it succeeded first, then the primary one."""
    success = next(SUCCESS[kind] for kind, table in METRICS_OF.items() if primary in table)
    seen = {name for run in runs if run.counts for name in run.values} | {primary, success}
    found = [metric for name, metric in METRICS.items() if name in seen]
    return sorted(found, key=lambda metric: (metric.name != success, metric.name != primary))


def _metric(metric: Metric) -> ReportMetric:
    return ReportMetric(
        metric.name,
        metric.title,
        metric.unit,
        metric.direction,
        metric.description,
    )


def _differing(
    plan: Plan, runs: Sequence[ReportRun], environments: Mapping[str, Environment]
) -> tuple[tuple[ReportEnvironment, ...], tuple[EnvironmentDifference, ...]]:
    """The environments of the runs, the first arm's first, and in what they differ."""
    names = [arm.name for arm in plan.arms]
    in_order = sorted(runs, key=lambda run: names.index(run.arm) if run.arm in names else 0)
    found = list(dict.fromkeys(run.environment for run in in_order))
    used = tuple(
        ReportEnvironment(
            fingerprint, dict(Counter(run.arm for run in runs if run.environment == fingerprint))
        )
        for fingerprint in found
    )
    known = [environments.get(fingerprint, {}) for fingerprint in found]
    if len(found) < 2:
        return used, ()
    if not all(known):
        words = tuple(
            fingerprint if environment else "unknown"
            for fingerprint, environment in zip(found, known, strict=True)
        )
        return used, (EnvironmentDifference("environment", words, expected="" in plan.expected),)
    first, *others = known
    of_others = [{each.field: each for each in differences(first, other)} for other in others]
    rows = []
    for path in sorted(set().union(*of_others)):
        values = [next(of[path].first for of in of_others if path in of)]
        values += [of[path].second if path in of else values[0] for of in of_others]
        rows.append(EnvironmentDifference(path, tuple(values), _is_expected(path, plan.expected)))
    return used, tuple(rows)


def _is_expected(path: str, expected: Sequence[str]) -> bool:
    return any(not each or path == each or path.startswith(each + ".") for each in expected)


def _withheld(used: Sequence[ReportEnvironment], differing: Sequence[EnvironmentDifference]) -> str:
    """Why there is no verdict; empty where there is one."""
    unexpected = [each.field for each in differing if not each.expected]
    if not unexpected:
        return ""
    named = ", ".join(unexpected[:3]) + (
        f" and {len(unexpected) - 3} more" if len(unexpected) > 3 else ""
    )
    return (
        f"the runs were made in {len(used)} different environments ({named}): what differs "
        "between the arms may be due to that"
    )


def _notes(plan: Plan, cells: Sequence[ReportCell]) -> Iterable[str]:
    """What holds of the report as a whole."""
    sizes = [c.size for cell in cells for c in cell.comparisons if c.criterion.primary]
    if plan.blocks and sizes and min(sizes) < plan.blocks:
        yield (
            f"{plan.blocks} blocks were planned; the smallest comparison of the primary metric "
            f"has {min(sizes)}"
        )
    others = "metrics other than the primary one" if plan.declared else "metrics"
    if len([c for cell in cells for c in cell.comparisons if c.adjusted_p is not None]) > 1:
        yield (
            f"{others} are called better or worse only if their p-value, adjusted for their "
            "number, supports it"
        )
