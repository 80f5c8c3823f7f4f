"""Studies: requested, watched, paused, resumed, cancelled."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Collection, Mapping

import structlog

from vmtune.bench.machine.environment import host_name
from vmtune.bench.migration.scenarios import offered
from vmtune.bench.model.campaign.record import CampaignState
from vmtune.bench.model.scenario.block import BlockScenario
from vmtune.bench.model.scenario.migration import Scenario
from vmtune.bench.model.settable import settable
from vmtune.bench.model.tune import file as study_file
from vmtune.bench.model.tune.analysis import Analysis
from vmtune.bench.model.tune.auto import WIDE, auto_space, usual_dimension
from vmtune.bench.model.tune.kept import KeptStudy, StudyState
from vmtune.bench.model.tune.seeds import seeds_of
from vmtune.bench.model.tune.space import Space
from vmtune.bench.model.tune.spec import CURRENT, StudySpec
from vmtune.bench.services.campaigns.campaigns import CampaignService, known_scenarios
from vmtune.bench.services.runs.runs import RunService
from vmtune.bench.services.runs.sites import Testbeds
from vmtune.bench.services.tune.deciding import analysis
from vmtune.bench.services.tune.job import StudyJob, event_data
from vmtune.bench.services.tune.reading import Study, read_study, request_of
from vmtune.documents.dataclass_json import check_storable
from vmtune.errors import Blocked, Conflict, InvalidInput, NotFound, TooLate
from vmtune.jobs.base import JobEngine
from vmtune.jobs.kinds import STUDY_KIND
from vmtune.model.host.inventory import EventTopic
from vmtune.model.tunables.tunable import Value
from vmtune.services.events import EventBus
from vmtune.services.heavy.work import Work
from vmtune.services.tuning.profiles import ProfileService
from vmtune.storage import Page, Store

log = structlog.get_logger(__name__)

_DRAWN_BELOW = 1 << 53
"""Seeds below are exact in every reader of JSON, those whose numbers are floats included."""
_S = StudyState


class StudyService:
    """Takes orders for studies, and answers for them."""

    def __init__(
        self,
        store: Store,
        bus: EventBus,
        profiles: ProfileService,
        runs: RunService,
        testbeds: Testbeds,
        campaigns: CampaignService,
        jobs: JobEngine,
        job: StudyJob,
        work: Work,
    ) -> None:
        """
        :param work: where the trials are analysed.
        """
        self._work = work
        self._store = store
        self._bus = bus
        self._profiles = profiles
        self._runs = runs
        self._testbeds = testbeds
        self._campaigns = campaigns
        self._jobs = jobs
        self._job = job
        self._host = host_name()

    async def filled_in(self, document: object) -> StudySpec:
        """A study with all that its order leaves open, without ordering it.

        :raise InvalidInput: with a problem for each part that cannot be accepted.
        :raise NotFound: there is no such profile.
        :raise Blocked: its scenario cannot be run here, or it would touch what it must not.
        """
        check_storable(document, "study")
        spec = study_file.from_json(document, known_scenarios())
        _check_target(spec)
        await self._runs.check(request_of(spec, {}))
        current: Mapping[str, Value] | None = None
        if spec.profile:
            current = (await self._profiles.get(spec.profile)).current.values
        space = spec.space if spec.space is not None else await self._auto(spec)
        if not space:
            raise InvalidInput(
                "there is no tunable that could be varied here",
                field="space",
                code="empty_space",
                remedy="name tunables with their values in a table space",
            )
        given = {one.name for one in spec.seeds}
        found = seeds_of(spec.scenario, space, current, rivals=spec.rivals)
        seeds = (*(one for one in found if one.name not in given), *spec.seeds)
        seeds = tuple(sorted(seeds, key=lambda one: one.name != CURRENT))
        seed = secrets.randbelow(_DRAWN_BELOW) if spec.seed is None else spec.seed
        return spec.ready(space, seeds, seed)

    async def _auto(self, spec: StudySpec) -> Space:
        """What "auto" stands for on this machine."""
        tried = {
            name: [value for value in found.points(WIDE) if value != row.default]
            for name, row in settable().items()
            if (found := usual_dimension(row)) is not None
        }
        names: Collection[str] = tried
        # A migration is between two hosts, and what a pack adds not every QEMU has.
        asked = tried
        if not isinstance(spec.scenario, Scenario):
            asked = {name: values for name, values in tried.items() if settable()[name].pack}
        if asked:
            hosts = await self._testbeds.bench_hosts(spec.testbed, spec.qemu, spec.kvm)
            names = (tried.keys() - asked.keys()) | offered(hosts, asked)
        return auto_space(spec.kind, settable(), names, spec.base)

    async def start(self, document: object) -> Study:
        """Request a study. It runs as a job, when no other one has the machine.

        :raise InvalidInput: with a problem for each part that cannot be accepted.
        :raise NotFound: there is no such profile.
        :raise Blocked: its scenario cannot be run here, or it would touch what it must not.
        """
        spec = await self.filled_in(document)
        kept = await asyncio.to_thread(
            self._store.studies.begin, spec.name, study_file.to_json(spec), self._host
        )
        await self._publish(kept)
        await self._jobs.submit(STUDY_KIND, str(kept.id))
        return await self._read(kept)

    async def resume_all(self) -> None:
        """At the service's start: see to it that each study of this machine that has not ended
        has its job."""
        for kept in await asyncio.to_thread(self._store.studies.unfinished):
            if kept.host != self._host:
                continue
            await self._jobs.submit(STUDY_KIND, str(kept.id))
            if (await self._jobs.state(str(kept.id))).status.ended:
                log.warning("a study's job has ended without it", study_id=str(kept.id))
                failed = "the service could not record how it ended"
                await asyncio.to_thread(self._store.studies.enter, kept.id, _S.FAILED, failed)

    async def get(self, name: str) -> Study:
        """The study of that id, or the newest of that name.

        :raise NotFound: there is none.
        """
        return await self._read(await asyncio.to_thread(self._store.studies.named, name))

    async def list(
        self,
        name: str | None,
        states: Collection[StudyState],
        after: str | None,
        limit: int,
        search: str = "",
    ) -> Page[Study]:
        """Studies, newest first."""
        page = await asyncio.to_thread(self._store.studies.list, name, states, after, limit, search)
        return Page(tuple([await self._read(kept) for kept in page.items]), page.next)

    async def pause(self, name: str) -> Study:
        """Begin no more runs; the one that is under way runs to its end. Other studies may run
        meanwhile.

        :raise NotFound: no such study.
        :raise TooLate: it has ended.
        """
        study = await self._change(name, _S.PAUSED)
        campaign = study.kept.campaign
        if campaign is not None:
            try:
                status = await self._campaigns.get(str(campaign))
                if status.record.state is CampaignState.RUNNING:
                    await self._campaigns.pause(str(campaign))
            except (NotFound, TooLate):
                pass  # it has not begun, or has ended
        return study

    async def resume(self, name: str) -> Study:
        """Resume a paused study.

        :raise NotFound: no such study.
        :raise TooLate: it has ended.
        """
        kept = await asyncio.to_thread(self._store.studies.named, name)
        if not kept.state.ended and kept.state is not _S.PAUSED:
            return await self._read(kept)
        return await self._change(name, _S.QUEUED)

    async def _change(self, name: str, state: StudyState) -> Study:
        kept = await asyncio.to_thread(self._store.studies.named, name)
        if kept.state.ended:
            raise _ended(kept)
        if kept.state is not state:
            try:
                kept = await asyncio.to_thread(self._store.studies.enter, kept.id, state)
            except Conflict as error:
                latest = await asyncio.to_thread(self._store.studies.get, kept.id)
                raise (_ended(latest) if latest.state.ended else error) from error
            await self._publish(kept)
            self._job.wake(kept.id)
        return await self._read(kept)

    async def cancel(self, name: str) -> Study:
        """End a study; the run that is under way is cancelled, and what was measured stays.

        :raise NotFound: no such study.
        :raise TooLate: it has ended.
        """
        kept = await asyncio.to_thread(self._store.studies.named, name)
        if kept.state.ended or not await self._jobs.cancel(str(kept.id)):
            raise _ended(kept)
        return await self.get(str(kept.id))

    async def analysis(self, name: str) -> tuple[Study, Analysis]:
        """A study, and what its trials say so far.

        :raise NotFound: no such study.
        """
        kept = await asyncio.to_thread(self._store.studies.named, name)
        return await self._read(kept), await self._work.run(analysis, kept.id)

    async def _read(self, kept: KeptStudy) -> Study:
        return await asyncio.to_thread(read_study, self._store, kept)

    async def _publish(self, kept: KeptStudy) -> None:
        await self._bus.publish(EventTopic.STUDY, kept.id, event_data(kept))


def _check_target(spec: StudySpec) -> None:
    """:raise Blocked: it loads a running VM that it must not touch, or is not allowed to."""
    scenario = spec.scenario
    if not isinstance(scenario, BlockScenario) or scenario.target is None:
        return
    vm = str(scenario.target.vm)
    if vm in spec.limits.spare:
        raise Blocked(
            f"the study is not to touch the VM {vm}",
            field="limits.spare",
            code="spared",
            remedy="choose another VM, or take this one off the list",
        )
    if not spec.limits.carries_work:
        raise Blocked(
            f"the VM {vm} runs, and may carry somebody's work",
            field="limits.carries_work",
            code="carries_work",
            remedy="leave the target out to measure a QEMU of vmtune's own, or set "
            "limits.carries_work to true",
        )
    raise InvalidInput(
        f"the VM {vm} runs, and is measured as it is: a study cannot vary it",
        field="scenario.target",
        code="not_settable",
        remedy="leave the target out to measure a QEMU of vmtune's own",
    )


def _ended(kept: KeptStudy) -> TooLate:
    state = kept.state.value if kept.state.ended else "ending"
    return TooLate(
        f"the study is {state}", field="study", remedy="look at it again, or order another"
    )
