"""``vmtune plan``: what would be set, and what stands against it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from vmtune.client.complete import hosts, profiles, vms
from vmtune.client.connection.http import Document
from vmtune.client.intent_options import intent_options
from vmtune.client.session import CLEAN, DIFFERENCES, Session, common, pass_session
from vmtune.client.views import render
from vmtune.client.views.controllers import step_lines
from vmtune.client.views.intent import intent_plan_lines
from vmtune.client.views.output import Column, paint, prose, remedy, table
from vmtune.client.vms import resolve

_WHEN = {
    "at the next migration": "next migration",
    "at the VM's next start": "next start",
}


@click.command()
@click.argument("vm", shell_complete=vms)
@click.option("--profile", shell_complete=profiles, help="Profile instead of the assigned one.")
@click.option("--revision", type=click.IntRange(min=1), help="Older revision of the profile.")
@click.option("--to", "destination", shell_complete=hosts, help="Plan a migration to this host.")
@intent_options
@common
@pass_session
def plan(
    session: Session,
    vm: str,
    profile: str | None,
    revision: int | None,
    destination: str | None,
    intent: Document | None,
) -> int:
    """Show what would change on VM, and what blocks it. Changes nothing.

    With goals (--silence, --within, ...) and --to: which settings would be chosen for them and
    why, whether they are expected to be kept, and else the nearest that can.

    Exits 0 if nothing would change, 2 if something would or there is a blocker, 1 on an
    error.
    """
    body = {"profile": profile, "revision": revision, "destination": destination, "intent": intent}
    uuid = resolve(session.client, vm)
    document = session.client.post(f"/vms/{uuid}/plan", body)
    session.show(document, lambda: lines(document))
    return CLEAN if document["clean"] else DIFFERENCES


def lines(document: Document) -> Iterator[str]:
    """The plan as people read it: what for, each tunable, then the findings."""
    to = f" to {document['destination']}" if document["destination"] else ""
    yield f"{document['vm_name']} on {document['host']}{to}, profile {render.profile(document)}"
    yield ""
    columns = (
        Column("TUNABLE"),
        Column("CURRENT", right=True),
        Column("WANTED", right=True),
        Column("ROUTE"),
        Column("WHEN"),
        Column("OVERWRITTEN BY", wraps=True, spare=1),
    )
    cells = [_cells(item) for item in document["items"]]
    yield from table(columns, cells, "nothing to set")
    yield from step_lines(document["step_texts"])
    yield from _disk_lines(document["disks"])
    yield from intent_plan_lines(document["intent"])
    for finding in document["findings"]:
        yield ""
        yield from finding_lines(finding)
    yield ""
    yield _verdict(document)


def _disk_lines(disks: Sequence[Document]) -> Iterator[str]:
    """The local disks that are copied along; nothing where there are none."""
    if not disks:
        return
    yield ""
    for disk in disks:
        taken, whole = render.size(disk["allocated_bytes"]), render.size(disk["capacity_bytes"])
        yield f"copies disk {disk['target']}: {disk['path']}, {taken} of {whole}"


def _cells(item: Document) -> tuple[str, ...]:
    current = item["current"]
    parts = current["part_texts"]
    differ = current["value"] is None and parts
    now = ", ".join(f"{part} {text}" for part, text in parts.items()) if differ else ""
    when = _WHEN.get(str(item["takes_effect"]), str(item["takes_effect"]))
    wanted = str(item["wanted"]["text"])
    # What vmtune does itself is set nowhere.
    seen = "-" if item["route"] == "control" else now or str(current["text"])
    return item["tunable"], seen, wanted, item["route"], when, item["overwriter"]


def finding_lines(finding: Document) -> Iterator[str]:
    """A finding and its remedy: blockers red, warnings yellow."""
    blocks = finding["severity"] == "blocker"
    where = f"{finding['tunable']}: " if finding["tunable"] else ""
    word = paint(f"{finding['severity']} {finding['code']}", "red" if blocks else "yellow")
    first, *more = prose(f"{finding['severity']} {finding['code']}: {where}{finding['message']}")
    yield first.replace(f"{finding['severity']} {finding['code']}", word, 1)
    yield from more
    if finding["remedy"]:
        yield from remedy(finding["remedy"])


def _verdict(document: Document) -> str:
    blockers = sum(finding["severity"] == "blocker" for finding in document["findings"])
    changes = sum(bool(item["differs"]) for item in document["items"])
    if blockers:
        return f"{_count(blockers, 'blocker')}; {_count(changes, 'value')} would change"
    return f"{_count(changes, 'value')} would change" if changes else "nothing would change"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
