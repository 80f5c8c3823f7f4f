"""The preflight of what vmtune itself does during a migration: the reaper, and the steps.

Sources: QEMU migration/dirtyrate.c; accel/kvm/kvm-all.c and softmmu/dirtylimit.c for what
dirty-limit does with full rings; the kernel's include/linux/kvm_host.h for a ring's reserve.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from vmtune import units
from vmtune.model.findings.table import Finding
from vmtune.model.host.dirty_rates import usable_entries
from vmtune.model.host.facts import VmFacts
from vmtune.model.migration.steps import SetValues
from vmtune.model.plan.situation import Situation
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.rows.reaper import LEAST_INTERVAL_MS, OFF
from vmtune.model.tunables.tunable import Route, Tunable, Value
from vmtune.units import PAGE_BYTES, Unit

_BRISK_BYTES_PER_S = 1 << 30
"""A vCPU that dirties so much a second is busy, but nothing unusual."""


def wants_reaper(situation: Situation) -> bool:
    """Whether the profile wants a reaper."""
    return situation.values.get("reaper_policy", OFF) != OFF


def uses_monitor(situation: Situation) -> bool:
    """Whether what runs during the migration goes through QEMU's monitor."""
    sets = any(isinstance(step.action, SetValues) for step in situation.steps)
    return wants_reaper(situation) or sets


def check_reaper(tunable: Tunable, wanted: Value, situation: Situation) -> Iterator[Finding]:
    """The reaper empties rings, so there have to be some, and it has to be alone at it."""
    if tunable.name != "reaper_policy" or wanted == OFF:
        return
    vm = situation.vm
    ring = vm.dirty_ring_size_entries
    if not vm.kvm or ring == 0:
        tracking = "a bitmap" if vm.kvm else "TCG"
        yield Finding("reaper_needs_ring", tunable.name, {"tracking": tracking})
    elif ring is None:
        yield Finding("reaper_ring_unknown", tunable.name)
    else:
        yield from _small_ring(tunable, ring, situation)
    if vm.capabilities.get("dirty-limit") and situation.values.get("dirty_limit") is None:
        yield Finding("reaper_against_dirty_limit", tunable.name)
    if vm.measuring_dirty_rate:
        yield Finding("dirty_rate_being_measured", tunable.name)


def _small_ring(tunable: Tunable, entries: int, situation: Situation) -> Iterator[Finding]:
    """A ring that a busy vCPU fills between two rounds, however often they come."""
    least_ms = situation.number("reaper_least_interval_ms") or LEAST_INTERVAL_MS
    usable_bytes = usable_entries(entries) * PAGE_BYTES
    bytes_per_s = usable_bytes * 1000 // least_ms
    if bytes_per_s < _BRISK_BYTES_PER_S:
        rate = units.approximate(bytes_per_s, Unit.BYTES_PER_S)
        yield Finding(
            "reaper_small_ring",
            tunable.name,
            {"entries": entries, "rate": rate, "interval": f"{least_ms} ms"},
        )


def check_steps(situation: Situation, has: Callable[[Tunable, VmFacts], bool]) -> Iterator[Finding]:
    """What the steps set must be there.

    :param has: whether a VM's QEMU offers a tunable.
    """
    for number, step in enumerate(situation.steps):
        if not isinstance(step.action, SetValues):
            continue
        for name, _ in step.action.values:
            tunable = BUILT_IN[name]
            if not has(tunable, situation.vm):
                evidence: dict[str, str | int] = {
                    "step": number,
                    "name": name,
                    "version": str(situation.vm.qemu),
                    "since": tunable.since.short,
                }
                yield Finding("step_not_offered", evidence=evidence)


def check_switches(situation: Situation, stopped: set[str]) -> Iterator[Finding]:
    """A step has no effect without the capability that it acts on.

    :param stopped: the tunables that a blocker stands against.
    """
    for number, step in enumerate(situation.steps):
        for switch in sorted(step.switches & stopped):
            yield Finding("step_without_switch", evidence={"step": number, "switch": switch})


def offered_by_version(tunable: Tunable, vm: VmFacts) -> bool:
    """What is vmtune's own needs a QEMU that is new enough for it."""
    return tunable.route is not Route.CONTROL or vm.qemu >= tunable.since
