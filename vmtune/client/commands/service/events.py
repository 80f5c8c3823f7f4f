"""``vmtune events``: what changed."""

from __future__ import annotations

import json

import click

from vmtune.client.connection.errors import ClientError
from vmtune.client.connection.http import Document
from vmtune.client.connection.sse import ServerEvent, follow, stored
from vmtune.client.session import CLEAN, Session, common, pass_session
from vmtune.client.views.render import moment


@click.command()
@click.option("--follow", "following", is_flag=True, help="Go on with what happens from now on.")
@click.option(
    "--after",
    type=click.IntRange(min=0),
    help="Begin after this event; the default is the first, and with --follow the newest.",
)
@common
@pass_session
def events(session: Session, following: bool, after: int | None) -> int:
    """Show what changed, oldest first.

    With --follow and --json each line is one JSON document. Ctrl-C ends the following.
    """
    if not following:
        rows = [event.data for event in stored(session.client, str(after or 0))]
        session.show({"items": rows, "next": None}, lambda: map(_line, rows))
        return CLEAN
    try:
        newest = "" if after is None else str(after)
        for item in follow(session.client, newest, on_loss=_tell_loss):
            if isinstance(item, ServerEvent) and not session.quiet:
                click.echo(json.dumps(item.data) if session.json else _line(item.data))
    except KeyboardInterrupt:
        return CLEAN
    return CLEAN


def _tell_loss(error: ClientError) -> None:
    click.echo(f"{error.message}; trying again", err=True)


def _line(event: Document) -> str:
    words = " ".join(f"{name}={_word(value)}" for name, value in event["data"].items())
    when = moment(event["at"]) or " " * len("2026-01-01 00:00:00")
    number = "" if event["id"] is None else f"#{event['id']}"
    return f"{when}  {number:<7} {event['topic']} {event['subject']}  {words}".rstrip()


def _word(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
