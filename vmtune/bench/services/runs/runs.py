"""Benchmark runs: requested, queued, cancelled, imported from files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import structlog

from vmtune.bench.machine.environment import Environment, host_name
from vmtune.bench.migration.scenarios import why_not
from vmtune.bench.model.campaign.campaign import HostLoad
from vmtune.bench.model.runs.run import Run, RunState, Slot, Testbed
from vmtune.bench.model.runs.series import Head, Series
from vmtune.bench.model.scenario.any_kind import AnyScenario, has_guest, kind_of, to_json
from vmtune.bench.model.scenario.block import BlockScenario
from vmtune.bench.model.scenario.migration import Scenario
from vmtune.bench.model.settable import settable
from vmtune.bench.services.runs.importing import ImportReader
from vmtune.bench.services.runs.job import event_data
from vmtune.bench.services.runs.live import LiveRuns, LiveVm
from vmtune.bench.services.runs.scenarios import chosen_scenario
from vmtune.bench.services.runs.sites import Testbeds
from vmtune.documents.dataclass_json import check_storable
from vmtune.errors import Blocked, InvalidInput, Problem, TooLate
from vmtune.jobs.base import JobEngine
from vmtune.jobs.kinds import RUN_KIND
from vmtune.model.host.inventory import EventTopic
from vmtune.model.profile import Revision
from vmtune.model.tunables.rules import accept_values
from vmtune.services.events import EventBus
from vmtune.services.tuning.profiles import ProfileService
from vmtune.storage import Page, Store
from vmtune.storage.repositories.bench.run_rows import MeasuredScenario, RunFilter

log = structlog.get_logger(__name__)

Json = Any  # any JSON


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A requested run.

    :param scenario: one of the table by name, or one of one's own as JSON.
    :param changes: parts of a scenario as JSON, laid over it.
    :param profile: its values, and its steps if it has any, are laid over the scenario's.
    :param values: tunables as people write them, laid over all; null unsets one.
    :param qemu: a QEMU by its name in the settings; empty for the installed one.
    :param kvm: None: where this machine can. For migrations, as *overrides* are, and
        for guests that load disks.
    :param overrides: codes of preflight findings that are overridden.
    :param host_load: what else the machine does meanwhile.
    :param slot: of which campaign it is.
    :param id: where the caller has to know it beforehand.
    :param study: of which study it is.
    """

    scenario: str | Mapping[str, Json]
    changes: Mapping[str, Json] = field(default_factory=dict)
    profile: str | None = None
    revision: int | None = None
    values: Mapping[str, object] = field(default_factory=dict)
    testbed: Testbed = Testbed.DIRECT
    qemu: str = ""
    kvm: bool | None = None
    overrides: tuple[str, ...] = ()
    host_load: HostLoad = HostLoad.IDLE
    slot: Slot | None = None
    id: UUID | None = None
    study: UUID | None = None


@dataclass(frozen=True, slots=True)
class QueuedRun:
    """A run, and how many others go before it.

    :param ahead: None where it does not wait.
    """

    run: Run
    ahead: int | None = None


@dataclass(frozen=True, slots=True)
class RunDetails:
    """A run with what its record has once, and how long its series are."""

    queued: QueuedRun
    head: Head | None
    lengths: Mapping[Series, int]


class RunService:
    """Takes orders for runs, and answers for them."""

    def __init__(
        self,
        store: Store,
        bus: EventBus,
        profiles: ProfileService,
        testbeds: Testbeds,
        live: LiveRuns,
        jobs: JobEngine,
    ) -> None:
        self._store = store
        self._bus = bus
        self._profiles = profiles
        self._testbeds = testbeds
        self._live = live
        self._jobs = jobs
        self._importer = ImportReader()
        self._host = host_name()

    async def start(self, request: RunRequest) -> QueuedRun:
        """Request a run. It waits for its turn, and runs as a job.

        :raise InvalidInput: a scenario, a value or a QEMU that there is not, or that contradicts
            another.
        :raise NotFound: no such profile or revision.
        :raise Blocked: this machine or this QEMU cannot do it.
        :raise DuplicateName: there is a run of that id.
        :raise OperationInProgress: its VM migrates, is being applied to, or measured.
        :raise VmtuneError: that VM cannot be measured, as :meth:`LiveRuns.check` has it.
        """
        revision = await self._revision(request)
        scenario, vm = await self._checked(request, revision)
        setup, qemu = to_json(scenario), self._testbeds.qemu(request.qemu)
        run = await asyncio.to_thread(
            self._store.runs.begin,
            scenario=scenario.name,
            setup=setup,
            values=scenario.values,
            profile=revision.profile if revision else "",
            revision=revision.number if revision else 0,
            testbed=request.testbed,
            qemu="" if vm else qemu.name,
            options={**_options(request), **(vm.options if vm else {})},
            host=self._host,
            slot=request.slot,
            id=request.id,
            study=request.study,
        )
        await self._publish(run)
        await self._jobs.submit(RUN_KIND, str(run.id))
        return await self._queued(run)

    async def check(self, request: RunRequest) -> AnyScenario:
        """What would be run, without ordering it.

        :raise VmtuneError: as :meth:`start`.
        """
        scenario, _ = await self._checked(request, await self._revision(request))
        return scenario

    async def _checked(
        self, request: RunRequest, revision: Revision | None
    ) -> tuple[AnyScenario, LiveVm | None]:
        scenario = effective_scenario(request, revision)
        check_storable(to_json(scenario), "scenario")
        self._testbeds.qemu(request.qemu)
        if isinstance(scenario, BlockScenario) and scenario.target is not None:
            return scenario, await self._live.check(scenario)
        await self._check_can_run(scenario, request)
        return scenario, None

    async def _revision(self, request: RunRequest) -> Revision | None:
        if request.profile is None:
            if request.revision is not None:
                raise InvalidInput("a revision needs a profile", field="revision")
            return None
        if request.revision is None:
            return (await self._profiles.get(request.profile)).current
        return await self._profiles.revision(request.profile, request.revision)

    async def _check_can_run(self, scenario: AnyScenario, request: RunRequest) -> None:
        """:raise Blocked: it cannot be run here, and why."""
        if isinstance(scenario, Scenario):
            bench_hosts = await self._testbeds.bench_hosts(
                request.testbed, request.qemu, request.kvm
            )
            why = why_not(scenario, bench_hosts)
        else:
            why = self._testbeds.why_not_alone(scenario, request.testbed, request.qemu)
        if why:
            raise Blocked(
                f"{scenario.name} cannot be run here: {why}",
                field="scenario",
                code="not_applicable",
                remedy="GET /scenarios tells which can; choose one of them, or another QEMU",
            )

    async def resume(self) -> None:
        """At the service's start: end what a service left that was killed, and see to it that
        each run of this machine that has not ended has its job."""
        try:
            await asyncio.to_thread(self._testbeds.clear_left_behind)
        except OSError as error:
            log.warning("something of a run is still there", reason=str(error))
        # Exports in running VMs are removed by the runs' jobs, which can wait for their hosts.
        for run in await asyncio.to_thread(self._store.runs.unfinished):
            if run.host == self._host:
                await self._jobs.submit(RUN_KIND, str(run.id))

    async def clear_live(self) -> None:
        """Remove the exports of runs that were killed: at the service's start, and again until
        their hosts answer."""
        await self._live.clear()

    async def cancel(self, id: UUID) -> QueuedRun:
        """Cancel a run; it is cancelled once all is taken down.

        :raise NotFound: no such run.
        :raise TooLate: it has ended.
        """
        run = await asyncio.to_thread(self._store.runs.get, id)
        if run.state.ended or not await self._jobs.cancel(str(id)):
            raise TooLate(
                f"the run has ended: {run.state.value}" if run.state.ended else "the run is ending",
                field="run",
                remedy="look at it again",
            )
        return await self._queued(await asyncio.to_thread(self._store.runs.get, id))

    async def get(self, id: UUID) -> RunDetails:
        """:raise NotFound: no such run."""

        def look() -> tuple[Run, tuple[Head | None, Mapping[Series, int]]]:
            return self._store.runs.get(id), self._store.runs.head(id)

        run, (head, lengths) = await asyncio.to_thread(look)
        return RunDetails(await self._queued(run), head, lengths)

    async def list(self, wanted: RunFilter, after: str | None, limit: int) -> Page[QueuedRun]:
        """Runs, newest first."""
        page = await asyncio.to_thread(self._store.runs.list, wanted, after, limit)
        waits = any(run.state is RunState.QUEUED for run in page.items)
        order = await self._order() if waits else {}
        return Page(tuple(QueuedRun(run, order.get(run.id)) for run in page.items), page.next)

    async def scenarios(self, after: str | None, limit: int) -> Page[MeasuredScenario]:
        """Scenarios that runs were made of, shipped ones and others."""
        return await asyncio.to_thread(self._store.runs.scenarios, after, limit)

    async def series(
        self, id: UUID, series: Series, after: str | None, limit: int
    ) -> Page[Any]:  # any: of the kind of the series
        """Rows of one of a run's series, in the order of time.

        :raise NotFound: no such run.
        """
        return await asyncio.to_thread(self._store.runs.series, id, series, after, limit)

    async def environment(self, fingerprint: str) -> Environment:
        """What a fingerprint stands for.

        :raise NotFound: no run had it.
        """
        return await asyncio.to_thread(self._store.runs.environment, fingerprint)

    async def take_over(self, content: AsyncIterator[bytes], name: str = "") -> Run:
        """Keep a run that was exported, here or elsewhere, or that guestperf reported.

        :param content: of the file: JSON.
        :param name: what the file is called.
        :raise InvalidInput: with a problem for each part that cannot be accepted.
        :raise OperationInProgress: another file is being read.
        :raise DuplicateName: the run is here already.
        """
        read = await self._importer.read(content, name)
        added = await asyncio.to_thread(self._store.runs.add_packed, read.run, read.packed)
        await self._publish(added)
        return added

    async def _queued(self, run: Run) -> QueuedRun:
        order = await self._order() if run.state is RunState.QUEUED else {}
        return QueuedRun(run, order.get(run.id))

    async def _order(self) -> dict[UUID, int]:
        """How many runs of this machine go before each that waits."""
        waiting = await asyncio.to_thread(self._store.runs.unfinished)
        here = [run for run in waiting if run.host == self._host]
        here.sort(key=lambda run: run.state is not RunState.RUNNING)
        return {run.id: place for place, run in enumerate(here) if run.state is RunState.QUEUED}

    async def _publish(self, run: Run) -> None:
        await self._bus.publish(EventTopic.RUN, run.id, event_data(run))


def effective_scenario(request: RunRequest, revision: Revision | None) -> AnyScenario:
    """What is run: the scenario, the profile over it, the request's own values over both.

    :raise InvalidInput: there is no such scenario, or parts contradict each other.
    """
    scenario = chosen_scenario(request.scenario, request.changes)
    laid_over: dict[str, object] = {**scenario.values}
    if revision is not None:
        laid_over |= revision.values
    values = accept_values({**laid_over, **request.values}, settable())
    if not isinstance(scenario, Scenario):
        _check_alone(scenario, request, revision)
        return replace(scenario, values=values)
    steps = revision.steps if revision is not None and revision.steps else scenario.steps
    try:
        return replace(scenario, values=values, steps=steps)
    except InvalidInput as error:
        raise InvalidInput(error.message, problems=error.problems) from error


def _check_alone(scenario: AnyScenario, request: RunRequest, revision: Revision | None) -> None:
    """:raise InvalidInput: the request has what only a migration can have."""
    kind = kind_of(scenario)
    given = {
        "testbed": request.testbed is not Testbed.DIRECT,
        "kvm": request.kvm is not None and not has_guest(scenario),
        "qemu": bool(request.qemu) and _is_live(scenario),
        "overrides": bool(request.overrides),
        "profile": revision is not None and bool(revision.steps),
    }
    problems = [
        Problem(
            name,
            "not_for_kind",
            _NOT_FOR_KIND.get(name, f"{name} says something of a migration, and this is a {kind}"),
            "leave it out",
        )
        for name, wrong in given.items()
        if wrong
    ]
    if problems:
        raise InvalidInput(f"{scenario.name} cannot be run so", problems=problems)


def _is_live(scenario: AnyScenario) -> bool:
    return isinstance(scenario, BlockScenario) and scenario.target is not None


_NOT_FOR_KIND = {
    "profile": "the profile has steps, which only a migration can take",
    "qemu": "it names a QEMU to start, and a running VM has its own",
}


def _options(request: RunRequest) -> dict[str, Json]:
    """The parts of the request that have no column."""
    found: dict[str, Json] = {}
    if request.kvm is not None:
        found["kvm"] = request.kvm
    if request.overrides:
        found["overrides"] = list(request.overrides)
    if request.host_load is not HostLoad.IDLE:
        found["host_load"] = request.host_load.value
    return found
