"""``vmtune apply``, ``verify``, ``revert`` and ``application``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from vmtune.client.commands.tuning import plan as plans
from vmtune.client.commands.tuning.apply_all import AS_WANTED, Order, apply_all
from vmtune.client.complete import applications, hosts, profiles, vms
from vmtune.client.connection.errors import Refused
from vmtune.client.connection.http import Client, Document
from vmtune.client.ordering import ordering
from vmtune.client.resolve import APPLICATION, is_beginning
from vmtune.client.resolve import resolve as resolve_id
from vmtune.client.session import (
    CLEAN,
    DIFFERENCES,
    ERROR,
    Session,
    common,
    listing,
    pass_session,
    sortable,
    watchable,
)
from vmtune.client.views import render
from vmtune.client.views.output import Column, fields
from vmtune.client.vms import as_uuid, resolve, silent_hosts
from vmtune.errors import NotFound

_TUNING = ("tuned", "drifted", "pending restart", "untuned", "unknown")
_NOT_FOUND = 404


def all_as_wanted(outcomes: Sequence[Document]) -> bool:
    """Whether each tunable is effective, or waits for its migration or restart."""
    return all(outcome["status"] in AS_WANTED for outcome in outcomes)


@click.command()
@click.argument("vm", required=False, shell_complete=vms)
@click.option(
    "--all", "everything", is_flag=True, help="Apply to all running VMs that the filters select."
)
@click.option("--tuning", type=click.Choice(_TUNING), help="With --all: in this tuning state.")
@click.option("--host", shell_complete=hosts, help="With --all: VMs of one host.")
@click.option("--label", metavar="KEY=VALUE", multiple=True, help="With --all: with this label.")
@click.option(
    "--most", type=click.IntRange(min=1), default=50, show_default=True, metavar="N",
    help="With --all: change at most so many VMs.",
)  # fmt: skip
@click.option(
    "--stop-after-failures", type=click.IntRange(min=1), default=3, show_default=True, metavar="N",
    help="With --all: change no more VMs after so many failures.",
)  # fmt: skip
@click.option("--profile", shell_complete=profiles, help="Profile instead of the assigned one.")
@click.option("--revision", type=click.IntRange(min=1), help="Older revision of the profile.")
@click.option("--best-effort", is_flag=True, help="Skip refused values and apply the rest.")
@click.option(
    "--boot-only",
    is_flag=True,
    help="Only write values for the VM's next start; it need not run.",
)
@click.option("--dry-run", is_flag=True, help="Show the plan without changing anything.")
@sortable
@pass_session
def apply(
    session: Session,
    /,
    vm: str | None,
    everything: bool,
    tuning: str | None,
    host: str | None,
    label: tuple[str, ...],
    most: int,
    stop_after_failures: int,
    profile: str | None,
    revision: int | None,
    best_effort: bool,
    boot_only: bool,
    dry_run: bool,
) -> int:
    """Apply a profile to VM and read the values back.

    Values that take effect at the VM's start are written to its persistent configuration, and
    are `pending restart` until then. Without --best-effort the first refused value rolls
    everything back.

    With --all, one VM after the other: each gets its applied profile again, or else its assigned
    one. A summary tells the outcome of each.

    Exits 0 if all values are effective or pending, 2 if some are overwritten, rejected or
    unknown or a VM was left out, 1 if it failed.
    """
    filters = {"tuning_state": tuning, "host": host, "label": label}
    if everything is (vm is not None) or (vm is not None and any(filters.values())):
        raise click.UsageError("give one VM, or --all with filters")
    if vm is None:
        if not any(filters.values()):
            raise click.UsageError("say which VMs: --tuning drifted, --host or --label")
        order = Order(profile, revision, best_effort, boot_only, dry_run, most, stop_after_failures)
        return apply_all(session, filters, order)
    uuid = resolve(session.client, vm)
    body: dict[str, object] = {"profile": profile, "revision": revision}
    if dry_run:
        document = session.client.post(f"/vms/{uuid}/plan", body)
        session.show(document, lambda: plans.lines(document))
        return CLEAN if document["clean"] else DIFFERENCES
    body |= {"best_effort": best_effort, "boot_only": boot_only}
    look, then = f"vmtune application list --vm {vm}", f"vmtune revert {vm}"
    with ordering("apply the profile", look, f"to restore the values: {then}"):
        record = session.client.post(f"/vms/{uuid}/applications", body)
    session.show(record, lambda: record_lines(record))
    return exit_code(record, "applied")


def exit_code(record: Document, wanted_state: str) -> int:
    """How the command ends for an application's record."""
    if record["state"] != wanted_state:
        return ERROR
    reverted = wanted_state == "reverted"
    return CLEAN if reverted or all_as_wanted(record["outcomes"]) else DIFFERENCES


def record_lines(record: Document) -> Iterator[str]:
    """An application as people read it."""
    yield from fields(
        [
            ("application", record["id"]),
            ("vm", record["vm"]),
            ("host", record["host"]),
            ("profile", render.profile(record)),
            ("state", record["state"]),
            ("begun", render.moment(record["created_at"])),
            ("ended", render.moment(record["ended_at"])),
        ]
    )
    yield from render.problems(record["problems"])
    if record["outcomes"]:
        yield ""
        yield from render.outcomes(record["outcomes"])


@click.command()
@click.argument("vm", required=False, shell_complete=vms)
@click.option(
    "--all", "everything", is_flag=True, help="Verify all VMs with an application or assignment."
)
@listing
@pass_session
def verify(session: Session, vm: str | None, everything: bool) -> int:
    """Compare the values that VM runs with to its profile: the applied one, else the assigned one.

    Exits 0 if all values match, 2 if some differ, 1 on an error.
    """
    if (vm is None) is not everything:
        raise click.UsageError("give one VM, or --all")
    if vm is not None:
        document = session.client.post(f"/vms/{resolve(session.client, vm)}/verify")
        session.show(document, lambda: _verification_lines(document))
        return CLEAN if document["clean"] else DIFFERENCES
    return _verify_all(session)


def _verify_all(session: Session) -> int:
    pages = list(session.client.pages("/vms"))
    running = [
        row for page in pages for row in page["items"] if row["state"] in ("running", "paused")
    ]
    names = {row["uuid"]: row["name"] for row in running}
    found = [
        {**document, "name": name}
        for uuid, name in names.items()
        if (document := _verification(session.client, uuid))
    ]
    silent = silent_hosts(pages)
    clean = all(document["clean"] for document in found) and not silent
    columns = (
        Column("VM", field="name"),
        Column("HOST"),
        Column("PROFILE"),
        Column("CLEAN"),
        Column("DIFFERS", wraps=True, field="outcomes"),
    )
    session.show_list(
        {"clean": clean, "items": found, "problems": silent},
        columns,
        _verified_cells,
        "no VM has an application or assignment",
        lambda: render.problems(silent),
    )
    if silent:
        return ERROR
    return CLEAN if clean else DIFFERENCES


def _verified_cells(document: Document) -> tuple[str, ...]:
    differing = (
        f"{outcome['tunable']} {outcome['status']}"
        for outcome in document["outcomes"]
        if outcome["status"] not in AS_WANTED
    )
    return (
        document["name"],
        document["host"],
        render.profile(document),
        "yes" if document["clean"] else "no",
        ", ".join(differing),
    )


def _verification(client: Client, uuid: str) -> Document | None:
    """A VM's verification; None where it has nothing to verify, or has just gone."""
    try:
        return client.post(f"/vms/{uuid}/verify")
    except Refused as error:
        if error.status == _NOT_FOUND:
            return None
        raise


def _verification_lines(document: Document) -> Iterator[str]:
    yield from fields(
        [
            ("vm", document["vm"]),
            ("host", document["host"]),
            ("profile", render.profile(document)),
            ("application", document["application"] or "none, by assignment"),
            ("as wanted", "yes" if document["clean"] else "no"),
        ]
    )
    yield ""
    yield from render.outcomes(document["outcomes"])


@click.command()
@click.argument("target", metavar="VM|APPLICATION", shell_complete=vms)
@common
@pass_session
def revert(session: Session, target: str) -> int:
    """Restore the values from before an application, or a VM's active one."""
    application = _application_of(session.client, target)
    with ordering("restore the values", f"vmtune application show {application}"):
        record = session.client.post(f"/applications/{application}/revert")
    session.show(record, lambda: record_lines(record))
    return exit_code(record, "reverted")


def _application_of(client: Client, target: str) -> str:
    """The application that *target* names: by its id, or the VM's newest that stands."""
    uuid = as_uuid(target)
    if uuid is not None:
        try:
            return str(client.get(f"/applications/{uuid}")["id"])
        except Refused as error:
            if error.status != _NOT_FOUND:
                raise
    try:
        vm = resolve(client, target)
    except NotFound:
        if not is_beginning(target):
            raise
        return resolve_id(client, target, APPLICATION)
    for record in client.items("/applications", {"vm": vm}):
        if record["state"] in ("applied", "unknown"):
            return str(record["id"])
    raise NotFound(
        f"{target} has no active application",
        field="VM",
        remedy=f"`vmtune application list --vm {target}` shows what was applied",
    )


@click.group()
@common
def application() -> None:
    """Applications of profiles to VMs, and their outcomes."""


@application.command("list")
@click.option("--vm", shell_complete=vms, help="Only applications of one VM.")
@listing
@pass_session
def list_(session: Session, vm: str | None) -> None:
    """List the applications, newest first."""
    query = {"vm": resolve(session.client, vm) if vm else None}
    rows = list(session.client.items("/applications", query))
    columns = (
        Column("APPLICATION", id=True, field="id"),
        Column("VM", id=True),
        Column("HOST", spare=1),
        Column("PROFILE"),
        Column("STATE"),
        Column("BEGUN", field="created_at", spare=2),
    )

    def cells(row: Document) -> tuple[str, ...]:
        return (
            row["id"],
            row["vm"],
            row["host"],
            render.profile(row),
            row["state"],
            render.moment(row["created_at"]),
        )

    session.show_list({"items": rows, "next": None}, columns, cells, "no applications")


@application.command()
@click.argument("id", metavar="APPLICATION", shell_complete=applications)
@watchable
@pass_session
def show(session: Session, id: str) -> None:
    """Show an application and the outcome of each tunable."""
    record = session.client.get(f"/applications/{resolve_id(session.client, id, APPLICATION)}")
    session.show(record, lambda: record_lines(record))
