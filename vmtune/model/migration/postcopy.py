"""What is said of a post-copy that was interrupted, and which releases of libvirt recover it.

libvirt's resume flag came with 8.5. In some releases the destination's
``qemuMigrationDstPrepareResume`` passes a null pointer that ``qemuProcessIncomingDefNew`` reads:
the daemon ends, its QEMUs run on, and nothing is recovered. So the flag is used only with releases
on which it was seen to recover a guest.
"""

from __future__ import annotations

from vmtune.errors import TooLate
from vmtune.model.migration.record import Migration, QemuStatus
from vmtune.model.versions import Version

NOT_OFFERED = "recovery_not_offered"
"""Code of the refusal where no attempt to recover would help."""
RECOVERY_FAILED = "recovery_failed"
"""Code of the refusal where another attempt may."""
GUIDE = "docs/how-to/post-copy.md says how to do it by hand"
BY_HAND = f"restore the path between the hosts, and recover it by hand: {GUIDE}"
"""What helps where vmtune cannot recover it."""
SINCE = Version(8, 5)
RECOVERS = frozenset({(9, 0), (12, 8)})
"""Releases of the destination's libvirt with which guests were recovered."""
CRASHES = frozenset({(11, 3)})
"""Releases whose daemon was seen to end."""


def why_not_offered(destination: Version | None, source: Version | None) -> str:
    """Why post-copy between two hosts of libvirt is not recovered by its resume flag; empty where
    it is.

    :param destination: the release of its libvirt; None where that is unknown.
    """
    for side, version in (("destination", destination), ("source", source)):
        if version is None or version < SINCE:
            known = "of unknown version" if version is None else str(version)
            return f"libvirt on the {side} is {known}; it can recover post-copy since 8.5"
    assert destination is not None
    release = (destination[0], destination[1])
    if release in CRASHES:
        return (
            f"libvirt {destination} on the destination ends when it is asked to recover post-copy"
        )
    if release not in RECOVERS:
        return (
            f"nobody has proven that libvirt {destination} on the destination recovers post-copy, "
            "and some releases end when they are asked to"
        )
    return ""


def not_paused(status: QemuStatus) -> TooLate:
    """The refusal to recover a migration in another status."""
    waits = "wait: QEMU notices a lost connection by itself; or name another address to connect to"
    return TooLate(
        f"post-copy is not paused: QEMU says that the migration is {status.value}",
        field="migration",
        remedy=waits if status.in_postcopy else "vmtune migration show says where it stands",
    )


def not_arrived() -> TooLate:
    """The refusal to break a connection by which the guest is just being started: before QEMU 10.1,
    which has ``postcopy-device`` for it, the destination's QEMU would end and the guest be lost."""
    return TooLate(
        "the guest is just being started on the destination",
        field="migration",
        remedy="try again in a few seconds",
    )


def way_out(record: Migration) -> str:
    """What helps a migration that is paused in post-copy, as far as its record tells."""
    if any(problem.code == NOT_OFFERED for problem in record.problems):
        return BY_HAND
    return f"restore the path between the hosts, then: vmtune migration recover {record.id}"
