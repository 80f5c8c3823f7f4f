"""``vmtune bench changes``, ``triage`` and ``schedule``: what became of metrics over time, what
people make of it, and the campaigns that feed it."""

from __future__ import annotations

import click

from vmtune.client.commands.bench.campaign import read_plan
from vmtune.client.complete import schedules
from vmtune.client.connection.http import Document, segment
from vmtune.client.lazy import LazyGroup
from vmtune.client.session import Session, common, listing, pass_session
from vmtune.client.views import render
from vmtune.client.views.output import Column, fields
from vmtune.errors import InvalidInput, NotFound

TRIAGES = ("open", "known", "accepted", "to-fix")
_HERE = "vmtune.client.commands.bench.trends:"
_SCHEDULE_COMMANDS = {
    "add": (_HERE + "add", "Start a campaign again and again."),
    "list": (_HERE + "list_schedules", "List the scheduled campaigns."),
    "remove": (_HERE + "remove", "Remove a scheduled campaign."),
}


@click.command()
@click.option("--all", "every", is_flag=True, help="Also those that were triaged.")
@click.option("--look", is_flag=True, help="Look for new ones first, not only every 15 minutes.")
@listing
@pass_session
def changes(session: Session, every: bool, look: bool) -> None:
    """List changes of metrics over time, the latest first.

    Without --all those that nobody has triaged.
    """
    if look:
        session.client.post("/changes/look", {})
    triages: list[str] = [] if every else ["open"]
    document = session.client.get("/changes", {"triage": triages, "limit": 500})
    columns = (
        Column("CHANGE", id=True, field="id"),
        Column("SINCE", spare=3),
        Column("SCENARIO"),
        Column("METRIC"),
        Column("KIND", spare=4),
        Column("WHAT", wraps=True, field="text", spare=1),
        Column("TRIAGE"),
        Column("NOTE", wraps=True, spare=2),
    )

    def cells(row: Document) -> tuple[str, ...]:
        return (
            row["id"],
            render.moment(row["since"]),
            row["scenario"],
            row["metric"],
            row["kind"],
            row["text"],
            row["triage"].replace("_", " "),
            row["note"],
        )

    session.show_list(document, columns, cells, "no changes")


@click.command()
@click.argument("change")
@click.argument("decision", type=click.Choice(TRIAGES))
@click.option("--note", default="", help="Why, or where it is fixed.")
@common
@pass_session
def triage(session: Session, change: str, decision: str, note: str) -> None:
    """Decide about a CHANGE: known, accepted or to-fix; open takes it back.

    CHANGE is an id of `bench changes`, or its beginning.
    """
    items = session.client.get("/changes", {"limit": 500})["items"]
    found = [row for row in items if str(row["id"]).startswith(change.lower())]
    if len(found) != 1:
        what = "no change" if not found else f"{len(found)} changes"
        kind = NotFound if not found else InvalidInput
        raise kind(
            f"{what} with the id {change[:40]}",
            field="change",
            remedy="`vmtune bench changes --all` lists them",
        )
    record = session.client.put(
        f"/changes/{segment(found[0]['id'])}/triage",
        {"triage": decision.replace("-", "_"), "note": note},
    )
    session.show(
        record,
        lambda: fields(
            [
                ("change", record["id"]),
                ("what", f"{record['metric']} of {record['scenario']}: {record['text']}"),
                ("triage", record["triage"].replace("_", " ")),
                ("note", record["note"]),
                ("by", record["triaged_by"]),
            ]
        ),
    )


@click.group(cls=LazyGroup, commands=_SCHEDULE_COMMANDS)
@common
def schedule() -> None:
    """Start campaigns again and again, so that histories grow.

    One runs at a time, and none while a migration or evacuation is under way.
    """


@click.command()
@click.argument("file", metavar="FILE.toml")
@click.option("--every", help='Interval, such as "1 day", instead of the file\'s `every`.')
@common
@pass_session
def add(session: Session, file: str, every: str | None) -> None:
    """Start a campaign again and again.

    The file is a campaign's, and may have the interval: every = "1 day".
    """
    plan = read_plan(file)
    interval = every or plan.pop("every", None)
    plan.pop("every", None)
    if interval is None:
        raise InvalidInput(
            "has no interval",
            field=file,
            code="no_interval",
            remedy='write every = "1 day" in it, or use --every "1 day"',
        )
    record = session.client.post("/schedules", {"every": str(interval), "campaign": plan})
    session.show(record, lambda: [f"{record['name']}: every {record['every']}"])


@click.command("list")
@listing
@pass_session
def list_schedules(session: Session) -> None:
    """List the scheduled campaigns."""
    document = session.client.get("/schedules")
    columns = (
        Column("SCHEDULE", field="name"),
        Column("EVERY"),
        Column("NEXT", field="next_at"),
        Column("LAST", id=True),
        Column("HOST", spare=2),
        Column("WAITS", wraps=True, spare=1),
    )

    def cells(row: Document) -> tuple[str, ...]:
        return (
            row["name"],
            row["every"],
            render.moment(row["next_at"]),
            row["last"] or "",
            row["host"],
            row["waits"],
        )

    session.show_list(document, columns, cells, "no schedules")


@click.command()
@click.argument("name", metavar="SCHEDULE", shell_complete=schedules)
@common
@pass_session
def remove(session: Session, name: str) -> None:
    """Remove a scheduled campaign.

    One that is under way continues.
    """
    session.client.delete(f"/schedules/{segment(name)}")
    session.show({"removed": name}, lambda: [f"{name}: removed"])
