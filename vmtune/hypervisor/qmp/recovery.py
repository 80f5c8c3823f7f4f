"""A new connection for a migration that is paused in post-copy, by the monitors of both QEMUs.

The order is that of QEMU's docs/devel/migration/postcopy.rst: ``migrate-recover`` on the
destination, which listens anew, then ``migrate`` with ``resume`` on the source.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time

from vmtune.errors import CommandRefused, HostUnreachable, NotFound, OutcomeUnknown
from vmtune.hypervisor.qemu.replies import reading_reply
from vmtune.hypervisor.qmp.migration import local_uri
from vmtune.hypervisor.qmp.qemu import Qemu
from vmtune.model.host.uri import in_brackets
from vmtune.model.migration.postcopy import RECOVERY_FAILED, not_arrived, not_paused
from vmtune.model.migration.record import QemuStatus, Snapshot, read_query_migrate

PORTS = range(49216, 49280)
"""Where the destination may listen: the next after those that libvirt uses for migrations. A port
that QEMU chooses could not be asked for while its main loop waits for a page."""
_PAUSES_WITHIN_S = 10.0
_CONNECTS_WITHIN_S = 15.0
_ANSWERS_WITHIN_S = 5.0
_LOOK_EVERY_S = 0.05
_CONNECTING = frozenset(
    {
        QemuStatus.POSTCOPY_PAUSED,
        QemuStatus.POSTCOPY_RECOVER_SETUP,
        QemuStatus.POSTCOPY_RECOVER,
    }
)


async def recover(source: Qemu, destination: Qemu, address: str, *, pause: bool) -> None:
    """Connect the two anew, and return once they have resumed. The destination is told out of band
    what to do: its main loop may wait for a page.

    :param address: what the destination listens on; empty for a socket next to its monitor.
    :param pause: give up a connection that the source still believes in.
    :raise TooLate: the migration is not paused in post-copy.
    :raise CommandRefused: they could not be connected, which harms nothing: they stay paused.
    """
    await _pause_source(source, destination, pause=pause)
    with contextlib.suppress(CommandRefused):  # it has noticed the loss itself
        await destination.monitor.execute("migrate-pause")
    uri = await _listen_again(destination, address)
    before = await _look(source)
    await source.monitor.execute("migrate", {"uri": uri, "resume": True})
    await _connected(source, before)


async def _pause_source(source: Qemu, destination: Qemu, *, pause: bool) -> None:
    status = (await _look(source)).status
    if status is QemuStatus.POSTCOPY_PAUSED:
        return
    if status is not QemuStatus.POSTCOPY_ACTIVE or not pause:
        raise not_paused(status)
    await _check_arrived(destination)
    await source.monitor.execute("migrate-pause")
    deadline = time.monotonic() + _PAUSES_WITHIN_S
    while (status := (await _look(source)).status) is not QemuStatus.POSTCOPY_PAUSED:
        if time.monotonic() > deadline:
            raise _failed(f"QEMU does not pause post-copy: it is {status.value}")
        await asyncio.sleep(_LOOK_EVERY_S)


async def _check_arrived(destination: Qemu) -> None:
    """One whose main loop does not answer waits for a page, so its guest has been started.

    :raise TooLate: the guest does not run there yet.
    """
    try:
        async with asyncio.timeout(_ANSWERS_WITHIN_S):
            reply = await destination.monitor.execute("query-status")
    except TimeoutError:
        return
    with reading_reply("what it is doing"):
        status = str(reply["status"])
    if status == "inmigrate":
        raise not_arrived()


async def _listen_again(qemu: Qemu, address: str) -> str:
    """Make the destination listen, as soon as it is paused; where.

    :raise CommandRefused: code ``cannot_listen``.
    """
    host = in_brackets(address)
    places = [f"tcp:{host}:{port}" for port in PORTS] if address else [local_uri(qemu)]
    deadline = time.monotonic() + _PAUSES_WITHIN_S
    refused = ""
    for place in itertools.cycle(places):
        try:
            await qemu.monitor.execute("migrate-recover", {"uri": place})
        except CommandRefused as refusal:
            refused = refusal.message
        else:
            return place
        unusable = "assign" in refused or "resolv" in refused  # no port of that address will do
        if unusable or time.monotonic() > deadline:
            break
        await asyncio.sleep(_LOOK_EVERY_S)
    raise CommandRefused(
        f"QEMU on the destination cannot listen on {address or places[0]}: {refused}",
        field="destination",
        code="cannot_listen",
        remedy="name an address of that host",
    )


async def _look(qemu: Qemu) -> Snapshot:
    reply = await qemu.monitor.execute("query-migrate")
    with reading_reply("its migration"):
        return read_query_migrate(reply)


async def _connected(source: Qemu, before: Snapshot) -> None:
    """Return once the source sends again. It connects in the background; releases without
    ``postcopy-recover-setup`` say that they are paused meanwhile."""
    deadline = time.monotonic() + _CONNECTS_WITHIN_S
    tried = False
    while True:
        try:
            now = await _look(source)
        except (NotFound, OutcomeUnknown, HostUnreachable):
            return  # it has sent all of it and ended
        if now.status not in _CONNECTING:
            return
        paused = now.status is QemuStatus.POSTCOPY_PAUSED
        tried = tried or not paused or now.error != before.error
        if time.monotonic() > deadline or (paused and tried):
            raise _failed(f"the two QEMUs could not be connected: {now.error or 'no answer'}")
        await asyncio.sleep(_LOOK_EVERY_S)


def _failed(message: str) -> CommandRefused:
    return CommandRefused(
        message,
        field="migration",
        code=RECOVERY_FAILED,
        remedy="restore the path between the hosts, or name another address, and try again",
    )
