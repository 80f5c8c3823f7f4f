"""``vmtune bench block``: measure block I/O of a QEMU."""

from __future__ import annotations

from typing import Any

import click

from vmtune.client.commands.bench.alone import listed, measure, numbers, shared, wanted
from vmtune.client.commands.bench.live import check_left_out, confirmed, target_of
from vmtune.client.session import ERROR, Session

_NAMES = {
    "nodes": "node",
    "rw": "rw",
    "block_size_bytes": "block_size_bytes",
    "iodepth": "iodepth",
    "numjobs": "numjobs",
}


@click.command()
@click.option(
    "--node", "nodes", multiple=True,
    help="What serves the blocks: null-co, raw, qcow2; null-co where none is named. With --vm the "
    "name of a block node of its QEMU.",
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
@click.option(
    "--vm", metavar="VM",
    help="A VM that runs, instead of a QEMU that is started: its --node is exported read-only, or "
    "a null-co node that is made for it.",
)  # fmt: skip
@click.option(
    "--in-guest", "device", metavar="DEVICE",
    help="With --vm: let its guest agent run fio, which reads this disk there: /dev/vdb.",
)  # fmt: skip
@click.option("--yes", is_flag=True, help="With --vm: load it without asking.")
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
    vm: str | None,
    device: str | None,
    yes: bool,
    no_wait: bool,
    **options: Any,
) -> int:
    """Measure block I/O of a QEMU: fio loads a node that it exports by NBD.

    \b
      vmtune bench block --iodepth 64
      vmtune bench block --node null-co,raw --iodepth 1,8,64
      vmtune bench block --qemu qemu-7.2,system --main-loop
      vmtune bench block --vm web1 --node libvirt-1-format --iodepth 16
      vmtune bench block --vm web1 --in-guest /dev/vdb

    Each dimension takes a list, separated by commas: every combination is measured. One
    combination on one QEMU is one run; more are a campaign, in blocks of another order each,
    where each QEMU is compared with the first.

    A VM that runs is measured as it is, after a question that says what is exported and what load
    it gets. It takes the scope `apply` as well.

    Exits 0 where all runs completed, 1 where one failed: a QEMU that dies under its load is a
    result, and recorded. Ctrl-C cancels what is under way.
    """
    if vm is None and device:
        raise click.UsageError("--in-guest takes --vm")
    names = listed(nodes)
    target = None
    if vm is not None:
        tuned = {"--qemu": options["arms"], "--set": options["values"], "--iothread": iothread}
        check_left_out(tuned)
        target = target_of(session, vm, names, device)
        names = ["vm" if names or device else "null-co"]
    lists: dict[str, list[Any]] = {
        "nodes": names or ["null-co"],
        "rw": listed(rw),
        "block_size_bytes": listed(sizes),
        "iodepth": numbers(depths, "--iodepth"),
        "numjobs": numbers(jobs, "--numjobs"),
    }
    rest = {
        "size_bytes": size,
        "runtime_s": runtime,
        "ramp_s": ramp,
        "iothread": iothread,
        "target": target,
    }
    asked = wanted("block", lists, _NAMES, rest, options)
    if asked.live and not confirmed(session, asked, yes):
        return ERROR
    return measure(session, asked, no_wait)
