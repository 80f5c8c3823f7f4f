"""The table of tunables: each setting once. Code, API, CLI, UI and docs derive from it.

Defaults, ranges and names are those of QEMU 10.0 (migration/options.c, qapi/migration.json,
util/async.c, accel/kvm/kvm-all.c) and libvirt 11.3 (qemu_migration_params.c).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from vmtune.errors import InvalidInput, SetupError
from vmtune.model.tunables.control_rows import CONTROL
from vmtune.model.tunables.tunable import (
    Kind,
    LibvirtKind,
    LibvirtName,
    QmpKind,
    QmpName,
    Route,
    Side,
    Tunable,
)
from vmtune.model.versions import Version
from vmtune.units import Unit

MIB = 1 << 20
_LIBVIRT_RESETS = "libvirt, at every migration"
_MOST_INT64 = (1 << 63) - 1
_MOST_INT = (1 << 31) - 1


def _capability(name: str) -> QmpName:
    return QmpName(QmpKind.CAPABILITY, name)


def _parameter(name: str) -> QmpName:
    return QmpName(QmpKind.PARAMETER, name)


def _flag(name: str, virsh: str, since: Version = Version(9)) -> LibvirtName:
    return LibvirtName(LibvirtKind.FLAG, name, virsh, since)


def _typed(name: str, virsh: str, since: Version = Version(9), scale: int = 1) -> LibvirtName:
    return LibvirtName(LibvirtKind.PARAMETER, name, virsh, since, scale)


def _iothread(name: str) -> LibvirtName:
    return LibvirtName(LibvirtKind.CALL, name, f"iothreadset --{name.replace('_', '-')}")


_MULTIFD = (
    Tunable(
        "multifd", "Parallel migration",
        "Sends RAM over several connections, each with its own thread. The first thing to try "
        "when one core or one TCP stream limits the transfer.",
        Kind.BOOLEAN, Route.MIGRATE, Side.BOTH, default=False,
        qmp=_capability("multifd"), libvirt=_flag("VIR_MIGRATE_PARALLEL", "--parallel"),
        overwriter=_LIBVIRT_RESETS,
    ),
    Tunable(
        "multifd_channels", "Parallel connections",
        "How many connections (and sender threads) multifd uses. More than there are spare "
        "cores on either host takes CPU time from the guests.",
        Kind.INTEGER, Route.MIGRATE, Side.BOTH, Unit.COUNT, 2, 1, 255,
        qmp=_parameter("multifd-channels"),
        libvirt=_typed("parallel.connections", "--parallel-connections"),
        overwriter=_LIBVIRT_RESETS,
    ),
    Tunable(
        "multifd_compression", "Compression of parallel migration",
        "Compresses what multifd sends. Helps where the network is slower than the compressor; "
        "excludes zero-copy.",
        Kind.CHOICE, Route.MIGRATE, Side.BOTH, default="none",
        choices=("none", "zlib", "zstd", "qatzip", "qpl", "uadk"),
        qmp=_parameter("multifd-compression"),
        libvirt=_typed("compression", "--compressed --comp-methods", Version(9, 4)),
        overwriter=_LIBVIRT_RESETS,
    ),
    Tunable(
        "multifd_zlib_level", "zlib level",
        "0 copies, 1 is fastest, 9 smallest. Used when multifd_compression is zlib.",
        Kind.INTEGER, Route.MIGRATE, Side.SOURCE, Unit.NONE, 1, 0, 9,
        qmp=_parameter("multifd-zlib-level"),
        libvirt=_typed("compression.zlib.level", "--comp-zlib-level", Version(9, 4)),
        overwriter=_LIBVIRT_RESETS,
    ),
    Tunable(
        "multifd_zstd_level", "zstd level",
        "0 is zstd's own default (3), 1 is fastest, 20 smallest. Used when "
        "multifd_compression is zstd.",
        Kind.INTEGER, Route.MIGRATE, Side.SOURCE, Unit.NONE, 1, 0, 20,
        qmp=_parameter("multifd-zstd-level"),
        libvirt=_typed("compression.zstd.level", "--comp-zstd-level", Version(9, 4)),
        overwriter=_LIBVIRT_RESETS,
    ),
    Tunable(
        "multifd_qatzip_level", "QATzip level",
        "1 is fastest, 9 smallest. Used when multifd_compression is qatzip.",
        Kind.INTEGER, Route.MONITOR, Side.SOURCE, Unit.NONE, 1, 1, 9,
        qmp=_parameter("multifd-qatzip-level"), since=Version(9, 2),
    ),
    Tunable(
        "zero_copy_send", "Zero-copy send",
        "Hands guest pages to the network card without copying them (MSG_ZEROCOPY). Needs "
        "multifd, no compression, no TLS, and memory that may be locked.",
        Kind.BOOLEAN, Route.MIGRATE, Side.SOURCE, default=False,
        qmp=_capability("zero-copy-send"), libvirt=_flag("VIR_MIGRATE_ZEROCOPY", "--zerocopy"),
        overwriter=_LIBVIRT_RESETS,
    ),
    Tunable(
        "zero_page_detection", "Zero-page detection",
        "Who looks for pages of zeroes: the multifd threads, the migration thread (legacy), "
        "or nobody.",
        Kind.CHOICE, Route.MONITOR, Side.SOURCE, default="multifd",
        choices=("none", "legacy", "multifd"),
        qmp=_parameter("zero-page-detection"), since=Version(9),
    ),
)  # fmt: skip

_CONVERGENCE = (
    Tunable(
        "xbzrle", "Delta compression (XBZRLE)",
        "Sends only what changed of a page that was sent before. For small writes over slow "
        "links; costs a cache on the source.",
        Kind.BOOLEAN, Route.MIGRATE, Side.BOTH, default=False,
        qmp=_capability("xbzrle"),
        libvirt=_typed("compression", "--compressed --comp-methods xbzrle"),
        overwriter=_LIBVIRT_RESETS,
    ),
    Tunable(
        "xbzrle_cache_size_bytes", "XBZRLE cache",
        "Memory on the source for pages that were sent before.",
        Kind.INTEGER, Route.MIGRATE, Side.SOURCE, Unit.BYTES, 64 * MIB, 4096, 1 << 62, True,
        qmp=_parameter("xbzrle-cache-size"),
        libvirt=_typed("compression.xbzrle.cache", "--comp-xbzrle-cache"),
        overwriter=_LIBVIRT_RESETS, running=True,
    ),
    Tunable(
        "compress", "Multi-thread compression",
        "Compresses pages with zlib in threads of their own, over one connection. "
        "multifd_compression came in its place.",
        Kind.BOOLEAN, Route.MIGRATE, Side.BOTH, default=False,
        qmp=_capability("compress"),
        libvirt=_typed("compression", "--compressed --comp-methods mt"),
        until=Version(9), overwriter=_LIBVIRT_RESETS,
    ),
    Tunable(
        "compress_threads", "Compressing threads",
        "How many threads of the source compress.",
        Kind.INTEGER, Route.MIGRATE, Side.SOURCE, Unit.COUNT, 8, 1, 255,
        qmp=_parameter("compress-threads"),
        libvirt=_typed("compression.mt.threads", "--comp-mt-threads"),
        until=Version(9), overwriter=_LIBVIRT_RESETS,
    ),
    Tunable(
        "decompress_threads", "Decompressing threads",
        "How many threads of the destination decompress.",
        Kind.INTEGER, Route.MONITOR, Side.DESTINATION, Unit.COUNT, 2, 1, 255,
        qmp=_parameter("decompress-threads"), until=Version(9),
    ),
    Tunable(
        "auto_converge", "Auto-converge",
        "Slows the guest's vCPUs step by step when dirty pages outrun the network.",
        Kind.BOOLEAN, Route.MIGRATE, Side.SOURCE, default=False,
        qmp=_capability("auto-converge"),
        libvirt=_flag("VIR_MIGRATE_AUTO_CONVERGE", "--auto-converge"),
        overwriter=_LIBVIRT_RESETS,
    ),
    Tunable(
        "cpu_throttle_initial_percent", "First throttle step",
        "Share of time the vCPUs are stopped at the first step of auto-converge.",
        Kind.INTEGER, Route.MIGRATE, Side.SOURCE, Unit.PERCENT, 20, 1, 99,
        qmp=_parameter("cpu-throttle-initial"),
        libvirt=_typed("auto_converge.initial", "--auto-converge-initial"),
        overwriter=_LIBVIRT_RESETS, running=True,
    ),
    Tunable(
        "cpu_throttle_increment_percent", "Further throttle steps",
        "What each further step of auto-converge adds.",
        Kind.INTEGER, Route.MIGRATE, Side.SOURCE, Unit.PERCENT, 10, 1, 99,
        qmp=_parameter("cpu-throttle-increment"),
        libvirt=_typed("auto_converge.increment", "--auto-converge-increment"),
        overwriter=_LIBVIRT_RESETS, running=True,
    ),
    Tunable(
        "max_cpu_throttle_percent", "Most throttle",
        "Auto-converge never stops the vCPUs for a larger share of time.",
        Kind.INTEGER, Route.MONITOR, Side.SOURCE, Unit.PERCENT, 99, 1, 99,
        qmp=_parameter("max-cpu-throttle"), running=True,
    ),
    Tunable(
        "cpu_throttle_tailslow", "Smaller last throttle steps",
        "Makes auto-converge's steps smaller as the throttle grows.",
        Kind.BOOLEAN, Route.MONITOR, Side.SOURCE, default=False,
        qmp=_parameter("cpu-throttle-tailslow"), running=True,
    ),
    Tunable(
        "throttle_trigger_threshold_percent", "Throttle trigger",
        "Auto-converge acts when dirty bytes of a period exceed this share of the bytes sent.",
        Kind.INTEGER, Route.MONITOR, Side.SOURCE, Unit.PERCENT, 50, 1, 100,
        qmp=_parameter("throttle-trigger-threshold"), running=True,
    ),
    Tunable(
        "dirty_limit", "Dirty limit",
        "Holds back only the vCPUs that write, instead of all as auto-converge does. Needs "
        "KVM with a dirty ring; excludes auto-converge.",
        Kind.BOOLEAN, Route.MONITOR, Side.SOURCE, default=False,
        qmp=_capability("dirty-limit"), since=Version(8, 1),
    ),
    Tunable(
        "vcpu_dirty_limit_mib_per_s", "Dirty limit of a vCPU",
        "The dirty rate that dirty_limit leaves each vCPU.",
        Kind.INTEGER, Route.MONITOR, Side.SOURCE, Unit.MIB_PER_S, 1, 1, _MOST_INT,
        qmp=_parameter("vcpu-dirty-limit"), since=Version(8, 1), running=True,
    ),
    Tunable(
        "vcpu_dirty_limit_period_ms", "Dirty limit period",
        "How often dirty_limit measures the vCPUs' dirty rates.",
        Kind.INTEGER, Route.MONITOR, Side.SOURCE, Unit.MS, 1000, 1, 1000,
        qmp=_parameter("x-vcpu-dirty-limit-period"), since=Version(8, 1),
    ),
)  # fmt: skip

_SWITCHOVER = (
    Tunable(
        "max_bandwidth_bytes_per_s", "Bandwidth limit",
        "The most that pre-copy may send; 0 is no limit. QEMU alone starts at 128 MiB/s, "
        "libvirt without a limit.",
        Kind.INTEGER, Route.MIGRATE, Side.SOURCE, Unit.BYTES_PER_S, 128 * MIB, 0, 1 << 62,
        qmp=_parameter("max-bandwidth"), libvirt=_typed("bandwidth", "--bandwidth", scale=MIB),
        overwriter=_LIBVIRT_RESETS, running=True,
    ),
    Tunable(
        "avail_switchover_bandwidth_bytes_per_s", "Bandwidth for the switchover",
        "What the network is expected to carry while the guest is stopped; QEMU uses it to "
        "decide when the rest fits the downtime limit. 0 is: use what was measured.",
        Kind.INTEGER, Route.MIGRATE, Side.SOURCE, Unit.BYTES_PER_S, 0, 0, 1 << 62,
        qmp=_parameter("avail-switchover-bandwidth"),
        libvirt=_typed("bandwidth.avail.switchover", "--available-switchover-bandwidth",
                       Version(11, 1), MIB),
        since=Version(8, 2), overwriter=_LIBVIRT_RESETS, running=True,
    ),
    Tunable(
        "downtime_limit_ms", "Downtime limit",
        "The longest stop that QEMU aims at when it switches over.",
        Kind.INTEGER, Route.MONITOR, Side.SOURCE, Unit.MS, 300, 0, 2_000_000,
        qmp=_parameter("downtime-limit"),
        libvirt=LibvirtName(LibvirtKind.CALL, "virDomainMigrateSetMaxDowntime",
                            "migrate-setmaxdowntime"),
        running=True,
    ),
    Tunable(
        "postcopy", "Post-copy",
        "Lets the guest run on the destination before all of its memory is there. Always ends, "
        "but a failure on the way loses the guest. Needs userfaultfd on the destination.",
        Kind.BOOLEAN, Route.MIGRATE, Side.BOTH, default=False,
        qmp=_capability("postcopy-ram"), libvirt=_flag("VIR_MIGRATE_POSTCOPY", "--postcopy"),
        overwriter=_LIBVIRT_RESETS,
    ),
    Tunable(
        "postcopy_preempt", "Post-copy preemption",
        "Sends pages that the guest waits for on a connection of their own.",
        Kind.BOOLEAN, Route.MIGRATE, Side.BOTH, default=False,
        qmp=_capability("postcopy-preempt"),
        libvirt=LibvirtName(LibvirtKind.AUTOMATIC, "on with post-copy where both QEMUs have it"),
        overwriter=_LIBVIRT_RESETS,
    ),
    Tunable(
        "max_postcopy_bandwidth_bytes_per_s", "Post-copy bandwidth limit",
        "The most that post-copy may send in the background; 0 is no limit.",
        Kind.INTEGER, Route.MIGRATE, Side.SOURCE, Unit.BYTES_PER_S, 0, 0, 1 << 62,
        qmp=_parameter("max-postcopy-bandwidth"),
        libvirt=_typed("bandwidth.postcopy", "--postcopy-bandwidth", scale=MIB),
        overwriter=_LIBVIRT_RESETS, running=True,
    ),
    Tunable(
        "tls", "TLS",
        "Encrypts the migration. Excludes zero-copy.",
        Kind.BOOLEAN, Route.MIGRATE, Side.BOTH, default=False,
        libvirt=_flag("VIR_MIGRATE_TLS", "--tls"), overwriter=_LIBVIRT_RESETS,
    ),
    Tunable(
        "tls_creds", "TLS credentials object",
        "The id of QEMU's tls-creds object, when QEMU is driven without libvirt.",
        Kind.TEXT, Route.MIGRATE, Side.BOTH, qmp=_parameter("tls-creds"),
        libvirt=LibvirtName(LibvirtKind.AUTOMATIC, "made and named by libvirt"),
        overwriter=_LIBVIRT_RESETS,
    ),
    Tunable(
        "tls_hostname", "TLS name of the destination",
        "The name in the destination's certificate, where it is not its host name.",
        Kind.TEXT, Route.MIGRATE, Side.SOURCE, qmp=_parameter("tls-hostname"),
        libvirt=_typed("tls.destination", "--tls-destination"), overwriter=_LIBVIRT_RESETS,
    ),
    Tunable(
        "announce_initial_ms", "First announcement",
        "Delay before the destination first tells the network where the guest now is.",
        Kind.INTEGER, Route.MONITOR, Side.DESTINATION, Unit.MS, 50, 0, 100_000,
        qmp=_parameter("announce-initial"),
    ),
    Tunable(
        "announce_max_ms", "Longest announcement delay",
        "The delay between announcements does not grow beyond this.",
        Kind.INTEGER, Route.MONITOR, Side.DESTINATION, Unit.MS, 550, 0, 100_000,
        qmp=_parameter("announce-max"),
    ),
    Tunable(
        "announce_rounds", "Announcements",
        "How many announcements the destination sends.",
        Kind.INTEGER, Route.MONITOR, Side.DESTINATION, Unit.COUNT, 5, 0, 1000,
        qmp=_parameter("announce-rounds"),
    ),
    Tunable(
        "announce_step_ms", "Growth of the announcement delay",
        "What each announcement adds to the delay before the next.",
        Kind.INTEGER, Route.MONITOR, Side.DESTINATION, Unit.MS, 100, 1, 10_000,
        qmp=_parameter("announce-step"),
    ),
)  # fmt: skip


def _pool(owner: QmpKind, prefix: str, where: str, libvirt: bool) -> tuple[Tunable, Tunable]:
    """Thread-pool limits of iothreads or of the main loop: the same pair of settings."""
    return (
        Tunable(
            f"{prefix}_thread_pool_min", f"Least threads of {where}",
            "Worker threads that are kept even when idle.",
            Kind.INTEGER, Route.LIVE, Side.SOURCE, Unit.COUNT, 0, 0, _MOST_INT,
            qmp=QmpName(owner, "thread-pool-min"),
            libvirt=_iothread("thread_pool_min") if libvirt else None,
        ),
        Tunable(
            f"{prefix}_thread_pool_max", f"Most threads of {where}",
            "Worker threads that block I/O may use at once.",
            Kind.INTEGER, Route.LIVE, Side.SOURCE, Unit.COUNT, 64, 1, _MOST_INT,
            qmp=QmpName(owner, "thread-pool-max"),
            libvirt=_iothread("thread_pool_max") if libvirt else None,
        ),
    )  # fmt: skip


_POOLS = (
    *_pool(QmpKind.IOTHREAD, "iothread", "each iothread", libvirt=True),
    *_pool(QmpKind.MAIN_LOOP, "main_loop", "the main loop", libvirt=False),
    Tunable(
        "iothread_poll_max_ns", "Longest polling",
        "How long an iothread polls before it sleeps; 0 turns polling off.",
        Kind.INTEGER, Route.LIVE, Side.SOURCE, Unit.NS, 32768, 0, _MOST_INT,
        qmp=QmpName(QmpKind.IOTHREAD, "poll-max-ns"), libvirt=_iothread("poll_max_ns"),
    ),
    Tunable(
        "iothread_poll_grow", "Growth of polling",
        "Factor by which polling grows when it finds work; 0 is QEMU's own choice.",
        Kind.INTEGER, Route.LIVE, Side.SOURCE, Unit.COUNT, 0, 0, _MOST_INT,
        qmp=QmpName(QmpKind.IOTHREAD, "poll-grow"), libvirt=_iothread("poll_grow"),
    ),
    Tunable(
        "iothread_poll_shrink", "Shrinking of polling",
        "Divisor by which polling shrinks when it finds no work; 0 is QEMU's own choice.",
        Kind.INTEGER, Route.LIVE, Side.SOURCE, Unit.COUNT, 0, 0, _MOST_INT,
        qmp=QmpName(QmpKind.IOTHREAD, "poll-shrink"), libvirt=_iothread("poll_shrink"),
    ),
    Tunable(
        "iothread_aio_max_batch", "Requests in a batch",
        "Most requests an iothread hands to the kernel at once; 0 is QEMU's own choice.",
        Kind.INTEGER, Route.LIVE, Side.SOURCE, Unit.COUNT, 0, 0, _MOST_INT64,
        qmp=QmpName(QmpKind.IOTHREAD, "aio-max-batch"),
    ),
    Tunable(
        "main_loop_aio_max_batch", "Requests in a batch of the main loop",
        "Most requests the main loop hands to the kernel at once; 0 is QEMU's own choice. The "
        "main loop has no settings for its polling.",
        Kind.INTEGER, Route.LIVE, Side.SOURCE, Unit.COUNT, 0, 0, _MOST_INT64,
        qmp=QmpName(QmpKind.MAIN_LOOP, "aio-max-batch"),
    ),
)  # fmt: skip

_BOOT = (
    Tunable(
        "dirty_ring_size_entries", "Dirty ring",
        "Entries of each vCPU's dirty ring; 0 tracks with a bitmap instead. Source and "
        "destination must agree under libvirt.",
        Kind.INTEGER, Route.BOOT, Side.BOTH, Unit.ENTRIES, 0, 0, 65536, True,
        qmp=QmpName(QmpKind.ACCELERATOR, "dirty-ring-size"),
        libvirt=LibvirtName(LibvirtKind.XML, "features/kvm/dirty-ring@size"),
    ),
    Tunable(
        "virtio_blk_queues", "Queues of virtio disks",
        "Queues of each virtio-blk disk. Each adds to the coroutine pool's demand.",
        Kind.INTEGER, Route.BOOT, Side.BOTH, Unit.COUNT, None, 1, 1024,
        qmp=QmpName(QmpKind.DEVICE, "num-queues"),
        libvirt=LibvirtName(LibvirtKind.XML, "devices/disk/driver@queues"),
    ),
    Tunable(
        "virtio_blk_queue_size", "Queue size of virtio disks",
        "Descriptors in each queue of each virtio-blk disk.",
        Kind.INTEGER, Route.BOOT, Side.BOTH, Unit.COUNT, 256, 2, 1024, True,
        qmp=QmpName(QmpKind.DEVICE, "queue-size"),
        libvirt=LibvirtName(LibvirtKind.XML, "devices/disk/driver@queue_size"),
    ),
)  # fmt: skip

_HOST = (
    Tunable(
        "vm_max_map_count", "Memory maps of a process",
        "The kernel's limit on maps; each pooled coroutine of QEMU takes two. QEMU reads it "
        "once, at its start.",
        Kind.INTEGER, Route.HOST, Side.BOTH, Unit.COUNT, None, 1024, _MOST_INT,
    ),
    Tunable(
        "net_core_optmem_max_bytes", "Socket option memory",
        "Zero-copy send needs it for its notifications; too little fails the migration.",
        Kind.INTEGER, Route.HOST, Side.SOURCE, Unit.BYTES, None, 4096, _MOST_INT,
    ),
    Tunable(
        "locked_memory_bytes", "Lockable memory",
        "How much of its memory QEMU may lock; zero-copy send needs it.",
        Kind.INTEGER, Route.HOST, Side.SOURCE, Unit.BYTES, None, 0, 1 << 62,
        libvirt=LibvirtName(LibvirtKind.XML, "memtune/hard_limit"),
    ),
)  # fmt: skip

NOT_TUNED: Mapping[str, str] = MappingProxyType(
    {
        "background-snapshot": "for snapshots, not for migration",
        "block": "removed in QEMU 9.1; storage is copied by libvirt",
        "block-bitmap-mapping": "an alias table, no setting",
        "block-incremental": "belongs to the removed block capability",
        "compress-level": "fastest by default; the compress capability was removed in QEMU 9.1",
        "compress-wait-thread": "belongs to compress, which was removed in QEMU 9.1",
        "direct-io": "acts only on migration to a file",
        "dirty-bitmaps": "set by libvirt as the disks need it",
        "events": "vmtune and libvirt both need it on",
        "late-block-activate": "set by libvirt as the disks need it",
        "mapped-ram": "acts only on migration to a file",
        "mode": "live migration is the normal mode",
        "pause-before-switchover": "libvirt's own handshake",
        "postcopy-blocktime": "a statistic, switched on where it is measured",
        "rdma-pin-all": "RDMA is not a transport that vmtune drives",
        "release-ram": "frees source memory in post-copy; cannot be undone",
        "return-path": "switched on with post-copy by QEMU or libvirt",
        "switchover-ack": "for VFIO devices, set by libvirt",
        "tls-authz": "destination access control, set by the operator",
        "validate-uuid": "a safety check, no tuning",
        "x-checkpoint-delay": "for COLO",
        "x-colo": "fault tolerance, not migration",
        "x-ignore-shared": "for memory shared between both QEMUs",
        "zero-blocks": "belongs to the removed block capability",
    }
)
"""Capabilities and parameters of QEMU that are no tunables, each with its reason."""


def _complete(rows: Iterable[Tunable]) -> Mapping[str, Tunable]:
    """The table by name, after proving that no row is half-filled.

    :raise AssertionError: naming the row and what it lacks.
    """
    table: dict[str, Tunable] = {}
    qmp_names: set[QmpName] = set()
    for row in rows:
        assert row.name.isidentifier() and row.name not in table, f"{row.name}: name"
        assert row.title and row.why.endswith("."), f"{row.name}: title or why"
        if row.kind is Kind.INTEGER:
            assert row.minimum is not None and row.maximum is not None, f"{row.name}: range"
            suffix = row.unit.value
            named = suffix in ("", "count") or row.name.endswith("_" + suffix)
            assert named, f"{row.name}: the name must end with its unit, {suffix}"
        assert (row.kind is Kind.CHOICE) == bool(row.choices), f"{row.name}: choices"
        assert row.default is None or row.accept(row.default) == row.default, f"{row.name}: default"
        if row.route is Route.MIGRATE:
            assert row.libvirt is not None and row.overwriter, f"{row.name}: libvirt"
        if row.route in (Route.MONITOR, Route.LIVE, Route.BOOT):
            assert row.qmp is not None, f"{row.name}: qmp"
        if row.route is Route.CONTROL:
            assert row.qmp is None and row.libvirt is None, f"{row.name}: it is vmtune's own"
        if row.qmp is not None:
            assert row.qmp not in qmp_names, f"{row.name}: {row.qmp} is tuned twice"
            tuned = row.pack or row.qmp.name not in NOT_TUNED
            assert tuned, f"{row.name}: {row.qmp} is listed as not tuned"
            qmp_names.add(row.qmp)
        table[row.name] = row
    return MappingProxyType(table)


BUILT_IN: Mapping[str, Tunable] = _complete(
    (*_MULTIFD, *_CONVERGENCE, *_SWITCHOVER, *_POOLS, *_BOOT, *_HOST, *CONTROL)
)
"""vmtune's own tunables by name, in the order in which people should read them."""

_loaded: dict[str, Tunable] = dict(BUILT_IN)
TUNABLES: Mapping[str, Tunable] = MappingProxyType(_loaded)
"""Every tunable by name: vmtune's own, then those of the packs that this process has loaded."""


@contextmanager
def extended(rows: Iterable[Tunable]) -> Iterator[None]:
    """The table has *rows* of tunable packs too, until the block is left. A service loads its
    packs once, before it reads any profile.

    :raise InvalidInput: a name, or a place in QEMU, that another tunable has; nothing is added.
    """
    wanted = {row.name: row for row in rows}
    places = {row.qmp: row.name for row in TUNABLES.values() if row.qmp}
    for name, row in wanted.items():
        taken = places.setdefault(row.qmp, name) if row.qmp else name
        if TUNABLES.get(name, row) != row or taken != name:
            raise InvalidInput(
                f"the pack {row.pack} has a tunable {name}, which is there already as {taken}",
                field="packs",
                code="shadowing_name",
                remedy="load one of both packs, or rename it",
            )
    added = [name for name in wanted if name not in TUNABLES]
    _complete((*TUNABLES.values(), *(wanted[name] for name in added)))
    _loaded.update((name, wanted[name]) for name in added)
    try:
        yield
    finally:
        for name in added:
            del _loaded[name]


def row_of(name: str) -> Tunable:
    """The row of a tunable that a record names.

    :raise SetupError: its pack is not loaded.
    """
    row = TUNABLES.get(name)
    if row is None:
        raise SetupError(
            f"no tunable {name[:60]!r} is known: its pack is not loaded",
            field=f"values.{name}",
            code="pack_not_loaded",
            remedy="name the pack in the setting packs, and start the service again",
        )
    return row


def by_qmp(kind: QmpKind) -> Mapping[str, Tunable]:
    """The tunables that QEMU keeps as *kind*, by QEMU's name."""
    return {t.qmp.name: t for t in TUNABLES.values() if t.qmp and t.qmp.kind is kind}
