"""The preflight of what vmtune itself does during a migration: the reaper, and the steps.

Sources: QEMU migration/dirtyrate.c; accel/kvm/kvm-all.c and softmmu/dirtylimit.c for what
dirty-limit does with full rings; the kernel's include/linux/kvm_host.h for a ring's reserve.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from vmtune import units
from vmtune.model.findings.table import Finding
from vmtune.model.host.dirty_rates import usable_entries
from vmtune.model.host.facts import Reading, VmFacts
from vmtune.model.migration.steps import SetValues
from vmtune.model.plan.situation import Situation
from vmtune.model.preflight.rings import BRISK_BYTES_PER_S, wants_reaper
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.rows.reaper import ALONE_AT_THE_RINGS, MIN_INTERVAL_MS, REAPERS
from vmtune.model.tunables.tunable import Route, Tunable, Value
from vmtune.model.versions import Version
from vmtune.units import PAGE_BYTES, Unit


def uses_monitor(situation: Situation) -> bool:
    """Whether what runs during the migration goes through QEMU's monitor."""
    sets = any(isinstance(step.action, SetValues) for step in situation.steps)
    return wants_reaper(situation) or sets


def check_reaper(tunable: Tunable, wanted: Value, situation: Situation) -> Iterator[Finding]:
    """A reaper empties rings, inside a patched QEMU or from outside: there have to be some."""
    if tunable.name not in REAPERS or wanted == ALONE_AT_THE_RINGS[tunable.name]:
        return
    vm, outside = situation.vm, tunable.name == "reaper_policy"
    ring = vm.dirty_ring_size_entries
    if outside and situation.destination is None:
        # It waits for a migration, and that for the restart which brings the wanted ring.
        wanted_ring = situation.number("dirty_ring_size_entries")
        ring = ring if wanted_ring is None else wanted_ring
    if not vm.kvm or ring == 0:
        tracking = "a bitmap" if vm.kvm else "TCG"
        evidence = {"tracking": tracking, "reaper": tunable.name}
        yield Finding("reaper_needs_ring", tunable.name, evidence)
    elif ring is None:
        yield Finding("reaper_ring_unknown", tunable.name, {"reaper": tunable.name})
    elif outside:
        yield from _small_ring(tunable, ring, situation)
    if outside and vm.measuring_dirty_rate:
        yield Finding("dirty_rate_being_measured", tunable.name)


def check_alone(tunable: Tunable, wanted: Value, situation: Situation) -> Iterator[Finding]:
    """What acts through the rings has to be alone at it, also where QEMU has the other from
    before. A profile's own rules have judged what is in it."""
    name = tunable.name
    if name not in ALONE_AT_THE_RINGS or wanted == ALONE_AT_THE_RINGS[name]:
        return
    for other, off in ALONE_AT_THE_RINGS.items():
        if other == name or situation.values.get(other) is not None:
            continue
        value = situation.vm.readings.get(other, Reading(None)).value
        if other == "dirty_limit":
            value = situation.vm.capabilities.get("dirty-limit")
        if value is not None and value != off:
            yield Finding("rings_in_use", name, _in_use(other, value, off, name))


def _in_use(other: str, value: Value, off: Value, wanted: str) -> dict[str, str | int]:
    shown = {True: "on", False: "off"}
    return {
        "other": other,
        "value": shown.get(value, str(value)) if isinstance(value, bool) else str(value),
        "off": shown[False] if off is False else str(off),
        "wanted": wanted,
    }


def _small_ring(tunable: Tunable, entries: int, situation: Situation) -> Iterator[Finding]:
    """A ring that a busy vCPU fills between two rounds, however often they come."""
    min_ms = situation.number("reaper_min_interval_ms") or MIN_INTERVAL_MS
    usable_bytes = usable_entries(entries) * PAGE_BYTES
    bytes_per_s = usable_bytes * 1000 // min_ms
    if bytes_per_s < BRISK_BYTES_PER_S:
        rate = units.approximate(bytes_per_s, Unit.BYTES_PER_S)
        yield Finding(
            "reaper_small_ring",
            tunable.name,
            {"entries": entries, "rate": rate, "interval": f"{min_ms} ms"},
        )


_CHANGES_COPIES = Version(8, 2)
"""QEMU's block-job-change (qapi/block-core.json)."""


def check_steps(situation: Situation, has: Callable[[Tunable, VmFacts], bool]) -> Iterator[Finding]:
    """What the steps set must be there.

    :param has: whether a VM's QEMU offers a tunable.
    """
    for number, step in enumerate(situation.steps):
        if not isinstance(step.action, SetValues):
            continue
        for name, _ in step.action.values:
            tunable = BUILT_IN[name]
            since = _CHANGES_COPIES if step.of_copies else tunable.since
            offered = situation.vm.qemu >= since if step.of_copies else has(tunable, situation.vm)
            if not offered:
                evidence: dict[str, str | int] = {
                    "step": number,
                    "name": name,
                    "version": str(situation.vm.qemu),
                    "since": since.short,
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
