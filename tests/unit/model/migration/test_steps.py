"""Convergence steps as a profile has them: read, refused by field, written back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.errors import InvalidInput, Problem
from vmtune.model.migration.steps import (
    MAX_STEPS,
    SETTABLE,
    AfterIterations,
    AfterSeconds,
    SetValues,
    Stalled,
    Step,
    StepAction,
    accept_steps,
    dump_steps,
    lacking,
    load_steps,
    parse_steps,
)
from vmtune.model.tunables.built_in import BUILT_IN

WHEN = {"after_s": 5}
THEN = {"set": {"downtime_limit_ms": 500}}


def problems(raw: object) -> tuple[Problem, ...]:
    with pytest.raises(InvalidInput) as caught:
        parse_steps(raw)
    return caught.value.problems


def test_steps_are_read_in_the_tunables_units() -> None:
    steps = parse_steps(
        [
            {"when": {"after_iterations": 4}, "then": {"set": {"downtime_limit_ms": "0.5s"}}},
            {
                "when": {"stalled_s": 10, "shrink_percent": 5},
                "then": {"set": {"max_bandwidth_bytes_per_s": "1Gi", "downtime_limit_ms": 900}},
            },
            {"when": {"stalled_s": 10}, "then": {"set": {"vcpu_dirty_limit_mib_per_s": 20}}},
            {"when": {"after_s": 300}, "then": {"do": "postcopy"}},
        ]
    )
    assert steps == (
        Step(AfterIterations(4), SetValues((("downtime_limit_ms", 500),))),
        Step(
            Stalled(10, 5),
            SetValues((("max_bandwidth_bytes_per_s", 1 << 30), ("downtime_limit_ms", 900))),
        ),
        Step(Stalled(10), SetValues((("vcpu_dirty_limit_mib_per_s", 20),))),
        Step(AfterSeconds(300), StepAction.POSTCOPY),
    )


def test_a_step_can_be_due_at_once() -> None:
    at_once = {"when": {"after_iterations": 0}, "then": {"do": "pause"}}
    assert parse_steps([at_once]) == (Step(AfterIterations(0), StepAction.PAUSE),)


def test_no_steps_are_steps() -> None:
    assert parse_steps([]) == ()


@pytest.mark.parametrize(
    ("step", "field", "code"),
    [
        ("abort", "steps.0", "invalid_value"),
        ({"then": THEN}, "steps.0.when", "missing"),
        ({"when": WHEN}, "steps.0.then", "missing"),
        ({"when": WHEN, "then": THEN, "else": 1}, "steps.0.else", "unknown_field"),
        ({"when": {}, "then": THEN}, "steps.0.when", "not_one"),
        ({"when": {"after_s": 5, "stalled_s": 5}, "then": THEN}, "steps.0.when", "not_one"),
        ({"when": {"after_s": 0}, "then": THEN}, "steps.0.when.after_s", "invalid_value"),
        ({"when": {"after_s": True}, "then": THEN}, "steps.0.when.after_s", "invalid_value"),
        ({"when": {"after_s": "5s"}, "then": THEN}, "steps.0.when.after_s", "invalid_value"),
        (
            {"when": {"after_iterations": -1}, "then": THEN},
            "steps.0.when.after_iterations",
            "invalid_value",
        ),
        (
            {"when": {"after_iterations": 10_001}, "then": THEN},
            "steps.0.when.after_iterations",
            "invalid_value",
        ),
        (
            {"when": {"stalled_s": 5, "shrink_percent": 101}, "then": THEN},
            "steps.0.when.shrink_percent",
            "invalid_value",
        ),
        (
            {"when": {"stalled_s": 5, "near_percent": 101}, "then": THEN},
            "steps.0.when.near_percent",
            "invalid_value",
        ),
        (
            {"when": {"later_s": 5, "near_percent": 5}, "then": THEN},
            "steps.0.when.near_percent",
            "misplaced",
        ),
        (
            {"when": {"later_s": 0}, "then": THEN},
            "steps.0.when.later_s",
            "invalid_value",
        ),
        (
            {"when": {"after_s": 5, "shrink_percent": 5}, "then": THEN},
            "steps.0.when.shrink_percent",
            "misplaced",
        ),
        ({"when": {"after_min": 5}, "then": THEN}, "steps.0.when.after_min", "unknown_field"),
        ({"when": WHEN, "then": {}}, "steps.0.then", "not_one"),
        ({"when": WHEN, "then": {**THEN, "do": "abort"}}, "steps.0.then", "not_one"),
        ({"when": WHEN, "then": {"do": "reboot"}}, "steps.0.then.do", "not_a_choice"),
        ({"when": WHEN, "then": {"do": ["abort"]}}, "steps.0.then.do", "not_a_choice"),
        ({"when": WHEN, "then": {"set": {}}}, "steps.0.then.set", "invalid_value"),
        ({"when": WHEN, "then": {"set": 5}}, "steps.0.then.set", "invalid_value"),
        (
            {"when": WHEN, "then": {"set": {"downtime_limit_ms": "soon"}}},
            "steps.0.then.set.downtime_limit_ms",
            "invalid_value",
        ),
        (
            {"when": WHEN, "then": {"set": {"downtime_limit": 5}}},
            "steps.0.then.set.downtime_limit",
            "unknown_tunable",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_field(step: object, field: str, code: str) -> None:
    (problem,) = problems([step])
    assert (problem.field, problem.code) == (field, code)
    assert problem.message
    assert problem.remedy


def test_multifd_is_never_set_while_a_migration_runs() -> None:
    # QEMU crashes on it.
    (problem,) = problems([{"when": WHEN, "then": {"set": {"multifd_channels": 8}}}])
    assert (problem.field, problem.code) == ("steps.0.then.set.multifd_channels", "not_settable")
    assert "downtime_limit_ms" in problem.remedy
    assert not [name for name in SETTABLE if name.startswith(("multifd", "tls"))]


def test_every_fault_of_every_step_is_told_at_once() -> None:
    found = problems(
        [{"when": {"after_s": -1}, "then": {"do": "jump"}}, 5, {"when": WHEN, "then": THEN}]
    )
    assert [p.field for p in found] == ["steps.0.when.after_s", "steps.0.then.do", "steps.1"]


@pytest.mark.parametrize("raw", [{}, "abort", None])
def test_what_is_no_list_is_refused(raw: object) -> None:
    (problem,) = problems(raw)
    assert problem.field == "steps"


def test_more_steps_than_anyone_needs_are_refused() -> None:
    one = {"when": WHEN, "then": THEN}
    assert len(parse_steps([one] * MAX_STEPS)) == MAX_STEPS
    assert problems([one] * (MAX_STEPS + 1))[0].field == "steps"


@pytest.mark.parametrize("final", [StepAction.POSTCOPY, StepAction.ABORT])
def test_nothing_follows_a_final_step(final: StepAction) -> None:
    (problem,) = problems(
        [{"when": WHEN, "then": {"do": final.value}}, {"when": {"after_s": 9}, "then": THEN}]
    )
    assert (problem.field, problem.code) == ("steps.1", "never_due")


def test_steps_follow_a_pause_but_no_second_one() -> None:
    pause = {"when": {"after_s": 5}, "then": {"do": "pause"}}
    steps = [pause, {"when": {"after_s": 9}, "then": THEN}]
    assert parse_steps(steps)[0].action is StepAction.PAUSE
    (problem,) = problems([*steps, pause | {"when": {"after_s": 10}}])
    assert (problem.field, problem.code) == ("steps.2", "never_due")


@pytest.mark.parametrize("kind", ["after_s", "after_iterations"])
def test_a_trigger_that_has_passed_in_its_turn_is_refused(kind: str) -> None:
    steps = [
        {"when": {kind: 9}, "then": THEN},
        {"when": {"stalled_s": 1}, "then": THEN},
        {"when": {kind: 8}, "then": THEN},
    ]
    (problem,) = problems(steps)
    assert (problem.field, problem.code) == (f"steps.2.when.{kind}", "out_of_order")


def test_a_step_without_its_switch_in_the_profile_is_told() -> None:
    steps = parse_steps(
        [
            {"when": WHEN, "then": {"set": {"max_cpu_throttle_percent": 60}}},
            {"when": WHEN, "then": {"set": {"vcpu_dirty_limit_mib_per_s": 5}}},
            {"when": WHEN, "then": {"do": "postcopy"}},
        ]
    )
    assert [p.field for p in lacking(steps, {})] == [
        "steps.0.then.set.max_cpu_throttle_percent",
        "steps.1.then.set.vcpu_dirty_limit_mib_per_s",
        "steps.2.then.do",
    ]
    on: dict[str, Any] = {"auto_converge": True, "dirty_limit": True, "postcopy": True}
    assert lacking(steps, on) == []


TRIGGERS = st.one_of(
    st.builds(AfterIterations, st.integers(1, 100)),
    st.builds(AfterSeconds, st.integers(1, 100)),
    st.builds(Stalled, st.integers(1, 100), st.integers(1, 100)),
)
ACTIONS = st.one_of(
    st.sampled_from(StepAction),
    st.dictionaries(st.sampled_from(SETTABLE), st.integers(1, 99), min_size=1).map(
        lambda values: SetValues(tuple(values.items()))
    ),
)


@given(st.builds(Step, TRIGGERS, ACTIONS))
def test_what_is_written_is_read_back(step: Step) -> None:
    assert parse_steps(dump_steps([step])) == (step,)


def test_all_that_a_step_sets_may_change_while_a_migration_runs() -> None:
    assert all(BUILT_IN[name].running for name in SETTABLE)


COPY_WAITS = {"set": {"copy_synchronous_writes": True}}


@pytest.mark.parametrize("when", [{"after_s": 60}, {"later_s": 60}, {"stalled_s": 60}])
def test_a_step_may_let_the_guests_writes_wait_while_disks_are_copied(when: dict[str, int]) -> None:
    raw = [{"when": {"after_s": 300}, "then": THEN}, {"when": when, "then": COPY_WAITS}]
    steps = parse_steps(raw)
    assert [step.of_copies for step in steps] == [False, True]
    assert parse_steps(dump_steps(steps)) == steps == load_steps(dump_steps(steps))
    (problem,) = lacking(steps, {})
    assert problem.field == "steps.1.then.set.copy_synchronous_writes"
    for name in ("copy_storage", "copy_storage_incremental"):
        assert accept_steps(raw, {name: True}) == steps


@pytest.mark.parametrize(
    ("when", "then", "code"),
    [
        ({"after_iterations": 1}, COPY_WAITS, "misplaced"),
        ({"stalled_s": 9, "shrink_percent": 4}, COPY_WAITS, "misplaced"),
        ({"stalled_s": 9, "near_percent": 4}, COPY_WAITS, "misplaced"),
        (WHEN, {"set": {"copy_synchronous_writes": False}}, "not_settable"),
        (WHEN, {"set": {"copy_synchronous_writes": True, "downtime_limit_ms": 9}}, "not_settable"),
        (WHEN, {"set": {"copy_disks": "vda"}}, "not_settable"),
    ],
)
def test_no_other_step_is_for_the_copies(when: Any, then: Any, code: str) -> None:
    (problem,) = problems([{"when": when, "then": then}])
    assert problem.code == code


def test_steps_have_to_fit_the_profile() -> None:
    throttle = {"when": WHEN, "then": {"set": {"max_cpu_throttle_percent": 10}}}
    values = {"auto_converge": True, "cpu_throttle_initial_percent": 30}
    with pytest.raises(InvalidInput) as refused:
        accept_steps([throttle], values)
    (problem,) = refused.value.problems
    assert (problem.field, problem.code) == ("steps.0.then.set", "min_above_max")
    lower = {"when": WHEN, "then": {"set": {"cpu_throttle_initial_percent": 10}}}
    assert len(accept_steps([lower, throttle], values)) == 2
    with pytest.raises(InvalidInput) as refused:
        accept_steps([throttle], {})
    assert [p.code for p in refused.value.problems] == ["needs_auto_converge"]


def test_what_contradicts_itself_anyway_is_not_the_steps_fault() -> None:
    values = {"xbzrle": True, "multifd": True}
    assert accept_steps([{"when": WHEN, "then": THEN}], values)


@given(st.lists(st.builds(Step, TRIGGERS, ACTIONS), max_size=3))
def test_what_is_stored_is_loaded_as_it_was(steps: list[Step]) -> None:
    assert load_steps(dump_steps(steps)) == tuple(steps)


def test_a_step_names_what_has_to_be_on_for_it() -> None:
    step = Step(AfterSeconds(5), SetValues((("max_cpu_throttle_percent", 60),)))
    assert step.switches == {"auto_converge"}
    assert Step(AfterSeconds(5), StepAction.POSTCOPY).switches == {"postcopy"}
    assert Step(AfterSeconds(5), StepAction.PAUSE).switches == set()
