"""A report's tables as data: what a terminal, Markdown and HTML show. Pure: from the report alone.

The client knows how wide its terminal is and what it may colour.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vmtune.bench.report.report import Report, ReportCell, Spread
from vmtune.bench.report.words import (
    ResultText,
    figure_text,
    quartiles_text,
    raw_text,
    result_text,
    runs_text,
)
from vmtune.stats.model import Comparison, Design

_MAX_NAMED = 3


@dataclass(frozen=True, slots=True)
class Heading:
    """A column's title.

    :param right: numbers stand at the right.
    :param wraps: prose that may be broken into lines where it is narrow.
    :param spare: may be left out where it is too narrow for all.
    """

    title: str
    right: bool = False
    wraps: bool = False
    spare: bool = False


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table, with lines above it and below.

    :param lead: what matters most, in sentences, between title and table.
    """

    title: str
    headings: tuple[Heading, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    lead: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PairResults:
    """What came out of two arms in one cell, metric by metric.

    :param title: ``mine/busy: B = tuned against A = stock, 10 blocks``.
    :param lead: the primary metric's verdict in a sentence, after how many succeeded if not all
        did.
    :param notes: what else to know about the verdicts, each once, with the metrics concerned.
    """

    title: str
    a: str
    b: str
    comparisons: tuple[Comparison, ...]
    results: tuple[ResultText, ...]
    lead: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def leading(self) -> tuple[tuple[Comparison, ResultText], ...]:
        """What matters most: the primary metric, after how many succeeded if not all did."""
        return _leading(self.comparisons, self.results)


def _leading(
    comparisons: Sequence[Comparison], results: Sequence[ResultText]
) -> tuple[tuple[Comparison, ResultText], ...]:
    return tuple(
        (comparison, result)
        for comparison, result in zip(comparisons, results, strict=True)
        if result.primary or (comparison.criterion.success and comparison.succeeded)
    )


def _headings(
    *titles: str, left: Sequence[str] = (), spare: Sequence[str] = ()
) -> tuple[Heading, ...]:
    return tuple(Heading(t, right=t not in left, spare=t in spare) for t in titles)


_SPREAD = _headings("METRIC", "MEDIAN", "QUARTILES", "LEAST", "MOST", "RUNS", left=("METRIC",))
_RESULTS = _headings(
    "METRIC", "A", "B", "B AGAINST A", "95 % INTERVAL", "VERDICT", "B BY A", "A'S QUARTILES",
    "B'S QUARTILES",
    left=("METRIC", "VERDICT"), spare=("B BY A", "A'S QUARTILES", "B'S QUARTILES"),
)  # fmt: skip
_FIGURES = _headings(
    "Metric", "Runs of A", "Runs of B", "r", "Level", "Test", "p", "Adjusted", "Cliff's delta",
    "B better in", "Noise floor", "Of medians",
    left=("Metric", "Test", "Noise floor", "Of medians"),
)  # fmt: skip
_RUN = ("Run", "Cell", "Arm", "Block", "State")


def terminal_tables(report: Report) -> tuple[TextTable, ...]:
    """What `vmtune compare` prints, in this order: how the environments differ, if they do, then
    what came out for each cell and pair of arms, and last the primary metric in all cells."""
    tables = list(environment_tables(report))
    for cell in report.cells:
        tables += (_results_table(pair) for pair in pairs(report, cell))
        tables += spread_tables(report, cell)
    return (*tables, *overview_tables(report), *arms_tables(report))


def arms_tables(report: Report) -> Iterator[TextTable]:
    """What each arm was: its values, QEMU, libvirt, kernel and CPU."""
    rows = tuple(
        (arm.name, "; ".join(f"{name} {text}" for name, text in arm.facts.items()))
        for arm in report.arms
        if arm.facts
    )
    if rows:
        yield TextTable("What ran:", (Heading("ARM"), Heading("RAN WITH", wraps=True)), rows)


def environment_tables(report: Report) -> Iterator[TextTable]:
    """In what the environments differ; none where there is one environment."""
    if report.differences:
        names = [place.fingerprint[:8] or "unknown" for place in report.environments]
        yield TextTable(
            "The runs were made in different environments:",
            (Heading("FIELD"), *map(Heading, names), Heading("ON PURPOSE")),
            tuple(
                (each.field, *map(_shown, each.values), "yes" if each.expected else "no")
                for each in report.differences
            ),
            (f"No verdicts: {report.withheld}.",) if report.withheld else (),
        )


def _shown(value: object) -> str:
    return "unknown" if value is None else str(value)


def pairs(report: Report, cell: ReportCell) -> tuple[PairResults, ...]:
    """The pairs of arms that are compared, in their order."""
    names = dict.fromkeys((c.a.arm, c.b.arm) for c in cell.comparisons)
    return tuple(_pair(report, cell, a, b) for a, b in names)


def _pair(report: Report, cell: ReportCell, a: str, b: str) -> PairResults:
    found = tuple(c for c in cell.comparisons if (c.a.arm, c.b.arm) == (a, b))
    first = next((each for each in found if each.criterion.primary), found[0])
    where = f"{cell.title or cell.name}: " if cell.title or cell.name else ""
    size = (
        f"{first.size} blocks"
        if first.design is Design.PAIRED
        else f"{runs_text(first.a)} runs of A and {runs_text(first.b)} of B"
    )
    results = tuple(result_text(report, comparison) for comparison in found)
    return PairResults(
        f"{where}B = {b} against A = {a}, {size}",
        a,
        b,
        found,
        results,
        tuple(
            f"{each.title}: {each.verdict}: {each.reason}."
            for _, each in _leading(found, results)
            if not report.withheld
        ),
        tuple(_notes(found, results)),
    )


def _notes(found: Sequence[Comparison], results: Sequence[ResultText]) -> Iterator[str]:
    about: dict[str, list[str]] = {}
    for comparison, result in zip(found, results, strict=True):
        for note in comparison.notes:
            about.setdefault(note, []).append(result.title)
    for note, titles in about.items():
        named = ", ".join(titles) if len(titles) <= _MAX_NAMED else f"{len(titles)} metrics"
        every = len(titles) == len(found) and len(found) > 1
        yield f"{'All metrics' if every else named}: {note}."


def _results_table(pair: PairResults) -> TextTable:
    rows = tuple(
        (each.name, *each.medians, each.effect, each.interval, each.verdict, each.times,
         *each.quartiles)
        for each in pair.results
    )  # fmt: skip
    return TextTable(pair.title, _RESULTS, rows, pair.notes, pair.lead)


def figures_table(pair: PairResults) -> TextTable:
    """The data of the verdicts, so that readers can check them."""
    rows = tuple(
        (each.title, *each.runs, each.rank, each.level, each.test, each.p, each.adjusted_p,
         each.delta, each.better_in, each.noise_floor, each.of_medians)
        for each in pair.results
    )  # fmt: skip
    return TextTable("Tests and figures", _FIGURES, rows)


def spread_tables(report: Report, cell: ReportCell) -> Iterator[TextTable]:
    """The values of each arm that is compared with none, if any."""
    for arm in dict.fromkeys(each.summary.arm for each in cell.spreads):
        found = [each for each in cell.spreads if each.summary.arm == arm]
        runs = found[0].summary.runs
        yield TextTable(
            f"{cell.title or cell.name or report.title}: {arm}, {runs} runs, compared with nothing",
            _SPREAD,
            tuple((_title(report, each.metric), *_spread_texts(report, each)) for each in found),
        )


def _spread_texts(report: Report, spread: Spread) -> tuple[str, ...]:
    """Median, quartiles, smallest, largest, and of how many runs."""
    metric, summary = report.metric(spread.metric), spread.summary
    return (
        figure_text(summary.median, metric),
        quartiles_text(summary, metric),
        figure_text(summary.minimum, metric),
        figure_text(summary.maximum, metric),
        runs_text(summary),
    )


def _title(report: Report, metric: str) -> str:
    primary = " (primary)" if metric == report.primary_metric else ""
    return report.metric(metric).title + primary


def overview_tables(report: Report) -> Iterator[TextTable]:
    """The primary metric in all cells, one row each, where there are several cells."""
    if len(report.cells) < 2:
        return
    rows: dict[tuple[str, bool], list[tuple[str, ...]]] = {}
    for cell in report.cells:
        name = cell.title or cell.name
        for pair in pairs(report, cell):
            rows.setdefault((f"B = {pair.b} against A = {pair.a}", True), []).extend(
                (name, *each.medians, each.effect, each.interval, each.verdict)
                for each in pair.results
                if each.primary
            )
        for spread in cell.spreads:
            if spread.metric == report.primary_metric:
                row = (name, *_spread_texts(report, spread))
                rows.setdefault((spread.summary.arm, False), []).append(row)
    title = report.metric(report.primary_metric).title
    for (what, compared), found in sorted(rows.items(), key=lambda item: not item[0][1]):
        headings = _RESULTS[1:6] if compared else _SPREAD[1:]
        yield TextTable(f"{title} in all cells: {what}", (Heading("CELL"), *headings), tuple(found))


def failed_table(report: Report) -> TextTable:
    """The runs that have no values, and why."""
    rows = tuple(
        (run.run, run.cell, run.arm, _block(run.block), run.failure or run.state.value)
        for run in report.lost
    )
    title = f"Runs that failed: {len(rows)} of {len(report.runs)}"
    return TextTable(title, (*map(Heading, _RUN[:4]), Heading("Why")), rows)


def raw_table(report: Report) -> TextTable:
    """Each run with its values as they are computed with."""
    rows = []
    for run in report.runs:
        cells = [run.run, run.cell, run.arm, _block(run.block), run.state.value]
        for metric in report.metrics:
            value = run.values.get(metric.name)
            limit = "> " if metric.name in run.censored else ""
            cells.append("" if value is None else limit + raw_text(value))
        rows.append(tuple(cells))
    names = (*_RUN, *(metric.name for metric in report.metrics))
    return TextTable(
        "Raw values", _headings(*names, left=("Run", "Cell", "Arm", "State")), tuple(rows)
    )


def _block(block: int | None) -> str:
    return "" if block is None else str(block)
