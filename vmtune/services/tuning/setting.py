"""Setting values on one VM, putting them back, and judging what was read back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from uuid import UUID

from vmtune.errors import Blocked, CommandRefused, Problem, VmtuneError
from vmtune.hypervisor.protocol import Driver
from vmtune.model.findings.table import Finding
from vmtune.model.host.facts import Reading, VmFacts
from vmtune.model.host.limits import SYSCTLS
from vmtune.model.plan.changes import Change, in_order
from vmtune.model.plan.outcome import Application, Outcome, Status, judge
from vmtune.model.plan.plan import Plan
from vmtune.model.plan.readback import Readings, outcome_of
from vmtune.model.tunables.tunable import Route, Value
from vmtune.services.hosts.limits import HostLimits, LimitState, as_problem


def as_problems(findings: Iterable[Finding]) -> list[Problem]:
    """Findings as a user reads them in an error."""
    return [Problem(f.field, f.code, f.message, f.remedy) for f in findings]


def refuse(findings: Collection[Finding]) -> None:
    """:raise Blocked: naming every finding, if there are any."""
    if findings:
        count = len(findings)
        raise Blocked(
            f"the preflight found {count} blocker{'s' if count > 1 else ''}",
            problems=as_problems(findings),
        )


def boot_differs(change: Change, facts: VmFacts) -> bool:
    """Whether the persistent configuration lacks what *change* wants."""
    reading = facts.boot_readings.get(change.tunable, Reading(None))
    parts = tuple(reading.parts.values()) or (reading.value,)
    return any(part != change.value for part in parts)


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


async def restore(driver: Driver, vm: UUID, journal: Sequence[Change]) -> list[Outcome]:
    """Put back what the journal holds, read it back, and say how each ended."""
    boot = [c for c in journal if c.row.route is Route.BOOT]
    now = [c for c in journal if c.row.route not in (Route.BOOT, Route.HOST)]
    names = {c.tunable for c in now}
    if now:
        readings = await driver.read(vm, names)
        await driver.write(vm, in_order(now, readings))
    if boot:
        await driver.write_boot(vm, boot)
    readings = await driver.read(vm, names) if names else {}
    outcomes = {c.tunable: _put_back(c, readings.get(c.tunable, Reading(None))) for c in now}
    for change in boot:
        outcomes[change.tunable] = Outcome(
            change.tunable, Status.REVERTED, change.value, change.value
        )
    return list(outcomes.values())


def limits_wanted(plan: Plan) -> dict[str, int]:
    """The limits of the host that the plan raises."""
    differing = {item.tunable for item in plan.items if item.differs}
    return {
        change.tunable: int(change.value)
        for change in plan.changes(Route.HOST)
        if change.tunable in SYSCTLS and change.tunable in differing
    }


def limits_before(plan: Plan) -> list[Change]:
    """What they are now."""
    wanted = limits_wanted(plan)
    return [
        Change(item.tunable, item.current.value)
        for item in plan.items
        if item.tunable in wanted and item.current.value is not None
    ]


def asker(record: Application) -> str:
    """Who asks for the host's limits, where an application does."""
    return f"application {record.id}"


async def restore_all(
    driver: Driver, record: Application, limits: HostLimits | None
) -> list[Outcome]:
    """Put back what the journal holds, on the host too, and say how each ended.

    :raise VmtuneError: the first that could not be put back, after all was tried.
    """
    on_host: list[Outcome] = []
    failed: VmtuneError | None = None
    before = [change for change in record.journal if change.row.route is Route.HOST]
    if before and limits is not None:
        try:
            await limits.release(asker(record))
            on_host = _come_back(before, await limits.state(record.host))
        except VmtuneError as error:
            failed = error
    outcomes = await restore(driver, record.vm, record.journal)
    if failed is not None:
        raise failed
    return [*outcomes, *on_host]


def _come_back(journal: Iterable[Change], limits: Iterable[LimitState]) -> list[Outcome]:
    """How the host's limits stand once they are no longer asked for: others may ask for them."""
    states = {state.tunable: state for state in limits}
    outcomes: list[Outcome] = []
    for change in journal:
        state = states[change.tunable]
        reason = "" if state.value == change.value else as_problem(state).message
        outcomes.append(Outcome(change.tunable, Status.REVERTED, change.value, state.value, reason))
    return outcomes


def is_put_back(change: Change, readings: Readings) -> bool:
    """Whether what the journal holds is set."""
    reading = readings.get(change.tunable, Reading(None))
    return _seen(change, reading) == change.value


def _seen(change: Change, reading: Reading) -> Value | None:
    return reading.parts.get(change.owner) if change.owner else reading.value


def _put_back(change: Change, reading: Reading) -> Outcome:
    seen = _seen(change, reading)
    if seen == change.value:
        return Outcome(change.tunable, Status.REVERTED, change.value, seen)
    return judge(change.tunable, change.value, Reading(seen, why_unknown=reading.why_unknown))


async def set_each(driver: Driver, vm: UUID, changes: Iterable[Change]) -> dict[str, str]:
    """Set what can be set; the refused ones come back with QEMU's words.

    First all together, in the order that QEMU wants; only where that is refused one by one.
    """
    wanted = list(changes)
    if not wanted:
        return {}
    readings = await driver.read(vm, {c.tunable for c in wanted})
    ordered = in_order(wanted, readings)
    try:
        await driver.write(vm, ordered)
    except CommandRefused:
        pass
    else:
        return {}
    refused: dict[str, str] = {}
    for change in ordered:
        try:
            await driver.write(vm, [change])
        except CommandRefused as error:
            refused[change.tunable] = error.message
    return refused


async def set_again(driver: Driver, vm: UUID, changes: Sequence[Change]) -> list[Outcome]:
    """Set values on a VM that has moved, and read them back. Never raises vmtune's errors:
    the VM runs, and what it lacks is told by the outcomes."""
    try:
        refused = await set_each(driver, vm, changes)
        readings = await driver.read(vm, {c.tunable for c in changes})
    except VmtuneError as error:
        return [Outcome(c.tunable, Status.UNKNOWN, c.value, None, error.message) for c in changes]
    return [
        Outcome(c.tunable, Status.REJECTED, c.value, None, refused[c.tunable])
        if c.tunable in refused
        else judge(c.tunable, c.value, readings.get(c.tunable, Reading(None)))
        for c in changes
    ]
