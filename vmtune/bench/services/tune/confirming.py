"""The confirmation of a study: the campaign of its finalists, and what its verdicts mean.

Only these runs say whether settings are better: the search's own praise what was lucky.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID, uuid5

from vmtune.bench.model.campaign.campaign import HostLoad
from vmtune.bench.model.campaign.record import CampaignRecord
from vmtune.bench.model.scenario.any_kind import to_json as scenario_to_json
from vmtune.bench.model.tune.objective import Sense
from vmtune.bench.model.tune.records import TrialRecord
from vmtune.bench.model.tune.result import Evidence, Finding, StudyResult
from vmtune.bench.model.tune.spec import CURRENT, Settings, StudySpec
from vmtune.bench.report.report import Report
from vmtune.bench.services.comparisons.comparisons import Asked, ComparisonService
from vmtune.bench.services.tune.reading import read_study, values_of
from vmtune.errors import CommandRefused
from vmtune.stats.model import Comparison, Scale, Verdict
from vmtune.storage import Store

DEFAULT_ARM = "default"
MOST_BROKEN = 0.1
"""The share of its runs in which a winner may break a constraint of the objective."""
MOSTLY_BROKEN = 0.8
"""A baseline that breaks one in so many is no bar for settings that keep it."""
_NAMED = 50


def campaign_id(study: UUID) -> UUID:
    """The same for the same study, so that it is confirmed once."""
    return uuid5(study, "confirmation")


def arm_of(number: int) -> str:
    """What a finalist's arm is called."""
    return f"trial {number}"


def campaign_document(spec: StudySpec, finalists: Sequence[TrialRecord]) -> dict[str, Any]:
    """The campaign that compares *finalists* with the default and the current profile."""
    baselines: list[tuple[str, Settings]] = [(DEFAULT_ARM, {})]
    if spec.current is not None:
        baselines.append((CURRENT, spec.current))
    against = [name for name, _ in baselines]
    arms: list[dict[str, Any]] = [_arm(spec, name, settings) for name, settings in baselines]
    arms += [
        {**_arm(spec, arm_of(one.number), one.settings), "against": against} for one in finalists
    ]
    document: dict[str, Any] = {
        "name": f"{spec.name[:_NAMED].rstrip('._-')}-confirmed",
        "title": f"Confirmation of the study {spec.name}",
        "scenario": scenario_to_json(spec.scenario),
        "blocks": spec.confirm_blocks,
        "arms": arms,
        "primary_metric": spec.goal.primary.metric,
        "margin_percent": spec.margin_percent,
    }
    if spec.host_load is not HostLoad.IDLE:
        cell = {"name": spec.scenario.variant, "host_load": spec.host_load.value}
        document["cells"] = [cell]
    if spec.kvm is not None:
        document["kvm"] = spec.kvm
    return document


def _arm(spec: StudySpec, name: str, settings: Settings) -> dict[str, Any]:  # any JSON
    own = spec.scenario.values
    values = {
        tunable: value
        for tunable, value in values_of(spec, settings).items()
        if tunable not in own or own[tunable] != value
    }
    arm: dict[str, Any] = {"name": name, "testbed": spec.testbed.value, "qemu": spec.qemu}
    return {**arm, "values": values} if values else arm


def judge(store: Store, id: UUID) -> tuple[StudyResult, tuple[str, ...]]:
    """What the campaign of a study found, and the fingerprints of where it ran. Blocks for some
    seconds.

    :raise CommandRefused: the campaign did not run to its end.
    """
    study = read_study(store, store.studies.get(id))
    assert study.kept.campaign is not None, "it is confirmed"
    record = store.campaigns.get(study.kept.campaign)
    if record.state.value != "completed":
        raise CommandRefused(
            f"the campaign that confirms was {record.state.value} before its end",
            field="study",
            code="not_confirmed",
            remedy="order the study again; its trials stay",
        )
    report = ComparisonService(store).compared(Asked(campaign=str(record.id)))
    wanted = study.kept.finalists or ()
    finalists = [one for one in study.trials if one.number in wanted]
    fingerprints = tuple(each.fingerprint for each in report.environments if each.fingerprint)
    return result_of(study.spec, finalists, report, record), fingerprints


def result_of(
    spec: StudySpec, finalists: Sequence[TrialRecord], report: Report, record: CampaignRecord
) -> StudyResult:
    """What the campaign's report says of *finalists*.

    The first goal decides whether one is better. Of several that are, one that is worse in no other
    goal comes before one that is, then the one with the larger gain.
    """
    baselines = [DEFAULT_ARM, *([CURRENT] if spec.current is not None else [])]
    evidence = tuple(
        _evidence(spec, report, one, baseline, goal.metric)
        for one in finalists
        for baseline in baselines
        for goal in spec.goal.goals
    )
    confirmed: list[tuple[bool, float, TrialRecord, float | None]] = []
    for one in finalists:
        of_it = [each for each in evidence if each.trial == one.number]
        own = [each for each in of_it if each.metric == spec.goal.primary.metric]
        if all(_beats(spec, report, each) for each in own):
            gains = [gain for each in own if (gain := _gain(spec, each)) is not None]
            gain = min(gains) if gains else None
            harmless = not _worse_in(spec, of_it)
            confirmed.append((harmless, -1.0 if gain is None else gain, one, gain))
    if confirmed:
        _, _, winner, gain = max(confirmed, key=lambda each: each[:2])
        worse = _worse_in(spec, [one for one in evidence if one.trial == winner.number])
        over = " and ".join(baselines)
        return StudyResult(
            Finding.BETTER,
            winner.number,
            winner.settings,
            None if gain is None else round(gain, 1),
            evidence=evidence,
            reason=f"trial {winner.number} is better than {over} by the verdict of "
            f"{spec.confirm_blocks} fresh blocks"
            + (f", and worse in {' and '.join(worse)}" if worse else ""),
        )
    within = _within(spec, record)
    if evidence and all(each.broken_share > MOST_BROKEN for each in evidence):
        return StudyResult(
            Finding.NOTHING_FEASIBLE,
            evidence=evidence,
            reason="no finalist kept the constraints of the objective in fresh runs",
        )
    return StudyResult(
        Finding.NO_BETTER,
        within_percent=within,
        evidence=evidence,
        reason="no finalist is better than " + " and ".join(baselines) + " by the verdict of "
        f"{spec.confirm_blocks} fresh blocks"
        + (f", which would most likely have shown {within:g} %" if within is not None else ""),
    )


def _within(spec: StudySpec, record: CampaignRecord) -> float | None:
    """Gains above this, in percent of the default's value, the campaign would have found in 80 % of
    cases. The ratio that it finds upwards is 1 divided by it downwards."""
    found = record.forecast.detectable
    if found is None:
        return None
    gain = 1 - 1 / found if spec.goal.primary.sense is Sense.MINIMISE else found - 1
    return round(max(spec.margin_percent, gain * 100), 1)


def _worse_in(spec: StudySpec, evidence: Sequence[Evidence]) -> list[str]:
    """The goals in which a finalist is worse than one of what it is compared with: by the verdict,
    or as its interval has it, since for goals besides the first a verdict takes many blocks."""
    least = 1 + spec.margin_percent / 100
    worse = []
    for goal in spec.goal.goals:
        for each in evidence:
            if each.metric != goal.metric:
                continue
            low, high = (each.low, each.high) if each.ratio else (None, None)
            beyond = (low is not None and low > least) if goal.sign > 0 else (
                high is not None and high * least < 1
            )  # fmt: skip
            if each.verdict == Verdict.WORSE.value or beyond:
                worse.append(goal.metric)
    return list(dict.fromkeys(worse))


def _evidence(
    spec: StudySpec, report: Report, trial: TrialRecord, baseline: str, metric: str
) -> Evidence:
    arm = arm_of(trial.number)
    broken = _broken_share(spec, report, arm)
    both = _between(report, baseline, arm)
    found = next((c for c in both if c.criterion.metric == metric), None)
    if found is None:
        return Evidence(trial.number, baseline, metric, "", broken_share=broken, reason="no runs")
    effect = found.effect
    return Evidence(
        trial.number,
        baseline,
        metric,
        found.verdict.value if found.verdict is not None else "",
        effect.estimate if effect else None,
        effect.low if effect else None,
        effect.high if effect else None,
        effect is not None and effect.scale is Scale.RATIO,
        broken,
        found.reason,
    )


def _between(report: Report, baseline: str, arm: str) -> Iterator[Comparison]:
    for cell in report.cells:
        for each in cell.comparisons:
            if (each.a.arm, each.b.arm) == (baseline, arm):
                yield each


def _beats(spec: StudySpec, report: Report, evidence: Evidence) -> bool:
    """Whether a finalist is better than what it is compared with: by the verdict, without
    succeeding less often, and keeping the constraints. Settings that keep them are better than a
    baseline that breaks them nearly always."""
    if evidence.broken_share > MOST_BROKEN:
        return False
    if _broken_share(spec, report, evidence.baseline) >= MOSTLY_BROKEN:
        return True
    both = _between(report, evidence.baseline, arm_of(evidence.trial))
    fails_more = any(c.criterion.success and c.verdict is Verdict.WORSE for c in both)
    return evidence.verdict == Verdict.BETTER.value and not fails_more


def _broken_share(spec: StudySpec, report: Report, arm: str) -> float:
    runs = [run for run in report.runs if run.arm == arm]
    broken = (spec.goal.broken_by(run.values, succeeded=run.state.succeeded) for run in runs)
    return sum(broken) / len(runs) if runs else 1.0


def _gain(spec: StudySpec, evidence: Evidence) -> float | None:
    """By how many percent the first goal is better."""
    if evidence.estimate is None or not evidence.ratio:
        return None
    change = (evidence.estimate - 1) * 100
    return -change if spec.goal.primary.sense is Sense.MINIMISE else change
