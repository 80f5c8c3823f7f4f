"""The plan: for one VM, one revision and (for a migration) one destination, what would
be set where and when, and what stands against it. Pure data, computed from probed facts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from vmtune.errors import Blocked, Problem
from vmtune.model.findings.table import Finding
from vmtune.model.host.disks import Disk, DiskRoom
from vmtune.model.host.facts import Connection, Reading
from vmtune.model.migration.steps import Step
from vmtune.model.plan.changes import Change
from vmtune.model.plan.situation import Situation
from vmtune.model.preflight.control import check_switches
from vmtune.model.preflight.copied_disks import copied_disks, local_disks
from vmtune.model.preflight.disk_room import room_for_copies
from vmtune.model.preflight.rules import check_destination, check_tunable, check_vm
from vmtune.model.tunables.rows.storage import COPIES
from vmtune.model.tunables.tunable import Route, Side, Tunable, Value


class TakesEffect(StrEnum):
    """When a planned value takes effect."""

    NOW = "now"
    AT_MIGRATION = "at the next migration"
    AT_RESTART = "at the VM's next start"
    NEVER = "never"


SET_NOW = (Route.MONITOR, Route.LIVE)
"""Routes by which a running QEMU takes a value at once."""
TAKES_EFFECT = {
    Route.MIGRATE: TakesEffect.AT_MIGRATION,
    Route.MONITOR: TakesEffect.NOW,
    Route.LIVE: TakesEffect.NOW,
    Route.RUNNING: TakesEffect.NOW,
    Route.BOOT: TakesEffect.AT_RESTART,
    Route.HOST: TakesEffect.NOW,
    Route.CONTROL: TakesEffect.AT_MIGRATION,
}


@dataclass(frozen=True, slots=True)
class PlanItem:
    """One tunable of the plan.

    :param route: the route that it takes, whether or not it has a blocker.
    :param takes_effect: never, if it has a blocker.
    :param overwriter: who would undo the value if it were set another way.
    :param differs: what is set now is known to be another value.
    """

    row: Tunable
    wanted: Value
    current: Reading
    route: Route
    takes_effect: TakesEffect
    overwriter: str
    differs: bool

    @property
    def tunable(self) -> str:
        """The tunable's name."""
        return self.row.name

    @property
    def side(self) -> Side:
        """Which QEMU of a migration must have the value."""
        return self.row.side


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be done for one VM, and the findings against it.

    :param destination: name of the destination host; empty for an application.
    :param steps: what is done when the migration does not end.
    :param disks: those that are copied with it.
    :param disk_room: what their images take at the destination.
    :param local_disks: those that the destination is seen not to share, copied or not.
    """

    vm: UUID
    vm_name: str
    host: str
    destination: str
    connection: Connection
    profile: str
    revision: int
    items: tuple[PlanItem, ...]
    findings: tuple[Finding, ...]
    steps: tuple[Step, ...] = ()
    disks: tuple[Disk, ...] = ()
    disk_room: tuple[DiskRoom, ...] = ()
    local_disks: tuple[Disk, ...] = ()

    @property
    def clean(self) -> bool:
        """Nothing would change, and nothing stands against it."""
        return not self.blockers() and not any(item.differs for item in self.items)

    def blockers(self, overrides: frozenset[str] = frozenset()) -> tuple[Finding, ...]:
        """The findings that stop it: those that *overrides* does not name, and those that cannot be
        overridden."""
        return tuple(f for f in self.findings if f.stops(overrides))

    def reason_against(self, tunable: str) -> str:
        """Why a tunable cannot be set; empty where it can."""
        found = [f for f in self.findings if f.leaves_out and f.tunable == tunable]
        return "; ".join(f"{f.message} ({f.remedy})" for f in found)

    def changes(self, *routes: Route) -> list[Change]:
        """What has to be set for *routes*, without what a blocker stands against."""
        return [Change(item.tunable, item.wanted) for item in self._open(*routes)]

    def changes_now(self) -> list[Change]:
        """What the running QEMU can take now, without what a blocker stands against."""
        return [
            Change(item.tunable, item.wanted)
            for item in self._open(*SET_NOW)
            if item.side is not Side.DESTINATION
        ]

    def destination_values(self) -> dict[str, Value]:
        """What the destination alone has to be given, such as announcements."""
        return {
            item.tunable: item.wanted
            for item in self._open(Route.MONITOR)
            if item.side is Side.DESTINATION
        }

    def _open(self, *routes: Route) -> list[PlanItem]:
        """The items of *routes* that no blocker leaves out."""
        stopped = {f.tunable for f in self.findings if f.leaves_out}
        return [item for item in self.items if item.route in routes and item.tunable not in stopped]

    def migrate_values(self) -> dict[str, Value]:
        """What is set for the migration alone, as it is started."""
        return {change.tunable: change.value for change in self.changes(Route.MIGRATE)}

    @property
    def readings(self) -> Mapping[str, Reading]:
        """What each planned tunable was set to when the plan was made."""
        return {item.tunable: item.current for item in self.items}


def refuse(findings: Collection[Finding]) -> None:
    """:raise Blocked: naming every finding, if there are any."""
    if findings:
        count = len(findings)
        raise Blocked(
            f"the preflight found {count} blocker{'s' if count > 1 else ''}",
            problems=[Problem(f.field, f.code, f.message, f.remedy) for f in findings],
        )


def make_plan(situation: Situation, host: str, profile: str, revision: int) -> Plan:
    """The plan for a situation.

    :param host: the name under which vmtune knows the VM's host.
    """
    findings = [*check_vm(situation), *check_destination(situation)]
    items: list[PlanItem] = []
    for name, wanted in situation.values.items():
        row = situation.tunables.get(name)
        if row is None:
            findings.append(Finding("pack_not_loaded", name, {"name": name}))
            continue
        found = list(check_tunable(row, wanted, situation))
        findings += found
        blocked = any(f.leaves_out and f.tunable == name for f in findings)
        items.append(_item(row, wanted, situation, blocked))
    stopped = {f.tunable for f in findings if f.leaves_out}
    findings += check_switches(situation, stopped)
    return Plan(
        vm=situation.vm.uuid,
        vm_name=situation.vm.name,
        host=host,
        destination=situation.destination.name if situation.destination else "",
        connection=situation.host.connection,
        profile=profile,
        revision=revision,
        items=tuple(items),
        findings=tuple(findings),
        steps=situation.steps,
        disks=() if stopped.intersection(COPIES) else copied_disks(situation),
        disk_room=room_for_copies(situation),
        local_disks=local_disks(situation),
    )


def _item(tunable: Tunable, wanted: Value, situation: Situation, blocked: bool) -> PlanItem:
    route = situation.route(tunable)
    current = situation.reading(tunable)
    values = tuple(current.parts.values()) or (current.value,)
    raises = situation.may_change_host(tunable.name) and _below(current.value, wanted)
    of_host = tunable.route is Route.HOST and current.value is not None
    enough = of_host and not blocked and not raises  # more than was requested is as good
    return PlanItem(
        row=tunable,
        wanted=wanted,
        current=current,
        route=route,
        takes_effect=TakesEffect.NEVER if blocked else TAKES_EFFECT[route],
        overwriter=tunable.overwriter if situation.libvirt and route is Route.MIGRATE else "",
        differs=not enough and any(v is not None and v != wanted for v in values),
    )


def _below(value: Value | None, wanted: Value) -> bool:
    return isinstance(value, int) and isinstance(wanted, int) and value < wanted
