"""The driver of QMP sockets when connections are lost, by fakes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from tests.support.simulated.fakes import VM, fake_qemu
from vmtune.errors import CommandRefused, HostUnreachable, MonitorBusy, NotFound, OutcomeUnknown
from vmtune.hypervisor.protocol import EventKind
from vmtune.model.host.facts import Reading, VmState
from vmtune.model.migration.prior import Prior
from vmtune.model.plan.changes import Change
from vmtune.testing.fake.driver import FakeDriver
from vmtune.testing.fake.qemu import FakeQemu, Fault, FaultKind

NAME = "downtime_limit_ms"


@pytest.fixture
def qemu() -> FakeQemu:
    return fake_qemu()


@pytest.fixture
def driver(qemu: FakeQemu) -> FakeDriver:
    return FakeDriver([qemu])


@pytest.mark.parametrize("kind", [FaultKind.LOSE_BEFORE, FaultKind.LOSE_AFTER])
async def test_a_write_whose_answer_is_lost_is_unknown(
    qemu: FakeQemu, driver: FakeDriver, kind: FaultKind
) -> None:
    qemu.faults = [Fault(kind, "migrate-set-parameters")]
    with pytest.raises(OutcomeUnknown) as unknown:
        await driver.write(VM, [Change(NAME, 444)])
    assert unknown.value.problems[0].remedy
    # Looking again tells which it was.
    seen = (await driver.read(VM, [NAME]))[NAME].value
    assert seen == (300 if kind is FaultKind.LOSE_BEFORE else 444)


async def test_a_write_that_is_cut_off_between_commands_is_unknown(
    qemu: FakeQemu, driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = qemu.answer

    def lose_after_parameters(command: str, arguments: Mapping[str, Any]) -> object:
        result = answer(command, arguments)
        if command == "migrate-set-parameters":
            qemu.lose()
        return result

    await driver.vm_facts(VM)
    monkeypatch.setattr(qemu, "answer", lose_after_parameters)
    with pytest.raises(OutcomeUnknown):
        await driver.write(VM, [Change(NAME, 444), Change("auto_converge", True)])
    assert (qemu.parameters["downtime-limit"], qemu.capabilities["auto-converge"]) == (444, False)


async def test_a_question_whose_answer_is_lost_is_asked_again(
    qemu: FakeQemu, driver: FakeDriver
) -> None:
    qemu.faults = [Fault(FaultKind.LOSE_BEFORE, "query-migrate-parameters")]
    assert (await driver.read(VM, [NAME]))[NAME] == Reading(300)


async def test_a_question_that_is_never_answered_is_a_host_out_of_reach(
    qemu: FakeQemu, driver: FakeDriver
) -> None:
    qemu.faults = [Fault(FaultKind.LOSE_BEFORE, "query-migrate-parameters") for _ in range(2)]
    qemu.faults[1].at = 2
    with pytest.raises(HostUnreachable):
        await driver.read(VM, [NAME])


async def test_a_lost_connection_is_told_and_made_again(qemu: FakeQemu, driver: FakeDriver) -> None:
    await driver.vm_facts(VM)
    events = driver.events()
    qemu.lose()
    event = await anext(events)
    assert (event.kind, event.vm) == (EventKind.CONNECTION_LOST, VM)
    assert (await driver.vm_facts(VM)).uuid == VM
    await events.aclose()


async def test_a_host_that_cannot_be_reached_says_so_everywhere(driver: FakeDriver) -> None:
    driver.reachable = False
    for call in (
        driver.list_vms(),
        driver.host_facts(),
        driver.vm_facts(VM),
        driver.read(VM, [NAME]),
        driver.write(VM, [Change(NAME, 444)]),
        driver.migration(VM),
        driver.abort_migration(VM),
        driver.reset_after_migration(VM),
    ):
        with pytest.raises(HostUnreachable):
            await call


async def test_one_taken_monitor_does_not_hide_the_others(qemu: FakeQemu) -> None:
    other = fake_qemu(uuid=UUID(int=7), name="other")
    driver = FakeDriver([qemu, other])
    other.taken = True
    assert [vm.uuid for vm in await driver.list_vms()] == [VM]
    assert (await driver.vm_facts(VM)).uuid == VM
    # It may be the one that is asked for.
    with pytest.raises(MonitorBusy):
        await driver.vm_facts(UUID(int=8))
    other.taken = False
    with pytest.raises(NotFound):
        await driver.vm_facts(UUID(int=8))


async def test_where_every_monitor_is_taken_the_list_says_why(
    qemu: FakeQemu, driver: FakeDriver
) -> None:
    qemu.taken = True
    with pytest.raises(MonitorBusy):
        await driver.list_vms()


async def test_there_is_no_configuration_for_the_next_start(driver: FakeDriver) -> None:
    with pytest.raises(CommandRefused) as refused:
        await driver.write_boot(VM, [Change("virtio_blk_queues", 4)])
    assert refused.value.problems[0].code == "boot_needs_owner"
    assert refused.value.problems[0].field == "values.virtio_blk_queues"


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("running", VmState.RUNNING),
        ("inmigrate", VmState.INCOMING),
        ("postmigrate", VmState.MIGRATED),
        ("prelaunch", VmState.PAUSED),
        ("shutdown", VmState.SHUT_OFF),
        ("guest-panicked", VmState.OTHER),
        ("a later version's", VmState.OTHER),
    ],
)
async def test_every_state_of_qemu_is_one_of_ours(
    qemu: FakeQemu, driver: FakeDriver, status: str, state: VmState
) -> None:
    qemu.status = status
    assert (await driver.list_vms())[0].state is state
    assert (await driver.vm_facts(VM)).state is state


async def test_closing_does_not_cancel_who_waits(qemu: FakeQemu, driver: FakeDriver) -> None:
    qemu.faults = [Fault(FaultKind.HANG, "query-uuid")]
    waiting = asyncio.ensure_future(driver.vm_facts(VM))
    for _ in range(5):
        await asyncio.sleep(0)
    await driver.close()
    with pytest.raises((HostUnreachable, NotFound)):
        await waiting


async def test_who_gives_up_does_not_end_the_attempt_for_others(
    qemu: FakeQemu, driver: FakeDriver
) -> None:
    first = asyncio.ensure_future(driver.vm_facts(VM))
    second = asyncio.ensure_future(driver.vm_facts(VM))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).uuid == VM
    assert len([c for c, _ in qemu.commands if c == "query-uuid"]) == 1
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_what_a_qemu_had_before_a_migration_goes_with_its_socket(
    driver: FakeDriver,
) -> None:
    await driver.vm_facts(VM)
    driver._prior[VM] = Prior()
    await driver.list_vms()
    assert VM in driver._prior
    driver.fakes.clear()
    await driver.list_vms()
    assert driver._prior == {}
