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
    "disks": "disks",
    "queues": "queues",
    "iothreads": "iothreads",
}


@click.command()
@click.option(
    "--node", "nodes", multiple=True,
    help="Type of the block node: null-co, raw, qcow2; default null-co. With --vm the name of a "
    "block node of its QEMU.",
)  # fmt: skip
@click.option(
    "--rw", multiple=True, default=["randread"], show_default=True,
    help="read, write, rw, randread, randwrite, randrw.",
)  # fmt: skip
@click.option(
    "--block-size", "sizes", multiple=True, default=["4Ki"], show_default=True,
    help="Size of a request, as in 4Ki.",
)  # fmt: skip
@click.option(
    "--iodepth", "depths", multiple=True, default=["1"], show_default=True,
    help="Requests in flight per job.",
)  # fmt: skip
@click.option(
    "--numjobs", "jobs", multiple=True, default=["1"], show_default=True, help="Number of jobs."
)
@click.option("--size", help="Size of the node, as in 1Gi.")
@click.option(
    "--runtime", type=click.IntRange(1), metavar="SECONDS", help="Measured time; default 10."
)
@click.option(
    "--ramp", type=click.IntRange(0), metavar="SECONDS",
    help="Load before the measurement; default 2.",
)  # fmt: skip
@click.option(
    "--iothread/--main-loop",
    default=None,
    help="Thread that handles the requests; default an iothread.",
)
@click.option(
    "--guest-driver", "guest", is_flag=True,
    help="Let vmtune's own guest load virtio-blk disks, instead of fio an NBD export.",
)  # fmt: skip
@click.option("--disks", multiple=True, help="With --guest-driver: number of disks; default 1.")
@click.option(
    "--queues", multiple=True, help="With --guest-driver: queues of each disk; default 1."
)
@click.option(
    "--iothreads", multiple=True,
    help="With --guest-driver: number of iothreads; more than disks need QEMU 9. Default 1.",
)  # fmt: skip
@click.option(
    "--vcpus", type=click.IntRange(1), help="With --guest-driver: the guest's vCPUs; default 1."
)
@click.option(
    "--interrupts", is_flag=True,
    help="With --guest-driver: the guest halts until a disk interrupts, instead of polling.",
)  # fmt: skip
@click.option("--kvm/--no-kvm", default=None, help="With --guest-driver: default KVM if available.")
@click.option(
    "--vm", metavar="VM",
    help="Measure a running VM instead of a new QEMU: its --node is exported read-only, or else a "
    "temporary null-co node.",
)  # fmt: skip
@click.option(
    "--in-guest", "device", metavar="DEVICE",
    help="With --vm: run fio in the guest by the guest agent; it reads this disk: /dev/vdb.",
)  # fmt: skip
@click.option("--yes", is_flag=True, help="With --vm: start without confirmation.")
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
    guest: bool,
    disks: tuple[str, ...],
    queues: tuple[str, ...],
    iothreads: tuple[str, ...],
    vcpus: int | None,
    interrupts: bool,
    kvm: bool | None,
    vm: str | None,
    device: str | None,
    yes: bool,
    no_wait: bool,
    **options: Any,
) -> int:
    """Measure block I/O of a QEMU: fio loads an NBD export of it, or a guest its disks.

    \b
      vmtune bench block --iodepth 64
      vmtune bench block --node null-co,raw --iodepth 1,8,64
      vmtune bench block --qemu qemu-7.2,system --main-loop
      vmtune bench block --guest-driver --iodepth 64 --queues 4 --numjobs 4 --iothreads 1,4
      vmtune bench block --vm web1 --node libvirt-1-format --iodepth 16
      vmtune bench block --vm web1 --in-guest /dev/vdb

    Each dimension takes a comma-separated list: every combination is measured. One
    combination on one QEMU is one run; more are a campaign in randomised blocks, where each
    QEMU is compared with the first.

    A running VM is measured with its current values, after a confirmation that shows what is
    exported and the load. This needs the scope `apply` too.

    Exits 0 if all runs completed, 1 if one failed: a QEMU that dies under load is recorded as a
    result. Ctrl-C cancels the runs.
    """
    if vm is None and device:
        raise click.UsageError("--in-guest needs --vm")
    of_guest = {"disks": disks, "queues": queues, "iothreads": iothreads}
    alone = {**of_guest, "vcpus": vcpus, "interrupts": interrupts or None, "kvm": kvm}
    given = [name for name, value in alone.items() if value not in (None, ())]
    if not guest and given:
        option = given[0]
        raise click.UsageError(f"--{option} needs --guest-driver")
    names = listed(nodes)
    target = None
    if vm is not None:
        tuned = {"--qemu": options["arms"], "--set": options["values"], "--iothread": iothread}
        check_left_out({**tuned, "--guest-driver": guest or None})
        target = target_of(session, vm, names, device)
        names = ["vm" if names or device else "null-co"]
    lists: dict[str, list[Any]] = {
        "nodes": names or ["null-co"],
        "rw": listed(rw),
        "block_size_bytes": listed(sizes),
        "iodepth": numbers(depths, "--iodepth"),
        "numjobs": numbers(jobs, "--numjobs"),
        **{name: numbers(words, f"--{name}") for name, words in of_guest.items() if words},
    }
    driver = {"vcpus": vcpus or 1, "interrupts": interrupts} if guest else None
    rest = {
        "size_bytes": size,
        "runtime_s": runtime,
        "ramp_s": ramp,
        "iothread": iothread,
        "target": target,
        "driver": driver,
    }
    asked = wanted("block", lists, _NAMES, rest, options, kvm)
    if asked.live and not confirmed(session, asked, yes):
        return ERROR
    return measure(session, asked, no_wait)
