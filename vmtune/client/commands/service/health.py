"""``vmtune health``."""

from __future__ import annotations

import click

from vmtune.client.session import CLEAN, ERROR, Session, common, pass_session
from vmtune.client.views.output import fields


@click.command()
@common
@pass_session
def health(session: Session) -> int:
    """Check the health of the service.

    Exits 1 if the service is unhealthy or does not answer.
    """
    document = session.client.get("/health")
    pairs = [(name.replace("_", " "), str(value)) for name, value in document.items()]
    session.show(document, lambda: fields(pairs))
    return CLEAN if document.get("status") == "ok" else ERROR
