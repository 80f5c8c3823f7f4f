"""Scenarios of each kind, read by what they say, and campaigns of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.bench.model.campaign.campaign import Campaign
from vmtune.bench.model.campaign.file import from_json as campaign_from_json
from vmtune.bench.model.campaign.file import to_json as campaign_to_json
from vmtune.bench.model.campaign.matrix import campaign_of, is_matrix, read_campaign
from vmtune.bench.model.campaign.matrix import from_json as matrix_from_json
from vmtune.bench.model.kinds import ScenarioKind, kind_of_setup
from vmtune.bench.model.metrics.table import METRICS_OF, PRIMARY, judged_metrics
from vmtune.bench.model.scenario.any_kind import AnyScenario, from_json, kind_of, to_json
from vmtune.bench.model.scenario.block import BlockScenario
from vmtune.bench.model.scenario.boot import RING, BootScenario
from vmtune.bench.model.scenario.matrix_cells import (
    Accelerator,
    BlockCell,
    BootCell,
    BootGuest,
    Firmware,
    IoPattern,
    NodeKind,
    SrcuCell,
)
from vmtune.bench.model.scenario.migration import Scenario, VmShape
from vmtune.bench.model.scenario.parts import MIB
from vmtune.bench.model.scenario.srcu import SrcuScenario
from vmtune.errors import InvalidInput
from vmtune.model.workload import Workload

MIGRATION = Scenario("mine/small", vm=VmShape(64 * MIB), workload=Workload(16 * MIB))
BLOCK = BlockScenario(BlockCell(NodeKind.NULL, IoPattern.RANDREAD, 4096, 64, 1))
BOOT = BootScenario(BootCell(BootGuest.PROJECT, Firmware.SEABIOS, Accelerator.TCG, 1, 512 * MIB))
SRCU = SrcuScenario(SrcuCell(2))
ALL: tuple[AnyScenario, ...] = (MIGRATION, BLOCK, BOOT, SRCU)
by_kind = pytest.mark.parametrize("one", ALL, ids=lambda one: kind_of(one).value)


def refused(raw: object, base: AnyScenario | None = None) -> list[tuple[str, str]]:
    with pytest.raises(InvalidInput) as error:
        from_json(raw, "scenario", base)
    return [(problem.field, problem.code) for problem in error.value.problems]


@by_kind
def test_json_brings_back_the_same(one: AnyScenario) -> None:
    assert from_json(to_json(one)) == one
    assert kind_of_setup(to_json(one)) is kind_of(one)
    assert from_json({}, base=one) == one
    assert from_json({"kind": kind_of(one).value}, base=one) == one


blocks = st.builds(
    BlockScenario,
    st.builds(
        BlockCell,
        st.sampled_from(sorted(set(NodeKind) - {NodeKind.VM})),
        st.sampled_from(IoPattern),
        st.integers(512, 1 << 20),
        st.integers(1, 4096),
        st.integers(1, 256),
    ),
    runtime_s=st.integers(1, 3600),
    ramp_s=st.integers(0, 3600),
    iothread=st.booleans(),
)
boots = st.builds(
    BootScenario,
    st.builds(
        BootCell,
        st.just(BootGuest.LINUX),
        st.sampled_from(Firmware),
        st.sampled_from(Accelerator),
        st.integers(1, 1024),
        st.integers(192, 1 << 20).map(lambda mib: mib * MIB),
    ),
    count_regions=st.booleans(),
    max_seconds=st.integers(1, 3600),
)


@given(st.one_of(blocks, boots), st.one_of(blocks, boots))
def test_a_name_stands_for_one_setup(
    one: BlockScenario | BootScenario, other: BlockScenario | BootScenario
) -> None:
    assert from_json(to_json(one)) == one
    assert (one.name == other.name) is (one == other)


def test_without_a_kind_it_is_a_migration() -> None:
    raw = to_json(MIGRATION)
    assert "kind" not in raw
    assert from_json({**raw, "kind": "migration"}) == MIGRATION
    assert kind_of_setup({}) is ScenarioKind.MIGRATION
    assert kind_of_setup({"kind": "of a later version"}) is ScenarioKind.MIGRATION


def test_parts_are_laid_over() -> None:
    changed = from_json({"cell": {"iodepth": 8}, "runtime_s": 3}, base=BLOCK)
    assert isinstance(changed, BlockScenario)
    assert changed.cell == BlockCell(NodeKind.NULL, IoPattern.RANDREAD, 4096, 8, 1)
    assert (changed.runtime_s, changed.ramp_s) == (3, BLOCK.ramp_s)
    assert changed.name == BLOCK.name  # a campaign's arm does not rename its cell
    kvm = {"cell": {"accelerator": "kvm"}, "values": {RING: 4096}}
    with_ring = from_json(kvm, base=BOOT)
    assert with_ring.values == {RING: 4096}
    assert from_json({"values": {RING: None}}, base=with_ring).values == {}


def test_another_kind_is_refused() -> None:
    assert refused({"kind": "network"}) == [("scenario.kind", "not_a_choice")]
    assert refused({"kind": 3}) == [("scenario.kind", "not_a_choice")]
    assert refused({"kind": "boot"}, BLOCK) == [("scenario.kind", "other_kind")]
    assert refused({"warmup_s": 3}, BLOCK) == [("scenario.warmup_s", "unknown_field")]
    assert refused({"cell": 3}, BLOCK) == [("scenario.cell", "not_an_object")]
    assert refused(3) == [("scenario", "not_an_object")]
    assert refused({"name": "no name", "kind": "block", "cell": {"node": "raw", "rw": "read"}}) == [
        ("scenario.name", "invalid_name")
    ]


# campaigns -------------------------------------------------------------------------------


def campaign_json(one: AnyScenario, **changes: Any) -> dict[str, Any]:
    arms = [{"name": "old", "qemu": "qemu-7.2"}, {"name": "new"}]
    return {"name": "mine", "scenario": to_json(one), "arms": arms, **changes}


def campaign(one: AnyScenario, **changes: Any) -> Campaign:
    return campaign_from_json(campaign_json(one, **changes), {})


def why_refused(one: AnyScenario, **changes: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidInput) as error:
        campaign(one, **changes)
    return [(problem.field, problem.code) for problem in error.value.problems]


@by_kind
def test_a_campaign_of_each_kind(one: AnyScenario) -> None:
    made = campaign(one)
    assert made.kind is kind_of(one)
    assert made.primary_metric == PRIMARY[made.kind]
    assert campaign_from_json(campaign_to_json(made), {}) == made
    (cell,) = made.all_cells
    assert all(made.scenario_of(cell, arm) == one for arm in made.arms)


@by_kind
def test_a_metric_of_another_kind_cannot_be_judged(one: AnyScenario) -> None:
    for kind, metrics in METRICS_OF.items():
        for name in metrics:
            if kind is kind_of(one) and name in judged_metrics(kind):
                assert campaign(one, primary_metric=name).primary_metric == name
            else:
                assert why_refused(one, primary_metric=name) == [
                    ("primary_metric", "invalid_metric")
                ]
    other = "iops" if one is not BLOCK else "booted"
    with pytest.raises(InvalidInput) as error:
        campaign(one, primary_metric=other)
    (problem,) = error.value.problems
    assert f"not a metric of a {kind_of(one)}" in problem.message
    assert all(name in problem.remedy for name in judged_metrics(kind_of(one)))


def test_cells_and_arms_lay_parts_over() -> None:
    made = campaign(
        BLOCK,
        cells=[{"name": "deep"}, {"name": "flat", "scenario": {"cell": {"iodepth": 1}}}],
        arms=[{"name": "one"}, {"name": "two", "scenario": {"cell": {"numjobs": 2}}}],
    )
    names = []
    for cell in made.cells:
        for arm in made.arms:
            scenario = made.scenario_of(cell, arm)
            assert isinstance(scenario, BlockScenario)
            names.append((scenario.name, scenario.cell.iodepth, scenario.cell.numjobs))
    assert names == [
        ("block/deep", 64, 1), ("block/deep", 64, 2), ("block/flat", 1, 1), ("block/flat", 1, 2),
    ]  # fmt: skip


def test_what_is_for_migrations_alone_is_refused_for_others() -> None:
    lab = [{"name": "a", "testbed": "lab"}, {"name": "b"}]
    assert why_refused(BLOCK, arms=lab) == [("arms.0.testbed", "not_for_kind")]
    assert why_refused(BOOT, kvm=True) == [("kvm", "not_for_kind")]
    workload = [{"name": "a", "scenario": {"workload": {}}}, {"name": "b"}]
    assert why_refused(BOOT, arms=workload) == [("arms.0.scenario.workload", "unknown_field")]
    multifd = [{"name": "a"}, {"name": "b", "values": {"multifd": True}}]
    assert why_refused(BLOCK, arms=multifd) == [("arms.1.values.multifd", "not_settable")]
    depth = [{"name": "x", "scenario": {"cell": {"iodepth": 0}}}]
    assert why_refused(BLOCK, cells=depth) == [
        ("cells.0.scenario.cell.iodepth", "invalid_value")
    ] * 2  # fmt: skip


def test_one_arm_is_measured_but_no_migration() -> None:
    alone = campaign(BOOT, arms=[{"name": "this host"}])
    assert not alone.same_arms
    assert alone.against(alone.arms[0]) == ()
    assert why_refused(MIGRATION, arms=[{"name": "a"}]) == [("arms", "number_of_arms")]
    assert why_refused(BOOT, arms=[]) == [("arms", "number_of_arms")]


# matrices --------------------------------------------------------------------------------


MATRIX: dict[str, Any] = {
    "name": "pools",
    "title": "IOPS",
    "blocks": 3,
    "seed": 5,
    "margin_percent": 2,
    "primary_metric": "latency_p99_us",
    "arms": [{"name": "old", "qemu": "qemu-7.2"}, {"name": "new"}],
    "block": {"nodes": ["null-co", "raw"], "iodepth": [1, 64], "runtime_s": 3, "iothread": False},
}


def test_a_matrix_is_taken_where_a_campaign_is() -> None:
    made = read_campaign(MATRIX, {})
    assert made == campaign_of(matrix_from_json(MATRIX))
    assert (made.name, made.title, made.blocks, made.seed) == ("pools", "IOPS", 3, 5)
    assert (made.margin_percent, made.primary_metric) == (2, "latency_p99_us")
    assert [arm.qemu for arm in made.arms] == ["qemu-7.2", ""]
    assert len(made.cells) == 4
    for cell in made.cells:
        scenario = made.scenario_of(cell, made.arms[0])
        assert isinstance(scenario, BlockScenario)
        assert scenario.name == f"pools/{cell.name}"
        assert scenario.cell.name == cell.name
        assert (scenario.runtime_s, scenario.iothread) == (3, False)
    plain = campaign_json(MIGRATION)
    assert not is_matrix(plain)
    assert read_campaign(plain, {}) == campaign_from_json(plain, {})


def test_a_matrix_that_makes_no_campaign_is_refused() -> None:
    def why(**changes: Any) -> list[tuple[str, str]]:
        with pytest.raises(InvalidInput) as error:
            read_campaign({**MATRIX, **changes}, {})
        return [(problem.field, problem.code) for problem in error.value.problems]

    assert why(primary_metric="total_time_ms") == [("primary_metric", "invalid_metric")]
    multifd = [{"name": "a", "values": {"multifd": True}}]
    assert why(arms=multifd) == [("arms.0.values.multifd", "not_settable")]
    assert why(boot={}) == [("block", "one_of")]
    none = {**MATRIX, "boot": {"guests": ["project"], "firmware": ["ovmf"]}}
    del none["block"]
    with pytest.raises(InvalidInput) as error:
        read_campaign(none, {})
    assert error.value.problems[0].code == "firmware_cannot_start_guest"


def test_boots_of_both_accelerators_are_one_campaign() -> None:
    boot = {"name": "boots", "arms": [{"name": "this host"}],
            "boot": {"accelerators": ["kvm", "tcg"], "max_seconds": 60}}  # fmt: skip
    made = read_campaign(boot, {})
    scenarios = [made.scenario_of(cell, made.arms[0]) for cell in made.cells]
    assert [one.needs_kvm for one in scenarios] == [True, False]
    assert all(one.longest_s == 60 for one in scenarios)
