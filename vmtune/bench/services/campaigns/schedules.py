"""Starts campaigns again and again: one at a time, and never beside what people ordered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import structlog

from vmtune.bench.machine.environment import host_name
from vmtune.bench.model.trend.scheduled import Schedule, read_every
from vmtune.bench.services.campaigns.campaigns import CampaignService
from vmtune.errors import VmtuneError
from vmtune.storage import Store

log = structlog.get_logger(__name__)


def utc_now() -> datetime:
    """The current time, with its zone."""
    return datetime.now(UTC)


class ScheduleService:
    """Campaigns that run again and again on this machine.

    One that is due waits while a campaign of this machine has not ended or a migration or
    evacuation is under way. What was missed is not made up for: the next one is due an interval
    after the start of the last.
    """

    def __init__(
        self, store: Store, campaigns: CampaignService, now: Callable[[], datetime] = utc_now
    ) -> None:
        self._store = store
        self._campaigns = campaigns
        self._now = now
        self._host = host_name()

    async def add(self, every: object, document: object) -> Schedule:
        """Start a campaign every so often, first as soon as nothing is in the way.

        :raise InvalidInput: the interval, or a part of the campaign, cannot be accepted.
        :raise NotFound: a profile, revision or reference that there is not.
        :raise Blocked: an arm that cannot be run here.
        :raise Conflict: a schedule of the campaign's name.
        """
        every_s = read_every(every)
        campaign, _ = await self._campaigns.forecast_of(document)
        assert isinstance(document, dict)
        now = self._now()
        schedule = Schedule(campaign.name, document, every_s, self._host, now, now)
        await asyncio.to_thread(self._store.schedules.add, schedule)
        return schedule

    async def list(self) -> tuple[Schedule, ...]:
        """All, by name."""
        return await asyncio.to_thread(self._store.schedules.list)

    async def remove(self, name: str) -> None:
        """Start it no more. A campaign under way runs to its end.

        :raise NotFound: there is none of that name.
        """
        await asyncio.to_thread(self._store.schedules.remove, name)

    async def run(self) -> None:
        """Start the one that has been due for longest, if nothing is in the way. Called every few
        seconds."""
        now = self._now()
        due = sorted(
            (each for each in await self.list() if each.host == self._host and each.next_at <= now),
            key=lambda each: each.next_at,
        )
        if not due:
            return
        waits = await asyncio.to_thread(self._in_the_way)
        if waits:
            for each in due:
                if each.waits != waits:
                    await asyncio.to_thread(self._store.schedules.note, each.name, waits=waits)
            return
        await self._start(due[0], now)

    async def _start(self, schedule: Schedule, now: datetime) -> None:
        next_at = now + timedelta(seconds=schedule.every_s)
        note = self._store.schedules.note
        try:
            started = await self._campaigns.start(schedule.document)
        except VmtuneError as error:
            log.warning("a scheduled campaign cannot start", name=schedule.name, reason=str(error))
            await asyncio.to_thread(note, schedule.name, waits=str(error), next_at=next_at)
            return
        await asyncio.to_thread(
            note, schedule.name, waits="", next_at=next_at, last=started.record.id
        )

    def _in_the_way(self) -> str:
        unfinished = [r for r in self._store.campaigns.unfinished() if r.host == self._host]
        if unfinished:
            return f"the campaign {unfinished[0].campaign.name} has not ended"
        return self._store.schedules.in_the_way()
