"""Asks every host now and then how it is, so that lists say so without asking."""

from __future__ import annotations

import asyncio

import structlog

from vmtune.errors import VmtuneError
from vmtune.model.host.inventory import Host
from vmtune.services.hosts.doctor import DoctorService
from vmtune.services.hosts.hosts import HostService

log = structlog.get_logger(__name__)

_WITHIN_S = 10.0
_AT_ONCE = 8
_FINDINGS_EVERY = 10
"""Host diagnostics look once in so many checks: they ask for more."""


class HostChecks:
    """Checks all hosts that are reachable from here.

    :param interval_s: the pause between two checks.
    """

    def __init__(self, hosts: HostService, doctor: DoctorService, interval_s: float) -> None:
        self._hosts = hosts
        self._doctor = doctor
        self._interval_s = interval_s
        self._round = 0

    async def run(self) -> None:
        """Check them again and again, until cancelled."""
        while True:
            try:
                await self.check_all()
            except VmtuneError as error:  # the database is away for a moment
                log.warning("hosts were not checked", reason=error.message)
            await asyncio.sleep(self._interval_s)

    async def check_all(self) -> None:
        """Check them once, some at a time."""
        thorough = self._round % _FINDINGS_EVERY == 0
        self._round += 1
        turn = asyncio.Semaphore(_AT_ONCE)

        async def check(host: Host) -> None:
            async with turn:
                await self._check(host.name, thorough)

        await asyncio.gather(
            *(
                check(each)
                for each in await self._hosts.all()
                if self._hosts.is_reachable_here(each)
            )
        )

    async def _check(self, host: str, thorough: bool) -> None:
        try:
            async with asyncio.timeout(_WITHIN_S):
                await self._hosts.facts(host)
                await self._hosts.list_vms(host)  # the overview has those that were seen
                if thorough or self._hosts.contacts.of(host).findings is None:
                    found = (await self._doctor.diagnose(host)).needs_action
                    self._hosts.contacts.examined(host, len(found))
        except (VmtuneError, TimeoutError) as error:
            # What it does not answer is noted by the call; a slow one is asked again.
            log.debug("host not checked", host=host, reason=str(error))
