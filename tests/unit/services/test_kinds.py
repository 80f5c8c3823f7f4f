"""Runs and campaigns of blocks and of boots, through the services: without QEMUs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.benchmarks.bench_runs import (
    FakeRunner,
    block_record,
    boot_record,
    fio_json,
    srcu_record,
)
from tests.support.stores.databases import empty_database
from tests.unit.bench.services.campaigns.test_campaigns import Bench, make, started
from vmtune.bench.block.order import BlockOrder
from vmtune.bench.boot.order import BootOrder
from vmtune.bench.catalogue import CATALOGUE, why_not_alone
from vmtune.bench.files import exchange
from vmtune.bench.guestperf.exporting import export_report
from vmtune.bench.migration.order import DirectTestbed
from vmtune.bench.model.campaign.matrix import read_campaign
from vmtune.bench.model.campaign.record import CampaignState
from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.metrics.table import METRICS_OF
from vmtune.bench.model.runs.run import Run, RunRecord, RunState, Testbed
from vmtune.bench.model.runs.series import Series, apart, joined
from vmtune.bench.model.scenario.block import BlockScenario, to_json
from vmtune.bench.model.scenario.boot import BootScenario
from vmtune.bench.model.scenario.guest_driver import GuestDriver
from vmtune.bench.model.scenario.matrix_cells import BlockCell, IoPattern, NodeKind
from vmtune.bench.plots.plot import plot_run
from vmtune.bench.reduce import reduce
from vmtune.bench.report.tables import terminal_tables
from vmtune.bench.services.comparisons.arms import expected_differences
from vmtune.bench.services.comparisons.comparisons import Asked, ComparisonService
from vmtune.bench.services.runs.files import whole_run
from vmtune.bench.services.runs.runs import RunRequest
from vmtune.bench.srcu.order import SrcuOrder
from vmtune.errors import Blocked, InvalidInput
from vmtune.stats.model import Verdict
from vmtune.storage import Store
from vmtune.storage.repositories.bench.run_rows import RunFilter

BLOCK = "block/null-co-randread-4k-64-1"
BOOT = "boot/project-seabios-tcg-1-512m"


@pytest.fixture(autouse=True)
def fio(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A fio that only says its version."""
    program = tmp_path / "bin" / "fio"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho fio-3.33\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    url = empty_database(tmp_path / "runs.db")
    with Store.open(url) as opened:
        yield opened


@pytest.fixture
async def bench(store: Store, tmp_path: Path) -> AsyncIterator[Bench]:
    async with started(make(store, tmp_path, FakeRunner())) as made:
        yield made


async def ended(bench: Bench, request: RunRequest) -> Run:
    queued = await bench.it.runs.start(request)
    return await bench.it.ended(queued.run)


async def test_a_run_of_blocks_is_recorded_whole(bench: Bench) -> None:
    done = await ended(bench, RunRequest(BLOCK))
    assert (done.state, done.kind) == (RunState.COMPLETED, ScenarioKind.BLOCK)
    (order,) = bench.it.runner.orders
    assert isinstance(order, BlockOrder)
    assert order.scenario == CATALOGUE[BLOCK]
    assert done.metrics["iops"] == 30_001
    assert set(done.metrics) == set(METRICS_OF[ScenarioKind.BLOCK])
    record = bench.it.store.runs.record(done.id)
    assert record is not None and record.block == block_record(1)
    assert record.block.fio == fio_json(30_001)
    assert done.environment["fio"] == "fio-3.33"
    assert not {"network", "accelerator"} & done.environment.keys()
    details = await bench.it.runs.get(done.id)
    assert details.lengths[Series.PROCESSES] == 5
    assert details.lengths[Series.SAMPLES] == 0
    assert details.head is not None and details.head.block is not None
    assert details.head.block.processes == ()


async def test_disks_are_loaded_by_a_guest_without_fio(store: Store, tmp_path: Path) -> None:
    for kvm in (True, False):
        async with started(make(store, tmp_path, FakeRunner(), kvm=kvm)) as made:
            cell = BlockCell(NodeKind.NULL, IoPattern.RANDREAD, queues=2)
            scenario = BlockScenario(cell, driver=GuestDriver(vcpus=2))
            queued = await made.it.runs.start(RunRequest(to_json(scenario)))
            done = await made.it.ended(queued.run)
            assert done.state is RunState.COMPLETED
            (order,) = made.it.runner.orders
            assert isinstance(order, BlockOrder)
            assert (order.kvm, order.scenario) == (kvm, scenario)
            assert done.environment["accelerator"] == ("kvm" if kvm else "tcg")
            assert "fio" not in done.environment
            chosen = RunRequest(to_json(scenario), kvm=False)
            assert (await made.it.ended((await made.it.runs.start(chosen)).run)).state.ended
            (_, order) = made.it.runner.orders
            assert isinstance(order, BlockOrder) and not order.kvm


async def test_a_boot_is_recorded_whole(bench: Bench) -> None:
    done = await ended(bench, RunRequest(BOOT, values={}))
    assert (done.state, done.kind) == (RunState.COMPLETED, ScenarioKind.BOOT)
    (order,) = bench.it.runner.orders
    assert isinstance(order, BootOrder)
    assert done.metrics["boot_to_userspace_ms"] == 801
    record = bench.it.store.runs.record(done.id)
    assert record is not None and record.boot == boot_record(1)
    assert done.environment["accelerator"] == "tcg"


async def test_updates_are_recorded_whole(store: Store, tmp_path: Path) -> None:
    async with started(make(store, tmp_path, FakeRunner(), kvm=True)) as made:
        queued = await made.it.runs.start(RunRequest("srcu/2-vcpus"))
        done = await made.it.ended(queued.run)
        assert (done.state, done.kind) == (RunState.COMPLETED, ScenarioKind.SRCU)
        (order,) = made.it.runner.orders
        assert isinstance(order, SrcuOrder)
        assert done.metrics["grace_period_us"] == 1000
        assert done.metrics["srcu_boot_ms"] == 9000
        assert set(done.metrics) == set(METRICS_OF[ScenarioKind.SRCU])
        record = made.it.store.runs.record(done.id)
        assert record is not None and record.srcu == srcu_record(1)
        assert not {"network", "qemu"} & done.environment.keys()
        with pytest.raises(InvalidInput) as refused:
            await made.it.runs.start(RunRequest("srcu/1-vcpu", values={"auto_converge": True}))
        (problem,) = refused.value.problems
        assert (problem.field, problem.code) == ("values.auto_converge", "not_for_updates")


async def test_a_changed_scenario_is_called_by_what_it_is(bench: Bench) -> None:
    async def name(changes: dict[str, Any]) -> str:
        return (await bench.it.runs.check(RunRequest(BLOCK, changes=changes))).name

    assert await name({"cell": {"iodepth": 8}}) == "block/null-co-randread-4k-8-1"
    assert (await name({"runtime_s": 3})).startswith(f"{BLOCK}.")
    assert await name({"title": "mine"}) == BLOCK
    assert await name({"name": "my/own"}) == "my/own"


async def test_what_is_for_migrations_alone_is_refused(bench: Bench) -> None:
    async def why(request: RunRequest) -> list[tuple[str, str]]:
        with pytest.raises(InvalidInput) as refused:
            await bench.it.runs.start(request)
        return [(problem.field, problem.code) for problem in refused.value.problems]

    assert await why(RunRequest(BLOCK, kvm=True)) == [("kvm", "not_for_kind")]
    assert await why(RunRequest(BOOT, testbed=Testbed.LAB)) == [("testbed", "not_for_kind")]
    assert await why(RunRequest(BOOT, overrides=("x",))) == [("overrides", "not_for_kind")]
    assert await why(RunRequest(BLOCK, values={"multifd": True})) == [
        ("values.multifd", "not_settable")
    ]
    assert await why(RunRequest("block")) == [("scenario", "not_one_scenario")]
    assert await why(RunRequest(f"{BLOCK}.quick")) == [("scenarios.0", "unknown_scenario")]
    assert bench.it.runner.orders == []


async def test_a_profile_is_laid_over_as_far_as_it_has_a_meaning(bench: Bench) -> None:
    await bench.it.profiles.create("live", {"iothread_poll_max_ns": 0})
    await bench.it.profiles.create("moving", {"multifd": True})
    found = await bench.it.runs.check(RunRequest(BLOCK, profile="live"))
    assert found.values == {"iothread_poll_max_ns": 0}
    with pytest.raises(InvalidInput):
        await bench.it.runs.check(RunRequest(BLOCK, profile="moving"))


async def test_what_cannot_be_run_here_is_blocked(bench: Bench) -> None:
    with pytest.raises(Blocked, match="KVM"):  # there is none in this test
        await bench.it.runs.start(RunRequest("boot/project-seabios-kvm-1-512m"))


def test_why_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "qemu"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    here = DirectTestbed(program)
    block, boot = CATALOGUE[BLOCK], CATALOGUE[BOOT]
    assert not isinstance(block, type(CATALOGUE["plain/1gbs"]))
    assert isinstance(boot, BootScenario)
    assert why_not_alone(boot, here, False, None) == ""
    small = why_not_alone(boot, here, False, 1 << 20)
    assert small == "the VM needs 512 MiB, and the host has 1 MiB"
    gone = DirectTestbed(tmp_path / "gone")
    assert "no program" in why_not_alone(boot, gone, True, None)
    cell = BlockCell(NodeKind.NULL, IoPattern.RANDREAD, 1 << 20, 256)
    disks = BlockScenario(cell, driver=GuestDriver())
    assert "the VM needs" in why_not_alone(disks, here, False, 256 << 20)
    monkeypatch.setenv("PATH", "")
    assert why_not_alone(disks, here, False, None) == (
        "the guest is built with make, gcc, ld, not installed"
    )
    assert "fio is not installed" in why_not_alone(block, here, True, None)  # type: ignore[arg-type]


async def test_cancelling_and_a_death_leave_a_record(store: Store, tmp_path: Path) -> None:
    runner = FakeRunner(held=True)
    async with started(make(store, tmp_path, runner)) as before:
        first = (await before.it.runs.start(RunRequest(BLOCK))).run
        await runner.begun()
        await before.it.runs.cancel(first.id)
        assert (await before.it.ended(first)).state is RunState.CANCELLED
        second = (await before.it.runs.start(RunRequest(BOOT))).run
        await runner.begun()
    runner.release()
    async with started(make(store, tmp_path, runner)) as after:
        assert (await after.it.ended(second)).state is RunState.INTERRUPTED
        assert after.it.swept


async def test_a_qemu_that_dies_under_its_load_is_a_result(bench: Bench) -> None:
    bench.it.runner.state, bench.it.runner.failure = RunState.FAILED, "QEMU died of SIGABRT"
    done = await ended(bench, RunRequest(BLOCK))
    assert (done.state, done.failure) == (RunState.FAILED, "QEMU died of SIGABRT")
    assert bench.it.store.runs.record(done.id) is not None


# campaigns -------------------------------------------------------------------------------


def matrix(kind: str, arms: int, **parts: Any) -> dict[str, Any]:
    named = [{"name": f"arm {at}"} for at in range(arms)]
    return {"name": f"{kind}s", "arms": named, "blocks": 6, "seed": 3, kind: parts}


async def finished(bench: Bench, document: dict[str, Any]) -> str:
    status = await bench.campaigns.start(document)
    id = str(status.record.id)
    await bench.it.jobs.wait(id)
    assert (await bench.campaigns.get(id)).record.state is CampaignState.COMPLETED
    return id


async def test_a_matrix_is_compared_cell_by_cell(bench: Bench) -> None:
    id = await finished(bench, matrix("block", 2, iodepth=[1, 64]))
    report = ComparisonService(bench.it.store).compared(Asked(campaign=id))
    assert report.primary_metric == "iops"
    cells = [f"blocks/null-co-randread-4k-{depth}-1" for depth in (1, 64)]
    assert [cell.name for cell in report.cells] == cells
    for cell in report.cells:
        success, first, *others = cell.comparisons
        assert success.metric == "load_completed"
        assert (first.metric, first.size) == ("iops", 6)
        assert first.verdict is Verdict.EQUIVALENT  # the runner gives almost the same to all
        judged = [each for each in others if each.test is not None]
        assert all(each.adjusted_p is not None for each in judged)
    assert {run.setup["cell"]["iodepth"] for run in await runs(bench)} == {1, 64}


async def runs(bench: Bench) -> list[Run]:
    return [each.run for each in (await bench.it.runs.list(RunFilter(), None, 100)).items]


async def test_one_arm_is_shown_and_compared_with_nothing(bench: Bench) -> None:
    document = matrix("boot", 1, accelerators=["tcg"], vcpus=[1, 2])
    campaign, forecast = await bench.campaigns.forecast_of(document)
    assert campaign.primary_metric == "boot_to_userspace_ms"
    assert "15 s for each boot" in forecast.duration_reason
    id = await finished(bench, document)
    report = ComparisonService(bench.it.store).compared(Asked(campaign=id))
    assert [cell.comparisons for cell in report.cells] == [(), ()]
    for cell in report.cells:
        first = cell.spreads[1]
        assert (first.metric, first.summary.runs) == ("boot_to_userspace_ms", 6)
        assert first.summary.minimum is not None and first.summary.minimum.value > 800
    assert bench.it.store.campaigns.floors([run.fingerprint for run in await runs(bench)]) == ()
    few = ComparisonService(bench.it.store).compared(
        Asked(campaign=id, metrics=("booted",), reference="srcu-boot-time/boot_time")
    )
    assert [metric.name for metric in few.metrics] == ["booted", "boot_to_userspace_ms"]
    assert {each.metric for cell in few.cells for each in cell.spreads} == {
        "boot_to_userspace_ms", "booted",
    }  # fmt: skip
    beside = [note for note in few.notes if note.startswith("published in srcu-boot-time")]
    assert len(beside) == 2  # one for each cell
    assert all("SRCU grace periods was not recorded" in note for note in beside)  # TCG has none
    assert terminal_tables(few)


def test_accelerators_differ_on_purpose() -> None:
    def meant(*accelerators: str) -> tuple[str, ...]:
        return expected_differences(read_campaign(matrix("boot", 1, accelerators=accelerators), {}))

    assert meant("kvm") == meant("tcg") == ()
    assert meant("kvm", "tcg") == ("accelerator", "kvm")


# records ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "record",
    [
        RunRecord(ended_ms=2500, block=block_record()),
        RunRecord(ended_ms=900, boot=boot_record()),
        RunRecord(ended_ms=700, srcu=srcu_record()),
    ],
    ids=["block", "boot", "srcu"],
)
async def test_files_bring_back_the_same(bench: Bench, record: RunRecord) -> None:
    done = await ended(bench, RunRequest(BLOCK if record.block else BOOT))
    whole = replace(whole_run(bench.it.store, done.id), record=record)
    document = json.loads(json.dumps(exchange.to_document(whole)))
    assert exchange.from_document(document) == whole
    assert exchange.from_csv_gz(exchange.to_csv_gz(whole)) == whole
    head, rows = apart(record)
    assert joined(head, rows) == record
    assert reduce(record, RunState.COMPLETED, {}) != {}


async def test_pictures_and_reports(bench: Bench) -> None:
    load, boot = await ended(bench, RunRequest(BLOCK)), await ended(bench, RunRequest(BOOT))
    picture = plot_run(whole_run(bench.it.store, load.id))
    assert "Memory maps of QEMU" in picture and "stacks of coroutines" in picture
    marks = plot_run(whole_run(bench.it.store, boot.id))
    assert "user space" in marks and "402 ms" in marks
    for page in (picture, marks):
        assert "Not to be had" not in page  # as of a migration
        assert "The guest" not in page.replace("The guest's", "")
    with pytest.raises(InvalidInput) as refused:
        export_report(whole_run(bench.it.store, load.id))
    assert refused.value.problems[0].code == "not_for_kind"
