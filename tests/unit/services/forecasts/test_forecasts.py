"""Forecasts over fake QEMUs: what is measured, what is looked up, what is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from tests.support.simulated.fakes import OLDEST, VM
from tests.support.simulated.world import World, world
from vmtune.engine import dirty_probe
from vmtune.errors import Conflict, HostUnreachable, InvalidInput, NotFound
from vmtune.forecast.probe import WHOLE_SECONDS_MS
from vmtune.model.host.disks import BY_DEVICE, Disk, DiskAtHost
from vmtune.model.host.hardware import UNKNOWN_OFFER, Offer
from vmtune.model.host.page_contents import PageContents, PageSample
from vmtune.model.migration.record import MigrationState, Totals
from vmtune.services.forecasts.forecasts import Forecast, ForecastService

MIB = 1 << 20
WINDOWS_MS = (50, 60)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dirty_probe, "WINDOWS_MS", WINDOWS_MS)

    async def resident(*_: object) -> int:
        return 60 * MIB

    monkeypatch.setattr("vmtune.testing.fake.driver.FakeDriver.resident_bytes", resident)


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


@pytest.fixture
def forecasts(it: World) -> ForecastService:
    return ForecastService(it.store, it.plans)


def codes(found: Forecast) -> list[str]:
    (candidate,) = found.candidates
    return [note.code for note in candidate.notes]


def recorded(it: World, limit_mib: int, sent_mib: int, total_ms: int) -> None:
    """A completed migration from a to b."""
    wanted = {"max_bandwidth_bytes_per_s": limit_mib * MIB}
    record = it.store.migrations.begin(
        vm=VM, vm_name="vm", source="a", destination="b", wanted=wanted
    )
    totals = Totals(total_ms, 10, 1, sent_mib * MIB, 4)
    for state in (MigrationState.PREPARING, MigrationState.STARTING, MigrationState.ACTIVE):
        it.store.migrations.update(record.id, state=state)
    it.store.migrations.update(record.id, state=MigrationState.COMPLETED, totals=totals)


async def test_profiles_are_compared_by_one_measurement(
    it: World, forecasts: ForecastService
) -> None:
    it.source.ring.changed_mib_per_s = 60
    await it.profile("slow", max_bandwidth_bytes_per_s=50 * MIB, downtime_limit_ms=20)
    await it.profile("fast", max_bandwidth_bytes_per_s=500 * MIB, downtime_limit_ms=100)
    found = await forecasts.forecast(VM, "b", ["slow", "fast"])
    slow, fast = found.candidates
    assert slow.prospect is not None and fast.prospect is not None
    assert (slow.prospect.ends, fast.prospect.ends) == (False, True)
    assert it.source.ring.measurements == len(WINDOWS_MS)
    assert [round(p.after_ms) for p in found.probe.points] == list(WINDOWS_MS)
    assert found.probe.points[0].dirty_bytes == pytest.approx(60.5 * MIB * 0.05)


async def test_who_asks_again_soon_gets_the_same_measurement(
    it: World, forecasts: ForecastService
) -> None:
    one, other = await asyncio.gather(forecasts.forecast(VM, "b"), forecasts.forecast(VM, "b"))
    again = await forecasts.forecast(VM, "b", fresh=True)
    assert one.probe is other.probe is again.probe
    assert it.source.ring.measurements == len(WINDOWS_MS)


async def test_a_fresh_one_is_measured_anew(
    it: World, forecasts: ForecastService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vmtune.services.forecasts.forecasts._LEAST_BETWEEN_S", 0)
    one = await forecasts.forecast(VM, "b")
    assert (await forecasts.forecast(VM, "b")).probe is one.probe
    assert (await forecasts.forecast(VM, "b", fresh=True)).probe is not one.probe


async def test_what_earlier_migrations_sent_narrows_the_bounds(
    it: World, forecasts: ForecastService
) -> None:
    wanted = {"max_bandwidth_bytes_per_s": 100 * MIB}
    blind = await forecasts.forecast(VM, "b", values=wanted)
    recorded(it, limit_mib=100, sent_mib=300, total_ms=2900)
    known = await forecasts.forecast(VM, "b", values=wanted)
    assert codes(blind) == ["no_history"]
    assert codes(known) == []
    before, after = blind.candidates[0].throughput, known.candidates[0].throughput
    assert before is not None and after is not None
    assert before.bytes_per_s.low < 0.5 * after.bytes_per_s.low
    assert (before.records, after.records) == (0, 1)


async def test_a_path_that_nobody_knows_is_said(it: World, forecasts: ForecastService) -> None:
    wanted = {"max_bandwidth_bytes_per_s": 0}
    found = await forecasts.forecast(VM, "b", values=wanted)
    assert found.candidates[0].prospect is None
    assert codes(found) == ["throughput_not_known"]
    told = await forecasts.forecast(VM, "b", values=wanted, throughput_bytes_per_s=100 * MIB)
    assert told.candidates[0].prospect is not None
    assert codes(told) == []


async def test_the_copy_of_disks_is_part_of_the_time(
    it: World, forecasts: ForecastService, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = Disk(
        "disk0",
        path="/x",
        identity=f"{BY_DEVICE}1",
        capacity_bytes=4000 * MIB,
        allocated_bytes=1000 * MIB,
    )
    there = DiskAtHost(present=True, identity=f"{BY_DEVICE}2", folder=True)

    async def disks(*_: object) -> list[Disk]:
        return [taken]

    async def offer(*_: object) -> Offer:
        return replace(UNKNOWN_OFFER, disks={"disk0": there})

    monkeypatch.setattr("vmtune.testing.fake.driver.FakeDriver.disks", disks)
    monkeypatch.setattr("vmtune.testing.fake.driver.FakeDriver.offer", offer)
    wanted = {"max_bandwidth_bytes_per_s": 100 * MIB}
    without = await forecasts.forecast(VM, "b", values=wanted)
    found = await forecasts.forecast(VM, "b", values={**wanted, "copy_storage": True})
    (before,), (after,) = without.candidates, found.candidates
    assert before.copy is None
    assert after.copy is not None and after.copy.ms is not None
    assert after.copy.ms.likely == pytest.approx(10_000)
    assert before.prospect is not None and before.prospect.total_ms is not None
    assert after.prospect is not None and after.prospect.total_ms is not None
    assert after.prospect.total_ms.likely >= before.prospect.total_ms.likely + 9_999
    assert {"no_copy_history", "writes_not_included"} <= set(codes(found))


async def test_what_is_left_out_is_said(it: World, forecasts: ForecastService) -> None:
    steps = [{"when": {"after_s": 5}, "then": {"set": {"downtime_limit_ms": 900}}}]
    await it.profiles.create("stepped", {"xbzrle": True}, steps=steps)
    found = await forecasts.forecast(VM, "b", ["stepped"])
    assert {"steps_not_included", "compression_not_known"} <= set(codes(found))


async def test_what_pages_hold_is_asked_unless_that_is_off(
    it: World, forecasts: ForecastService, monkeypatch: pytest.MonkeyPatch
) -> None:
    every, written = PageContents(1000, 0.5, 0.25), PageContents(100, 0.1, 0.5)

    async def sampled(
        _: object, vm: UUID, memory_bytes: int, before: PageSample | None = None
    ) -> PageSample:
        return PageSample(written, written) if before else PageSample(every)

    monkeypatch.setattr("vmtune.testing.fake.driver.FakeDriver.sample_pages", sampled)
    wanted = {
        "max_bandwidth_bytes_per_s": 100 * MIB, "multifd": True, "multifd_compression": "zstd"
    }  # fmt: skip
    known = await forecasts.forecast(VM, "b", values=wanted)
    assert (known.probe.contents, known.probe.changed) == (every, written)
    assert "compression_not_known" not in codes(known)
    left_alone = ForecastService(it.store, it.plans, sample_guest_pages=False)
    unknown = await left_alone.forecast(VM, "b", values=wanted)
    assert unknown.probe.contents is None
    assert "compression_not_known" in codes(unknown)


async def test_a_guest_that_does_not_run_is_not_measured(
    it: World, forecasts: ForecastService
) -> None:
    it.source.status = "paused"
    with pytest.raises(Conflict, match="does not run"):
        await forecasts.forecast(VM, "b")
    assert it.source.ring.measurements == 0


async def test_a_guest_that_migrates_is_not_measured(it: World) -> None:
    facts = await it.drivers["a"].vm_facts(VM)
    with pytest.raises(Conflict, match="would disturb"):
        await dirty_probe.probe_dirtying(it.drivers["a"], replace(facts, migrating=True))
    assert it.source.ring.measurements == 0


@pytest.mark.parametrize(("destination", "kind"), [("nowhere", NotFound), ("a", InvalidInput)])
async def test_where_it_cannot_go(
    it: World, forecasts: ForecastService, destination: str, kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        await forecasts.forecast(VM, destination)
    assert it.source.ring.measurements == 0


async def test_an_old_qemu_measures_whole_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dirty_probe, "WHOLE_SECONDS_MS", WHOLE_SECONDS_MS[:1])
    async with world(tmp_path, OLDEST) as old:
        wanted = {"max_bandwidth_bytes_per_s": 100 * MIB}
        found = await ForecastService(old.store, old.plans).forecast(VM, "b", values=wanted)
        assert [point.after_ms for point in found.probe.points] == [1000]
        assert "short_times_not_measured" in codes(found)


async def test_memory_in_use_that_cannot_be_seen_widens_the_bounds(
    it: World, forecasts: ForecastService, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unseen(*_: object) -> None:
        return None

    it.source.ring.changed_mib_per_s = 1
    wanted = {"max_bandwidth_bytes_per_s": 100 * MIB}
    monkeypatch.setattr("vmtune.testing.fake.driver.FakeDriver.resident_bytes", unseen)
    found = await forecasts.forecast(VM, "b", values=wanted)
    assert "memory_in_use_not_known" in codes(found)
    (candidate,) = found.candidates
    assert candidate.prospect is not None and candidate.prospect.sent_bytes is not None
    assert candidate.prospect.sent_bytes.high > 2 * candidate.prospect.sent_bytes.low


async def test_a_host_that_does_not_answer_is_named_and_nothing_is_measured(
    it: World, forecasts: ForecastService, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = it.drivers["b"]

    async def gone(*_: object) -> object:
        raise HostUnreachable("b does not answer", field="host", remedy="look at it")

    for name in ("host_facts", "vm_facts", "list_vms", "offer"):
        monkeypatch.setattr(silent, name, gone)
    with pytest.raises(HostUnreachable, match="b does not answer"):
        await forecasts.forecast(VM, "b")
    assert it.source.ring.measurements == 0
