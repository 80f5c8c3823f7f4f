"""The files that repeat the sources' matrices: they load, and do what they say."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from uuid import UUID

import pytest

from tests.support.examples import facts as some
from vmtune.bench.migration.scenarios import BenchHosts, why_not
from vmtune.bench.model.campaign.campaign import (
    QUICK_BLOCKS,
    Arm,
    Campaign,
    Cell,
    PublishedChoice,
    Testbed,
)
from vmtune.bench.model.campaign.file import from_json, to_json
from vmtune.bench.model.campaign.file import read_toml as read_campaign
from vmtune.bench.model.campaign.matrix import MatrixPlan, campaign_of
from vmtune.bench.model.campaign.matrix import read_toml as read_matrix
from vmtune.bench.model.campaign.matrix_kinds import BlockMatrix, BootMatrix, SrcuMatrix
from vmtune.bench.model.metrics.table import METRICS
from vmtune.bench.model.runs.run import Run, RunRecord, RunState
from vmtune.bench.model.scenario.matrix_cells import NodeKind
from vmtune.bench.model.scenario.migration import GUEST_NEEDS_BYTES, Scenario
from vmtune.bench.model.scenario.migration import to_json as scenario_to_json
from vmtune.errors import NotFound
from vmtune.model.migration.controller_record import ReaperEnd, ReaperReport
from vmtune.model.tunables.rows.reaper import ReaperPolicy
from vmtune.model.versions import Version
from vmtune.reference.facts import FACTS, Facts, Role
from vmtune.reference.files import FileKind, ScenarioFile, scenario_file, scenario_files
from vmtune.reference.loading import reference, references, table_of
from vmtune.reference.matching import EffectMatch, Match, match_cell, match_effect
from vmtune.reference.own import facts_of_block_cell, facts_of_run

GIB = 1 << 30
FILES = scenario_files().values()
CAMPAIGNS = [file for file in FILES if file.kind is FileKind.CAMPAIGN]
MATRICES = [file for file in FILES if file.kind is not FileKind.CAMPAIGN]


def campaign(name: str) -> Campaign:
    return read_campaign(scenario_file(name).text, {})


def matrix(name: str) -> MatrixPlan:
    return read_matrix(scenario_file(name).text)


def facts(of: Campaign, cell: Cell, arm: Arm) -> Facts:
    """Of a run of that arm, as it would be recorded."""
    scenario = of.scenario_of(cell, arm)
    policy = scenario.values.get("reaper_policy")
    report = ReaperReport(str(policy), 0, ReaperEnd.MIGRATION_ENDED) if policy else None
    setup = {**scenario_to_json(scenario), "host_load": cell.host_load.value}
    return facts_of_run(
        Run(
            UUID(int=1), scenario.name, setup, scenario.values, RunState.COMPLETED,
            datetime(2026, 1, 1, tzinfo=UTC), record=RunRecord(reaper=report),
        )
    )  # fmt: skip


def test_what_ships() -> None:
    assert {file.name: file.kind.value for file in FILES} == {
        "channels": "campaign",
        "coroutine-pool": "block",
        "coroutine-pool-guest": "block",
        "coroutine-pool-memory": "block",
        "coroutine-pool-memory-guest": "block",
        "drop-duration": "campaign",
        "drop-duration-full": "campaign",
        "drop-duration-quick": "campaign",
        "noise": "campaign",
        "ring-sizes": "campaign",
        "srcu-boot": "boot",
        "srcu-boot-updates": "boot",
        "srcu-updates": "srcu",
        "stock-against-tuned": "campaign",
        "zero-copy-load": "campaign",
        "zero-copy-load-quick": "campaign",
        "zero-copy-nic": "campaign",
    }
    with pytest.raises(NotFound) as wrong:
        scenario_file("drop")
    assert "drop-duration" in wrong.value.problems[0].remedy


@pytest.mark.parametrize("file", CAMPAIGNS, ids=lambda file: file.name)
def test_a_campaign_loads_and_keeps_its_promises(file: ScenarioFile) -> None:
    made = campaign(file.name)
    assert made.name == file.name
    assert made.blocks >= QUICK_BLOCKS
    assert made.title and made.primary_metric in METRICS
    assert from_json(json.loads(json.dumps(to_json(made))), {}) == made
    comments = " ".join(line.strip("# ") for line in file.text.splitlines() if line[:1] == "#")
    if made.published is not None:
        assert f"{made.run_count} runs" in comments
    rings = {scenario.dirty_ring_entries for scenario in scenarios(made)}
    assert made.kvm is (True if any(rings) else None)
    assert all(s.count_ring_full is bool(s.dirty_ring_entries) for s in scenarios(made))


def scenarios(of: Campaign) -> list[Scenario]:
    return [of.scenario_of(cell, arm) for cell in of.all_cells for arm in of.arms]


@pytest.mark.parametrize("file", MATRICES, ids=lambda file: file.name)
def test_a_matrix_loads_and_keeps_its_promises(file: ScenarioFile) -> None:
    made = matrix(file.name)
    assert made.name == file.name
    what = "boots" if file.kind is FileKind.BOOT else "measurements"
    comments = " ".join(line.strip("# ") for line in file.text.splitlines() if line[:1] == "#")
    assert f"{made.run_count} {what}" in comments
    kinds = {FileKind.BLOCK: BlockMatrix, FileKind.BOOT: BootMatrix, FileKind.SRCU: SrcuMatrix}
    assert isinstance(made.matrix, kinds[file.kind])
    meant = campaign_of(made)
    assert meant.run_count == made.run_count + meant.warmup_runs
    assert meant.kind == file.kind
    assert from_json(json.loads(json.dumps(to_json(meant))), {}) == meant
    names = {meant.scenario_of(cell, meant.arms[0]).name for cell in meant.cells}
    assert names == {f"{file.name}/{cell.name}" for cell in made.matrix.cells}
    for cell, wanted in zip(meant.cells, made.matrix.cells, strict=True):
        scenario = meant.scenario_of(cell, meant.arms[-1])
        assert not isinstance(scenario, Scenario) and scenario.cell == wanted


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_that_repeats_a_source_says_which(file: ScenarioFile) -> None:
    made = campaign(file.name) if file in CAMPAIGNS else matrix(file.name)
    chosen = made.published
    if chosen is None:
        assert file.name in ("noise", "ring-sizes", "srcu-updates", "stock-against-tuned")
        return
    source = reference(chosen.reference)
    assert file.name in source.scenarios
    table = table_of(source, chosen.table)
    assert all(FACTS[name].role is Role.SCALE for name in chosen.scale)
    judged = made if isinstance(made, Campaign) else campaign_of(made)
    assert table.metric == judged.primary_metric


def test_every_file_that_a_source_names_ships() -> None:
    for source in references().values():
        for name in source.scenarios:
            made = campaign(name) if scenario_file(name) in CAMPAIGNS else matrix(name)
            assert made.published is not None and made.published.reference == source.id


def test_rings_of_every_size_are_measured() -> None:
    made = campaign("ring-sizes")
    rings = {scenario.dirty_ring_entries for scenario in scenarios(made)}
    assert rings == {0, *(1 << power for power in range(10, 17))}
    reaped = {s.dirty_ring_entries for s in scenarios(made) if "reaper_policy" in s.values}
    assert reaped == rings - {0}
    assert {s.vm.memory_bytes for s in scenarios(made)} == {GIB // 2, 3 * GIB, 4 * GIB, 8 * GIB}


@pytest.mark.parametrize("name", ["ring-sizes", "drop-duration", "drop-duration-full"])
def test_a_guest_has_one_stretch_that_is_large_enough(name: str) -> None:
    for scenario in scenarios(campaign(name)):
        memory, region = scenario.vm.memory_bytes, scenario.workload.region_bytes
        # The machine type pc: 3 GiB below 4 GiB and the rest above, from 3.5 GiB on.
        split = memory >= 7 * GIB // 2
        below = (3 * GIB if split else memory) - GUEST_NEEDS_BYTES
        assert region <= max(below, memory - 3 * GIB if split else 0), scenario.name


def test_the_full_drop_duration_matrix_has_every_row_of_the_source() -> None:
    made = campaign("drop-duration-full")
    source = reference("dirty-ring-reaper")
    table = source.tables["drop"]
    assert made.published == PublishedChoice("dirty-ring-reaper", "drop")
    found = set()
    for cell in made.cells:
        for arm in made.arms:
            match = match_cell(source, table, facts(made, cell, arm), {})
            assert isinstance(match, Match)
            at = match.row.at
            sizes = [int(at[name]) // GIB for name in ("memory_bytes", "region_bytes")]
            assert cell.name == f"{at['vcpus']}C{sizes[0]}G-{sizes[1]}G"
            found.add((cell.name, match.row.arm))
    assert len(found) == len(table.rows) == 30


@pytest.mark.parametrize("name", ["stock-against-tuned", "noise"])
def test_the_examples_run_on_the_lab_in_six_blocks(name: str) -> None:
    made = campaign(name)
    assert made.blocks == 6
    assert {arm.testbed for arm in made.arms} == {Testbed.LAB}
    assert made.same_arms is (name == "noise")
    assert made.arms[0].values == {}
    on_libvirt = BenchHosts(some.host("a"), some.host("b"), some.vm(), True)
    for arm in made.arms:
        assert why_not(made.scenario_of(made.all_cells[0], arm), on_libvirt) is None


def test_the_drop_duration_matrix_is_the_sources_but_for_what_does_not_fit() -> None:
    made = campaign("drop-duration")
    source = reference("dirty-ring-reaper")
    table = source.tables["drop"]
    chosen = made.published
    assert chosen == PublishedChoice(
        "dirty-ring-reaper", "drop", {"vcpus": 4, "memory_bytes": 16, "region_bytes": 8}
    )
    found = {}
    for cell in made.cells:
        for arm in made.arms:
            match = match_cell(source, table, facts(made, cell, arm), chosen.scale)
            assert isinstance(match, Match)
            at = match.row.at
            place = f"{at['vcpus']}C{int(at['memory_bytes']) // GIB}G"
            region = int(at["region_bytes"]) // GIB
            assert cell.name == f"{place}-{region}G", arm.name
            found[cell.name, arm.name] = match.row.arm
    # Each own cell stands beside another published one, and only 20 and 30 GiB are left.
    assert len({(cell, row) for (cell, _), row in found.items()}) == len(found) == 20
    assert len(table.rows) == 20 + 10
    ours = [found["8C32G-10G", arm.name] for arm in made.arms]
    assert ours == list(source.arms)


def test_a_guest_that_writes_as_fast_as_it_can_is_meant_to_end_at_the_limit() -> None:
    of_drop = [
        made
        for made in map(campaign, (f.name for f in CAMPAIGNS))
        if made.published and made.published.table == "drop"
    ]
    assert {made.name for made in of_drop} == {
        "drop-duration",
        "drop-duration-full",
        "drop-duration-quick",
        "ring-sizes",
    }
    for made in of_drop:
        assert all(scenario.ends_at_limit for scenario in scenarios(made)), made.name


@pytest.mark.parametrize("name", ["drop-duration", "drop-duration-full", "drop-duration-quick"])
def test_every_comparison_of_it_stands_beside_a_published_one(name: str) -> None:
    made = campaign(name)
    assert made.published is not None
    source = reference(made.published.reference)
    by_name = {arm.name: arm for arm in made.arms}
    for cell in made.all_cells:
        for arm in made.arms:
            for other in made.against(arm):
                match = match_effect(
                    source,
                    source.tables["drop"],
                    facts(made, cell, by_name[other]),
                    facts(made, cell, arm),
                    made.published.scale,
                )
                assert isinstance(match, EffectMatch), (arm.name, other)
                published = source.arms[match.published.row.arm].facts
                entries = arm.values["dirty_ring_size_entries"]
                assert published["dirty_ring_size_entries"] == entries


def test_its_rings_can_fill_but_in_the_cell_that_says_so() -> None:
    for name in ("drop-duration", "drop-duration-quick"):
        made = campaign(name)
        small = []
        for cell in made.all_cells:
            scenario = made.scenario_of(cell, made.arms[-1])
            pages = scenario.workload.region_bytes // 4096 // scenario.vm.vcpus
            if pages < scenario.dirty_ring_entries:
                small.append(cell.name)
        assert small == (["8C32G-3G"] if name == "drop-duration" else [])


def test_its_reaper_is_the_sources() -> None:
    policies = {
        arm.values["reaper_policy"]
        for name in ("drop-duration", "drop-duration-quick")
        for arm in campaign(name).arms
        if "reaper_policy" in arm.values
    }
    assert policies == {ReaperPolicy.LEVELS.value}


@pytest.mark.parametrize("name", ["zero-copy-load", "zero-copy-load-quick", "zero-copy-nic"])
def test_the_loads_of_the_zero_copy_matrix_stand_beside_the_sources(name: str) -> None:
    made = campaign(name)
    source = reference("zero-copy-multifd")
    copied, zero_copy = made.arms
    loads = set()
    for cell in made.cells:
        match = match_effect(
            source,
            source.tables["time_reduction"],
            facts(made, cell, copied),
            facts(made, cell, zero_copy),
        )
        assert isinstance(match, EffectMatch)
        loads.add(match.published.row.at["host_load"])
    assert loads == ({"idle", "busy"} if name == "zero-copy-load-quick" else
                     {"idle", "busy", "busy_pinned"})  # fmt: skip


def test_the_channels_are_the_sources() -> None:
    made = campaign("channels")
    source = reference("parallel-connections")
    (cell,) = made.all_cells
    arms = []
    for arm in made.arms:
        match = match_cell(source, source.tables["throughput"], facts(made, cell, arm))
        assert isinstance(match, Match)
        arms.append(match.row.arm)
    assert arms == [arm.name for arm in made.arms] == list(source.arms)


def test_the_fio_matrix_is_the_sources() -> None:
    made = matrix("coroutine-pool")
    source = reference("coroutine-pool-global")
    table = source.tables["iops"]
    assert isinstance(made.matrix, BlockMatrix)
    found = []
    for cell in made.matrix.cells[:10]:
        for version in (Version(7, 2, 22), Version(10, 0, 2)):
            match = match_cell(source, table, facts_of_block_cell(cell, version))
            assert isinstance(match, Match)
            assert match.distance == 0
            found.append(match.row)
    assert found == list(table.rows)
    by_guest = matrix("coroutine-pool-guest").matrix
    assert isinstance(by_guest, BlockMatrix)
    assert by_guest.driver is not None
    assert by_guest.cells == tuple(cell for cell in made.matrix.cells if cell.node is NodeKind.RAW)
    for cell in by_guest.cells:
        match = match_cell(source, table, facts_of_block_cell(cell, Version(10, 0), by_guest=True))
        assert isinstance(match, Match)
    memory = matrix("coroutine-pool-memory")
    resize = reference("coroutine-pool-resize")
    assert isinstance(memory.matrix, BlockMatrix)
    in_guest = matrix("coroutine-pool-memory-guest").matrix
    assert isinstance(in_guest, BlockMatrix)
    assert in_guest.driver is not None
    largest = max(in_guest.cells, key=lambda cell: (cell.numjobs, cell.iothreads))
    assert (largest.numjobs, largest.iodepth, largest.iothreads) == (16, 64, 4)
    for cell in (*memory.matrix.cells, largest):
        before = facts_of_block_cell(cell, Version(6, 1))
        match = match_cell(resize, resize.tables["iops"], before)
        assert isinstance(match, Match)
        assert (match.row.arm, match.distance) == ("before", 0)
