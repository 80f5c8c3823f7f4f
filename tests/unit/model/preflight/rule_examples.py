"""Each finding of the preflight but those about disks, with a situation that it comes up in."""

from dataclasses import replace

from tests.support.examples.facts import (
    ALLOWED,
    MAY_CHANGE,
    QEMU_7,
    host,
    migrating,
    situation,
    vm,
    with_reading,
)
from tests.unit.model.preflight.disk_examples import DISK_EXAMPLES
from tests.unit.model.preflight.situations import (
    AUTO,
    ENCRYPTED,
    GIB,
    INSIDE,
    LIMIT,
    POSTCOPY,
    QEMU_11_1,
    REAPED,
    SLACKEN,
    SMALL,
    UNSAFE,
    UNSEEN,
    WAITS,
    ZERO_COPY,
    busy,
    direct,
    direct_migration,
    inside,
    needing,
    packed,
    ringed,
    shared,
)
from vmtune.model.host.facts import MemoryMaps, VmState
from vmtune.model.host.hardware import Hardware
from vmtune.model.host.managers import NOVA
from vmtune.model.host.virtio_queues import VirtioQueue
from vmtune.model.plan.situation import Destination, Situation
from vmtune.model.versions import Version

EXAMPLES: list[tuple[str, str, Situation]] = [
    ("not_offered_by_qemu", "dirty_limit", situation({"dirty_limit": True}, vm=vm(QEMU_7))),
    ("not_offered_by_qemu", "iothread_poll_weight", situation({"iothread_poll_weight": 5})),
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
    ("pinned_cpus_missing", "", needing(Hardware(pinned_cpus=frozenset({2, 16, 17})))),
    ("machine_not_offered", "", needing(Hardware(), machine=False)),
    ("virtio_queues_too_long", "", migrating(
        vm=vm(virtio_queues=(VirtioQueue("virtio-disk0", 1024, 256),)), destination=QEMU_11_1)),
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
    ("step_not_offered", "", migrating({"copy_storage": True}, vm=vm(QEMU_7), steps=(WAITS,))),
    (
        "step_without_switch",
        "",
        migrating({"multifd": True, "postcopy": True}, steps=(SLACKEN, POSTCOPY)),
    ),
    ("step_without_switch", "", migrating({"dirty_limit": True}, steps=(LIMIT,))),
]  # fmt: skip
