"""``vmtune migration``: migrations, running and past."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import suppress

import click

from vmtune.client.commands.migration.migrate import lines, started_by
from vmtune.client.complete import assignments, hosts, migrations, profiles, vms
from vmtune.client.connection.http import Client, Document
from vmtune.client.ids import is_whole
from vmtune.client.resolve import MIGRATION
from vmtune.client.resolve import resolve as resolve_id
from vmtune.client.session import Session, common, listing, pass_session, watchable
from vmtune.client.values import parse_assignments
from vmtune.client.views import render
from vmtune.client.views.controllers import record_lines
from vmtune.client.views.forecast_checks import kept_lines
from vmtune.client.views.now import progress_lines
from vmtune.client.views.output import Column, table
from vmtune.client.vms import resolve
from vmtune.errors import VmtuneError


@click.group()
@common
def migration() -> None:
    """Migrations, running and past.

    MIGRATION is an id, a VM's name, which stands for the newest one of that VM, or the first
    digits of an id.
    """


def _path(session: Session, id: str) -> str:
    """Where the migration is that is the newest of that VM, or whose id begins with *id*."""
    newest = "" if is_whole(id) else _newest_of(session.client, id)
    return f"/migrations/{newest or resolve_id(session.client, id, MIGRATION)}"


def _newest_of(client: Client, name: str) -> str:
    """The id of the newest migration of the VM with that name; empty where none of that name has
    migrated. A name may look like the beginning of an id, as db-1 does: the name counts first."""
    found = client.items("/migrations", {"search": name})
    return next((str(row["id"]) for row in found if row["vm_name"] == name), "")


@migration.command("list")
@click.option("--vm", shell_complete=vms, help="Only migrations of one VM.")
@click.option("--host", shell_complete=hosts, help="Only from or to this host.")
@click.option("--profile", shell_complete=profiles, help="Only with this profile.")
@click.option("--state", help="Only in this state, such as active or failed.")
@click.option("--exceeded", is_flag=True, help="Only those whose downtime exceeded its limit.")
@click.option("--broken", is_flag=True, help="Only those that did not keep their intent.")
@click.option("--search", help="Only with this part in the name of the VM, profile or a host.")
@listing
@pass_session
def list_(
    session: Session,
    vm: str | None,
    host: str | None,
    profile: str | None,
    state: str | None,
    exceeded: bool,
    broken: bool,
    search: str | None,
) -> None:
    """List the migrations, newest first. `!` marks a downtime that was longer than its limit, and
    the state of one that did not keep its intent."""
    query = {
        "vm": resolve(session.client, vm) if vm else None,
        "host": host,
        "profile": profile,
        "state": state,
        "downtime_exceeded": "true" if exceeded else None,
        "intent_broken": "true" if broken else None,
        "search": search,
    }
    rows = list(session.client.items("/migrations", query))
    columns = (
        Column("MIGRATION", id=True, field="id"),
        Column("VM", field="vm_name"),
        Column("FROM", field="source"),
        Column("TO", field="destination"),
        Column("STATE"),
        Column("DOWNTIME", right=True, field="totals.downtime_ms"),
        Column("TOTAL TIME", right=True, field="totals.total_time_ms", spare=1),
        Column("BEGUN", field="created_at", spare=2),
        Column("PROFILE", spare=3),
        Column("STARTED BY", field="trigger", spare=4),
    )
    session.show_list({"items": rows, "next": None}, columns, _cells, "no migrations")


def _cells(row: Document) -> tuple[str, ...]:
    totals = row["totals"] or {}
    return (
        row["id"],
        row["vm_name"],
        row["source"],
        row["destination"] or "unknown",
        row["state"] + ("!" if row["intent_broken"] else ""),
        render.milliseconds(totals.get("downtime_ms")) + ("!" if row["downtime_exceeded"] else ""),
        render.milliseconds(totals.get("total_time_ms")),
        render.moment(row["created_at"]),
        render.profile(row),
        started_by(row),
    )


@migration.command()
@click.argument("id", metavar="MIGRATION", shell_complete=migrations)
@watchable
@pass_session
def show(session: Session, id: str) -> None:
    """Show a migration and the outcome of each tunable; of a running one also its progress."""
    path = _path(session, id)
    record = session.client.get(path)

    def shown() -> Iterator[str]:
        yield from lines(record)
        yield from kept_lines(_forecasts(session.client, path))
        if not (record["ended"] or record["queued"]):
            yield from progress_lines(session.client, record)

    session.show(record, shown)


def _forecasts(client: Client, path: str) -> Document:
    """Those that are kept with it; none where they cannot be had: an older service has none."""
    with suppress(VmtuneError):
        return client.get(f"{path}/forecasts")
    return {"items": []}


@migration.command()
@click.argument("id", metavar="MIGRATION", shell_complete=migrations)
@click.option("--csv", "as_csv", is_flag=True, help="Print all fields as CSV.")
@click.option("--disks", is_flag=True, help="Those of the disks that are copied with it.")
@common
@pass_session
def samples(session: Session, id: str, as_csv: bool, disks: bool) -> None:
    """Show the samples of a migration."""
    what = "disk-samples" if disks else "samples"
    rows = list(session.client.items(f"{_path(session, id)}/{what}"))
    shown = _disk_table if disks else _sample_table
    session.show({"items": rows, "next": None}, lambda: _csv(rows) if as_csv else shown(rows))


def _csv(rows: list[Document]) -> Iterator[str]:
    if not rows:
        return
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    yield text.getvalue().rstrip("\n")


def _disk_table(rows: list[Document]) -> Iterator[str]:
    titles = ("AT", "DISK", "COPIED", "OF", "COPIES", "GUEST WRITES")
    columns = tuple(Column(title, right=title != "DISK") for title in titles)
    cells = [
        (
            f"{row['at_ms']:,} ms",
            row["target"],
            render.size(row["copied_bytes"]),
            render.size(row["total_bytes"]),
            render.rate(row["bytes_per_s"]),
            render.rate(row["written_bytes_per_s"]),
        )
        for row in rows
    ]
    yield from table(columns, cells, "no samples of disks")


def _sample_table(rows: list[Document]) -> Iterator[str]:
    columns = tuple(
        Column(title, right=title != "STATUS")
        for title in (
            "AT", "STATUS", "ITERATION", "TRANSFERRED", "LEFT", "DIRTIES", "SENDS", "THROTTLE",
            "DOWNTIME",
        )
    )  # fmt: skip
    cells = [
        (
            f"{row['at_ms']:,} ms",
            row["status"],
            str(row["iteration"]),
            render.size(row["transferred_bytes"]),
            render.size(row["remaining_bytes"]),
            render.rate(row["dirty_pages_per_s"] * row["page_size_bytes"]),
            render.rate(row["throughput_bytes_per_s"]),
            f"{row['throttle_percent']} %",
            render.milliseconds(row["expected_downtime_ms"]),
        )
        for row in rows
    ]
    yield from table(columns, cells, "no samples")


@migration.command()
@click.argument("id", metavar="MIGRATION", shell_complete=migrations)
@click.option("--csv", "as_csv", is_flag=True, help="Print all fields as CSV.")
@common
@pass_session
def rounds(session: Session, id: str, as_csv: bool) -> None:
    """Show the rounds of the dirty-ring reaper.

    AT is the time since the migration's start; before it, dirty pages are tracked only during a
    round.
    """
    rows = list(session.client.items(f"{_path(session, id)}/rounds"))
    session.show(
        {"items": rows, "next": None}, lambda: _csv(rows) if as_csv else _round_table(rows)
    )


def _round_table(rows: list[Document]) -> Iterator[str]:
    titles = ("AT", "PLANNED INTERVAL", "COST", "RING FILL BY VCPU")
    columns = tuple(Column(title, right=title != titles[-1]) for title in titles)
    cells = [
        (
            f"{row['at_ms']:,} ms",
            f"{row['interval_ms']:,} ms",
            f"{row['cost_ms']:,.1f} ms",
            " ".join(f"{fill:.0%}" for fill in row["fills"]),
        )
        for row in rows
    ]
    yield from table(columns, cells, "no rounds: the reaper did not run")


@migration.command("set")
@click.argument("id", metavar="MIGRATION", shell_complete=migrations)
@click.argument("values", nargs=-1, required=True, metavar="TUNABLE=VALUE...",
                shell_complete=assignments)  # fmt: skip
@common
@pass_session
def set_(session: Session, id: str, values: tuple[str, ...]) -> None:
    """Change values of a running migration, such as downtime_limit_ms=1s.

    `vmtune tunables` lists them. They are restored if the migration does not complete.
    """
    body = {"values": parse_assignments(values)}
    record = session.client.patch(f"{_path(session, id)}", body)
    session.show(record, lambda: record_lines(record["step_records"][-1:]))


@migration.command()
@click.argument("id", metavar="MIGRATION", shell_complete=migrations)
@common
@pass_session
def postcopy(session: Session, id: str) -> None:
    """Switch a running migration to post-copy.

    The guest moves to the destination at once and fetches its memory from there. It cannot be
    aborted after that; if the connection breaks, the guest stops until it is recovered.
    """
    _do(session, id, "postcopy")


@migration.command()
@click.argument("id", metavar="MIGRATION", shell_complete=migrations)
@common
@pass_session
def pause(session: Session, id: str) -> None:
    """Pause the guest until its migration ends.

    It dirties nothing meanwhile, so that the rest is sent in one pass. It is resumed at the end,
    wherever it is then.
    """
    _do(session, id, "pause")


def _do(session: Session, id: str, what: str) -> None:
    record = session.client.patch(f"{_path(session, id)}", {"do": what})
    session.show(record, lambda: record_lines(record["step_records"][-1:]))


@migration.command()
@click.argument("id", metavar="MIGRATION", shell_complete=migrations)
@click.option(
    "--over",
    "address",
    metavar="ADDRESS",
    default="",
    help="Address of the destination to connect to, instead of the usual one.",
)
@common
@pass_session
def recover(session: Session, id: str, address: str) -> None:
    """Recover a migration that is paused in post-copy.

    The guest runs on the destination, and part of its memory is on the source: shut down neither
    host. With --over, a connection that QEMU has not given up yet is given up.
    """
    record = session.client.post(f"{_path(session, id)}/recovery", {"address": address})
    session.report(record, f"post-copy of migration {id} goes on")


@migration.command()
@click.argument("id", metavar="MIGRATION", shell_complete=migrations)
@common
@pass_session
def abort(session: Session, id: str) -> None:
    """Abort a migration.

    The VM stays on its source. `vmtune migration show` shows whether the abort was in time.
    """
    record = session.client.delete(f"{_path(session, id)}")
    session.report(record, f"requested abort of migration {id}; it is {record['state']}")
