"""``vmtune tune list``, ``show``, ``pause``, ``resume`` and ``cancel``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from vmtune.client.commands.tune.views import analysed, lines, tried
from vmtune.client.complete import studies
from vmtune.client.connection.http import Document, segment
from vmtune.client.newest import named_options, newest_of
from vmtune.client.resolve import STUDY, named
from vmtune.client.session import Session, common, listing, pass_session, watchable
from vmtune.client.views import render
from vmtune.client.views.output import Column


@click.command("list")
@named_options("studies", "searching")
@listing
@pass_session
def list_studies(session: Session, /, newest: int, **chosen: Any) -> None:  # any: click's
    """List studies, newest first."""
    rows = newest_of(session, "/studies", chosen, newest)
    columns = (
        Column("STUDY", id=True, field="id"),
        Column("NAME"),
        Column("STATE"),
        Column("RUNS", right=True, field="used"),
        Column("FOUND", wraps=True, spare=1, field="result"),
        Column("CREATED", field="created_at", spare=2),
    )

    def cells(row: Document) -> tuple[str, ...]:
        result = row["result"]
        gain = result["gain_percent"] if result else None
        found = "" if result is None else result["finding"]
        return (
            row["id"],
            row["name"],
            row["state"],
            str(row["used"]["runs"]),
            found if gain is None else f"{found} by {gain:g} %",
            render.moment(row["created_at"]),
        )

    session.show_list({"items": rows, "next": None}, columns, cells, "no studies")


@click.command()
@click.argument("study", metavar="STUDY", shell_complete=studies)
@watchable
@pass_session
def show(session: Session, study: str) -> None:
    """Show a study, its trials and its result.

    What trials show is the search's own figures; only the confirmation gives a verdict.
    """
    record = named(session.client, study, STUDY)
    path = f"/studies/{segment(record['id'])}"
    trials = list(session.client.items(f"{path}/trials"))
    analysis = session.client.get(f"{path}/analysis")
    document = {**record, "items": trials, "analysis": analysis}
    session.show(document, lambda: _whole(record, trials, analysis))


def _whole(record: Document, trials: list[Document], analysis: Document) -> Iterator[str]:
    yield from lines(record)
    if not trials:
        return
    yield ""
    yield from analysed(analysis)
    yield ""
    yield from tried(trials, analysis["goals"])


@click.command()
@click.argument("study", metavar="STUDY", shell_complete=studies)
@common
@pass_session
def pause(session: Session, study: str) -> None:
    """Pause a study: start no more runs.

    The current run continues to its end. Other studies may run meanwhile.
    """
    _post(session, study, "pause")


@click.command()
@click.argument("study", metavar="STUDY", shell_complete=studies)
@common
@pass_session
def resume(session: Session, study: str) -> None:
    """Resume a paused study."""
    _post(session, study, "resume")


@click.command()
@click.argument("study", metavar="STUDY", shell_complete=studies)
@common
@pass_session
def cancel(session: Session, study: str) -> None:
    """Cancel a study; what was measured is kept.

    The current run is cancelled.
    """
    id = named(session.client, study, STUDY)["id"]
    record = session.client.delete(f"/studies/{segment(id)}")
    session.report(record, f"requested cancellation of study {record['name']}")


def _post(session: Session, name: str, what: str) -> None:
    id = named(session.client, name, STUDY)["id"]
    record = session.client.post(f"/studies/{segment(id)}/{what}")
    session.report(record, f"study {record['name']} is {record['state']}")
