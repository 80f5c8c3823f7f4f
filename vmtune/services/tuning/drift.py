"""Drift scans: checks all VMs, on a schedule and on request, for differences from what is wanted.

Only reads. A VM without wanted values is not queried: reading a QEMU through libvirt marks its
guest as tainted. The result is stored with each VM (vmtune.storage.repositories.tuning_states), so
that lists show it without querying hosts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from uuid import UUID

import structlog

from vmtune.errors import HostUnreachable, NotFound, Problem, VmtuneError
from vmtune.model.access.scopes import EVERYTHING, Reach
from vmtune.model.host.facts import HostFacts, VmState
from vmtune.model.plan.drift import Drift, DriftScan, ScanResult
from vmtune.model.plan.outcome import Application
from vmtune.model.plan.tuning_state import TuningState, tuning_state
from vmtune.model.profile import Subject, explain
from vmtune.services.events import EventBus
from vmtune.services.hosts.hosts import HostService, SeenVm
from vmtune.services.metrics import telemetry
from vmtune.services.tuning.planning import PlanService
from vmtune.services.tuning.profiles import DesiredValues
from vmtune.services.tuning.verify import publish_tuning, verification
from vmtune.storage import Page, Store
from vmtune.storage.repositories.tuning_states import Seen

log = structlog.get_logger(__name__)

_PRESENT = (VmState.RUNNING, VmState.PAUSED)
_ASKED_AT_ONCE = 24
"""VMs in parallel over all hosts, in a requested scan."""
_CALM_AT_ONCE = 2
"""Likewise in a scheduled scan."""
_HOSTS_AT_ONCE = 8
_VM_WITHIN_S = 30.0
_BATCH = 200
_MAX_PROBLEMS = 20
_LOOK_S = 5.0
_LOOK_SHARED_S = 1.0
"""How often to check which scans are due: other services may have requested one."""
_REST_S = 60.0
"""Delay before the first scan of a host that was just added, or came to this service."""


@dataclass(frozen=True, slots=True)
class _Target:
    """What is wanted of a VM.
    :param standing: the application that defines it; None if an assignment does.
    """

    vm: UUID
    standing: Application | None
    desired: DesiredValues


class DriftService:
    """Scans the hosts that this service manages.
    :param interval_s: time between scans of each; 0 for only on request.
    :param shared: whether other services use the same database.
    """

    def __init__(
        self,
        store: Store,
        bus: EventBus,
        hosts: HostService,
        plans: PlanService,
        interval_s: int,
        *,
        shared: bool = False,
    ) -> None:
        self._store = store
        self._bus = bus
        self._hosts = hosts
        self._plans = plans
        self._interval_s = interval_s
        self._look_s = _LOOK_SHARED_S if shared else _LOOK_S
        self._asked_at_once = asyncio.Semaphore(_ASKED_AT_ONCE)
        self._calm_at_once = asyncio.Semaphore(_CALM_AT_ONCE)
        self._hosts_at_once = asyncio.Semaphore(_HOSTS_AT_ONCE)
        self._news = asyncio.Event()
        self._met_s: dict[str, float] = {}
        self._scans: dict[str, asyncio.Task[None]] = {}
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start scanning what is due."""
        self._running = asyncio.create_task(self._run(), name="drift scans")

    async def close(self) -> None:
        """Stop. A scan that has not ended is made again later."""
        tasks = [*self._scans.values(), *([self._running] if self._running else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def ask(self, hosts: Collection[str] | None = None) -> tuple[str, ...]:
        """Request a scan of some hosts, or all, now; the service that manages a host makes its
        scan.

        :return: the hosts.
        """
        asked = await asyncio.to_thread(self._store.drift_scans.ask, hosts)
        self._news.set()
        return asked

    async def get(self, host: str) -> DriftScan:
        """The last scan of a host.

        :raise NotFound: there is no such host.
        """
        return await asyncio.to_thread(self._store.drift_scans.get, host)

    async def list(
        self, host: str | None, after: str | None, limit: int, reach: Reach = EVERYTHING
    ) -> Page[DriftScan]:
        """The last scan of each host, in the order of their names."""
        return await asyncio.to_thread(self._store.drift_scans.list, host, after, limit, reach)

    async def drifts(
        self, host: str | None, after: str | None, limit: int, reach: Reach = EVERYTHING
    ) -> Page[Drift]:
        """The VMs that drift, as last seen, in the order of their names."""
        return await asyncio.to_thread(self._store.drift_scans.drifts, host, after, limit, reach)

    async def scan(self, host: str, *, calm: bool = False) -> ScanResult:
        """Compare every running VM of a host to what is wanted of it, and store the tuning states.
        A host that does not answer is recorded as such.
        :param calm: a scheduled scan: take a few VMs at a time.
        :raise NotFound: there is no such host.
        """
        async with self._hosts_at_once:
            before = await self.get(host)
            began_s = time.monotonic()
            try:
                found = await self._look(host, self._calm_at_once if calm else self._asked_at_once)
            except VmtuneError as error:
                found = ScanResult(problems=error.problems[:_MAX_PROBLEMS])
            found = replace(found, took_ms=round((time.monotonic() - began_s) * 1000))
            await asyncio.to_thread(self._store.drift_scans.note, host, before.asked, found)
        telemetry.drift_scanned(found.took_ms / 1000)
        log.info(
            "scanned for drift",
            host=host,
            checked=found.checked,
            drifted=found.drifted,
            failed=found.failed,
            took_ms=found.took_ms,
        )
        return found

    async def _run(self) -> None:
        while True:
            try:
                await self._begin_due()
            except VmtuneError as error:
                log.warning("not seen which scans are due", reason=error.message)
            except Exception:
                log.exception("not seen which scans are due")
            with suppress(TimeoutError):
                # Not wait_for: until Python 3.12 it may swallow a cancellation.
                async with asyncio.timeout(self._look_s):
                    await self._news.wait()
            self._news.clear()

    async def _begin_due(self) -> None:
        # What is read now may still call a scan due that ends while it is read.
        under_way = set(self._scans)
        for scan in await asyncio.to_thread(self._store.drift_scans.due, self._interval_s):
            if not self._hosts.drives(scan.host):
                self._met_s.pop(scan.host, None)
            elif scan.host not in under_way and (scan.pending or self._rested(scan.host)):
                work = self._scan_as_due(scan.host, calm=not scan.pending)
                self._scans[scan.host] = asyncio.create_task(work, name=f"scan {scan.host}")

    def _rested(self, host: str) -> bool:
        now_s = time.monotonic()
        return now_s - self._met_s.setdefault(host, now_s) >= _REST_S

    async def _scan_as_due(self, host: str, *, calm: bool) -> None:
        try:
            await self.scan(host, calm=calm)
            self._news.set()  # it may have been requested again
        except NotFound:
            log.info("not scanned for drift: the host was removed", host=host)
        except VmtuneError as error:
            log.warning("not scanned for drift", host=host, reason=error.message)
        except Exception:
            log.exception("not scanned for drift", host=host)
        finally:
            del self._scans[host]

    async def _look(self, host: str, at_once: asyncio.Semaphore) -> ScanResult:
        facts, listing = await asyncio.gather(self._hosts.facts(host), self._hosts.list_vms(host))
        present = [vm for vm in listing.vms if vm.summary.state in _PRESENT]
        targets, untold = await asyncio.to_thread(self._targets, host, present)
        wanted = [target for target in targets if target.desired.profile]
        looks = await asyncio.gather(
            *(self._look_at(host, facts, target, at_once) for target in wanted)
        )
        seen = [look for look in looks if isinstance(look, Seen)]
        problems = [*untold, *(look for look in looks if isinstance(look, Problem))]
        noted = await self._note(seen)
        without_profile = [target.vm for target in targets if not target.desired.profile]
        await self._forget(without_profile)
        drifted = [one for one in seen if one.vm in noted and _state(one) is TuningState.DRIFTED]
        return ScanResult(
            checked=len(noted),
            drifted=len(drifted),
            without_profile=len(without_profile),
            skipped=len(present) - len(noted) - len(without_profile) - len(problems),
            failed=len(problems),
            problems=tuple(problems[:_MAX_PROBLEMS]),
        )

    def _targets(
        self, host: str, vms: Sequence[SeenVm]
    ) -> tuple[tuple[_Target, ...], tuple[Problem, ...]]:
        """What is wanted of the VMs without an open operation; and why it is unknown for others.
        Blocks its thread."""
        uuids = [vm.summary.uuid for vm in vms]
        busy = self._store.drift_scans.busy(uuids)
        standing = self._store.drift_scans.standing(uuids)
        assignments = self._store.assignments.all()
        revisions: dict[tuple[str, int], DesiredValues] = {}
        targets: list[_Target] = []
        problems: list[Problem] = []
        for vm in vms:
            uuid = vm.summary.uuid
            if uuid in busy:
                continue
            applied = standing.get(uuid)
            try:
                if applied is not None:
                    desired = self._revision(revisions, applied.profile, applied.revision)
                else:
                    winner = explain(assignments, Subject(uuid, host, vm.labels)).winner
                    desired = self._revision(revisions, winner.profile if winner else "", 0)
            except VmtuneError as error:  # two selectors tie
                problems.append(_about(uuid, error))
            else:
                targets.append(_Target(uuid, applied, desired))
        return tuple(targets), tuple(problems)

    def _revision(
        self, known: dict[tuple[str, int], DesiredValues], profile: str, number: int
    ) -> DesiredValues:
        """A revision of a profile, each read once.

        :param number: 0 for the current one.
        """
        if not profile:
            return DesiredValues("", 0, {})
        if (profile, number) not in known:
            found = (
                self._store.profiles.revision(profile, number)
                if number
                else self._store.profiles.get(profile).current
            )
            known[profile, number] = DesiredValues(profile, found.number, found.values, found.steps)
        return known[profile, number]

    async def _look_at(
        self, host: str, facts: HostFacts, target: _Target, at_once: asyncio.Semaphore
    ) -> Seen | Problem | None:
        """A VM's tuning state; or why it could not be read; None if it migrates or has ended."""
        async with at_once:
            try:
                async with asyncio.timeout(_VM_WITHIN_S):
                    planned = await self._plans.plan_on(host, target.vm, target.desired, facts)
            except NotFound:
                return None
            except TimeoutError:
                slow = HostUnreachable(f"its QEMU did not answer within {_VM_WITHIN_S:g} s")
                return _about(target.vm, slow)
            except VmtuneError as error:
                return _about(target.vm, error)
        if planned.facts.migrating or planned.facts.state not in _PRESENT:
            return None
        found = verification(planned, target.standing)
        return Seen(found.vm, found.profile, found.revision, found.application, found.outcomes)

    async def _note(self, seen: Sequence[Seen]) -> Mapping[UUID, bool]:
        """Store the states, and publish changes; returns the VMs that were stored."""
        noted: dict[UUID, bool] = {}
        for start in range(0, len(seen), _BATCH):
            batch = seen[start : start + _BATCH]
            noted |= await asyncio.to_thread(self._store.tunings.note_all, batch)
        for one in seen:
            if noted.get(one.vm):
                await publish_tuning(self._bus, one.vm, _state(one))
        return noted

    async def _forget(self, vms: Sequence[UUID]) -> None:
        for start in range(0, len(vms), _BATCH):
            batch = vms[start : start + _BATCH]
            for vm in await asyncio.to_thread(self._store.tunings.forget_all, batch):
                await publish_tuning(self._bus, vm, TuningState.UNTUNED)


def _state(seen: Seen) -> TuningState:
    return tuning_state(seen.outcomes, seen.application is not None)


def _about(vm: UUID, error: VmtuneError) -> Problem:
    return replace(error.problems[0], field=f"vms.{vm}")
