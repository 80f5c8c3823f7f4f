"""The page of the published tables, with own figures cell by cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from docs.generator.markdown import code, prose, table
from vmtune.reference.changes import compared, held
from vmtune.reference.facts import FACTS
from vmtune.reference.loading import references
from vmtune.reference.results import Cell, ReferenceVerdict, cells, measurements
from vmtune.reference.tables import Reference, Row, Table

FIVE = (
    "coroutine-pool-resize",
    "coroutine-pool-global",
    "dirty-ring-reaper",
    "srcu-boot-time",
    "zero-copy-multifd",
)
"""The sources that vmtune began with, in the order of docs/sources.md; the others follow."""


def page() -> str:
    """Every table of every source, a row for each published figure."""
    others = [name for name in references() if name not in FIVE]
    return "\n\n".join(
        [
            "# Published tables, with own figures",
            "Every figure that the sources publish, with what was measured with vmtune, from the "
            "tables in `vmtune/reference/data` and the own figures in `vmtune/reference/measured`. "
            "`vmtune reference show ID` prints the same. What the sources say besides is in "
            "[The five sources](../sources.md).",
            _legend(),
            _summary(),
            *(part for name in (*FIVE, *others) for part in _reference(references()[name])),
        ]
    )


def _legend() -> str:
    words = {
        ReferenceVerdict.SAME: "the own ratio of two arms lies on the same side of 1 as the "
        "published one",
        ReferenceVerdict.OPPOSITE: "it lies on the other side",
        ReferenceVerdict.NEITHER: "one of the two ratios does not exclude 1",
        ReferenceVerdict.VALUE: "a figure without a ratio: the base of others, or its base was not "
        "measured here",
        ReferenceVerdict.NOT_YET: "the command next to it measures it",
        ReferenceVerdict.NOT_HERE: "what is missing stands next to it",
    }
    listed = "\n".join(f"- *{verdict.value}*: {words[verdict]}." for verdict in ReferenceVerdict)
    return (
        "Own figures are of other machines, so effects are compared and not values: the ratio of "
        "two arms here, and the published ratio of the same two. *Like size* are ratios no "
        "further apart than a factor of 1.05. A ratio *of medians* has no interval.\n\n" + listed
    )


def _summary() -> str:
    def counted(of: Reference) -> tuple[str, ...]:
        found = [cell.verdict for each in of.tables.values() for cell in cells(of, each)]
        return (
            f"[{of.id}](#{of.id})",
            str(len(found)),
            *(str(found.count(verdict)) for verdict in ReferenceVerdict),
        )

    return table(
        ("source", "figures", *(verdict.value for verdict in ReferenceVerdict)),
        [counted(of) for of in references().values()],
    )


def _reference(of: Reference) -> Iterator[str]:
    yield f"## {prose(of.title)} {{ #{of.id} }}"
    checked = "" if of.source.checked else " Not checked against the original text."
    yield prose(f"{of.source.title}, {of.source.text}.{checked}")
    if of.setup:
        facts = (f"{FACTS[name].title}: {FACTS[name].render(of.setup[name])}" for name in of.setup)
        yield prose(f"Setup of the source: {'; '.join(facts)}.")
    yield from (f"- {prose(note)}" for note in of.notes)
    for each in of.tables.values():
        yield from _table(of, each)


def _table(of: Reference, each: Table) -> Iterator[str]:
    yield f"### {prose(each.title)} {{ #{of.id}-{each.name} }}"
    metric = f"Metric of own runs: {code(each.metric)}" if each.metric else "No metric of own runs"
    note = f" {prose(each.note)}" if each.note else ""
    yield f"In {prose(each.unit)}.{note} {metric}: {prose(each.metric_note)}."
    found = cells(of, each)
    sources = measurements(found)
    marks = {one.key: number for number, one in enumerate(sources, 1)}
    conditions = each.conditions
    head = (
        *(FACTS[name].title for name in conditions),
        *("arm", "published", "published change", "here", "verdict"),
    )
    yield table(head, [_cells(of, each, cell, conditions, marks) for cell in found])
    for one in sources:
        recorded = f" Recorded in `{one.recorded}`." if one.recorded else ""
        yield (
            f"\\[{marks[one.key]}\\] {one.date}, QEMU {prose(one.qemu)}, {prose(one.machine)}: "
            f"{prose(one.how)}. Again with {code(one.command)}.{recorded}"
        )


def _cells(
    of: Reference, each: Table, cell: Cell, conditions: Sequence[str], marks: dict[str, int]
) -> tuple[str, ...]:
    row, own = cell.row, cell.own
    here = f"{prose(own.figure.printed)} \\[{marks[own.measurement.key]}\\]" if own else "-"
    return (
        *(FACTS[name].render(row.at[name]) if name in row.at else "-" for name in conditions),
        prose(row.arm),
        prose(row.figure.printed),
        prose(_change(of, each, row)),
        here,
        prose(cell.text),
    )


def _change(of: Reference, each: Table, row: Row) -> str:
    ratios = [
        f"{one.ratio.text} to {one.title}"
        for one in compared(of, each, row)
        if one.ratio is not None and one.base != row.arm
    ]
    change = held(each, row)
    return "; ".join([*([change.printed] if change else []), *ratios]) or "-"
