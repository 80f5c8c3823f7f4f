"""The guest of tests.perf.forecasts.dataset, which migrates from one real QEMU to the next."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.perf.forecasts import dataset
from tests.perf.forecasts.dataset import migrate_all
from tests.perf.forecasts.dataset_drawn import Drawn
from tests.perf.forecasts.dataset_guest import WanderingGuest, Went, wandering_guest
from tests.support.qemus.qemu import installed
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.scenario.migration import Scenario, VmShape
from vmtune.bench.model.scenario.parts import MIB
from vmtune.bench.run_folder import processes_of
from vmtune.engine import dirty_probe
from vmtune.lab.domain_xml import kvm_usable
from vmtune.model.tunables.tunable import Value
from vmtune.model.workload import Workload

WHY_NOT = installed().why_not or ("" if kvm_usable() else "this machine has no usable /dev/kvm")
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "never")

QUICK = Scenario(
    "test/quick",
    vm=VmShape(64 * MIB, 1),
    workload=Workload(16 * MIB, dirty_mb_per_s=8, beat_ms=5, cpu_ring=3),
    warmup_s=1,
    max_seconds=60,
    max_iterations=10_000,
)


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder with a path short enough for sockets, empty afterwards."""
    with tempfile.TemporaryDirectory(prefix="vt-") as name:
        yield Path(name) / "run"
        assert not (Path(name) / "run").exists()
        assert processes_of(Path(name)) == []


def with_values(**values: Value) -> Scenario:
    return replace(QUICK, values={"max_bandwidth_bytes_per_s": 64 * MIB, **values})


async def test_it_moves_on_and_nothing_of_one_migration_stays_for_the_next(base: Path) -> None:
    async with wandering_guest(base, QUICK) as guest:
        channels = await guest.migrate(with_values(multifd=True, multifd_channels=2))
        endless = replace(with_values(max_bandwidth_bytes_per_s=4 * MIB), max_seconds=1)
        given_up = await guest.migrate(endless)
        plain = await guest.migrate(with_values())
    states = [went.verdict.state for went in (channels, given_up, plain)]
    assert states == [RunState.COMPLETED, RunState.NOT_CONVERGED, RunState.COMPLETED]
    assert any(sample.multifd_bytes for sample in channels.record.samples)
    assert not any(sample.multifd_bytes for sample in plain.record.samples)
    for went in (channels, plain):
        record = went.record
        assert record.totals is not None and record.migration_ms is not None
        assert all(silence.at_ms >= -1000 for silence in record.silences)
        assert max(silence.duration_ms for silence in record.silences) > 0


async def test_one_probe_serves_all_and_a_killed_guest_is_started_again(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dirty_probe, "WINDOWS_MS", (64, 256))
    monkeypatch.setattr(dirty_probe, "WHOLE_SECONDS_MS", (1000,))
    found: list[dict[str, Any]] = []  # any: JSON

    def killed_after_the_first(one: dict[str, Any]) -> None:  # any: JSON
        found.append(one)
        if len(found) == 1:
            for pid in processes_of(base):
                os.kill(pid, signal.SIGKILL)

    group = [Drawn(number, "stock", "in order", with_values()) for number in range(4)]
    await migrate_all(group, base, None, killed_after_the_first)
    assert [one["number"] for one in found] == [0, 1, 2, 3]
    states = [one["state"] for one in found]
    assert states[0] == states[2] == states[3] == "completed"
    assert states[1] in ("not run", "failed")
    probes = [one["probe"] for one in found if one["state"] == "completed"]
    assert probes[0]["number"] == 0
    assert all(probe == probes[0] for probe in probes)


async def test_one_that_hangs_does_not_hold_up_the_rest(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dirty_probe, "WINDOWS_MS", (64, 256))
    monkeypatch.setattr(dirty_probe, "WHOLE_SECONDS_MS", (1000,))
    monkeypatch.setattr(dataset, "_WITHIN_S", 10)
    migrate, hung = WanderingGuest.migrate, []

    async def hangs_once(guest: WanderingGuest, scenario: Scenario) -> Went:
        if not hung:
            hung.append(scenario)
            await asyncio.Event().wait()
        return await migrate(guest, scenario)

    monkeypatch.setattr(WanderingGuest, "migrate", hangs_once)
    found: list[dict[str, Any]] = []  # any: JSON
    group = [Drawn(number, "stock", "in order", with_values()) for number in range(2)]
    await migrate_all(group, base, None, found.append)
    assert [one["state"] for one in found] == ["not run", "completed"]
    assert found[0]["failure"] == "it took more than 10 s"
