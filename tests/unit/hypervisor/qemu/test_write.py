from __future__ import annotations

import asyncio

import pytest

from tests.support.simulated.fakes import OLDEST, VM, fake_pair, fake_qemu, only
from vmtune.errors import CommandRefused, InvalidInput, OutcomeUnknown
from vmtune.model.host.facts import Reading
from vmtune.model.plan.changes import Change
from vmtune.testing.fake.driver import FakeDriver
from vmtune.testing.fake.qemu import FakeQemu, Fault, FaultKind


@pytest.fixture
def qemu() -> FakeQemu:
    return fake_qemu()


@pytest.fixture
def driver(qemu: FakeQemu) -> FakeDriver:
    return FakeDriver([qemu])


def sent(qemu: FakeQemu, *commands: str) -> list[str]:
    """The commands of these kinds, in the order in which they came."""
    return [command for command, _ in qemu.commands if command in commands]


SETTING = ("migrate-set-parameters", "migrate-set-capabilities", "qom-set", "object-add")


async def test_neighbours_of_one_kind_go_in_one_command(qemu: FakeQemu, driver: FakeDriver) -> None:
    changes = [
        Change("downtime_limit_ms", 400),
        Change("multifd_compression", "zstd"),
        Change("multifd", True),
        Change("auto_converge", True),
        Change("announce_rounds", 6),
    ]
    await driver.write(VM, changes)
    assert sent(qemu, *SETTING) == [
        "migrate-set-parameters",
        "migrate-set-capabilities",
        "migrate-set-parameters",
    ]
    assert qemu.parameters["downtime-limit"] == 400
    assert qemu.capabilities["multifd"]


async def test_the_first_refusal_is_told(qemu: FakeQemu, driver: FakeDriver) -> None:
    changes = [
        Change("downtime_limit_ms", 400),
        Change("zero_copy_send", True),
        Change("announce_rounds", 6),
    ]
    with pytest.raises(CommandRefused) as refused:
        await driver.write(VM, changes)
    assert refused.value.problems[0].field == "values.zero_copy_send"
    assert "Zero copy only available" in refused.value.message
    # What goes behind it does not wait for its answer.
    assert (qemu.parameters["downtime-limit"], qemu.parameters["announce-rounds"]) == (400, 6)


async def test_what_is_read_back_is_asked_behind_the_changes_and_before_their_answers(
    qemu: FakeQemu, driver: FakeDriver
) -> None:
    changes = [
        Change("multifd", True),
        Change("downtime_limit_ms", 400),
        Change("iothread_thread_pool_max", 9, "iothread1"),
    ]
    names = {change.tunable for change in changes}
    await driver.read(VM, names)  # which objects there are is known now
    read = await driver.write_and_read(VM, changes, names)
    assert (read["multifd"].value, read["downtime_limit_ms"].value) == (True, 400)
    assert read["iothread_thread_pool_max"].parts["iothread1"] == 9

    qemu.commands.clear()
    qemu.faults = [Fault(FaultKind.HANG, "migrate-set-capabilities")]
    waits = asyncio.create_task(driver.write_and_read(VM, changes, names))
    for _ in range(50):  # turns of the loop: nothing else is waited for
        await asyncio.sleep(0)
    order = [name for name, _ in qemu.commands]
    asked = min(map(order.index, ("query-migrate-capabilities", "qom-get", "query-iothreads")))
    assert asked > max(map(order.index, ("migrate-set-parameters", "qom-set")))
    waits.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waits


async def test_nothing_is_read_back_of_what_was_refused(driver: FakeDriver) -> None:
    before = asyncio.all_tasks()
    with pytest.raises(CommandRefused):
        await driver.write_and_read(VM, [Change("zero_copy_send", True)], {"zero_copy_send"})
    assert asyncio.all_tasks() == before


async def test_a_refusal_that_names_two_settings_blames_neither(driver: FakeDriver) -> None:
    with pytest.raises(CommandRefused) as refused:
        await driver.write(VM, [Change("postcopy", True), Change("multifd", True)])
    assert refused.value.message == "Postcopy is not yet compatible with multifd"
    # It names multifd alone by the word that QEMU has for the setting.
    assert refused.value.problems[0].field == "values.multifd"


async def test_the_main_loop_gets_its_object_when_needed(
    qemu: FakeQemu, driver: FakeDriver
) -> None:
    name = "main_loop_thread_pool_max"
    assert (await driver.read(VM, [name]))[name] == Reading(64)
    await driver.write(VM, [Change(name, 64)])
    assert sent(qemu, "object-add") == []  # it is so already
    await driver.write(VM, [Change(name, 8), Change("main_loop_thread_pool_min", 2)])
    await driver.write(VM, [Change(name, 9)])
    assert sent(qemu, "object-add") == ["object-add"]
    assert (await driver.read(VM, [name]))[name] == Reading(9)


async def test_a_refused_pool_limit_is_put_back_and_the_first_error_kept(
    qemu: FakeQemu, driver: FakeDriver
) -> None:
    changes = [
        Change("iothread_thread_pool_max", 4, "iothread1"),
        Change("iothread_thread_pool_min", 9, "iothread1"),
        Change("iothread_poll_max_ns", 7, "iothread2"),
    ]
    with pytest.raises(CommandRefused) as refused:
        await driver.write(VM, changes)
    assert refused.value.problems[0].field == "values.iothread_thread_pool_min"
    assert qemu.properties["/objects/iothread1"]["thread-pool-min"] == 0
    assert qemu.properties["/objects/iothread1"]["thread-pool-max"] == 4


async def test_an_iothread_that_is_not_there_is_named(driver: FakeDriver) -> None:
    with pytest.raises(CommandRefused) as refused:
        await driver.write(VM, [Change("iothread_poll_max_ns", 7, "iothread9")])
    assert refused.value.problems[0].field == "values.iothread_poll_max_ns"


async def test_a_lost_connection_outweighs_a_refusal(qemu: FakeQemu, driver: FakeDriver) -> None:
    await driver.vm_facts(VM)
    qemu.faults = [
        Fault(FaultKind.REFUSE, "qom-set", 1),
        Fault(FaultKind.LOSE_AFTER, "qom-set", 2),
    ]
    with pytest.raises(OutcomeUnknown):
        await driver.write(VM, [Change("iothread_poll_max_ns", 7)])
    second = qemu.recording["query-iothreads"][1]["id"]
    assert qemu.properties[f"/objects/{second}"]["poll-max-ns"] == 7  # it took effect


@pytest.mark.parametrize("name", ["dirty_ring_size_entries", "virtio_blk_queues"])
async def test_what_no_monitor_can_set_is_refused_before_anything_is_sent(
    qemu: FakeQemu, driver: FakeDriver, name: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        await driver.write(VM, [Change("downtime_limit_ms", 400), Change(name, 4096)])
    assert refused.value.problems[0].field == f"values.{name}"
    assert refused.value.problems[0].remedy == "it takes the route boot"
    assert sent(qemu, *SETTING) == []


async def test_tls_is_the_credentials_parameter(qemu: FakeQemu, driver: FakeDriver) -> None:
    names = ("tls", "tls_creds", "tls_hostname")
    before = await driver.read(VM, names)
    assert before["tls"] == Reading(False)
    assert before["tls_creds"] == Reading(None, why_unknown="it is not set")
    with pytest.raises(CommandRefused) as refused:
        await driver.write(VM, [Change("tls", True)])
    assert refused.value.problems[0].code == "tls_creds_missing"
    wanted = [Change("tls", True), Change("tls_creds", "tls0"), Change("tls_hostname", "b")]
    await driver.write(VM, wanted)
    now = await driver.read(VM, names)
    assert {n: r.value for n, r in now.items()} == {
        "tls": True,
        "tls_creds": "tls0",
        "tls_hostname": "b",
    }
    await driver.write(VM, [Change("tls", False)])
    assert await driver.read(VM, names) == before


async def test_libvirts_unlimited_bandwidth_reads_as_no_limit(
    qemu: FakeQemu, driver: FakeDriver
) -> None:
    name = "max_bandwidth_bytes_per_s"
    # libvirt 9 and 11: INT64_MAX in whole MiB.
    qemu.parameters["max-bandwidth"] = ((1 << 63) - 1) >> 20 << 20
    assert (await driver.read(VM, [name]))[name] == Reading(0)


@pytest.mark.parametrize("setting", [Change("multifd_channels", 8), Change("tls", False)])
async def test_what_would_crash_a_migrating_qemu_is_not_sent(setting: Change) -> None:
    source, _ = fake_pair(paced=True)
    qemu = only(source)
    qemu.outgoing.begin(early_completed=False)
    with pytest.raises(CommandRefused) as refused:
        await source.write(VM, [Change("downtime_limit_ms", 400), setting])
    assert refused.value.problems[0].code == "migration_active"
    assert refused.value.problems[0].field == f"values.{setting.tunable}"
    assert sent(qemu, *SETTING) == []
    await source.write(VM, [Change("downtime_limit_ms", 400)])
    assert qemu.parameters["downtime-limit"] == 400


async def test_reading_asks_only_for_what_it_needs(qemu: FakeQemu, driver: FakeDriver) -> None:
    await driver.list_vms()
    qemu.commands.clear()
    await driver.read(VM, ["downtime_limit_ms", "announce_rounds"])
    assert [command for command, _ in qemu.commands] == ["query-migrate-parameters"]
    qemu.commands.clear()
    await driver.read(VM, ["iothread_poll_max_ns"])
    assert [command for command, _ in qemu.commands] == ["query-iothreads"]


async def test_what_cannot_change_is_asked_once(qemu: FakeQemu, driver: FakeDriver) -> None:
    await driver.vm_facts(VM)
    qemu.commands.clear()
    await driver.vm_facts(VM)
    assert sent(qemu, "query-version", "query-kvm", "migrate-set-parameters") == []


async def test_asking_for_compression_methods_changes_nothing(
    qemu: FakeQemu, driver: FakeDriver
) -> None:
    before = dict(qemu.parameters)
    facts = await driver.vm_facts(VM)
    assert facts.compression_methods == set(qemu.recording["multifd-compression"])
    assert qemu.parameters == before


async def test_what_an_old_qemu_does_not_have_says_so() -> None:
    driver = FakeDriver([fake_qemu(OLDEST)])
    facts = await driver.vm_facts(VM)
    assert facts.readings["dirty_limit"] == Reading(None, why_unknown="this QEMU does not have it")
    assert facts.dirty_ring_size_entries == 0  # TCG has none
