"""A run's tunables: planned as for any migration, and read back while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from vmtune.bench.migration.stage import Stage
from vmtune.engine.arrival import read_arrived
from vmtune.errors import Blocked, Problem, VmtuneError
from vmtune.hypervisor.protocol import MigrateOrder
from vmtune.model.host.facts import Connection, Reading
from vmtune.model.migration.controller_record import ReaperReport
from vmtune.model.plan.changes import in_order
from vmtune.model.plan.outcome import Status
from vmtune.model.plan.plan import Plan, make_plan
from vmtune.model.plan.readback import (
    before_migrating,
    in_setup,
    when_reaped,
    while_migrating,
)
from vmtune.model.plan.situation import Destination, Permissions, Situation
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import Route, Side, Value

# The VM is the run's own: that libvirt marks it as tainted harms nobody.
_PERMISSIONS = Permissions(destination_command_line=True)


class Proof:
    """The plan of a run's migration, and what became of it."""

    def __init__(self, stage: Stage, plan: Plan, readings: Mapping[str, Reading]) -> None:
        self._stage = stage
        self._plan = plan
        self._readings = readings
        self._connection = plan.connection
        self._before = tuple(before_migrating(item, plan) for item in plan.items)
        self._read = False
        self._active = False
        self.outcomes = self._before

    @classmethod
    async def plan(
        cls, stage: Stage, values: Mapping[str, Value], overrides: frozenset[str]
    ) -> Proof:
        """Probe both sides, and plan.

        :raise Blocked: naming every finding that stands against it.
        """
        source, destination = stage.source, stage.destination
        vm, host, there = await asyncio.gather(
            source.driver.vm_facts(stage.vm),
            source.driver.host_facts(),
            destination.driver.host_facts(),
        )
        direct = host.connection is Connection.QMP
        waiting = await destination.driver.vm_facts(stage.vm) if direct else None
        goal = Destination(destination.name, there, waiting)
        situation = Situation(values, vm, host, goal, _PERMISSIONS, tunables=BUILT_IN)
        plan = make_plan(situation, source.name, "", 0)
        found = plan.blockers(overrides)
        if found:
            raise Blocked(
                "the preflight found what stands against it",
                problems=[
                    Problem(f"values.{f.tunable}" if f.tunable else "", f.code, f.message, f.remedy)
                    for f in found
                ],
            )
        return cls(stage, plan, vm.readings)

    async def set_what_can_be(self) -> None:
        """Set what goes through the monitor before the migration.

        :raise VmtuneError: QEMU refuses.
        """
        changes = self._plan.changes_now()
        if changes:
            source = self._stage.source.driver
            await source.write(self._stage.vm, in_order(changes, self._readings))

    def order(self) -> MigrateOrder:
        """The migration to start."""
        values = {c.tunable: c.value for c in self._plan.changes(Route.MIGRATE)}
        return MigrateOrder(self._stage.vm, values, self._plan.destination_values())

    async def while_it_runs(self, active: bool) -> None:
        """Read back: at the migration's first sign, and again once it is active."""
        if self._active or (self._read and not active):
            return
        self._read, self._active = True, active
        names = [outcome.tunable for outcome in self._before]
        nothing = dict.fromkeys(names, Reading(None, why_unknown="it was not read"))
        try:
            now = {**nothing, **await self._stage.source.driver.read(self._stage.vm, names)}
        except VmtuneError as error:
            now = dict.fromkeys(names, Reading(None, why_unknown=error.message))
        there = await self._read_there(names) if self._connection is Connection.QMP else {}
        judged = [while_migrating(outcome, now, there, BUILT_IN) for outcome in self._before]
        self.outcomes = tuple(judged if active else map(in_setup, judged))

    async def when_it_has_ended(self, arrived: bool, reaper: ReaperReport | None) -> None:
        """Judge what could not be before: the reaper; the destination's own settings; and all of
        them where the migration was quicker than a look, for QEMU is left as it was."""
        if not self._read and self._connection is Connection.QMP:
            await self.while_it_runs(active=True)
        waiting = [o.tunable for o in self.outcomes if o.status is Status.PENDING_MIGRATION]
        names = [name for name in waiting if BUILT_IN[name].side is Side.DESTINATION]
        if arrived and names:
            there = await self._read_arrived(names)
            self.outcomes = tuple(
                while_migrating(o, {}, there, BUILT_IN) if o.tunable in names else o
                for o in self.outcomes
            )
        self.outcomes = tuple(
            when_reaped(o, reaper) if BUILT_IN[o.tunable].route is Route.CONTROL else o
            for o in self.outcomes
        )

    async def _read_arrived(self, names: list[str]) -> Mapping[str, Reading]:
        try:
            return await read_arrived(self._stage.destination.driver, self._stage.vm, names)
        except VmtuneError as error:
            return dict.fromkeys(names, Reading(None, why_unknown=error.message))

    async def _read_there(self, names: list[str]) -> Mapping[str, Reading]:
        try:
            return await self._stage.destination.driver.read(self._stage.vm, names)
        except VmtuneError:
            return {}
