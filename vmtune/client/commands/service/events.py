"""``vmtune events``: what changed."""

from __future__ import annotations

import json

import click

from vmtune.client.connection.errors import ClientError
from vmtune.client.connection.http import Document
from vmtune.client.connection.sse import ServerEvent, stored
from vmtune.client.connection.sse import watch as watch_events
from vmtune.client.session import CLEAN, Session, common, pass_session
from vmtune.client.views.render import moment


@click.command()
@click.option("--watch", is_flag=True, help="Keep printing new events.")
@click.option(
    "--after",
    type=click.IntRange(min=0),
    help="Start after this event; default: from the first event, with --watch from now on.",
)
@common
@pass_session
def events(session: Session, watch: bool, after: int | None) -> int:
    """Show events, oldest first.

    With --watch and --json each line is one JSON document. Ctrl-C stops watching.
    """
    if not watch:
        rows = [event.data for event in stored(session.client, str(after or 0))]
        session.show({"items": rows, "next": None}, lambda: map(_line, rows))
        return CLEAN
    try:
        newest = "" if after is None else str(after)
        for item in watch_events(session.client, newest, on_loss=_report_loss):
            if isinstance(item, ServerEvent) and not session.quiet:
                click.echo(json.dumps(item.data) if session.json else _line(item.data))
    except KeyboardInterrupt:
        return CLEAN
    return CLEAN


def _report_loss(error: ClientError) -> None:
    click.echo(f"{error.message}; reconnecting", err=True)


def _line(event: Document) -> str:
    words = " ".join(f"{name}={_word(value)}" for name, value in event["data"].items())
    when = moment(event["at"]) or " " * len("2026-01-01 00:00:00")
    number = "" if event["id"] is None else f"#{event['id']}"
    return f"{when}  {number:<7} {event['topic']} {event['subject']}  {words}".rstrip()


def _word(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
