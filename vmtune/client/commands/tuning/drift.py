"""``vmtune vm drift``."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence

import click

from vmtune.client.complete import hosts
from vmtune.client.connection.http import Client, Document
from vmtune.client.session import CLEAN, DIFFERENCES, Session, listing, pass_session
from vmtune.client.views import render
from vmtune.client.views.output import Column
from vmtune.errors import VmtuneError

_LOOK_EVERY_S = 0.25
_COLUMNS = (
    Column("NAME"),
    Column("HOST"),
    Column("PROFILE", field="tuning.profile"),
    Column("DIFFERING", field="tuning.differing", wraps=True),
    Column("SINCE", field="tuning.since", spare=1),
    Column("SEEN", field="tuning.as_of", spare=2),
)


class NotScanned(VmtuneError):
    """The requested scan did not end in time."""

    code = "not_scanned"


@click.command()
@click.option("--host", shell_complete=hosts, help="Only VMs of one host.")
@click.option("--now", is_flag=True, help="Scan all VMs first and wait for the result.")
@click.option(
    "--within", type=click.IntRange(1, 24 * 3600), default=300, metavar="SECONDS",
    show_default=True, help="How long to wait for the scan.",
)  # fmt: skip
@listing
@pass_session
def vm_drift(session: Session, host: str | None, now: bool, within: int) -> int:
    """List the VMs that drift: their values differ from their profile.

    The service scans all VMs with an application or assignment regularly (setting
    drift_scan_interval_s). This shows the last result; --now scans again.
    `vmtune verify VM` shows the details of one VM.

    Exits 2 if some VMs drift, 1 on an error.
    """
    client = session.client
    if now:
        asked = client.post("/drift-scans", {"host": host})["hosts"]
        _wait(client, asked, within)
    drifts = list(client.items("/drifts", {"host": host}))
    scans = list(client.items("/drift-scans", {"host": host}))
    document = {"items": drifts, "next": None, "scans": scans}
    session.show_list(document, _COLUMNS, _cells, "no drift in the scanned VMs",
                      lambda: ["", *_scan_lines(scans)])  # fmt: skip
    return DIFFERENCES if drifts else CLEAN


def _wait(client: Client, asked: Collection[str], within_s: float) -> None:
    """:raise NotScanned: some hosts were not scanned in time."""
    give_up_s = time.monotonic() + within_s
    while True:
        scans = client.items("/drift-scans")
        left = [scan["host"] for scan in scans if scan["pending"] and scan["host"] in asked]
        if not left:
            return
        if time.monotonic() > give_up_s:
            raise NotScanned(
                f"{len(left)} hosts were not scanned within {within_s:g} s: "
                f"{', '.join(left[:5])}{', ...' if len(left) > 5 else ''}",
                remedy="check that the services that manage them run (vmtune service list), or "
                "wait longer with --within",
            )
        time.sleep(_LOOK_EVERY_S)


def _cells(row: Document) -> tuple[str, ...]:
    tuning = row["tuning"]
    return (
        row["name"],
        row["host"],
        render.profile(tuning),
        " ".join(tuning["differing"]),
        render.moment(tuning["since"]),
        render.moment(tuning["as_of"]),
    )


def _scan_lines(scans: Sequence[Document]) -> Iterator[str]:
    made = [scan for scan in scans if scan["result"] is not None]
    if made:
        seen = sum(scan["result"]["checked"] for scan in made)
        oldest = min(scan["ended_at"] for scan in made)
        yield f"scanned {seen} VMs of {len(made)} hosts, at {render.moment(oldest)} or later"
    never = [scan["host"] for scan in scans if scan["result"] is None]
    if never:
        yield f"not scanned yet: {', '.join(never)}"
    for scan in made:
        rows = [
            {**row, "field": " ".join(filter(None, (scan["host"], row["field"])))}
            for row in scan["problems"]
        ]
        yield from render.problems(rows)
