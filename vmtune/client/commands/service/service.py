"""``vmtune service``: the services that share the work."""

from __future__ import annotations

import click

from vmtune.client.connection.http import Document
from vmtune.client.session import Session, common, listing, pass_session
from vmtune.client.views.output import Column
from vmtune.client.views.render import moment


@click.group()
@common
def service() -> None:
    """Services that share a PostgreSQL database."""


@service.command("list")
@listing
@pass_session
def list_(session: Session) -> None:
    """List the services and the hosts that each manages."""
    found = session.client.get("/services")
    columns = (
        Column("NAME"),
        Column("MACHINE", spare=2),
        Column("STATE"),
        Column("HOSTS", wraps=True),
        Column("LAST SEEN", field="seen_at", spare=1),
    )

    def cells(row: Document) -> tuple[str, ...]:
        return (
            row["name"] + (" (this one)" if row["here"] else ""),
            row["machine"],
            row["state"],
            ", ".join(row["hosts"]),
            moment(row["seen_at"]),
        )

    empty = "a single service manages all hosts; several services need PostgreSQL"
    session.show_list(found, columns, cells, empty)
