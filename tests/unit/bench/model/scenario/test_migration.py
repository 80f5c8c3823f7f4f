"""Scenarios: their rules, their JSON and TOML, and what is derived from them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.bench.model.scenario.migration import (
    MAX_SCENARIOS,
    Scenario,
    Transport,
    VmShape,
    from_json,
    nearest_power_of_two,
    read_toml,
    to_json,
)
from vmtune.bench.model.scenario.parts import GIB, MIB
from vmtune.documents.strict import MAX_FILE_CHARACTERS
from vmtune.errors import InvalidInput
from vmtune.model.migration.steps import (
    AfterIterations,
    AfterSeconds,
    SetValues,
    Stalled,
    Step,
    StepAction,
)
from vmtune.model.workload import Workload

VALUES = (
    {},
    {"multifd": True, "multifd_channels": 8},
    {"postcopy": True},
    {"dirty_ring_size_entries": 4096, "dirty_limit": True, "vcpu_dirty_limit_mib_per_s": 20},
    {"xbzrle": True, "xbzrle_cache_size_bytes": 128 * MIB},
)
STEPS = (
    (),
    (Step(AfterIterations(0), StepAction.PAUSE), Step(AfterSeconds(9), StepAction.ABORT)),
    (Step(Stalled(3, 5), SetValues((("downtime_limit_ms", 900),))),),
)
shares = st.tuples(st.integers(0, 100), st.integers(0, 100)).filter(lambda pair: sum(pair) <= 100)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    region = draw(st.integers(4096, 4 * GIB - 1))
    values = draw(st.sampled_from(VALUES))
    zero, random = draw(shares)
    return Scenario(
        name=draw(st.from_regex(r"\A[a-z0-9._-]{1,20}/[A-Za-z0-9._-]{1,20}\Z").filter(_usable)),
        title=draw(st.text(max_size=40)),
        why=draw(st.text(max_size=40)),
        vm=VmShape(
            region // MIB * MIB + draw(st.integers(32, 4000)) * MIB, draw(st.integers(1, 9))
        ),
        workload=Workload(
            region_bytes=region,
            stride_bytes=draw(st.integers(1, 4096)),
            dirty_mb_per_s=draw(st.integers(0, 10_000)),
            zero_percent=zero,
            random_percent=random,
            idle_ms=draw(st.integers(0, 1000)),
            beat_ms=draw(st.integers(0, 1000)),
        ),
        values=values,
        steps=draw(st.sampled_from(STEPS)),
        transport=draw(st.sampled_from(Transport)),
        warmup_s=draw(st.integers(0, 600)),
        cooldown_s=draw(st.integers(0, 600)),
        max_iterations=draw(st.integers(1, 10_000)),
        max_seconds=draw(st.integers(1, 10_000)),
        count_ring_full=draw(st.booleans()) if "dirty_ring_size_entries" in values else False,
    )


def _usable(name: str) -> bool:
    return name[0] not in "._-" and name.partition("/")[2][0] not in "._-"


@given(scenarios())
def test_json_brings_back_the_same_scenario(scenario: Scenario) -> None:
    document = json.loads(json.dumps(to_json(scenario)))
    assert from_json(document) == scenario
    assert from_json({}, base=scenario) == scenario


@pytest.mark.parametrize(("name", "value"), [("check", 1), ("skew_percent", 80)])
def test_runs_of_before_there_was_such_a_setting_have_the_same_setup(name: str, value: int) -> None:
    scenario = Scenario("a/b")
    assert name not in to_json(scenario)["workload"]
    changed = replace(scenario, workload=replace(scenario.workload, **{name: value}))
    assert to_json(changed)["workload"][name] == value
    assert from_json(to_json(changed)) == changed


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from([*to_json(Scenario("a/b")), "memory_bytes", "vcpus", "x"]), inner
            )
        ),
        max_leaves=12,
    )
)
def test_whatever_is_given_is_read_or_refused_with_field_and_remedy(raw: object) -> None:
    try:
        from_json(raw, "body")
    except InvalidInput as error:
        assert error.problems
        for problem in error.problems:
            assert problem.field.startswith("body"), problem
            assert problem.message and problem.remedy and problem.code


def refused(raw: object, base: Scenario | None = None) -> dict[str, str]:
    with pytest.raises(InvalidInput) as caught:
        from_json(raw, base=base)
    return {problem.field: problem.code for problem in caught.value.problems}


def test_all_problems_are_told_at_once_by_their_paths() -> None:
    assert refused(
        {
            "name": "a/b",
            "colour": "red",
            "vm": {"vcpus": 0, "cores": 2},
            "workload": {"stride_bytes": 0},
            "values": {"multifd_channels": 0, "warp": 9},
            "steps": [7],
            "transport": "rdma",
            "warmup_s": True,
            "max_iterations": 0,
            "count_ring_full": 1,
        }
    ) == {
        "colour": "unknown_field",
        "vm.vcpus": "invalid_value",
        "vm.cores": "unknown_field",
        "workload.stride_bytes": "out_of_range",
        "values.multifd_channels": "invalid_value",
        "values.warp": "unknown_tunable",
        "steps.0": "invalid_value",
        "transport": "not_a_choice",
        "warmup_s": "invalid_value",
        "max_iterations": "invalid_value",
        "count_ring_full": "invalid_value",
    }


@pytest.mark.parametrize(
    ("raw", "field", "code"),
    [
        ({}, "name", "missing"),
        ({"name": "no-variant"}, "name", "invalid_name"),
        ({"name": "../../etc/passwd"}, "name", "invalid_name"),
        ({"name": "a/b", "vm": {"memory_bytes": 64 * MIB + 1}}, "vm.memory_bytes", "not_whole_mib"),
        ({"name": "a/b", "vm": {"memory_bytes": GIB}}, "workload.region_bytes", "region_too_large"),
        ({"name": "a/b", "steps": [{"when": {"after_s": 1}, "then": {"do": "postcopy"}}]},
         "steps.0.then.do", "needs_postcopy"),
        ({"name": "a/b", "count_ring_full": True}, "count_ring_full", "needs_dirty_ring"),
        ({"name": "a/b", "values": {"multifd_channels": 4}}, "values.multifd_channels",
         "needs_multifd"),
        ({"name": "a/b", "title": "x" * 3000}, "title", "too_long"),
        ({"name": "a/b", "steps": [{}] * 33}, "steps", "invalid_input"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_refused(raw: dict[str, object], field: str, code: str) -> None:
    assert refused(raw)[field] == code


def test_sizes_and_rates_may_have_units_and_values_too() -> None:
    scenario = from_json(
        {
            "name": "a/b",
            "vm": {"memory_bytes": "768Mi"},
            "workload": {"region_bytes": "512 MiB"},
            "values": {"max_bandwidth_bytes_per_s": "1Gbit/s", "auto_converge": "on"},
        }
    )
    assert scenario.vm.memory_bytes == 768 * MIB
    assert scenario.workload.region_bytes == 512 * MIB
    assert scenario.values == {"max_bandwidth_bytes_per_s": 119 << 20, "auto_converge": True}


def test_overrides_leave_the_rest_and_a_null_takes_a_value_away() -> None:
    base = Scenario(
        "a/b", vm=VmShape(2 * GIB, 4), values={"xbzrle": True, "auto_converge": True}, warmup_s=9
    )
    changed = from_json({"vm": {"vcpus": 2}, "values": {"xbzrle": None}}, base=base)
    assert changed == replace(base, vm=VmShape(2 * GIB, 2), values={"auto_converge": True})


def test_a_profile_is_laid_over_the_scenario_and_may_contradict_it() -> None:
    base = Scenario("a/b", values={"multifd": True, "multifd_channels": 4})
    assert base.with_values({"multifd_channels": 8}).values["multifd_channels"] == 8
    assert base.values["multifd_channels"] == 4
    with pytest.raises(InvalidInput, match="xbzrle and multifd exclude each other"):
        base.with_values({"xbzrle": True})


def test_scaling_keeps_the_shares_of_region_and_cache() -> None:
    base = Scenario(
        "a/b",
        vm=VmShape(1536 * MIB, 2),
        workload=Workload(region_bytes=GIB),
        values={"xbzrle": True, "xbzrle_cache_size_bytes": 128 * MIB},
    )
    small = base.scaled(384 * MIB)
    assert small.vm == VmShape(384 * MIB, 2)
    assert small.workload.region_bytes == 256 * MIB
    assert small.values == {"xbzrle": True, "xbzrle_cache_size_bytes": 32 * MIB}
    with pytest.raises(InvalidInput, match="does not fit"):
        base.scaled(32 * MIB)


@given(st.integers(4096, 1 << 40))
def test_the_nearest_power_of_two_is_nearer_than_the_next(size: int) -> None:
    power = nearest_power_of_two(size)
    assert power & (power - 1) == 0
    assert power**2 <= 2 * size**2 and size**2 <= 2 * power**2


def test_what_a_scenario_needs_and_takes() -> None:
    plain = Scenario("mine/one")
    ring = Scenario("mine/two", values={"dirty_ring_size_entries": 4096})
    assert (plain.family, plain.variant) == ("mine", "one")
    assert (plain.dirty_ring_entries, plain.needs_kvm) == (0, False)
    assert (ring.dirty_ring_entries, ring.needs_kvm) == (4096, True)
    assert Scenario("mine/three", values={"dirty_limit": True}).needs_kvm
    assert replace(plain, warmup_s=1, max_seconds=2, cooldown_s=4).longest_s == 7


def test_a_toml_file_has_many() -> None:
    text = """
    [[scenario]]
    name = "mine/slow"
    values = {max_bandwidth_bytes_per_s = "10MiB/s"}
    [[scenario.steps]]
    when = {after_s = 3}
    then = {do = "abort"}

    [[scenario]]
    name = "mine/fast"
    """
    slow, fast = read_toml(text)
    assert slow.values == {"max_bandwidth_bytes_per_s": 10 * MIB}
    assert slow.steps == (Step(AfterSeconds(3), StepAction.ABORT),)
    assert fast == Scenario("mine/fast")


@pytest.mark.parametrize(
    ("text", "field", "code"),
    [
        ("[[scenario", "scenario", "not_toml"),
        ("a = " + "[" * 50_000, "scenario", "not_toml"),
        ("#" * (MAX_FILE_CHARACTERS + 1), "scenario", "too_long"),
        ("", "scenario", "missing"),
        ("scenario = 1", "scenario", "not_a_list"),
        ("[[scenario]]\nname='a/b'\n" * 2, "scenario.1.name", "duplicate_name"),
        ("[[scenario]]\nname='a/b'\n[[scenario]]\nname='c/d'\nwarmup_s='x'",
         "scenario.1.warmup_s", "invalid_value"),
        ("[[scenario]]\n" * (MAX_SCENARIOS + 1), "scenario", "too_many"),
    ],
)  # fmt: skip
def test_a_toml_file_that_cannot_be_read_says_where(text: str, field: str, code: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_toml(text)
    assert (caught.value.problems[0].field, caught.value.problems[0].code) == (field, code)
    assert all(problem.remedy for problem in caught.value.problems)


def test_a_tunable_of_a_pack_is_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidInput) as refused:
        from_json({"name": "x/y", "values": {"qemu_reaper_policy": "fixed"}})
    (problem,) = refused.value.problems
    assert (problem.field, problem.code) == ("values.qemu_reaper_policy", "unknown_tunable")
    assert "name it in the setting packs" in problem.remedy
