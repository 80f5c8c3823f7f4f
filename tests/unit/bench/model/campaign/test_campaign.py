"""Campaigns: their rules, their JSON and TOML, and what each run of them does."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.bench.model.campaign.campaign import (
    MAX_BLOCKS,
    MAX_SEED,
    Arm,
    Campaign,
    Cell,
    HostLoad,
    OtherEnvironment,
    PublishedChoice,
    Testbed,
)
from vmtune.bench.model.campaign.file import from_json, read_toml, to_json
from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.metrics.table import METRICS, Direction, judged_metrics
from vmtune.bench.model.scenario.migration import Scenario, VmShape
from vmtune.bench.model.scenario.parts import MIB
from vmtune.documents.strict import MAX_FILE_CHARACTERS
from vmtune.errors import InvalidInput
from vmtune.model.migration.steps import AfterSeconds, Step, StepAction
from vmtune.model.profile import Revision
from vmtune.model.workload import Workload

SMALL = Scenario("lab/small", vm=VmShape(256 * MIB, 1), workload=Workload(region_bytes=96 * MIB))
KNOWN = {SMALL.name: SMALL}
STOCK, TUNED = Arm("stock"), Arm("tuned", values={"multifd": True, "multifd_channels": 2})
PLAIN = Campaign("stock-against-tuned", SMALL, (STOCK, TUNED))

FILE = """
name = "mine"
title = "Mine"
scenario = "lab/small"
blocks = 6
seed = 7
primary_metric = "downtime_ms"
margin_percent = 2.5
warmup_runs = 0
other_environment = "allow"
kvm = false
overrides = ["few_cores"]
published.reference = "zero-copy-multifd"
published.table = "time_reduction"
published.scale = {memory_bytes = 512}

[[arms]]
name = "stock"

[[arms]]
name = "tuned"
profile = "fast"
revision = 3
values = {max_bandwidth_bytes_per_s = "1Gbit/s"}
scenario = {transport = "unix"}
qemu = "qemu-7.2"
testbed = "lab"

[[cells]]
name = "idle"

[[cells]]
name = "busy"
host_load = "busy_pinned"
values = {downtime_limit_ms = "0.5s"}
scenario = {workload = {dirty_mb_per_s = 100}}
"""


def test_a_file_says_all_that_a_campaign_has() -> None:
    assert read_toml(FILE, KNOWN) == Campaign(
        name="mine",
        title="Mine",
        scenario=SMALL,
        arms=(
            STOCK,
            Arm(
                "tuned",
                profile="fast",
                revision=3,
                values={"max_bandwidth_bytes_per_s": 119 << 20},
                scenario={"transport": "unix"},
                qemu="qemu-7.2",
                testbed=Testbed.LAB,
            ),
        ),
        cells=(
            Cell("idle"),
            Cell(
                "busy",
                scenario={"workload": {"dirty_mb_per_s": 100}},
                values={"downtime_limit_ms": 500},
                host_load=HostLoad.BUSY_PINNED,
            ),
        ),
        blocks=6,
        seed=7,
        primary_metric="downtime_ms",
        margin_percent=2.5,
        warmup_runs=0,
        other_environment=OtherEnvironment.ALLOW,
        kvm=False,
        overrides=frozenset({"few_cores"}),
        published=PublishedChoice("zero-copy-multifd", "time_reduction", {"memory_bytes": 512}),
    )


def test_a_scenario_may_stand_in_the_file() -> None:
    own = FILE.replace('"lab/small"', '{name = "my/own", vm = {memory_bytes = "2Gi"}}')
    made = read_toml(own, {})
    assert (made.scenario.name, made.scenario.vm.memory_bytes) == ("my/own", 2048 * MIB)


def test_defaults() -> None:
    text = 'name = "x"\nscenario = "lab/small"\narms = [{name = "a"}, {name = "b"}]'
    made = read_toml(text, KNOWN)
    assert made == Campaign("x", SMALL, (Arm("a"), Arm("b")))
    assert (made.blocks, made.margin_percent, made.warmup_runs, made.seed) == (10, 5.0, 1, None)
    assert made.other_environment is OtherEnvironment.REFUSE
    assert made.run_count == 21
    assert made.same_arms
    assert not PLAIN.same_arms
    assert [cell.name for cell in made.all_cells] == ["small"]


@st.composite
def campaigns(draw: st.DrawFn) -> Campaign:
    names = draw(
        st.lists(st.from_regex(r"\A[A-Za-z0-9]{1,9}\Z"), min_size=2, max_size=4, unique=True)
    )
    values = st.sampled_from(
        [{}, {"multifd": True}, {"downtime_limit_ms": 5}, {"auto_converge": True}]
    )
    overrides = st.sampled_from(
        [{}, {"warmup_s": 3}, {"vm": {"vcpus": 2}}, {"workload": {"idle_ms": 3}, "max_seconds": 9}]
    )
    arms = tuple(
        Arm(
            name,
            profile=(profile := draw(st.sampled_from(["", "fast"]))),
            revision=draw(st.none() | st.integers(1, 9)) if profile else None,
            values=draw(values),
            scenario=draw(overrides),
            qemu=draw(st.sampled_from(["", "qemu-7.2"])),
            testbed=draw(st.sampled_from(Testbed)),
            against=tuple(draw(st.sets(st.sampled_from([n for n in names if n != name])))),
        )
        for name in names
    )
    cells = tuple(
        Cell(name, draw(overrides), draw(values), draw(st.sampled_from(HostLoad)))
        for name in draw(st.lists(st.from_regex(r"\A[A-Za-z0-9]{1,9}\Z"), max_size=3, unique=True))
    )
    return Campaign(
        name=draw(st.from_regex(r"\A[a-z0-9]{1,9}\Z")),
        scenario=SMALL,
        arms=arms,
        cells=cells,
        title=draw(st.text(max_size=9)),
        why=draw(st.text(max_size=9)),
        blocks=draw(st.integers(1, MAX_BLOCKS)),
        seed=draw(st.none() | st.integers(0, MAX_SEED)),
        primary_metric=draw(st.sampled_from(judged_metrics(ScenarioKind.MIGRATION))),
        margin_percent=draw(st.floats(0.1, 99)),
        warmup_runs=draw(st.integers(0, 9)),
        other_environment=draw(st.sampled_from(OtherEnvironment)),
        kvm=draw(st.none() | st.booleans()),
        overrides=frozenset(draw(st.sets(st.sampled_from(["a", "b"])))),
        published=draw(
            st.none()
            | st.builds(
                PublishedChoice,
                st.just("r"),
                st.sampled_from(["", "t"]),
                st.dictionaries(st.sampled_from(["vcpus", "region_bytes"]), st.integers(1, 99)),
            )
        ),
    )


@given(campaigns())
def test_json_brings_back_the_same_campaign(campaign: Campaign) -> None:
    assert from_json(json.loads(json.dumps(to_json(campaign))), {}) == campaign


@given(campaigns())
def test_every_run_has_a_scenario_and_every_arm_someone_to_be_compared_with(
    campaign: Campaign,
) -> None:
    scenarios = [
        campaign.scenario_of(cell, arm)
        for cell in campaign.all_cells
        for arm in campaign.arms
        if not arm.profile
    ]
    cells = {cell.name for cell in campaign.cells} or {"small"}
    assert {each.variant for each in scenarios} <= cells
    assert {each.family for each in scenarios} <= {"lab"}
    names = [arm.name for arm in campaign.arms]
    for arm in campaign.arms:
        assert arm.name not in campaign.against(arm)
        assert set(campaign.against(arm)) <= set(names)
        assert campaign.against(arm) or arm.name == names[0]
    pairs = len(campaign.arms) * len(campaign.all_cells)
    assert campaign.run_count == campaign.warmup_runs + campaign.blocks * pairs


def test_later_parts_win() -> None:
    cell = Cell("c", {"warmup_s": 2, "vm": {"vcpus": 2}}, {"downtime_limit_ms": 1, "xbzrle": True})
    arm = Arm(
        "a", profile="p", values={"downtime_limit_ms": 3}, scenario={"vm": {"memory_bytes": "1Gi"}}
    )
    abort = Step(AfterSeconds(9), StepAction.ABORT)
    revision = Revision(
        "p", 1, {"downtime_limit_ms": 2, "multifd": True, "xbzrle": False}, "",
        datetime(2026, 1, 1, tzinfo=UTC), (abort,),
    )  # fmt: skip
    campaign = replace(PLAIN, arms=(STOCK, arm), cells=(cell,))
    made = campaign.scenario_of(cell, arm, revision)
    assert made.values == {"downtime_limit_ms": 3, "multifd": True, "xbzrle": False}
    assert (made.warmup_s, made.vm, made.steps) == (2, VmShape(1024 * MIB, 2), (abort,))
    assert made.name == "lab/c"
    assert made.workload == SMALL.workload
    without = campaign.scenario_of(cell, STOCK)
    assert without.values == {"downtime_limit_ms": 1, "xbzrle": True}


def document(**changes: Any) -> dict[str, Any]:
    """A good campaign's document with some parts changed; None takes one away."""
    parts = {
        "name": "x",
        "scenario": "lab/small",
        "arms": [{"name": "a"}, {"name": "b", "values": {"multifd": True}}],
        **changes,
    }
    return {name: value for name, value in parts.items() if value is not None}


def arms(**second: Any) -> list[dict[str, Any]]:
    return [{"name": "a"}, {"name": "b", **second}]


@pytest.mark.parametrize(
    ("changes", "field", "code"),
    [
        ({"name": None}, "name", "missing"),
        ({"name": "Mine"}, "name", "invalid_name"),
        ({"arms": None}, "arms", "missing"),
        ({"scenario": None}, "scenario", "missing"),
        ({"scenario": "lab/large"}, "scenario", "unknown_scenario"),
        ({"scenario": {"name": "a/b", "vms": {}}}, "scenario.vms", "unknown_field"),
        ({"block": 6}, "block", "unknown_field"),
        ({"blocks": "six"}, "blocks", "invalid_value"),
        ({"blocks": 0}, "blocks", "invalid_value"),
        ({"blocks": True}, "blocks", "invalid_value"),
        ({"seed": -1}, "seed", "invalid_value"),
        ({"primary_metric": "total_time"}, "primary_metric", "invalid_metric"),
        ({"primary_metric": "reaper_rounds"}, "primary_metric", "invalid_metric"),
        ({"margin_percent": 0}, "margin_percent", "invalid_value"),
        ({"margin_percent": 100}, "margin_percent", "invalid_value"),
        ({"margin_percent": 101}, "margin_percent", "invalid_value"),
        ({"margin_percent": float("nan")}, "margin_percent", "invalid_value"),
        ({"warmup_runs": -1}, "warmup_runs", "invalid_value"),
        ({"other_environment": "tell"}, "other_environment", "not_a_choice"),
        ({"kvm": "no"}, "kvm", "invalid_value"),
        ({"overrides": "few_cores"}, "overrides", "not_a_list"),
        ({"published": {}}, "published.reference", "missing"),
        ({"published": {"reference": "r", "scale": {"vcpus": 0}}}, "published.scale.vcpus",
         "invalid_value"),
        ({"arms": [{"name": "a"}]}, "arms", "number_of_arms"),
        ({"arms": [{"name": "a"}, {"name": "a"}]}, "arms.1.name", "duplicate_name"),
        ({"arms": [{"name": "a"}, {}]}, "arms.1.name", "missing"),
        ({"arms": arms(name="b/c")}, "arms.1.name", "invalid_name"),
        ({"arms": arms(revision=1)}, "arms.1.revision", "needs_profile"),
        ({"arms": arms(qemu="/bin/sh")}, "arms.1.qemu", "invalid_name"),
        ({"arms": arms(testbed="moon")}, "arms.1.testbed", "not_a_choice"),
        ({"arms": arms(against=["b"])}, "arms.1.against", "unknown_arm"),
        ({"arms": arms(against=["c"])}, "arms.1.against", "unknown_arm"),
        ({"arms": arms(values={"multifdd": 1})}, "arms.1.values.multifdd", "unknown_tunable"),
        ({"arms": arms(values={"multifd": 3})}, "arms.1.values.multifd", "invalid_value"),
        ({"arms": arms(values={"multifd_channels": 4})}, "arms.1.values.multifd_channels",
         "needs_multifd"),
        ({"arms": arms(scenario={"name": "c/d"})}, "arms.1.scenario.name", "unknown_field"),
        ({"arms": arms(scenario={"values": {}})}, "arms.1.scenario.values", "unknown_field"),
        ({"arms": arms(scenario={"warmup_s": "long"})}, "arms.1.scenario.warmup_s",
         "invalid_value"),
        ({"arms": arms(scenario={"workload": {"region_bytes": "1Gi"}})},
         "arms.1.scenario.workload.region_bytes", "region_too_large"),
        ({"cells": [{"name": "a b"}]}, "cells.0.name", "invalid_name"),
        ({"cells": [{"name": "a"}, {"name": "a"}]}, "cells.1.name", "duplicate_name"),
        ({"cells": [{"name": "a", "host_load": "high"}]}, "cells.0.host_load", "not_a_choice"),
        ({"cells": [{"name": "a", "values": {"multifd_channels": 4}}]},
         "cells.0.values.multifd_channels", "needs_multifd"),
        ({"cells": [{"name": "a", "scenario": {"vm": {"vcpus": 0}}}]},
         "cells.0.scenario.vm.vcpus", "invalid_value"),
        ({"cells": [{"name": f"c{n}"} for n in range(200)], "blocks": 1000}, "blocks", "too_many"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_by_field(changes: dict[str, Any], field: str, code: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        from_json(document(**changes), KNOWN)
    assert (field, code) in [(each.field, each.code) for each in refused.value.problems]
    assert all(each.field and each.message and each.remedy for each in refused.value.problems)


def test_a_contradiction_names_arm_and_cell() -> None:
    cells = [{"name": "calm"}, {"name": "odd", "values": {"multifd_channels": 4}}]
    with pytest.raises(InvalidInput) as refused:
        from_json(document(cells=cells), KNOWN)
    (problem,) = refused.value.problems
    assert problem.field == "cells.1.values.multifd_channels"
    assert problem.message.endswith("(arm a, cell odd)")


def test_an_arm_with_a_profile_is_judged_when_its_values_are_known() -> None:
    made = from_json(document(arms=arms(profile="fast", values={"multifd_channels": 4})), KNOWN)
    with pytest.raises(InvalidInput):
        made.scenario_of(made.all_cells[0], made.arms[1])


@pytest.mark.parametrize("text", ["name = ", "x" * (MAX_FILE_CHARACTERS + 1), "a=" + "[" * 5000])
def test_what_is_no_toml_is_told(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_toml(text, KNOWN)
    (problem,) = refused.value.problems
    assert problem.field and problem.remedy


leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
keys = st.sampled_from(
    ["name", "scenario", "arms", "cells", "values", "blocks", "seed", "vm", "workload", "steps",
     "multifd", "published", "reference", "against", "host_load", "lab/small", "x"]
)  # fmt: skip
trees = st.recursive(
    leaves | keys,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=12,
)


@given(st.dictionaries(keys, trees), st.booleans())
def test_whatever_is_given_is_read_or_refused_by_field(raw: dict[str, Any], whole: bool) -> None:
    try:
        from_json(document(**raw) if whole else raw, KNOWN)
    except InvalidInput as error:
        assert all(p.code and p.message and p.remedy for p in error.problems)


@given(st.lists(leaves | keys | st.dictionaries(keys, leaves), max_size=3))
def test_whatever_arms_and_cells_are_given(raw: list[Any]) -> None:
    for part in ("arms", "cells"):
        try:
            from_json(document(**{part: raw}), KNOWN)
        except InvalidInput as error:
            named = [p for p in error.problems if p.field]
            assert len(named) >= len(error.problems) - 1  # the last may be "and N more"
            assert all(p.code and p.message and p.remedy for p in error.problems)


def test_only_what_has_a_better_and_a_worse_can_be_judged() -> None:
    assert "total_time_ms" in judged_metrics(ScenarioKind.MIGRATION)
    for kind in ScenarioKind:
        assert all(METRICS[name].direction is not Direction.NONE for name in judged_metrics(kind))
