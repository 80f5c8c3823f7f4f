"""``vmtune migrate``: start a live migration and watch it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager

import click

from vmtune.client.complete import assignments, hosts, profiles, vms
from vmtune.client.connection.errors import ClientError
from vmtune.client.connection.http import Document
from vmtune.client.intent_options import intent_options
from vmtune.client.ordering import ordering
from vmtune.client.resolve import is_beginning
from vmtune.client.session import CLEAN, ERROR, INTERRUPTED, Session, common, pass_session
from vmtune.client.values import parse_assignments
from vmtune.client.views import render
from vmtune.client.views.controllers import reaper_lines, record_lines
from vmtune.client.views.copied_disks import of_record
from vmtune.client.views.intent import intent_fields
from vmtune.client.views.output import fields
from vmtune.client.views.progress import viewer
from vmtune.client.virsh_options import named, virsh_options
from vmtune.client.vms import resolve
from vmtune.client.watch import watch_to_end
from vmtune.model.tunables.virsh_options import from_virsh

_STARTS = "start the migration"


@click.command()
@click.argument("vm", shell_complete=vms)
@click.argument("destination", shell_complete=hosts)
@click.option("--profile", shell_complete=profiles, help="Profile instead of the assigned one.")
@click.option("--revision", type=click.IntRange(min=1), help="Older revision of the profile.")
@click.option(
    "--override",
    "overrides",
    multiple=True,
    metavar="CODE",
    help="Override this blocker and leave out the values it concerns, but for those that say which "
    "disks are copied. May be repeated.",
)
@click.option(
    "--set",
    "assigned",
    multiple=True,
    metavar="TUNABLE=VALUE",
    shell_complete=assignments,
    help="Value for this migration, overrides the profile. May be repeated.",
)
@click.option(
    "--priority",
    type=click.IntRange(-100, 100),
    default=0,
    help="Priority in the queue; higher runs first.",
)
@intent_options
@click.option(
    "--shadow", is_flag=True,
    help="Only record what would be done for the goals, and change nothing.",
)  # fmt: skip
@click.option("--no-wait", is_flag=True, help="Start it and return; see `migration show`.")
@virsh_options
@common
@pass_session
def migrate(
    session: Session,
    /,
    vm: str,
    destination: str,
    profile: str | None,
    revision: int | None,
    overrides: tuple[str, ...],
    assigned: tuple[str, ...],
    priority: int,
    no_wait: bool,
    shadow: bool,
    intent: Document | None,
    **given: object,
) -> int:
    """Migrate VM live and watch the migration.

    Options of `virsh migrate` work too, such as --parallel or --bandwidth 100 (MiB/s): they set
    tunables and override the profile, as --set does.

    With goals (--silence, --within, --slowdown, --max-bandwidth) vmtune chooses the settings and
    steers the migration: it refuses beforehand what cannot be kept, and gives up in time.
    --set and the profile win over what it would choose.

    Ctrl-C stops watching; the migration continues, or may still start. Exits 0 if it completed,
    1 if it failed, was cancelled, or its outcome is unknown.
    """
    said = from_virsh(named(given))
    body = {
        "vm": resolve(session.client, vm),
        "destination": destination,
        "profile": profile,
        "revision": revision,
        "overrides": list(overrides),
        "values": {**said.values, **parse_assignments(assigned)},
        "steps": said.steps,
        "priority": priority,
        "intent": intent,
        "shadow": shadow,
    }
    if intent is not None and session.shows_progress:
        click.echo("measuring how the guest dirties its memory, up to 20 s...", err=True)
    with _ordering(vm, measures=intent is not None):
        record = session.client.post("/migrations", body)
    id = str(record["id"])
    if no_wait:
        session.report(record, f"migration {id} started; see `vmtune migration show {id}`")
        return CLEAN
    try:
        with viewer(session.shows_progress) as shown:
            record = watch_to_end(session.client, id, shown)
    except ClientError:
        click.echo(f"The outcome is unknown; check: vmtune migration show {id}", err=True)
        raise
    except KeyboardInterrupt:
        click.echo(
            "\nStopped watching; the migration continues. "
            f"To abort it: vmtune migration abort {id}",
            err=True,
        )
        return INTERRUPTED
    session.show(record, lambda: lines(record))
    return CLEAN if record["state"] == "completed" else ERROR


def _ordering(vm: str, measures: bool) -> AbstractContextManager[None]:
    """Around the request for a migration.

    :param vm: as it was typed: a name, a UUID or the beginning of one.
    """
    does = f"measure on, for up to 20 s, and {_STARTS}" if measures else _STARTS
    which = "ID" if is_beginning(vm) else vm  # a migration is not named by the UUID of its VM
    return ordering(
        does, f"vmtune migration list --vm {vm}", f"to abort it: vmtune migration abort {which}"
    )


def downtime(record: Document) -> str:
    """How long the guest stood still, and whether that was longer than allowed."""
    took = render.milliseconds((record["totals"] or {}).get("downtime_ms"))
    if not record["downtime_exceeded"]:
        return took
    limit = render.milliseconds(record["downtime_limit_ms"])
    return click.style(f"{took}, limit {limit}: exceeded", fg="yellow")


def lines(record: Document) -> Iterator[str]:
    """A migration as people read it: how it went, then each tunable."""
    totals = record["totals"] or {}
    setup = totals.get("setup_time_ms")
    figures = [
        ("total time", render.milliseconds(totals.get("total_time_ms"))),
        ("downtime", downtime(record)),
        ("setup", "" if setup is None else render.milliseconds(setup)),
        ("transferred", render.size(totals.get("transferred_bytes"))),
        ("iterations", str(totals.get("iterations"))),
        ("silent copies", _silent_copies(totals)),
    ]
    yield from fields(
        [
            ("migration", record["id"]),
            ("vm", f"{record['vm_name']} ({record['vm']})"),
            ("from", record["source"]),
            ("to", record["destination"] or "unknown"),
            ("started by", started_by(record)),
            ("profile", render.profile(record)),
            ("overridden", ", ".join(record["overrides"])),
            ("begun", render.moment(record["created_at"])),
            ("ended", render.moment(record["ended_at"])),
            ("state", record["state"]),
            ("queue", _position(record)),
            ("abort", "" if record["abort"] == "none" else record["abort"]),
            ("reason", record["failure"]),
            *intent_fields(record["intent"]),
            ("missing flags", " ".join(record["missing_flags"])),
            *(figures if totals else ()),
            ("waited for pages", _waited(record["postcopy"])),
            ("phase", _phase(record)),
            *(
                (f"disk {disk['target']}", of_record(disk, not record["ended"]))
                for disk in record["disks"]
            ),
        ]
    )
    yield from render.problems(record["problems"], "yellow")
    if record["outcomes"]:
        yield ""
        yield from render.outcomes(record["outcomes"])
    yield from record_lines(record["step_records"])
    yield from reaper_lines(record["reaper"])


def _position(record: Document) -> str:
    """Where it stands, where it waits for its turn."""
    if not record["queued"]:
        return ""
    return f"{record['ahead']} ahead of it; waits because {record['waiting_reason']}"


def started_by(record: Document) -> str:
    """What started a migration."""
    return "vmtune" if record["trigger"] == "vmtune" else "others (observed)"


def _phase(record: Document) -> str:
    """What is sent right now, where disks come before the memory."""
    return f"sends {record['phase']}" if record["disks"] and record["phase"] else ""


def _waited(postcopy: Document | None) -> str:
    """How long the guest waited for pages after it had switched to post-copy."""
    if postcopy is None:
        return ""
    vcpus = ", ".join(render.milliseconds(each) for each in postcopy["vcpu_blocked_ms"])
    said = f"{render.milliseconds(postcopy['blocked_ms'])} all vCPUs at once; each {vcpus}"
    slowest = postcopy["latency_p99_at_most_us"]
    return said if slowest is None else f"{said}; 99 % of pages within {slowest:,} us"


def _silent_copies(totals: Document) -> str:
    missed = totals.get("missed_zero_copy", 0)
    return f"{missed:,} times" if missed else ""
