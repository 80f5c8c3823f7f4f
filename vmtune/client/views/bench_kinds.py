"""Tables of runs of blocks, of boots and of updates of memory maps: what was measured, by scenario
and by QEMU or arm."""

# ruff: noqa: PLC0415 - imported where needed: a command is to start in a blink

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from vmtune.client.connection.http import Document
from vmtune.client.views.bench_tables import cell, states
from vmtune.client.views.output import Column, table

_LOAD = {
    "iops": "IOPS",
    "latency_mean_us": "MEAN",
    "latency_p50_us": "50 %",
    "latency_p99_us": "99 %",
    "latency_p999_us": "99.9 %",
    "qemu_cpu_us_per_io": "CPU PER I/O",
}
_MEMORY = {"maps": ("maps", ""), "VSZ": ("vsz", "_bytes"), "RSS": ("rss", "_bytes")}
_FIRST = (True, False, False)
_PHASES = ("before", "during", "after")
_BOOT = {
    "boot_to_guest_ms": "TO GUEST",
    "boot_to_kernel_ms": "TO KERNEL",
    "boot_to_userspace_ms": "TO USER SPACE",
    "boot_firmware_ms": "FIRMWARE",
    "boot_loading_ms": "LOADING",
    "boot_kernel_ms": "KERNEL",
    "memory_region_updates": "REGION UPDATES",
}
_UPDATES = {
    "grace_period_us": "GRACE PERIOD",
    "srcu_boot_ms": "9,000 OF THEM",
    "slot_add_us": "ADD A SLOT",
    "slot_add_p99_us": "99 %",
    "slot_delete_us": "DELETE IT",
    "slot_delete_p99_us": "99 % ",
    "idle_grace_period_us": "NO VCPU RUNS",
}
_FIGURES = {"block": _LOAD, "boot": _BOOT, "srcu": _UPDATES}
_SPARE = (
    "slot_add_p99_us",
    "slot_delete_p99_us",
    "latency_mean_us",
    "boot_firmware_ms",
    "boot_loading_ms",
    "boot_kernel_ms",
)
"""Left out on a narrow terminal."""

Groups = Mapping[tuple[str, str], Sequence[Document]]


def measured(kind: str, records: Sequence[Document]) -> Iterator[str]:
    """A row for each scenario and QEMU or arm: medians, with the smallest and the largest where
    there are several runs."""
    groups: dict[tuple[str, str], list[Document]] = {}
    for record in records:
        arm = record["slot"]["arm"] if record["slot"] else record["qemu"]
        if record["vm"]:
            arm = f"VM {record['vm']['name']}"
        groups.setdefault((record["scenario"], arm), []).append(record)
    yield from _figures(groups, _FIGURES[kind])
    if kind == "block":
        yield ""
        yield from _memory(groups)
    if any(len(runs) > 1 for runs in groups.values()):
        yield "Medians, with minimum and maximum in parentheses."
    for (scenario, arm), runs in groups.items():
        for reason in dict.fromkeys(run["failure"] for run in runs if run["failure"]):
            yield f"{scenario}, {arm}: {reason}"


def _figures(groups: Groups, titles: Mapping[str, str]) -> Iterator[str]:
    columns = [
        Column("SCENARIO"),
        Column("QEMU"),
        Column("RESULT"),
        *(Column(title, right=True, spare=name in _SPARE) for name, title in titles.items()),
    ]
    rows = [
        (scenario, arm, states(runs), *(cell(name, runs) for name in titles))
        for (scenario, arm), runs in groups.items()
    ]
    yield from table(columns, rows, "no runs")


def _memory(groups: Groups) -> Iterator[str]:
    """What QEMU took of its host before, during and after the load."""
    columns = [
        Column("SCENARIO"),
        Column("QEMU"),
        Column("ITS"),
        *(Column(f"{phase.upper()} THE LOAD", right=True) for phase in _PHASES),
    ]
    rows = [
        (
            scenario if first else "",
            arm if first else "",
            title,
            *(cell(f"{stem}_{phase}{suffix}", runs) for phase in _PHASES),
        )
        for (scenario, arm), runs in groups.items()
        for first, (title, (stem, suffix)) in zip(
            (True, False, False), _MEMORY.items(), strict=True
        )
    ]
    yield from table(columns, rows, "no runs")


def compared(document: Document) -> Iterator[str]:
    """What came out of a campaign, short: the primary metric in each cell."""
    import json

    from vmtune.bench.report.report import from_document
    from vmtune.bench.report.tables import overview_tables, terminal_tables
    from vmtune.client.commands.bench.compare import table_lines

    report = from_document(json.loads(json.dumps(document)))
    if report.withheld:
        yield f"No verdicts: {report.withheld}."
    short = tuple(overview_tables(report)) or terminal_tables(report)
    for each in short:
        yield from table_lines(each)
    for note in report.notes:
        yield f"{note[0].upper()}{note[1:]}."
