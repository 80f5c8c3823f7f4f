"""Rows of bandwidth, downtime, post-copy, TLS and the announcement after the switchover."""

from __future__ import annotations

from vmtune.model.tunables.rows.names import (
    LIBVIRT_RESETS,
    MIB,
    capability,
    flag,
    libvirt_parameter,
    parameter,
)
from vmtune.model.tunables.tunable import Kind, LibvirtKind, LibvirtName, Route, Side, Tunable
from vmtune.model.versions import Version
from vmtune.units import Unit

SWITCHOVER = (
    Tunable(
        "max_bandwidth_bytes_per_s", "Bandwidth limit",
        "The most that pre-copy may send; 0 means no limit. QEMU alone starts at 128 MiB/s, "
        "libvirt without a limit.",
        Kind.INTEGER, Route.MIGRATE, Side.SOURCE, Unit.BYTES_PER_S, 128 * MIB, 0, 1 << 62,
        qmp=parameter("max-bandwidth"),
        libvirt=libvirt_parameter("bandwidth", "--bandwidth", scale=MIB),
        overwriter=LIBVIRT_RESETS, running=True,
        zero="no limit",
    ),
    Tunable(
        "avail_switchover_bandwidth_bytes_per_s", "Bandwidth for the switchover",
        "What the network is expected to carry while the guest is stopped; QEMU uses it to "
        "decide when the rest fits the downtime limit. 0 is: use what was measured.",
        Kind.INTEGER, Route.MIGRATE, Side.SOURCE, Unit.BYTES_PER_S, 0, 0, 1 << 62,
        qmp=parameter("avail-switchover-bandwidth"),
        libvirt=libvirt_parameter("bandwidth.avail.switchover", "--available-switchover-bandwidth",
                       Version(11, 1), MIB),
        since=Version(8, 2), overwriter=LIBVIRT_RESETS, running=True,
        zero="as measured",
    ),
    Tunable(
        "downtime_limit_ms", "Downtime limit",
        "The longest stop that QEMU aims at when it switches over.",
        Kind.INTEGER, Route.MONITOR, Side.SOURCE, Unit.MS, 300, 0, 2_000_000,
        qmp=parameter("downtime-limit"),
        libvirt=LibvirtName(LibvirtKind.CALL, "virDomainMigrateSetMaxDowntime",
                            "migrate-setmaxdowntime"),
        running=True,
    ),
    Tunable(
        "postcopy", "Post-copy",
        "Lets the guest run on the destination before all of its memory is there. Always ends, "
        "but a failure on the way loses the guest. Needs userfaultfd on the destination.",
        Kind.BOOLEAN, Route.MIGRATE, Side.BOTH, default=False,
        qmp=capability("postcopy-ram"), libvirt=flag("VIR_MIGRATE_POSTCOPY", "--postcopy"),
        overwriter=LIBVIRT_RESETS,
    ),
    Tunable(
        "postcopy_preempt", "Post-copy preemption",
        "Sends pages that the guest waits for on a connection of their own.",
        Kind.BOOLEAN, Route.MIGRATE, Side.BOTH, default=False,
        qmp=capability("postcopy-preempt"),
        libvirt=LibvirtName(LibvirtKind.AUTOMATIC, "on with post-copy where both QEMUs have it"),
        overwriter=LIBVIRT_RESETS,
    ),
    Tunable(
        "max_postcopy_bandwidth_bytes_per_s", "Post-copy bandwidth limit",
        "The most that post-copy may send in the background; 0 means no limit.",
        Kind.INTEGER, Route.MIGRATE, Side.SOURCE, Unit.BYTES_PER_S, 0, 0, 1 << 62,
        qmp=parameter("max-postcopy-bandwidth"),
        libvirt=libvirt_parameter("bandwidth.postcopy", "--postcopy-bandwidth", scale=MIB),
        overwriter=LIBVIRT_RESETS, running=True,
        zero="no limit",
    ),
    Tunable(
        "tls", "TLS",
        "Encrypts the migration. Excludes zero-copy.",
        Kind.BOOLEAN, Route.MIGRATE, Side.BOTH, default=False,
        libvirt=flag("VIR_MIGRATE_TLS", "--tls"), overwriter=LIBVIRT_RESETS,
    ),
    Tunable(
        "tls_creds", "TLS credentials object",
        "The id of QEMU's tls-creds object, when QEMU is driven without libvirt.",
        Kind.TEXT, Route.MIGRATE, Side.BOTH, qmp=parameter("tls-creds"),
        libvirt=LibvirtName(LibvirtKind.AUTOMATIC, "made and named by libvirt"),
        overwriter=LIBVIRT_RESETS,
    ),
    Tunable(
        "tls_hostname", "TLS name of the destination",
        "The name in the destination's certificate, where it is not its host name.",
        Kind.TEXT, Route.MIGRATE, Side.SOURCE, qmp=parameter("tls-hostname"),
        libvirt=libvirt_parameter("tls.destination", "--tls-destination"),
        overwriter=LIBVIRT_RESETS,
    ),
    Tunable(
        "announce_initial_ms", "First announcement",
        "Delay before the destination first tells the network where the guest now is.",
        Kind.INTEGER, Route.MONITOR, Side.DESTINATION, Unit.MS, 50, 0, 100_000,
        qmp=parameter("announce-initial"),
    ),
    Tunable(
        "announce_max_ms", "Longest announcement delay",
        "The delay between announcements does not grow beyond this.",
        Kind.INTEGER, Route.MONITOR, Side.DESTINATION, Unit.MS, 550, 0, 100_000,
        qmp=parameter("announce-max"),
    ),
    Tunable(
        "announce_rounds", "Announcements",
        "How many announcements the destination sends.",
        Kind.INTEGER, Route.MONITOR, Side.DESTINATION, Unit.COUNT, 5, 0, 1000,
        qmp=parameter("announce-rounds"),
    ),
    Tunable(
        "announce_step_ms", "Growth of the announcement delay",
        "What each announcement adds to the delay before the next.",
        Kind.INTEGER, Route.MONITOR, Side.DESTINATION, Unit.MS, 100, 1, 10_000,
        qmp=parameter("announce-step"),
    ),
)  # fmt: skip
