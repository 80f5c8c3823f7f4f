"""Scenarios, records, metrics and matrices of updates of memory maps."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.benchmarks.bench_runs import srcu_record
from vmtune.bench.catalogue import SRCU_SCENARIOS, why_not_updates
from vmtune.bench.model.campaign.matrix import campaign_of, read_toml
from vmtune.bench.model.campaign.matrix_kinds import SrcuMatrix
from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.metrics.srcu import SRCU_METRICS
from vmtune.bench.model.metrics.table import METRICS_OF
from vmtune.bench.model.runs.run import RunRecord, RunState
from vmtune.bench.model.runs.srcu_record import SrcuRecord
from vmtune.bench.model.scenario.any_kind import from_json, kind_of, to_json
from vmtune.bench.model.scenario.matrix_cells import SrcuCell
from vmtune.bench.model.scenario.srcu import SrcuScenario
from vmtune.bench.reduce import reduce
from vmtune.documents import dataclass_json as documents
from vmtune.errors import InvalidInput
from vmtune.reference.files import scenario_file

scenarios = st.builds(
    SrcuScenario,
    st.builds(SrcuCell, st.integers(1, 256)),
    updates=st.integers(2, 1_000_000),
    max_seconds=st.integers(1, 3600),
)


@given(scenarios, scenarios)
def test_a_name_stands_for_one_setup(one: SrcuScenario, other: SrcuScenario) -> None:
    assert from_json(to_json(one)) == one
    assert kind_of(one) is ScenarioKind.SRCU
    assert (one.name == other.name) is (one == other)


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ({"cell": {"vcpus": 0}}, ("s.cell.vcpus", "invalid_value")),
        ({"cell": {}, "updates": 1}, ("s.updates", "invalid_value")),
        ({"cell": {}, "max_seconds": 4000}, ("s.max_seconds", "invalid_value")),
        ({"cell": {}, "values": {"multifd": True}}, ("s.values.multifd", "not_for_updates")),
        ({"cell": {}, "name": "x"}, ("s.name", "invalid_name")),
        ({"cell": {}, "iodepth": 1}, ("s.iodepth", "unknown_field")),
    ],
)
def test_refused_with_the_field(raw: dict[str, object], problem: tuple[str, str]) -> None:
    with pytest.raises(InvalidInput) as refused:
        from_json({"kind": "srcu", **raw}, "s")
    assert [(each.field, each.code) for each in refused.value.problems] == [problem]


def test_a_record_is_read_back_and_reduced() -> None:
    record = srcu_record(2)
    assert documents.from_json(SrcuRecord, documents.to_json(record)) == record
    found = reduce(RunRecord(srcu=record), RunState.COMPLETED, {})
    assert set(found) == {metric.name for metric in SRCU_METRICS}
    assert set(found) == set(METRICS_OF[ScenarioKind.SRCU])
    assert found["grace_period_us"] == found["idle_grace_period_us"] == 2000
    assert found["srcu_boot_ms"] == found["srcu_boot_mean_ms"] == 18_000
    assert (found["slot_add_us"], found["slot_delete_p99_us"]) == (2000, 4000)
    assert found["updates_timed"] == 1


def test_what_was_cut_short_counts_as_such() -> None:
    cut = RunRecord(srcu=replace(srcu_record(), asked=2002))
    assert reduce(cut, RunState.NOT_CONVERGED, {})["updates_timed"] == 0


def test_the_matrix_that_ships_measures_each_number_of_vcpus() -> None:
    plan = read_toml(scenario_file("srcu-updates").text)
    assert isinstance(plan.matrix, SrcuMatrix)
    campaign = campaign_of(plan)
    assert campaign.kind is ScenarioKind.SRCU
    assert campaign.primary_metric == "grace_period_us"
    assert [cell.name for cell in campaign.cells] == ["1-vcpu", "2-vcpus", "4-vcpus"]
    (arm,) = campaign.arms
    four = campaign.scenario_of(campaign.cells[2], arm)
    assert isinstance(four, SrcuScenario)
    assert (four.cell.vcpus, four.updates, four.max_seconds) == (4, 2000, 60)


def test_a_matrix_is_of_one_kind() -> None:
    with pytest.raises(InvalidInput) as refused:
        read_toml('name = "x"\narms = [{name = "a"}]\n[boot]\n[srcu]\n')
    assert [problem.code for problem in refused.value.problems] == ["one_of"]


def test_where_it_cannot_be_measured() -> None:
    assert set(SRCU_SCENARIOS) == {"srcu/1-vcpu", "srcu/2-vcpus", "srcu/4-vcpus"}
    assert why_not_updates(True, "x86_64") == ""
    assert "/dev/kvm" in why_not_updates(False, "x86_64")
    assert "x86-64" in why_not_updates(True, "aarch64")
