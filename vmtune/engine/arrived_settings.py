"""What libvirt has set on the destination's QEMU and does not restore: it was ended in post-copy,
and when it is there again it completes the migration without."""

from __future__ import annotations

import structlog

from vmtune.engine.asking import ask_again, may_pass
from vmtune.engine.undo import UNDONE_WITHIN_S
from vmtune.errors import VmtuneError
from vmtune.hypervisor.protocol import Driver
from vmtune.model.migration.record import Migration
from vmtune.model.plan.changes import Change, Readings, in_order
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import QmpKind, Route

log = structlog.get_logger(__name__)

_SET_BY_LIBVIRT = [row for row in BUILT_IN.on(Route.MIGRATE) if row.libvirt and row.qmp]


async def restore_arrived(record: Migration, destination: Driver) -> None:
    """Set QEMU's defaults where the migration's settings are still there. A QEMU that a VM arrives
    in has been started for it, so nothing else was set before. A libvirt that is just there again
    may be silent for a moment. Never raises vmtune's errors: the VM runs."""
    try:
        await ask_again(lambda: _restore(record, destination), UNDONE_WITHIN_S, may_pass)
    except VmtuneError as error:
        log.info("not restored", vm=str(record.vm), reason=str(error))


async def _restore(record: Migration, destination: Driver) -> None:
    readings = await destination.read(record.vm, [row.name for row in _SET_BY_LIBVIRT])
    changes = still_set(record, readings)
    if not changes or record.vm in await destination.outgoing():
        return
    log.warning(
        "libvirt has not restored what it set",
        vm=str(record.vm),
        tunables=[change.tunable for change in changes],
    )
    await destination.write(record.vm, in_order(changes, readings))


def still_set(record: Migration, readings: Readings) -> list[Change]:
    """What has to be set for QEMU's defaults: of capabilities, those that are on; of parameters,
    those with the record's value."""
    changes: list[Change] = []
    for row in _SET_BY_LIBVIRT:
        seen = readings[row.name].value if row.name in readings else None
        if seen is None or row.default is None or seen == row.default:
            continue
        switched_on = row.qmp is not None and row.qmp.kind is QmpKind.CAPABILITY
        if switched_on or seen == record.wanted.get(row.name):
            changes.append(Change(row.name, row.default))
    return changes
