"""``vmtune bench srcu``: measure what updates of a VM's memory map cost."""

from __future__ import annotations

from typing import Any

import click

from vmtune.client.commands.bench.alone import measure, numbers, repeated, wanted
from vmtune.client.session import Session


@click.command()
@click.option(
    "--vcpus", multiple=True, default=["1"], show_default=True,
    help="Number of vCPUs that spin meanwhile.",
)  # fmt: skip
@click.option(
    "--updates", type=click.IntRange(2),
    help="Additions and deletions of a memory slot together; default 2000.",
)  # fmt: skip
@click.option("--max-seconds", type=click.IntRange(1), help="Timeout of a run; default 30.")
@repeated
def srcu(
    session: Session,
    vcpus: tuple[str, ...],
    updates: int | None,
    max_seconds: int | None,
    no_wait: bool,
    **options: Any,
) -> int:
    """Measure what updates of a VM's memory map cost: KVM waits for SRCU grace periods at each.

    \b
      vmtune bench srcu
      vmtune bench srcu --vcpus 1,2,4 --blocks 10

    Several numbers of vCPUs, or --blocks, are a campaign. It needs KVM and no QEMU.

    Exits 0 if all updates were timed, 2 if a run reached its timeout, 1 if one failed. Ctrl-C
    cancels the runs.
    """
    rest = {"updates": updates, "max_seconds": max_seconds}
    lists = {"vcpus": numbers(vcpus, "--vcpus")}
    asked = wanted("srcu", lists, {"vcpus": "vcpus"}, rest, {"arms": (), "values": (), **options})
    return measure(session, asked, no_wait)
