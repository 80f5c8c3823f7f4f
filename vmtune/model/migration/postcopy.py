"""What is said of a post-copy that was interrupted."""

from __future__ import annotations

from vmtune.errors import TooLate
from vmtune.model.migration.record import QemuStatus

NOT_OFFERED = "recovery_not_offered"
"""Code of the refusal where no attempt to recover would help."""
RECOVERY_FAILED = "recovery_failed"
"""Code of the refusal where another attempt may."""


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
