"""Rows of parallel migration: multifd, its compression, zero-copy and zero pages."""

from __future__ import annotations

from vmtune.model.tunables.rows.names import (
    LIBVIRT_RESETS,
    capability,
    flag,
    libvirt_parameter,
    parameter,
)
from vmtune.model.tunables.tunable import Kind, Route, Side, Tunable
from vmtune.model.versions import Version
from vmtune.units import Unit

MULTIFD = (
    Tunable(
        "multifd", "Parallel migration",
        "Sends RAM over several connections, each with its own thread. The first thing to try "
        "when one core or one TCP stream limits the transfer.",
        Kind.BOOLEAN, Route.MIGRATE, Side.BOTH, default=False,
        qmp=capability("multifd"), libvirt=flag("VIR_MIGRATE_PARALLEL", "--parallel"),
        overwriter=LIBVIRT_RESETS,
    ),
    Tunable(
        "multifd_channels", "Parallel connections",
        "How many connections (and sender threads) multifd uses. More than there are spare "
        "cores on either host takes CPU time from the guests.",
        Kind.INTEGER, Route.MIGRATE, Side.BOTH, Unit.COUNT, 2, 1, 255,
        qmp=parameter("multifd-channels"),
        libvirt=libvirt_parameter("parallel.connections", "--parallel-connections"),
        overwriter=LIBVIRT_RESETS,
    ),
    Tunable(
        "multifd_compression", "Compression of parallel migration",
        "Compresses what multifd sends. Helps where the network is slower than the compressor; "
        "excludes zero-copy.",
        Kind.CHOICE, Route.MIGRATE, Side.BOTH, default="none",
        choices=("none", "zlib", "zstd", "qatzip", "qpl", "uadk"),
        qmp=parameter("multifd-compression"),
        libvirt=libvirt_parameter("compression", "--compressed --comp-methods", Version(9, 4)),
        overwriter=LIBVIRT_RESETS,
    ),
    Tunable(
        "multifd_zlib_level", "zlib level",
        "0 copies, 1 is fastest, 9 smallest. Used when multifd_compression is zlib.",
        Kind.INTEGER, Route.MIGRATE, Side.SOURCE, Unit.NONE, 1, 0, 9,
        qmp=parameter("multifd-zlib-level"),
        libvirt=libvirt_parameter("compression.zlib.level", "--comp-zlib-level", Version(9, 4)),
        overwriter=LIBVIRT_RESETS,
    ),
    Tunable(
        "multifd_zstd_level", "zstd level",
        "0 is zstd's own default (3), 1 is fastest, 20 smallest. Used when "
        "multifd_compression is zstd.",
        Kind.INTEGER, Route.MIGRATE, Side.SOURCE, Unit.NONE, 1, 0, 20,
        qmp=parameter("multifd-zstd-level"),
        libvirt=libvirt_parameter("compression.zstd.level", "--comp-zstd-level", Version(9, 4)),
        overwriter=LIBVIRT_RESETS,
    ),
    Tunable(
        "multifd_qatzip_level", "QATzip level",
        "1 is fastest, 9 smallest. Used when multifd_compression is qatzip.",
        Kind.INTEGER, Route.MONITOR, Side.SOURCE, Unit.NONE, 1, 1, 9,
        qmp=parameter("multifd-qatzip-level"), since=Version(9, 2),
    ),
    Tunable(
        "zero_copy_send", "Zero-copy send",
        "Hands guest pages to the network card without copying them (MSG_ZEROCOPY). Needs "
        "multifd, no compression, no TLS, and memory that may be locked.",
        Kind.BOOLEAN, Route.MIGRATE, Side.SOURCE, default=False,
        qmp=capability("zero-copy-send"), libvirt=flag("VIR_MIGRATE_ZEROCOPY", "--zerocopy"),
        overwriter=LIBVIRT_RESETS,
    ),
    Tunable(
        "zero_page_detection", "Zero-page detection",
        "Who looks for pages of zeroes: the multifd threads, the migration thread (legacy), "
        "or nobody.",
        Kind.CHOICE, Route.MONITOR, Side.SOURCE, default="multifd",
        choices=("none", "legacy", "multifd"),
        qmp=parameter("zero-page-detection"), since=Version(9),
    ),
)  # fmt: skip
