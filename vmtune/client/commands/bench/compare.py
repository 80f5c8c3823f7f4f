"""``vmtune compare``: compare runs and give a verdict."""

# ruff: noqa: PLC0415 - imported where needed: a command is to start in a blink

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vmtune.client.commands.bench.files import write
from vmtune.client.complete import references
from vmtune.client.connection.http import Document, Query
from vmtune.client.resolve import CAMPAIGN, is_beginning, named
from vmtune.client.session import Session, common, pass_session
from vmtune.client.views.output import COLORS, Column, table
from vmtune.errors import InvalidInput

if TYPE_CHECKING:
    from vmtune.bench.report.report import Report
    from vmtune.bench.report.tables import TextTable

COLORS |= {
    "better": "green",
    "equivalent": "green",
    "worse": "red",
    "inconclusive": "yellow",
    "insufficient data": "yellow",
}


@click.command()
@click.argument("a", metavar="A|CAMPAIGN")
@click.argument("b", metavar="[B]", required=False)
@click.option("--campaign", metavar="NAME", help="Campaign (name or id) that has the arms A and B.")
@click.option(
    "--metric", "metrics", multiple=True, metavar="NAME",
    help="Only this metric; may be repeated. Without a campaign the first is shown first.",
)  # fmt: skip
@click.option(
    "--margin", type=float, metavar="PERCENT",
    help="Ignore smaller differences; default: the campaign's margin, else 5.",
)  # fmt: skip
@click.option(
    "--expected", multiple=True, metavar="FIELD",
    help="The environments differ in this field on purpose, as in qemu.version; `all` for any.",
)  # fmt: skip
@click.option(
    "--reference", metavar="ID[/TABLE]", shell_complete=references,
    help="Show a published table next to the results, cell by cell.",
)  # fmt: skip
@click.option("--markdown", is_flag=True, help="Print the report as Markdown.")
@click.option(
    "--html", type=click.Path(path_type=Path), metavar="FILE",
    help="Write the report with plots as a self-contained HTML page.",
)  # fmt: skip
@click.option(
    "--csv", "csv_file", type=click.Path(path_type=Path), metavar="FILE",
    help="Write the values of the runs, from which every figure can be recomputed.",
)  # fmt: skip
@common
@pass_session
def compare(
    session: Session,
    a: str,
    b: str | None,
    campaign: str | None,
    metrics: tuple[str, ...],
    margin: float | None,
    expected: tuple[str, ...],
    reference: str | None,
    markdown: bool,
    html: Path | None,
    csv_file: Path | None,
) -> None:
    """Compare runs and give a verdict.

    Compares B to A, metric by metric. With one argument: every pair of arms of a CAMPAIGN.
    With two: arms of --campaign by name, or any runs by selectors:

    \b
      vmtune compare noise
      vmtune compare stock tuned --campaign stock-against-tuned
      vmtune compare scenario=plain/1gbs,profile=stock scenario=plain/1gbs,profile=tuned

    Selectors are scenario, family, profile, campaign, arm, fingerprint and host. Differences of
    the environments are shown first; unexpected differences prevent a verdict.
    """
    if b is None and campaign is not None:
        raise InvalidInput(
            "a single argument is a campaign; do not give --campaign too",
            field="B",
            remedy="give A and B with --campaign, or the campaign alone",
        )
    given = campaign if b is not None else a
    query: Query = {
        "a": a if b is not None else None,
        "b": b,
        "campaign": given and _whole(session, given),
        "metric": list(metrics),
        "margin_percent": None if margin is None else str(margin),
        "expected": list(expected),
        "reference": reference,
    }
    wrote = False
    for file, format in ((html, "html"), (csv_file, "csv")):
        if file is not None:
            content = session.client.download("/comparisons/report", {**query, "format": format})
            write(file, content)
            wrote = True
            if session.shows_progress:
                click.echo(f"wrote {len(content):,} bytes to {file}", err=True)
    if markdown:
        text = session.client.download("/comparisons/report", {**query, "format": "markdown"})
        click.echo(text.decode(), nl=False)
        return
    if wrote and not session.for_programs:
        return
    document = session.client.get("/comparisons", query)
    session.show(document, lambda: lines(document))


def _whole(session: Session, campaign: str) -> str:
    """The campaign's id where *campaign* may be the beginning of one; else the name that it is."""
    if not is_beginning(campaign):
        return campaign
    return str(named(session.client, campaign, CAMPAIGN)["id"])


def lines(document: Document) -> Iterator[str]:
    """A comparison as people read it."""
    from vmtune.bench.report.report import from_document

    yield from report_lines(from_document(json.loads(json.dumps(document))))


def report_lines(report: Report) -> Iterator[str]:
    """A report as people read it."""
    from vmtune.bench.report.tables import terminal_tables

    yield _title(report)
    shown = {note for each in terminal_tables(report) for note in each.notes}
    if report.withheld and not any(report.withheld in note for note in shown):
        yield f"No verdicts: {report.withheld}."
    for each in terminal_tables(report):
        yield ""
        yield from table_lines(each)
    if report.notes:
        yield ""
    for note in report.notes:
        yield f"{note[0].upper()}{note[1:]}."


def _title(report: Report) -> str:
    if not report.campaign:
        return report.title
    return f"{report.title} (campaign {report.campaign}, {report.blocks} blocks)"


def table_lines(each: TextTable) -> Iterator[str]:
    """A report's table as people read it."""
    yield each.title
    yield from each.lead
    columns = [
        Column(heading.title, heading.right, heading.wraps, heading.spare)
        for heading in each.headings
    ]
    yield from table(columns, each.rows, "nothing to compare")
    yield from each.notes
