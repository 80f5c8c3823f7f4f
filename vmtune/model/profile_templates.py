"""Templates of profiles: values and steps to begin with, for usual situations and as other
managers of VMs migrate.

Policies of others are written as convergence steps, with the defaults that their sources give.
What steps cannot say is in the description: nothing here claims to be their code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vmtune.model.migration.steps import (
    MAX_SECONDS,
    AfterIterations,
    AfterSeconds,
    Later,
    SetValues,
    Stalled,
    Step,
    StepAction,
    Trigger,
)
from vmtune.model.tunables.tunable import Value

GIB = 1 << 30
USUAL_MEMORY_BYTES = 4 * GIB
"""The guest's memory that times are for where none is said."""

_NOVA = (
    "OpenStack Nova, options live_migration_downtime, live_migration_downtime_steps, "
    "live_migration_downtime_delay, live_migration_completion_timeout"
)
_OVIRT = "oVirt, migration policies of a cluster (MigrationPolicies of ovirt-engine)"
_KUBEVIRT = (
    "KubeVirt, MigrationConfiguration: completionTimeoutPerGiB, progressTimeout, "
    "allowAutoConverge, allowPostCopy, allowWorkloadDisruption"
)
_NOVA_STEPS, _NOVA_DOWNTIME_MS, _NOVA_LEAST_GIB = 10, 500, 2
_NOVA_DELAY_S_PER_GIB, _NOVA_TIMEOUT_S_PER_GIB = 75, 800
_KUBEVIRT_TIMEOUT_S_PER_GIB = 150
_VEP_248 = "KubeVirt, VEP 248 (kubevirt/enhancements, sig-compute/248-migration-convergence)"
_VEP_248_STALLED = Stalled(40, shrink_percent=4, near_percent=4)
_VEP_248_DOWNTIME_MS, _VEP_248_SWITCHOVER_S = 900, 60
_VEP_291 = "KubeVirt, VEP 291 (kubevirt/enhancements, sig-compute/291-dynamic-downtime-tuning)"
_VEP_291_DOWNTIMES_MS = (150, 300, 450, 600, 750, 900, 1050)
_VEP_291_ITERATIONS, _VEP_291_COOLDOWN_S = 3, 10
_OVIRT_DOWNTIMES_MS = (150, 200, 300, 400, 500)
_OVIRT_POSTCOPY_MS = (150, 200)
_OVIRT_STALLED_S = 10
"""How often VDSM looks (migration_monitor_interval)."""
_OVIRT_SUSPEND_MS = 5000


@dataclass(frozen=True, slots=True)
class ProfileTemplate:
    """Values and steps to begin a profile with.

    :param title: what it is for, in a few words.
    :param source: whose policy it is and which of its settings; empty for vmtune's own.
    """

    name: str
    title: str
    description: str
    values: Mapping[str, Value] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    source: str = ""


def profile_templates(memory_bytes: int = USUAL_MEMORY_BYTES) -> tuple[ProfileTemplate, ...]:
    """All templates, vmtune's own first.

    :param memory_bytes: of the guest: some policies wait for so many seconds per GiB.
    """
    return (*_OWN, *_nova(memory_bytes), *_ovirt(), *_kubevirt(memory_bytes), *_QEMU)


def _set(trigger: Trigger, name: str, value: Value) -> Step:
    return Step(trigger, SetValues(((name, value),)))


def _downtime(trigger: Trigger, limit_ms: int) -> Step:
    return _set(trigger, "downtime_limit_ms", limit_ms)


def _seconds(per_gib: float, memory_bytes: int, least_gib: float = 0) -> int:
    """So many seconds for each GiB, whole ones, within what a step accepts."""
    gib = max(memory_bytes / GIB, least_gib)
    return max(1, min(round(per_gib * gib), MAX_SECONDS))


_OWN = (
    ProfileTemplate(
        "lan-10g",
        "10 Gbit LAN",
        "Four connections, and nine tenths of the link, so that others get through. If nothing "
        "shrinks any more, the guest may stand still for up to a second.",
        {
            "multifd": True,
            "multifd_channels": 4,
            "max_bandwidth_bytes_per_s": 1072 << 20,
            "downtime_limit_ms": 300,
        },
        (_downtime(Stalled(10), 500), _downtime(Stalled(10), 1000)),
    ),
    ProfileTemplate(
        "wan",
        "WAN",
        "Compressed by zstd over two connections, at most 100 MiB/s. A guest that the link cannot "
        "keep up with is throttled, and the migration given up after two hours.",
        {
            "multifd": True,
            "multifd_channels": 2,
            "multifd_compression": "zstd",
            "multifd_zstd_level": 1,
            "max_bandwidth_bytes_per_s": 100 << 20,
            "auto_converge": True,
            "downtime_limit_ms": 1000,
        },
        (_downtime(Stalled(30), 2000), Step(AfterSeconds(7200), StepAction.ABORT)),
    ),
    ProfileTemplate(
        "huge-busy",
        "Huge and busy",
        "Eight connections, and post-copy after the second iteration: it ends, however fast the "
        "guest writes. If a host or the network fails during post-copy, the guest is lost: read "
        "about post-copy first.",
        {
            "multifd": True,
            "multifd_channels": 8,
            "postcopy": True,
            "postcopy_recovery": "auto",
            "downtime_limit_ms": 300,
        },
        (Step(AfterIterations(2), StepAction.POSTCOPY),),
    ),
    ProfileTemplate(
        "never-stop",
        "Never stop for long",
        "The guest is never throttled and stands still for 100 ms at most; a migration that "
        "does not get there within half an hour is given up and leaves the guest as it was.",
        {"multifd": True, "multifd_channels": 4, "downtime_limit_ms": 100},
        (Step(AfterSeconds(1800), StepAction.ABORT),),
    ),
)
_QEMU = (
    ProfileTemplate(
        "qemu-defaults",
        "QEMU's defaults",
        "Nothing is set. A guest that writes faster than is sent never arrives.",
        source="QEMU, as it is installed",
    ),
    ProfileTemplate(
        "auto-converge",
        "Auto-converge alone",
        "QEMU's defaults, and its own throttle where the migration does not converge.",
        {"auto_converge": True},
        source="QEMU, capability auto-converge; virsh migrate --auto-converge",
    ),
)


def _nova(memory_bytes: int) -> tuple[ProfileTemplate, ...]:
    delay = _seconds(_NOVA_DELAY_S_PER_GIB, memory_bytes, _NOVA_LEAST_GIB)
    ends = AfterSeconds(_seconds(_NOVA_TIMEOUT_S_PER_GIB, memory_bytes, _NOVA_LEAST_GIB))
    first = _NOVA_DOWNTIME_MS / _NOVA_STEPS
    rise = (_NOVA_DOWNTIME_MS - first) / _NOVA_STEPS
    limits = [int(first + rise * number) for number in range(_NOVA_STEPS + 1)]
    steps = tuple(
        _downtime(AfterSeconds(min(delay * number, ends.seconds)), limit)
        for number, limit in enumerate(limits)
        if number
    )
    words = (
        f"The downtime limit rises from {limits[0]} to {limits[-1]} ms, a step every {delay} s; "
        f"after {ends.seconds} s the "
    )
    values: dict[str, Value] = {"downtime_limit_ms": limits[0]}
    return (
        ProfileTemplate(
            "nova-abort",
            "OpenStack Nova, abort",
            words + "migration is given up. Nova's default.",
            values,
            (*steps, Step(ends, StepAction.ABORT)),
            f"{_NOVA}; live_migration_timeout_action = abort",
        ),
        ProfileTemplate(
            "nova-force",
            "OpenStack Nova, force complete",
            words + "guest is paused until it has arrived.",
            values,
            (*steps, Step(ends, StepAction.PAUSE)),
            f"{_NOVA}; live_migration_timeout_action = force_complete",
        ),
        ProfileTemplate(
            "nova-force-postcopy",
            "OpenStack Nova, force complete by post-copy",
            words + "migration switches to post-copy.",
            {**values, "postcopy": True},
            (*steps, Step(ends, StepAction.POSTCOPY)),
            f"{_NOVA}; live_migration_timeout_action = force_complete, "
            "live_migration_permit_post_copy = true",
        ),
    )


def _ovirt() -> tuple[ProfileTemplate, ...]:
    stalls = Stalled(_OVIRT_STALLED_S)  # its clock begins again after each step
    rising = tuple(_downtime(stalls, limit) for limit in _OVIRT_DOWNTIMES_MS)
    begins: dict[str, Value] = {"downtime_limit_ms": 100, "auto_converge": True}
    words = (
        "Auto-converge; each time that the migration stalls, the downtime limit rises: 150, 200, "
        "300, 400, 500 ms; then "
    )
    return (
        ProfileTemplate(
            "ovirt-minimal-downtime",
            "oVirt, minimal downtime",
            words + "the migration is given up. oVirt counts iterations that stall, these steps "
            "seconds.",
            begins,
            (*rising, Step(stalls, StepAction.ABORT)),
            f"{_OVIRT}: minimal downtime",
        ),
        ProfileTemplate(
            "ovirt-suspend-workload",
            "oVirt, suspend workload if needed",
            words + "5 s; then the migration is given up. oVirt compresses, too (XBZRLE).",
            begins,
            (*rising, _downtime(stalls, _OVIRT_SUSPEND_MS), Step(stalls, StepAction.ABORT)),
            f"{_OVIRT}: suspend workload if needed",
        ),
        ProfileTemplate(
            "ovirt-postcopy",
            "oVirt, post-copy",
            "Auto-converge; each time that the migration stalls, the downtime limit rises: 150, "
            "200 ms; then post-copy.",
            {**begins, "postcopy": True},
            (
                *(_downtime(stalls, limit) for limit in _OVIRT_POSTCOPY_MS),
                Step(stalls, StepAction.POSTCOPY),
            ),
            f"{_OVIRT}: post-copy migration",
        ),
    )


def _kubevirt(memory_bytes: int) -> tuple[ProfileTemplate, ...]:
    seconds = _seconds(_KUBEVIRT_TIMEOUT_S_PER_GIB, memory_bytes)
    ends = AfterSeconds(seconds)
    return (
        ProfileTemplate(
            "kubevirt",
            "KubeVirt, auto-converge",
            f"Auto-converge; given up after {seconds} s. KubeVirt also gives up after 150 s "
            "without progress.",
            {"auto_converge": True},
            (Step(ends, StepAction.ABORT),),
            f"{_KUBEVIRT} = true, false, false",
        ),
        ProfileTemplate(
            "kubevirt-postcopy",
            "KubeVirt, post-copy",
            f"Post-copy after {seconds} s.",
            {"postcopy": True},
            (Step(ends, StepAction.POSTCOPY),),
            f"{_KUBEVIRT} = false, true, true",
        ),
        ProfileTemplate(
            "kubevirt-pause",
            "KubeVirt, workload disruption",
            f"The guest is paused after {seconds} s until it has arrived.",
            {},
            (Step(ends, StepAction.PAUSE),),
            f"{_KUBEVIRT} = false, false, true",
        ),
        *_proposals(ends),
    )


def _proposals(ends: AfterSeconds) -> tuple[ProfileTemplate, ...]:
    first, *rising = _VEP_291_DOWNTIMES_MS
    cooled = Later(_VEP_291_COOLDOWN_S)
    return (
        ProfileTemplate(
            "kubevirt-vep-248",
            "KubeVirt, stall detection (VEP 248)",
            "Once what remains has not shrunk by 4 % for 40 s, and at an iteration that leaves at "
            f"most 4 % more than the least, the downtime limit rises to {_VEP_248_DOWNTIME_MS} ms; "
            "60 s later the migration is given up. KubeVirt also settles for a higher minimum "
            "where the least does not come again, gives up at once where that takes 1.5 times as "
            f"long, and after {ends.seconds} s in any case.",
            {},
            (
                _downtime(_VEP_248_STALLED, _VEP_248_DOWNTIME_MS),
                Step(Later(_VEP_248_SWITCHOVER_S), StepAction.ABORT),
            ),
            f"{_VEP_248}: maxDowntimeMs, stallProgressTimeout, stallMargin, switchoverTimeout",
        ),
        ProfileTemplate(
            "kubevirt-vep-291",
            "KubeVirt, downtime ramp (VEP 291)",
            f"From the third iteration on the downtime limit rises from {first} to {rising[-1]} "
            f"ms, a step every {_VEP_291_COOLDOWN_S} s; given up after {ends.seconds} s.",
            {"downtime_limit_ms": first},
            (
                _downtime(AfterIterations(_VEP_291_ITERATIONS), first),
                *(_downtime(cooled, limit) for limit in rising),
                Step(ends, StepAction.ABORT),
            ),
            f"{_VEP_291}: maxDowntimeMs, downtimeTuning (initialMs, steps, startAfterIteration, "
            "cooldownSeconds)",
        ),
    )
