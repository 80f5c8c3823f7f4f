"""What steering wants is done, and it hears what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.support.simulated.control import VM, MadeQemu, MadeTime, sample
from vmtune.engine.controllers import Controllers
from vmtune.errors import CommandRefused, HostUnreachable, VmtuneError
from vmtune.intent.steering import Abilities, Steering
from vmtune.model.host.facts import VmState
from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.intent import Intent, Means
from vmtune.model.migration.record import QemuStatus, Sample

GONE = HostUnreachable("the connection is lost")
NO = CommandRefused("QEMU says no")
INTENT = Intent(1000, 60)


def qemu(**errors: list[VmtuneError | Exception | None]) -> MadeQemu:
    values = {"downtime_limit_ms": 100, "max_cpu_throttle_percent": 99}
    return MadeQemu(MadeTime(), migrating=True, values={**values}, errors=errors)


def busy(seconds: int) -> list[Sample]:
    """A guest that dirties 30 MiB in each pass, over a path of 100 MiB/s: 300 ms."""
    mib = 1 << 20
    made = []
    for tick in range(seconds * 10):
        sent = tick * 10 * mib
        remaining = (30 - 10 * (tick % 3)) * mib
        at = sample(at_ms=tick * 100, iteration=1 + tick // 3, remaining_bytes=remaining)
        made.append(replace(at, transferred_bytes=sent, normal_pages=sent // 4096))
    return made


def limits(made: MadeQemu) -> list[object]:
    return [value for name, value in made.writes if name == "downtime_limit_ms"]


async def test_a_limit_that_did_not_come_about_is_set_again() -> None:
    """The connection is lost over the first, the second is refused."""
    made = qemu(write=[GONE, NO])
    controllers = Controllers(made, VM, steering=Steering(INTENT, Abilities(), 100))
    for each in busy(20):
        await controllers.on_sample(each)
    effects = [record.effect for record in controllers.step_records]
    assert effects[:3] == [StepEffect.UNKNOWN, StepEffect.REFUSED, StepEffect.DONE]
    assert limits(made)
    times = [record.at_ms for record in controllers.step_records]
    assert times[1] - times[0] >= 1000 and times[2] - times[1] >= 2000


async def test_one_that_did_come_about_is_not_set_again() -> None:
    """The answer was lost, and not the command."""
    made = qemu(read=[None, GONE])
    controllers = Controllers(made, VM, steering=Steering(INTENT, Abilities(), 100))
    for each in busy(5):
        await controllers.on_sample(each)
    assert controllers.step_records[0].effect is StepEffect.UNKNOWN
    assert len(limits(made)) == len(set(limits(made)))


async def test_an_abort_is_tried_until_it_is_done() -> None:
    made = qemu(abort_migration=[GONE, GONE])
    controllers = Controllers(made, VM, steering=Steering(Intent(100, 10), Abilities(), 25))
    for at_ms in range(9_900, 15_000, 100):
        await controllers.on_sample(sample(at_ms=at_ms))
    effects = [record.effect for record in controllers.step_records]
    assert effects == [StepEffect.UNKNOWN, StepEffect.UNKNOWN, StepEffect.DONE]


async def test_a_pause_that_did_come_about_is_not_followed_by_an_abort() -> None:
    goals = Intent(None, 10, may=(Means.PAUSE,))
    made = qemu(pause=[GONE])
    controllers = Controllers(made, VM, steering=Steering(goals, Abilities(), 300))
    for each in busy(9):
        await controllers.on_sample(replace(each, remaining_bytes=500 << 20))
        if made.calls.count("pause"):
            made.state = VmState.PAUSED
    for at_ms in range(9_000, 20_000, 100):
        await controllers.on_sample(sample(at_ms=at_ms))
    assert [record.action for record in controllers.step_records] == ["pause the guest"]


@pytest.mark.parametrize("set_by_user", [False, True])
async def test_a_limit_that_a_user_sets_meanwhile_stays(set_by_user: bool) -> None:
    sets = {"downtime_limit_ms": 120}
    theirs = [StepRecord(None, 50, 1, "any words", "as asked", StepEffect.DONE, values=sets)]

    async def recorded() -> Sequence[StepRecord]:
        return theirs if set_by_user else []

    made = qemu()
    start = Steering(INTENT, Abilities(), 100)
    controllers = Controllers(made, VM, steering=start, recorded=recorded)
    for each in busy(20):
        await controllers.on_sample(each)
    assert bool(limits(made)) is not set_by_user


@pytest.mark.parametrize("setup", [False, True])
async def test_what_does_not_send_memory_by_the_deadline_is_aborted(setup: bool) -> None:
    made = qemu()
    controllers = Controllers(made, VM, steering=Steering(Intent(100, 10), Abilities(), 25))
    for at_ms in range(9_000, 12_000, 500):
        if setup:
            await controllers.on_sample(sample(QemuStatus.SETUP, at_ms))
        else:
            await controllers.waiting(at_ms)
    (record,) = controllers.step_records
    assert (record.action, record.at_ms) == ("abort the migration", 10_000)
    assert record.steering


async def test_in_shadow_it_is_not() -> None:
    made = qemu()
    start = Steering(Intent(100, 10), Abilities(), 25)
    controllers = Controllers(made, VM, steering=start, shadow=True)
    await controllers.waiting(20_000)
    assert (controllers.step_records, made.calls) == ((), [])
