"""The job of a study: it asks what to do next, does it, and records it, until there is a result.

All is in the records: which trials there are and what each run gave. So a service that was killed
goes on where it was. A run's id follows from the study, its block, its trial and the attempt, so
that none is requested twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

import structlog

from vmtune.bench.machine.environment import conditions
from vmtune.bench.model.campaign.record import CampaignState
from vmtune.bench.model.runs.run import Run
from vmtune.bench.model.tune.kept import KeptStudy, StudyState
from vmtune.bench.model.tune.limits import Breach
from vmtune.bench.model.tune.records import OUTCOMES, TrialOutcome, TrialRecord, TrialRun, with_run
from vmtune.bench.model.tune.result import Finding, StudyResult
from vmtune.bench.model.tune.spec import StudySpec
from vmtune.bench.model.tune.steps import Confirm, Finish, PlannedTrial, RunBlock, Step
from vmtune.bench.services.campaigns.campaigns import CampaignService
from vmtune.bench.services.runs.queue import RunQueue
from vmtune.bench.services.runs.runs import RunService
from vmtune.bench.services.tune.confirming import campaign_document, campaign_id, judge
from vmtune.bench.services.tune.deciding import decide
from vmtune.bench.services.tune.drafting import draft
from vmtune.bench.services.tune.reading import (
    Study,
    read_study,
    read_trial,
    request_of,
    write_trial,
)
from vmtune.documents.dataclass_json import to_json
from vmtune.errors import (
    Blocked,
    CommandRefused,
    Conflict,
    InvalidInput,
    NotFound,
    TooLate,
    VmtuneError,
)
from vmtune.jobs.base import JobEngine
from vmtune.jobs.kinds import RUN_KIND, STUDY_KIND
from vmtune.model.host.inventory import EventTopic
from vmtune.services.events import EventBus
from vmtune.services.heavy.work import Work
from vmtune.services.tuning.profiles import ProfileService
from vmtune.storage import Store

log = structlog.get_logger(__name__)

MAX_ATTEMPTS = 20
"""Of one run that is interrupted or cancelled over and over."""
CPU_PRESSURE = "cpu_pressure_percent"
_TELL_EVERY_S = 1.0
_LOOK_EVERY_S = 30.0
_MAX_SHARE = 0.99
_SEARCHES = 0.9  # of the whole, where the rest is the confirmation
_STOPPING = "jobs_not_running"
_S = StudyState


def _now() -> datetime:
    return datetime.now().astimezone()


class StudyJob:
    """Runs studies, one at a time."""

    def __init__(
        self,
        store: Store,
        bus: EventBus,
        profiles: ProfileService,
        runs: RunService,
        campaigns: CampaignService,
        jobs: JobEngine,
        work: Work,
        decide: Callable[[Store, UUID], Step] = decide,
        now: Callable[[], datetime] = _now,
        look: Callable[[], Mapping[str, float]] = conditions,
    ) -> None:
        """
        :param work: where it is computed what to do next.
        :param now: the local time, for the hours of the limits; *look* what the machine does.
        """
        self._store = store
        self._bus = bus
        self._profiles = profiles
        self._runs = runs
        self._campaigns = campaigns
        self._jobs = jobs
        self._work = work
        self._decide = decide
        self._now = now
        self._look = look
        self._queue = RunQueue()
        self._woken: dict[UUID, asyncio.Event] = {}
        self._broken: dict[UUID, str] = {}

    def register(self) -> None:
        """Give the job engine the phases."""
        self._jobs.register(STUDY_KIND, (("run", self.run), ("settle", self.settle)))

    def wake(self, id: UUID) -> None:
        """Let a study look whether it is still paused."""
        self._woken.setdefault(id, asyncio.Event()).set()

    async def run(self, job_id: str) -> None:
        """Search, confirm, and record the result."""
        kept = await self._get(UUID(job_id))
        if kept.state.ended:
            return
        try:
            while True:
                await self._while_paused(kept.id)
                async with self._queue.turn(kept):
                    if await self._in_turn(kept.id):
                        return
        except VmtuneError as error:
            self._broken[kept.id] = str(error)
            raise
        except Exception as error:
            log.exception("a study broke", study_id=job_id)
            self._broken[kept.id] = f"internal error: {error!r}"
            raise
        finally:
            self._woken.pop(kept.id, None)

    async def _in_turn(self, id: UUID) -> bool:
        """Go on until it has ended; False where it was paused, and lets others go first."""
        while True:
            kept = await self._get(id)
            if kept.state is _S.PAUSED:
                return False
            if kept.campaign is not None:
                return await self._confirm(kept)
            if kept.state is not _S.SEARCHING:
                await self._enter(id, _S.SEARCHING)
            study = await self._study(id)
            if not await self._may_run(study):
                continue
            step = await self._work.run(self._decide, id)
            match step:
                case RunBlock():
                    await self._block(study, step)
                case Confirm():
                    await self._begin_confirmation(study, step)
                case Finish():
                    found = StudyResult(
                        step.finding, within_percent=step.within_percent, reason=step.reason
                    )
                    await self._finish(id, found)
                    return True

    # The search ------------------------------------------------------------------------------

    async def _block(self, study: Study, step: RunBlock) -> None:
        """Run its trials once each. What is left when one is cut short is planned again."""
        for planned in step.trials:
            kept = await self._get(study.kept.id)
            if kept.state is not _S.SEARCHING or not await self._may_run(study):
                return
            if not await self._one(study, step, planned):
                return

    async def _one(self, study: Study, step: RunBlock, planned: PlannedTrial) -> bool:
        """Run a trial once, and record it; False where it gave nothing."""
        id = study.kept.id
        run = await self._ordered(study, step.block, planned)
        if run is None:
            return False
        if isinstance(run, TrialRun):
            await self._record(study, planned, run)
            return True
        ended = await self._end_of(study, step, planned, run)
        if not ended.state.counts:
            return False
        load = ended.conditions.get(CPU_PRESSURE)
        made = TrialRun(
            str(ended.id), step.block, OUTCOMES[ended.state], ended.metrics, load, ended.failure
        )
        await self._record(study, planned, made, self._breaches(study.spec, ended, load))
        log.info("a trial has run", study_id=str(id), trial=planned.number, state=ended.state.value)
        return True

    async def _ordered(
        self, study: Study, block: int, planned: PlannedTrial
    ) -> UUID | TrialRun | None:
        """The run of a trial in a block: an earlier service's, or a new one. A trial that cannot
        run is pruned; None where the study is paused by what stands against it."""
        id, spec = study.kept.id, study.spec
        known = {run.id: run for run in await asyncio.to_thread(self._store.studies.runs, id)}
        for attempt in range(MAX_ATTEMPTS):
            run = uuid5(id, f"{block}/{planned.number}/{attempt}")
            if run in known:
                if known[run].state.counts or not known[run].state.ended:
                    return run
                continue
            try:
                await self._runs.start(request_of(spec, planned.settings, id, run))
            except (Blocked, InvalidInput) as error:
                return TrialRun("", block, TrialOutcome.PRUNED, reason=str(error))
            except VmtuneError as error:
                await self._pause(study.kept, error)
                return None
            return run
        raise CommandRefused(
            f"trial {planned.number} was cut short {MAX_ATTEMPTS} times in block {block}",
            field="study",
            code="cut_short",
            remedy="look at its runs, and order the study again",
        )

    async def _pause(self, kept: KeptStudy, error: VmtuneError) -> None:
        """What stands against a run pauses the study, and loses nothing.

        :raise VmtuneError: the service stops.
        """
        if any(problem.code == _STOPPING for problem in error.problems):
            raise error
        log.warning("a study is paused", study_id=str(kept.id), reason=str(error))
        with suppress(Conflict):  # a person has paused it meanwhile
            await self._enter(kept.id, _S.PAUSED, str(error))

    async def _record(
        self, study: Study, planned: PlannedTrial, run: TrialRun, breaches: tuple[Breach, ...] = ()
    ) -> None:
        """Add a run to its trial, once."""
        id = study.kept.id

        def add() -> None:
            trials = tuple(map(read_trial, self._store.studies.trials(id)))
            new = TrialRecord(planned.number, planned.origin, planned.settings)
            known = next((one for one in trials if one.number == planned.number), new)
            if any(run.run_id and one.run_id == run.run_id for one in known.runs):
                return
            (trial,) = with_run((known,), known, run)
            found = [to_json(each) for each in breaches]
            self._store.studies.keep_trial(id, trial.number, write_trial(trial), found)

        await asyncio.to_thread(add)
        data = {
            "change": "trial",
            "trial": planned.number,
            "origin": planned.origin,
            "outcome": run.outcome.value,
            "breaches": [each.limit for each in breaches],
        }
        await self._bus.publish(EventTopic.STUDY, id, data)

    def _breaches(self, spec: StudySpec, run: Run, load: float | None) -> tuple[Breach, ...]:
        found = spec.limits.breaches(str(run.id), run.metrics, load)
        ended = run.ended_at
        if spec.limits.hours and ended is not None:
            local = ended.astimezone(self._now().tzinfo)
            opens_in_s = spec.limits.opens_in_s(local)
            if opens_in_s > 0:
                found += (Breach(str(run.id), "hours", opens_in_s, 0.0),)
        return found

    async def _may_run(self, study: Study) -> bool:
        """Wait until the limits let a run begin; False where the study was paused meanwhile."""
        limits = study.spec.limits
        while True:
            why, wait_s = "", limits.opens_in_s(self._now())
            if wait_s > 0:
                why = f"it waits for the hours {limits.hours}"
            elif limits.cpu_percent is not None:
                load = (await asyncio.to_thread(self._look)).get(CPU_PRESSURE)
                if load is not None and load > limits.cpu_percent:
                    why = f"something waits for a CPU for {load:g} % of the time"
                    wait_s = _TELL_EVERY_S
            if not why:
                return True
            self._publish_progress(study, {"waits": why})
            woken = self._woken.setdefault(study.kept.id, asyncio.Event())
            woken.clear()
            if (await self._get(study.kept.id)).state is _S.PAUSED:
                return False
            with suppress(TimeoutError):
                async with asyncio.timeout(min(wait_s, _LOOK_EVERY_S)):
                    await woken.wait()

    async def _end_of(self, study: Study, step: RunBlock, planned: PlannedTrial, id: UUID) -> Run:
        """Wait for a run's end, and publish the study's progress."""
        await self._jobs.submit(RUN_KIND, str(id))  # does nothing where it is known
        used = (await self._study(study.kept.id)).used
        while True:
            data = {
                "phase": "searching",
                "block": step.block,
                "trial": planned.number,
                "origin": planned.origin,
                "runs": used.runs,
                "why": step.why,
            }
            self._publish_progress(study, data, _share(study.spec, used.runs, used.seconds))
            if (await self._jobs.wait(str(id), _TELL_EVERY_S)).status.ended:
                return await asyncio.to_thread(self._store.runs.get, id)

    # The confirmation ------------------------------------------------------------------------

    async def _begin_confirmation(self, study: Study, step: Confirm) -> None:
        """Note which trials are confirmed by which campaign, before there is one."""
        id = study.kept.id
        numbers = [one.number for one in step.finalists]
        await asyncio.to_thread(self._store.studies.confirm, id, campaign_id(id), numbers)

    async def _confirm(self, kept: KeptStudy) -> bool:
        """Have the campaign run, and judge by it; False where the study was paused meanwhile."""
        assert kept.campaign is not None
        if kept.state is not _S.CONFIRMING:
            kept = await self._enter(kept.id, _S.CONFIRMING)
        study = await self._study(kept.id)
        try:
            await self._campaign(study)
        except VmtuneError as error:
            await self._pause(kept, error)
            return False
        name = str(kept.campaign)
        while True:
            state = await self._jobs.wait(name, _TELL_EVERY_S)
            if state.status.ended:
                break
            if (await self._get(kept.id)).state is not _S.CONFIRMING:
                return False  # paused, and perhaps resumed since: its campaign is paused, too
            status = await self._campaigns.get(name)
            done, total = status.done, status.record.campaign.run_count
            share = _SEARCHES + (1 - _SEARCHES) * done / total
            data = {"phase": "confirming", "campaign": name, "done": done, "total": total}
            if status.record.state is CampaignState.PAUSED:
                data["waits"] = "the campaign that confirms is paused"
            self._publish_progress(study, data, min(share, _MAX_SHARE))
        found, environments = await self._work.run(judge, kept.id)
        await self._finish(kept.id, found, environments)
        return True

    async def _campaign(self, study: Study) -> None:
        """The campaign of the finalists, begun where it is not, and resumed where it is paused."""
        id = study.kept.campaign
        assert id is not None
        try:
            status = await self._campaigns.get(str(id))
        except NotFound:
            wanted = study.kept.finalists or ()
            finalists = [one for number in wanted for one in study.trials if one.number == number]
            starting = asyncio.ensure_future(
                self._campaigns.start(campaign_document(study.spec, finalists), id)
            )
            try:
                await asyncio.shield(starting)
            except asyncio.CancelledError:
                await starting  # else there could be a campaign without its job
                raise
            return
        if status.record.state is CampaignState.PAUSED:
            await self._campaigns.resume(str(id))

    async def _finish(
        self, id: UUID, found: StudyResult, environments: tuple[str, ...] = ()
    ) -> None:
        result: dict[str, Any] = {"found": to_json(found), "environments": list(environments)}
        if found.finding is Finding.BETTER:
            study = await self._study(id)
            name, revision = await draft(self._profiles, study, found, environments)
            result["draft"] = {"profile": name, "revision": revision}
        await self._enter(id, _S.COMPLETED, result=result)
        log.info("study ended", study_id=str(id), finding=found.finding.value)

    # What all share --------------------------------------------------------------------------

    async def _while_paused(self, id: UUID) -> None:
        while True:
            woken = self._woken.setdefault(id, asyncio.Event())
            woken.clear()
            if (await self._get(id)).state is not _S.PAUSED:
                return
            await woken.wait()

    async def settle(self, job_id: str) -> None:
        """Cancel what still runs, and complete the record of a study that was cut short."""
        kept = await self._get(UUID(job_id))
        broken = self._broken.pop(kept.id, None)
        if kept.state.ended:
            return
        for run in await asyncio.to_thread(self._store.studies.runs, kept.id):
            if not run.state.ended:
                with suppress(TooLate, NotFound):
                    await self._runs.cancel(run.id)
                with suppress(NotFound):
                    await self._jobs.wait(str(run.id))
        if kept.campaign is not None:
            with suppress(TooLate, NotFound):
                await self._campaigns.cancel(str(kept.campaign))
            with suppress(NotFound):
                await self._jobs.wait(str(kept.campaign))
        state = _S.CANCELLED if broken is None else _S.FAILED
        await self._enter(kept.id, state, broken or "")

    async def _enter(
        self,
        id: UUID,
        state: StudyState,
        reason: str = "",
        result: Mapping[str, Any] | None = None,
    ) -> KeptStudy:
        kept = await asyncio.to_thread(self._store.studies.enter, id, state, reason, result)
        await self._bus.publish(EventTopic.STUDY, id, event_data(kept))
        return kept

    async def _get(self, id: UUID) -> KeptStudy:
        return await asyncio.to_thread(self._store.studies.get, id)

    async def _study(self, id: UUID) -> Study:
        return await asyncio.to_thread(lambda: read_study(self._store, self._store.studies.get(id)))

    def _publish_progress(
        self, study: Study, data: Mapping[str, Any], share: float | None = None
    ) -> None:
        spec, used = study.spec, study.used
        known = _share(spec, used.runs, used.seconds) if share is None else share
        self._bus.progress(EventTopic.STUDY, study.kept.id, {"share": round(known, 4), **data})


def _share(spec: StudySpec, runs: int, seconds: float) -> float:
    """How much of its budget the search has used, as a share of the whole study."""
    budget, shares = spec.budget, [0.0]
    if budget.runs is not None:
        shares.append(runs / max(budget.runs - spec.confirm_runs, 1))
    if budget.seconds is not None:
        shares.append(seconds / budget.seconds)
    return min(max(shares), 1.0) * _SEARCHES


def event_data(kept: KeptStudy) -> dict[str, object]:
    """The details of a study's event."""
    found = kept.result.get("found", {}) if kept.result else {}
    return {
        "state": kept.state.value,
        "name": kept.name,
        "reason": kept.reason,
        "finding": found.get("finding"),
        "campaign": str(kept.campaign) if kept.campaign else None,
    }
