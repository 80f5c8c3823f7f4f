"""Pages from the tables of tunables, findings and metrics."""

from __future__ import annotations

from collections.abc import Iterator

from docs.generator.markdown import code, plain, table
from vmtune.bench.model.metrics.table import METRICS
from vmtune.model.findings.table import FINDINGS, Lifted, Severity
from vmtune.model.service_metrics import EXPORTED, Exported
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import Kind, Route, Tunable, Value
from vmtune.units import Unit

_SEVERITIES = {
    Severity.BLOCKER: "stops the work, unless it is overridden: the value that it stands against "
    "is left out then.",
    Severity.WARNING: "costs something, or fails under some settings. The work goes on.",
    Severity.INFO: "needs no action.",
}
_LIFTED = {
    Lifted.GOES_ON: " Overridden, all is done in spite of it.",
    Lifted.NEVER: " It cannot be overridden.",
}


def tunables() -> str:
    """The tunables, by route."""
    parts = [
        "# Tunables",
        "Every setting that a [profile](glossary.md#profile) can have, from the table in "
        "`vmtune/model/tunables/rows/`. `vmtune tunables` prints the same list, and "
        "`vmtune tunables NAME` one of them. What the routes mean is in "
        "[How a value reaches QEMU](../explanation/routes.md). Tunable packs add more: see "
        "[Add settings of a patched QEMU](../how-to/packs.md).",
        "Values may be written with units: `64Mi`, `10Gbit/s`, `300ms`, `30%`. Unset, `off` and "
        "`0` are three different things.",
    ]
    for route in Route:
        rows = [row for row in BUILT_IN.values() if row.route is route]
        parts.append(f"## Route {route}")
        parts.append(table(("tunable", "takes", "default in QEMU 10"), map(_line, rows)))
        parts += [_tunable(row) for row in rows]
    return "\n\n".join(parts)


def _line(row: Tunable) -> tuple[str, str, str]:
    return (f"[`{row.name}`](#{row.name})", plain(_takes(row)), plain(_default(row)))


def _tunable(row: Tunable) -> str:
    facts = [("Takes", plain(_takes(row))), ("Default", plain(_default(row)))]
    facts.append(("Side", row.side.value))
    if row.qmp is not None:
        facts.append(("QEMU", f"{row.qmp.kind} {code(row.qmp.name)}"))
    if row.libvirt is not None:
        virsh = f", virsh {code(row.libvirt.virsh)}" if row.libvirt.virsh else ""
        name = f" {code(row.libvirt.name)}" if row.libvirt.name else ""
        facts.append(("libvirt", f"{row.libvirt.kind}{name}, from {row.libvirt.since}{virsh}"))
    facts.append(("Releases of QEMU", _releases(row)))
    if row.overwriter:
        facts.append(("Overwritten by", plain(row.overwriter)))
    if row.running:
        facts.append(("While a migration runs", "can be changed"))
    listed = "\n".join(f"- {name}: {what}" for name, what in facts)
    return f"### `{row.name}` {{ #{row.name} }}\n\n{plain(row.title)}. {plain(row.why)}\n\n{listed}"


def _takes(row: Tunable) -> str:
    if row.kind is Kind.CHOICE:
        return ", ".join(row.choices)
    if row.kind is Kind.BOOLEAN:
        return "on, off"
    if row.kind is Kind.TEXT:
        return "text"
    low = "" if row.minimum is None else row.render(row.minimum)
    high = "" if row.maximum is None else row.render(row.maximum)
    power = ", a power of two" if row.power_of_two else ""
    if low and high:
        return f"{low} to {high}{power}"
    return (f"{low} or more" if low else "a whole number") + power


def _default(row: Tunable) -> str:
    value: Value | None = row.default
    if value is None:
        return "depends on host and VM"
    return row.render(value)


def _releases(row: Tunable) -> str:
    return f"{row.since} to {row.until}" if row.until else f"{row.since} and later"


def findings() -> str:
    """The findings, by severity."""
    parts = [
        "# Findings",
        "What a [preflight](glossary.md#preflight) and the doctor can find, from the table in "
        "`vmtune/model/findings/table.py`. A word in braces stands for what was seen, such as a "
        "host's value.",
    ]
    for severity in Severity:
        rows = [row for row in FINDINGS.values() if row.severity is severity]
        parts.append(
            f"## {severity.title()}\n\nA finding of severity {severity} {_SEVERITIES[severity]}"
        )
        parts += [
            f"### `{row.code}` {{ #{row.code} }}\n\n{plain(_sentence(row.why))}\n\n"
            f"Remedy: {plain(row.remedy)}.{_LIFTED.get(row.lifted, '')}"
            for row in rows
        ]
    return "\n\n".join(parts)


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def benchmark_metrics() -> str:
    """The metrics of runs, by what they are about."""
    groups = list(dict.fromkeys(row.group for row in METRICS.values()))
    return "\n\n".join(
        [
            "# Metrics of benchmarks",
            "What a [run](glossary.md#run) is reduced to, from the tables in "
            "`vmtune/bench/model/metrics`. `vmtune bench metrics` prints the same list.",
            *(part for group in groups for part in _metrics(group.value)),
        ]
    )


def _metrics(group: str) -> Iterator[str]:
    yield f"## {group[:1].upper()}{group[1:]}"
    for row in METRICS.values():
        if row.group.value == group:
            unit = "" if row.unit is Unit.NONE else f", in {row.unit.value}"
            facts = [f"{row.direction.value}{unit}"]
            if row.begins:
                facts += [f"Begins: {plain(row.begins)}", f"Ends: {plain(row.ends)}"]
            facts.append(f"Missing: {plain(row.missing)}")
            listed = "\n".join(f"- {fact}" for fact in facts)
            title = f"### `{row.name}` {{ #{row.name} }}"
            yield f"{title}\n\n{plain(row.title)}. {plain(row.measures)}\n\n{listed}"


def service_metrics() -> str:
    """What ``/metrics`` exposes."""
    return (
        "# Metrics of the service\n\n"
        "What `GET /metrics` exposes, from the table in `vmtune/model/service_metrics.py`. "
        "[Monitor the service](../how-to/monitor.md) says how to scrape it, and how the metrics "
        "of several services add up.\n\n"
        + table(
            ("metric", "kind", "labels", "meaning", "across services"),
            map(_exported, EXPORTED.values()),
        )
        + "\n"
        "The client library of Prometheus adds metrics of the process: "
        "`process_cpu_seconds_total`, `process_resident_memory_bytes`, `process_open_fds`, "
        "`process_start_time_seconds` and others.\n\n"
        "Bytes, times and the reaper's metrics of a migration are counted when the migration ends, "
        "from its record. A failed migration has no total of bytes: QEMU reports none.\n"
    )


def _exported(row: Exported) -> tuple[str, str, str, str, str]:
    labels = "; ".join(
        f"`{name}`: {known if isinstance(known, str) else ', '.join(known)}"
        for name, known in row.labels.items()
    )
    buckets = f" Buckets: {', '.join(f'{b:g}' for b in row.buckets)}." if row.buckets else ""
    return f"`{row.name}`", row.kind.value, labels, row.help + buckets, f"`{row.across}()`"
