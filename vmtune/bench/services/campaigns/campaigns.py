"""Campaigns: requested, watched, paused, resumed, cancelled."""

from __future__ import annotations

import asyncio
import functools
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

import structlog

from vmtune.bench.catalogue import CATALOGUE
from vmtune.bench.machine.environment import host_name
from vmtune.bench.migration.families import SCENARIOS
from vmtune.bench.model.campaign.campaign import Arm, Campaign
from vmtune.bench.model.campaign.matrix import read_campaign
from vmtune.bench.model.campaign.record import (
    CampaignRecord,
    CampaignRun,
    CampaignState,
    Forecast,
    PlannedRun,
    scenario_name,
)
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.scenario.any_kind import AnyScenario
from vmtune.bench.services.campaigns.job import CampaignJob, event_data
from vmtune.bench.services.campaigns.plan import Course, forecast, planned_runs, request_of
from vmtune.bench.services.runs.runs import RunService
from vmtune.bench.services.runs.scenarios import QUICK, in_small
from vmtune.documents.dataclass_json import check_storable
from vmtune.errors import Conflict, InvalidInput, NotFound, TooLate, VmtuneError
from vmtune.jobs.base import JobEngine
from vmtune.jobs.kinds import CAMPAIGN_KIND
from vmtune.model.host.inventory import EventTopic
from vmtune.model.profile import Revision
from vmtune.reference.loading import reference, table_of
from vmtune.services.events import EventBus
from vmtune.services.tuning.profiles import ProfileService
from vmtune.storage import Page, Store

log = structlog.get_logger(__name__)

_DRAWN_BELOW = 1 << 53
"""Seeds below are exact in every reader of JSON, those whose numbers are floats included."""


@functools.cache
def known_scenarios() -> Mapping[str, AnyScenario]:
    """Scenarios that a campaign may name. Computed when first asked for: it would be a good part
    of the time that a service takes to start."""
    small = {f"{name}{QUICK}": in_small(scenario) for name, scenario in SCENARIOS.items()}
    return {**CATALOGUE, **small}


@dataclass(frozen=True, slots=True)
class CampaignStatus:
    """A campaign, and how far it is.

    :param done: runs that have a result, warm-up included.
    :param states: how many of all its runs, repeated ones included, are in each state.
    :param remaining_s: the estimated remaining time in seconds; None where it has ended.
    """

    record: CampaignRecord
    done: int
    states: Mapping[RunState, int]
    remaining_s: float | None


@dataclass(frozen=True, slots=True)
class PlannedStatus:
    """One run of the plan, and what became of it.

    :param scenario: what the runs of its cell are called.
    :param run: the attempt that counts, or else the last one; None before the first.
    """

    planned: PlannedRun
    scenario: str
    run: CampaignRun | None
    attempts: int


class CampaignService:
    """Takes orders for campaigns, and answers for them."""

    def __init__(
        self,
        store: Store,
        bus: EventBus,
        profiles: ProfileService,
        runs: RunService,
        jobs: JobEngine,
        job: CampaignJob,
    ) -> None:
        self._store = store
        self._bus = bus
        self._profiles = profiles
        self._runs = runs
        self._jobs = jobs
        self._job = job
        self._host = host_name()

    async def forecast_of(self, document: object) -> tuple[Campaign, Forecast]:
        """What a campaign can find and how long it takes, without ordering it.

        :raise InvalidInput: with a problem for each part that cannot be accepted.
        :raise NotFound: a profile, revision or reference that there is not.
        :raise Blocked: an arm that cannot be run here.
        """
        check_storable(document, "campaign")
        campaign = read_campaign(document, known_scenarios())
        if campaign.published is not None:
            found = reference(campaign.published.reference)
            if campaign.published.table:
                table_of(found, campaign.published.table)
        arms = [await self._fixed(arm) for arm in campaign.arms]
        campaign = replace(
            campaign,
            arms=tuple(arm for arm, _ in arms),
            seed=secrets.randbelow(_DRAWN_BELOW) if campaign.seed is None else campaign.seed,
        )
        scenarios: dict[tuple[str, str], AnyScenario] = {}
        for index, (arm, revision) in enumerate(arms):
            for cell in campaign.all_cells:
                scenario = campaign.scenario_of(cell, arm, revision)
                request = request_of(campaign, cell, arm, revision)
                try:
                    effective = await self._runs.check(request)
                except VmtuneError as error:
                    raise _blamed(error, index, arm) from error
                if effective != scenario:
                    raise InvalidInput(
                        f"the arm {arm.name} gives steps, and so does its profile",
                        field=f"arms.{index}.scenario.steps",
                        code="steps_twice",
                        remedy="leave them out of one of the two",
                    )
                scenarios[cell.name, arm.name] = effective
        seen = await asyncio.to_thread(forecast, self._store, campaign, scenarios, self._host)
        return campaign, seen

    async def _fixed(self, arm: Arm) -> tuple[Arm, Revision | None]:
        """*arm* with a fixed revision for its runs, even if the profile changes."""
        if not arm.profile:
            return arm, None
        if arm.revision is None:
            revision = (await self._profiles.get(arm.profile)).current
        else:
            revision = await self._profiles.revision(arm.profile, arm.revision)
        return replace(arm, revision=revision.number), revision

    async def start(self, document: object, id: UUID | None = None) -> CampaignStatus:
        """Request a campaign. It runs as a job.

        :param id: where the caller has to know it beforehand; else a new one.
        :raise InvalidInput: with a problem for each part that cannot be accepted.
        :raise NotFound: a profile, revision or reference that there is not.
        :raise Blocked: an arm that cannot be run here.
        """
        campaign, seen = await self.forecast_of(document)
        record = await asyncio.to_thread(
            self._store.campaigns.begin, campaign, seen, self._host, id
        )
        await self._publish(record)
        await self._jobs.submit(CAMPAIGN_KIND, str(record.id))
        return await self._status(record)

    async def resume_all(self) -> None:
        """At the service's start: see to it that each campaign of this machine that has not
        ended has its job."""
        for record in await asyncio.to_thread(self._store.campaigns.unfinished):
            if record.host != self._host:
                continue
            await self._jobs.submit(CAMPAIGN_KIND, str(record.id))
            if (await self._jobs.state(str(record.id))).status.ended:
                log.warning("a campaign's job has ended without it", campaign_id=str(record.id))
                failed = "the service could not record how it ended"
                await asyncio.to_thread(
                    self._store.campaigns.enter, record.id, CampaignState.FAILED, failed
                )

    async def get(self, name: str) -> CampaignStatus:
        """The campaign of that id, or the newest of that name.

        :raise NotFound: there is none.
        """
        return await self._status(await asyncio.to_thread(self._store.campaigns.named, name))

    async def plan(self, name: str) -> tuple[PlannedStatus, ...]:
        """All its runs in their order, and where each stands.

        :raise NotFound: there is no such campaign.
        """
        return await asyncio.to_thread(self._plan_of, name)

    def _plan_of(self, name: str) -> tuple[PlannedStatus, ...]:
        record = self._store.campaigns.named(name)
        campaign = record.campaign
        course = Course(campaign, self._store.campaigns.runs(record.id))
        found: list[PlannedStatus] = []
        for planned in planned_runs(campaign):
            tried = course.attempts(planned)
            last = tried[-1] if tried else None
            run = next((each for each in tried if each.state.counts), last)
            name = scenario_name(campaign, planned.cell)
            found.append(PlannedStatus(planned, name, run, len(tried)))
        return tuple(found)

    async def list(
        self,
        name: str | None,
        states: Collection[CampaignState],
        after: str | None,
        limit: int,
        search: str = "",
    ) -> Page[CampaignStatus]:
        """Campaigns, newest first."""
        listed = self._store.campaigns.list
        page = await asyncio.to_thread(listed, name, states, after, limit, search)
        return Page(tuple([await self._status(record) for record in page.items]), page.next)

    async def pause(self, name: str) -> CampaignStatus:
        """Begin no more runs; the one that is under way runs to its end.

        :raise NotFound: no such campaign.
        :raise TooLate: it has ended.
        """
        return await self._change(name, CampaignState.PAUSED)

    async def resume(self, name: str) -> CampaignStatus:
        """Resume a paused campaign.

        :raise NotFound: no such campaign.
        :raise TooLate: it has ended.
        """
        return await self._change(name, CampaignState.RUNNING)

    async def _change(self, name: str, state: CampaignState) -> CampaignStatus:
        record = await asyncio.to_thread(self._store.campaigns.named, name)
        if record.state.ended:
            raise _ended(record)
        if record.state is not state:
            try:
                record = await asyncio.to_thread(self._store.campaigns.enter, record.id, state)
            except Conflict as error:
                latest = await asyncio.to_thread(self._store.campaigns.get, record.id)
                raise (_ended(latest) if latest.state.ended else error) from error
            await self._publish(record)
            self._job.wake(record.id)
        return await self._status(record)

    async def cancel(self, name: str) -> CampaignStatus:
        """End a campaign; the run that is under way is cancelled, and what was measured stays.

        :raise NotFound: no such campaign.
        :raise TooLate: it has ended.
        """
        record = await asyncio.to_thread(self._store.campaigns.named, name)
        if record.state.ended or not await self._jobs.cancel(str(record.id)):
            raise _ended(record)
        return await self.get(str(record.id))

    async def _status(self, record: CampaignRecord) -> CampaignStatus:
        return await asyncio.to_thread(self._status_of, record)

    def _status_of(self, record: CampaignRecord) -> CampaignStatus:
        runs = self._store.campaigns.runs(record.id)
        course = Course(record.campaign, runs)
        plan = planned_runs(record.campaign)
        done = sum(map(course.is_done, plan))
        typical = course.typical_s(record.forecast.duration_s / record.forecast.runs)
        states: dict[RunState, int] = {}
        for run in runs:
            states[run.state] = states.get(run.state, 0) + 1
        left = None if record.state.ended else typical * (len(plan) - done)
        return CampaignStatus(record, done, states, left)

    async def _publish(self, record: CampaignRecord) -> None:
        await self._bus.publish(EventTopic.CAMPAIGN, record.id, event_data(record))


def _ended(record: CampaignRecord) -> TooLate:
    state = record.state.value if record.state.ended else "ending"
    return TooLate(
        f"the campaign is {state}", field="campaign", remedy="look at it again, or order another"
    )


def _blamed(error: VmtuneError, index: int, arm: Arm) -> VmtuneError:
    """*error* with the arm that it is about."""
    if isinstance(error, InvalidInput | NotFound):
        problems = [
            replace(
                each, field=f"arms.{index}.{each.field}", message=f"{each.message} ({arm.name})"
            )
            for each in error.problems
        ]
        return type(error)(f"the arm {arm.name} cannot be run: {error.message}", problems=problems)
    return error
