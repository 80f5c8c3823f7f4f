"""The job of a campaign: one run after the other, each through the run service.

What was done is read from the runs themselves, each of which says which measurement it is. So a
service resumes a campaign where it stopped: an interrupted run has no result, is kept as
interrupted, and is repeated in its place. An attempt's id follows from the campaign, its place and
its number, so that none is requested twice.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from uuid import UUID

import structlog

from vmtune.bench.model.campaign.record import CampaignRecord, CampaignState, PlannedRun
from vmtune.bench.model.runs.run import Run, Slot
from vmtune.bench.services.campaigns.noise import calibrated
from vmtune.bench.services.campaigns.plan import Course, planned_runs, request_of, run_id
from vmtune.bench.services.runs.runs import RunService
from vmtune.errors import CommandRefused, NotFound, TooLate, VmtuneError
from vmtune.jobs.base import JobEngine
from vmtune.jobs.kinds import CAMPAIGN_KIND, RUN_KIND
from vmtune.model.host.inventory import EventTopic
from vmtune.model.profile import Revision
from vmtune.services.events import EventBus
from vmtune.services.tuning.profiles import ProfileService
from vmtune.storage import Store

log = structlog.get_logger(__name__)

MAX_ATTEMPTS = 20
"""Of one run that is interrupted or cancelled over and over."""
_TELL_EVERY_S = 1.0
_MAX_OF_A_RUN = 0.95  # of its share, before its end is known
_STOPPING = "jobs_not_running"


class CampaignJob:
    """Runs campaigns."""

    def __init__(
        self,
        store: Store,
        bus: EventBus,
        profiles: ProfileService,
        runs: RunService,
        jobs: JobEngine,
    ) -> None:
        self._store = store
        self._bus = bus
        self._profiles = profiles
        self._runs = runs
        self._jobs = jobs
        self._woken: dict[UUID, asyncio.Event] = {}
        self._broken: dict[UUID, str] = {}

    def register(self) -> None:
        """Give the job engine the phases."""
        self._jobs.register(CAMPAIGN_KIND, (("run", self.run), ("settle", self.settle)))

    def wake(self, id: UUID) -> None:
        """Let a campaign look whether it is still paused."""
        self._woken.setdefault(id, asyncio.Event()).set()

    async def run(self, job_id: str) -> None:
        """Make all runs that are not made yet."""
        record = await self._get(job_id)
        if record.state.ended:
            return
        try:
            await self._all(record)
        except VmtuneError as error:
            self._broken[record.id] = str(error)
            raise
        except Exception as error:
            log.exception("a campaign broke", campaign_id=job_id)
            self._broken[record.id] = f"internal error: {error!r}"
            raise
        finally:
            self._woken.pop(record.id, None)

    async def _all(self, record: CampaignRecord) -> None:
        plan = planned_runs(record.campaign)
        runs = await asyncio.to_thread(self._store.campaigns.runs, record.id)
        course = Course(record.campaign, runs)
        done = sum(map(course.is_done, plan))
        typical_s = course.typical_s(record.forecast.duration_s / record.forecast.runs)
        took: list[float] = []
        for planned in plan:
            if course.is_done(planned):
                continue
            progress = _Progress(self._bus, record.id, planned, done, len(plan), typical_s)
            begun = time.monotonic()
            await self._one(record, planned, course, progress)
            done += 1
            took.append(time.monotonic() - begun)
            typical_s = sum(took) / len(took)
        await asyncio.to_thread(self._calibrate, record)
        await self._enter(record.id, CampaignState.COMPLETED)

    async def _one(
        self, record: CampaignRecord, planned: PlannedRun, course: Course, progress: _Progress
    ) -> None:
        """Make one run, again where it was cut short, until there is a result."""
        attempts = course.attempts(planned)
        number = len(attempts)
        last = attempts[-1].id if attempts and not attempts[-1].state.ended else None
        while True:
            if last is None:
                await self._while_paused(record.id)
                await self._while_in_the_way(record.id)
                if number >= MAX_ATTEMPTS:
                    raise CommandRefused(
                        f"run {planned.number} ({planned.arm.name}) was cut short {number} times",
                        field="campaign",
                        code="cut_short",
                        remedy="look at its runs, and order the campaign again",
                    )
                last = await self._order(record, planned, number)
                if last is None:
                    continue
                number += 1
            run = await self._end_of(record.id, last, progress)
            if run.state.counts:
                return
            last = None

    async def _order(self, record: CampaignRecord, planned: PlannedRun, number: int) -> UUID | None:
        """Order an attempt. What stands against it pauses the campaign, and loses nothing."""
        slot = Slot(record.id, planned.arm.name, planned.block, planned.position)
        id = run_id(record.id, planned, number)
        try:
            revision = await self._revision(planned)
            request = request_of(record.campaign, planned.cell, planned.arm, revision, slot, id)
            await self._runs.start(request)
        except VmtuneError as error:
            if any(problem.code == _STOPPING for problem in error.problems):
                raise
            log.warning("a campaign is paused", campaign_id=str(record.id), reason=str(error))
            await self._enter(record.id, CampaignState.PAUSED, str(error))
            return None
        return id

    async def _revision(self, planned: PlannedRun) -> Revision | None:
        arm = planned.arm
        if not arm.profile or arm.revision is None:
            return None
        return await self._profiles.revision(arm.profile, arm.revision)

    async def _end_of(self, campaign: UUID, id: UUID, progress: _Progress) -> Run:
        """Wait for a run's end, and publish the campaign's progress. A scheduled campaign's run is
        cancelled when something that people ordered begins; it is repeated afterwards."""
        await self._jobs.submit(RUN_KIND, str(id))  # does nothing where it is known
        waiting = asyncio.ensure_future(self._jobs.wait(str(id)))
        try:
            while True:
                progress.publish()
                ended, _ = await asyncio.wait({waiting}, timeout=_TELL_EVERY_S)
                if ended:
                    break
                if await asyncio.to_thread(self._in_the_way, campaign):
                    with suppress(TooLate, NotFound):
                        await self._runs.cancel(id)
            waiting.result()
        finally:
            waiting.cancel()
        return await asyncio.to_thread(self._store.runs.get, id)

    async def _while_paused(self, id: UUID) -> None:
        while True:
            woken = self._woken.setdefault(id, asyncio.Event())
            woken.clear()
            record = await asyncio.to_thread(self._store.campaigns.get, id)
            if record.state is not CampaignState.PAUSED:
                return
            await woken.wait()

    async def _while_in_the_way(self, id: UUID) -> None:
        """A scheduled campaign makes no run while migrations or evacuations are under way."""
        while True:
            if not await asyncio.to_thread(self._in_the_way, id):
                return
            await asyncio.sleep(_TELL_EVERY_S)

    def _in_the_way(self, id: UUID) -> str:
        return self._store.schedules.in_the_way() if self._store.schedules.started(id) else ""

    def _calibrate(self, record: CampaignRecord) -> None:
        """Keep what identical arms showed."""
        if record.campaign.same_arms:
            self._store.campaigns.keep_floors(record.id, calibrated(self._store, record))

    async def settle(self, job_id: str) -> None:
        """Cancel what still runs, and complete the record of a campaign that was cut short."""
        record = await self._get(job_id)
        broken = self._broken.pop(record.id, None)
        if record.state.ended:
            return
        for run in await asyncio.to_thread(self._store.campaigns.runs, record.id):
            if not run.state.ended:
                with suppress(TooLate, NotFound):
                    await self._runs.cancel(run.id)
                with suppress(NotFound):
                    await self._jobs.wait(str(run.id))
        state = CampaignState.CANCELLED if broken is None else CampaignState.FAILED
        await self._enter(record.id, state, broken or "")

    async def _enter(self, id: UUID, state: CampaignState, reason: str = "") -> None:
        record = await asyncio.to_thread(self._store.campaigns.enter, id, state, reason)
        await self._bus.publish(EventTopic.CAMPAIGN, id, event_data(record))

    async def _get(self, job_id: str) -> CampaignRecord:
        return await asyncio.to_thread(self._store.campaigns.get, UUID(job_id))


class _Progress:
    """How far a campaign is while one of its runs is made.

    :param done: how many were made before.
    """

    def __init__(
        self,
        bus: EventBus,
        campaign: UUID,
        planned: PlannedRun,
        done: int,
        total: int,
        typical_s: float,
    ) -> None:
        self._bus = bus
        self._campaign = campaign
        self._planned = planned
        self._done = done
        self._total = total
        self._typical_s = typical_s
        self._begun = time.monotonic()

    def publish(self) -> None:
        """Publish to the current subscribers."""
        passed = (time.monotonic() - self._begun) / max(self._typical_s, 0.001)
        of_it = min(passed, _MAX_OF_A_RUN)
        done = self._done + of_it
        planned = self._planned
        data = {
            "share": round(done / self._total, 4),
            "done": self._done,
            "total": self._total,
            "remaining_s": round((self._total - done) * self._typical_s),
            "block": planned.block,
            "arm": planned.arm.name,
            "cell": planned.cell.name,
        }
        self._bus.progress(EventTopic.CAMPAIGN, self._campaign, data)


def event_data(record: CampaignRecord) -> dict[str, object]:
    """The details of a campaign's event."""
    return {
        "state": record.state.value,
        "name": record.campaign.name,
        "reason": record.reason,
    }
