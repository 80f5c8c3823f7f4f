"""Rows of thread pools, polling and batches of iothreads and the main loop."""

from __future__ import annotations

from vmtune.model.tunables.rows.names import MAX_INT, MAX_INT64, iothread_call
from vmtune.model.tunables.tunable import Kind, QmpKind, QmpName, Route, Side, Tunable
from vmtune.model.versions import Version
from vmtune.units import Unit


def _pool(owner: QmpKind, prefix: str, where: str, libvirt: bool) -> tuple[Tunable, Tunable]:
    """Thread-pool limits of iothreads or of the main loop: the same pair of settings."""
    return (
        Tunable(
            f"{prefix}_thread_pool_min", f"Minimum threads of {where}",
            "Worker threads that are kept even when idle.",
            Kind.INTEGER, Route.LIVE, Side.SOURCE, Unit.COUNT, 0, 0, MAX_INT,
            qmp=QmpName(owner, "thread-pool-min"),
            libvirt=iothread_call("thread_pool_min") if libvirt else None,
        ),
        Tunable(
            f"{prefix}_thread_pool_max", f"Maximum threads of {where}",
            "Worker threads that block I/O may use at once.",
            Kind.INTEGER, Route.LIVE, Side.SOURCE, Unit.COUNT, 64, 1, MAX_INT,
            qmp=QmpName(owner, "thread-pool-max"),
            libvirt=iothread_call("thread_pool_max") if libvirt else None,
        ),
    )  # fmt: skip


EVENT_LOOPS = (
    *_pool(QmpKind.IOTHREAD, "iothread", "each iothread", libvirt=True),
    *_pool(QmpKind.MAIN_LOOP, "main_loop", "the main loop", libvirt=False),
    Tunable(
        "iothread_poll_max_ns", "Longest polling",
        "How long an iothread polls before it sleeps; 0 turns polling off.",
        Kind.INTEGER, Route.LIVE, Side.SOURCE, Unit.NS, 32768, 0, MAX_INT,
        qmp=QmpName(QmpKind.IOTHREAD, "poll-max-ns"), libvirt=iothread_call("poll_max_ns"),
        zero="no polling",
    ),
    Tunable(
        "iothread_poll_grow", "Growth of polling",
        "Factor by which polling grows when it finds work; 0 is QEMU's own choice.",
        Kind.INTEGER, Route.LIVE, Side.SOURCE, Unit.COUNT, 0, 0, MAX_INT,
        qmp=QmpName(QmpKind.IOTHREAD, "poll-grow"), libvirt=iothread_call("poll_grow"),
        zero_reads_as=2,
        zero="QEMU's choice",
    ),
    Tunable(
        "iothread_poll_shrink", "Shrinking of polling",
        "Divisor by which polling shrinks when it finds no work; 0 is QEMU's own choice.",
        Kind.INTEGER, Route.LIVE, Side.SOURCE, Unit.COUNT, 0, 0, MAX_INT,
        qmp=QmpName(QmpKind.IOTHREAD, "poll-shrink"), libvirt=iothread_call("poll_shrink"),
        zero_reads_as=2,
        zero="QEMU's choice",
    ),
    # libvirt has a call for it only since 12.7, and QEMUs that have it run under older ones.
    Tunable(
        "iothread_poll_weight", "Weight of past polling",
        "How little a new interval between events counts when polling adapts: one part in 2 to the "
        "power of this; 0 is QEMU's own choice, which is 3.",
        Kind.INTEGER, Route.LIVE, Side.SOURCE, Unit.COUNT, 0, 0, 63,
        qmp=QmpName(QmpKind.IOTHREAD, "poll-weight"),
        since=Version(11, 1),
        zero_reads_as=3,
        zero="QEMU's choice",
    ),
    Tunable(
        "iothread_aio_max_batch", "Requests in a batch",
        "Most requests an iothread hands to the kernel at once; 0 is QEMU's own choice.",
        Kind.INTEGER, Route.LIVE, Side.SOURCE, Unit.COUNT, 0, 0, MAX_INT64,
        qmp=QmpName(QmpKind.IOTHREAD, "aio-max-batch"),
        zero="QEMU's choice",
    ),
    Tunable(
        "main_loop_aio_max_batch", "Requests in a batch of the main loop",
        "Most requests the main loop hands to the kernel at once; 0 is QEMU's own choice. The "
        "main loop has no settings for its polling.",
        Kind.INTEGER, Route.LIVE, Side.SOURCE, Unit.COUNT, 0, 0, MAX_INT64,
        qmp=QmpName(QmpKind.MAIN_LOOP, "aio-max-batch"),
        zero="QEMU's choice",
    ),
)  # fmt: skip
