"""Whether what was planned took effect: each tunable judged by what was read back. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from vmtune.model.host.facts import Reading, VmFacts
from vmtune.model.migration.controller_record import ReaperEnd, ReaperReport
from vmtune.model.plan.changes import Change
from vmtune.model.plan.outcome import Outcome, Status, judge
from vmtune.model.plan.plan import Plan, PlanItem
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.model.tunables.rows.postcopy import POSTCOPY
from vmtune.model.tunables.rows.reaper import OFF
from vmtune.model.tunables.rows.storage import CALL_ARGUMENTS, SOURCE_IMAGES
from vmtune.model.tunables.tunable import Route, Side

_NOT_READ_BACK = (Route.HOST, Route.BOOT, Route.CONTROL)
_OURS = frozenset((*(row.name for row in POSTCOPY), SOURCE_IMAGES))
"""vmtune goes by them itself: there is nothing to read back."""
Readings = Mapping[str, Reading]


def outcome_of(item: PlanItem, plan: Plan, now: Readings, boot: Readings) -> Outcome:
    """How one planned tunable stands, judged by what was read back."""
    name, wanted = item.tunable, item.wanted
    against = plan.reason_against(name)
    if against:
        return Outcome(name, Status.REJECTED, wanted, item.current.value, against)
    reading = now.get(name, item.current)
    if item.route in (Route.MIGRATE, Route.CONTROL) or item.side is Side.DESTINATION:
        return Outcome(name, Status.PENDING_MIGRATION, wanted, reading.value)
    if item.route is Route.HOST:
        return _of_host(item, reading)
    outcome = judge(name, wanted, reading)
    if item.route is Route.BOOT and outcome.status is not Status.EFFECTIVE:
        configured = judge(name, wanted, boot.get(name, Reading(None)))
        if configured.status is Status.EFFECTIVE:
            reason = "shut the VM off and start it again"
            return Outcome(name, Status.PENDING_RESTART, wanted, reading.value, reason)
    return outcome


def _of_host(item: PlanItem, reading: Reading) -> Outcome:
    """A limit of the host: more than was requested is as good."""
    value, wanted = reading.value, item.wanted
    lower = isinstance(value, int) and isinstance(wanted, int) and value < wanted
    if item.differs and lower:
        reason = "it is lower: somebody set it, or libvirt's network has a value of its own"
        return Outcome(item.tunable, Status.OVERWRITTEN, wanted, value, reason)
    return Outcome(item.tunable, Status.EFFECTIVE, wanted, value)


def outcomes_of(
    plan: Plan, now: Readings, boot: Readings, refused: Mapping[str, str] | None = None
) -> list[Outcome]:
    """How every planned tunable stands.

    :param refused: tunables that QEMU refused although the plan allowed them, with its words.
    """
    refused = refused or {}
    return [
        Outcome(i.tunable, Status.REJECTED, i.wanted, i.current.value, refused[i.tunable])
        if i.tunable in refused
        else outcome_of(i, plan, now, boot)
        for i in plan.items
    ]


def boot_differs(change: Change, facts: VmFacts) -> bool:
    """Whether the persistent configuration lacks what *change* wants."""
    reading = facts.boot_readings.get(change.tunable, Reading(None))
    parts = tuple(reading.parts.values()) or (reading.value,)
    return any(part != change.value for part in parts)


def before_migrating(item: PlanItem, plan: Plan) -> Outcome:
    """A planned tunable before the migration: what cannot be, what needs a restart, and
    what waits to be read back."""
    outcome = outcome_of(item, plan, {}, {})
    if outcome.status is Status.REJECTED or item.route is Route.HOST:
        return outcome
    if item.route is Route.BOOT:
        if outcome.status is Status.EFFECTIVE:
            return outcome
        reason = "a migration does not change it: apply the profile, then restart the VM"
        return replace(outcome, status=Status.PENDING_RESTART, reason=reason)
    if item.tunable in _OURS:
        return Outcome(item.tunable, Status.EFFECTIVE, item.wanted, item.wanted)
    return Outcome(item.tunable, Status.PENDING_MIGRATION, item.wanted)


def before_starting(item: PlanItem, plan: Plan) -> Outcome:
    """Likewise, of a migration that vmtune starts: its addresses are arguments of the call, which
    fails where it cannot use them."""
    outcome = before_migrating(item, plan)
    if item.tunable in CALL_ARGUMENTS and outcome.status is Status.PENDING_MIGRATION:
        return Outcome(item.tunable, Status.EFFECTIVE, item.wanted, item.wanted)
    return outcome


def while_migrating(
    before: Outcome, now: Readings, there: Readings, tunables: TunableRegistry
) -> Outcome:
    """An outcome once the migration runs: what waited for it is judged by what was read.

    :param there: readings of the destination, empty where it cannot be read meanwhile.
    """
    tunable = tunables.get(before.tunable)
    if tunable is None:
        return before  # its pack is no longer loaded
    settled = before.status in (Status.REJECTED, Status.PENDING_RESTART)
    if settled or before.wanted is None or tunable.route in _NOT_READ_BACK:
        return before
    if tunable.side is Side.DESTINATION:
        if tunable.name not in there:
            return before  # judged when it has arrived
        return judge(tunable.name, before.wanted, there[tunable.name])
    if tunable.name in CALL_ARGUMENTS:
        return before  # nobody can be asked
    outcome = judge(tunable.name, before.wanted, now[tunable.name], tunable.overwriter)
    if outcome.status is Status.UNKNOWN and before.status is Status.EFFECTIVE:
        return before  # the VM has just left; it was proven before
    if tunable.side is Side.BOTH and tunable.name in there and outcome.status is Status.EFFECTIVE:
        other = judge(tunable.name, before.wanted, there[tunable.name])
        if other.status is not Status.EFFECTIVE:
            return replace(other, reason=f"on the destination: {other.reason}")
    return outcome


def in_setup(outcome: Outcome) -> Outcome:
    """In setup, values may still be in the course of being set: only those already there are
    reported."""
    if outcome.status is Status.OVERWRITTEN:
        return Outcome(outcome.tunable, Status.PENDING_MIGRATION, outcome.wanted)
    return outcome


def when_reaped(before: Outcome, report: ReaperReport | None, observed: bool = False) -> Outcome:
    """The outcome of one of the reaper's settings once the migration has ended: it took effect
    where the reaper ran from before the migration to its end; where that was *observed*, from when
    it was found."""
    name, wanted = before.tunable, before.wanted
    if before.status is Status.REJECTED or wanted is None:
        return before
    if wanted == OFF and report is None:
        return Outcome(name, Status.EFFECTIVE, wanted, wanted)
    if report is None:
        return Outcome(name, Status.REJECTED, wanted, None, "no reaper ran")
    if observed and report.end is ReaperEnd.MIGRATION_ENDED and not report.interruptions:
        reason = "the reaper began when the migration was found"
        return Outcome(name, Status.EFFECTIVE, wanted, wanted, reason)
    if report.throughout:
        return Outcome(name, Status.EFFECTIVE, wanted, wanted)
    match report.end:
        case ReaperEnd.NOT_STARTED:
            reason = f"the reaper could not begin: {report.reason}"
            return Outcome(name, Status.REJECTED, wanted, None, reason)
        case ReaperEnd.FAILED:
            reason = f"the reaper ended after {report.round_count} rounds: {report.reason}"
            return Outcome(name, Status.REJECTED, wanted, None, reason)
        case ReaperEnd.MIGRATION_ENDED if not report.rounds_before:
            reason = "the reaper's first round came after the migration's start"
        case ReaperEnd.MIGRATION_ENDED:
            reason = "the reaper could not go on for a while, and then did"
        case _:
            reason = "vmtune ended before the migration did, and with it the reaper"
    return Outcome(name, Status.UNKNOWN, wanted, None, reason)
