"""``vmtune evacuate``: move all VMs of a host to other hosts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import click

from vmtune.client.complete import hosts, profiles
from vmtune.client.connection.errors import ClientError, may_have_begun
from vmtune.client.connection.http import Client, Document, segment
from vmtune.client.intent_options import intent_options
from vmtune.client.ordering import ordering
from vmtune.client.session import (
    CLEAN,
    DIFFERENCES,
    ERROR,
    INTERRUPTED,
    Session,
    common,
    pass_session,
)
from vmtune.client.views.evacuations import (
    EvacuationProgression,
    lines,
    path_of,
    plan_lines,
    vms_of,
)
from vmtune.client.views.hosts import in_maintenance
from vmtune.client.views.progress import viewer
from vmtune.client.vms import as_uuid
from vmtune.client.watch import Watched, watch_to_end
from vmtune.errors import InvalidInput

_LOCAL_DISKS = ("profile", "copy", "leave")
_ORDERS = ("priority", "largest-first", "smallest-first")


@click.command()
@click.argument("host", shell_complete=hosts)
@click.option(
    "--to", "destinations", multiple=True, metavar="HOST", shell_complete=hosts,
    help="Only to this host. May be repeated; default: any eligible host.",
)  # fmt: skip
@click.option(
    "--order", type=click.Choice(_ORDERS), default=_ORDERS[0], show_default=True,
    help="Order of the VMs; priority is their label of that name.",
)  # fmt: skip
@click.option("--profile", shell_complete=profiles, help="Profile instead of the assigned ones.")
@click.option(
    "--override", "overrides", multiple=True, metavar="[VM:]CODE",
    help="Override this blocker for one VM (name or UUID) or for all. May be repeated.",
)  # fmt: skip
@click.option(
    "--max-outgoing",
    type=click.IntRange(1, 1000),
    help="Concurrent migrations; at most the service's limit.",
)
@click.option(
    "--priority", type=click.IntRange(-100, 100), default=0,
    help="Priority of its migrations in the queue; higher runs first.",
)  # fmt: skip
@click.option(
    "--stop-after-failures", type=click.IntRange(min=1), metavar="N",
    help="Start no more migrations after so many failures.",
)  # fmt: skip
@click.option(
    "--maintenance", is_flag=True,
    help="Begin the host's maintenance first: it gets no VMs until `host maintenance HOST --end`.",
)  # fmt: skip
@click.option(
    "--local-disks", type=click.Choice(_LOCAL_DISKS), default=_LOCAL_DISKS[0], show_default=True,
    help="VMs with disks that the destination does not share: copy these along, leave the VM, or "
    "do what its profile says.",
)  # fmt: skip
@intent_options
@click.option("--plan", "only_plan", is_flag=True, help="Show the plan without moving anything.")
@click.option("--no-wait", is_flag=True, help="Start it and return; see `evacuation show`.")
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
    maintenance: bool,
    local_disks: str,
    only_plan: bool,
    no_wait: bool,
    intent: Document | None,
) -> int:
    """Move all VMs of HOST to other hosts, live.

    Shows the preflight of every VM first. VMs with blockers are not moved; they are listed
    with the reason. The other VMs move a few at a time, within the service's limits. An
    evacuation survives a restart of the service. With goals (--silence, --within, ...) each VM is
    measured and migrated by that intent; one whose intent cannot be kept remains.

    Ctrl-C stops watching; the evacuation continues. Exits 0 if all VMs have moved (with --plan:
    would move), 2 if some remain, 1 on an error.
    """
    body: dict[str, Any] = {
        "destinations": list(destinations),
        "order": order,
        "profile": profile,
        "max_outgoing": max_outgoing,
        "priority": priority,
        "stop_after_failures": stop_after_failures,
        "intent": intent,
        "local_disks": local_disks,
        **_overridden(session, host, overrides),
    }
    if only_plan or session.shows_progress:
        plan = session.client.post(f"{path_of(host)}/plan", body)
        if only_plan:
            session.show(plan, lambda: plan_lines(plan))
            return DIFFERENCES if plan["left"] else CLEAN
        for line in plan_lines(plan):
            click.echo(line, err=True)
    look, then = f"vmtune evacuation list --host {host}", "vmtune evacuation cancel ID"
    with (
        _maintained(session.client, host) if maintenance else nullcontext(),
        ordering("start the evacuation", look, f"to cancel it: {then}"),
    ):
        record = session.client.post(path_of(host), body)
    if no_wait:
        hint = f"see `vmtune evacuation show {record['id']}`"
        session.report(record, f"evacuation {record['id']} of {host} started; {hint}")
        return CLEAN
    code = watch_evacuation(session, record)
    if maintenance and session.shows_progress:
        now = session.client.get(f"/hosts/{segment(host)}")
        click.echo(in_maintenance(session.client, now), err=True)
    return code


@contextmanager
def _maintained(client: Client, host: str) -> Iterator[None]:
    """Begin the host's maintenance before it is evacuated: what others migrate meanwhile shall not
    come here. It ends again where the evacuation is refused, unless it was on before."""
    if client.get(f"/hosts/{segment(host)}")["maintenance_since"] is not None:
        yield
        return
    path = f"/hosts/{segment(host)}/maintenance"
    client.put(path, {"on": True})
    try:
        yield
    except (ClientError, KeyboardInterrupt) as error:
        refused = isinstance(error, ClientError) and not may_have_begun(error)
        if not (refused and _ended(client, path)):
            hint = f"vmtune host maintenance {host} --end"
            click.echo(f"{host} is in maintenance; to end it: {hint}", err=True)
        raise


def _ended(client: Client, maintenance: str) -> bool:
    """Whether the maintenance could be ended. Why not is of less use than why the evacuation was
    refused."""
    try:
        client.put(maintenance, {"on": False})
    except ClientError:
        return False
    return True


def watch_evacuation(session: Session, record: Document) -> int:
    """Show how far all and each are until it has ended; the exit code."""
    id, host = str(record["id"]), str(record["host"])
    shown = EvacuationProgression(vms_of(session.client, record))
    try:
        with viewer(session.shows_progress, shown) as view:
            followed = Watched(path_of(host), "evacuation")
            record = watch_to_end(session.client, id, view, kind=followed)
    except ClientError:
        click.echo(f"The outcome is unknown; check: vmtune evacuation show {id}", err=True)
        raise
    except KeyboardInterrupt:
        click.echo(
            "\nStopped watching; the evacuation continues. "
            f"To cancel it: vmtune evacuation cancel {id}; "
            f"to watch it again: vmtune evacuation watch {id}",
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
