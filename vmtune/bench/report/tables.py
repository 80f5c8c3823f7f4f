"""Tables as data, for a terminal and for Markdown: their form, and those over all cells at once.

Pure: from the report alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from vmtune.bench.report.report import Report, ReportCell, Spread
from vmtune.bench.report.words import (
    arm_texts,
    effect_text,
    figure_text,
    interval_text,
    quartiles_text,
    runs_text,
    verdict_text,
)


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


_SPREAD = (
    Heading("METRIC"),
    Heading("MEDIAN", right=True),
    Heading("QUARTILES", right=True),
    Heading("LEAST", right=True),
    Heading("MOST", right=True),
    Heading("RUNS", right=True),
)
_OF_CELLS = (
    Heading("CELL"),
    Heading("A", right=True),
    Heading("B", right=True),
    Heading("B AGAINST A", right=True),
    Heading("95 % INTERVAL", right=True),
    Heading("VERDICT"),
)


def spread_tables(report: Report, cell: ReportCell) -> Iterator[TextTable]:
    """The values of each arm that is held against none, where there are any."""
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
    title = report.metric(report.primary_metric).title
    compared: dict[tuple[str, str], list[tuple[str, ...]]] = {}
    alone: dict[str, list[tuple[str, ...]]] = {}
    for cell in report.cells:
        for each in cell.comparisons:
            if each.criterion.primary:
                metric = report.metric(each.metric)
                compared.setdefault((each.a.arm, each.b.arm), []).append(
                    (
                        cell.title or cell.name,
                        *arm_texts(each, metric),
                        effect_text(each.effect, metric),
                        interval_text(each.effect, metric),
                        verdict_text(each),
                    )
                )
        for spread in cell.spreads:
            if spread.metric == report.primary_metric:
                row = (cell.title or cell.name, *_spread_texts(report, spread))
                alone.setdefault(spread.summary.arm, []).append(row)
    for (a, b), rows in compared.items():
        yield TextTable(f"{title} in all cells: B = {b} against A = {a}", _OF_CELLS, tuple(rows))
    for arm, rows in alone.items():
        yield TextTable(
            f"{title} in all cells: {arm}", (Heading("CELL"), *_SPREAD[1:]), tuple(rows)
        )
