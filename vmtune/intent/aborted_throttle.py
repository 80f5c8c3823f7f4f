"""A QEMU that aborted a throttled migration may never throttle again, and says that it does.

The timer marks each vCPU as being throttled and asks it to sleep; where the throttle is taken back
before the vCPU comes to that, it neither sleeps nor takes its mark away, and whoever is marked is
not asked again (cpu_throttle_thread and cpu_throttle_timer_tick in migration/cpu-throttle.c, 10.0).
"""

from __future__ import annotations

from collections.abc import Iterable

from vmtune.model.migration.record import Migration, MigrationState

_BROKEN_OFF = (MigrationState.CANCELLED, MigrationState.FAILED)


def may_not_throttle(records: Iterable[Migration], host: str) -> bool:
    """Whether the QEMU in which a VM runs on *host* is such a one, as far as *records* know: a VM
    that was restarted since has another.

    :param records: of the VM's migrations, the newest first.
    """
    for record in records:
        if record.state is MigrationState.COMPLETED and record.destination == host:
            return False  # it is another QEMU since
        throttled = record.started_at is not None and record.wanted.get("auto_converge") is True
        if throttled and record.state in _BROKEN_OFF and record.source == host:
            return True
    return False
