"""The preflight: each finding comes up where it should, and nowhere on a healthy host."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.facts import (
    ALLOWED,
    MAY_CHANGE,
    QEMU_7,
    QEMU_10,
    direct_host,
    host,
    migrating,
    situation,
    vm,
    with_reading,
)
from tests.unit.model.preflight.disk_examples import DISK_EXAMPLES
from vmtune.model.findings.doctor_rows import DOCTOR_ROWS
from vmtune.model.findings.pack_rows import PACK_ROWS
from vmtune.model.findings.table import FINDINGS, Finding, Severity
from vmtune.model.host.facts import MemoryMaps, VmFacts, VmState
from vmtune.model.host.hardware import Hardware, Offer
from vmtune.model.host.managers import NOVA
from vmtune.model.migration.steps import AfterIterations, AfterSeconds, SetValues, Step, StepAction
from vmtune.model.plan.plan import TakesEffect, make_plan
from vmtune.model.plan.situation import Destination, Encrypted, Permissions, Situation
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.packs.pack import needed_consents
from vmtune.model.tunables.rules import accept_values
from vmtune.model.tunables.tunable import Route
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
POSTCOPY = Step(AfterSeconds(9), StepAction.POSTCOPY)
AUTO = {"auto_converge": True}
EXAMPLES: list[tuple[str, str, Situation]] = [
    ("not_offered_by_qemu", "dirty_limit", situation({"dirty_limit": True}, vm=vm(QEMU_7))),
    (
        "not_offered_by_qemu",
        "postcopy_preempt",
        direct_migration(
            {"postcopy": True, "postcopy_preempt": True},
            vm(capabilities={"postcopy-ram": False}),
        ),
    ),
    (
        "not_offered_by_qemu",
        "announce_rounds",
        migrating(
            {"announce_rounds": 3},
            destination=Destination("b", host("b", qemu=Version(7, 1))),
            permissions=ALLOWED,
        ),
    ),
    (
        "needs_newer_libvirt",
        "multifd_compression",
        migrating(
            {"multifd": True, "multifd_compression": "zstd"}, host=host(libvirt=Version(9))
        ),
    ),
    (
        "needs_newer_libvirt",
        "multifd_compression",
        migrating(
            {"multifd": True, "multifd_compression": "zstd"},
            destination=Destination("b", host("b", libvirt=Version(9))),
        ),
    ),
    (
        "compression_not_built_in",
        "multifd_compression",
        situation({"multifd": True, "multifd_compression": "qpl"}),
    ),
    (
        "postcopy_excludes_multifd",
        "postcopy",
        situation({"multifd": True, "postcopy": True}),
    ),
    (
        "postcopy_excludes_multifd",
        "postcopy",
        migrating({"multifd": True, "postcopy": True}, vm=vm(Version(11, 0))),
    ),
    (
        "postcopy_excludes_multifd",
        "postcopy",
        direct_migration(
            {"multifd": True, "postcopy": True},
            vm(Version(11, 0), postcopy_with_multifd=False),
            vm=vm(Version(11, 0), postcopy_with_multifd=True),
        ),
    ),
    (
        "compression_unknown_to_libvirt",
        "multifd_compression",
        situation(
            {"multifd": True, "multifd_compression": "qpl"},
            vm=vm(compression_methods=frozenset({"none", "zlib", "zstd", "qpl"})),
        ),
    ),
    ("machine_differs", "", direct_migration({}, vm(machine="pc-q35-7.2"))),
    ("dirty_limit_needs_ring", "dirty_limit", situation({"dirty_limit": True})),
    ("dirty_limit_needs_ring", "dirty_limit", situation({"dirty_limit": True}, vm=vm(kvm=False))),
    (
        "dirty_limit_not_alone",
        "auto_converge",
        situation(AUTO, vm=vm(capabilities={**vm().capabilities, "dirty-limit": True})),
    ),
    (
        "dirty_limit_not_alone",
        "dirty_limit",
        direct(
            {"dirty_limit": True},
            vm=vm(capabilities={**vm().capabilities, "auto-converge": True}),
        ),
    ),
    (
        "throttle_out_of_order",
        "cpu_throttle_initial_percent",
        situation(
            {**AUTO, "cpu_throttle_initial_percent": 60},
            vm=with_reading(vm(), "max_cpu_throttle_percent", 50),
        ),
    ),
    (
        "thread_pool_out_of_order",
        "iothread_thread_pool_min",
        situation({"iothread_thread_pool_min": 65}),
    ),
    (
        "thread_pool_out_of_order",
        "main_loop_thread_pool_max",
        situation(
            {"main_loop_thread_pool_max": 4},
            vm=with_reading(vm(), "main_loop_thread_pool_min", 5),
        ),
    ),
    ("no_such_part", "iothread_poll_max_ns", situation(
        {"iothread_poll_max_ns": 0}, vm=vm(iothreads=()))),
    ("no_such_part", "virtio_blk_queues", situation(
        {"virtio_blk_queues": 4}, vm=vm(virtio_disks=()))),
    ("not_whole_mib", "max_bandwidth_bytes_per_s", situation(
        {"max_bandwidth_bytes_per_s": 1_000_000})),
    ("set_by_libvirt", "postcopy_preempt", situation({"postcopy": True, "postcopy_preempt": True})),
    ("network_address_invalid", "migrate_uri", migrating({"migrate_uri": "tcp://"})),
    ("disks_uri_needs_libvirt", "disks_uri", direct_migration({"disks_uri": "tcp://10.0.0.2"})),
    ("migrate_uri_missing", "listen_address", direct_migration({"listen_address": "0.0.0.0"})),
    ("vfio_device", "", needing(Hardware(host_devices=("0000:3b:00.1",)))),
    ("virtiofs_device", "", needing(Hardware(virtiofs=("src",)))),
    ("tpm_passthrough", "", needing(Hardware(tpm="passthrough"))),
    ("tpm_not_offered", "", needing(Hardware(tpm="emulator"), tpms=frozenset())),
    ("hugepages_missing", "", needing(
        Hardware(hugepage_bytes=2 << 20), free_hugepages_bytes=256 << 20)),
    ("machine_not_offered", "", needing(Hardware(), machine=False)),
    ("cpu_not_offered", "", needing(Hardware(cpu_xml="<cpu/>"), cpu=False)),
    ("cpu_host_passthrough", "", needing(Hardware(cpu_mode="host-passthrough"), cpu=True)),
    ("cpu_host_model", "", needing(Hardware(cpu_mode="host-model"), cpu=True)),
    ("has_snapshots", "", needing(Hardware(snapshots=2))),
    *DISK_EXAMPLES,
    ("tls_creds_missing", "tls", direct({"tls": True})),
    ("tls_creds_unknown", "tls_creds", direct(
        {"tls": True, "tls_creds": "tls0"}, vm=vm(objects=frozenset({"tls1"})))),
    ("tls_slower_than_guest", "tls", migrating({"tls": True}, destination=ENCRYPTED)),
    ("tls_certificates_missing", "tls", migrating(
        {"tls": True}, destination=Destination("b", host("b", no_certificates_in="/etc/pki")))),
    ("xbzrle_cache_too_large", "xbzrle_cache_size_bytes", situation(
        {"xbzrle": True, "xbzrle_cache_size_bytes": 1 << 62})),
    ("destination_needs_command_line", "announce_rounds", migrating({"announce_rounds": 3})),
    ("boot_needs_owner", "dirty_ring_size_entries", direct({"dirty_ring_size_entries": 4096})),
    ("host_value_differs", "vm_max_map_count", situation({"vm_max_map_count": 1 << 20})),
    ("host_changes", "vm_max_map_count", situation(
        {"vm_max_map_count": 1 << 20}, permissions=MAY_CHANGE)),
    ("host_value_differs", "vm_max_map_count", situation(
        {"vm_max_map_count": 1 << 20}, host=host(local=False), permissions=MAY_CHANGE)),
    ("host_value_differs", "vm_max_map_count", migrating(
        {"vm_max_map_count": 1 << 20}, permissions=MAY_CHANGE)),
    ("locked_memory_differs", "locked_memory_bytes", situation(
        {"locked_memory_bytes": 1 << 30}, permissions=MAY_CHANGE)),
    ("maps_nearly_exhausted", "", situation(vm=vm(maps=MemoryMaps(60000, 10)), host=SMALL)),
    ("maps_may_run_out", "", situation(vm=busy(), host=SMALL)),
    ("maps_may_run_out", "", migrating(vm=busy(QEMU_7), host=SMALL)),
    ("maps_may_run_out", "virtio_blk_queues", situation({"virtio_blk_queues": 55}, host=SMALL)),
    ("maps_would_run_out", "virtio_blk_queues", situation({"virtio_blk_queues": 200}, host=SMALL)),
    ("maps_would_run_out", "virtio_blk_queues", situation(
        {"virtio_blk_queues": 60, "virtio_blk_queue_size": 1024}, host=SMALL)),
    ("maps_would_run_out", "virtio_blk_queue_size", situation(
        {"virtio_blk_queue_size": 1024}, vm=with_reading(vm(), "virtio_blk_queues", 32),
        host=SMALL)),
    ("locked_memory_differs", "locked_memory_bytes", situation({"locked_memory_bytes": 1 << 30})),
    ("migration_active", "", situation(vm=vm(migrating=True))),
    ("vm_not_running", "", situation(vm=vm(state=VmState.SHUT_OFF))),
    ("vm_cannot_migrate", "", migrating(vm=vm(blocked_reasons=("a device says no",)))),
    (
        "libvirt_too_old_for_qemu",
        "",
        migrating(vm=vm(Version(11, 1, 3)), host=host(libvirt=Version(11, 3, 0))),
    ),
    ("vm_on_destination", "", migrating(destination=Destination("b", host("b"), None, True))),
    ("no_incoming_qemu", "", direct_migration({})),
    ("managed_elsewhere", "", migrating(vm=vm(manager=NOVA.name))),
    (
        "host_in_maintenance",
        "",
        migrating(destination=Destination("b", host("b"), in_maintenance=True)),
    ),
    ("no_peer_uri", "", migrating(destination=Destination("b", host("b", peer_uri="")))),
    (
        "locked_memory_too_low",
        "zero_copy_send",
        situation(ZERO_COPY, host=host(can_lock_beyond_limits=False)),
    ),
    ("locked_memory_too_low", "zero_copy_send", direct(ZERO_COPY)),
    ("locked_memory_shared", "zero_copy_send", direct(ZERO_COPY, vm=shared(GIB))),
    ("locked_memory_shared", "zero_copy_send", situation(ZERO_COPY, vm=shared(4096, 0))),
    (
        "optmem_too_low",
        "zero_copy_send",
        situation(ZERO_COPY, host=host(sysctls={"net_core_optmem_max_bytes": 4096})),
    ),
    (
        "optmem_low",
        "zero_copy_send",
        situation(
            {**ZERO_COPY, "multifd_channels": 8},
            host=host(sysctls={"net_core_optmem_max_bytes": 20480}),
        ),
    ),
    (
        "optmem_slows",
        "zero_copy_send",
        situation(
            ZERO_COPY,
            vm=vm(Version(10, 2)),
            host=host(sysctls={"net_core_optmem_max_bytes": 10240}),
        ),
    ),
    (
        "more_channels_than_cpus",
        "multifd_channels",
        migrating(
            {"multifd": True, "multifd_channels": 8},
            destination=Destination("b", host("b", cpus=4)),
        ),
    ),
    ("monitor_taints", "", situation({"downtime_limit_ms": 500})),
    ("pending_restart", "dirty_ring_size_entries", situation({"dirty_ring_size_entries": 4096})),
    (
        "transient_vm",
        "dirty_ring_size_entries",
        situation({"dirty_ring_size_entries": 4096}, vm=vm(persistent=False)),
    ),
    ("fresh_destination", "", migrating({"downtime_limit_ms": 500})),
    ("postcopy_can_lose_guest", "postcopy", situation({"postcopy": True})),
    ("reaper_needs_ring", "reaper_policy", situation(REAPED)),
    ("reaper_needs_ring", "reaper_policy", situation(REAPED, vm=vm(kvm=False))),
    (
        "reaper_ring_unknown",
        "reaper_policy",
        situation(REAPED, vm=with_reading(vm(), "dirty_ring_size_entries", None)),
    ),
    (
        "rings_in_use",
        "reaper_policy",
        situation(REAPED, vm=vm(capabilities={**vm().capabilities, "dirty-limit": True})),
    ),
    ("rings_in_use", "reaper_policy", migrating(REAPED, vm=inside("levels"))),
    ("rings_in_use", "dirty_limit", situation({"dirty_limit": True}, vm=inside("levels"))),
    ("rings_in_use", "qemu_reaper_policy", packed(INSIDE, vm=replace(
        inside(), capabilities={"dirty-limit": True}))),
    ("reaper_needs_ring", "qemu_reaper_policy", packed(INSIDE, vm=inside(entries=0))),
    ("reaper_ring_unknown", "qemu_reaper_policy", packed(INSIDE, vm=inside(entries=None))),
    ("ring_without_reaper", "", migrating(vm=ringed(65536), host=UNSAFE)),
    ("ring_without_reaper", "", migrating(INSIDE, vm=inside(), host=UNSAFE)),
    ("ring_without_reaper", "", migrating(
        {"dirty_limit": True}, vm=replace(ringed(65536), aborts_on_short_reset=True),
        host=UNSAFE)),
    ("ring_without_reaper", "dirty_ring_size_entries", situation(
        {"dirty_ring_size_entries": 65536}, host=UNSAFE)),
    ("ring_fills_between_rounds", "", migrating(REAPED, vm=ringed(4096), host=UNSAFE)),
    ("ring_fills_between_rounds", "", migrating(REAPED, vm=ringed(16384), host=UNSAFE)),
    ("ring_fills_between_rounds", "dirty_ring_size_entries", situation(
        {**REAPED, "dirty_ring_size_entries": 8192}, host=UNSAFE)),
    ("ring_fills_between_rounds", "", migrating(
        REAPED, vm=replace(ringed(65536), vcpu_dirty_bytes_per_s=6 << 30), host=UNSAFE)),
    ("ring_must_not_fill", "", migrating(REAPED, vm=ringed(65536), host=UNSAFE)),
    ("running_ring_unsafe", "", situation(vm=ringed(65536), host=UNSAFE)),
    ("destination_ring_unsafe", "", migrating(
        REAPED, vm=ringed(65536), destination=Destination("b", UNSAFE))),
    ("ring_reset_unknown", "", migrating(vm=ringed(65536), host=UNSEEN)),
    ("ring_reset_unknown", "", situation(vm=ringed(65536), host=UNSEEN)),
    ("ring_reset_unknown", "", migrating(
        vm=ringed(65536), destination=Destination("b", UNSEEN))),
    ("ring_reset_unknown", "dirty_ring_size_entries", situation(
        {"dirty_ring_size_entries": 65536}, vm=vm(state=VmState.SHUT_OFF), host=UNSEEN)),
    ("reaper_small_ring", "reaper_policy", situation(REAPED, vm=ringed(8192))),
    (
        "reaper_small_ring",
        "reaper_policy",
        situation({**REAPED, "reaper_min_interval_ms": 300}, vm=ringed(65536)),
    ),
    (
        "dirty_rate_being_measured",
        "reaper_policy",
        migrating(REAPED, vm=replace(ringed(65536), measuring_dirty_rate=True)),
    ),
    ("not_offered_by_qemu", "reaper_policy", situation(REAPED, vm=vm(QEMU_7))),
    ("monitor_taints", "", migrating(REAPED, vm=ringed(65536))),
    ("monitor_taints", "", migrating({}, steps=(SLACKEN,))),
    ("step_not_offered", "", migrating({"dirty_limit": True}, vm=vm(QEMU_7), steps=(LIMIT,))),
    (
        "step_without_switch",
        "",
        migrating({"multifd": True, "postcopy": True}, steps=(SLACKEN, POSTCOPY)),
    ),
    ("step_without_switch", "", migrating({"dirty_limit": True}, steps=(LIMIT,))),
]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "tunable", "where"),
    EXAMPLES,
    ids=[f"{c}-{t}-{i}" for i, (c, t, _) in enumerate(EXAMPLES)],
)
def test_each_finding_comes_up_with_evidence_and_remedy(
    code: str, tunable: str, where: Situation
) -> None:
    hits = [f for f in found(where) if (f.code, f.tunable) == (code, tunable)]
    assert len(hits) >= 1
    assert "{" not in hits[0].message + hits[0].remedy
    assert hits[0].message
    assert hits[0].remedy


def test_every_finding_has_an_example() -> None:
    told_elsewhere = {kind.code for kind in (*DOCTOR_ROWS, *PACK_ROWS)}
    assert {code for code, _, _ in EXAMPLES} == set(FINDINGS) - told_elsewhere


HEALTHY = [
    migrating(vm=vm(Version(11, 1, 3)), host=host(libvirt=Version(12, 8, 0))),
    situation({}),
    migrating({}),
    situation(ZERO_COPY),
    migrating(ZERO_COPY),
    direct(ZERO_COPY, vm=ROOMY),
    direct(ZERO_COPY, vm=vm(may_lock_memory=True)),
    direct(ZERO_COPY, vm=shared(GIB - 1)),
    direct(ZERO_COPY, vm=shared(0, 0)),
    direct({"multifd": True}, vm=shared(GIB)),
    direct(ZERO_COPY, vm=replace(shared(GIB), may_lock_memory=True)),
    direct_migration({"multifd": True}, vm()),
    situation({"dirty_limit": True}, vm=with_reading(vm(), "dirty_ring_size_entries", 4096)),
    situation({"multifd": True, "postcopy": True}, vm=vm(QEMU_7)),
    situation({"multifd": True, "postcopy": True}, vm=vm(Version(10, 1))),
    situation({"iothread_thread_pool_min": 65, "iothread_thread_pool_max": 80}),
    situation({"vm_max_map_count": 65530}),
    situation({"vm_max_map_count": 1 << 20}, permissions=MAY_CHANGE),
    situation({"virtio_blk_queues": 16, "virtio_blk_queue_size": 256}, host=SMALL),
    situation({"virtio_blk_queues": 200, "vm_max_map_count": 1 << 20}, host=SMALL,
              permissions=MAY_CHANGE),
    situation(vm=replace(busy(), state=VmState.PAUSED, virtio_disks=()), host=SMALL),
    situation(vm=vm(maps=MemoryMaps(58977, 0)), host=SMALL),
    situation({"max_bandwidth_bytes_per_s": 64 << 20}),
    migrating({"announce_rounds": 3}, permissions=ALLOWED),
    situation({"announce_rounds": 3}),
    direct({"max_bandwidth_bytes_per_s": 1_000_000}),
    direct({"dirty_ring_size_entries": 0}),
    situation({"multifd": False, "multifd_compression": "none"}, host=host(libvirt=Version(9))),
    migrating(REAPED, vm=ringed(65536)),
    situation({**REAPED, "dirty_limit": False},
              vm=replace(ringed(65536), capabilities={"dirty-limit": True})),
    situation({"reaper_policy": "off"}, vm=vm(QEMU_7)),
    packed({"qemu_reaper_policy": "stock"}, vm=inside(entries=0), permissions=CONSENTED),
    packed(INSIDE, vm=inside(), permissions=CONSENTED),
    migrating({**REAPED, "qemu_reaper_policy": "stock"}, vm=inside("levels"), tunables=PATCHED,
              permissions=CONSENTED),
    situation({**REAPED, "dirty_ring_size_entries": 65536}),
    # Rings on a kernel that empties them in part.
    migrating(vm=ringed(0), host=UNSAFE),
    migrating(vm=replace(ringed(65536), kvm=False), host=UNSAFE),
    migrating(vm=replace(ringed(65536), aborts_on_short_reset=False), host=UNSAFE),
    migrating(vm=ringed(65536), host=host(ring_reset_ends_early=False)),
    migrating(vm=ringed(65536), host=host(ring_reset_ends_early=None)),
    migrating(REAPED, vm=ringed(65536), host=UNSAFE),
    migrating(REAPED, vm=ringed(32768), host=UNSAFE),
    situation(vm=ringed(65536), host=UNSAFE),
    situation({"dirty_ring_size_entries": 0}, vm=ringed(65536), host=UNSAFE),
    situation({**REAPED, "dirty_ring_size_entries": 65536}, vm=ringed(65536), host=UNSAFE),
    migrating(vm=ringed(65536), destination=Destination("b", UNSAFE)),
    migrating({"postcopy": True}, steps=(SLACKEN, POSTCOPY)),
]  # fmt: skip


@pytest.mark.parametrize("where", HEALTHY, ids=range(len(HEALTHY)))
def test_nothing_stands_against_what_is_right(where: Situation) -> None:
    assert [f.code for f in found(where) if f.severity is Severity.BLOCKER] == []


def test_what_an_old_libvirt_does_not_know_goes_through_the_monitor_on_the_source() -> None:
    values = {"avail_switchover_bandwidth_bytes_per_s": 1_000_001}
    old = make_plan(situation(values, host=host(libvirt=Version(9))), "a", "p", 1)
    new = make_plan(situation(values), "a", "p", 1)
    assert (old.items[0].route, new.items[0].route) == (Route.MONITOR, Route.MIGRATE)
    assert old.items[0].overwriter == ""
    assert "libvirt" in new.items[0].overwriter
    assert old.items[0].takes_effect is TakesEffect.NOW
    assert not old.blockers()


def test_a_blocked_tunable_is_planned_never_and_left_out_of_the_changes() -> None:
    values = {"dirty_limit": True, "downtime_limit_ms": 500}
    plan = make_plan(situation(values), "a", "p", 1)
    by_name = {item.tunable: item for item in plan.items}
    assert by_name["dirty_limit"].takes_effect is TakesEffect.NEVER
    assert [c.tunable for c in plan.changes(Route.MONITOR)] == ["downtime_limit_ms"]
    assert "ring" in plan.reason_against("dirty_limit")
    assert plan.reason_against("downtime_limit_ms") == ""


def test_overrides_lift_the_named_blocker_only() -> None:
    plan = make_plan(situation({"dirty_limit": True}, vm=vm(state=VmState.SHUT_OFF)), "a", "p", 1)
    assert {f.code for f in plan.blockers()} == {"vm_not_running", "dirty_limit_needs_ring"}
    lifted = plan.blockers(frozenset({"dirty_limit_needs_ring"}))
    assert [f.code for f in lifted] == ["vm_not_running"]


def test_a_plan_is_clean_when_everything_is_as_wanted() -> None:
    assert make_plan(situation({"downtime_limit_ms": 300}), "a", "p", 1).clean
    assert not make_plan(situation({"downtime_limit_ms": 301}), "a", "p", 1).clean


def test_one_differing_part_is_a_difference() -> None:
    facts = vm()
    reading = facts.readings["iothread_poll_grow"]
    mixed = replace(reading, value=None, parts={"iothread1": 0, "iothread2": 2})
    facts = replace(facts, readings={**facts.readings, "iothread_poll_grow": mixed})
    plan = make_plan(situation({"iothread_poll_grow": 0}, vm=facts), "a", "p", 1)
    assert plan.items[0].differs


def test_more_of_a_host_value_than_wanted_is_no_difference() -> None:
    assert make_plan(situation({"vm_max_map_count": 65530}), "a", "p", 1).clean


def test_the_largest_ring_is_large_enough() -> None:
    assert "reaper_small_ring" not in {f.code for f in found(migrating(REAPED, vm=ringed(65536)))}
    assert "reaper_small_ring" not in {f.code for f in found(migrating(REAPED, vm=ringed(16384)))}


def test_a_finding_about_a_step_names_it_by_its_place() -> None:
    where = migrating({"multifd": True, "postcopy": True}, steps=(SLACKEN, POSTCOPY))
    (finding,) = [f for f in found(where) if f.code == "step_without_switch"]
    assert finding.field == "steps.1"
    assert "step 2 will fail: postcopy" in finding.message
    (other, _) = [f for f in found(where) if f.code == "postcopy_excludes_multifd"]
    assert other.field == "values.postcopy"
    assert Finding("fresh_destination").field == "vm"


def test_what_vmtune_does_itself_is_planned_for_the_next_migration() -> None:
    plan = make_plan(migrating(REAPED, vm=ringed(65536), steps=(SLACKEN,)), "a", "p", 1)
    (item,) = plan.items
    assert (item.route, item.takes_effect) == (Route.CONTROL, TakesEffect.AT_MIGRATION)
    assert not item.differs
    assert plan.steps == (SLACKEN,)
    assert [c.tunable for c in plan.changes(Route.CONTROL)] == ["reaper_policy"]


def test_examples_are_profiles_that_could_be_stored() -> None:
    for code, _, where in EXAMPLES:
        if code == "network_address_invalid":
            continue  # what a placeholder stood for
        assert accept_values(where.values, PATCHED) == where.values


BOTH = {"multifd": True, "postcopy": True}


@pytest.mark.parametrize(
    ("here", "there", "sides"),
    [
        (vm(Version(10), postcopy_with_multifd=True), None, []),  # a backport
        (vm(Version(11), postcopy_with_multifd=False), None, ["source"]),
        (vm(QEMU_7), None, []),
        (vm(QEMU_7), vm(QEMU_10), ["destination"]),
        (vm(QEMU_10), vm(QEMU_10, postcopy_with_multifd=True), ["source"]),
        (vm(QEMU_10), vm(QEMU_10), ["source", "destination"]),
    ],
)
def test_each_qemu_is_asked_whether_post_copy_excludes_multifd(
    here: VmFacts, there: VmFacts | None, sides: list[str]
) -> None:
    where = direct_migration(BOTH, there, vm=here) if there else direct(BOTH, vm=here)
    blockers = [f for f in found(where) if f.code == "postcopy_excludes_multifd"]
    assert [f.evidence["side"] for f in blockers] == sides


@pytest.mark.parametrize(
    ("version", "optmem", "code"),
    [
        (Version(10, 1), 10240, "optmem_too_low"),
        (Version(10, 2), 10240, "optmem_slows"),
        (Version(10, 2), 4096, "optmem_too_low"),
        (Version(10, 2), 131072, ""),
    ],
)
def test_a_qemu_that_waits_for_socket_memory_is_no_blocker(
    version: Version, optmem: int, code: str
) -> None:
    little = host(sysctls={"net_core_optmem_max_bytes": optmem})
    codes = [f.code for f in found(situation(ZERO_COPY, vm=vm(version), host=little))]
    assert [c for c in codes if c.startswith("optmem")] == ([code] if code else [])


@pytest.mark.parametrize("code", ["locked_memory_too_low", "locked_memory_differs"])
def test_no_advice_leads_to_a_hard_limit(code: str) -> None:
    remedy = FINDINGS[code].remedy
    assert "<locked/>" in remedy
    assert "hard_limit ends the guest itself" in remedy
