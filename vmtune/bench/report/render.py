"""A report as Markdown, and as one HTML page that needs nothing else: no scripts, no fonts, no
network. Pure: from the report alone."""

from __future__ import annotations

from vmtune.bench.report.charts import block_strip, column_axis, interval, strips
from vmtune.bench.report.report import Report
from vmtune.bench.report.tables import (
    environment_tables,
    failed_table,
    figures_table,
    overview_tables,
    pairs,
    raw_table,
    spread_tables,
)
from vmtune.bench.report.words import direction_text, effect_words, ratio_text
from vmtune.rendering import render


def to_html(report: Report) -> str:
    """The whole page."""
    return _rendered("report.html", report)


def to_markdown(report: Report) -> str:
    """The whole report, raw values included."""
    return _rendered("report.md", report)


def _rendered(template: str, report: Report) -> str:
    return render(
        template,
        report=report,
        environments=tuple(environment_tables(report)),
        cells=[
            (cell, pairs(report, cell), tuple(spread_tables(report, cell))) for cell in report.cells
        ],
        overviews=tuple(overview_tables(report)),
        failed=failed_table(report),
        raw=raw_table(report),
        lost_rows={number for number, run in enumerate(report.runs) if not run.counts},
        figures_table=figures_table,
        direction_text=direction_text,
        effect_words=effect_words,
        ratio_text=ratio_text,
        column_axis=column_axis,
        interval=interval,
        block_strip=block_strip,
        strips=strips,
    )
