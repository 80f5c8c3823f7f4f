"""What published tables say of what was compared here, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from vmtune.bench.model.runs.run import Run
from vmtune.bench.report.report import Report
from vmtune.reference.facts import Facts
from vmtune.reference.matching import NoMatch, OwnEffect, Scale, match_cell, match_effect, stand
from vmtune.reference.own import facts_of_run
from vmtune.reference.tables import Reference, Table
from vmtune.stats import model
from vmtune.storage import Store


@dataclass(frozen=True, slots=True)
class Published:
    """The published source to show.

    :param table: only this one; empty for all that own runs have a metric for.
    """

    source: Reference
    table: str
    scale: Scale


def sentences(
    published: Published, report: Report, runs: Mapping[str, Run], store: Store
) -> Iterator[str]:
    """For each cell and pair of arms: the published effect that belongs to the own one; for an
    arm that is compared with nothing, the published figure."""
    source = published.source
    tables = [t for t in source.tables.values() if published.table in ("", t.name) and t.metric]
    if not tables:
        yield f"{source.title}: own runs have no metric of its tables"
    facts = {
        (cell.name, arm.name): _facts(report, cell.name, arm.name, runs, store)
        for cell in report.cells
        for arm in report.arms
    }
    for table in tables:
        for cell in report.cells:
            for spread in cell.spreads:
                if spread.metric == table.metric:
                    arm = spread.summary.arm
                    text = _figure_text(published, table, facts[cell.name, arm])
                    yield f"published in {source.id}, {cell.name}, {arm}: {text}"
        for cell in report.cells:
            for each in cell.comparisons:
                if each.metric != table.metric:
                    continue
                of_a, of_b = facts[cell.name, each.a.arm], facts[cell.name, each.b.arm]
                text = _effect_text(published, table, of_a, of_b, each)
                pair = f"{each.b.arm} against {each.a.arm}"
                yield f"published in {source.id}, {cell.name}, {pair}: {text}"


def _figure_text(published: Published, table: Table, own: Facts | None) -> str:
    """The published figure that matches an arm, and in what the two differ."""
    what = f"table {table.name}"
    if own is None:
        return f"{what}: no own run that can be compared with it"
    match = match_cell(published.source, table, own, published.scale)
    if isinstance(match, NoMatch):
        return f"{what}: no published figure matches ({match.reason})"
    differences = "; ".join(each.text for each in match.differences)
    printed = match.row.figure.printed
    unit = "" if any(letter.isalpha() for letter in printed) else f" {table.unit}"
    return (
        f"{what}, {match.row.arm}, {printed}{unit}. They differ in: "
        f"{differences or 'nothing that is known'}"
    )


def _effect_text(
    published: Published,
    table: Table,
    base: Facts | None,
    arm: Facts | None,
    found: model.Comparison,
) -> str:
    what = f"table {table.name}"
    if base is None or arm is None:
        return f"{what}: no own run that can be compared with it"
    match = match_effect(published.source, table, base, arm, published.scale)
    if isinstance(match, NoMatch):
        return f"{what}: no published figure matches ({match.reason})"
    differences = "; ".join(each.text for each in match.differences)
    its = match.published
    row = f"{what}, {its.row.arm} against {its.base_name}, ratio {its.ratio.text}"
    effect = found.effect
    bounded = effect is not None and effect.low is not None and effect.high is not None
    if effect is None or not bounded or effect.scale is not model.Scale.RATIO:
        return f"{row}: the own ratio has no interval yet. They differ in: {differences}"
    assert effect.low is not None and effect.high is not None
    standing = stand(table, match, OwnEffect(effect.estimate, effect.low, effect.high))
    return f"{row}: {standing.text}. They differ in: {differences or 'nothing that is known'}"


def _facts(
    report: Report, cell: str, arm: str, runs: Mapping[str, Run], store: Store
) -> Facts | None:
    """The conditions of the first run of an arm in a cell; None where it has none."""
    for each in report.runs_of(cell, arm):
        run = runs[each.run]
        environment = store.runs.environment(run.fingerprint) if run.fingerprint else {}
        record = store.runs.record(UUID(each.run)) if each.counts else None
        load = run.options.get("host_load", "idle" if run.slot else None)
        setup = {**run.setup, "host_load": load}
        return facts_of_run(replace(run, setup=setup, environment=environment, record=record))
    return None
