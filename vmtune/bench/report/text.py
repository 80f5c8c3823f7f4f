"""A report in a terminal and as Markdown. Pure: from the report alone.

For the terminal, tables as data: the client knows how wide it is and what it may colour.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vmtune.bench.report.report import Report, ReportCell
from vmtune.bench.report.tables import Heading, TextTable, overview_tables, spread_tables
from vmtune.bench.report.words import (
    arm_texts,
    direction_text,
    effect_text,
    floor_text,
    interval_text,
    p_text,
    quartile_texts,
    raw_text,
    runs_text,
    share_text,
    verdict_text,
)
from vmtune.stats.model import Comparison

_RESULTS = (
    Heading("METRIC"),
    Heading("A", right=True),
    Heading("B", right=True),
    Heading("B AGAINST A", right=True),
    Heading("95 % INTERVAL", right=True),
    Heading("VERDICT"),
    Heading("MORE BLOCKS", right=True, spare=True),
    Heading("A'S QUARTILES", right=True, spare=True),
    Heading("B'S QUARTILES", right=True, spare=True),
)
_MOST_NAMED = 3


def terminal_tables(report: Report) -> tuple[TextTable, ...]:
    """What `vmtune compare` prints, in this order: how the environments differ, if they do, then
    what came out for each cell and pair of arms, and last the primary metric in all cells."""
    of_cells = (
        table
        for cell in report.cells
        for table in (*_results(report, cell), *spread_tables(report, cell))
    )
    return (*_environment(report), *of_cells, *overview_tables(report))


def _environment(report: Report) -> Iterator[TextTable]:
    if not report.differences:
        return
    places = tuple(place.fingerprint[:8] or "unknown" for place in report.environments)
    yield TextTable(
        "The runs were made in different environments:",
        (Heading("FIELD"), *(Heading(place) for place in places), Heading("ON PURPOSE")),
        tuple(
            (each.field, *(shown(value) for value in each.values), "yes" if each.meant else "no")
            for each in report.differences
        ),
        (f"No verdicts: {report.withheld}.",) if report.withheld else (),
    )


def _results(report: Report, cell: ReportCell) -> Iterator[TextTable]:
    for a, b in pairs(cell):
        found = [c for c in cell.comparisons if (c.a.arm, c.b.arm) == (a, b)]
        yield TextTable(
            heading(cell, a, b, found),
            _RESULTS,
            tuple(_row(report, comparison) for comparison in found),
            tuple(notes_of(report, found)),
            tuple(primary_lines(report, found)),
        )


def _row(report: Report, comparison: Comparison) -> tuple[str, ...]:
    metric = report.metric(comparison.metric)
    primary = " (primary)" if comparison.criterion.primary else ""
    more = comparison.more_blocks
    return (
        metric.title + primary,
        *arm_texts(comparison, metric),
        effect_text(comparison.effect, metric),
        interval_text(comparison.effect, metric),
        verdict_text(comparison),
        "" if more is None else f"about {more}",
        *quartile_texts(comparison, metric),
    )


def primary_lines(report: Report, found: Sequence[Comparison]) -> Iterator[str]:
    """The primary metric's verdict in a sentence."""
    for comparison in found:
        if comparison.criterion.primary and not report.withheld:
            title = report.metric(comparison.metric).title
            yield f"{title}: {verdict_text(comparison)}: {comparison.reason}."


def pairs(cell: ReportCell) -> list[tuple[str, str]]:
    """The pairs of arms that are compared, (A, B), in their order."""
    return list(dict.fromkeys((c.a.arm, c.b.arm) for c in cell.comparisons))


def heading(cell: ReportCell, a: str, b: str, found: Sequence[Comparison]) -> str:
    """``mine/busy: B = tuned against A = stock, 10 blocks``."""
    where = f"{cell.title or cell.name}: " if cell.title or cell.name else ""
    return f"{where}B = {b} against A = {a}, {size_text(found)}"


def size_text(found: Sequence[Comparison]) -> str:
    """How much there is of what: blocks, or runs of each arm."""
    first = found[0]
    if first.design.value == "paired":
        return f"{first.size} blocks"
    return f"{runs_text(first.a)} runs of A and {runs_text(first.b)} of B"


def notes_of(report: Report, found: Sequence[Comparison]) -> Iterator[str]:
    """What is to be known beside the verdicts, each once, with the metrics that it is about."""
    about: dict[str, list[str]] = {}
    for comparison in found:
        for note in comparison.notes:
            about.setdefault(note, []).append(report.metric(comparison.metric).title)
    for note, titles in about.items():
        named = ", ".join(titles) if len(titles) <= _MOST_NAMED else f"{len(titles)} metrics"
        every = len(titles) == len(found) and len(found) > 1
        yield f"{'All metrics' if every else named}: {note}."


def shown(value: object) -> str:
    """A value of an environment."""
    return "not told" if value is None else str(value)


# Markdown --------------------------------------------------------------------------------


def to_markdown(report: Report) -> str:
    """The whole report, raw values included."""
    return "\n".join(_markdown(report)) + "\n"


def _markdown(report: Report) -> Iterator[str]:
    yield f"# {_escaped(report.title)}"
    yield ""
    yield from _markdown_environment(report)
    for note in report.notes:
        yield f"- {_escaped(note)}."
    if report.notes:
        yield ""
    for cell in report.cells:
        for a, b in pairs(cell):
            yield from _markdown_results(report, cell, a, b)
        for table in spread_tables(report, cell):
            yield from _markdown_table(table)
    for table in overview_tables(report):
        yield from _markdown_table(table)
    yield from _markdown_arms(report)
    yield from _markdown_lost(report)
    yield from _markdown_metrics(report)
    yield from _markdown_runs(report)


def _markdown_environment(report: Report) -> Iterator[str]:
    if not report.differences:
        places = [place.fingerprint or "unknown" for place in report.environments]
        yield f"All {len(report.runs)} runs were made in one environment: `{' '.join(places)}`."
        yield ""
        return
    (table,) = _environment(report)
    yield f"**{_escaped(table.title)}**"
    yield ""
    yield from _table([heading.title.capitalize() for heading in table.headings], table.rows)
    for note in table.notes:
        yield f"**{_escaped(note)}**"
        yield ""


def _markdown_results(report: Report, cell: ReportCell, a: str, b: str) -> Iterator[str]:
    found = [c for c in cell.comparisons if (c.a.arm, c.b.arm) == (a, b)]
    yield f"## {_escaped(heading(cell, a, b, found))}"
    yield ""
    for line in primary_lines(report, found):
        yield f"**{_escaped(line)}**"
        yield ""
    headings = (
        "Metric", f"A: {a}", f"B: {b}", "B against A", "95 % interval", "Verdict", "p", "adjusted",
        "Cliff's delta", "B better in", "Noise floor",
    )  # fmt: skip
    yield from _table(headings, [_markdown_row(report, c) for c in found])
    for comparison in found:
        if not comparison.criterion.primary and not report.withheld:
            yield f"- {report.metric(comparison.metric).title}: {_escaped(comparison.reason)}."
    for note in notes_of(report, found):
        yield f"- {_escaped(note)}"
    yield ""


def _markdown_row(report: Report, comparison: Comparison) -> tuple[str, ...]:
    metric = report.metric(comparison.metric)
    test, adjusted = comparison.test, comparison.adjusted_p
    delta = comparison.cliffs_delta
    medians = (
        f"{median} ({quartiles})" if quartiles else median
        for median, quartiles in zip(
            arm_texts(comparison, metric), quartile_texts(comparison, metric), strict=True
        )
    )
    name, _, _, *rest = _row(report, comparison)
    return (
        name,
        *medians,
        *rest[:3],
        p_text(test.p) if test else "-",
        p_text(adjusted) if adjusted is not None else "-",
        f"{delta:+.2f}" if delta is not None else "-",
        share_text(comparison.better_share),
        floor_text(comparison, metric),
    )


def _markdown_table(table: TextTable) -> Iterator[str]:
    yield f"## {_escaped(table.title)}"
    yield ""
    yield from _table([heading.title.capitalize() for heading in table.headings], table.rows)


def _markdown_arms(report: Report) -> Iterator[str]:
    yield "## Arms"
    yield ""
    for arm in report.arms:
        facts = "; ".join(f"{name} {value}" for name, value in arm.facts.items())
        yield f"- **{_escaped(arm.name)}**" + (f": {_escaped(facts)}" if facts else "")
    if report.seed is not None:
        yield f"- {report.blocks} blocks, order drawn with the seed {report.seed}"
    yield ""


def _markdown_lost(report: Report) -> Iterator[str]:
    if not report.lost:
        return
    yield "## Runs that failed"
    yield ""
    yield from _table(
        ("Run", "Cell", "Arm", "Block", "Why"),
        [(r.run, r.cell, r.arm, _block(r.block), r.failure or r.state.value) for r in report.lost],
    )


def _markdown_metrics(report: Report) -> Iterator[str]:
    yield "## Metrics"
    yield ""
    for metric in report.metrics:
        yield (
            f"- **{_escaped(metric.title)}** (`{metric.name}`, "
            f"{direction_text(metric.direction)}): {_escaped(metric.measures)}"
        )
    yield ""


def _markdown_runs(report: Report) -> Iterator[str]:
    yield "## Raw values"
    yield ""
    yield "In each metric's unit, the last part of its name; `>` marks a limit that the true "
    yield "value is above."
    yield ""
    headings = ("Run", "Cell", "Arm", "Block", "State", *(m.name for m in report.metrics))
    yield from _table(headings, raw_rows(report))


def raw_rows(report: Report) -> list[tuple[str, ...]]:
    """Each run with its values as they are computed with."""
    rows = []
    for run in report.runs:
        cells = [run.run, run.cell, run.arm, _block(run.block), run.state.value]
        for metric in report.metrics:
            value = run.values.get(metric.name)
            limit = "> " if metric.name in run.censored else ""
            cells.append("" if value is None else limit + raw_text(value))
        rows.append(tuple(cells))
    return rows


def _block(block: int | None) -> str:
    return "" if block is None else str(block)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(_escaped(each) for each in headings) + " |"
    yield "|" + "---|" * len(headings)
    for row in rows:
        yield "| " + " | ".join(_escaped(each) for each in row) + " |"
    yield ""


def _escaped(text: str) -> str:
    """*text* so that Markdown shows it as it is, in a table too."""
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, "\\" + mark)
    return text.replace("\n", " ")
