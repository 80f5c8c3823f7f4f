"""Migrations that others started: which values of a profile can still be applied, and the outcome
of the rest. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from vmtune.errors import Problem
from vmtune.model.host.facts import Reading
from vmtune.model.plan.outcome import Outcome, Status, judge
from vmtune.model.plan.plan import Plan
from vmtune.model.plan.readback import Readings, before_migrating
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.model.tunables.tunable import Route, Side, Tunable
from vmtune.model.tunables.virsh import VirshOption, to_virsh, without_switch

BEGUN_WITHOUT = "begun_without"
"""Code of the problem that names the options of ``virsh migrate`` which were missing."""
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
    """

    outcomes: tuple[Outcome, ...]
    missing: tuple[VirshOption, ...] = ()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """One that names the missing options, where any is."""
        if not self.missing:
            return ()
        names = ", ".join(dict.fromkeys(option.tunable for option in self.missing))
        flags = " ".join(word for option in self.missing for word in option.words)
        message = f"the migration was begun without {names}"
        return (Problem("values", BEGUN_WITHOUT, message, _GIVE + flags),)


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
) -> Applied:
    """The outcomes once what could be set has been set, by what was read back.

    What vmtune itself does, and what belongs to the destination, stays pending.

    :param refused: what QEMU refused, with its words.
    :param libvirt: libvirt runs the migration, so that an option would have helped.
    """
    before = {o.tunable: o for o in outcomes}
    judged = {
        name: _judged(outcome, tunables[name], now, refused) for name, outcome in before.items()
    }
    stands = {
        o.tunable: o.wanted
        for o in judged.values()
        if o.wanted is not None and o.status in (Status.EFFECTIVE, Status.PENDING_MIGRATION)
    }
    for name, why in without_switch(stands).items():
        judged[name] = replace(judged[name], status=Status.REJECTED, reason=why)
    if not libvirt:
        return Applied(tuple(judged.values()))
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
