"""``vmtune bench block``: measure block I/O of a QEMU."""

from __future__ import annotations

from typing import Any

import click

from vmtune.client.commands.bench_alone import listed, measure, numbers, shared, wanted
from vmtune.client.session import Session

_NAMES = {
    "nodes": "node",
    "rw": "rw",
    "block_size_bytes": "block_size_bytes",
    "iodepth": "iodepth",
    "numjobs": "numjobs",
}


@click.command()
@click.option(
    "--node", "nodes", multiple=True, default=["null-co"], show_default=True,
    help="What serves the blocks: null-co, raw, qcow2.",
)  # fmt: skip
@click.option(
    "--rw", multiple=True, default=["randread"], show_default=True,
    help="read, write, rw, randread, randwrite, randrw.",
)  # fmt: skip
@click.option(
    "--block-size", "sizes", multiple=True, default=["4Ki"], show_default=True,
    help="Of a request, as in 4Ki.",
)  # fmt: skip
@click.option(
    "--iodepth", "depths", multiple=True, default=["1"], show_default=True,
    help="Requests of a job at once.",
)  # fmt: skip
@click.option("--numjobs", "jobs", multiple=True, default=["1"], show_default=True, help="Jobs.")
@click.option("--size", help="Of the node, as in 1Gi.")
@click.option("--runtime", type=click.IntRange(1), metavar="SECONDS", help="How long; 10 usually.")
@click.option(
    "--ramp", type=click.IntRange(0), metavar="SECONDS",
    help="Load before the figures count; 2 usually.",
)  # fmt: skip
@click.option(
    "--iothread/--main-loop", default=None, help="What handles the requests; an iothread usually."
)
@shared
def block(
    session: Session,
    nodes: tuple[str, ...],
    rw: tuple[str, ...],
    sizes: tuple[str, ...],
    depths: tuple[str, ...],
    jobs: tuple[str, ...],
    size: str | None,
    runtime: int | None,
    ramp: int | None,
    iothread: bool | None,
    no_wait: bool,
    **options: Any,
) -> int:
    """Measure block I/O of a QEMU: fio loads a node that it exports by NBD.

    \b
      vmtune bench block --iodepth 64
      vmtune bench block --node null-co,raw --iodepth 1,8,64
      vmtune bench block --qemu qemu-7.2,system --main-loop

    Each dimension takes a list, separated by commas: every combination is measured. One
    combination on one QEMU is one run; more are a campaign, in blocks of another order each,
    where each QEMU is compared with the first.

    Exits 0 where all runs completed, 1 where one failed: a QEMU that dies under its load is a
    result, and recorded. Ctrl-C cancels what is under way.
    """
    lists: dict[str, list[Any]] = {
        "nodes": listed(nodes),
        "rw": listed(rw),
        "block_size_bytes": listed(sizes),
        "iodepth": numbers(depths, "--iodepth"),
        "numjobs": numbers(jobs, "--numjobs"),
    }
    rest = {"size_bytes": size, "runtime_s": runtime, "ramp_s": ramp, "iothread": iothread}
    return measure(session, wanted("block", lists, _NAMES, rest, options), no_wait)
