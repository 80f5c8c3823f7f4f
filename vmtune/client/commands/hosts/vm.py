"""``vmtune vm`` and ``vmtune explain``."""

from __future__ import annotations

from collections.abc import Iterator

import click

from vmtune.client.commands.hosts.pools import pairs, vm_pools
from vmtune.client.commands.tuning.drift import vm_drift
from vmtune.client.complete import hosts, vms
from vmtune.client.connection.errors import Refused
from vmtune.client.connection.http import Client, Document
from vmtune.client.session import Session, common, listing, pass_session, watchable
from vmtune.client.views import render
from vmtune.client.views.output import Column, fields, table
from vmtune.client.vms import resolve, silent_hosts
from vmtune.errors import HostUnreachable, InvalidInput, Problem

_TUNING = ("tuned", "drifted", "pending restart", "untuned", "unknown")


@click.group()
@common
def vm() -> None:
    """VMs of the hosts, their labels and history."""


vm.add_command(vm_pools, "pools")
vm.add_command(vm_drift, "drift")


@vm.command("list")
@click.option("--host", shell_complete=hosts, help="Only VMs of one host.")
@click.option("--label", metavar="KEY=VALUE", multiple=True, help="Only VMs with this label.")
@click.option("--tuning", type=click.Choice(list(_TUNING)), help="Only VMs in this tuning state.")
@click.option("--search", help="Only VMs with this part in their name or first in their UUID.")
@listing
@pass_session
def list_(
    session: Session,
    host: str | None,
    label: tuple[str, ...],
    tuning: str | None,
    search: str | None,
) -> None:
    """List the VMs of all hosts and their current state.

    The tuning state is as of the last check; `vmtune verify` checks a VM again, and `vmtune vm
    drift --now` checks all.
    """
    query = {"host": host, "label": label, "tuning_state": tuning, "search": search}
    pages = list(session.client.pages("/vms", query))
    rows = [row for page in pages for row in page["items"]]
    silent = silent_hosts(pages)
    columns = (
        Column("NAME"),
        Column("HOST"),
        Column("STATE"),
        Column("TUNING", field="tuning_state"),
        Column("UUID", id=True),
        Column("LABELS", wraps=True, spare=1),
        Column("AS OF", spare=2, field="tuning.as_of"),
    )

    def cells(row: Document) -> tuple[str, ...]:
        return (
            row["name"],
            row["host"],
            _standing(row),
            row["tuning_state"],
            row["uuid"],
            _labels(row["labels"]),
            render.moment(row["tuning"]["as_of"]) if row["tuning"] else "",
        )

    document = {"items": rows, "next": None, "problems": silent}
    session.show_list(document, columns, cells, "no VMs", lambda: render.problems(silent))


def _standing(row: Document) -> str:
    """The state of a VM, with its migration. One that is paused in post-copy may run, as its host
    says, and stop at the next memory that it needs of the other host."""
    if row["migration"] is None:
        return str(row["state"])
    paused = row["migration_state"] == "postcopy-paused"
    return "post-copy is paused" if paused else f"{row['state']}, migrating"


def _labels(labels: Document) -> str:
    return " ".join(f"{key}={value}" for key, value in labels.items())


@vm.command()
@click.argument("vm", shell_complete=vms)
@watchable
@pass_session
def show(session: Session, vm: str) -> None:
    """Show a VM, its QEMU and its current values; as last seen if its host does not answer."""
    uuid = resolve(session.client, vm)
    path = f"/vms/{uuid}"
    try:
        found = session.client.get(path)
    except Refused as error:
        if error.problem_code == HostUnreachable.code and session.shows_progress:
            for line in _last_seen(session.client, uuid):
                session.echo(line)
        raise
    document = {**found, "pools": session.client.get(f"{path}/pools")}
    session.show(document, lambda: _vm_lines(document))


def _last_seen(client: Client, uuid: str) -> Iterator[str]:
    """A VM whose host does not answer; nothing where it was never listed."""
    for row in client.get("/vms", {"search": uuid, "limit": 1})["items"]:
        silent, tuning = row["unreachable"], row["tuning"]
        since = (
            f"; {row['host']} does not answer since {render.moment(silent['since'])}"
            if silent
            else ""
        )
        yield from fields(
            [
                ("name", row["name"]),
                ("uuid", row["uuid"]),
                ("host", row["host"]),
                ("state", f"{_standing(row)}{since}"),
                ("labels", _labels(row["labels"])),
                ("tuning", row["tuning_state"]),
                ("profile", render.profile(tuning) if tuning else ""),
                ("as of", render.moment(tuning["as_of"]) if tuning else ""),
            ]
        )


def _vm_lines(document: Document) -> Iterator[str]:
    limit, pid = document["locked_memory_limit_bytes"], document["pid"]
    yield from fields(
        [
            ("name", document["name"]),
            ("uuid", document["uuid"]),
            ("host", document["host"]),
            ("state", _standing(document)),
            ("labels", _labels(document["labels"])),
            ("QEMU", document["qemu_version"]),
            ("machine", document["machine"]),
            ("KVM", "yes" if document["kvm"] else "no"),
            ("memory", render.size(document["memory_bytes"])),
            ("vCPUs", str(document["vcpus"])),
            ("iothreads", " ".join(document["iothreads"])),
            ("virtio disks", " ".join(document["virtio_disks"])),
            ("lockable memory", "" if limit is None else render.size(limit)),
            ("compression", " ".join(document["compression_methods"])),
            ("migrating", "yes" if document["migrating"] else "no"),
            ("migration", document["migration"] or ""),
            ("cannot migrate", "; ".join(document["blocked_reasons"])),
            ("process", "" if pid is None else str(pid)),
            *pairs(document["pools"]),
        ]
    )
    yield ""
    columns = (Column("TUNABLE"), Column("NOW", right=True), Column("AT NEXT START", right=True))
    boot = document["boot_readings"]
    cells = [
        (name, _reading(reading), _reading(boot[name]) if name in boot else "")
        for name, reading in document["readings"].items()
    ]
    yield from table(columns, cells, "no values could be read")


def _reading(reading: Document) -> str:
    parts = reading["part_texts"]
    if reading["value"] is None and parts:
        return ", ".join(f"{owner} {text}" for owner, text in parts.items())
    return str(reading["text"])


@vm.command()
@click.argument("vm", shell_complete=vms)
@click.argument("labels", nargs=-1, required=True, metavar="KEY=VALUE|KEY-...")
@common
@pass_session
def label(session: Session, vm: str, labels: tuple[str, ...]) -> None:
    """Set labels of a VM; KEY- removes a label."""
    changes = _label_changes(labels)
    uuid = resolve(session.client, vm)
    merged = {**session.client.get(f"/vms/{uuid}")["labels"], **changes}
    kept = {key: value for key, value in merged.items() if value is not None}
    document = session.client.put(f"/vms/{uuid}/labels", {"labels": kept})
    session.report(document, _labels(document["labels"]) or "no labels")


def _label_changes(arguments: tuple[str, ...]) -> dict[str, str | None]:
    changes: dict[str, str | None] = {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not equals and argument.endswith("-") and len(argument) > 1:
            changes[argument[:-1]] = None
        elif key and equals:
            changes[key] = value
        else:
            problem = Problem(
                argument[:60], "malformed_argument", "is not KEY=VALUE", "write tier=db, or tier-"
            )
            raise InvalidInput("a label is malformed", problems=[problem])
    return changes


@vm.command()
@click.argument("vm", shell_complete=vms)
@listing
@pass_session
def history(session: Session, vm: str) -> None:
    """List a VM's applications and migrations, newest first."""
    uuid = resolve(session.client, vm)
    applications = list(session.client.items("/applications", {"vm": uuid}))
    migrations = list(session.client.items("/migrations", {"vm": uuid}))
    items = [
        {**_history_row(row), "what": "application", "where": row["host"]} for row in applications
    ] + [
        {
            **_history_row(row),
            "what": "migration",
            "where": f"{row['source']} to {row['destination'] or 'unknown'}",
        }
        for row in migrations
    ]
    items.sort(key=lambda row: str(row["created_at"]), reverse=True)
    columns = (
        Column("BEGUN", field="created_at"),
        Column("WHAT"),
        Column("ID", id=True),
        Column("PROFILE", spare=1),
        Column("STATE"),
        Column("WHERE", spare=2),
    )

    def cells(row: Document) -> tuple[str, ...]:
        begun = render.moment(row["created_at"])
        profile = render.profile(row)
        return begun, row["what"], row["id"], profile, row["state"], row["where"]

    document = {
        "items": items,
        "next": None,
        "applications": applications,
        "migrations": migrations,
    }
    session.show_list(document, columns, cells, "no applications or migrations")


def _history_row(row: Document) -> Document:
    return {name: row[name] for name in ("id", "created_at", "state", "profile", "revision")}


@click.command()
@click.argument("vm", shell_complete=vms)
@common
@pass_session
def explain(session: Session, vm: str) -> None:
    """Show which profile a VM gets, and why."""
    document = session.client.get(f"/vms/{resolve(session.client, vm)}/explain")

    def lines() -> Iterator[str]:
        yield document["reason"]
        columns = (Column("FOR"), Column("KEY"), Column("PROFILE"), Column("CHOSEN"))
        winner = document["winner"]
        cells = [
            (row["target"], row["key"], row["profile"], "yes" if row == winner else "")
            for row in document["candidates"]
        ]
        if cells:
            yield ""
            yield from table(columns, cells, "")

    session.show(document, lines)
