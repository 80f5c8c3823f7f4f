"""``vmtune tunables``: what can be tuned."""

from __future__ import annotations

from collections.abc import Iterator

import click

from vmtune.client.complete import tunable_names
from vmtune.client.connection.http import Document, segment
from vmtune.client.session import Session, listing, pass_session
from vmtune.client.views.output import Column, fields
from vmtune.client.views.render import shown

_ROUTES = ("migrate", "monitor", "live", "running", "boot", "host", "control")


@click.command()
@click.argument("name", required=False, shell_complete=tunable_names)
@click.option("--route", type=click.Choice(_ROUTES), help="Only tunables of one route.")
@listing
@pass_session
def tunables(session: Session, name: str | None, route: str | None) -> None:
    """List the tunables, or show one."""
    if name is not None:
        row = session.client.get(f"/tunables/{segment(name)}")
        session.show(row, lambda: _one(row))
        return
    rows = list(session.client.items("/tunables", {"route": route}))
    columns = (
        Column("TUNABLE", field="name"),
        Column("ROUTE"),
        Column("SIDE", spare=1),
        Column("DEFAULT", right=True, field="default.value"),
        Column("ALLOWED", wraps=True),
    )
    session.show_list({"items": rows, "next": None}, columns, _cells, "no tunables")


def _cells(row: Document) -> tuple[str, ...]:
    return row["name"], row["route"], row["side"], shown(row["default"]), row["allowed"]


def _one(row: Document) -> Iterator[str]:
    yield row["title"]
    yield row["why"]
    yield ""
    qmp, libvirt = row["qmp"], row["libvirt"]
    versions = f"from {row['since']}" + (f" to {row['until']}" if row["until"] else "")
    yield from fields(
        [
            ("name", row["name"]),
            ("route", row["route"]),
            ("side", row["side"]),
            ("allowed", row["allowed"]),
            ("examples", row["examples"]),
            ("default", "" if row["default"] is None else row["default"]["text"]),
            ("QEMU", versions),
            ("QMP name", f"{qmp['name']} ({qmp['kind']})" if qmp else ""),
            ("libvirt name", f"{libvirt['name']} ({libvirt['kind']})" if libvirt else ""),
            ("libvirt", f"from {libvirt['since']}" if libvirt else ""),
            ("read by", row["probe"]),
            ("virsh", libvirt["virsh"] if libvirt else ""),
            ("pack", row["pack"]),
            ("overwritten by", row["overwriter"]),
            ("while migrating", "can be changed" if row["running"] else "read-only"),
        ]
    )
