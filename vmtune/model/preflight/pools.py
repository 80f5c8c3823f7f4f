"""Whether a VM's QEMU can run out of memory maps, as it runs and with the queues wanted. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from vmtune.model.findings.table import Finding
from vmtune.model.host.facts import VmFacts, VmState
from vmtune.model.host.pools import Design, Headroom, Level, fitting_queues, headroom
from vmtune.model.plan.situation import Situation
from vmtune.model.tunables.tunable import Tunable, Value

LIMIT = "vm_max_map_count"
_QUEUES, _SIZE = "virtio_blk_queues", "virtio_blk_queue_size"


def find_in_pools(vm: VmFacts, limit: int | None) -> Iterator[Finding]:
    """What is to be said of a running VM on a host with this vm.max_map_count."""
    found = headroom(vm, limit)
    if limit is None:
        return
    if found.level is Level.BLOCKER and found.maps is not None:
        yield Finding(
            "maps_nearly_exhausted",
            evidence={
                "maps": found.maps.total,
                "stacks": found.maps.stacks,
                "limit": limit,
                "wanted": max(found.needed_limit, 2 * limit),
            },
        )
    elif found.tight:
        yield Finding("maps_may_run_out", evidence=_evidence(found, vm, limit))


def check_pools(situation: Situation) -> Iterator[Finding]:
    """The VM as it runs. A plan that raises the host's limit is judged by what it will be."""
    vm = situation.vm
    if vm.state in (VmState.RUNNING, VmState.PAUSED):
        yield from find_in_pools(vm, _limit(situation))


def check_queues(tunable: Tunable, wanted: Value, situation: Situation) -> Iterator[Finding]:
    """The VM as it will start, with the queues that the profile wants."""
    if tunable.name not in (_QUEUES, _SIZE):
        return
    if tunable.name == _SIZE and _QUEUES in situation.values:
        return  # reported for the queues
    limit = _limit(situation)
    if limit is None or situation.reading(tunable).value == wanted:
        return
    queues, size = (_number(situation, name) for name in (_QUEUES, _SIZE))
    found = headroom(situation.vm, limit, queues, size)
    if found.max_maps > limit:
        evidence = _evidence(found, situation.vm, limit, size)
        yield Finding("maps_would_run_out", tunable.name, evidence)
    elif found.tight:
        evidence = _evidence(found, situation.vm, limit, size)
        yield Finding("maps_may_run_out", tunable.name, evidence)


def _limit(situation: Situation) -> int | None:
    """What vm.max_map_count is, or will be: it is never lowered by a profile."""
    now = situation.host.sysctls.get(LIMIT)
    wanted = situation.values.get(LIMIT)
    return now if now is None or not isinstance(wanted, int) else max(now, wanted)


def _number(situation: Situation, name: str) -> int | None:
    wanted = situation.values.get(name)
    return wanted if isinstance(wanted, int) else None


def _evidence(
    found: Headroom, vm: VmFacts, limit: int, queue_size: int | None = None
) -> dict[str, str | int]:
    return {
        "most": found.max_maps,
        "limit": limit,
        "wanted": found.needed_limit,
        "fewer": _fewer(vm, limit, found.model.design, queue_size),
    }


def _fewer(vm: VmFacts, limit: int, design: Design, queue_size: int | None = None) -> str:
    """The other way out than a higher limit."""
    queues = fitting_queues(vm, limit, queue_size)
    disks = "its disk" if len(vm.virtio_disks) == 1 else f"each of its {len(vm.virtio_disks)} disks"
    fewer = (
        f"give {disks} at most {queues} queue{'' if queues == 1 else 's'} ({_QUEUES})"
        if queues
        else f"give it fewer disks, or smaller queues ({_SIZE})"
    )
    newer = "; or use QEMU 9.0 or newer, which keeps fewer" if design is Design.PER_THREAD else ""
    return fewer + newer
