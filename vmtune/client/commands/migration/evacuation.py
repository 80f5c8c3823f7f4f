"""``vmtune evacuation``: look at evacuations, pause, resume and cancel them."""

from __future__ import annotations

import click

from vmtune.client.commands.migration.evacuate import watch_evacuation
from vmtune.client.complete import evacuations, hosts
from vmtune.client.connection.http import Document
from vmtune.client.newest import newest_of, newest_option
from vmtune.client.resolve import EVACUATION, find
from vmtune.client.session import Session, common, listing, pass_session, watchable
from vmtune.client.views import render
from vmtune.client.views.evacuations import lines, path_of, vms_of
from vmtune.client.views.output import Column


@click.group()
@common
def evacuation() -> None:
    """Evacuations, running and past."""


@evacuation.command("list")
@click.option("--host", shell_complete=hosts, help="Only evacuations of one host.")
@click.option("--state", "states", multiple=True, help="Only in this state, such as running.")
@newest_option
@listing
@pass_session
def list_evacuations(
    session: Session, host: str | None, states: tuple[str, ...], newest: int
) -> None:
    """List evacuations, newest first."""
    path = path_of(host) if host else "/evacuations"
    rows = newest_of(session, path, {"state": list(states)}, newest)
    columns = (
        Column("EVACUATION", id=True, field="id"),
        Column("HOST"),
        Column("STATE"),
        Column("MOVED", right=True),
        Column("LEFT", right=True),
        Column("CREATED", field="created_at", spare=1),
    )

    def cells(row: Document) -> tuple[str, ...]:
        return (
            str(row["id"]),
            row["host"],
            row["state"],
            f"{row['moved']} of {row['total']}",
            str(row["left"]),
            render.moment(row["created_at"]),
        )

    session.show_list({"items": rows, "next": None}, columns, cells, "no evacuations")


@evacuation.command()
@click.argument("which", metavar="EVACUATION", shell_complete=evacuations)
@watchable
@pass_session
def show(session: Session, which: str) -> None:
    """Show an evacuation and the state of each VM.

    EVACUATION is its id or the start of it.
    """
    record = _find(session, which)
    vms = vms_of(session.client, record)
    session.show({**record, "vms": vms}, lambda: lines(record, vms))


@evacuation.command()
@click.argument("which", metavar="EVACUATION", shell_complete=evacuations)
@common
@pass_session
def watch(session: Session, which: str) -> int:
    """Watch an evacuation until it ends."""
    return watch_evacuation(session, _find(session, which))


@evacuation.command()
@click.argument("which", metavar="EVACUATION", shell_complete=evacuations)
@common
@pass_session
def pause(session: Session, which: str) -> None:
    """Pause an evacuation: start no more migrations.

    Running migrations continue to their end.
    """
    _ask(session, which, "pause")


@evacuation.command()
@click.argument("which", metavar="EVACUATION", shell_complete=evacuations)
@common
@pass_session
def resume(session: Session, which: str) -> None:
    """Resume a paused evacuation."""
    _ask(session, which, "resume")


@evacuation.command()
@click.argument("which", metavar="EVACUATION", shell_complete=evacuations)
@common
@pass_session
def cancel(session: Session, which: str) -> None:
    """Cancel an evacuation: abort running migrations and drop waiting ones.

    Their VMs stay on their host; VMs that have moved stay on the destination.
    """
    record = _find(session, which)
    ending = session.client.delete(path_of(record["host"], record["id"]))
    session.report(ending, f"requested cancellation of the evacuation of {record['host']}")


def _ask(session: Session, which: str, what: str) -> None:
    record = _find(session, which)
    changed = session.client.post(f"{path_of(record['host'], record['id'])}/{what}")
    session.report(changed, f"the evacuation of {changed['host']} is {changed['state']}")


def _find(session: Session, which: str) -> Document:
    """The evacuation whose id begins so."""
    return find(session.client, which, EVACUATION)
