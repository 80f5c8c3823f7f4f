"""``vmtune webhook``: signed notifications by HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from vmtune.client.connection.http import Client, Document, segment
from vmtune.client.session import Session, common, listing, pass_session
from vmtune.client.views.output import Column, fields
from vmtune.client.views.render import moment
from vmtune.errors import InvalidInput

_EVENTS = (
    "migration.ended",
    "evacuation.ended",
    "campaign.ended",
    "study.ended",
    "vm.drifted",
    "host.findings",
)
_events = click.option(
    "--event",
    "events",
    multiple=True,
    type=click.Choice(_EVENTS),
    help="Send only these; repeatable. Default: all.",
)


@click.group()
@common
def webhook() -> None:
    """Signed notifications by HTTP, of ends, drift and findings."""


@webhook.command()
@click.argument("name")
@click.argument("receiver", metavar="URL")
@_events
@common
@pass_session
def create(session: Session, name: str, receiver: str, events: tuple[str, ...]) -> None:
    """Create a webhook called NAME that sends to URL, and show its secret, this once."""
    body = {"name": name, "url": receiver, "events": list(events)}
    _show_secret(session, session.client.post("/webhooks", body))


@webhook.command("list")
@listing
@pass_session
def list_(session: Session) -> None:
    """List webhooks."""
    columns = (
        Column("NAME"),
        Column("URL", wraps=True),
        Column("ACTIVE"),
        Column("EVENTS", wraps=True, spare=1),
        Column("CREATED", field="created_at", spare=2),
        Column("ID", id=True, spare=3),
    )

    def cells(row: Document) -> tuple[str, ...]:
        active = "yes" if row["active"] else "no"
        events = ", ".join(row["events"])
        return row["name"], row["url"], active, events, moment(row["created_at"]), row["id"]

    found = {**session.client.get("/webhooks"), "next": None}
    session.show_list(found, columns, cells, "no webhooks; see `vmtune webhook create --help`")


@webhook.command()
@click.argument("which", metavar="WEBHOOK")
@click.option("--to", "receiver", metavar="URL", help="Send there from now on.")
@_events
@click.option("--active/--rest", default=None, help="Send, or queue and send nothing.")
@common
@pass_session
def change(
    session: Session, which: str, receiver: str | None, events: tuple[str, ...], active: bool | None
) -> None:
    """Change WEBHOOK (name or id)."""
    given: dict[str, Any] = {"url": receiver, "events": list(events) or None, "active": active}
    body = {name: value for name, value in given.items() if value is not None}
    document = session.client.patch(_path(session.client, which), body)
    session.report(document, f"webhook {document['name']} changed")


@webhook.command()
@click.argument("which", metavar="WEBHOOK")
@common
@pass_session
def rotate(session: Session, which: str) -> None:
    """Give WEBHOOK a new secret and show it, this once. The old one signs too for 24 hours."""
    _show_secret(session, session.client.post(f"{_path(session.client, which)}/secret"))


@webhook.command()
@click.argument("which", metavar="WEBHOOK")
@common
@pass_session
def test(session: Session, which: str) -> None:
    """Send a test notification to WEBHOOK."""
    made = session.client.post(f"{_path(session.client, which)}/test")
    session.report(made, f"delivery {made['number']} is queued")


@webhook.command()
@click.argument("which", metavar="WEBHOOK")
@click.option(
    "--state",
    type=click.Choice(["pending", "delivered", "failed"]),
    help="Only those in this state.",
)
@listing
@pass_session
def deliveries(session: Session, which: str, state: str | None) -> None:
    """List the deliveries of WEBHOOK, newest first."""
    path = f"{_path(session.client, which)}/deliveries"
    rows = list(session.client.items(path, {"state": state}))
    columns = (
        Column("NUMBER", right=True),
        Column("EVENT", field="kind"),
        Column("SUBJECT"),
        Column("STATE"),
        Column("ATTEMPTS", right=True),
        Column("CREATED", field="created_at"),
        Column("PROBLEM", wraps=True, spare=1),
    )

    def cells(row: Document) -> tuple[str, ...]:
        return (
            str(row["number"]),
            row["kind"],
            row["subject"],
            row["state"],
            str(row["attempts"]),
            moment(row["created_at"]),
            row["problem"],
        )

    session.show_list({"items": rows, "next": None}, columns, cells, "no deliveries")


@webhook.command()
@click.argument("which", metavar="WEBHOOK")
@click.argument("number", type=int)
@common
@pass_session
def replay(session: Session, which: str, number: int) -> None:
    """Send delivery NUMBER of WEBHOOK again, under the same id."""
    path = f"{_path(session.client, which)}/deliveries/{number}/replay"
    session.report(session.client.post(path), f"delivery {number} is queued")


@webhook.command()
@click.argument("which", metavar="WEBHOOK")
@common
@pass_session
def remove(session: Session, which: str) -> None:
    """Remove WEBHOOK with its deliveries."""
    document = session.client.delete(_path(session.client, which))
    session.report(document, f"webhook {which} removed")


def _path(client: Client, which: str) -> str:
    """The path of a webhook by its name or id.

    :raise InvalidInput: there is none.
    """
    for row in client.get("/webhooks")["items"]:
        if which in (row["name"], row["id"]):
            return f"/webhooks/{segment(row['id'])}"
    raise InvalidInput(
        f"there is no webhook {which[:70]!r}",
        field="WEBHOOK",
        remedy="`vmtune webhook list` lists them",
    )


def _show_secret(session: Session, made: Document) -> None:
    def lines() -> Iterator[str]:
        yield from fields(
            [("webhook", made["name"]), ("id", made["id"]), ("secret", made["secret"])]
        )
        if session.shows_progress:
            click.echo("The secret is not shown again.", err=True)

    if session.output == "name":
        session.echo(made["secret"])
    else:
        session.show(made, lines)
