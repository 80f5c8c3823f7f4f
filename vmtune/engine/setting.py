"""Setting values on one VM, and restoring them from the journal; all of it read back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from uuid import UUID

from vmtune.errors import CommandRefused, VmtuneError
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.facts import Reading
from vmtune.model.plan.changes import AT_START, OF_HOST, Change, Readings, in_order
from vmtune.model.plan.outcome import Outcome, Status, judge
from vmtune.model.tunables.tunable import Value

Place = tuple[str, str]
"""A tunable and its owner, which is empty where it has none."""


async def set_each(driver: Driver, vm: UUID, changes: Iterable[Change]) -> dict[str, str]:
    """Set what can be set; the refused ones come back with QEMU's words.

    First all at once, in the order that QEMU wants; only where that is refused one by one.
    """
    wanted = list(changes)
    if not wanted:
        return {}
    readings = await driver.read(vm, {c.tunable for c in wanted})
    ordered = in_order(wanted, readings)
    return {name: why for (name, _), why in (await write_each(driver.write, vm, ordered)).items()}


async def write_each(
    write: Callable[[UUID, Sequence[Change]], Awaitable[None]],
    vm: UUID,
    changes: Sequence[Change],
    passes: Callable[[CommandRefused], bool] = lambda refusal: False,
) -> dict[Place, str]:
    """All at once; only where that is refused one by one, since the rest may be set or not then.
    Why some were refused, by tunable and owner.

    :param passes: whether a refusal of all at once is raised, to be repeated as a whole.
    """
    try:
        await write(vm, changes)
    except CommandRefused as refusal:
        if passes(refusal):
            raise
    else:
        return {}
    refused: dict[Place, str] = {}
    for change in changes:
        try:
            await write(vm, [change])
        except CommandRefused as error:
            refused[change.tunable, change.owner] = error.message
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
    """Restore the journal, read it back, and return an outcome for each tunable: *reverted*, or
    what keeps it, as QEMU says. What is refused does not keep the others.

    :raise VmtuneError: the VM could not be asked.
    """
    boot = [c for c in journal if c.tunable in AT_START]
    now = [c for c in journal if c.tunable not in AT_START | OF_HOST]
    names = {c.tunable for c in now}
    refused: dict[Place, str] = {}
    if now:
        readings = await driver.read(vm, names)
        refused |= await write_each(driver.write, vm, in_order(now, readings))
    if boot:
        refused |= await write_each(driver.write_boot, vm, boot)
    readings = await driver.read(vm, names) if names else {}
    outcomes: dict[str, Outcome] = {}
    for change in (*now, *boot):
        why = refused.get((change.tunable, change.owner))
        found = _put_back(change, readings.get(change.tunable, Reading(None)), why)
        known = outcomes.get(change.tunable)
        if known is None or known.status is Status.REVERTED:  # of several owners, one that lacks it
            outcomes[change.tunable] = found
    return list(outcomes.values())


def is_put_back(change: Change, readings: Readings) -> bool:
    """Whether what the journal holds is set."""
    return _is_set(change, readings.get(change.tunable, Reading(None)))


def _is_set(change: Change, reading: Reading) -> bool:
    seen = _seen(change, reading)
    judged = judge(change.tunable, change.value, Reading(seen))
    return seen == change.value or judged.status is Status.EFFECTIVE


def _seen(change: Change, reading: Reading) -> Value | None:
    return reading.parts.get(change.owner) if change.owner else reading.value


def _put_back(change: Change, reading: Reading, refused: str | None) -> Outcome:
    """:param refused: why it was not set; None where it was."""
    seen = _seen(change, reading)
    if _is_set(change, reading) or (change.tunable in AT_START and refused is None):
        return Outcome(change.tunable, Status.REVERTED, change.value, change.value)
    if refused is not None:
        return Outcome(change.tunable, Status.REJECTED, change.value, seen, refused)
    return judge(change.tunable, change.value, Reading(seen, why_unknown=reading.why_unknown))
