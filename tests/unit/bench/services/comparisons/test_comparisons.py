"""Which runs a comparison takes, and what it says of them as a whole."""

from __future__ import annotations

import csv
import io
from typing import Any
from uuid import UUID

import pytest

from tests.support.benchmarks.campaigns import FORECAST, a_campaign
from tests.support.benchmarks.measured import PLACE, noisy, put
from vmtune.bench.model.campaign.record import CampaignState
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.report.report import Report, from_document, to_document
from vmtune.bench.report.tables import pairs
from vmtune.bench.services.comparisons.comparisons import Asked, ComparisonService
from vmtune.bench.services.comparisons.files import ReportFormat, report_file
from vmtune.errors import InvalidInput, NotFound
from vmtune.stats.model import Design, NoiseFloor, Scale, Verdict
from vmtune.storage import Store
from vmtune.storage.repositories.bench.campaigns import StoredFloor

STOCK, TUNED = "profile=stock", "profile=tuned"
CAMPAIGN = UUID(int=5)


def compare(store: Store, a: str = STOCK, b: str = TUNED, **asked: Any) -> Report:
    return ComparisonService(store).compared(Asked(a, b, **asked))


def two(store: Store, size: int = 8, **of_tuned: Any) -> None:
    put(store, "stock", noisy(1000, size, 1), profile="stock")
    put(store, "tuned", noisy(500, size, 2), profile="tuned", **of_tuned)


def campaign(store: Store, size: int, ends: bool = True, **changes: Any) -> None:
    made = a_campaign(blocks=size, **changes)
    store.campaigns.begin(made, FORECAST, "h", CAMPAIGN)
    for seed, arm in enumerate(made.arms):
        middle = 500 if arm.values else 1000
        put(store, arm.name, noisy(middle, size, seed), scenario="mine/small", campaign=CAMPAIGN)
    if ends:
        store.campaigns.enter(CAMPAIGN, CampaignState.COMPLETED)


def test_runs_are_chosen_by_what_they_are(store: Store) -> None:
    two(store)
    put(store, "else", noisy(1, 3, 3), profile="other")
    report = compare(store)
    (cell,) = report.cells
    found = cell.primary
    assert (found.a.arm, found.a.runs, found.b.arm, found.b.runs) == (STOCK, 8, TUNED, 8)
    assert found.design is Design.UNPAIRED
    assert found.verdict is Verdict.BETTER
    assert found.effect is not None
    assert 0.45 < found.effect.estimate < 0.55
    assert report.arms[1].facts["profile"] == "tuned revision 1"
    assert from_document(to_document(report)) == report


def test_a_failed_run_counts_and_an_interrupted_or_warm_up_does_not(store: Store) -> None:
    two(store, states={0: RunState.FAILED, 1: RunState.INTERRUPTED, 2: RunState.CANCELLED})
    found = compare(store).cells[0].primary
    assert (found.b.runs, found.b.failed, found.b.measured) == (6, 1, 5)


@pytest.mark.parametrize(
    ("a", "b", "asked", "field", "said"),
    [
        ("", "", {}, "a", "what to compare is missing"),
        (STOCK, "", {}, "b", "what to compare is missing"),
        (STOCK, STOCK, {}, "b", "itself"),
        ("stock", TUNED, {}, "a", "name of an arm"),
        (STOCK, "tuned", {}, "b", "name of an arm"),
        ("profile=", TUNED, {}, "a", "which runs"),
        ("profile=a,profile=b", TUNED, {}, "a", "which runs"),
        ("scenario=x,color=red", TUNED, {}, "a", "no run"),
        (STOCK, "profile=none", {}, "b", "no run"),
        (STOCK, "host=h", {}, "b", "both sides"),
        (STOCK, TUNED, {"metrics": ("speed",)}, "metric", "no metric"),
        (STOCK, TUNED, {"margin_percent": 0.0}, "margin_percent", "margin"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    store: Store, a: str, b: str, asked: Any, field: str, said: str
) -> None:
    two(store)
    with pytest.raises(InvalidInput, match=said) as error:
        compare(store, a, b, **asked)
    assert error.value.problems[0].field == field
    assert error.value.problems[0].remedy


def test_an_arm_that_never_completes_is_better_in_nothing(store: Store) -> None:
    silent, rate = noisy(300, 10, 3), noisy(80, 10, 4)
    for name, state in (("stock", RunState.COMPLETED), ("tuned", RunState.NOT_CONVERGED)):
        given_up = state is RunState.NOT_CONVERGED
        for index in range(10):
            at = 2 * index + (index % 2 == given_up)
            more = {
                "elapsed_ms": 500.0 if given_up else 9000.0 + index,
                "guest_silence_ms": silent[index] / (15 if given_up else 1),
                "guest_write_share_percent": rate[index] * (1.2 if given_up else 1),
                "throttle_max_percent": 20.0 if given_up else 60.0 + index,
                "guest_worst_ms_per_gib": silent[index] / (9 if given_up else 1),
            }
            metric = "iterations" if given_up else "total_time_ms"
            put(store, f"{name}{index}", [8900.0 + index], profile=name, metric=metric, more=more,
                states={0: state}, after=at)  # fmt: skip
    cell = compare(store).cells[0]
    assert cell.comparisons[0].metric == "converged"
    assert cell.comparisons[0].verdict is Verdict.WORSE
    verdicts = {c.metric: c.verdict for c in cell.comparisons}
    assert Verdict.BETTER not in verdicts.values()
    assert verdicts["guest_write_share_percent"] is None


def test_arms_that_ran_one_after_the_other_are_confounded_with_time(store: Store) -> None:
    put(store, "stock", noisy(1000, 10, 1), profile="stock")
    put(store, "tuned", noisy(500, 10, 2), profile="tuned", after=60)
    found = compare(store).cells[0].primary
    assert (found.verdict, found.in_turns) == (Verdict.CONFOUNDED, False)
    assert "epeat it as a campaign" in found.reason
    assert found.effect is not None


def test_failures_of_one_arm_are_told_with_the_verdict(store: Store) -> None:
    two(store, size=10, states={3: RunState.FAILED, 7: RunState.NOT_CONVERGED})
    report = compare(store)
    found = report.cells[0].primary
    assert found.succeeded is not None
    assert (found.succeeded.b_count, found.succeeded.b_runs) == (8, 10)
    told = "2 of 10 runs of profile=tuned did not succeed"
    assert told in found.reason or any(told in note for note in found.notes)
    lead = pairs(report, report.cells[0])[0].lead
    assert lead[0].startswith("Completed: ")
    assert lead[1].startswith("Total time: ")


def test_what_there_is_not_is_not_found(store: Store) -> None:
    two(store)
    with pytest.raises(NotFound, match="no campaign"):
        compare(store, campaign="none")
    with pytest.raises(NotFound, match="no campaign"):
        compare(store, "campaign=none,arm=x")
    with pytest.raises(NotFound):
        compare(store, reference="none")


def test_scenarios_are_never_mixed(store: Store) -> None:
    for scenario, middle in (("q/a", 100), ("q/b", 9000)):
        for name, factor in (("stock", 1), ("tuned", 0.5)):
            values = noisy(middle * factor, 6, 1)
            put(store, name, values, scenario=scenario, profile=name)
    put(store, "stock", [1], scenario="q/alone", profile="stock")
    report = compare(store)
    assert [cell.name for cell in report.cells] == ["q/a", "q/b"]
    assert {cell.primary.verdict for cell in report.cells} == {Verdict.BETTER}
    assert any("q/alone" in note for note in report.notes)
    assert "q/alone" not in {run.cell for run in report.runs}
    crosswise = compare(store, "scenario=q/a,profile=stock", "scenario=q/b,profile=stock")
    assert [cell.name for cell in crosswise.cells] == ["q/b against q/a"]
    put(store, "c", [1], scenario="q/c", profile="c")
    put(store, "c", [1], scenario="q/d", profile="c")
    with pytest.raises(InvalidInput, match="no scenario in common"):
        compare(store, STOCK, "profile=c")


def test_other_environments_get_no_verdict_unless_that_is_expected(store: Store) -> None:
    other = {**PLACE, "qemu": {"version": "10.1.0"}}
    two(store, environment=other, fingerprint="there")
    report = compare(store)
    assert [d.field for d in report.differences] == ["qemu.version"]
    assert "qemu.version" in report.withheld
    assert report.cells[0].primary.verdict is None
    for meant in ("qemu", ""):
        assert compare(store, expected=(meant,)).cells[0].primary.verdict is Verdict.BETTER


def test_only_the_metrics_that_are_wanted(store: Store) -> None:
    two(store, more={"downtime_ms": 7.0, "iterations": 3.0})
    assert [m.name for m in compare(store).metrics] == [
        "converged", "total_time_ms", "downtime_ms", "iterations"
    ]  # fmt: skip
    report = compare(store, metrics=("downtime_ms", "total_time_ms"))
    assert [m.name for m in report.metrics] == ["converged", "downtime_ms", "total_time_ms"]
    assert report.primary_metric == "downtime_ms"
    assert all(run.values.keys() <= {m.name for m in report.metrics} for run in report.runs)


def test_choosing_metrics_afterwards_does_not_spare_their_adjustment(store: Store) -> None:
    others = {"setup_time_ms": 3.0, "iterations": 4.0, "transferred_bytes": 5.0}
    for name, downtimes in (("stock", noisy(40, 6, 1)), ("tuned", noisy(50, 6, 2, 0.2))):
        for index, (total, downtime) in enumerate(zip(noisy(9, 6, 3), downtimes, strict=True)):
            more = {"downtime_ms": downtime, **others}
            put(store, f"{name}{index}", [total], profile=name, more=more)
    every = {c.metric: c for c in compare(store).cells[0].comparisons}
    found = compare(store, metrics=("total_time_ms", "downtime_ms"))
    chosen = {c.metric: c for c in found.cells[0].comparisons}
    assert set(chosen) == {"converged", "total_time_ms", "downtime_ms"}
    downtime = chosen["downtime_ms"]
    assert downtime.test is not None and downtime.adjusted_p is not None
    assert downtime.adjusted_p > downtime.test.p
    assert downtime == every["downtime_ms"]


def test_a_campaign_is_compared_in_its_blocks(store: Store) -> None:
    campaign(store, 6)
    warm_up = a_campaign(blocks=6)
    assert warm_up.warmup_runs == 1
    report = compare(store, "", "", campaign="mine")
    found = report.cells[0].primary
    assert (found.design, found.size) == (Design.PAIRED, 6)
    assert (found.a.arm, found.b.arm, found.verdict) == ("stock", "tuned", Verdict.BETTER)
    assert (report.campaign, report.seed, report.blocks, report.notes) == ("mine", 7, 6, ())
    assert report.arms[1].facts["values"] == "multifd on"
    assert [run.number for run in report.runs] == sorted(run.number for run in report.runs)
    turned = compare(store, "tuned", "stock", campaign=str(CAMPAIGN))
    assert turned.cells[0].primary.verdict is Verdict.WORSE
    with pytest.raises(InvalidInput, match="no arm 'fast'"):
        compare(store, "stock", "fast", campaign="mine")


def test_a_campaign_that_goes_on_has_no_verdict_yet(store: Store) -> None:
    campaign(store, 6, ends=False)
    report = compare(store, "", "", campaign="mine")
    assert report.cells[0].primary.verdict is None
    assert "goes on" in report.withheld
    assert "what there is so far" in report.notes[0]
    store.campaigns.enter(CAMPAIGN, CampaignState.CANCELLED)
    after = compare(store, "", "", campaign="mine", margin_percent=20.0)
    assert after.cells[0].primary.verdict is None
    assert after.cells[0].primary.effect is not None
    assert "was cancelled before its last block" in after.withheld
    assert "cancelled before its end" in after.notes[0]
    assert "not the 5 %" in after.notes[1]


@pytest.mark.parametrize(
    ("a", "b", "asked"),
    [
        ("", "", {"campaign": "mine"}),
        ("stock", "tuned", {"campaign": "mine"}),
        ("campaign=mine,arm=stock", "campaign=mine,arm=tuned", {}),
        ("scenario=mine/small,arm=stock", "scenario=mine/small,arm=tuned", {}),
    ],
)
def test_nobody_peeks_at_a_campaign_that_goes_on(
    store: Store, a: str, b: str, asked: dict[str, Any]
) -> None:
    campaign(store, 8, ends=False)
    report = compare(store, a, b, **asked)
    assert "goes on" in report.withheld
    for found in report.cells[0].comparisons:
        assert (found.verdict, found.effect, found.test, found.adjusted_p) == (None,) * 4
        assert (found.cliffs_delta, found.better_share, found.shares) == (None,) * 3
    for format in (ReportFormat.HTML, ReportFormat.MARKDOWN):
        assert b"% lower" not in report_file(report, format).content
    store.campaigns.enter(CAMPAIGN, CampaignState.COMPLETED)
    assert compare(store, a, b, **asked).cells[0].primary.effect is not None


def test_who_asks_again_is_told_of_it(store: Store) -> None:
    for number, (name, blocks) in enumerate([("first", 6), ("second", 9), ("other", 6)]):
        arms = [{"name": "stock"}, {"name": "tuned", "values": {"multifd": name != "other"}}]
        made = a_campaign(name=name, blocks=blocks, arms=arms)
        store.campaigns.begin(made, FORECAST, "h", UUID(int=100 + number))
        store.campaigns.enter(UUID(int=100 + number), CampaignState.CANCELLED)
    campaign(store, 6)
    (told,) = [n for n in compare(store, "", "", campaign="mine").notes if "asked before" in n]
    assert told.startswith("the same was asked before, in second (")
    assert "first (" in told and "cancelled)" in told and "other" not in told
    assert not [n for n in compare(store, "", "", campaign="first").notes if "asked before" in n]


def test_runs_that_were_ended_from_outside_are_counted_for_each_arm(store: Store) -> None:
    campaign(store, 6)
    ended = {0: RunState.INTERRUPTED, 1: RunState.INTERRUPTED, 2: RunState.CANCELLED}
    put(store, "tuned", [1, 2, 3], scenario="mine/small", campaign=CAMPAIGN, states=ended, after=99)
    notes = compare(store, "", "", campaign="mine").notes
    told = "stock 0 cancelled and 0 interrupted, tuned 1 cancelled and 2 interrupted"
    assert any(told in note for note in notes)


def test_too_few_blocks_are_insufficient(store: Store) -> None:
    campaign(store, 5)
    found = compare(store, "", "", campaign="mine").cells[0].primary
    assert found.verdict is Verdict.INSUFFICIENT_DATA


def test_the_noise_floor_of_the_same_scenario_is_used_before_others(store: Store) -> None:
    campaign(store, 6)
    for scenario, effect in (("other/one", 9.0), ("mine/small", 3.0)):
        floor = NoiseFloor("total_time_ms", "here", Scale.RATIO, Design.PAIRED, 6, effect, 1.0)
        store.campaigns.keep_floors(CAMPAIGN, [StoredFloor(scenario, floor)])
    found = compare(store, "", "", campaign="mine").cells[0].primary
    assert found.noise_floor == pytest.approx(3.0)
    assert found.below_noise_floor


def test_the_figures_can_be_computed_from_the_csv(store: Store) -> None:
    campaign(store, 6)
    report = compare(store, "", "", campaign="mine")
    file = report_file(report, ReportFormat.CSV)
    assert (file.name, file.media_type) == ("mine.csv", "text/csv")
    rows = list(csv.DictReader(io.StringIO(file.content.decode())))
    by_block: dict[str, dict[str, float]] = {}
    for row in rows:
        by_block.setdefault(row["block"], {})[row["arm"]] = float(row["total_time_ms"])
    ratios = sorted(each["tuned"] / each["stock"] for each in by_block.values())
    middles = sorted((one * two) ** 0.5 for i, one in enumerate(ratios) for two in ratios[i:])
    effect = report.cells[0].primary.effect
    assert effect is not None
    assert effect.estimate == pytest.approx(middles[len(middles) // 2])
    for format in (ReportFormat.HTML, ReportFormat.MARKDOWN):
        assert b"better" in report_file(report, format).content.lower()


def test_a_published_table_is_put_beside(store: Store) -> None:
    campaign(store, 6)
    report = compare(store, "", "", campaign="mine", reference="qatzip-compression")
    assert any("qatzip-compression" in note for note in report.notes)
    with pytest.raises(NotFound):
        compare(store, "", "", campaign="mine", reference="qatzip-compression/none")
