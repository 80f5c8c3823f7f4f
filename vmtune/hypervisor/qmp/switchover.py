"""The switchover of a migration that copies disks: QEMU waits before it, with the guest stopped,
until it is told to go on.

It is always told something. Where the copies do not end, or the destination cannot be told to let
go of its images, the migration is cancelled: nothing of the guest's devices has been sent by then,
so that it runs on, on the source alone, with images that are whole.
"""

from __future__ import annotations

from vmtune.errors import CommandRefused, VmtuneError
from vmtune.hypervisor.qemu.monitor import Monitor
from vmtune.hypervisor.qmp import copies


class Switchover:
    """Tells the source what to do.

    :param destination: None where nothing says which it is.
    :ivar broken: why the migration does not go on.
    :ivar told: QEMU has taken what it was told.
    """

    def __init__(self, source: Monitor, destination: Monitor | None = None) -> None:
        self._source = source
        self._destination = destination
        self.broken: CommandRefused | None = None
        self.told = False

    async def look(self) -> None:
        """Call it again and again, until it was told and while QEMU is seen to wait: what refuses
        to go on may wait no longer, and behind a new connection there may be another QEMU.

        :raise VmtuneError: QEMU has not taken it.
        """
        if self.broken is not None:
            await self._source.execute("migrate_cancel")
            self.told = True
            return
        try:
            await copies.drain(self._source)
            if self._destination is not None:
                await copies.unexport(self._destination)
        except VmtuneError as error:
            self.broken = _given_up(error)
            return
        try:
            await self._source.execute("migrate-continue", {"state": "pre-switchover"})
        except CommandRefused as refusal:
            self.broken = refusal
        else:
            self.told = True


def _given_up(error: VmtuneError) -> CommandRefused:
    if isinstance(error, CommandRefused):
        return error
    return CommandRefused(
        f"the migration was cancelled at its switchover: {error.message}",
        field="values.copy_storage",
        code="copy_failed",
        remedy="look at the link between the hosts, and at the QEMU that waits",
    )
