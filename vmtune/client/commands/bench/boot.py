"""``vmtune bench boot``: measure how long a VM takes to boot."""

from __future__ import annotations

from typing import Any

import click

from vmtune.client.commands.bench.alone import listed, measure, numbers, shared, wanted
from vmtune.client.session import Session

_NAMES = {
    "guests": "guest",
    "firmware": "firmware",
    "accelerators": "accelerator",
    "vcpus": "vcpus",
    "memory_bytes": "memory_bytes",
    "acpi": "acpi",
    "bridges": "bridges",
    "devices": "devices",
    "remaps": "remaps",
}


@click.command()
@click.option(
    "--guest", "guests", multiple=True, default=["project"], show_default=True,
    help="Guest that boots: project, linux.",
)  # fmt: skip
@click.option(
    "--firmware", multiple=True, default=["seabios"], show_default=True,
    help="seabios, ovmf; OVMF cannot boot the project's guest.",
)  # fmt: skip
@click.option(
    "--accelerator", "accelerators", multiple=True, default=["kvm"], show_default=True,
    help="kvm, tcg.",
)  # fmt: skip
@click.option("--vcpus", multiple=True, default=["1"], show_default=True, help="Number of vCPUs.")
@click.option(
    "--memory", "memories", multiple=True, default=["512Mi"], show_default=True,
    help="Memory of the VM, as in 512Mi.",
)  # fmt: skip
@click.option(
    "--acpi", "acpis", multiple=True, default=["on"], show_default=True,
    help="Whether the machine has ACPI: on, off.",
)  # fmt: skip
@click.option(
    "--bridges", multiple=True, default=["0"], show_default=True, help="Number of PCI bridges."
)
@click.option(
    "--devices", multiple=True, default=["0"], show_default=True,
    help="Number of PCI devices with a memory of their own.",
)  # fmt: skip
@click.option(
    "--remaps", multiple=True, default=["0"], show_default=True,
    help="How often the project's guest maps the memory of a device again.",
)  # fmt: skip
@click.option(
    "--count-regions/--no-count-regions", default=None,
    help="Count the updates of KVM's memory regions; default yes.",
)  # fmt: skip
@click.option("--max-seconds", type=click.IntRange(1), help="Timeout of a boot; default 300.")
@shared
def boot(
    session: Session,
    guests: tuple[str, ...],
    firmware: tuple[str, ...],
    accelerators: tuple[str, ...],
    vcpus: tuple[str, ...],
    memories: tuple[str, ...],
    acpis: tuple[str, ...],
    bridges: tuple[str, ...],
    devices: tuple[str, ...],
    remaps: tuple[str, ...],
    count_regions: bool | None,
    max_seconds: int | None,
    no_wait: bool,
    **options: Any,
) -> int:
    """Measure how long a VM takes to boot: to its first instruction, to its kernel, to user space.

    \b
      vmtune bench boot
      vmtune bench boot --guest linux --firmware seabios,ovmf --blocks 10

    Each dimension takes a comma-separated list: every possible combination is measured.
    One combination on one QEMU is one run; more, or with --blocks, are a campaign.

    Exits 0 if all VMs booted, 2 if one timed out, 1 if one failed. Ctrl-C cancels the runs.
    """
    lists: dict[str, list[Any]] = {
        "guests": listed(guests),
        "firmware": listed(firmware),
        "accelerators": listed(accelerators),
        "vcpus": numbers(vcpus, "--vcpus"),
        "memory_bytes": listed(memories),
        "acpi": _switches(acpis),
        "bridges": numbers(bridges, "--bridges"),
        "devices": numbers(devices, "--devices"),
        "remaps": numbers(remaps, "--remaps"),
    }
    rest = {"count_regions": count_regions, "max_seconds": max_seconds}
    return measure(session, wanted("boot", lists, _NAMES, rest, options), no_wait)


def _switches(words: tuple[str, ...]) -> list[bool]:
    """``on,off`` as true and false."""
    known = {"on": True, "off": False}
    if unknown := [word for word in listed(words) if word not in known]:
        raise click.BadParameter(f"{unknown[0]!r} is neither on nor off: --acpi")
    return [known[word] for word in listed(words)]
