"""What a study finds by the runs of its confirming campaign."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from tests.support.benchmarks.studies import study_json
from vmtune.bench.model.campaign import file as campaign_file
from vmtune.bench.model.campaign.record import CampaignRecord, CampaignState, Forecast
from vmtune.bench.model.runs.run import Run, RunState
from vmtune.bench.model.tune.estimates import broken_share
from vmtune.bench.model.tune.file import from_json
from vmtune.bench.model.tune.records import OUTCOMES, TrialRecord, TrialRun
from vmtune.bench.model.tune.result import Finding, StudyResult
from vmtune.bench.model.tune.spec import StudySpec
from vmtune.bench.report.build import Plan, build, report_run
from vmtune.bench.report.report import ReportArm, ReportRun
from vmtune.bench.services.tune.confirming import arm_of, campaign_document, result_of

AT = datetime(2026, 11, 27, tzinfo=UTC)
TRIAL = TrialRecord(3, "sampled", {"multifd": True})
BLOCKS = 10


def spec_of(objective: str) -> StudySpec:
    return from_json(study_json(objective=objective, confirm_blocks=BLOCKS), {})


def run(arm: str, block: int, state: RunState, **metrics: float) -> ReportRun:
    made = Run(uuid4(), "mine", {}, {}, state, AT, metrics=metrics)
    return report_run(made, arm=arm, block=block, environment="here")


def completed(arm: str, block: int, level: float) -> ReportRun:
    """Of a guest whose drop is about *level* ms, and whose writes are about as many MiB/s."""
    values = [level * random.Random(f"{arm} {block} {n}").uniform(0.98, 1.02) for n in range(2)]
    return run(
        arm, block, RunState.COMPLETED, total_time_ms=9000.5, elapsed_ms=9000.5,
        guest_drop_ms=values[0], guest_write_mib_per_s=values[1], guest_silence_ms=100.5,
    )  # fmt: skip


def found(spec: StudySpec, runs: list[ReportRun], detectable: float = 1.2) -> StudyResult:
    """What a campaign of the default and one finalist with *runs* says."""
    arms = ("default", arm_of(TRIAL.number))
    report = build(
        Plan(
            "confirmed",
            tuple(map(ReportArm, arms)),
            (arms,),
            primary_metric=spec.goal.primary.metric,
            margin=spec.margin_percent / 100,
        ),
        runs,
        {"here": {}},
        AT,
    )
    campaign = campaign_file.from_json(campaign_document(spec, [TRIAL]), {})
    record = CampaignRecord(
        UUID(int=1),
        campaign,
        Forecast(campaign.run_count, detectable, 0.1, "", 0.0, ""),
        CampaignState.COMPLETED,
        "here",
        AT,
    )
    return result_of(spec, [TRIAL], report, record)


def arm(name: str, level: float) -> list[ReportRun]:
    return [completed(name, block, level) for block in range(1, BLOCKS + 1)]


@pytest.mark.parametrize(
    ("state", "metrics"),
    [
        # Given up at 40 s: it would have taken longer, and nobody knows how long.
        (RunState.NOT_CONVERGED, {"elapsed_ms": 40_000.0, "guest_drop_ms": 10.0}),
        (RunState.FAILED, {"total_time_ms": 3000.0, "guest_drop_ms": 10.0}),
    ],
)
@pytest.mark.parametrize(
    ("condition", "broken"), [("total_time_ms <= 60s", 0.3), ("completed", 0.3), ("", 0.0)]
)
def test_a_run_that_did_not_succeed_does_not_keep_a_constraint(
    state: RunState, metrics: dict[str, float], condition: str, broken: float
) -> None:
    objective = "minimise guest_drop_ms" + (f" where {condition}" if condition else "")
    trial = arm("trial 3", 50.0)
    trial[:3] = [run("trial 3", block, state, **metrics) for block in (1, 2, 3)]
    spec = spec_of(objective)
    result = found(spec, [*arm("default", 100.0), *trial])
    (evidence,) = result.evidence
    assert evidence.broken_share == broken
    searched = [TrialRun(each.run, 1, OUTCOMES[each.state], each.values) for each in trial]
    assert broken_share(spec.goal, searched) == broken  # the search goes by the same
    if broken:
        assert result.finding is Finding.NOTHING_FEASIBLE


def test_a_study_of_runs_that_end_as_planned_finds_what_is_better() -> None:
    """The scenario is meant to end at its limit: no run completes, and all of them succeed."""
    runs = [
        run(
            each.arm, each.block or 0, RunState.PLANNED, elapsed_ms=20_000.5,
            guest_write_mib_per_s=each.values["guest_write_mib_per_s"],
        )
        for each in arm("default", 100.0) + arm("trial 3", 150.0)
    ]  # fmt: skip
    result = found(spec_of("maximise guest_write_mib_per_s where completed"), runs)
    assert (result.finding, result.trial) == (Finding.BETTER, 3), result.reason
    assert result.gain_percent == pytest.approx(50, abs=5)
    assert [each.broken_share for each in result.evidence] == [0.0]


@pytest.mark.parametrize(
    ("objective", "percent"),
    [("minimise guest_drop_ms", 33.3), ("maximise guest_write_mib_per_s", 50.0)],
)
def test_what_would_have_been_found_is_a_gain_in_the_goals_direction(
    objective: str, percent: float
) -> None:
    """A ratio of 1.5 is half as much again upwards, and a third less downwards."""
    result = found(spec_of(objective), arm("default", 100.0) + arm("trial 3", 100.0), 1.5)
    assert result.finding is Finding.NO_BETTER
    assert result.within_percent == percent
    assert f"would most likely have shown {percent:g} %" in result.reason


def test_no_gain_below_the_margin_would_have_been_found() -> None:
    spec = replace(spec_of("maximise guest_write_mib_per_s"), margin_percent=20.0)
    result = found(spec, arm("default", 100.0) + arm("trial 3", 100.0), 1.1)
    assert result.within_percent == 20
