"""Migrations between QEMUs without libvirt, in ways that real ones cannot be made to go."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import Any

import pytest

from tests.support.simulated.fakes import NEWEST, OLDEST, VM, fake_pair, fake_qemu, only
from vmtune.errors import (
    CommandRefused,
    Conflict,
    MonitorBusy,
    OutcomeUnknown,
    SetupError,
    TooLate,
)
from vmtune.hypervisor.protocol import DriverEvent, EventKind, MigrateOrder
from vmtune.hypervisor.qmp import arrival, migrations
from vmtune.model.migration.postcopy_figures import PostcopyFigures
from vmtune.model.migration.prior import PriorSettings
from vmtune.model.migration.record import ABORT_WAITS, QemuStatus
from vmtune.model.plan.changes import Change
from vmtune.model.tunables.tunable import Value
from vmtune.testing.fake.driver import FakeDriver
from vmtune.testing.fake.migration import FakeMigration
from vmtune.testing.fake.qemu import FakeQemu, Fault, FaultKind

TUNED: dict[str, Value] = {
    "multifd": True,
    "multifd_channels": 4,
    "multifd_compression": "zstd",
    "auto_converge": True,
    "cpu_throttle_initial_percent": 30,
}


def order(values: dict[str, Value] | None = None) -> MigrateOrder:
    return MigrateOrder(VM, values or TUNED, {"announce_rounds": 9})


async def test_each_side_gets_what_is_its() -> None:
    source, destination = fake_pair(paced=True)
    here, there = only(source), only(destination)
    await source.start_migration(order(), destination)
    for qemu in (here, there):
        assert qemu.capabilities["multifd"]
        assert qemu.parameters["multifd-channels"] == 4
        assert qemu.parameters["multifd-compression"] == "zstd"
        assert qemu.capabilities["events"]
    assert (here.capabilities["auto-converge"], there.capabilities["auto-converge"]) == (
        True,
        False,
    )
    assert (here.parameters["announce-rounds"], there.parameters["announce-rounds"]) == (5, 9)
    assert there.parameters["cpu-throttle-initial"] == 20
    await source.close()


async def test_the_destination_is_ready_before_the_source_starts() -> None:
    source, destination = fake_pair(paced=True)
    await source.start_migration(order(), destination)
    commands = [command for command, _ in only(destination).commands]
    assert commands.index("migrate-set-capabilities") < commands.index("migrate-incoming")
    await source.close()


SWITCHED = ("return-path", "pause-before-switchover", "background-snapshot")


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
async def test_the_destination_confirms_and_what_no_tunable_names_is_off(version: str) -> None:
    """Without a return path the source completes without the destination's word."""
    source, destination = fake_pair(version, paced=True)
    for qemu in (only(source), only(destination)):
        qemu.capabilities |= {"pause-before-switchover": True, "return-path": False}
    await source.start_migration(order(), destination)
    for qemu in (only(source), only(destination)):
        assert [qemu.capabilities[name] for name in SWITCHED] == [True, False, False]
    only(source).outgoing.status = QemuStatus.COMPLETED
    await source.reset_after_migration(VM)
    assert [only(source).capabilities[name] for name in SWITCHED] == [False, True, False]
    await source.close()


async def test_a_qemu_with_colo_is_not_migrated() -> None:
    source, destination = fake_pair(paced=True)
    only(source).capabilities["x-colo"] = True
    with pytest.raises(CommandRefused, match="x-colo is on") as refused:
        await source.start_migration(order(), destination)
    assert refused.value.problems[0].code == "colo_is_on"
    assert not only(source).outgoing.uri
    await source.close()


async def test_a_cancelled_one_that_qemu_calls_failed_is_cancelled() -> None:
    source, destination = fake_pair(paced=True)
    here = only(source)
    here.fails_when_cancelled = True
    handle = await source.start_migration(order(), destination)
    await source.abort_migration(VM)
    with pytest.raises(CommandRefused) as refused:
        await handle.wait()
    assert refused.value.problems[0].code == "migration_cancelled"
    assert (await source.migration(VM)).status is QemuStatus.CANCELLED
    await source.close()


def told(qemu: FakeQemu, *commands: str) -> list[str]:
    return [command for command, _ in qemu.commands if command in commands]


async def test_an_abort_that_comes_too_late_leaves_the_guest_running_there() -> None:
    """QEMU takes the cancel, and completes."""
    source, destination = fake_pair(paced=True)
    here, there = only(source), only(destination)
    handle = await source.start_migration(order(), destination)
    here.completes_when_cancelled = True
    await source.abort_migration(VM)
    assert told(there, "stop") == ["stop"]
    while here.outgoing.status.running:
        here.step()
    there.status = "inmigrate"  # for a moment after its word
    there.commands.clear()
    for _ in range(200):
        await asyncio.sleep(0.01)
        if len(told(there, "query-status")) > 2:
            break
    there.status = "paused"
    await handle.wait()
    assert (here.status, there.status) == ("postmigrate", "running")
    await source.close()


@pytest.mark.parametrize("stood", ["running", "paused"])
async def test_an_aborted_guest_that_has_arrived_runs_on_one_host(stood: str) -> None:
    """QEMU cancels while it waits for the word of a destination that has all of it."""
    source, destination = fake_pair(paced=True)
    here, there = only(source), only(destination)
    here.status = stood
    handle = await source.start_migration(order(), destination)
    await source.abort_migration(VM)
    assert not there.autostart
    there.status, there.arrived = "paused", True
    with pytest.raises(CommandRefused) as refused:
        await handle.wait()
    assert refused.value.problems[0].code == "migration_cancelled"
    assert (here.status, there.alive) == (stood, False)
    await source.close()


@pytest.mark.parametrize(
    ("stands", "cancels"), [("running", True), ("paused", True), ("finish-migrate", False)]
)
async def test_a_destination_that_cannot_be_told_is_waited_for_at_the_switchover(
    stands: str, cancels: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrival, "_HOLDS_WITHIN_S", 0.01)
    source, destination = fake_pair(paced=True)
    here, there = only(source), only(destination)
    await source.start_migration(order(), destination)
    here.status = stands
    there.faults.append(Fault(FaultKind.HANG, "query-status"))
    with contextlib.nullcontext() if cancels else pytest.raises(TooLate, match="on both hosts"):
        await source.abort_migration(VM)
    assert bool(told(here, "migrate_cancel")) is cancels
    await source.close()


async def test_another_s_migration_is_not_aborted_at_the_switchover() -> None:
    """After a restart of the service its destination is not known."""
    source, _ = fake_pair(paced=True)
    here = only(source)
    here.outgoing = FakeMigration("tcp:b:1", 1 << 20)
    here.outgoing.begin(early_completed=False)
    here.status = "finish-migrate"
    with pytest.raises(TooLate):
        await source.abort_migration(VM)
    here.status = "running"
    await source.abort_migration(VM)
    assert told(here, "migrate_cancel") == ["migrate_cancel"]
    await source.close()


async def test_one_that_fails_by_itself_has_failed() -> None:
    source, destination = fake_pair(paced=True)
    handle = await source.start_migration(order(), destination)
    only(source).fail("Channel error: Input/output error")
    with pytest.raises(CommandRefused) as refused:
        await handle.wait()
    assert refused.value.problems[0].code == "migration_failed"
    assert (await source.migration(VM)).status is QemuStatus.FAILED
    await source.close()


async def test_one_that_is_failing_cannot_be_aborted_any_more() -> None:
    source, destination = fake_pair(paced=True)
    await source.start_migration(order(), destination)
    only(source).outgoing.status = QemuStatus.FAILING
    with pytest.raises(TooLate, match="has failed"):
        await source.abort_migration(VM)
    assert "migrate_cancel" not in [command for command, _ in only(source).commands]
    await source.close()


@pytest.mark.parametrize("side", ["source", "destination"])
@pytest.mark.parametrize("command", ["migrate-set-capabilities", "migrate-set-parameters"])
async def test_a_refusal_puts_both_sides_back_and_is_told(side: str, command: str) -> None:
    source, destination = fake_pair()
    await source.write(VM, [Change("auto_converge", True), Change("multifd_channels", 7)])
    drivers = {"source": source, "destination": destination}
    before = [(await d.vm_facts(VM)).readings for d in drivers.values()]
    only(drivers[side]).faults = [Fault(FaultKind.REFUSE, command, text="no, says QEMU")]
    with pytest.raises(CommandRefused, match=f"QEMU on the {side} refused: no, says QEMU"):
        await source.start_migration(order(), destination)
    assert [(await d.vm_facts(VM)).readings for d in drivers.values()] == before
    assert "migrate" not in [c for c, _ in only(source).commands]


@pytest.mark.parametrize(("driver", "command"), [(1, "migrate-incoming"), (0, "migrate")])
async def test_a_start_that_is_refused_puts_both_sides_back(driver: int, command: str) -> None:
    drivers = fake_pair()
    before = [(await d.vm_facts(VM)).readings for d in drivers]
    only(drivers[driver]).faults = [Fault(FaultKind.REFUSE, command)]
    with pytest.raises(CommandRefused, match="refused by the test"):
        await drivers[0].start_migration(order(), drivers[1])
    assert [(await d.vm_facts(VM)).readings for d in drivers] == before


async def test_a_connection_lost_at_the_start_is_unknown() -> None:
    source, destination = fake_pair(paced=True)
    await source.vm_facts(VM)
    only(source).faults = [Fault(FaultKind.LOSE_AFTER, "migrate")]
    with pytest.raises(OutcomeUnknown):
        await source.start_migration(order(), destination)
    assert (await source.migration(VM)).status.running  # it had begun
    assert only(destination).capabilities["multifd"]  # so nothing was put back


async def test_a_connection_lost_on_the_way_is_unknown() -> None:
    source, destination = fake_pair(paced=True)
    handle = await source.start_migration(order(), destination)
    only(source).lose()
    with pytest.raises(OutcomeUnknown):
        await handle.wait()
    assert handle.done
    assert (await source.migration(VM)).status.running


async def test_another_qemu_behind_the_socket_is_not_taken_for_the_first() -> None:
    source, destination = fake_pair(paced=True)
    handle = await source.start_migration(order(), destination)
    qemu = only(source)
    (link,) = (q.monitor for q in source._folder.qemus)
    # Connected anew to a QEMU that was started anew, before the follower looked.
    link.connections += 1
    qemu.outgoing = FakeMigration()
    qemu.notify("MIGRATION", {"status": "active"})
    with pytest.raises(OutcomeUnknown):
        await handle.wait()


async def test_letting_go_leaves_the_end_unknown_and_the_migration_running() -> None:
    source, destination = fake_pair(paced=True)
    handle = await source.start_migration(order(), destination)
    waiting = asyncio.ensure_future(handle.wait())
    await asyncio.sleep(0)
    await source.close()
    with pytest.raises(OutcomeUnknown, match="let go"):
        await waiting
    assert only(source).outgoing.status.running


async def test_completed_without_figures_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """QEMU 7.2 says completed before it has computed the times."""
    source, destination = fake_pair(OLDEST)
    handle = await source.start_migration(order(), destination)
    times: list[int] = []
    reply = FakeMigration.reply

    def noted(migration: FakeMigration) -> dict[str, Any]:
        answer = reply(migration)
        if answer["status"] == "completed":
            times.append(answer["total-time"])
        return answer

    monkeypatch.setattr(FakeMigration, "reply", noted)
    await handle.wait()
    assert times[0] == 0
    assert times[-1] > 0


async def test_what_the_early_reply_says_is_not_final() -> None:
    source, destination = fake_pair(OLDEST, paced=True)
    handle = await source.start_migration(order(), destination)
    while only(source).outgoing.status is not QemuStatus.COMPLETED:
        only(source).step()
    snapshots = [await source.migration(VM) for _ in range(2)]
    assert [s.final for s in snapshots] == [False, True]
    await handle.wait()


async def test_a_failure_has_qemus_reason() -> None:
    source, destination = fake_pair(paced=True)
    handle = await source.start_migration(order(), destination)
    only(source).fail("Unable to write to socket: Connection reset by peer")
    with pytest.raises(CommandRefused, match="Connection reset by peer") as failed:
        await handle.wait()
    assert failed.value.problems[0].code == "migration_failed"


async def test_postcopy_cannot_be_aborted() -> None:
    source, destination = fake_pair(OLDEST, paced=True)
    await source.start_migration(order({"postcopy": True}), destination)
    only(source).step()
    only(source).answer("migrate-start-postcopy", {})
    with pytest.raises(TooLate, match="runs on the destination"):
        await source.abort_migration(VM)
    await source.close()


async def test_the_devices_of_a_guest_on_its_way_are_post_copy_already() -> None:
    """Since QEMU 10.2 it says so by a status of its own."""
    source, destination = fake_pair(paced=True)
    await source.start_migration(order({"postcopy": True}), destination)
    only(source).outgoing.status = QemuStatus.POSTCOPY_DEVICE
    with pytest.raises(TooLate, match="runs on the destination"):
        await source.abort_migration(VM)
    assert "migrate_cancel" not in [command for command, _ in only(source).commands]
    await source.close()


async def test_an_abort_that_qemu_does_not_take_says_what_it_waits_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At the switchover its main loop is held up while the link is down."""
    monkeypatch.setattr(migrations, "_HELD_UP_AFTER_S", 0.05)
    source, destination = fake_pair(paced=True)
    await source.start_migration(order(), destination)
    only(source).faults = [Fault(FaultKind.HANG, "query-migrate")]
    with pytest.raises(OutcomeUnknown, match="15 minutes") as waits:
        await source.abort_migration(VM)
    assert waits.value.problems[0].code == ABORT_WAITS
    assert "migrate_cancel" not in [command for command, _ in only(source).commands]
    await source.close()


async def test_status_and_iterations_are_told_to_every_watcher() -> None:
    source, destination = fake_pair(NEWEST)
    watchers = [source.events(), source.events()]
    await (await source.start_migration(order(), destination)).wait()
    await source.close()
    heard: list[list[DriverEvent]] = [[e async for e in w] for w in watchers]
    assert heard[0] == heard[1]
    statuses = [e.detail for e in heard[0] if e.kind is EventKind.MIGRATION_STATUS]
    assert statuses == ["setup", "active", "device", "completed"]
    iterations = [e.detail for e in heard[0] if e.kind is EventKind.MIGRATION_ITERATION]
    assert iterations == ["1", "2", "3"]


async def test_after_a_restart_what_was_noted_is_restored() -> None:
    """Also what was set by the operator and not by vmtune."""
    source, destination = fake_pair(paced=True)
    qemu, waiting = only(source), only(destination)
    qemu.parameters["downtime-limit"] = waiting.parameters["multifd-channels"] = 7
    before = [(dict(one.parameters), dict(one.capabilities)) for one in (qemu, waiting)]
    noted: list[PriorSettings] = []

    async def note(prior: PriorSettings) -> None:
        assert [(one.parameters, one.capabilities) for one in (qemu, waiting)] == before
        noted.append(prior)

    wanted: dict[str, Value] = {**TUNED, "downtime_limit_ms": 450}
    await source.start_migration(replace(order(wanted), note_prior=note), destination)
    assert waiting.parameters["multifd-channels"] == 4
    qemu.outgoing.status = QemuStatus.FAILED
    for name, one, prior in (
        ("a", qemu, noted[0].source),
        ("b", waiting, noted[0].destination),
    ):
        anew = FakeDriver([one], name)
        await anew.reset_after_migration(VM, prior)
        await anew.close()
    for one, (parameters, capabilities) in zip((qemu, waiting), before, strict=True):
        assert one.parameters == parameters
        assert one.capabilities == {**capabilities, "events": True}
    await source.close()


async def test_where_nothing_was_noted_nothing_is_set() -> None:
    """It may have ended before it was prepared: what is set is the operator's."""
    source, _ = fake_pair()
    only(source).parameters["downtime-limit"] = 450
    await source.reset_after_migration(VM)
    assert only(source).parameters["downtime-limit"] == 450
    await source.close()


async def test_what_cannot_be_noted_is_not_set() -> None:
    source, destination = fake_pair()
    before = dict(only(source).capabilities), dict(only(destination).capabilities)

    async def note(_: PriorSettings) -> None:
        raise SetupError("the disk is full")

    with pytest.raises(SetupError):
        await source.start_migration(replace(order(), note_prior=note), destination)
    assert (only(source).capabilities, only(destination).capabilities) == before


async def test_one_that_another_migrates_is_not_touched() -> None:
    source, destination = fake_pair(paced=True)
    handle = await source.start_migration(order(), destination)
    before = dict(only(source).parameters)
    with pytest.raises(Conflict, match="already"):
        await source.start_migration(order({"downtime_limit_ms": 7}), destination)
    assert only(source).parameters == before
    assert not handle.done
    await source.close()


@pytest.mark.parametrize(("postcopy", "counts"), [(True, True), (False, False)])
async def test_what_post_copy_costs_is_counted_where_it_may_come(
    postcopy: bool, counts: bool
) -> None:
    source, destination = fake_pair(paced=True)
    await source.start_migration(order({"postcopy": postcopy}), destination)
    assert only(destination).capabilities["postcopy-blocktime"] is counts
    assert not only(source).capabilities["postcopy-blocktime"]
    only(source).outgoing.status = QemuStatus.COMPLETED
    only(destination).arrived = True
    figures = await destination.postcopy_figures(VM)
    assert figures == (PostcopyFigures(9, (9,)) if counts else None)
    await destination.reset_after_migration(VM)
    assert not only(destination).capabilities["postcopy-blocktime"]
    await source.close()


async def test_capabilities_that_something_overwrites_are_seen_so() -> None:
    source, destination = fake_pair(paced=True, like_libvirt=True)
    await source.start_migration(order(), destination)
    assert (await source.read(VM, ["multifd"]))["multifd"].value is False
    await source.close()


async def test_without_a_waiting_qemu_nothing_is_begun() -> None:
    source, _ = fake_pair()
    elsewhere = FakeDriver([fake_qemu()], "b")
    with pytest.raises(CommandRefused) as refused:
        await source.start_migration(order(), elsewhere)
    assert refused.value.problems[0].code == "no_incoming_qemu"
    assert "-incoming defer" in refused.value.problems[0].remedy
    assert not only(source).capabilities["multifd"]


async def test_a_taken_monitor_on_the_destination_is_told() -> None:
    source, destination = fake_pair()
    only(destination).taken = True
    with pytest.raises(MonitorBusy):
        await source.start_migration(order(), destination)
