"""A new connection for a migration that is paused in post-copy, by libvirt's resume flag.

libvirt offers no other way, since it lets nobody use the monitor of a VM that arrives. The flag is
used only with releases of :data:`vmtune.model.migration.postcopy.RECOVERS`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from vmtune.errors import CommandRefused, NotFound, OutcomeUnknown
from vmtune.hypervisor.libvirt.calls.domain import Parameters
from vmtune.hypervisor.libvirt.migrating.migration import (
    LibvirtMigration,
    MigrationArguments,
    migration_flags,
)
from vmtune.model.host.uri import in_brackets
from vmtune.model.migration.postcopy import (
    GUIDE,
    NOT_OFFERED,
    RECOVERY_FAILED,
    why_not_offered,
)
from vmtune.model.migration.record import QemuStatus, Snapshot
from vmtune.model.versions import Version

log = structlog.get_logger(__name__)

_CONNECTS_WITHIN_S = 60.0
_PAUSES_WITHIN_S = 10.0
_LOOK_EVERY_S = 0.1
_TRIES_AGAIN_AFTER_S = 1.0
_GOES_ON = frozenset({QemuStatus.POSTCOPY_ACTIVE, QemuStatus.COMPLETED})


def check_version(destination: Version | None, source: Version | None) -> None:
    """Let only releases through that recover.

    :raise CommandRefused: code ``recovery_not_offered``.
    """
    why = why_not_offered(destination, source)
    if why:
        raise CommandRefused(why, field="migration", code=NOT_OFFERED, remedy=GUIDE)


def resume_arguments(persistent: bool, address: str) -> MigrationArguments:
    """What virDomainMigrateToURI3 is called with.

    :param address: what the source's QEMU connects to; empty for what libvirt chooses.
    """
    flags = (*migration_flags(persistent), "VIR_MIGRATE_POSTCOPY", "VIR_MIGRATE_POSTCOPY_RESUME")
    host = in_brackets(address)
    parameters: Parameters = {"migrate_uri": f"tcp://{host}"} if address else {}
    return MigrationArguments(flags, parameters)


async def until_paused(is_paused: Callable[[], Awaitable[bool]]) -> None:
    """Wait until a host says that post-copy is paused.

    :raise CommandRefused: it does not; code ``recovery_failed``.
    """
    deadline = time.monotonic() + _PAUSES_WITHIN_S
    while not await is_paused():
        if time.monotonic() > deadline:
            raise CommandRefused(
                "libvirt does not pause post-copy",
                field="migration",
                code=RECOVERY_FAILED,
                remedy="try again",
            )
        await asyncio.sleep(_LOOK_EVERY_S)


async def in_two_tries(
    resume: Callable[[], Awaitable[None]], look: Callable[[], Awaitable[Snapshot]]
) -> None:
    """Resume, and once more if libvirt refuses it and the source is still paused.

    The destination's libvirt calls post-copy paused before its QEMU does. Seen with libvirt 9:
    where that QEMU was slow, "cannot acquire state change lock", and a second try recovered the
    guest; once "job 'migration in' failed in post-copy phase". libvirt lets nobody else ask that
    QEMU, so its word cannot be waited for.

    :param resume: pauses both hosts and connects them.
    :param look: asks the source's QEMU.
    :raise CommandRefused: in libvirt's words of the second time.
    """
    try:
        await resume()
    except CommandRefused as refusal:
        if (await look()).status is not QemuStatus.POSTCOPY_PAUSED:
            raise
        log.info("resumption of post-copy refused, tried again", reason=refusal.message)
        await asyncio.sleep(_TRIES_AGAIN_AFTER_S)
        await resume()


async def until_connected(
    migration: LibvirtMigration, look: Callable[[], Awaitable[Snapshot]]
) -> None:
    """Return once QEMU sends again. libvirt's call itself lasts to the migration's end.

    :param look: asks the source's QEMU.
    :raise CommandRefused: in libvirt's words.
    :raise OutcomeUnknown: libvirt is still at it after a minute.
    """
    deadline = time.monotonic() + _CONNECTS_WITHIN_S
    while not migration.done:
        try:
            if (await look()).status in _GOES_ON:
                return
        except NotFound:
            return
        if time.monotonic() > deadline:
            raise OutcomeUnknown(
                "libvirt has not connected the two hosts within a minute, and still tries",
                remedy="look again whether post-copy goes on",
            )
        await asyncio.sleep(_LOOK_EVERY_S)
    await migration.wait()
