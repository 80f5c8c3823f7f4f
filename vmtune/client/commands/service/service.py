"""``vmtune service``: the services that share the work."""

from __future__ import annotations

import click

from vmtune.client.session import Session, common, pass_session
from vmtune.client.views.output import Column, table
from vmtune.client.views.render import moment


@click.group()
@common
def service() -> None:
    """Services that share a PostgreSQL database."""


@service.command("list")
@common
@pass_session
def list_(session: Session) -> None:
    """List the services and the hosts that each manages."""
    found = session.client.get("/services")
    columns = tuple(map(Column, ("NAME", "MACHINE", "STATE", "HOSTS", "LAST SEEN")))
    cells = [
        (
            row["name"] + (" (this one)" if row["here"] else ""),
            row["machine"],
            row["state"],
            ", ".join(row["hosts"]),
            moment(row["seen_at"]),
        )
        for row in found["items"]
    ]
    empty = "a single service manages all hosts; several services need PostgreSQL"
    session.show(found, lambda: table(columns, cells, empty))
