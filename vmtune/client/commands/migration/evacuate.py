"""``vmtune evacuate``: move all VMs of a host to others, and follow it to its end."""

from __future__ import annotations

from typing import Any

import click

from vmtune.client.complete import hosts, profiles
from vmtune.client.connection.errors import ClientError
from vmtune.client.connection.http import Document, segment
from vmtune.client.follow import Followed, to_the_end
from vmtune.client.session import (
    CLEAN,
    DIFFERENCES,
    ERROR,
    INTERRUPTED,
    Session,
    common,
    pass_session,
)
from vmtune.client.views.evacuations import EvacuationShown, lines, path_of, plan_lines, vms_of
from vmtune.client.views.progress import viewer
from vmtune.client.vms import as_uuid
from vmtune.errors import InvalidInput

_ORDERS = ("priority", "largest-first", "smallest-first")


@click.command()
@click.argument("host", shell_complete=hosts)
@click.option(
    "--to", "destinations", multiple=True, metavar="HOST", shell_complete=hosts,
    help="Only to this host. May be repeated; without it to any that is eligible.",
)  # fmt: skip
@click.option(
    "--order", type=click.Choice(_ORDERS), default=_ORDERS[0], show_default=True,
    help="Which VMs move first; priority is their label of that name.",
)  # fmt: skip
@click.option("--profile", shell_complete=profiles, help="Instead of those assigned.")
@click.option(
    "--override", "overrides", multiple=True, metavar="[VM:]CODE",
    help="Move in spite of this blocker: one VM, by name or UUID, or all. May be repeated.",
)  # fmt: skip
@click.option(
    "--max-outgoing", type=click.IntRange(1, 1000), help="At once; fewer than the service lets."
)
@click.option(
    "--priority", type=click.IntRange(-100, 100), default=0,
    help="Of its migrations in the queue; higher goes first.",
)  # fmt: skip
@click.option(
    "--stop-after-failures", type=click.IntRange(min=1), metavar="N",
    help="Begin no more once so many migrations have failed.",
)  # fmt: skip
@click.option("--plan", "only_plan", is_flag=True, help="Show what would move where, and stop.")
@click.option("--no-wait", is_flag=True, help="Start it and return; `evacuation show` tells.")
@common
@pass_session
def evacuate(
    session: Session,
    /,
    host: str,
    destinations: tuple[str, ...],
    order: str,
    profile: str | None,
    overrides: tuple[str, ...],
    max_outgoing: int | None,
    priority: int,
    stop_after_failures: int | None,
    only_plan: bool,
    no_wait: bool,
) -> int:
    """Move all VMs of HOST to other hosts, live.

    A preflight of every VM is shown first. VMs against which something stands are not moved;
    they are listed with the reason. The others move a few at a time, as the service's limits
    let them; a restart of the service does not end it.

    Ctrl-C ends the following only; the evacuation goes on. Exits 0 where all VMs have moved (with
    --plan: would move), 2 where some are left, 1 on an error.
    """
    body: dict[str, Any] = {
        "destinations": list(destinations),
        "order": order,
        "profile": profile,
        "max_outgoing": max_outgoing,
        "priority": priority,
        "stop_after_failures": stop_after_failures,
        **_overridden(session, host, overrides),
    }
    if only_plan or session.talks:
        plan = session.client.post(f"{path_of(host)}/plan", body)
        if only_plan:
            session.show(plan, lambda: plan_lines(plan))
            return DIFFERENCES if plan["left"] else CLEAN
        for line in plan_lines(plan):
            click.echo(line, err=True)
    record = session.client.post(path_of(host), body)
    if no_wait:
        told = f"`vmtune evacuation show {record['id']}` tells of it"
        session.say(record, f"evacuation {record['id']} of {host} started; {told}")
        return CLEAN
    return follow_to_the_end(session, record)


def follow_to_the_end(session: Session, record: Document) -> int:
    """Show how far all and each are until it has ended; the exit code."""
    id, host = str(record["id"]), str(record["host"])
    shown = EvacuationShown(vms_of(session.client, record))
    try:
        with viewer(session.talks, shown) as view:
            followed = Followed(path_of(host), "evacuation")
            record = to_the_end(session.client, id, view, kind=followed)
    except ClientError:
        click.echo(f"What became of it is unknown; ask: vmtune evacuation show {id}", err=True)
        raise
    except KeyboardInterrupt:
        click.echo(
            f"\nThe evacuation goes on. To end it: vmtune evacuation cancel {id}; to follow it "
            f"again: vmtune evacuation follow {id}",
            err=True,
        )
        return INTERRUPTED
    vms = vms_of(session.client, record)
    session.show({**record, "vms": vms}, lambda: lines(record, vms))
    if record["state"] == "completed":
        return CLEAN
    return DIFFERENCES if record["state"] == "incomplete" else ERROR


def _overridden(session: Session, host: str, overrides: tuple[str, ...]) -> dict[str, Any]:
    """The codes for all VMs, and those for single ones by UUID."""
    for_all: list[str] = []
    for_one: dict[str, list[str]] = {}
    for text in overrides:
        vm, colon, code = text.rpartition(":")
        if not colon:
            for_all.append(code)
            continue
        for_one.setdefault(_uuid_on(session, host, vm), []).append(code)
    return {"overrides": for_all, "vm_overrides": for_one}


def _uuid_on(session: Session, host: str, vm: str) -> str:
    """:raise InvalidInput: the host has no such VM."""
    uuid = as_uuid(vm)
    if uuid is not None:
        return uuid
    there = session.client.items(f"/hosts/{segment(host)}/vms")
    found = [str(row["uuid"]) for row in there if row["name"] == vm]
    if not found:
        raise InvalidInput(
            f"no VM on {host} is named {vm}",
            field="--override",
            remedy="write NAME:CODE, UUID:CODE, or CODE alone for all VMs",
        )
    return found[0]
