"""Studies from the order to the draft of a profile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.support.benchmarks.studies import TunedRunner, study_json
from tests.unit.bench.services.tune.study_service import Bench, S, counted, make, started
from vmtune.bench.migration.order import RunOrder
from vmtune.bench.model.campaign.record import CampaignState
from vmtune.bench.model.runs.run import RunRecord
from vmtune.bench.model.tune.records import TrialOutcome
from vmtune.bench.model.tune.spec import Used
from vmtune.bench.order import AnyOrder
from vmtune.storage import Store


async def test_what_is_better_is_confirmed_in_fresh_runs_and_drafted(bench: Bench) -> None:
    study = await bench.do()
    kept = study.kept
    assert kept.state is S.COMPLETED, kept.reason
    counted(bench.store, kept.id)
    assert kept.result is not None
    found = kept.result["found"]
    assert found["finding"] == "better"
    assert found["settings"]["multifd"] is True
    assert found["gain_percent"] > 25
    (evidence,) = found["evidence"]
    assert (evidence["baseline"], evidence["verdict"]) == ("default", "better")
    assert 0.5 < evidence["low"] <= evidence["estimate"] <= evidence["high"] < 0.75
    campaign = bench.store.campaigns.get(kept.campaign or kept.id)
    assert campaign.state is CampaignState.COMPLETED
    assert campaign.campaign.blocks == 6
    own = {run.id for run in bench.store.studies.runs(kept.id)}
    assert own.isdisjoint(run.id for run in bench.store.campaigns.runs(campaign.id))
    drafted = await bench.it.profiles.get(kept.result["draft"]["profile"])
    assert drafted.current.values == found["settings"]
    for part in (str(kept.id), str(kept.campaign), "better", kept.result["environments"][0]):
        assert part in drafted.current.note
    assert bench.store.assignments.all() == ()
    assert study.used.runs + campaign.campaign.run_count <= 44 + campaign.campaign.warmup_runs


class Trading(TunedRunner):
    """More than four channels are faster still, and cost three times the downtime."""

    def _recorded(self, order: AnyOrder) -> RunRecord:
        record = super()._recorded(order)
        assert isinstance(order, RunOrder) and record.totals is not None
        channels = order.scenario.values.get("multifd_channels", 0)
        costs = 300 if isinstance(channels, int) and channels > 4 else 100
        downtime = round(costs * self.chance.uniform(0.98, 1.02))
        return replace(record, totals=replace(record.totals, downtime_ms=downtime))


@pytest.mark.parametrize(("low", "harmless"), [(1, True), (5, False)])
async def test_of_several_goals_what_is_worse_in_none_comes_first(
    store: Store, tmp_path: Path, low: int, harmless: bool
) -> None:
    order = study_json(
        objective="minimise total_time_ms, minimise downtime_ms where completed",
        space={"multifd": {}, "multifd_channels": {"low": low, "high": 8}},
        finalists=2,
    )
    async with started(make(store, tmp_path, Trading())) as bench:
        kept = (await bench.do(**order)).kept
    assert kept.state is S.COMPLETED, kept.reason
    assert kept.result is not None
    found = kept.result["found"]
    assert found["finding"] == "better"
    own = [each for each in found["evidence"] if each["trial"] == found["trial"]]
    assert [each["metric"] for each in own] == ["total_time_ms", "downtime_ms"]
    assert own[0]["verdict"] == "better"
    assert (own[1]["low"] > 2) is not harmless
    assert ("and worse in downtime_ms" in found["reason"]) is not harmless
    if harmless:  # beside one that is faster
        others = [each for each in found["evidence"] if each["metric"] == "total_time_ms"]
        assert min(each["estimate"] for each in others) < own[0]["estimate"]
        assert len(found["evidence"]) == 4


async def test_where_nothing_helps_that_is_the_result(store: Store, tmp_path: Path) -> None:
    async with started(make(store, tmp_path, TunedRunner(best=1.0))) as bench:
        study = await bench.do()
    assert study.kept.state is S.COMPLETED, study.kept.reason
    assert study.kept.result is not None
    found = study.kept.result["found"]
    assert found["finding"] == "no better settings found"
    assert found["within_percent"] >= 5
    assert "draft" not in study.kept.result
    assert store.profiles.list().items == ()


async def test_the_profile_in_use_has_to_be_beaten_too(bench: Bench) -> None:
    await bench.it.profiles.create("fast", {"multifd": True, "multifd_channels": 6})
    study = await bench.do(profile="fast", budget={"runs": 50})
    assert study.spec.current == {"multifd": True, "multifd_channels": 6}
    assert [trial.origin for trial in study.trials][:2] == ["default", "current"]
    assert study.kept.result is not None
    assert study.kept.result["found"]["finding"] == "no better settings found"
    if study.kept.campaign is not None:
        arms = bench.store.campaigns.get(study.kept.campaign).campaign.arms
        assert [arm.name for arm in arms][:2] == ["default", "current"]
        assert arms[2].against == ("default", "current")


async def test_what_cannot_run_is_pruned_before_it_runs(bench: Bench) -> None:
    space = {
        "multifd": {},
        "zero_copy_send": {},
        "multifd_compression": {"choices": ["none", "qpl"]},
    }
    study = await bench.do(space=space)
    pruned = [run for one in study.trials for run in one.runs if run.outcome is TrialOutcome.PRUNED]
    assert pruned
    assert all(run.run_id == "" and run.reason for run in pruned)
    counted(bench.store, study.kept.id)


async def test_a_bandwidth_limit_is_on_every_run_and_breaches_are_counted(bench: Bench) -> None:
    limit = 1 << 20
    study = await bench.do(limits={"bandwidth_bytes_per_s": limit})
    values = [run.values for run in bench.store.studies.runs(study.kept.id)]
    assert study.kept.campaign is not None
    for run in bench.store.campaigns.runs(study.kept.campaign):
        values.append(bench.store.runs.get(run.id).values)
    assert {each["max_bandwidth_bytes_per_s"] for each in values} == {limit}
    assert {each["limit"] for each in study.kept.breaches} == {"bandwidth_bytes_per_s"}
    assert len(study.kept.breaches) == study.used.runs


async def test_the_same_order_searches_the_same(bench: Bench) -> None:
    one, two = (await bench.do(), await bench.do())
    first = [(trial.origin, trial.settings) for trial in one.trials][:6]
    assert first == [(trial.origin, trial.settings) for trial in two.trials][:6]


async def test_all_that_the_hosts_offer_is_varied_where_nothing_is_named(bench: Bench) -> None:
    spec = await bench.studies.filled_in(study_json(space="auto", rivals=True))
    assert {"multifd", "multifd_channels", "auto_converge"} <= set(spec.space or {})
    assert not {"postcopy", "tls", "max_bandwidth_bytes_per_s"} & set(spec.space or {})
    assert spec.seed == 7
    assert bench.store.studies.list().items == ()


async def test_progress_tells_where_it_is(bench: Bench) -> None:
    told: list[Any] = []
    with patch.object(bench.it.bus, "progress", lambda *each: told.append(each)):
        study = await bench.do()
    of_study = [data for topic, _, data in told if topic.value == "study"]
    assert {each["phase"] for each in of_study} >= {"searching"}
    shares = [each["share"] for each in of_study]
    assert shares == sorted(shares)
    assert all(0 <= each < 1 for each in shares)
    events = [e for e in bench.store.events.since(0, 1000) if e.topic.value == "study"]
    assert [e.data["state"] for e in events if "state" in e.data] == [
        "queued", "searching", "confirming", "completed",
    ]  # fmt: skip
    assert sum("trial" in e.data for e in events) == study.used.runs
    assert isinstance(study.used, Used)
