"""Makes plans: probes the hosts, and calls the pure planner."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from vmtune.errors import CommandRefused, InvalidInput, NotFound
from vmtune.hypervisor.asking import once_asked
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.facts import Connection, HostFacts, VmFacts, VmState, VmSummary
from vmtune.model.host.hardware import Hardware, Offer
from vmtune.model.host.network import with_network
from vmtune.model.plan.plan import Plan, make_plan
from vmtune.model.plan.situation import Destination, Permissions, Situation
from vmtune.model.preflight.releases import may_outgrow
from vmtune.model.preflight.rings import wants_reaper
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.model.tunables.rows.storage import COPIES
from vmtune.model.tunables.tunable import Value
from vmtune.services.hosts.hosts import HostService
from vmtune.services.tuning.encrypted import look_up_encrypted
from vmtune.services.tuning.profiles import (
    AssignmentService,
    DesiredValues,
    RawSteps,
    accept,
)
from vmtune.services.tuning.promised_room import offer_of
from vmtune.storage import Store


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan and its inputs.

    :param peer_uri: how the source's libvirt reaches the destination's; empty without libvirt.
    :param on_this_machine: the VM's QEMU runs on the machine that this service runs on.
    """

    plan: Plan
    desired: DesiredValues
    facts: VmFacts
    driver: Driver
    peer_uri: str = ""
    on_this_machine: bool = False


@dataclass(frozen=True, slots=True)
class _Seen:
    """A destination, as far as it is the same for all VMs."""

    name: str
    driver: Driver
    host: HostFacts
    vms: Sequence[VmSummary]


class PlanService:
    """Plans applications and migrations.

    :param tunables: those that can be planned, packs included.
    :param store: of the migrations that say what TLS sends; None to look at none.
    """

    def __init__(
        self,
        hosts: HostService,
        assignments: AssignmentService,
        permissions: Permissions,
        tunables: TunableRegistry,
        store: Store,
    ) -> None:
        self.tunables = tunables
        self._store = store
        self._hosts = hosts
        self._assignments = assignments
        self._permissions = permissions

    async def plan(
        self,
        vm: UUID,
        profile: str | None = None,
        revision: int | None = None,
        destination: str | None = None,
        *,
        values: Mapping[str, object] | None = None,
        steps: RawSteps | None = None,
        without_profile: bool = False,
        exact: DesiredValues | None = None,
    ) -> Planned:
        """The plan for *vm*, with its findings. Changes nothing.

        :param profile: None for the assigned one; without an assignment the plan is empty.
        :param values: added to or replacing the profile's; *steps* replace its steps.
        :param without_profile: *values* and *steps* alone, neither a named profile's nor the
            assigned one's.
        :param exact: instead of all these.
        :param destination: name of the host it is to migrate to; None for an application.
        :raise NotFound: no such VM, profile, revision or host.
        :raise InvalidInput: the destination is where the VM runs, a value is refused, or a profile
            is named and *without_profile*.
        :raise HostUnreachable: one of the hosts does not answer.
        """
        looking: asyncio.Future[_Seen] | None = None
        if destination is not None:
            # What the destination says of itself does not depend on the VM.
            there = destination
            looking = asyncio.ensure_future(once_asked(lambda: self._look_at(there)))
        try:
            if without_profile:
                exact = _stated(profile, values or {}, steps or (), self.tunables)
            return await self._plan(vm, profile, revision, looking, values, steps, exact)
        finally:
            if looking is not None:
                looking.cancel()
                await asyncio.gather(looking, return_exceptions=True)

    async def _plan(
        self,
        vm: UUID,
        profile: str | None,
        revision: int | None,
        looking: Awaitable[_Seen] | None,
        values: Mapping[str, object] | None,
        steps: RawSteps | None,
        exact: DesiredValues | None,
    ) -> Planned:
        if exact is not None:
            (name, driver, facts, host), desired = await self._hosts.locate_with_host(vm), exact
        elif profile is not None:
            # Which values these are does not depend on where the VM is: look for both at once.
            (name, driver, facts, host), desired = await asyncio.gather(
                self._hosts.locate_with_host(vm),
                once_asked(
                    lambda: self._assignments.choose(vm, "", profile, revision, values, steps)
                ),
            )
        else:
            name, driver, facts, host = await self._hosts.locate_with_host(vm)
            desired = await self._assignments.choose(vm, name, None, revision, values, steps)
        goal: Destination | None = None
        if looking is not None:
            copies = any(desired.values.get(each) is True for each in COPIES)
            measured, (seen, offer) = await asyncio.gather(
                _with_disks(driver, facts), self._offered(looking, facts, copies)
            )
            if facts.hardware is None:  # without libvirt: by now it is known which disks it has
                offer = await self._offer(seen, measured, copies)
            facts = measured
            destination, driver_there = seen.name, seen.driver
            goal = replace(await self._destination(seen, name, facts), offer=offer)
            same = goal.host.uuid == host.uuid and host.connection is Connection.LIBVIRT
            if destination == name or same:
                raise InvalidInput(
                    f"the VM already runs on {name}",
                    field="destination",
                    code="destination_is_source",
                    remedy="name another host",
                )
            if goal.host.connection is not host.connection:
                raise InvalidInput(
                    f"{name} is reached by {host.connection.value} and {destination} by "
                    f"{goal.host.connection.value}",
                    field="destination",
                    code="mixed_connections",
                    remedy="name a destination that is reached the same way",
                )
            if goal.vm is not None:
                asked = await _asked(driver_there, goal.vm, desired.values)
                goal = replace(goal, vm=asked)
            known = await self._hosts.get(destination)
            values_there = with_network(desired.values, known, goal.host.hostname)
            desired = replace(desired, values=values_there)
            if desired.values.get("tls") is True:
                path = frozenset({name, destination})
                encrypted = await asyncio.to_thread(
                    look_up_encrypted, self._store, path, vm, desired.values
                )
                goal = replace(goal, encrypted=encrypted)
        facts = await _asked(driver, facts, desired.values)
        if goal is not None and may_outgrow(facts.qemu, goal):
            facts = await _with_queues(driver, facts)
        situation = self._situation(desired, facts, host, goal)
        if goal is not None and wants_reaper(situation):
            situation = replace(situation, vm=await _with_dirty_rates(driver, facts))
        plan = make_plan(situation, name, desired.profile, desired.revision)
        peer_uri = goal.host.peer_uri if goal is not None else ""
        here = self._hosts.is_this_machine(name)
        return Planned(plan, desired, facts, driver, peer_uri, here)

    async def plan_on(
        self, name: str, vm: UUID, desired: DesiredValues, known: HostFacts | None = None
    ) -> Planned:
        """What *desired* would change of a VM on the host *name*, in any state.

        :param known: the host's facts, if they were just read.
        :raise NotFound: the VM is not on the host.
        """
        driver = await self._hosts.driver(name)
        if known is None:
            facts, host = await asyncio.gather(driver.vm_facts(vm), self._hosts.facts(name))
        else:
            facts, host = await driver.vm_facts(vm), known
        situation = self._situation(desired, facts, host, None)
        plan = make_plan(situation, name, desired.profile, desired.revision)
        return Planned(plan, desired, facts, driver)

    def _situation(
        self, desired: DesiredValues, facts: VmFacts, host: HostFacts, goal: Destination | None
    ) -> Situation:
        return Situation(
            desired.values,
            facts,
            host,
            goal,
            self._permissions,
            desired.steps,
            tunables=self.tunables,
        )

    async def _look_at(self, name: str) -> _Seen:
        driver = await self._hosts.driver(name)
        host, vms = await asyncio.gather(self._hosts.facts(name), driver.list_vms())
        return _Seen(name, driver, host, vms)

    async def _offered(
        self, looking: Awaitable[_Seen], facts: VmFacts, copies: bool
    ) -> tuple[_Seen, Offer | None]:
        """The destination, and what it offers. Where its disks are, the VM's configuration says:
        nobody has to wait for how large they are."""
        seen = await looking
        return seen, await self._offer(seen, facts, copies)

    async def _offer(self, seen: _Seen, facts: VmFacts, copies: bool) -> Offer | None:
        if facts.hardware is None:
            return None
        return await offer_of(self._store, seen.name, seen.driver, facts, copies=copies)

    async def _destination(self, seen: _Seen, source: str, facts: VmFacts) -> Destination:
        """The destination without what it offers."""
        name, driver, host, vms = seen.name, seen.driver, seen.host, seen.vms
        waiting: VmFacts | None = None
        occupied = False
        for there in vms:
            same = there.uuid == facts.uuid or there.name == facts.name
            expected = there.state is VmState.INCOMING and there.uuid == facts.uuid
            if expected and host.connection is Connection.QMP:
                waiting = await _facts_or_none(driver, there.uuid)
            elif same and there.state in (VmState.RUNNING, VmState.PAUSED):
                occupied = name != source
        known = await self._hosts.get(name)
        return Destination(
            name, host, waiting, occupied, in_maintenance=known.maintenance_since is not None
        )


async def _asked(driver: Driver, facts: VmFacts, values: Mapping[str, Value]) -> VmFacts:
    """*facts* with what a QEMU is asked only where it matters for *values*."""
    if not facts.capabilities:
        return facts
    try:
        if values.get("multifd") is True and values.get("postcopy") is True:
            takes = await driver.takes_postcopy_with_multifd(facts.uuid)
            facts = replace(facts, postcopy_with_multifd=takes)
        if "tls_creds" in values:
            facts = replace(facts, objects=frozenset(await driver.objects(facts.uuid)))
    except (CommandRefused, NotFound):
        pass  # what is unknown is judged by its release, or not at all
    return facts


def _stated(
    profile: str | None,
    values: Mapping[str, object],
    steps: RawSteps,
    tunables: TunableRegistry,
) -> DesiredValues:
    """Values and steps of no profile."""
    if profile is not None:
        raise InvalidInput(
            "the plan names a profile and asks for none",
            field="without_profile",
            code="contradiction",
            remedy="leave out profile, or without_profile",
        )
    return DesiredValues("", 0, *accept(values, steps, tunables))


async def _with_disks(driver: Driver, facts: VmFacts) -> VmFacts:
    """With the sizes of its disks. A QEMU without libvirt is asked which it has."""
    if facts.hardware is None:
        if not facts.capabilities:
            return facts
        disks = tuple(await driver.disks(facts.uuid))
        return replace(facts, hardware=Hardware(disks=disks)) if disks else facts
    if not any(disk.where for disk in facts.hardware.disks):
        return facts
    disks = tuple(await driver.disks(facts.uuid))
    return replace(facts, hardware=replace(facts.hardware, disks=disks))


async def _with_dirty_rates(driver: Driver, facts: VmFacts) -> VmFacts:
    """With the last measurement of the VM's dirty rate, and whether one is running."""
    try:
        rates = await driver.dirty_rates(facts.uuid)
    except (CommandRefused, NotFound):
        return facts  # the QEMU is too old for the query, which the plan reports
    fastest = max(rates.vcpu_mib_per_s) << 20 if rates.vcpu_mib_per_s else None
    return replace(facts, measuring_dirty_rate=rates.measuring, vcpu_dirty_bytes_per_s=fastest)


async def _with_queues(driver: Driver, facts: VmFacts) -> VmFacts:
    """With the sizes of its virtio queues; without them nothing is said about them."""
    if not facts.capabilities:
        return facts
    try:
        return replace(facts, virtio_queues=tuple(await driver.virtio_queues(facts.uuid)))
    except (CommandRefused, NotFound):
        return facts


async def _facts_or_none(driver: Driver, vm: UUID) -> VmFacts | None:
    try:
        return await driver.vm_facts(vm)
    except NotFound:
        return None
