"""Migrations that others started: which values of a profile can still be applied, and the outcome
of the rest. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from vmtune.errors import Problem
from vmtune.model.host.facts import Reading
from vmtune.model.host.managers import LIBVIRT, VMTUNE, Manager
from vmtune.model.plan.outcome import Outcome, Status, judge
from vmtune.model.plan.plan import Plan
from vmtune.model.plan.readback import Readings, before_migrating
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.model.tunables.tunable import Route, Side, Tunable
from vmtune.model.tunables.virsh import VirshOption, to_virsh, without_switch

BEGUN_WITHOUT = "begun_without"
"""Code of the problem that names the options of ``virsh migrate`` which were missing."""
LEFT_TO_MANAGER = "left_to_manager"
"""Code of the problem that names the values which the VM's manager sets itself."""
_TOO_LATE = "QEMU does not let it change while it migrates: `vmtune apply` sets it beforehand"
_UNASKED = "the migration was begun without it"
_GIVE = "give virsh migrate "


def can_be_set(outcome: Outcome, tunables: TunableRegistry) -> bool:
    """Whether it waits to be set while the migration runs."""
    row = tunables.get(outcome.tunable)
    if row is None:
        return False  # its pack is no longer loaded
    waits = outcome.status is Status.PENDING_MIGRATION
    return waits and row.running and row.side is not Side.DESTINATION


def when_found(plan: Plan) -> list[Outcome]:
    """The outcomes when the migration is found, before anything is set or read."""
    return [before_migrating(item, plan) for item in plan.items]


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a profile on a migration that was found.

    :param missing: the options of ``virsh migrate`` that would have set what is missing.
    :param manager: who manages the VM and set values of the profile otherwise; None for nobody.
    """

    outcomes: tuple[Outcome, ...]
    missing: tuple[VirshOption, ...] = ()
    manager: Manager | None = None

    @property
    def problems(self) -> tuple[Problem, ...]:
        """One that names the missing options, or what was left to the manager, where any is."""
        if self.manager is not None:
            return _left(self.outcomes, self.manager)
        if not self.missing:
            return ()
        names = ", ".join(dict.fromkeys(option.tunable for option in self.missing))
        flags = " ".join(word for option in self.missing for word in option.words)
        message = f"the migration was begun without {names}"
        return (Problem("values", BEGUN_WITHOUT, message, _GIVE + flags),)


def _left(outcomes: Iterable[Outcome], manager: Manager) -> tuple[Problem, ...]:
    left = [
        o.tunable
        for o in outcomes
        if o.tunable in manager.owns and o.wanted is not None and o.status is Status.NOT_APPLIED
    ]
    if not left:
        return ()
    settings = ", ".join(dict.fromkeys(manager.owns[name] for name in left))
    message = f"{manager.name} sets {', '.join(left)} itself, and not as the profile has it"
    remedy = f"set in {manager.settings}: {settings}"
    return (Problem("values", LEFT_TO_MANAGER, message, remedy),)


def missing_flags(problems: Iterable[Problem]) -> list[str]:
    """The words of the missing options, from a record's problems."""
    found = (p for p in problems if p.code == BEGUN_WITHOUT)
    return [word for p in found for word in p.remedy.removeprefix(_GIVE).split()]


def when_set(
    outcomes: Iterable[Outcome],
    now: Readings,
    refused: Mapping[str, str],
    tunables: TunableRegistry,
    libvirt: bool,
    manager: Manager | None = None,
) -> Applied:
    """The outcomes once what could be set has been set, by what was read back.

    What vmtune itself does, and what belongs to the destination, stays pending.

    :param refused: what QEMU refused, with its words.
    :param libvirt: libvirt runs the migration, so that an option would have helped.
    :param manager: who manages the VM; what is its own is left to it, and recorded.
    """
    before = {o.tunable: o for o in outcomes}
    judged = {
        name: _owned(_judged(outcome, tunables[name], now, refused), tunables[name], libvirt)
        for name, outcome in before.items()
        if name in tunables
    }
    if manager is not None:
        judged |= _managers(manager, before, now)
    stands = {
        o.tunable: o.wanted
        for o in judged.values()
        if o.wanted is not None and o.status in (Status.EFFECTIVE, Status.PENDING_MIGRATION)
    }
    for name, why in without_switch(stands).items():
        judged[name] = replace(judged[name], status=Status.REJECTED, reason=why)
    if not libvirt or manager is not None:
        return Applied(tuple(judged.values()), manager=manager)
    wanted = {o.tunable: o.wanted for o in judged.values() if o.wanted is not None}
    missing = tuple(
        option
        for option in to_virsh(wanted, tunables).options
        if before[option.tunable].status is Status.PENDING_MIGRATION
        and judged[option.tunable].status is Status.REJECTED
        and option.tunable not in refused
    )
    for name in {option.tunable for option in missing}:
        flags = " ".join(w for option in missing if option.tunable == name for w in option.words)
        reason = f"{judged[name].reason}: virsh migrate {flags}"
        judged[name] = replace(judged[name], reason=reason)
    return Applied(tuple(judged.values()), missing)


def _judged(before: Outcome, row: Tunable, now: Readings, refused: Mapping[str, str]) -> Outcome:
    name, wanted = before.tunable, before.wanted
    if before.status is not Status.PENDING_MIGRATION or wanted is None:
        return before
    if row.route is Route.CONTROL or row.side is Side.DESTINATION:
        return before
    reading = now.get(name, Reading(None, why_unknown="it was not read"))
    if name in refused:
        return Outcome(name, Status.REJECTED, wanted, reading.value, refused[name])
    outcome = judge(name, wanted, reading)
    if outcome.status is not Status.OVERWRITTEN:
        return outcome
    reason = _UNASKED if row.route is Route.MIGRATE else _TOO_LATE
    if row.running:
        reason = outcome.reason
    return replace(outcome, status=Status.REJECTED, reason=reason)


def _owned(outcome: Outcome, row: Tunable, libvirt: bool) -> Outcome:
    """With who set the value that QEMU has."""
    if outcome.status not in (Status.EFFECTIVE, Status.REJECTED) or outcome.owner:
        return outcome
    if outcome.status is Status.EFFECTIVE and (row.running or row.route is not Route.MIGRATE):
        return replace(outcome, owner=VMTUNE)
    return replace(outcome, owner=LIBVIRT) if libvirt and outcome.seen is not None else outcome


def _managers(manager: Manager, before: Mapping[str, Outcome], now: Readings) -> dict[str, Outcome]:
    """The outcomes of what is the manager's own, wanted by a profile or not."""
    found: dict[str, Outcome] = {}
    for name in manager.owns:
        reading = now.get(name, Reading(None, why_unknown="it was not read"))
        was = before.get(name)
        if was is None and name not in now:
            continue  # each migration has its own, which nobody can be asked
        if was is not None and was.status is not Status.PENDING_MIGRATION:
            continue
        wanted = was.wanted if was is not None else None
        outcome = Outcome(name, Status.NOT_APPLIED, wanted, reading.value, manager.left(name))
        if reading.value is None:
            outcome = Outcome(name, Status.UNKNOWN, wanted, None, reading.why_unknown)
        if wanted is not None and judge(name, wanted, reading).status is Status.EFFECTIVE:
            outcome = Outcome(name, Status.EFFECTIVE, wanted, reading.value)
        found[name] = replace(outcome, owner=manager.name)
    return found
