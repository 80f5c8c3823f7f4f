"""``vmtune bench migration``: measure live migrations of fresh VMs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from vmtune.client.commands.bench.files import write
from vmtune.client.commands.bench.scenarios import offered
from vmtune.client.complete import assignments, profiles, qemus, scenarios
from vmtune.client.connection.errors import ClientError, Refused
from vmtune.client.connection.http import Document, segment
from vmtune.client.session import (
    CLEAN,
    DIFFERENCES,
    ERROR,
    INTERRUPTED,
    Session,
    common,
    pass_session,
)
from vmtune.client.values import parse_assignments
from vmtune.client.views import render
from vmtune.client.views.bench_tables import results
from vmtune.client.views.progress import RunProgression, viewer
from vmtune.client.watch import RUN, watch_to_end
from vmtune.errors import InvalidInput

_MAX_REPEATS = 1000
_SAYS_NO = (409, 422)
"""Statuses of a scenario that cannot run here, or not with the given values."""
_SUCCEEDED = {"completed", "ended as planned"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What each run is to be made with.

    :param body: what all orders have in common.
    """

    body: dict[str, Any]  # any JSON
    scenarios: Sequence[Document]
    repeat: int

    @property
    def orders(self) -> list[Document]:
        """One for each run: all scenarios in turn, so often as they are repeated."""
        return [
            {**self.body, "scenario": scenario["name"]}
            for _ in range(self.repeat)
            for scenario in self.scenarios
        ]


@click.command()
@click.argument("names", nargs=-1, metavar="[SCENARIO]...", shell_complete=scenarios)
@click.option(
    "--family", "families", multiple=True, help="All scenarios of a family; * matches any text."
)
@click.option("--quick", is_flag=True, help="Small VMs; of families only the quick selection.")
@click.option(
    "--profile", shell_complete=profiles, help="Profile whose values override each scenario's."
)
@click.option("--revision", type=click.IntRange(min=1), help="Older revision of the profile.")
@click.option(
    "--set",
    "values",
    multiple=True,
    metavar="TUNABLE=VALUE",
    shell_complete=assignments,
    help="Value that overrides scenario and profile; may be repeated.",
)
@click.option(
    "--qemu", metavar="NAME", shell_complete=qemus, help="QEMU of the service's settings."
)
@click.option(
    "--testbed",
    type=click.Choice(("direct", "lab")),
    default="direct",
    show_default=True,
    help="Two QEMUs on this machine, or the lab's libvirt hosts.",
)
@click.option("--kvm/--no-kvm", default=None, help="Default: KVM if available.")
@click.option(
    "--repeat",
    type=click.IntRange(1, _MAX_REPEATS),
    default=1,
    show_default=True,
    help="How often to run all scenarios.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the plots of the run as HTML; numbered for several runs.",
)
@click.option("--no-wait", is_flag=True, help="Start the runs and return; see `bench runs`.")
@common
@pass_session
def migration(
    session: Session,
    names: tuple[str, ...],
    families: tuple[str, ...],
    quick: bool,
    profile: str | None,
    revision: int | None,
    values: tuple[str, ...],
    qemu: str | None,
    testbed: str,
    kvm: bool | None,
    repeat: int,
    plot: Path | None,
    no_wait: bool,
) -> int:  # fmt: skip
    """Measure live migrations of new VMs.

    Without SCENARIO or --family it runs the quick selection: one or more scenarios of each
    family, with small VMs. Scenarios that cannot run on this machine are skipped, with the
    reason.

    Exits 0 if all migrations completed, 2 if one did not converge, 1 if one failed or none
    could run. Ctrl-C cancels the current run and starts no more.
    """  # fmt: skip
    small = quick or not (names or families)
    everything = offered(session, [*names, *families], small, qemu, kvm, testbed, "migration")
    body = {
        "profile": profile,
        "revision": revision,
        "values": parse_assignments(values),
        "qemu": qemu or "",
        "testbed": testbed,
        "kvm": kvm,
    }
    wanted = Wanted(body, [row for row in everything if row["applicable"]], repeat)
    skipped = [row for row in everything if not row["applicable"]]
    if not wanted.scenarios:
        _nothing(skipped)
    if no_wait:
        return _ordered(session, wanted, skipped)
    records: list[Document] = []
    try:
        for record in _measure(session, wanted, skipped):
            records.append(record)
            _plot(session, record, plot, len(records) if len(wanted.orders) > 1 else 0)
    except KeyboardInterrupt:
        _show(session, records, skipped)
        return INTERRUPTED
    if not records:
        _nothing(skipped)
    _show(session, records, skipped)
    return _code(records)


def _nothing(skipped: Sequence[Document]) -> None:
    """:raise InvalidInput: always, with each reason."""
    reasons = [f"{row['name']}: {row['reason']}" for row in skipped]
    raise InvalidInput(
        "none of these scenarios can run here: " + "; ".join(reasons),
        field="scenario",
        code="not_applicable",
        remedy="`vmtune bench scenarios` shows which can",
    )


def _ordered(session: Session, wanted: Wanted, skipped: Sequence[Document]) -> int:
    rows = [session.client.post("/runs", order) for order in wanted.orders]
    document = {"items": rows, "skipped": list(skipped)}
    session.report(document, f"started {len(rows)} runs; see `vmtune bench runs`")
    return CLEAN


def _measure(session: Session, wanted: Wanted, skipped: list[Document]) -> Iterator[Document]:
    """Each run's record, once it has ended. What the service refuses with these values is
    added to *skipped*, once, and the others continue."""
    orders = wanted.orders
    refused: set[str] = set()
    for number, order in enumerate(orders, 1):
        name = str(order["scenario"])
        if name in refused:
            continue
        title = f"{number} of {len(orders)}  {name}"
        try:
            id = str(session.client.post("/runs", order)["id"])
        except Refused as error:
            if error.status not in _SAYS_NO:
                raise
            refused.add(name)
            skipped.append({"name": name, "reason": str(error)})
            continue
        try:
            with viewer(session.shows_progress, RunProgression(title)) as shown:
                record = watch_to_end(session.client, id, shown, kind=RUN)
        except ClientError:
            click.echo(f"The outcome is unknown; check: vmtune bench show {id}", err=True)
            raise
        except KeyboardInterrupt:
            with contextlib.suppress(ClientError):  # it has just ended
                session.client.delete(f"/runs/{segment(id)}")
            click.echo(f"\nrun {id} is cancelled; no more are started", err=True)
            raise
        if session.shows_progress:
            click.echo(f"{title}  {_summary(record)}", err=True)
        yield record


def _summary(record: Document) -> str:
    """A run that has ended, in a line."""
    total = record["metrics"].get("total_time_ms")
    took = f" in {render.metric('total_time_ms', total)}" if total is not None else ""
    return f"{record['state']}{took}" + (f": {record['failure']}" if record["failure"] else "")


def _plot(session: Session, record: Document, file: Path | None, number: int) -> None:
    if file is None:
        return
    name = f"{file.stem}-{number}{file.suffix}" if number else file.name
    write(file.with_name(name), session.client.download(f"/runs/{segment(record['id'])}/plot"))


def _show(session: Session, records: Sequence[Document], skipped: Sequence[Document]) -> None:
    document = {"items": list(records), "skipped": list(skipped)}
    session.show(document, lambda: results(records, skipped))


def _code(records: Sequence[Document]) -> int:
    states = {record["state"] for record in records}
    if states <= _SUCCEEDED:
        return CLEAN
    return DIFFERENCES if states <= _SUCCEEDED | {"not converged"} else ERROR
