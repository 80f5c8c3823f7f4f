"""``vmtune assign``: which profile is for which VM."""

from __future__ import annotations

import click

from vmtune.client.complete import hosts, profiles, vms
from vmtune.client.connection.http import Document
from vmtune.client.intent_options import intent_options
from vmtune.client.session import Session, common, listing, pass_session
from vmtune.client.views.output import Column
from vmtune.client.views.render import moment
from vmtune.client.vms import resolve
from vmtune.errors import InvalidInput


@click.group()
@common
def assign() -> None:
    """Assignments: which VM gets which profile.

    An assignment of the VM takes precedence over a label selector, then host, then default.
    """


@assign.command()
@click.argument("profile", shell_complete=profiles)
@click.option("--vm", shell_complete=vms, help="One VM, by name or UUID.")
@click.option("--selector", help="VMs with all of these labels, such as tier=db,zone=a.")
@click.option("--host", shell_complete=hosts, help="The VMs of a host.")
@click.option("--default", "default", is_flag=True, help="All VMs without another assignment.")
@intent_options
@common
@pass_session
def add(
    session: Session,
    profile: str,
    vm: str | None,
    selector: str | None,
    host: str | None,
    default: bool,
    intent: Document | None,
) -> None:
    """Assign PROFILE to a VM, a label selector, a host, or as the default.

    With --silence, --within or --slowdown their migrations keep that intent instead of the
    profile's.
    """
    given = {"vm": vm, "selector": selector, "host": host, "default": "" if default else None}
    chosen = {target: key for target, key in given.items() if key is not None}
    if len(chosen) != 1:
        raise InvalidInput(
            "give exactly one target" if chosen else
            "the target is missing",
            field="PROFILE",
            code="usage",
            remedy="give one of --vm, --selector, --host and --default",
        )  # fmt: skip
    target, key = chosen.popitem()
    if target == "vm":
        key = resolve(session.client, key)
    stated = {} if intent is None else {"intent": intent}
    body = {"target": target, "key": key, "profile": profile, **stated}
    added = session.client.post("/assignments", body)
    session.report(added, f"assignment {added['id']}: {profile} for {target} {key}".rstrip())


@assign.command("list")
@listing
@pass_session
def list_(session: Session) -> None:
    """List the assignments."""
    rows = list(session.client.items("/assignments"))
    columns = (
        Column("ID", right=True),
        Column("FOR", field="target"),
        Column("KEY", id=True),
        Column("PROFILE"),
        Column("INTENT", spare=2, field="intent.text"),
        Column("SINCE", field="created_at", spare=1),
    )

    def cells(row: Document) -> tuple[str, ...]:
        since = moment(row["created_at"])
        stated = (row.get("intent") or {}).get("text", "")
        return str(row["id"]), row["target"], row["key"], row["profile"], stated, since

    empty = "no assignments; add one with `vmtune assign add PROFILE --default`"
    session.show_list({"items": rows, "next": None}, columns, cells, empty)


@assign.command()
@click.argument("id", metavar="ID", type=click.IntRange(min=1))
@common
@pass_session
def remove(session: Session, id: int) -> None:
    """Remove an assignment."""
    session.report(session.client.delete(f"/assignments/{id}"), f"assignment {id} removed")
