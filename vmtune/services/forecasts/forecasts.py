"""Forecasts: measures the VM, looks up what its path carried, and computes for each profile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

import structlog

from vmtune.engine.dirty_probe import probe_dirtying
from vmtune.errors import Problem, VmtuneError
from vmtune.forecast.conditions import compresses, conditions_of
from vmtune.forecast.disk_copy import CopyProspect, copied, expect_copy, limit_of, with_copy
from vmtune.forecast.held import KeptForecast
from vmtune.forecast.limits import channels, limit_on_wire
from vmtune.forecast.path import Sent, Throughput, expect_throughput, sent
from vmtune.forecast.probe import DirtyProbe
from vmtune.forecast.prospect import Prospect, expect
from vmtune.forecast.ranges import Range
from vmtune.hypervisor.protocol import Driver
from vmtune.intent.aborted_throttle import may_not_throttle
from vmtune.intent.bounds import expect_beyond
from vmtune.intent.choosing import copy_bandwidth
from vmtune.intent.feasible import Basis
from vmtune.model.host.facts import Connection, VmFacts
from vmtune.model.migration.downtime import downtime_kept
from vmtune.model.migration.forecast_basis import Figure
from vmtune.model.migration.record import Migration, MigrationState
from vmtune.model.tunables.rows.storage import COPY_BANDWIDTH
from vmtune.model.tunables.tunable import Value
from vmtune.services.forecasts.kept import by_probe, keep
from vmtune.services.forecasts.learning import (
    Computed,
    Corrections,
    Learning,
    compute,
    corrected,
    corrected_by,
)
from vmtune.services.forecasts.notes import (
    MAY_BE_WHY,
    NO_THROUGHPUT,
    NOT_COMPUTED,
    NOT_MEASURED,
    copy_notes,
    not_readable,
    plan_notes,
    probe_notes,
)
from vmtune.services.tuning.planning import Planned, PlanService
from vmtune.storage import Store

log = structlog.get_logger(__name__)

KEPT_S = 600
"""A guest may do something else by then."""
_LEAST_BETWEEN_S = 30
"""Even who asks for a fresh measurement gets one that is so young."""
_AT_ONCE = 2
"""Measurements at the same time: each hashes pages of its host's memory."""
_RECORDS = 50
_MOST_KEPT = 1000


@dataclass(frozen=True, slots=True)
class Candidate:
    """One profile, and what is to be expected with it.

    :param profile: empty where none is assigned.
    :param throughput: of the path; None where it is not known, and then there is no prospect.
    :param copy: of the local disks that are copied before the memory, which the prospect's time and
        bytes include; None where none is.
    :param blockers: codes of what stands against the migration.
    :param notes: what the forecast does not know, or leaves out.
    :param computed: what the prospect was corrected from; None where disks are copied too, or no
        time is given.
    :param corrected_by: of each figure that is corrected by the service's own records, how many
        these are.
    """

    profile: str
    revision: int
    values: Mapping[str, Value]
    throughput: Throughput | None
    prospect: Prospect | None
    blockers: tuple[str, ...]
    notes: tuple[Problem, ...]
    copy: CopyProspect | None = None
    computed: Computed | None = None
    corrected_by: Mapping[Figure, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Forecast:
    """A VM's forecast for one destination.

    :param candidates: in the order of the profiles that were asked for.
    """

    vm: UUID
    vm_name: str
    source: str
    destination: str
    probe: DirtyProbe
    candidates: tuple[Candidate, ...]


class ForecastService:
    """Makes forecasts. Changes nothing."""

    def __init__(self, store: Store, plans: PlanService, sample_guest_pages: bool = True) -> None:
        """
        :param sample_guest_pages: look at what some of a guest's pages hold.
        """
        self._store = store
        self._sample_guest_pages = sample_guest_pages
        self._plans = plans
        self._probes: dict[UUID, DirtyProbe] = {}
        self._measuring: dict[UUID, asyncio.Task[DirtyProbe]] = {}
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._learning = Learning(store)
        self._left_out: dict[UUID, Problem] = {}

    async def forecast(
        self,
        vm: UUID,
        destination: str,
        profiles: Sequence[str] = (),
        values: Mapping[str, object] | None = None,
        *,
        throughput_bytes_per_s: int | None = None,
        fresh: bool = False,
    ) -> Forecast:
        """The forecast. Measures the VM for some 20 s where that was not done lately.

        :param profiles: names; none for the assigned one.
        :param values: added to or replacing each profile's.
        :param throughput_bytes_per_s: what the path carries, where the user knows it.
        :param fresh: measure anew.
        :raise NotFound: no such VM, profile or host.
        :raise Conflict: the guest does not run, or migrates.
        :raise CommandRefused: somebody else measures.
        :raise HostUnreachable: one of the hosts does not answer.
        """
        planned = [
            await self._plans.plan(vm, profile, destination=destination, values=values)
            for profile in (profiles or (None,))
        ]
        first = planned[0]
        probe = await self._probe(first.driver, first.facts, fresh)
        past = await asyncio.to_thread(self._past, first.plan.host, destination)
        learnt = await self._learning.corrections()
        candidates = [
            _candidate(each, probe, past, throughput_bytes_per_s, learnt) for each in planned
        ]
        return Forecast(
            vm, first.plan.vm_name, first.plan.host, destination, probe, tuple(candidates)
        )

    async def basis(
        self, planned: Planned, destination: str, limit_bytes_per_s: int | None = None
    ) -> Basis | None:
        """What an intent for *planned* is judged by: measured as for a forecast.

        :param limit_bytes_per_s: a bandwidth limit instead of the plan's.
        :return: None where it is not known what the path carries.
        :raise VmtuneError: as :meth:`forecast`.
        """
        probe = await self._probe(planned.driver, planned.facts, fresh=False)
        past = await asyncio.to_thread(self._past, planned.plan.host, destination)
        values = _effective(planned)
        if limit_bytes_per_s is not None and "max_bandwidth_bytes_per_s" not in (
            planned.desired.values
        ):
            values["max_bandwidth_bytes_per_s"] = limit_bytes_per_s
            if planned.plan.disks:
                each = copy_bandwidth(limit_bytes_per_s, len(planned.plan.disks))
                values.setdefault(COPY_BANDWIDTH, each)
        known = _telling(past, values)
        throughput = expect_throughput(_sent(known), limit_on_wire(values))
        if throughput is None:
            return None
        history = tuple(record.id for record in known)
        stood = (downtime_kept(record) for record in known if _alike(record.wanted, values))
        path = throughput.switchover_bytes_per_s.likely
        beyond = expect_beyond([each for each in stood if each is not None], path)
        copy = _copy(planned, past, throughput, values)
        copy_ms = copy.ms.likely if copy is not None and copy.ms is not None else 0.0
        desired = planned.desired
        own = await asyncio.to_thread(self._store.migrations.list, planned.facts.uuid)
        return Basis(
            probe, throughput, compresses(values), history, beyond, copy_ms,
            values.get("xbzrle") is True, desired.values, desired.steps,
            throttle_in_doubt=may_not_throttle(own.items, planned.plan.host),
        )  # fmt: skip

    async def keep_known(self, migration: UUID, planned: Planned) -> None:
        """Keep a forecast with a migration that was just ordered, where its VM was measured lately:
        nothing is measured for it. Where there is none, :meth:`left_out` says why."""
        await self._keep(migration, self._of_known(planned))

    async def keep_observed(self, record: Migration, driver: Driver) -> None:
        """The same of one that somebody else began, by what is set while it runs."""
        await self._keep(record.id, self._of_observed(record, driver))

    async def _keep(self, migration: UUID, making: Awaitable[KeptForecast | Problem]) -> None:
        """Keep what is made, or why nothing is: whatever goes wrong, the migration goes on."""
        try:
            made = await making
        except VmtuneError as error:
            made = not_readable(error.message)
        except Exception:
            log.exception("a forecast could not be computed", migration_id=str(migration))
            made = NOT_COMPUTED
        if isinstance(made, KeptForecast):
            await keep(self._store, migration, lambda: made)
        else:
            self._leave_out(migration, made)

    async def _of_known(self, planned: Planned) -> KeptForecast | Problem:
        probe = self._young(planned.facts.uuid, now := datetime.now(UTC))
        if probe is None:
            return NOT_MEASURED
        destination = planned.plan.destination or ""
        past = await asyncio.to_thread(self._past, planned.plan.host, destination)
        learnt = await self._learning.corrections()
        found = _candidate(planned, probe, past, None, learnt)
        prospect, throughput = found.prospect, found.throughput
        if prospect is None or throughput is None:
            return NO_THROUGHPUT
        return by_probe(prospect, throughput, probe, now, found.computed, found.corrected_by)

    async def _of_observed(self, record: Migration, driver: Driver) -> KeptForecast | Problem:
        probe = self._young(record.vm, began := record.started_at or record.created_at)
        if probe is None:
            return NOT_MEASURED
        facts = await driver.vm_facts(record.vm)
        past = await asyncio.to_thread(self._past, record.source, record.destination)
        values = {name: r.value for name, r in facts.readings.items() if r.value is not None}
        known = _known([one for one in past if one.id != record.id], values)
        throughput = expect_throughput(known, limit_on_wire(values))
        if throughput is None:
            return NO_THROUGHPUT
        learnt = await self._learning.corrections()
        prospect, computed = _expected(record.vm, probe, throughput, values, learnt)
        by = corrected_by(computed, learnt)
        return by_probe(prospect, throughput, probe, began, computed, by)

    def left_out(self, migration: UUID) -> Problem:
        """Why there is no forecast of before the migration; what may be the reason, where it was
        long ago or another service knows."""
        return self._left_out.get(migration, MAY_BE_WHY)

    def _leave_out(self, migration: UUID, reason: Problem) -> None:
        while len(self._left_out) >= _MOST_KEPT:
            del self._left_out[next(iter(self._left_out))]
        self._left_out[migration] = reason
        log.info("no forecast before", migration_id=str(migration), reason=reason.code)

    def _young(self, vm: UUID, at: datetime) -> DirtyProbe | None:
        """What was measured of the VM lately before that moment."""
        probe = self._probes.get(vm)
        if probe is None or not timedelta() <= at - probe.measured_at <= timedelta(seconds=KEPT_S):
            return None
        return probe

    def measured(self, vm: UUID) -> DirtyProbe | None:
        """What was measured of the VM last; None if that is not kept."""
        return self._probes.get(vm)

    async def _probe(self, driver: Driver, facts: VmFacts, fresh: bool) -> DirtyProbe:
        """Measured once for all who ask at the same time."""
        vm = facts.uuid
        known = self._probes.get(vm)
        within = timedelta(seconds=_LEAST_BETWEEN_S if fresh else KEPT_S)
        if known is not None and datetime.now(UTC) - known.measured_at < within:
            return known
        task = self._measuring.get(vm)
        if task is None:
            task = asyncio.create_task(self._measure(driver, facts), name=f"forecast {vm}")
            self._measuring[vm] = task
            task.add_done_callback(lambda _: self._measuring.pop(vm, None))
        return await asyncio.shield(task)

    async def _measure(self, driver: Driver, facts: VmFacts) -> DirtyProbe:
        async with self._at_once:
            probe = await probe_dirtying(driver, facts, contents=self._sample_guest_pages)
        self._probes.pop(facts.uuid, None)
        while len(self._probes) >= _MOST_KEPT:
            del self._probes[next(iter(self._probes))]
        self._probes[facts.uuid] = probe
        return probe

    def _past(self, source: str, destination: str) -> list[Migration]:
        """Completed migrations between the two hosts, the newest first."""
        found = self._store.migrations.list(
            host=source, state=MigrationState.COMPLETED, limit=_RECORDS
        )
        both = {source, destination}
        return [record for record in found.items if {record.source, record.destination} == both]


def _candidate(
    planned: Planned,
    probe: DirtyProbe,
    past: Sequence[Migration],
    given: int | None,
    learnt: Corrections,
) -> Candidate:
    plan = planned.plan
    values = _effective(planned)
    limit = limit_on_wire(values)
    known = _known(past, values)
    if given is not None:
        path = Range.exactly(min(given, limit) if limit is not None else given)
        limited = limit is not None and given >= limit
        throughput: Throughput | None = Throughput(path, Range.exactly(given), 0, limited)
    else:
        throughput = expect_throughput(known, limit)
    proven = bool(known) or given is not None or throughput is None
    notes = [*probe_notes(probe), *plan_notes(planned.desired.steps, values, proven, probe)]
    prospect, computed = None, None
    if throughput is None:
        notes.append(
            Problem(
                "throughput",
                "throughput_not_known",
                f"no migration between {plan.host} and {plan.destination} is recorded, and "
                "there is no bandwidth limit: what the path carries is not known",
                "say it (throughput), set max_bandwidth_bytes_per_s, or migrate once",
            )
        )
    else:
        prospect, computed = _expected(planned.facts.uuid, probe, throughput, values, learnt)
    by = corrected_by(computed, learnt)
    copy = _copy(planned, past, throughput, values)
    if copy is not None:
        prospect = None if prospect is None or copy.ms is None else with_copy(prospect, copy)
        notes += copy_notes(copy, values)
        computed = None
    return Candidate(
        plan.profile,
        plan.revision,
        planned.desired.values,
        throughput,
        prospect,
        tuple(dict.fromkeys(finding.code for finding in plan.blockers())),
        tuple(notes),
        copy,
        computed,
        by,
    )


def _expected(
    vm: UUID,
    probe: DirtyProbe,
    throughput: Throughput,
    values: dict[str, Value],
    learnt: Corrections,
) -> tuple[Prospect, Computed | None]:
    """What is expected, and what that was corrected from."""
    prospect = expect(probe, throughput, conditions_of(values), compresses(values))
    computed = compute(probe, throughput, values)
    if computed is not None:
        prospect = corrected(prospect, computed, learnt, vm)
    return prospect, computed


def _copy(
    planned: Planned,
    past: Sequence[Migration],
    throughput: Throughput | None,
    values: Mapping[str, Value],
) -> CopyProspect | None:
    disks = planned.plan.disks
    if not disks:
        return None
    return expect_copy(
        disks,
        [found for record in past if (found := copied(record)) is not None],
        throughput,
        limit_of(values),
        incremental=values.get("copy_storage_incremental") is True,
    )


def _known(past: Sequence[Migration], values: Mapping[str, Value]) -> list[Sent]:
    """What the migrations sent that say something of the path."""
    return _sent(_telling(past, values))


def _telling(past: Sequence[Migration], values: Mapping[str, Value]) -> list[Migration]:
    """The migrations that say something of the path: those that are alike, or all where none is."""
    told = [record for record in past if sent(record) is not None]
    return [record for record in told if _alike(record.wanted, values)] or told


def _sent(records: Iterable[Migration]) -> list[Sent]:
    return [said for record in records if (said := sent(record)) is not None]


def _effective(planned: Planned) -> dict[str, Value]:
    """What the migration would run with: what is wanted, and without libvirt what is set. libvirt
    switches off what it is not asked for, and lifts the limit of the bandwidth."""
    readings = planned.facts.readings
    stays = {"downtime_limit_ms", "throttle_trigger_threshold_percent", "max_cpu_throttle_percent"}
    if planned.plan.connection is not Connection.LIBVIRT:
        stays = set(readings)
    seen = {name: r.value for name, r in readings.items() if name in stays and r.value is not None}
    return {**seen, **planned.desired.values}


def _alike(one: Mapping[str, Value], other: Mapping[str, Value]) -> bool:
    """Whether they send alike: by as many channels, encrypted or not, compressed or not."""

    def sends(values: Mapping[str, Value]) -> tuple[object, ...]:
        return channels(values), values.get("tls") is True, compresses(values)

    return sends(one) == sends(other)
