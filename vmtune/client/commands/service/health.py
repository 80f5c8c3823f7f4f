"""``vmtune health``."""

from __future__ import annotations

from collections.abc import Iterator

import click

from vmtune.client.session import CLEAN, ERROR, Session, pass_session, watchable
from vmtune.client.views.output import fields
from vmtune.client.views.render import problems


@click.command()
@watchable
@pass_session
def health(session: Session) -> int:
    """Check the health of the service.

    Exits 1 if the service is unhealthy or does not answer.
    """
    document = session.client.get("/health")
    pairs = [
        (name.replace("_", " "), str(value))
        for name, value in document.items()
        if name != "problems"
    ]

    def lines() -> Iterator[str]:
        yield from fields(pairs)
        yield from problems(document.get("problems", []))

    session.show(document, lines)
    return CLEAN if document.get("status") == "ok" else ERROR
