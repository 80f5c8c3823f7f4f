"""Scans for drift over fake QEMUs: what is found, what is left alone, and when."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from tests.support.simulated.fakes import VM, fake_qemu
from tests.support.simulated.world import World, world
from vmtune.errors import NotFound
from vmtune.model.host.inventory import EventTopic
from vmtune.model.plan.drift import DriftScan, ScanResult
from vmtune.model.plan.tuning_state import TuningState
from vmtune.model.profile import Target
from vmtune.services.tuning import drift as scans
from vmtune.services.tuning.drift import DriftService
from vmtune.testing.fake.qemu import Fault, FaultKind

SECOND = UUID("5f5b1f5e-6c0e-4c8f-9d1a-0d9f6a1c7e11")
THIRD = UUID("5f5b1f5e-6c0e-4c8f-9d1a-0d9f6a1c7e12")


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


@pytest.fixture
async def drift(it: World) -> AsyncIterator[DriftService]:
    """Scans when asked to; :meth:`start` is the test's."""
    service = DriftService(it.store, it.bus, it.hosts, it.plans, 0)
    yield service
    await service.close()


def state(it: World, vm: UUID = VM) -> TuningState | None:
    found = it.store.tunings.get(vm)
    return found.state if found else None


def told(it: World) -> list[object]:
    events = it.store.events.since(0)
    return [e.data.get("tuning_state") for e in events if e.topic is EventTopic.VM]


async def until_scanned(drift: DriftService, host: str) -> None:
    async with asyncio.timeout(60):
        while (await drift.get(host)).pending:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.01)


async def test_a_vm_drifts_and_is_tuned_again_and_each_is_told_once(
    it: World, drift: DriftService
) -> None:
    await it.profile(downtime_limit_ms=700, multifd=True)
    await it.applications.apply(VM, "p")
    found = await drift.scan("a")
    assert (found.checked, found.drifted, found.problems) == (1, 0, ())
    it.source.parameters["downtime-limit"] = 5
    for _ in range(2):
        found = await drift.scan("a")
        assert (found.checked, found.drifted) == (1, 1)
    (listed,) = (await drift.drifts(None, None, 10)).items
    assert (listed.vm.uuid, listed.tuning.differing) == (VM, ("downtime_limit_ms",))
    it.source.parameters["downtime-limit"] = 700
    assert (await drift.scan("a")).drifted == 0
    assert told(it) == ["drifted", "tuned"]
    assert (await drift.drifts(None, None, 10)).items == ()


async def test_it_finds_what_a_verification_finds(it: World, drift: DriftService) -> None:
    await it.profile(downtime_limit_ms=700, multifd=True, iothread_poll_max_ns=1000)
    await it.applications.apply(VM, "p")
    it.source.parameters["downtime-limit"] = 5
    await drift.scan("a")
    by_scan = it.store.tunings.get(VM)
    await it.applications.verify(VM)
    by_verification = it.store.tunings.get(VM)
    assert by_scan is not None
    assert by_verification is not None
    assert by_scan.differing == by_verification.differing == ("downtime_limit_ms",)
    assert by_scan.since == by_verification.since


async def test_only_what_is_wanted_of_a_vm_is_asked_of_its_qemu(
    it: World, drift: DriftService
) -> None:
    await drift.scan("a")
    it.source.commands.clear()
    found = await drift.scan("a")
    assert (found.checked, found.without_profile) == (0, 1)
    assert {command for command, _ in it.source.commands} <= {"query-status"}
    await it.profile(downtime_limit_ms=700)
    assigned = await it.assignments.add(Target.DEFAULT, "", "p")
    found = await drift.scan("a")
    assert (found.checked, found.drifted) == (1, 0), "nothing was applied: it is untuned"
    assert state(it) is TuningState.UNTUNED
    await it.assignments.remove(assigned.id)
    assert (await drift.scan("a")).without_profile == 1
    assert state(it) is None


async def test_nothing_is_written_to_a_qemu(it: World, drift: DriftService) -> None:
    await it.profile(downtime_limit_ms=700)
    await it.applications.apply(VM, "p")
    it.source.parameters["downtime-limit"] = 5
    it.source.commands.clear()
    await drift.scan("a")
    said = {command for command, _ in it.source.commands}
    assert said
    assert all(command.startswith(("query-", "qom-list", "qom-get")) for command in said), said


async def test_what_is_worked_on_is_left_out(it: World, drift: DriftService) -> None:
    await it.profile(downtime_limit_ms=700)
    await it.applications.apply(VM, "p")
    it.source.parameters["downtime-limit"] = 5
    begun = it.store.migrations.begin(vm=VM, vm_name="vm", source="a", destination="b")
    found = await drift.scan("a")
    assert (found.checked, found.skipped) == (0, 1)
    assert state(it) is TuningState.TUNED
    assert it.store.migrations.get(begun.id).state == "queued"


async def test_a_vm_that_cannot_be_asked_stands_as_it_stood(
    it: World, drift: DriftService, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, busy = it.drivers["a"], it.source
    for number, uuid in enumerate((SECOND, THIRD), 1):
        driver.fakes[Path(f"/fake/a/{number}.sock")] = fake_qemu(uuid=uuid)
    await it.profile(downtime_limit_ms=700)
    for uuid in (VM, SECOND, THIRD):
        await it.applications.apply(uuid, "p")
    busy.faults.append(Fault(FaultKind.REFUSE, "query-migrate-parameters"))
    silent = driver.fakes[Path("/fake/a/2.sock")]
    silent.faults.append(Fault(FaultKind.HANG, "query-migrate-parameters"))
    monkeypatch.setattr(scans, "_VM_WITHIN_S", 2.0)
    found = await drift.scan("a")
    assert (found.checked, found.failed, found.drifted) == (1, 2, 0)
    assert {problem.field for problem in found.problems} == {f"vms.{VM}", f"vms.{THIRD}"}
    assert all(problem.message for problem in found.problems)
    assert state(it) is TuningState.TUNED


async def test_two_selectors_that_tie_are_told_and_the_others_looked_at(
    it: World, drift: DriftService, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = it.drivers["a"]
    driver.fakes[Path("/fake/a/1.sock")] = fake_qemu(uuid=SECOND)
    await it.hosts.list_vms("a")
    for name in ("p", "q"):
        await it.profile(name, downtime_limit_ms=700)
    host = it.store.assignments.add(Target.HOST, "a", "p")
    tied = [  # which is refused when it is written, and was not always
        replace(host, id=n, target=Target.SELECTOR, key=key, profile=profile)
        for n, key, profile in ((7, "tier=1", "p"), (8, "zone=1", "q"))
    ]
    monkeypatch.setattr(it.store.assignments, "all", lambda: (host, *tied))
    it.store.vms.set_labels(SECOND, {"tier": "1", "zone": "1"})
    found = await drift.scan("a")
    assert (found.checked, found.failed) == (1, 1)
    assert found.problems[0].field == f"vms.{SECOND}"


async def test_a_silent_host_is_noted_and_one_that_is_gone_refused(
    it: World, drift: DriftService
) -> None:
    it.drivers["a"].reachable = False
    found = await drift.scan("a")
    assert (found.checked, [p.code for p in found.problems]) == (0, ["host_unreachable"])
    noted = await drift.get("a")
    assert noted.result == found
    with pytest.raises(NotFound):
        await drift.scan("gone")


async def test_asked_for_hosts_are_scanned_and_others_are_not(
    it: World, drift: DriftService
) -> None:
    await it.profile(downtime_limit_ms=700)
    await it.applications.apply(VM, "p")
    await drift.start()
    assert await drift.ask(["a", "gone"]) == ("a",)
    await until_scanned(drift, "a")
    assert (await drift.get("b")).result is None
    assert set(await drift.ask()) == {"a", "b"}
    await until_scanned(drift, "b")


async def test_hosts_of_other_services_are_left_to_them(
    it: World, drift: DriftService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(it.hosts, "drives", lambda name: name == "b")
    await drift.start()
    await drift.ask()
    await until_scanned(drift, "b")
    assert (await drift.get("a")).pending


async def test_the_schedule_leaves_a_new_host_to_itself_at_first(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scans, "_LOOK_S", 0.01)
    service = DriftService(it.store, it.bus, it.hosts, it.plans, 900)
    await service.start()
    await asyncio.sleep(0.1)
    assert (await service.get("a")).result is None
    await service.close()
    monkeypatch.setattr(scans, "_REST_S", 0.0)
    service = DriftService(it.store, it.bus, it.hosts, it.plans, 900)
    await service.start()
    try:
        async with asyncio.timeout(60):
            while (await service.get("b")).result is None:  # noqa: ASYNC110 - it has no event
                await asyncio.sleep(0.01)
    finally:
        await service.close()


async def test_a_scan_that_ends_while_the_due_ones_are_read_is_not_made_again(
    it: World, drift: DriftService, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    scan, due = drift.scan, it.store.drift_scans.due
    read, ended = threading.Event(), threading.Event()

    async def counted(host: str, *, calm: bool = False) -> ScanResult:
        made.append(host)
        await asyncio.to_thread(read.wait, 10)
        return await scan(host, calm=calm)

    def slow(interval_s: int) -> Sequence[DriftScan]:
        found = due(interval_s)
        if made and not read.is_set():
            read.set()
            ended.wait(10)  # what was read is now out of date
        return found

    monkeypatch.setattr(drift, "scan", counted)
    monkeypatch.setattr(it.store.drift_scans, "due", slow)
    monkeypatch.setattr(scans, "_LOOK_S", 0.01)
    await drift.start()
    await drift.ask(["a"])
    await until_scanned(drift, "a")
    async with asyncio.timeout(60):
        while drift._scans:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.01)
    ended.set()
    await asyncio.sleep(0.2)
    assert made == ["a"]
