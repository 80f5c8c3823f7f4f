"""Rows of what helps a migration to converge: delta compression, throttling, the dirty limit."""

from __future__ import annotations

from vmtune.model.tunables.rows.names import (
    LIBVIRT_RESETS,
    MAX_INT,
    MIB,
    capability,
    flag,
    libvirt_parameter,
    parameter,
)
from vmtune.model.tunables.tunable import Kind, Route, Side, Tunable
from vmtune.model.versions import Version
from vmtune.units import Unit

CONVERGENCE = (
    Tunable(
        "xbzrle", "Delta compression (XBZRLE)",
        "Sends only what changed of a page that was sent before. For small writes over slow "
        "links; costs a cache on the source.",
        Kind.BOOLEAN, Route.MIGRATE, Side.BOTH, default=False,
        qmp=capability("xbzrle"),
        libvirt=libvirt_parameter("compression", "--compressed --comp-methods xbzrle"),
        overwriter=LIBVIRT_RESETS,
    ),
    Tunable(
        "xbzrle_cache_size_bytes", "XBZRLE cache",
        "Memory on the source for pages that were sent before.",
        Kind.INTEGER, Route.MIGRATE, Side.SOURCE, Unit.BYTES, 64 * MIB, 4096, 1 << 62, True,
        qmp=parameter("xbzrle-cache-size"),
        libvirt=libvirt_parameter("compression.xbzrle.cache", "--comp-xbzrle-cache"),
        overwriter=LIBVIRT_RESETS, running=True,
    ),
    Tunable(
        "compress", "Multi-thread compression",
        "Compresses pages with zlib in threads of their own, over one connection. "
        "multifd_compression came in its place.",
        Kind.BOOLEAN, Route.MIGRATE, Side.BOTH, default=False,
        qmp=capability("compress"),
        libvirt=libvirt_parameter("compression", "--compressed --comp-methods mt"),
        until=Version(9), overwriter=LIBVIRT_RESETS,
    ),
    Tunable(
        "compress_threads", "Compressing threads",
        "How many threads of the source compress.",
        Kind.INTEGER, Route.MIGRATE, Side.SOURCE, Unit.COUNT, 8, 1, 255,
        qmp=parameter("compress-threads"),
        libvirt=libvirt_parameter("compression.mt.threads", "--comp-mt-threads"),
        until=Version(9), overwriter=LIBVIRT_RESETS,
    ),
    Tunable(
        "decompress_threads", "Decompressing threads",
        "How many threads of the destination decompress.",
        Kind.INTEGER, Route.MONITOR, Side.DESTINATION, Unit.COUNT, 2, 1, 255,
        qmp=parameter("decompress-threads"), until=Version(9),
    ),
    Tunable(
        "auto_converge", "Auto-converge",
        "Slows the guest's vCPUs step by step when dirty pages outrun the network.",
        Kind.BOOLEAN, Route.MIGRATE, Side.SOURCE, default=False,
        qmp=capability("auto-converge"),
        libvirt=flag("VIR_MIGRATE_AUTO_CONVERGE", "--auto-converge"),
        overwriter=LIBVIRT_RESETS,
    ),
    Tunable(
        "cpu_throttle_initial_percent", "First throttle step",
        "Share of time the vCPUs are stopped at the first step of auto-converge.",
        Kind.INTEGER, Route.MIGRATE, Side.SOURCE, Unit.PERCENT, 20, 1, 99,
        qmp=parameter("cpu-throttle-initial"),
        libvirt=libvirt_parameter("auto_converge.initial", "--auto-converge-initial"),
        overwriter=LIBVIRT_RESETS, running=True,
    ),
    Tunable(
        "cpu_throttle_increment_percent", "Further throttle steps",
        "What each further step of auto-converge adds.",
        Kind.INTEGER, Route.MIGRATE, Side.SOURCE, Unit.PERCENT, 10, 1, 99,
        qmp=parameter("cpu-throttle-increment"),
        libvirt=libvirt_parameter("auto_converge.increment", "--auto-converge-increment"),
        overwriter=LIBVIRT_RESETS, running=True,
    ),
    Tunable(
        "max_cpu_throttle_percent", "Maximum throttle",
        "Auto-converge never stops the vCPUs for a larger share of time.",
        Kind.INTEGER, Route.MONITOR, Side.SOURCE, Unit.PERCENT, 99, 1, 99,
        qmp=parameter("max-cpu-throttle"), running=True,
    ),
    Tunable(
        "cpu_throttle_tailslow", "Smaller last throttle steps",
        "Makes auto-converge's steps smaller as the throttle grows.",
        Kind.BOOLEAN, Route.MONITOR, Side.SOURCE, default=False,
        qmp=parameter("cpu-throttle-tailslow"), running=True,
    ),
    Tunable(
        "throttle_trigger_threshold_percent", "Throttle trigger",
        "Auto-converge and the dirty limit act when dirty bytes of a period exceed this share of "
        "the bytes sent.",
        Kind.INTEGER, Route.MONITOR, Side.SOURCE, Unit.PERCENT, 50, 1, 100,
        qmp=parameter("throttle-trigger-threshold"), running=True,
    ),
    Tunable(
        "dirty_limit", "Dirty limit",
        "Holds back only the vCPUs that write, instead of all as auto-converge does. Needs "
        "KVM with a dirty ring; excludes auto-converge.",
        Kind.BOOLEAN, Route.MONITOR, Side.SOURCE, default=False,
        qmp=capability("dirty-limit"), since=Version(8, 1),
    ),
    Tunable(
        "vcpu_dirty_limit_mib_per_s", "Dirty limit of a vCPU",
        "The dirty rate that dirty_limit leaves each vCPU.",
        Kind.INTEGER, Route.MONITOR, Side.SOURCE, Unit.MIB_PER_S, 1, 1, MAX_INT,
        qmp=parameter("vcpu-dirty-limit"), since=Version(8, 1), running=True,
    ),
    Tunable(
        "vcpu_dirty_limit_period_ms", "Dirty limit period",
        "How often dirty_limit measures the vCPUs' dirty rates.",
        Kind.INTEGER, Route.MONITOR, Side.SOURCE, Unit.MS, 1000, 1, 1000,
        qmp=parameter("x-vcpu-dirty-limit-period"), since=Version(8, 1),
    ),
)  # fmt: skip
