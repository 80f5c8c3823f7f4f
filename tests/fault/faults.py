"""The faults: each begins at a random moment of a migration, and is over when its block ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.fault.injections import (
    Inject,
    abort_by_another,
    ask,
    cut_link,
    empty_images,
    fail_disk,
    fill_disk,
    fill_images,
    kill_libvirtd,
    kill_one_of_two,
    kill_qemu,
    kill_service,
    lock_database,
    lose_link,
    mend_link,
    pause_and_continue,
    pause_by_another,
    restart_postgres,
    set_clock_back,
    stop_and_continue,
    stop_then_kill_qemu,
)
from tests.fault.testbed import FaultTestbed, Kind


@dataclass(frozen=True)
class Fault:
    """A fault.

    :param dead: what the record may say where the fault has ended the guest itself.
    :param stays: how the record may stay without an end.
    :param postcopy: it begins after the switch to post-copy.
    :param slow: it takes minutes, so it is tried by ``make fault`` alone.
    :param mend: what ends a fault that lasts until the record is settled, or stays.
    :param says: codes of problems of which the record has one where it is not settled meanwhile.
    :param within_s: the last moment at which it begins.
    :param disk: the guest has a disk, and writes to it.
    """

    name: str
    kind: Kind
    inject: Inject
    dead: frozenset[str] = frozenset()
    stays: frozenset[str] = frozenset()
    postcopy: bool = False
    slow: bool = False
    mend: Callable[[FaultTestbed], None] | None = None
    says: frozenset[str] = frozenset()
    within_s: float = 3.5
    disk: bool = False


_SOURCE_DIED = frozenset({"failed"})
_ARRIVED = frozenset({"failed", "completed"})
"""It dies on the destination once it has switched over: just before the record ends, or after."""
_SPLIT = frozenset({"postcopy-paused"})
"""What the guest lacks cannot be recovered: nobody can end the record but who ends the guest."""
_COPIES_S = 5.0
"""As long as disk and memory take together."""
FAULTS = {
    "service": Fault("kill -9 of the service", Kind.SQLITE, kill_service),
    "one-of-two": Fault("kill -9 of one of two services", Kind.TWO, kill_one_of_two),
    "source-qemu": Fault("kill -9 of the source QEMU", Kind.SQLITE, kill_qemu("a"), _SOURCE_DIED),
    "destination-qemu": Fault(
        "kill -9 of the destination QEMU", Kind.SQLITE, kill_qemu("b"), _ARRIVED
    ),
    "source-libvirtd": Fault("kill -9 of the source's libvirtd", Kind.SQLITE, kill_libvirtd("a")),
    "destination-libvirtd": Fault(
        "kill -9 of the destination's libvirtd", Kind.SQLITE, kill_libvirtd("b")
    ),
    "link": Fault("link down and up", Kind.SQLITE, cut_link(6)),
    "postgres": Fault("PostgreSQL restarted", Kind.POSTGRES, restart_postgres),
    "locked": Fault("database locked", Kind.SQLITE, lock_database),
    "disk": Fault("disk full", Kind.SMALL_DISK, fill_disk),
    "clock": Fault("clock set back", Kind.SQLITE, set_clock_back),
    "abort": Fault("aborted by another client", Kind.SQLITE, abort_by_another),
    "pause": Fault("guest paused by another client", Kind.SQLITE, pause_by_another),
    "disk-error": Fault(
        "I/O error of the guest's disk", Kind.SQLITE, fail_disk("a"), disk=True, within_s=1.5
    ),
    "stopped": Fault("SIGSTOP and SIGCONT", Kind.TWO, stop_and_continue),
    "long-link": Fault("link down for up to a minute", Kind.SQLITE, cut_link(60), slow=True),
    "postcopy-link": Fault(
        "in post-copy: link down for up to a minute", Kind.SQLITE, cut_link(60), postcopy=True
    ),
    "postcopy-disk-error": Fault(
        "in post-copy: I/O error of the guest's disk",
        Kind.SQLITE,
        fail_disk("b"),
        postcopy=True,
        disk=True,
        within_s=2,
    ),
    "postcopy-service": Fault(
        "in post-copy: kill -9 of the service", Kind.SQLITE, kill_service, postcopy=True
    ),
    "postcopy-source-libvirtd": Fault(
        "in post-copy: kill -9 of the source's libvirtd",
        Kind.SQLITE,
        kill_libvirtd("a"),
        postcopy=True,
    ),
    "postcopy-destination-libvirtd": Fault(
        "in post-copy: kill -9 of the destination's libvirtd",
        Kind.SQLITE,
        kill_libvirtd("b"),
        postcopy=True,
    ),
    "postcopy-source-qemu": Fault(
        "in post-copy: kill -9 of the source QEMU",
        Kind.SQLITE,
        kill_qemu("a"),
        stays=_SPLIT,
        postcopy=True,
    ),
    "postcopy-destination-qemu": Fault(
        "in post-copy: kill -9 of the destination QEMU",
        Kind.SQLITE,
        kill_qemu("b"),
        _ARRIVED,
        postcopy=True,
    ),
    "direct-postcopy-link": Fault(
        "without libvirt, in post-copy: link down for up to a minute",
        Kind.DIRECT,
        cut_link(60),
        postcopy=True,
    ),
    "direct-postcopy-service": Fault(
        "without libvirt, in post-copy: kill -9 of the service",
        Kind.DIRECT,
        kill_service,
        postcopy=True,
    ),
    "direct-postcopy-source-qemu": Fault(
        "without libvirt, in post-copy: kill -9 of the source QEMU",
        Kind.DIRECT,
        kill_qemu("a"),
        stays=_SPLIT,
        postcopy=True,
    ),
    "direct-postcopy-destination-qemu": Fault(
        "without libvirt, in post-copy: kill -9 of the destination QEMU",
        Kind.DIRECT,
        kill_qemu("b"),
        _ARRIVED,
        postcopy=True,
    ),
    "stopped-destination": Fault(
        "destination QEMU stopped, then killed",
        Kind.SQLITE,
        stop_then_kill_qemu("b"),
        _ARRIVED,
    ),
    "postcopy-stopped-destination": Fault(
        "in post-copy: destination QEMU stopped, then killed",
        Kind.SQLITE,
        stop_then_kill_qemu("b"),
        _ARRIVED,
        postcopy=True,
        within_s=5,
    ),
    "lost-link": Fault("link down for good", Kind.SQLITE, lose_link(), slow=True, mend=mend_link),
    "postcopy-lost-link": Fault(
        "in post-copy: link down for good",
        Kind.SQLITE,
        lose_link(),
        stays=_SPLIT,
        postcopy=True,
        slow=True,
        mend=mend_link,
        says=frozenset({"postcopy_stalled", "postcopy_paused"}),
    ),
    "postcopy-switch-link": Fault(
        "within 0.1 s of the switch: link down for 35 to 60 s",
        Kind.SQLITE,
        cut_link(60, 35),
        postcopy=True,
        slow=True,
        within_s=0.1,
    ),
    "postcopy-switch-libvirtd": Fault(
        "within 0.1 s of the switch: kill -9 of the destination's libvirtd",
        Kind.SQLITE,
        kill_libvirtd("b"),
        postcopy=True,
        slow=True,
        within_s=0.1,
    ),
    "direct-service": Fault("without libvirt: kill -9 of the service", Kind.DIRECT, kill_service),
    "direct-source-qemu": Fault(
        "without libvirt: kill -9 of the source QEMU", Kind.DIRECT, kill_qemu("a"), _SOURCE_DIED
    ),
    "direct-destination-qemu": Fault(
        "without libvirt: kill -9 of the destination QEMU",
        Kind.DIRECT,
        kill_qemu("b"),
        _ARRIVED,
    ),
    "direct-stopped-destination": Fault(
        "without libvirt: destination QEMU stopped, then killed",
        Kind.DIRECT,
        stop_then_kill_qemu("b"),
        _ARRIVED,
    ),
    "direct-link": Fault("without libvirt: link down and up", Kind.DIRECT, cut_link(6)),
    "direct-lost-link": Fault(
        "without libvirt: link down for good, then aborted",
        Kind.DIRECT,
        lose_link(abort=True),
        slow=True,
        mend=mend_link,
        says=frozenset({"abort_waits", "cancel_hangs"}),
    ),
    "direct-postcopy-lost-link": Fault(
        "without libvirt, in post-copy: link down for good",
        Kind.DIRECT,
        lose_link(),
        stays=_SPLIT,
        postcopy=True,
        slow=True,
        mend=mend_link,
        says=frozenset({"postcopy_stalled", "postcopy_paused"}),
    ),
    "direct-abort": Fault(
        "without libvirt: aborted by another client", Kind.DIRECT, ask("migrate_cancel")
    ),
    "direct-pause": Fault(
        "without libvirt: guest paused by another client", Kind.DIRECT, pause_and_continue
    ),
    "direct-disk-error": Fault(
        "without libvirt: I/O error of the guest's disk",
        Kind.DIRECT,
        fail_disk("a"),
        disk=True,
        within_s=3,
    ),
    "direct-postcopy-disk-error": Fault(
        "without libvirt, in post-copy: I/O error of the guest's disk",
        Kind.DIRECT,
        fail_disk("b"),
        postcopy=True,
        disk=True,
        within_s=2,
    ),
    "direct-postcopy-pause": Fault(
        "without libvirt: post-copy paused by another client",
        Kind.DIRECT,
        ask("migrate-pause"),
        postcopy=True,
    ),
    "direct-postcopy-switch-link": Fault(
        "without libvirt, within 0.1 s of the switch: link down for 35 to 60 s",
        Kind.DIRECT,
        cut_link(60, 35),
        postcopy=True,
        slow=True,
        within_s=0.1,
    ),
    "direct-postcopy-stopped-destination": Fault(
        "without libvirt, in post-copy: destination QEMU stopped, then killed",
        Kind.DIRECT,
        stop_then_kill_qemu("b"),
        _ARRIVED,
        postcopy=True,
        within_s=5,
    ),
    "disks-link": Fault(
        "disks copied: link down and up", Kind.DISKS, cut_link(6), within_s=_COPIES_S
    ),
    "disks-room": Fault(
        "disks copied: no room at the destination",
        Kind.DISKS,
        fill_images,
        mend=empty_images,
        within_s=_COPIES_S,
    ),
    "disks-source-libvirtd": Fault(
        "disks copied: kill -9 of the source's libvirtd",
        Kind.DISKS,
        kill_libvirtd("a"),
        within_s=_COPIES_S,
    ),
    "disks-destination-libvirtd": Fault(
        "disks copied: kill -9 of the destination's libvirtd",
        Kind.DISKS,
        kill_libvirtd("b"),
        within_s=_COPIES_S,
    ),
    "disks-source-qemu": Fault(
        "disks copied: kill -9 of the source QEMU",
        Kind.DISKS,
        kill_qemu("a"),
        _SOURCE_DIED,
        within_s=_COPIES_S,
    ),
    "disks-destination-qemu": Fault(
        "disks copied: kill -9 of the destination QEMU",
        Kind.DISKS,
        kill_qemu("b"),
        _ARRIVED,
        within_s=_COPIES_S,
    ),
    "disks-service": Fault(
        "disks copied: kill -9 of the service", Kind.DISKS, kill_service, within_s=_COPIES_S
    ),
    "direct-disks-link": Fault(
        "without libvirt, disks copied: link down and up",
        Kind.DIRECT_DISKS,
        cut_link(6),
        within_s=_COPIES_S,
    ),
    "direct-disks-lost-link": Fault(
        "without libvirt, disks copied: link down for good",
        Kind.DIRECT_DISKS,
        lose_link(),
        slow=True,
        mend=mend_link,
        within_s=_COPIES_S,
    ),
    "direct-disks-room": Fault(
        "without libvirt, disks copied: no room at the destination",
        Kind.DIRECT_DISKS,
        fill_images,
        mend=empty_images,
        within_s=_COPIES_S,
    ),
    "direct-disks-source-qemu": Fault(
        "without libvirt, disks copied: kill -9 of the source QEMU",
        Kind.DIRECT_DISKS,
        kill_qemu("a"),
        _SOURCE_DIED,
        within_s=_COPIES_S,
    ),
    "direct-disks-destination-qemu": Fault(
        "without libvirt, disks copied: kill -9 of the destination QEMU",
        Kind.DIRECT_DISKS,
        kill_qemu("b"),
        _ARRIVED,
        within_s=_COPIES_S,
    ),
    "direct-disks-service": Fault(
        "without libvirt, disks copied: kill -9 of the service",
        Kind.DIRECT_DISKS,
        kill_service,
        within_s=_COPIES_S,
    ),
}
"""Each by the short name that the command takes."""
