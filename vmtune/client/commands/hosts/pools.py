"""``vmtune vm pools``, ``vmtune host pools`` and ``vmtune host limits``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from vmtune import units
from vmtune.client.commands.tuning.plan import finding_lines
from vmtune.client.complete import hosts, vms
from vmtune.client.connection.http import Document, segment
from vmtune.client.session import (
    CLEAN,
    DIFFERENCES,
    Session,
    common,
    listing,
    pass_session,
    watchable,
)
from vmtune.client.views.output import Column, fields, table
from vmtune.client.vms import resolve
from vmtune.errors import InvalidInput


def pairs(pool: Document) -> list[tuple[str, str]]:
    """A VM's pool as pairs of words."""
    maps, stacks = pool["maps"], pool["stacks"]
    now = "unknown" if maps is None else f"{maps:,}, coroutines use {2 * stacks:,}"
    return [
        ("coroutine pool", f"{pool['design']}, {_count(pool['threads'], 'thread')}"),
        ("grows to", f"{pool['soft_limit']:,} coroutines for its disks"),
        ("pool limit", f"{pool['max_pooled']:,} coroutines"),
        ("memory maps", now),
        ("coroutine stack", _stack(pool)),
        ("worst case", f"{pool['max_maps']:,} with {pool['guest_requests']:,} requests in flight"),
        ("vm.max_map_count", "unknown" if pool["limit"] is None else f"{pool['limit']:,}"),
        ("headroom", _headroom(pool)),
    ]  # fmt: skip


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _stack(pool: Document) -> str:
    """``8 KiB of memory, 2 maps; in the worst case 1 MiB``."""
    stacks = pool["stacks_per_coroutine"]
    maps = f"{2 * stacks} maps" + (" (SafeStack)" if stacks > 1 else "")
    if pool["stack_bytes"] is None:
        return maps
    now, most = (
        units.approximate(pool[name], units.Unit.BYTES)
        for name in ("stack_bytes", "max_stack_bytes")
    )
    return f"{now} of memory, {maps} for each coroutine; {most} in the worst case"


def _headroom(pool: Document) -> str:
    now, worst = pool["left_now"], pool["left"]
    if worst is None:
        return "unknown"
    seen = "" if now is None else f"{now:,} now, "
    return f"{seen}{worst:,} in the worst case: {pool['level']}"


@click.command()
@click.argument("vm", shell_complete=vms)
@watchable
@pass_session
def vm_pools(session: Session, vm: str) -> int:
    """Show the coroutine pool of VM, its memory maps and how many remain.

    Exits 2 if there are problems.
    """
    pool = session.client.get(f"/vms/{resolve(session.client, vm)}/pools")

    def lines() -> Iterator[str]:
        yield from fields([("vm", pool["name"]), ("QEMU", pool["qemu_version"]), *pairs(pool)])
        for finding in pool["findings"]:
            yield ""
            yield from finding_lines(finding)

    session.show(pool, lines)
    return DIFFERENCES if pool["findings"] else CLEAN


@click.command()
@click.argument("name", shell_complete=hosts)
@listing
@pass_session
def host_pools(session: Session, name: str) -> int:
    """List how close each VM of a host is to the limit of memory maps.

    Exits 2 if there are problems.
    """
    document = session.client.get(f"/hosts/{segment(name)}/pools")
    numbers = {
        "maps": "MAPS NOW",
        "stacks": "COROUTINES",
        "max_maps": "WORST CASE",
        "limit": "LIMIT",
        "left": "LEFT",
    }
    columns = (
        Column("VM", field="name"),
        Column("QEMU", right=True, field="qemu_version", spare=1),
        *(Column(title, right=True, field=name) for name, title in numbers.items()),
        Column("LEVEL"),
    )

    def cells(row: Document) -> tuple[str, ...]:
        counted = ("-" if row[n] is None else f"{row[n]:,}" for n in numbers)
        return row["name"], row["qemu_version"], *counted, row["level"]

    session.show_list(document, columns, cells, "no running VMs")
    return DIFFERENCES if any(row["findings"] for row in document["items"]) else CLEAN


@click.command()
@click.argument("name", shell_complete=hosts)
@click.argument("values", nargs=-1, metavar="[LIMIT=VALUE ...]")
@click.option("--restore", is_flag=True, help="Restore every limit that vmtune has raised.")
@common
@pass_session
def host_limits(session: Session, name: str, values: tuple[str, ...], restore: bool) -> None:
    """Show the limits of a host, or raise them: vm_max_map_count=262144.

    Raised limits persist over reboots until --restore, which keeps what running VMs need.
    Raising needs host_changes = true in the service's settings.
    """
    if values and restore:
        raise click.UsageError("give values or --restore, not both")
    path = f"/hosts/{segment(name)}/limits"
    if restore:
        document = session.client.delete(path)
    elif values:
        document = session.client.put(path, {"values": _assigned(values)})
    else:
        document = session.client.get(path)
    session.show(document, lambda: _limit_lines(document["items"]))


def _assigned(arguments: Sequence[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not equals or not name or not value:
            raise InvalidInput(
                f"{argument[:60]!r} is not LIMIT=VALUE", field="LIMIT=VALUE",
                code="malformed_argument", remedy="write vm_max_map_count=262144",
            )  # fmt: skip
        values[name] = value
    return values


def _limit_lines(rows: Sequence[Document]) -> Iterator[str]:
    columns = (
        Column("LIMIT"),
        Column("SYSCTL"),
        Column("NOW", right=True),
        Column("BEFORE", right=True),
        Column("REQUESTED BY", wraps=True),
    )
    cells = [
        (
            row["tunable"],
            row["sysctl"],
            "unknown" if row["value"] is None else str(row["value"]),
            "-" if row["before"] is None else str(row["before"]),
            ", ".join(f"{owner} ({value})" for owner, value in row["claims"].items()),
        )
        for row in rows
    ]
    yield from table(columns, cells, "none")
    for row in rows:
        if row["held"]:
            yield f"{row['tunable']} stays at {row['value']}: {row['held']}"
