"""Steps as people write and read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.errors import InvalidInput
from vmtune.model.migration.step_text import describe, read_step, spelled
from vmtune.model.migration.steps import (
    MAX_ITERATIONS,
    MAX_SECONDS,
    SETTABLE,
    Action,
    AfterIterations,
    AfterSeconds,
    Later,
    SetValues,
    Stalled,
    Step,
    StepAction,
    parse_steps,
)
from vmtune.model.tunables.built_in import BUILT_IN


@pytest.mark.parametrize(
    ("text", "step"),
    [
        (
            "after 4 iterations: downtime_limit=500ms",
            Step(AfterIterations(4), SetValues((("downtime_limit_ms", 500),))),
        ),
        ("after 1 iteration: pause", Step(AfterIterations(1), StepAction.PAUSE)),
        ("after 0 iterations:postcopy", Step(AfterIterations(0), StepAction.POSTCOPY)),
        ("After 5min: post-copy", Step(AfterSeconds(300), StepAction.POSTCOPY)),
        ("after 300: abort", Step(AfterSeconds(300), StepAction.ABORT)),
        ("60s later: abort", Step(Later(60), StepAction.ABORT)),
        (
            "stalled 40s, less than 4%, within 4% of the least: abort",
            Step(Stalled(40, 4, 4), StepAction.ABORT),
        ),
        ("stalled 40s, within 10% of the least: abort", Step(Stalled(40, 1, 10), StepAction.ABORT)),
        ("stalled for 10s: abort", Step(Stalled(10), StepAction.ABORT)),
        (
            "stalled 10 s, less than 5 %: max_bandwidth=1Gi, downtime_limit_ms=1s",
            Step(
                Stalled(10, 5),
                SetValues((("max_bandwidth_bytes_per_s", 1 << 30), ("downtime_limit_ms", 1000))),
            ),
        ),
        (
            "after 9 iterations: cpu_throttle_initial=80%, vcpu_dirty_limit=20MiB/s",
            Step(
                AfterIterations(9),
                SetValues(
                    (("cpu_throttle_initial_percent", 80), ("vcpu_dirty_limit_mib_per_s", 20))
                ),
            ),
        ),
    ],
)
def test_a_step_is_read(text: str, step: Step) -> None:
    assert parse_steps([read_step(text)]) == (step,)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pause",
        "after 4 iterations",
        "4 iterations: pause",
        "after: pause",
        "after x iterations: pause",
        "after 1.5s: pause",
        "after 3 apples: pause",
        "stalled: pause",
        "stalled 10s, less than much: pause",
        "stalled 10s, less than 101%: pause",
        "after 4 iterations: downtime_limit=",
        "after 4 iterations: =500ms",
        "after 4 iterations: downtime_limit=500ms,",
        "after 4 iterations: downtime=500ms",
        "after 4 iterations: multifd_channels=4",
        "after 4 iterations: reboot",
        "after 4 iterations: downtime_limit=5GB",
    ],
)
def test_what_is_no_step_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_steps([read_step(text, "step")])
    (problem,) = refused.value.problems
    assert problem.field.startswith(("step", "steps.0"))
    assert problem.message
    assert problem.remedy


def a_value(name: str) -> st.SearchStrategy[tuple[str, int]]:
    row = BUILT_IN[name]
    assert row.minimum is not None and row.maximum is not None
    return st.tuples(st.just(name), st.integers(row.minimum, row.maximum))


ACTIONS: st.SearchStrategy[Action] = st.one_of(
    st.sampled_from(StepAction),
    st.lists(st.sampled_from(SETTABLE), min_size=1, unique=True)
    .flatmap(lambda names: st.tuples(*map(a_value, names)))
    .map(SetValues),
)
TRIGGERS = st.one_of(
    st.builds(AfterIterations, st.integers(0, MAX_ITERATIONS)),
    st.builds(AfterSeconds, st.integers(1, MAX_SECONDS)),
    st.builds(Stalled, st.integers(1, MAX_SECONDS), st.integers(1, 100)),
)


def test_a_step_for_the_copies_of_disks_is_read_too() -> None:
    text = "stalled 60s: copy_synchronous_writes=on"
    (step,) = parse_steps([read_step(text)])
    assert (spelled(step), step.of_copies) == (text, True)


@given(st.builds(Step, TRIGGERS, ACTIONS))
def test_what_is_shown_is_read_back_to_the_same(step: Step) -> None:
    assert parse_steps([read_step(spelled(step))]) == (step,)


@given(st.text(max_size=60) | st.from_regex(r"(after|stalled) .{0,20}: .{0,20}", fullmatch=True))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_steps([read_step(text)])
    except InvalidInput as refused:
        assert all(problem.message for problem in refused.problems)


def test_actions_are_told_in_words() -> None:
    values = SetValues((("downtime_limit_ms", 1500), ("max_bandwidth_bytes_per_s", 1 << 30)))
    assert (
        describe(values)
        == "set downtime_limit_ms to 1,500 ms, max_bandwidth_bytes_per_s to 1 GiB/s"
    )
    assert describe(StepAction.POSTCOPY) == "switch to post-copy"
