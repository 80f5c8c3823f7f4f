"""Whether a VM's dirty rings can end it: the kernel empties them in part, and QEMU aborts. Pure.

KVM_RESET_DIRTY_RINGS ends early when a signal is pending (:mod:`vmtune.model.host.ring_reset`). It
is pending in a vCPU's thread that empties its own full ring while others signal it, so what
protects a guest is that no ring fills. Each policy of vmtune's reaper then empties the rings
without a pause (:mod:`vmtune.engine.reaper.policies`).
"""

from __future__ import annotations

from collections.abc import Iterator

from vmtune import units
from vmtune.model.findings.table import Finding
from vmtune.model.host.dirty_rates import usable_entries
from vmtune.model.host.facts import HostFacts, VmFacts, VmState
from vmtune.model.plan.situation import Situation
from vmtune.model.tunables.rows.reaper import MIN_INTERVAL_MS, OFF
from vmtune.model.tunables.tunable import Tunable, Value
from vmtune.units import PAGE_BYTES, Unit

BRISK_BYTES_PER_S = 1 << 30
"""A vCPU that dirties so much a second is busy, but nothing unusual."""
ROUND_TAKES_UP_TO = 2
"""Times its interval, on a busy host: rings of 16,384 entries then filled between rounds, of 65,536
not (tests/perf/rings/ring_survival)."""
MEASURED_ALL_THE_SAME = frozenset({"ring_without_reaper", "ring_fills_between_rounds"})
"""Blockers that stop no benchmark: a QEMU that dies is a result."""
_RING = "dirty_ring_size_entries"
_PRESENT = (VmState.RUNNING, VmState.PAUSED)


def wants_reaper(situation: Situation) -> bool:
    """Whether the profile wants vmtune's reaper."""
    return situation.values.get("reaper_policy", OFF) != OFF


def can_die(host: HostFacts, vm: VmFacts | None) -> bool:
    """Whether a full ring can end a VM's QEMU on a host.

    :param vm: None for a QEMU that is not there yet.
    """
    return host.ring_reset_ends_early is True and (
        vm is None or (vm.kvm and vm.aborts_on_short_reset is not False)
    )


def is_unknown(host: HostFacts, vm: VmFacts | None) -> bool:
    """Whether a full ring may end a VM's QEMU on a host for all that can be seen: the kernel of
    another machine cannot be asked, and libvirt does not name its release.

    :param vm: None for a QEMU that is not there yet.
    """
    return host.ring_reset_ends_early is None and (
        vm is None or (vm.kvm and vm.aborts_on_short_reset is not False)
    )


def check_rings(situation: Situation) -> Iterator[Finding]:
    """The rings that the VM runs with: a migration fills them."""
    vm, destination = situation.vm, situation.destination
    entries = vm.dirty_ring_size_entries
    if not entries or vm.state not in _PRESENT:
        return
    if can_die(situation.host, vm):
        if destination is None:
            evidence = {**_evidence(situation.host, vm), "entries": entries}
            yield Finding("running_ring_unsafe", evidence=evidence)
        else:
            yield _judge(entries, "", situation)
    elif is_unknown(situation.host, vm):
        yield Finding("ring_reset_unknown", evidence={"host": situation.host.hostname})
    elif destination is not None and vm.kvm:
        if can_die(destination.host, destination.vm):
            there = destination.vm or vm
            yield Finding("destination_ring_unsafe", evidence=_evidence(destination.host, there))
        elif is_unknown(destination.host, destination.vm):
            yield Finding("ring_reset_unknown", evidence={"host": destination.host.hostname})


def check_wanted_ring(tunable: Tunable, wanted: Value, situation: Situation) -> Iterator[Finding]:
    """The rings that the VM will start with."""
    if tunable.name != _RING or not isinstance(wanted, int) or not wanted:
        return
    if situation.destination is not None:
        return
    if can_die(situation.host, situation.vm):
        yield _judge(wanted, tunable.name, situation)
    elif is_unknown(situation.host, situation.vm):
        evidence = {"host": situation.host.hostname}
        yield Finding("ring_reset_unknown", tunable.name, evidence=evidence)


def full_after_ms(entries: int, bytes_per_s: int) -> float:
    """After how long a vCPU that dirties so fast has filled its ring."""
    return usable_entries(entries) * PAGE_BYTES * 1000 / bytes_per_s


def _judge(entries: int, tunable: str, situation: Situation) -> Finding:
    vm = situation.vm
    evidence: dict[str, str | int] = {**_evidence(situation.host, vm), "entries": entries}
    if not wants_reaper(situation):
        return Finding("ring_without_reaper", tunable, evidence)
    # A guest that was quiet when it was measured need not stay so.
    rate = max(BRISK_BYTES_PER_S, vm.vcpu_dirty_bytes_per_s or 0)
    interval_ms = situation.number("reaper_min_interval_ms") or MIN_INTERVAL_MS
    full_ms = full_after_ms(entries, rate)
    if full_ms < ROUND_TAKES_UP_TO * interval_ms:
        evidence["interval"] = f"{full_ms:.0f} ms"
        evidence["rate"] = units.approximate(rate, Unit.BYTES_PER_S)
        return Finding("ring_fills_between_rounds", tunable, evidence)
    return Finding("ring_must_not_fill", tunable, evidence)


def _evidence(host: HostFacts, vm: VmFacts) -> dict[str, str | int]:
    return {"host": host.hostname, "version": str(vm.qemu)}
