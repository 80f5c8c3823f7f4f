"""Objectives are read strictly, and every problem says what to do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.metrics.table import METRICS_OF, SUCCESS, judged_metrics
from vmtune.bench.model.tune.objective import (
    Constraint,
    Goal,
    Objective,
    Relation,
    Sense,
    parse_objective,
)
from vmtune.errors import InvalidInput
from vmtune.stats.model import Direction

MIGRATION = ScenarioKind.MIGRATION


def test_a_goal_with_constraints() -> None:
    text = "minimise total_time_ms where guest_silence_ms <= 300 and completed"
    assert parse_objective(text, MIGRATION) == Objective(
        (Goal(Sense.MINIMISE, "total_time_ms"),),
        (Constraint("guest_silence_ms", Relation.AT_MOST, 300.0),),
        completed=True,
    )


def test_several_goals_units_and_other_spellings() -> None:
    found = parse_objective(
        "Maximize throughput_bytes_per_s, minimize source_cpu_ms WHERE total_time_ms < 1.5s "
        "and throughput_bytes_per_s >= 10MiB/s",
        MIGRATION,
    )
    assert [goal.sign for goal in found.goals] == [-1, 1]
    assert [one.bound for one in found.constraints] == [1500.0, 10 * (1 << 20)]
    assert found.constraints[0].excess(1600) == 100
    assert found.constraints[1].excess(9 << 20) == 1 << 20


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("", "invalid_objective", "there is no objective"),
        ("total_time_ms", "invalid_objective", "is not a goal"),
        ("minimise total_time", "invalid_metric", "no metric"),
        ("minimise iops", "invalid_metric", "no metric"),
        ("maximise total_time_ms", "wrong_direction", "worse"),
        ("minimise reaper_rounds", "no_direction", "neither"),
        ("maximise converged", "success_is_no_goal", "succeeded"),
        ("minimise total_time_ms where quick", "invalid_objective", "is not a condition"),
        ("minimise total_time_ms where downtime_ms <= 3 MiB", "invalid_value", "unit"),
        ("minimise total_time_ms where downtime_ms <= nan", "invalid_value", "not a number"),
        ("minimise total_time_ms, minimise total_time_ms", "twice", "twice"),
        ("minimise total_time_ms where completed where completed", "invalid_objective", "more"),
        ("minimise total_time_ms" + ", minimise downtime_ms" * 3, "too_many", "most"),
        ("minimise x" * 1000, "invalid_objective", "characters"),
    ],
)  # fmt: skip
def test_what_cannot_be_accepted_is_told_with_a_remedy(text: str, code: str, says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_objective(text, MIGRATION)
    problems = caught.value.problems
    assert code in {one.code for one in problems}
    assert any(says in one.message for one in problems)
    assert all(one.field == "objective" and one.remedy for one in problems)


@st.composite
def objectives(draw: st.DrawFn) -> tuple[ScenarioKind, Objective]:
    kind = draw(st.sampled_from(ScenarioKind))
    judged = [name for name in judged_metrics(kind) if name != SUCCESS[kind]]
    names = draw(st.lists(st.sampled_from(judged), min_size=1, max_size=3, unique=True))
    lower = {n: METRICS_OF[kind][n].direction is Direction.LOWER for n in names}
    goals = [Goal(Sense.MINIMISE if lower[n] else Sense.MAXIMISE, n) for n in names]
    bounds = st.builds(
        Constraint,
        st.sampled_from(sorted(METRICS_OF[kind])),
        st.sampled_from(Relation),
        st.integers(-(10**5), 10**5).map(float),
    )
    return kind, Objective(
        tuple(goals), tuple(draw(st.lists(bounds, max_size=4))), draw(st.booleans())
    )


@given(objectives())
def test_what_is_written_is_read_back(case: tuple[ScenarioKind, Objective]) -> None:
    kind, objective = case
    assert parse_objective(str(objective), kind) == objective


@given(st.text(max_size=80), st.sampled_from(ScenarioKind))
def test_any_text_is_read_or_refused_with_remedies(text: str, kind: ScenarioKind) -> None:
    try:
        parse_objective(text, kind)
    except InvalidInput as error:
        assert all(one.field and one.remedy for one in error.problems)
