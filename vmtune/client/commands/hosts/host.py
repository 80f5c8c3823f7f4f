"""``vmtune host``: the hosts that vmtune drives."""

from __future__ import annotations

from collections.abc import Iterator

import click

from vmtune.client.commands.hosts.pools import host_limits, host_pools
from vmtune.client.complete import hosts
from vmtune.client.connection.http import Document, segment
from vmtune.client.lazy import LazyGroup
from vmtune.client.session import (
    CLEAN,
    DIFFERENCES,
    Session,
    common,
    listing,
    pass_session,
    watchable,
)
from vmtune.client.views.diagnosis import finding_lines
from vmtune.client.views.host_check import check_lines
from vmtune.client.views.hosts import in_maintenance
from vmtune.client.views.output import Column, fields
from vmtune.client.views.render import moment, problems, size

_MIGRATE_URI = "What migrations to it connect to: tcp://ADDRESS, with a port if it is fixed."
_LISTEN_ADDRESS = "Address on which it takes migrations."
_DISKS_URI = "What copies of local disks connect to, by virsh: tcp://ADDRESS."
_COMMANDS = {"apply-limits": ("vmtune.admin.commands.limits:apply_limits_command", "")}
"""Of the systemd unit of root, on the host itself."""


@click.group(cls=LazyGroup, commands=_COMMANDS)
@common
def host() -> None:
    """Hosts that vmtune manages."""


host.add_command(host_pools, "pools")
host.add_command(host_limits, "limits")


@host.command()
@click.argument("name")
@click.argument("uri")
@click.option("--peer-uri", default="", help="URI by which other hosts reach its libvirt.")
@click.option(
    "--migration-address",
    default="",
    help="Address where its QEMUs listen for migrations; without libvirt only.",
)
@click.option("--migrate-uri", default="", help=_MIGRATE_URI)
@click.option("--listen-address", default="", help=_LISTEN_ADDRESS)
@click.option("--disks-uri", default="", help=_DISKS_URI)
@common
@pass_session
def add(
    session: Session,
    name: str,
    uri: str,
    peer_uri: str,
    migration_address: str,
    migrate_uri: str,
    listen_address: str,
    disks_uri: str,
) -> None:
    """Add a host, after a test connection.

    URI is a libvirt URI (qemu:///system, qemu+ssh://root@NAME/system), or qmp+unix:///FOLDER
    for a folder of QMP sockets.
    """
    body = {
        "name": name,
        "uri": uri,
        "peer_uri": peer_uri,
        "migration_address": migration_address,
        "migrate_uri": migrate_uri,
        "listen_address": listen_address,
        "disks_uri": disks_uri,
    }
    added = session.client.post("/hosts", body)
    session.report(added, f"host {name} added")


@host.command()
@click.argument("name", shell_complete=hosts)
@click.option("--migrate-uri", default=None, help=_MIGRATE_URI)
@click.option("--listen-address", default=None, help=_LISTEN_ADDRESS)
@click.option("--disks-uri", default=None, help=_DISKS_URI)
@common
@pass_session
def change(
    session: Session,
    name: str,
    migrate_uri: str | None,
    listen_address: str | None,
    disks_uri: str | None,
) -> None:
    """Change the addresses of a host's migration network.

    Migrations to it use them, unless their profile has its own. {host} and {hostname} stand for
    the host's names; an empty text unsets an address.
    """
    body = {"migrate_uri": migrate_uri, "listen_address": listen_address, "disks_uri": disks_uri}
    changed = session.client.patch(f"/hosts/{segment(name)}", body)
    session.report(changed, f"host {name} changed")


@host.command("list")
@click.option("--search", help="Only hosts with this part in their name or URI.")
@listing
@pass_session
def list_(session: Session, search: str | None) -> None:
    """List the hosts."""
    rows = list(session.client.items("/hosts", {"search": search}))
    owned = any(row.get("owner") for row in rows)
    columns = (
        Column("NAME"),
        Column("STATE"),
        Column("VMS", right=True, field="vm_count", spare=1),
        Column("MEMORY", right=True, field="memory_bytes", spare=2),
        Column("QEMU", field="qemu_version", spare=3),
        Column("URI", spare=5),
        Column("PEER URI", spare=6),
        *((Column("MANAGED BY", field="owner", spare=4),) if owned else ()),
        Column("ADDED", field="created_at", spare=7),
    )

    def cells(row: Document) -> tuple[str, ...]:
        return (
            row["name"],
            row["state"] + (", maintenance" if row["maintenance_since"] else ""),
            str(row["vm_count"]),
            size(row["memory_bytes"]),
            row["qemu_version"] or "-",
            row["uri"],
            row["peer_uri"],
            *((row["owner"],) if owned else ()),
            moment(row["created_at"]),
        )

    empty = "no hosts; add one with `vmtune host add NAME URI`"
    session.show_list({"items": rows, "next": None}, columns, cells, empty)


@host.command()
@click.argument("name", shell_complete=hosts)
@watchable
@pass_session
def show(session: Session, name: str) -> None:
    """Show a host and its current state."""
    row = session.client.get(f"/hosts/{segment(name)}")

    def lines() -> Iterator[str]:
        yield from fields(_pairs(row))
        yield from problems(row["problems"])
        yield from finding_lines(row["findings"])

    session.show(row, lines)


def _pairs(row: Document) -> list[tuple[str, str]]:
    facts = row.get("facts") or {}
    memory = facts.get("memory_bytes")
    return [
        ("name", row["name"]),
        ("uri", row["uri"]),
        ("peer uri", facts.get("peer_uri") or row["peer_uri"]),
        ("migration address", row["migration_address"]),
        ("migrate uri", row["migrate_uri"]),
        ("listen address", row["listen_address"]),
        ("disks uri", row["disks_uri"]),
        *((("service", row["owner"]),) if row.get("owner") else ()),
        ("added", moment(row["created_at"])),
        ("state", row["state"]),
        ("last contact", moment(row["answered_at"]) if row["answered_at"] else ""),
        ("VMs", str(row["vm_count"])),
        ("in maintenance", moment(row["maintenance_since"]) if row["maintenance_since"] else ""),
        ("host name", facts.get("hostname", "")),
        ("managed by", facts.get("connection", "")),
        ("QEMU", facts.get("qemu_version") or ""),
        ("libvirt", facts.get("libvirt_version") or ""),
        ("kernel", facts.get("kernel", "")),
        ("KVM", {True: "yes", False: "no", None: ""}[facts.get("kvm")]),
        ("CPUs", str(facts.get("cpus") or "")),
        ("memory", "" if memory is None else size(memory)),
        *((name, str(number)) for name, number in (facts.get("sysctls") or {}).items()),
    ]


@host.command()
@click.argument("name", shell_complete=hosts)
@click.option("--to", default="", shell_complete=hosts, help="Host to migrate to.")
@common
@pass_session
def check(session: Session, name: str, to: str) -> int:
    """Try what a migration needs of a host, or of two with --to. Changes nothing.

    It connects anew. What only the hosts themselves can show is listed as not seen, with the
    command to run there. Exits 2 if a step failed.
    """
    found = session.client.get(f"/hosts/{segment(name)}/check", {"to": to})
    session.show(found, lambda: check_lines(found))
    return CLEAN if found["passed"] else DIFFERENCES


@host.command()
@click.argument("name", shell_complete=hosts)
@click.option("--end", is_flag=True, help="End it: the host may get VMs again.")
@common
@pass_session
def maintenance(session: Session, name: str, end: bool) -> None:
    """Begin a host's maintenance: it gets no VMs until `--end`.

    Its VMs stay: `vmtune evacuate HOST --maintenance` moves them, too.
    """
    changed = session.client.put(f"/hosts/{segment(name)}/maintenance", {"on": not end})
    session.report(changed, in_maintenance(session.client, changed))


@host.command()
@click.argument("name", shell_complete=hosts)
@click.argument("service")
@common
@pass_session
def give(session: Session, name: str, service: str) -> None:
    """Move a host to another service, where several services share a database.

    The host must have no running operations. `vmtune service list` shows the services.
    """
    given = session.client.put(f"/hosts/{segment(name)}/owner", {"service": service})
    session.report(given, f"{service} manages host {name}")


@host.command()
@click.argument("name", shell_complete=hosts)
@common
@pass_session
def remove(session: Session, name: str) -> None:
    """Remove a host from vmtune. The host itself, its VMs and their history stay unchanged."""
    session.report(session.client.delete(f"/hosts/{segment(name)}"), f"host {name} removed")
