"""Comparisons of runs: arms of a campaign, or any runs by a filter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from vmtune.bench.model.campaign.campaign import DEFAULT_MARGIN_PERCENT
from vmtune.bench.model.campaign.record import CampaignRecord, CampaignState, scenario_name
from vmtune.bench.model.metrics.table import METRICS
from vmtune.bench.model.runs.run import Run
from vmtune.bench.report.build import TIME, CellPlan, Plan, build, report_run
from vmtune.bench.report.report import Report, ReportRun
from vmtune.bench.services.comparisons.arms import (
    COUNTED,
    RunArm,
    expected_differences,
    facts_of_arm,
    facts_of_runs,
    is_filter,
    read_filter,
    runs_of,
)
from vmtune.bench.services.comparisons.looks import Look, earlier, look_at, look_at_runs, repeats
from vmtune.bench.services.comparisons.published import Published, sentences
from vmtune.errors import InvalidInput
from vmtune.reference.loading import reference, table_of
from vmtune.stats.judging import veil, withhold
from vmtune.stats.model import MAX_RUNS, NoiseFloor
from vmtune.storage import Store
from vmtune.storage.repositories.bench.run_rows import RunFilter

_EVERYTHING = Look()


@dataclass(frozen=True, slots=True)
class Asked:
    """A requested comparison.

    :param a: the baseline: an arm of *campaign*, or a filter over runs; empty for all
        pairs of the campaign.
    :param b: what is compared with it, likewise.
    :param campaign: by its id, or the newest of that name.
    :param metrics: only these; the first is shown first where there is no campaign. Empty
        for all.
    :param margin_percent: within which there is no difference; None for the campaign's.
    :param expected: paths of the environment in which the arms differ on purpose; an empty one
        stands for all.
    :param reference: a published source, or ``SOURCE/TABLE``, to compare with.
    """

    a: str = ""
    b: str = ""
    campaign: str = ""
    metrics: tuple[str, ...] = ()
    margin_percent: float | None = None
    expected: tuple[str, ...] = ()
    reference: str = ""


@dataclass(frozen=True, slots=True)
class _Gathered:
    """What is compared.

    :param runs: as the report has them.
    :param of: the runs themselves, by their ids.
    """

    plan: Plan
    runs: Sequence[ReportRun]
    of: dict[str, Run]
    notes: tuple[str, ...] = ()
    look: Look = _EVERYTHING
    published: Published | None = None


class ComparisonService:
    """Compares what was measured."""

    def __init__(
        self, store: Store, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._store = store
        self._now = now

    def compared(self, asked: Asked) -> Report:
        """Compare B with A.

        :raise InvalidInput: it is not said what is compared, or there is nothing to compare.
        :raise NotFound: no such campaign or reference.
        """
        _check(asked)
        gathered = self._campaign(asked) if asked.campaign else self._chosen(asked)
        plan = gathered.plan
        runs = gathered.runs
        fingerprints = {run.environment for run in runs if run.environment}
        environments = {each: self._store.runs.environment(each) for each in fingerprints}
        report = build(plan, runs, environments, self._now(), self._floors(gathered, fingerprints))
        report = _seen(report, gathered.look)
        if asked.metrics:
            success = {c.metric for cell in report.cells for c in cell.comparisons[:1]}
            report = _only(report, {plan.primary_metric, *success, *asked.metrics})
        published: tuple[str, ...] = ()
        if gathered.published is not None:
            published = tuple(sentences(gathered.published, report, gathered.of, self._store))
        return replace(report, notes=(*gathered.notes, *report.notes, *published))

    def _campaign(self, asked: Asked) -> _Gathered:
        record = self._store.campaigns.named(asked.campaign)
        campaign = record.campaign
        against = [(base, arm.name) for arm in campaign.arms for base in campaign.against(arm)]
        if asked.a:
            against = [(asked.a, asked.b)]
        names = {arm.name for arm in campaign.arms}
        for field, name in (("a", asked.a), ("b", asked.b)):
            if name and name not in names:
                raise InvalidInput(
                    f"the campaign {campaign.name} has no arm {name[:70]!r}",
                    field=field,
                    code="unknown_arm",
                    remedy=f"its arms are {', '.join(sorted(names))}",
                )
        # Without a pair there is one arm, which is shown alone.
        wanted = {name for pair in against for name in pair} or names
        cells = {scenario_name(campaign, cell): cell for cell in campaign.all_cells}
        of_each = len(campaign.all_cells) * len(campaign.arms)
        found = {
            str(run.id): run
            for run in _all(self._store, RunFilter(states=COUNTED, campaign=record.id))
            if run.slot and run.slot.block and run.slot.arm in wanted and run.scenario in cells
        }
        runs = [
            report_run(
                run,
                arm=run.slot.arm,
                cell=run.scenario,
                block=run.slot.block,
                number=campaign.warmup_runs + (run.slot.block - 1) * of_each + run.slot.position,
                environment=run.fingerprint,
            )
            for run in found.values()
            if run.slot
        ]
        margin = asked.margin_percent or campaign.margin_percent
        plan = Plan(
            title=campaign.title or campaign.name,
            arms=tuple(
                facts_of_arm(arm, [r for r in found.values() if r.slot and r.slot.arm == arm.name])
                for arm in campaign.arms
                if arm.name in wanted
            ),
            against=tuple(against),
            cells=tuple(CellPlan(name) for name in cells),
            primary_metric=campaign.primary_metric,
            margin=margin / 100,
            expected=(*asked.expected, *expected_differences(campaign)),
            campaign=campaign.name,
            seed=campaign.seed,
            blocks=campaign.blocks,
        )
        published = _published(asked.reference)
        if published is None and campaign.published is not None:
            chosen = campaign.published
            published = Published(reference(chosen.reference), chosen.table, chosen.scale)
        return _Gathered(
            plan,
            sorted(runs, key=lambda run: run.number),
            found,
            (*_notes(record, margin), *repeats(self._store, record), *earlier(self._store, record)),
            look_at(record),
            published,
        )

    def _chosen(self, asked: Asked) -> _Gathered:
        arms = [
            RunArm(text, tuple(runs_of(self._store, read_filter(text, field, self._store))))
            for field, text in (("a", asked.a), ("b", asked.b))
        ]
        for field, arm in zip("ab", arms, strict=True):
            if not arm.runs:
                raise InvalidInput(
                    f"no run that has ended is {arm.name[:200]}",
                    field=field,
                    code="no_runs",
                    remedy="`vmtune bench runs` lists them",
                )
        cells, notes = _cells(arms)
        both = {run.id for run in arms[0].runs} & {run.id for run in arms[1].runs}
        if both:
            raise InvalidInput(
                f"{len(both)} runs are of both sides: {min(map(str, both))} is one",
                field="b",
                code="overlap",
                remedy="say more exactly which runs are meant",
            )
        runs = [
            report_run(
                run,
                arm=arm.name,
                cell=run.scenario if len(cells) > 1 else cells[0],
                environment=run.fingerprint,
            )
            for arm in arms
            for run in arm.runs
            if len(cells) == 1 or run.scenario in cells
        ]
        plan = Plan(
            title=f"{asked.b} against {asked.a}",
            arms=tuple(facts_of_runs(arm.name, arm.runs) for arm in arms),
            against=((asked.a, asked.b),),
            cells=tuple(map(CellPlan, cells)),
            primary_metric=asked.metrics[0] if asked.metrics else TIME,
            margin=(asked.margin_percent or DEFAULT_MARGIN_PERCENT) / 100,
            expected=asked.expected,
            paired=False,
            declared=False,
        )
        found = {str(run.id): run for arm in arms for run in arm.runs}
        full = [arm.name for arm in arms if len(arm.runs) == MAX_RUNS]
        notes += tuple(f"only the newest {MAX_RUNS:,} runs of {name} are compared" for name in full)
        look = look_at_runs(self._store, found.values())
        return _Gathered(plan, runs, found, notes, look, _published(asked.reference))

    def _floors(self, gathered: _Gathered, environments: set[str]) -> list[NoiseFloor]:
        """Of each metric and environment the floor of a scenario that is compared, the highest
        where there are several; else the newest of that environment."""
        stored = self._store.campaigns.floors(environments) if environments else ()
        cells = {run.cell for run in gathered.runs}
        chosen: dict[tuple[str, str], NoiseFloor] = {}
        for each in sorted(
            stored, key=lambda each: (each.scenario not in cells, -each.floor.effect)
        ):
            chosen.setdefault((each.floor.metric, each.floor.environment), each.floor)
        return list(chosen.values())


def _check(asked: Asked) -> None:
    """:raise InvalidInput: it is not said what is compared, or by metrics that there are not."""
    if bool(asked.a) != bool(asked.b) or not (asked.a or asked.campaign):
        raise InvalidInput(
            "what to compare is missing",
            field="b" if asked.a else "a",
            code="missing",
            remedy="give a and b, or a campaign alone for all pairs of its arms",
        )
    if asked.a and asked.a == asked.b:
        raise InvalidInput(
            "nothing can be compared with itself", field="b", code="same", remedy="name another"
        )
    if not asked.campaign and not (is_filter(asked.a) and is_filter(asked.b)):
        field = "b" if is_filter(asked.a) else "a"
        raise InvalidInput(
            f"{(asked.b if field == 'b' else asked.a)[:70]!r} is the name of an arm of a "
            "campaign, or nothing",
            field=field,
            code="no_campaign",
            remedy="name the campaign too, or choose runs as in scenario=plain/1gbs,profile=tuned",
        )
    for name in asked.metrics:
        if name not in METRICS:
            raise InvalidInput(
                f"there is no metric {name[:60]!r}",
                field="metric",
                code="unknown_metric",
                remedy="`vmtune bench metrics` lists them",
            )
    if asked.margin_percent is not None and not 0 < asked.margin_percent < 100:
        raise InvalidInput(
            f"a margin of {asked.margin_percent:g} % is not above 0 and below 100 %",
            field="margin_percent",
            code="out_of_range",
            remedy=f"{DEFAULT_MARGIN_PERCENT:g} is usual",
        )


def _all(store: Store, wanted: RunFilter) -> list[Run]:
    """All runs of a campaign, which has at most 20,000."""
    found: list[Run] = []
    after: str | None = None
    while True:
        page = store.runs.list(wanted, after, 1000)
        found += page.items
        after = page.next
        if after is None:
            return found


def _cells(arms: Sequence[RunArm]) -> tuple[list[str], tuple[str, ...]]:
    """The scenarios that both sides ran, one cell each; if each side ran one of its own, these are
    compared. With a note on what is left out."""
    of_a, of_b = (sorted({run.scenario for run in arm.runs}) for arm in arms)
    if len(of_a) == len(of_b) == 1:
        return [of_a[0] if of_a == of_b else f"{of_b[0]} against {of_a[0]}"], ()
    both = [name for name in of_a if name in of_b]
    if not both:
        raise InvalidInput(
            f"they have no scenario in common: a ran {_some(of_a)}, b ran {_some(of_b)}",
            field="b",
            code="no_common_scenario",
            remedy="name one scenario on each side",
        )
    left_out = [name for name in {*of_a, *of_b} if name not in both]
    if not left_out:
        return both, ()
    return both, (f"scenarios that only one side ran are left out: {_some(sorted(left_out))}",)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _only(report: Report, names: set[str]) -> Report:
    """*report* with the metrics that are wanted. The p-values stay adjusted for how many there
    are: which of them to show was chosen afterwards."""
    cells = tuple(
        replace(
            cell,
            comparisons=tuple(each for each in cell.comparisons if each.metric in names),
            spreads=tuple(each for each in cell.spreads if each.metric in names),
        )
        for cell in report.cells
    )
    runs = tuple(
        replace(
            run,
            values={name: value for name, value in run.values.items() if name in names},
            censored=tuple(name for name in run.censored if name in names),
        )
        for run in report.runs
    )
    metrics = tuple(metric for metric in report.metrics if metric.name in names)
    return replace(report, cells=cells, runs=runs, metrics=metrics)


def _seen(report: Report, look: Look) -> Report:
    """*report* with what may be seen of it."""
    reason = look.veiled or look.withheld
    if not reason:
        return report
    hide = veil if look.veiled else withhold
    cells = tuple(
        replace(cell, comparisons=tuple(hide(each, reason) for each in cell.comparisons))
        for cell in report.cells
    )
    return replace(report, cells=cells, withheld=reason)


def _published(text: str) -> Published | None:
    if not text:
        return None
    source, _, table = text.partition("/")
    found = reference(source)
    if table:
        table_of(found, table)
    return Published(found, table, {})


def _notes(record: CampaignRecord, margin: float) -> list[str]:
    """What is to be known of the campaign as a whole."""
    campaign, notes = record.campaign, []
    if not record.state.ended:
        notes.append(f"the campaign is {record.state.value}: this is what there is so far")
    elif record.state is not CampaignState.COMPLETED:
        reason = f": {record.reason}" if record.reason else ""
        notes.append(f"the campaign was {record.state.value} before its end{reason}")
    if campaign.same_arms:
        notes.append("all arms are the same: what differs between them is noise")
    if margin != campaign.margin_percent:
        notes.append(
            f"the margin is {margin:g} %, not the {campaign.margin_percent:g} % that were fixed "
            "before the runs"
        )
    return notes
