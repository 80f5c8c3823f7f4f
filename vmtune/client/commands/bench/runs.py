"""``vmtune bench runs``, ``show`` and ``cancel``: what was measured."""

# ruff: noqa: PLC0415 - imported where needed: a command is to start in a blink

from __future__ import annotations

from collections.abc import Iterator, Mapping

import click

from vmtune.client.complete import campaigns, profiles, runs_by_id, scenarios
from vmtune.client.connection.http import Document
from vmtune.client.newest import newest_of, newest_option
from vmtune.client.resolve import RUN, resolve
from vmtune.client.session import Session, common, listing, pass_session, watchable
from vmtune.client.views import render
from vmtune.client.views.output import Column, fields, table
from vmtune.client.views.sends import sends

_SHOWN = {
    "migration": {
        "total_time_ms": "TOTAL TIME", "downtime_ms": "DOWNTIME", "guest_silence_ms": "SILENCE",
    },
    "block": {"iops": "IOPS", "latency_p99_us": "99 % LATENCY"},
    "boot": {"boot_to_kernel_ms": "TO KERNEL", "boot_to_userspace_ms": "TO USER SPACE"},
    "srcu": {"grace_period_us": "GRACE PERIOD", "srcu_boot_ms": "9,000 OF THEM"},
}  # fmt: skip
"""Of each kind of run, its columns."""


@click.command()
@click.option("--scenario", shell_complete=scenarios, help="Only runs of one scenario.")
@click.option("--family", help="Only runs of one family of scenarios.")
@click.option("--profile", shell_complete=profiles, help="Only runs of one profile.")
@click.option(
    "--state", "states", multiple=True, help="Only in this state, such as completed or queued."
)
@click.option("--fingerprint", help="Only runs of one environment.")
@click.option("--campaign", shell_complete=campaigns, help="Only runs of one campaign.")
@click.option("--search", help="Only with this part in the scenario, arm or profile.")
@newest_option
@listing
@pass_session
def runs(
    session: Session,
    scenario: str | None,
    family: str | None,
    profile: str | None,
    states: tuple[str, ...],
    fingerprint: str | None,
    campaign: str | None,
    search: str | None,
    newest: int,
) -> None:
    """List the runs, newest first."""
    query = {
        "scenario": scenario,
        "family": family,
        "profile": profile,
        "state": list(states),
        "fingerprint": fingerprint,
        "campaign": campaign,
        "search": search,
    }
    rows = newest_of(session, "/runs", query, newest)
    kinds = {row["kind"] for row in rows} or {"migration"}
    shown = {n: t for kind, metrics in _SHOWN.items() if kind in kinds for n, t in metrics.items()}
    columns = (
        Column("RUN", id=True, field="id"),
        Column("SCENARIO"),
        Column("PROFILE", spare=1),
        Column("STATE"),
        *(Column(title, right=True, field=f"metrics.{name}") for name, title in shown.items()),
        Column("BEGUN", field="created_at", spare=2),
        Column("ENVIRONMENT", field="fingerprint", spare=3),
    )

    def cells(row: Document) -> tuple[str, ...]:
        return (
            row["id"],
            row["scenario"],
            render.profile(row),
            row["state"],
            *(render.metric(name, row["metrics"].get(name)) for name in shown),
            render.moment(row["created_at"]),
            row["fingerprint"] or "",
        )

    session.show_list({"items": rows, "next": None}, columns, cells, "no runs")


@click.command()
@click.argument("id", metavar="RUN", shell_complete=runs_by_id)
@watchable
@pass_session
def show(session: Session, id: str) -> None:
    """Show a run: its metrics and conditions."""
    record = session.client.get(f"/runs/{resolve(session.client, id, RUN)}")
    session.show(record, lambda: lines(record))


def lines(record: Document) -> Iterator[str]:
    """A run as people read it."""
    slot, ahead = record["slot"], record["ahead"]
    yield from fields(
        [
            ("run", record["id"]),
            ("scenario", record["scenario"]),
            ("what", record["setup"].get("title", "")),
            ("profile", render.profile(record)),
            ("values", ", ".join(f"{k} {v}" for k, v in record["texts"].items())),
            ("testbed", _where(record)),
            ("campaign", f"{slot['campaign']}, {slot['arm']}" if slot else ""),
            ("block", f"{slot['block']}, position {slot['position']}" if slot else ""),
            ("imported", record["imported_from"]),
            ("created", render.moment(record["created_at"])),
            ("begun", render.moment(record["started_at"])),
            ("ended", render.moment(record["ended_at"])),
            ("state", record["state"]),
            ("queued ahead", "" if ahead is None else f"{ahead} runs"),
            ("reason", record["failure"]),
        ]
    )
    if record["metrics"]:
        yield ""
        yield from _metrics(record["metrics"])
    if record["record"]:
        yield from _record(record["record"])
    yield from _environment(record)


def _where(record: Document) -> str:
    """``direct, QEMU system, on rack1``, as far as it is known."""
    parts = (
        _vm(record["vm"]) if record["vm"] else record["testbed"],
        f"QEMU {record['qemu']}" if record["qemu"] else "",
        f"on {record['host']}" if record["host"] else "",
    )
    return ", ".join(part for part in parts if part)


def _vm(vm: Document) -> str:
    """``VM web1 of rack1 (its node libvirt-1-format)``."""
    what = f"its node {vm['node']}" if vm["node"] else "a temporary null-co node"
    if vm["device"]:
        what = f"{vm['device']} in its guest"
    return f"VM {vm['name']} of {vm['host']} ({what})"


def _metrics(metrics: Mapping[str, float]) -> Iterator[str]:
    from vmtune.bench.model.metrics.table import METRICS

    columns = (Column("METRIC"), Column("VALUE", right=True), Column("WHAT", wraps=True))
    cells = [
        (name, render.metric(name, value), METRICS[name].title if name in METRICS else "")
        for name, value in metrics.items()
    ]
    yield from table(columns, cells, "no metrics")


def _record(record: Document) -> Iterator[str]:
    if record["boot"]:
        yield ""
        yield from _boot(record["boot"])
    if record["outcomes"]:
        yield ""
        yield from render.outcomes(record["outcomes"])
    loads = record["loads"]
    if loads:
        yield ""
        shares = [each["cpu_ms"] / max(1, loads["wall_ms"]) for each in loads["processes"]]
        got = ", ".join(f"{share:.0%}" for share in shares)
        dead = sum(not each["alive"] for each in loads["processes"])
        ended = f"; {dead} ended" if dead else ""
        yield from fields([("host load", loads["kind"]), ("each had of a CPU", f"{got}{ended}")])
    if record["sends"]:
        yield ""
        yield from sends(record["sends"])
    reaper = record["reaper"]
    if reaper:
        yield ""
        exits = reaper["ring_full_exits"]
        yield from fields(
            [
                ("reaper", reaper["policy"]),
                ("ring", f"{reaper['ring_entries']:,} entries a vCPU"),
                ("ended", f"{reaper['end']} {reaper['reason']}".strip()),
                ("full rings", f"in {reaper['filled_rounds']:,} rounds"),
                ("ring-full exits", "not counted" if exits is None else f"{exits:,}"),
            ]
        )
    if record["steps"]:
        yield ""
        columns = (
            Column("AT", right=True),
            Column("STEP", wraps=True),
            Column("BECAUSE", wraps=True),
            Column("EFFECT"),
        )
        cells = [
            (f"{step['at_ms']:,} ms", step["action"], step["reason"], step["effect"])
            for step in record["steps"]
        ]
        yield from table(columns, cells, "no steps")


def _boot(boot: Document) -> Iterator[str]:
    """The marks of a boot, and what it booted."""
    columns = (Column("REACHED"), Column("AT", right=True), Column("REGION UPDATES", right=True))
    cells = [
        (
            mark["name"],
            f"{mark['at_ms']:,.0f} ms",
            "-" if mark["region_updates"] is None else f"{mark['region_updates']:,}",
        )
        for mark in boot["marks"]
    ]
    yield from table(columns, cells, "no boot marks")
    yield ""
    yield from fields(
        [("ended", boot["end"]), ("guest", boot["kernel"]), ("firmware", boot["firmware"])]
    )


def _environment(record: Document) -> Iterator[str]:
    environment = record["environment"]
    if not environment:
        return
    cpu, load = environment.get("cpu", {}), record["conditions"].get("load_1min")
    pairs = [
        ("environment", record["fingerprint"] or ""),
        ("accelerator", environment.get("accelerator", "").upper()),
        ("cpu", f"{cpu.get('count')} x {cpu.get('model')}"),
        ("kernel", environment.get("kernel", {}).get("release", "")),
        ("qemu", environment.get("qemu", {}).get("version", "")),
        ("libvirt", environment.get("libvirt", "")),
        ("fio", environment.get("fio", "")),
        ("network", environment.get("network", {}).get("kind", "")),
        ("load before", "" if load is None else f"{load:g}"),
    ]
    yield ""
    yield from fields(pairs)


@click.command()
@click.argument("id", metavar="RUN", shell_complete=runs_by_id)
@common
@pass_session
def cancel(session: Session, id: str) -> None:
    """Cancel a queued or running run.

    Its processes are stopped; the run is kept as cancelled.
    """
    record = session.client.delete(f"/runs/{resolve(session.client, id, RUN)}")
    session.report(record, f"requested cancellation of run {id}; it is {record['state']}")
