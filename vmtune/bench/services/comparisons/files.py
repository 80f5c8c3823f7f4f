"""Comparisons as files."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from enum import StrEnum

from vmtune.bench.report.report import Report
from vmtune.bench.services.runs.files import RunFile


class ReportFormat(StrEnum):
    """What a comparison can be written as."""

    HTML = "html"
    MARKDOWN = "markdown"
    CSV = "csv"
    """The runs' values alone: each figure of the others can be computed from them."""


def to_csv(report: Report) -> str:
    """Each run with its values, and in the last column the names of those that are only limits."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [metric.name for metric in report.metrics]
    writer.writerow(
        ["run", "cell", "arm", "block", "number", "state", "environment", *names, "censored"]
    )
    for run in report.runs:
        values = [repr(run.values[name]) if name in run.values else "" for name in names]
        writer.writerow(
            [
                run.run,
                run.cell,
                run.arm,
                "" if run.block is None else run.block,
                run.number or "",
                run.state.value,
                run.environment,
                *values,
                " ".join(run.censored),
            ]
        )
    return out.getvalue()


def _html(report: Report) -> str:
    from vmtune.bench.report.render import to_html  # noqa: PLC0415 - only on request

    return to_html(report)


def _markdown(report: Report) -> str:
    from vmtune.bench.report.render import to_markdown  # noqa: PLC0415 - likewise

    return to_markdown(report)


_FORMATS: Mapping[ReportFormat, tuple[str, str, Callable[[Report], str]]] = {
    ReportFormat.HTML: ("html", "text/html", _html),
    ReportFormat.MARKDOWN: ("md", "text/markdown", _markdown),
    ReportFormat.CSV: ("csv", "text/csv", to_csv),
}
"""Of each format: the file's ending, its media type, and what makes it."""
assert set(_FORMATS) == set(ReportFormat)


def report_file(report: Report, format: ReportFormat) -> RunFile:
    """*report* as a file."""
    ending, media_type, make = _FORMATS[format]
    name = report.campaign or "comparison"
    return RunFile(f"{name}.{ending}", make(report).encode(), media_type)
