"""Templates: what they set can be stored, for guests of any size, and is what their sources say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.model.migration.step_text import spelled
from vmtune.model.migration.steps import AfterSeconds, SetValues, StepAction, dump_steps
from vmtune.model.profile_templates import GIB, ProfileTemplate, profile_templates
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.services.tuning.profiles import accept


def template(name: str, memory_bytes: int = 4 * GIB) -> ProfileTemplate:
    (found,) = [each for each in profile_templates(memory_bytes) if each.name == name]
    return found


@given(st.integers(1, 1 << 50))
def test_every_template_can_be_stored(memory_bytes: int) -> None:
    made = profile_templates(memory_bytes)
    assert len({each.name for each in made}) == len(made)
    for each in made:
        values, steps = accept(each.values, dump_steps(each.steps), BUILT_IN)
        assert (values, steps) == (each.values, each.steps), each.name
        times = [s.trigger.seconds for s in steps if isinstance(s.trigger, AfterSeconds)]
        assert times == sorted(times), each.name


def test_novas_downtime_rises_in_ten_steps_to_its_limit() -> None:
    steps = template("nova-abort").steps
    limits = [step.action.values for step in steps if isinstance(step.action, SetValues)]
    assert len(limits) == 10
    assert limits[-1] == (("downtime_limit_ms", 500),)
    assert spelled(steps[0]) == "after 300s: downtime_limit_ms=95ms"  # 75 s per GiB, of 4 GiB
    assert spelled(steps[-1]) == "after 3200s: abort"  # 800 s per GiB
    least = template("nova-abort", GIB // 2).steps  # counts as 2 GiB
    assert spelled(least[-1]) == "after 1600s: abort"


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("nova-force", StepAction.PAUSE),
        ("nova-force-postcopy", StepAction.POSTCOPY),
        ("ovirt-minimal-downtime", StepAction.ABORT),
        ("ovirt-suspend-workload", StepAction.ABORT),
        ("ovirt-postcopy", StepAction.POSTCOPY),
        ("kubevirt", StepAction.ABORT),
        ("kubevirt-postcopy", StepAction.POSTCOPY),
        ("kubevirt-pause", StepAction.PAUSE),
        ("kubevirt-vep-248", StepAction.ABORT),
        ("kubevirt-vep-291", StepAction.ABORT),
    ],
)
def test_a_policy_ends_as_its_name_says(name: str, end: StepAction) -> None:
    found = template(name)
    assert found.steps[-1].action is end
    assert found.values.get("postcopy", False) is (end is StepAction.POSTCOPY)
    assert found.source


def test_ovirts_downtime_rises_as_it_stalls() -> None:
    """All by ovirt-engine's MigrationPolicies, each with autoConvergence."""
    rising = [f"stalled 10s: downtime_limit_ms={limit}ms" for limit in (150, 200, 300, 400, 500)]
    for name, then in (
        ("ovirt-minimal-downtime", [*rising, "stalled 10s: abort"]),
        (
            "ovirt-suspend-workload",
            [*rising, "stalled 10s: downtime_limit_ms=5000ms", "stalled 10s: abort"],
        ),
        ("ovirt-postcopy", [*rising[:2], "stalled 10s: postcopy"]),
    ):
        found = template(name)
        assert [spelled(step) for step in found.steps] == then
        assert found.values["auto_converge"] is True
        assert found.values["downtime_limit_ms"] == 100


def test_kubevirts_proposals_are_as_their_texts_say() -> None:
    assert [spelled(step) for step in template("kubevirt-vep-248").steps] == [
        "stalled 40s, less than 4%, within 4% of the least: downtime_limit_ms=900ms",
        "60s later: abort",
    ]
    ramp = template("kubevirt-vep-291")
    assert ramp.values == {"downtime_limit_ms": 150}
    assert [spelled(step) for step in ramp.steps] == [
        "after 3 iterations: downtime_limit_ms=150ms",
        *(f"10s later: downtime_limit_ms={limit}ms" for limit in range(300, 1051, 150)),
        "after 600s: abort",  # 150 s per GiB, of 4 GiB
    ]


def test_every_rival_is_there() -> None:
    names = {each.name for each in profile_templates()}
    assert {
        *("qemu-defaults", "auto-converge", "nova-abort", "nova-force"),
        *("ovirt-minimal-downtime", "ovirt-suspend-workload", "ovirt-postcopy"),
        *("kubevirt", "kubevirt-postcopy", "kubevirt-vep-248", "kubevirt-vep-291"),
    } <= names
