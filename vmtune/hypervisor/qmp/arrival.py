"""Keeps a guest from running on both hosts when its migration is aborted at the switchover.

QEMU's ``migrate_cancel`` also takes effect while the source only waits for the destination's word
that all has arrived (``migration_completion`` in migration/migration.c): the source then runs its
guest again, and a destination that starts what has arrived runs it, too (QEMU 10.0.2, in each of
the aborts that came in time). So before an abort the destination is told to stop what arrives:
``stop`` to a QEMU that waits for a migration takes back its autostart (``qmp_stop``). It is started
where the migration completes all the same. libvirt starts its destinations itself, always.
"""

from __future__ import annotations

import asyncio
import contextlib
import time

from vmtune.errors import HostUnreachable, OutcomeUnknown, TooLate, VmtuneError
from vmtune.hypervisor.qemu.replies import reading_reply
from vmtune.hypervisor.qmp.qemu import Qemu

_HOLDS_WITHIN_S = 2.0
_DECIDED_WITHIN_S = 10.0
_LOOK_EVERY_S = 0.005
_WAITS, _RUNS, _STOPPED, _SWITCHES = "inmigrate", "running", "paused", "finish-migrate"


class Arrival:
    """The guest's start on the destination of one migration.

    :param source: the QEMU that the guest leaves; *destination* the one that waits for it.
    """

    def __init__(self, source: Qemu, destination: Qemu) -> None:
        self._source = source
        self._destination = destination
        self._ran = True
        self._held = False
        self._completed: bool | None = None

    async def note_source(self) -> None:
        """Note whether the guest runs, before its migration begins."""
        self._ran = await run_state(self._source) == _RUNS

    async def hold(self) -> None:
        """Have the guest stay stopped when it has arrived, until :meth:`ended`. Where the
        destination does not answer, an abort is safe only until the switchover.

        :raise TooLate: it has arrived, or the switchover has begun and the destination cannot be
            told.
        """
        here = await run_state(self._source)
        if here in (_RUNS, _STOPPED):
            self._ran = here == _RUNS
        monitor = self._destination.monitor
        try:
            async with asyncio.timeout(_HOLDS_WITHIN_S):
                if await run_state(self._destination) != _WAITS:
                    raise TooLate("the guest has arrived on the destination")
                self._held = True  # also where the answer does not come in time
                await monitor.execute("stop")
        except HostUnreachable:
            return  # nothing arrives there any more
        except (TimeoutError, VmtuneError) as error:
            if isinstance(error, TooLate):
                raise
            await refuse_at_switchover(self._source)
        if self._completed is not None:
            await self._let_go(self._completed)
            raise TooLate("the migration has ended meanwhile")

    async def ended(self, completed: bool) -> None:
        """Start a guest that was held, or end the QEMU that has what the source runs, too: of a
        migration that fails QEMU's destination ends by itself, but for one that had all by then.

        :raise VmtuneError: the guest was not started.
        """
        self._completed = completed
        if self._held:
            await self._let_go(completed)

    async def _let_go(self, completed: bool) -> None:
        if not self._held:
            return
        self._held = False
        if completed:
            if self._ran and await self._decided() == _STOPPED:
                await self._destination.monitor.execute("cont")
            return
        with contextlib.suppress(VmtuneError):  # it is gone
            there = await self._decided()
            here = await run_state(self._source)
            if there == _STOPPED and here == (_RUNS if self._ran else _STOPPED):
                await self._destination.monitor.end_qemu()

    async def _decided(self) -> str:
        """The destination's state once it no longer waits: the source may have its word before.

        :raise OutcomeUnknown: it still does.
        """
        deadline = time.monotonic() + _DECIDED_WITHIN_S
        while (there := await run_state(self._destination)) == _WAITS:
            if time.monotonic() > deadline:
                raise OutcomeUnknown("the destination's QEMU still waits for the migration")
            await asyncio.sleep(_LOOK_EVERY_S)
        return there


async def refuse_at_switchover(source: Qemu) -> None:
    """:raise TooLate: the source's guest is stopped for the switchover."""
    if await run_state(source) == _SWITCHES:
        raise TooLate(
            "the switchover has begun: an abort could have the guest run on both hosts",
            remedy="wait: it ends within about the downtime limit",
        )


async def run_state(qemu: Qemu) -> str:
    """QEMU's RunState."""
    reply = await qemu.monitor.execute("query-status")
    with reading_reply("what it is doing"):
        return str(reply["status"])
