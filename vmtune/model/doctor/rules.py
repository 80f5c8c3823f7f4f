"""The rules of host diagnostics: each problem with its evidence and its remedy.

Each rule is a pure function of what was seen. What could not be seen is no finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from vmtune.model.doctor.facts import Examined, ProfileNeeds, SkippedCheck
from vmtune.model.doctor.kernel import FIXED_BY, SrcuState, judge_srcu
from vmtune.model.findings.table import Finding, Severity
from vmtune.model.host.pools import WARNING_PERCENT
from vmtune.model.host.ring_reset import resets_end_early
from vmtune.model.preflight.zero_copy import (
    GOOD_OPTMEM_BYTES,
    LEAST_OPTMEM_BYTES,
    OPTMEM_PER_CHANNEL_BYTES,
)
from vmtune.model.versions import Version

LEAST_MAP_COUNT = 65530
"""Linux's own default (include/linux/mm.h: 65,535 less five)."""
GOOD_MAP_COUNT = 262144
"""Four times Linux's: room for the pools of ten disks with 16 queues of 256 entries."""
OLDEST_QEMU = Version(7, 2)
OLDEST_LIBVIRT = Version(9)
_COMPRESSING_LIBVIRT = Version(9, 4)
_POSTCOPY_WITHOUT_MULTIFD = (Version(8), Version(10, 1))
_SLOW_MBIT = 10_000
_SHOWN = 3
"""Processes that evidence names."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program that vmtune runs."""

    package: str
    needed_for: str


PROGRAMS: Mapping[str, Program] = {
    "nsenter": Program("util-linux", "a daemon's own network cannot be looked into"),
    "ip": Program("iproute2", "`vmtune lab` and `vmtune demo` cannot make their networks"),
    "unshare": Program("util-linux", "`vmtune lab` and `vmtune demo` cannot make their hosts"),
}
"""By name; QEMU itself has a finding of its own."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a doctor says of a host.

    :param host: the host's name, or this machine's.
    """

    host: str
    findings: tuple[Finding, ...]
    skipped_checks: tuple[SkippedCheck, ...] = ()

    @property
    def needs_action(self) -> tuple[Finding, ...]:
        """The findings that need action."""
        return tuple(f for f in self.findings if f.severity is not Severity.INFO)


def diagnose(host: str, seen: Examined, wanted: ProfileNeeds | None = None) -> Diagnosis:
    """Apply every rule to what was seen.

    :param wanted: what the assigned profiles want; None where that is not known.
    """
    needs = wanted or ProfileNeeds()
    found = [finding for rule in _RULES for finding in rule(seen, needs)]
    found.sort(key=lambda finding: finding.severity is Severity.INFO)
    return Diagnosis(host, tuple(found), seen.skipped_checks)


def _srcu(seen: Examined, wanted: ProfileNeeds) -> Iterator[Finding]:
    if seen.kernel is None:
        return
    verdict = judge_srcu(seen.kernel.value, seen.srcu)
    code = {SrcuState.AFFECTED: "srcu_slow_boot", SrcuState.UNKNOWN: "srcu_unknown"}.get(
        verdict.state
    )
    if code:
        yield Finding(
            code,
            evidence={
                "kernel": seen.kernel.value,
                "where": seen.kernel.where,
                "reason": verdict.reason,
                "srcutree": ", ".join(f"{k}={v}" for k, v in sorted(seen.srcu.items())) or "none",
                "srcutree_where": "/sys/module/srcutree/parameters",
            },
        )


def _srcu_cost(seen: Examined, wanted: ProfileNeeds) -> Iterator[Finding]:
    cost = seen.srcu_cost
    if cost is None or not cost.slow:
        return
    has_parameters = set(seen.srcu) >= FIXED_BY
    yield Finding(
        "srcu_updates_slow" if has_parameters else "srcu_updates_slow_kernel",
        evidence={
            "grace_period_us": round(cost.grace_period_us),
            "boot_s": round(cost.usual_boot_s),
            "where": f"{cost.add.count + cost.delete.count} updates of a VM of {cost.vcpus} vCPUs",
            "srcutree": ", ".join(f"{name}={seen.srcu[name]}" for name in sorted(FIXED_BY))
            if has_parameters
            else "none",
        },
    )


def _maps(seen: Examined, wanted: ProfileNeeds) -> Iterator[Finding]:
    limit = seen.max_map_count
    if limit is None:
        return
    if limit.value < LEAST_MAP_COUNT:
        yield Finding(
            "map_count_low",
            "vm_max_map_count",
            {"value": limit.value, "where": limit.where, "wanted": GOOD_MAP_COUNT},
        )
    for qemu in seen.qemus:
        if qemu.maps is not None and qemu.maps * 100 > WARNING_PERCENT * limit.value:
            yield Finding(
                "maps_nearly_used_up",
                "vm_max_map_count",
                {
                    "pid": qemu.pid,
                    "maps": qemu.maps,
                    "most": limit.value,
                    "where": f"/proc/{qemu.pid}/maps",
                    "wanted": max(GOOD_MAP_COUNT, 4 * limit.value),
                },
            )


def _others(seen: Examined, wanted: ProfileNeeds) -> Iterator[Finding]:
    """Without root, what of QEMU's processes stays closed."""
    closed = [qemu for qemu in seen.qemus if qemu.maps is None]
    if closed and seen.user != "root":
        yield Finding(
            "qemus_of_others",
            evidence={
                "user": seen.user,
                "count": len(closed),
                "where": ", ".join(f"/proc/{qemu.pid}/maps" for qemu in closed[:_SHOWN]),
            },
        )


def _confinement(seen: Examined, wanted: ProfileNeeds) -> Iterator[Finding]:
    free = [qemu for qemu in seen.qemus if qemu.unconfined]
    if seen.confines is not None and free:
        yield Finding(
            "qemus_unconfined",
            evidence={
                "by": seen.confines.value,
                "count": len(free),
                "pid": free[0].pid,
                "label": free[0].label or "",
                "where": ", ".join(f"/proc/{qemu.pid}/attr/current" for qemu in free[:_SHOWN]),
            },
        )


def _optmem(seen: Examined, wanted: ProfileNeeds) -> Iterator[Finding]:
    limit = seen.optmem_max_bytes
    channels = wanted.channels or 4
    least = max(LEAST_OPTMEM_BYTES, wanted.channels * OPTMEM_PER_CHANNEL_BYTES)
    if limit is not None and limit.value < least:
        yield Finding(
            "host_optmem_low",
            "net_core_optmem_max_bytes",
            {
                "value": limit.value,
                "where": limit.where,
                "channels": channels,
                "least": least,
                "wanted": max(GOOD_OPTMEM_BYTES, least),
            },
        )


def _memlock(seen: Examined, wanted: ProfileNeeds) -> Iterator[Finding]:
    raiser = seen.can_raise_memlock
    if raiser is not None and raiser.value:
        return
    if raiser is not None and seen.libvirt is not None:
        yield Finding(
            "daemon_cannot_raise_memlock",
            "zero_copy_send",
            {"value": "CAP_SYS_RESOURCE is missing", "where": raiser.where},
        )
    for qemu in seen.qemus:
        if qemu.may_lock is not False or qemu.memlock_bytes is None or qemu.memory_bytes is None:
            continue
        if qemu.memlock_bytes < qemu.memory_bytes:
            yield Finding(
                "memlock_low",
                "zero_copy_send",
                {
                    "pid": qemu.pid,
                    "limit_bytes": qemu.memlock_bytes,
                    "memory_bytes": qemu.memory_bytes,
                    "where": f"/proc/{qemu.pid}/limits",
                    "wanted": qemu.memory_bytes,
                },
            )


def _userfaultfd(seen: Examined, wanted: ProfileNeeds) -> Iterator[Finding]:
    switch = seen.unprivileged_userfaultfd
    if switch is None or switch.value or seen.userfaultfd_for_all:
        return
    if seen.qemus and all(qemu.root for qemu in seen.qemus):
        return
    yield Finding(
        "userfaultfd_denied",
        "postcopy",
        {"value": switch.value, "where": switch.where, "device": seen.userfaultfd_device},
    )


def _kvm(seen: Examined, wanted: ProfileNeeds) -> Iterator[Finding]:
    kvm = seen.kvm
    if kvm is None:
        return
    if not kvm.present:
        yield Finding("kvm_missing", evidence={"value": "missing", "where": kvm.where})
    elif kvm.why_not:
        yield Finding(
            "kvm_unusable",
            evidence={"reason": kvm.why_not, "where": kvm.where, "user": seen.user or "vmtune"},
        )
    elif kvm.dirty_ring_bytes == 0:
        where = f"{kvm.where}: KVM_CHECK_EXTENSION of KVM_CAP_DIRTY_LOG_RING"
        yield Finding("dirty_ring_missing", "dirty_ring_size_entries", {"value": 0, "where": where})
    elif kvm.ring_reset_ends_early:
        yield from _unsafe_rings(seen, f"{kvm.where}: KVM_RESET_DIRTY_RINGS with a signal pending")
    elif seen.kernel and resets_end_early(kvm.ring_reset_ends_early, seen.kernel.value):
        yield from _unsafe_rings(seen, f"{seen.kernel.where}: {seen.kernel.value}")


def _unsafe_rings(seen: Examined, tried: str) -> Iterator[Finding]:
    """The kernel empties rings in part; QEMUs that abort then, and those that already run so."""
    with_ring = [qemu for qemu in seen.qemus if qemu.dirty_ring_entries]
    for qemu in with_ring:
        if qemu.aborts_on_short_reset is not False:
            yield Finding(
                "vm_dirty_ring_unsafe",
                "dirty_ring_size_entries",
                {"pid": qemu.pid, "entries": qemu.dirty_ring_entries or 0, "where": tried},
            )
    if not with_ring:
        evidence: dict[str, str | int] = {"value": "ends early", "where": tried}
        yield Finding("dirty_ring_unsafe", "dirty_ring_size_entries", evidence)


def _cpus(seen: Examined, wanted: ProfileNeeds) -> Iterator[Finding]:
    if seen.cpus is None or not wanted.profile:
        return
    vcpus = sum(qemu.vcpus for qemu in seen.qemus)
    spare = max(0, seen.cpus.value - vcpus)
    # A migration needs one channel; where no CPU is spare the guests bear it anyway.
    if wanted.channels > max(1, spare):
        yield Finding(
            "too_few_spare_cpus",
            "multifd_channels",
            {
                "profile": wanted.profile,
                "channels": wanted.channels,
                "cpus": seen.cpus.value,
                "vcpus": vcpus,
                "spare": spare,
                "wanted": max(1, spare),
                "where": f"{seen.cpus.where}, /proc/PID/task of each QEMU",
            },
        )


def _nics(seen: Examined, wanted: ProfileNeeds) -> Iterator[Finding]:
    for nic in seen.nics:
        if nic.gathers is False:
            yield Finding(
                "nic_without_scatter_gather",
                "zero_copy_send",
                {"nic": nic.name, "value": "off", "where": "SIOCETHTOOL, ETHTOOL_GSG"},
            )
        if nic.speed_mbit is not None and 0 < nic.speed_mbit < _SLOW_MBIT:
            yield Finding(
                "nic_slow",
                evidence={
                    "nic": nic.name,
                    "speed_mbit": nic.speed_mbit,
                    "where": f"/sys/class/net/{nic.name}/speed",
                },
            )


def _versions(seen: Examined, wanted: ProfileNeeds) -> Iterator[Finding]:
    for where, qemu in seen.qemu_versions:
        evidence: dict[str, str | int] = {"value": str(qemu), "where": where}
        if qemu < OLDEST_QEMU:
            yield Finding("qemu_too_old", evidence=evidence)
        if _POSTCOPY_WITHOUT_MULTIFD[0] <= qemu < _POSTCOPY_WITHOUT_MULTIFD[1]:
            yield Finding("qemu_postcopy_alone", "postcopy", evidence)
    if seen.libvirt is None:
        return
    libvirt = Version.parse(seen.libvirt.value)
    evidence = {"value": str(libvirt), "where": seen.libvirt.where}
    if libvirt < OLDEST_LIBVIRT:
        yield Finding("libvirt_too_old", evidence=evidence)
    elif libvirt < _COMPRESSING_LIBVIRT:
        yield Finding("libvirt_without_compression", "multifd_compression", evidence)


QEMU_PROGRAM = "qemu-system-x86_64"


def _programs(seen: Examined, wanted: ProfileNeeds) -> Iterator[Finding]:
    if seen.programs.get(QEMU_PROGRAM) is False and not seen.qemu_versions and not seen.qemus:
        yield Finding("qemu_missing", evidence={"value": "not found", "where": "PATH"})
    for name, program in PROGRAMS.items():
        if seen.programs.get(name) is False:
            yield Finding(
                "program_missing",
                evidence={
                    "program": name,
                    "needed_for": program.needed_for,
                    "package": program.package,
                    "where": "PATH",
                },
            )


_RULES: tuple[Callable[[Examined, ProfileNeeds], Iterator[Finding]], ...] = (
    _kvm,
    _programs,
    _versions,
    _srcu,
    _srcu_cost,
    _maps,
    _others,
    _confinement,
    _optmem,
    _memlock,
    _userfaultfd,
    _cpus,
    _nics,
)
