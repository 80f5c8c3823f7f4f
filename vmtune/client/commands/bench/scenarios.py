"""``vmtune bench scenarios`` and ``metrics``: what can be measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from vmtune.client.complete import metric_names, qemus
from vmtune.client.complete import scenarios as complete_scenarios
from vmtune.client.connection.http import Document, segment
from vmtune.client.session import Session, listing, pass_session
from vmtune.client.views.output import Column, fields


@click.command()
@click.argument("patterns", nargs=-1, metavar="[SCENARIO]...", shell_complete=complete_scenarios)
@click.option("--quick", is_flag=True, help="Only the quick selection, with small VMs.")
@click.option(
    "--qemu", metavar="NAME", shell_complete=qemus, help="QEMU of the service's settings."
)
@click.option("--kvm/--no-kvm", default=None, help="Whether runs use KVM.")
@listing
@pass_session
def scenarios(
    session: Session, patterns: tuple[str, ...], quick: bool, qemu: str | None, kvm: bool | None
) -> None:
    """List the scenarios, and which can run here.

    SCENARIO is a family or a scenario; * matches any text. Default: all.
    """
    rows = offered(session, patterns, quick, qemu, kvm)
    columns = (
        Column("SCENARIO", field="name"),
        Column("WHAT", field="title", wraps=True),
        Column("RUNS HERE", field="applicable"),
        Column("WHY NOT", field="reason", wraps=True),
    )

    def cells(row: Document) -> tuple[str, ...]:
        return row["name"], row["title"], "yes" if row["applicable"] else "no", row["reason"]

    session.show_list({"items": rows, "next": None}, columns, cells, "no scenarios")


def offered(
    session: Session,
    patterns: Sequence[str],
    quick: bool,
    qemu: str | None,
    kvm: bool | None,
    testbed: str | None = None,
    kind: str | None = None,
) -> list[Document]:
    """Scenarios as the service offers them."""
    query = {
        "kind": kind,
        "testbed": testbed,
        "family": list(patterns),
        "quick": "true" if quick else None,
        "qemu": qemu,
        "kvm": None if kvm is None else str(kvm).lower(),
    }
    return list(session.client.items("/scenarios", query))


@click.command()
@click.argument("name", required=False, shell_complete=metric_names)
@listing
@pass_session
def metrics(session: Session, name: str | None) -> None:
    """List the metrics of a run and their meaning."""
    if name is not None:
        row = session.client.get(f"/run-metrics/{segment(name)}")
        session.show(row, lambda: _metric(row))
        return
    rows = list(session.client.items("/run-metrics"))
    session.show_list({"items": rows, "next": None}, _METRIC_COLUMNS, _metric_cells, "no metrics")


def _metric(row: Document) -> Iterator[str]:
    yield from fields(
        [
            ("metric", row["name"]),
            ("title", row["title"]),
            ("unit", row["unit"].replace("_per_", "/")),
            ("better", row["better"]),
            ("about", row["group"]),
        ]
    )
    yield ""
    yield row["description"]


_METRIC_COLUMNS = (
    Column("METRIC", field="name"),
    Column("TITLE"),
    Column("UNIT"),
    Column("BETTER"),
    Column("MEASURES", wraps=True, field="description", spare=1),
)


def _metric_cells(row: Document) -> tuple[str, ...]:
    return (
        row["name"],
        row["title"],
        row["unit"].replace("_per_", "/"),
        "" if row["better"] == "none" else row["better"],
        row["description"],
    )
