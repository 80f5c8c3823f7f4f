"""Situations that the examples of findings are made of."""

from dataclasses import replace
from typing import Any

from tests.support.examples.facts import (
    QEMU_10,
    direct_host,
    host,
    migrating,
    situation,
    vm,
    with_reading,
)
from vmtune.model.findings.table import Finding
from vmtune.model.host.facts import VmFacts
from vmtune.model.host.hardware import Hardware, Offer
from vmtune.model.migration.steps import AfterIterations, AfterSeconds, SetValues, Step, StepAction
from vmtune.model.plan.plan import make_plan
from vmtune.model.plan.situation import Destination, Encrypted, Permissions, Situation
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.packs.pack import needed_consents
from vmtune.model.versions import Version
from vmtune.packs import load

ZERO_COPY = {"multifd": True, "multifd_channels": 4, "zero_copy_send": True}
ROOMY = vm(locked_memory_limit_bytes=1 << 40)


def found(s: Situation) -> list[Finding]:
    return list(make_plan(s, "a", "p", 1).findings)


def direct(values: dict[str, Any], **changes: Any) -> Situation:
    return situation(values, **{"host": direct_host(), **changes})


def direct_migration(values: dict[str, Any], waiting: Any = None, **changes: Any) -> Situation:
    goal = Destination("b", direct_host("b"), waiting)
    return situation(values, **{"host": direct_host(), "destination": goal, **changes})


def ringed(entries: int) -> VmFacts:
    return with_reading(vm(), "dirty_ring_size_entries", entries)


SMALL = host(sysctls={"vm_max_map_count": 65530, "net_core_optmem_max_bytes": 131072})


def busy(version: Version = QEMU_10) -> VmFacts:
    """Its disks have 28,672 descriptors."""
    return with_reading(vm(version), "virtio_blk_queues", 56)


def needing(needs: Hardware, **offered: Any) -> Situation:
    """A VM that needs something, about to go to a host of which something is known."""
    goal = Destination("b", host("b"), offer=Offer(**offered))
    return migrating(vm=vm(hardware=needs), destination=goal)


QEMU_11_1 = Destination("b", host("b", qemu=Version(11, 1, 3)))
GIB = 1 << 30


def shared(others: int, more: int = GIB - 1) -> VmFacts:
    """It may lock so much more than its memory, and others of its user have pinned some."""
    limit = vm().memory_bytes + more
    return vm(locked_memory_limit_bytes=limit, pinned_by_others_bytes=others)


REAPED = {"reaper_policy": "predict"}
INSIDE = {"qemu_reaper_policy": "levels"}
UNSAFE = host(ring_reset_ends_early=True)
UNSEEN = host(ring_reset_ends_early=None)
"""On another machine, whose kernel cannot be asked."""
PATCHED = BUILT_IN.with_packs(row for pack in load(["qemu-patched"]) for row in pack.tunables)
CONSENTED = Permissions(pack_consents=needed_consents(PATCHED["qemu_reaper_policy"]))


def inside(policy: str = "stock", entries: int | None = 65536) -> VmFacts:
    """A patched QEMU, by its reaper's policy and its rings' size."""
    ring = with_reading(vm(), "dirty_ring_size_entries", entries)
    return replace(with_reading(ring, "qemu_reaper_policy", policy), pack_offers=frozenset(INSIDE))


def packed(values: dict[str, Any], **changes: Any) -> Situation:
    return situation(values, **{"tunables": PATCHED, **changes})


ENCRYPTED = Destination("b", host("b"), encrypted=Encrypted(80 << 20, 3, (80 << 20) + 1))
SLACKEN = Step(AfterIterations(4), SetValues((("downtime_limit_ms", 500),)))
LIMIT = Step(AfterSeconds(4), SetValues((("vcpu_dirty_limit_mib_per_s", 20),)))
WAITS = Step(AfterSeconds(4), SetValues((("copy_synchronous_writes", True),)))
POSTCOPY = Step(AfterSeconds(9), StepAction.POSTCOPY)
AUTO = {"auto_converge": True}
