"""Setting values on one VM, and restoring them from the journal; all of it read back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from vmtune.errors import CommandRefused, VmtuneError
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.facts import Reading
from vmtune.model.plan.changes import AT_START, OF_HOST, Change, Readings, in_order
from vmtune.model.plan.outcome import Outcome, Status, judge
from vmtune.model.tunables.tunable import Value


async def set_each(driver: Driver, vm: UUID, changes: Iterable[Change]) -> dict[str, str]:
    """Set what can be set; the refused ones come back with QEMU's words.

    First all at once, in the order that QEMU wants; only where that is refused one by one.
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
    """Set values on a VM that has moved, and read them back. Never raises vmtune's errors: the VM
    runs, and the outcomes show what is missing."""
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


async def restore(driver: Driver, vm: UUID, journal: Sequence[Change]) -> list[Outcome]:
    """Restore the journal, read it back, and return the outcomes."""
    boot = [c for c in journal if c.tunable in AT_START]
    now = [c for c in journal if c.tunable not in AT_START | OF_HOST]
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
