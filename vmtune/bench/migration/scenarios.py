"""Choosing scenarios, making them small, and why one cannot be run here."""

from __future__ import annotations

import difflib
import fnmatch
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from vmtune import units
from vmtune.bench.migration.families import FAMILIES, SCENARIOS
from vmtune.bench.model.scenario.migration import Scenario
from vmtune.bench.model.scenario.parts import MIB
from vmtune.bench.model.settable import settable
from vmtune.documents.strict import Reader, short
from vmtune.model.findings.table import Severity
from vmtune.model.host.facts import HostFacts, Reading, VmFacts, VmState
from vmtune.model.plan.situation import Destination, Permissions, Situation
from vmtune.model.preflight.rings import MEASURED_ALL_THE_SAME
from vmtune.model.preflight.rules import check_tunable, check_vm
from vmtune.model.tunables.tunable import Route, Value
from vmtune.units import Unit

QUICK_MEMORY_BYTES = 96 * MIB
QUICK_BANDWIDTH_BYTES_PER_S = 125 * MIB
QUICK_DIRTY_MB_PER_S = 88
"""Two thirds of the bandwidth: it takes several iterations, and enough for auto-converge to act."""
QUICK_DOWNTIME_LIMIT_MS = 100


@dataclass(frozen=True, slots=True)
class BenchHosts:
    """The two hosts and the QEMU on which scenarios run.

    :param host: where the source runs; *destination* the other one.
    :param qemu: a QEMU of the kind that both run, as it was probed.
    :param kvm: whether the guest is to run by KVM.
    :param why_no_kvm: why it is not; empty where it is.
    :param consents: what the operator lets tunable packs send to QEMUs.
    """

    host: HostFacts
    destination: HostFacts
    qemu: VmFacts
    kvm: bool
    why_no_kvm: str = ""
    consents: frozenset[str] = frozenset()


def why_not(scenario: Scenario, bench_hosts: BenchHosts) -> str | None:
    """Why *scenario* cannot be run on *bench_hosts*; None where nothing is known against it.

    Each of its tunables is judged by the preflight, as a migration's are: what QEMU lacks by
    probing or by release, what was not compiled in, what excludes each other in this version,
    what the host has too little of.
    """
    if scenario.needs_kvm and not bench_hosts.kvm:
        why = f": {bench_hosts.why_no_kvm}" if bench_hosts.why_no_kvm else ""
        return f"it needs KVM, whose dirty ring it uses{why}"
    memory = bench_hosts.host.memory_bytes
    needed = 2 * scenario.vm.memory_bytes
    if memory is not None and memory < needed:
        return (
            f"both VMs together need {units.render(needed, Unit.BYTES)}, and the host has "
            f"{units.approximate(memory, Unit.BYTES)}"
        )
    situation = _situation(scenario, bench_hosts)
    findings = itertools.chain(
        check_vm(situation),
        *(check_tunable(settable()[n], value, situation) for n, value in situation.values.items()),
    )
    blockers = (
        f"{finding.tunable}: {finding.message}" if finding.tunable else finding.message
        for finding in findings
        if finding.severity is Severity.BLOCKER and finding.code not in MEASURED_ALL_THE_SAME
    )
    return next(blockers, None)  # what follows is mostly the same once more


def offered(bench_hosts: BenchHosts, values: Mapping[str, Sequence[Value]]) -> frozenset[str]:
    """The tunables that these hosts and this QEMU can do, each by itself.

    :param values: to be tried of each tunable; one that works is enough.
    """
    situation = _situation(Scenario("offered/all"), bench_hosts)

    def works(name: str, value: Value) -> bool:
        one = replace(situation, values={name: value})
        return not any(
            finding.severity is Severity.BLOCKER and finding.code not in MEASURED_ALL_THE_SAME
            for finding in check_tunable(settable()[name], value, one)
        )

    return frozenset(n for n, tried in values.items() if any(works(n, value) for value in tried))


def _situation(scenario: Scenario, bench_hosts: BenchHosts) -> Situation:
    """A VM that was started as the scenario wants it, about to migrate. What is to be off needs
    nothing, so it is left out."""
    wanted = {
        name: value
        for name, value in scenario.values.items()
        if value is not False and not (value == "none" == settable()[name].default)
    }
    started_with = {n: Reading(v) for n, v in wanted.items() if settable()[n].route is Route.BOOT}
    readings = {**bench_hosts.qemu.readings, "dirty_ring_size_entries": Reading(0), **started_with}
    vm = replace(
        bench_hosts.qemu,
        kvm=bench_hosts.kvm,
        state=VmState.RUNNING,
        memory_bytes=scenario.vm.memory_bytes,
        vcpus=scenario.vm.vcpus,
        readings=readings,
    )
    destination = Destination("destination", bench_hosts.destination, vm)
    permissions = Permissions(destination_command_line=True, pack_consents=bench_hosts.consents)
    return Situation(
        wanted, vm, bench_hosts.host, destination, permissions, scenario.steps, tunables=settable()
    )


def select(patterns: Sequence[str]) -> tuple[Scenario, ...]:
    """The scenarios of migrations that *patterns* name: families, scenarios, or either with ``*``;
    each once, in the order of the table.

    :raise InvalidInput: with a problem for each pattern that names none.
    """
    return tuple(SCENARIOS[name] for name in matching(patterns, SCENARIOS, FAMILIES))


def matching(
    patterns: Sequence[str], names: Iterable[str], families: Iterable[str]
) -> tuple[str, ...]:
    """Those of *names* that *patterns* name, likewise.

    :raise InvalidInput: with a problem for each pattern that names none.
    """
    reader = Reader()
    known = tuple(names)
    wanted: set[str] = set()
    for index, pattern in enumerate(patterns):
        found = [
            name
            for name in known
            if fnmatch.fnmatchcase(name, pattern)
            or fnmatch.fnmatchcase(name.partition("/")[0], pattern)
        ]
        wanted.update(found)
        if not found:
            near = difflib.get_close_matches(pattern, [*families, *known], n=3, cutoff=0.5)
            reader.refuse(
                f"scenarios.{index}",
                "unknown_scenario",
                f"no family and no scenario is called {short(pattern)}",
                f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(families)}",
            )
    reader.done("the scenarios cannot be chosen")
    return tuple(name for name in known if name in wanted)


def quick(scenario: Scenario) -> Scenario:
    """*scenario* in small, for some seconds on any machine, with KVM and without.

    It shows that the scenario works and what its record holds. Its figures are of little use: a
    small VM over a network that is held to 1 Gbit/s at most, and a guest whose pages are all of
    one kind, since laying them out takes minutes on a slow KVM.
    """
    small = scenario.scaled(QUICK_MEMORY_BYTES)
    bandwidth = small.values.get("max_bandwidth_bytes_per_s")
    held = int(bandwidth) if bandwidth else QUICK_BANDWIDTH_BYTES_PER_S
    return replace(
        small,
        workload=replace(
            small.workload,
            dirty_mb_per_s=QUICK_DIRTY_MB_PER_S,
            zero_percent=0,
            random_percent=0,
        ),
        values={
            **small.values,
            "downtime_limit_ms": QUICK_DOWNTIME_LIMIT_MS,
            "max_bandwidth_bytes_per_s": min(held, QUICK_BANDWIDTH_BYTES_PER_S),
        },
        warmup_s=3,
        cooldown_s=2,
        max_seconds=20,
    )
