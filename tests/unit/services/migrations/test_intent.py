"""Migrations by intent over fake QEMUs: chosen, refused beforehand, recorded."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.simulated.fakes import VM
from tests.support.simulated.world import World
from vmtune.engine import dirty_probe
from vmtune.errors import Blocked, InvalidInput
from vmtune.model.findings.table import Finding
from vmtune.model.host.facts import HostFacts
from vmtune.model.migration.controller_record import StepEffect
from vmtune.model.migration.intent import Goal, dump_intent, parse_intent
from vmtune.model.migration.record import MigrationState
from vmtune.model.migration.stated_intent import Happened, Measure, goals_kept
from vmtune.model.profile import Target
from vmtune.services.forecasts import free_cores
from vmtune.services.tuning.planning import Planned

MIB = 1 << 20
LIMITED = {"max_bandwidth_bytes_per_s": 100 * MIB}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dirty_probe, "WINDOWS_MS", (50, 60))


async def test_settings_are_chosen_and_recorded_with_their_reasons(it: World) -> None:
    intent = {"max_silence_ms": 500, "max_slowdown_percent": 20, **LIMITED}
    record = await it.migrations.start(VM, "b", intent=intent)
    assert record.wanted["downtime_limit_ms"] == 99
    assert record.wanted["auto_converge"] is True
    assert record.intent is not None
    assert record.intent.intent == parse_intent(intent)
    assert set(record.intent.chosen) == set(record.wanted)
    assert record.intent.forecast.startswith("will be kept")
    await it.until(lambda: it.store.migrations.get(record.id).state.ended)
    done = it.store.migrations.get(record.id)
    assert done.state is MigrationState.COMPLETED
    assert done.intent is not None
    kept, stated = done.intent.kept, replace(done.intent, kept=())
    assert stated == record.intent
    named = [(goal.goal, goal.by) for goal in kept]
    assert named[0] == (Goal.SILENCE, Measure.QEMU)
    assert (Goal.SLOWDOWN, Measure.THROTTLE) in named


async def test_explicit_values_win_and_are_pinned(it: World) -> None:
    values = {"downtime_limit_ms": 300}
    intent = {"max_silence_ms": 500, **LIMITED}
    record = await it.migrations.start(VM, "b", values=values, intent=intent)
    assert record.wanted["downtime_limit_ms"] == 300
    assert record.intent is not None
    assert record.intent.pinned == ("downtime_limit_ms",)


@pytest.mark.parametrize("known", [True, False])
async def test_a_value_that_breaks_the_intent_is_refused_beforehand(it: World, known: bool) -> None:
    """Also where nobody knows what the path carries."""
    if not known:
        del it.source.parameters["max-bandwidth"]
    values = {"downtime_limit_ms": 700}
    goals = {"max_silence_ms": 500, **(LIMITED if known else {})}
    with pytest.raises(Blocked, match="a downtime limit of 700 ms is set") as refused:
        await it.migrations.start(VM, "b", values=values, intent=goals)
    if known:
        assert "it could be kept with a silence of" in refused.value.problems[0].remedy
    await it.profiles.create("slack", values, intent=goals)
    with pytest.raises(Blocked):
        await it.migrations.start(VM, "b", "slack")
    trying = {**goals, "otherwise": "keep-trying"}
    record = await it.migrations.start(VM, "b", values=values, intent=trying)
    assert record.wanted["downtime_limit_ms"] == 700


async def test_a_goal_that_nothing_can_hold_is_not_promised(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as by libvirt, which takes no bandwidth below 1 MiB/s."""
    plans, name = it.migrations.intents._plans, "max_bandwidth_bytes_per_s"
    plan = plans.plan

    async def blocked(*what: Any, **more: Any) -> Planned:
        found = await plan(*what, **more)
        finding = Finding("not_whole_mib", name, {"value": "9", "whole": "1MiB/s"})
        if name not in more["values"]:
            return found
        return replace(found, plan=replace(found.plan, findings=(*found.plan.findings, finding)))

    monkeypatch.setattr(plans, "plan", blocked)
    found = await it.migrations.intents.plan({"max_silence_ms": 500, **LIMITED}, VM, "b")
    assert found.kept is False
    assert f"{name} cannot be set: libvirt takes" in found.stated.forecast
    assert name not in found.values


async def test_what_cannot_be_kept_is_refused_before_anything_is_recorded(it: World) -> None:
    it.source.ring.changed_mib_per_s = 1000
    intent = {"max_silence_ms": 20, "deadline_s": 60, **LIMITED}
    with pytest.raises(Blocked) as refused:
        await it.migrations.start(VM, "b", intent=intent)
    (problem,) = refused.value.problems
    assert (problem.field, problem.code) == ("intent", "intent_infeasible")
    assert "it could be kept with" in problem.remedy
    assert not it.store.migrations.list(vm=VM).items
    trying = {**intent, "otherwise": "keep-trying"}
    record = await it.migrations.start(VM, "b", intent=trying)
    assert record.intent is not None
    assert record.intent.forecast.startswith("is not expected to be kept")


async def test_post_copy_that_a_plan_refuses_is_neither_counted_on_nor_offered(it: World) -> None:
    """QEMU 10.0 takes none with multifd, which the user has set."""
    it.source.ring.changed_mib_per_s = 1000
    goals = {"max_silence_ms": 20, "deadline_s": 60, **LIMITED}
    found = await it.migrations.intents.plan({**goals, "may": ["postcopy"]}, VM, "b")
    assert (found.kept, "postcopy" in found.values) == (True, True)
    for may in (["postcopy"], []):
        plan = it.migrations.intents.plan({**goals, "may": may}, VM, "b", values={"multifd": True})
        found = await plan
        assert (found.kept, "postcopy" in found.values) == (False, False)
        assert not any("postcopy" in words for words, _ in found.nearest)


async def test_after_an_aborted_throttle_nothing_is_promised_by_another(it: World) -> None:
    """QEMU may not throttle any more."""
    it.source.ring.changed_mib_per_s = 200
    goals = {"max_silence_ms": 100, "deadline_s": 60, "max_slowdown_percent": 80, **LIMITED}
    before = await it.migrations.intents.plan(goals, VM, "b")
    assert before.kept is True
    record = it.store.migrations.begin(
        vm=VM, vm_name="vm", source="a", destination="b", wanted={"auto_converge": True}
    )
    for state in (MigrationState.PREPARING, MigrationState.STARTING, MigrationState.ACTIVE):
        it.store.migrations.update(record.id, state=state, started_at=datetime.now(UTC))
    it.store.migrations.update(record.id, state=MigrationState.CANCELLED)
    after = await it.migrations.intents.plan(goals, VM, "b")
    assert after.kept is None
    assert "it aborted a throttled migration" in after.stated.forecast


async def test_a_path_that_nobody_knows_promises_nothing(it: World) -> None:
    del it.source.parameters["max-bandwidth"]
    record = await it.migrations.start(VM, "b", intent={"max_silence_ms": 500})
    assert record.intent is not None
    assert "nothing is promised" in record.intent.forecast


async def test_a_bad_intent_names_its_field(it: World) -> None:
    with pytest.raises(InvalidInput) as refused:
        await it.migrations.start(VM, "b", intent={"deadline_s": 0})
    assert refused.value.problems[0].field == "intent.deadline_s"


def test_goals_are_held_against_what_happened() -> None:
    raw = {"max_silence_ms": 500, "deadline_s": 60, "max_slowdown_percent": 20}
    intent = parse_intent({**raw, "max_bandwidth_bytes_per_s": 1000})
    happened = Happened(61_000, 500, withheld_percent=21.0)
    silence, deadline, slowdown, bandwidth = goals_kept(intent, happened)
    assert (silence.goal, silence.kept, silence.by) == (Goal.SILENCE, True, Measure.QEMU)
    assert (deadline.goal, deadline.kept) == (Goal.DEADLINE, False)
    assert (slowdown.goal, slowdown.kept, slowdown.by) == (Goal.SLOWDOWN, False, Measure.THROTTLE)
    assert (bandwidth.kept, bandwidth.by) == (None, Measure.UNKNOWN)


GOALS = {"max_silence_ms": 500, "max_slowdown_percent": 20, **LIMITED}


async def test_a_profiles_intent_is_that_of_its_migrations(it: World) -> None:
    await it.profiles.create("gently", {"announce_rounds": 3}, intent=GOALS)
    record = await it.migrations.start(VM, "b", "gently")
    assert record.intent is not None
    assert record.intent.intent == parse_intent(GOALS)
    assert record.wanted["downtime_limit_ms"] == 99
    assert record.wanted["announce_rounds"] == 3


async def test_an_assigned_profiles_intent_counts_and_one_of_its_own_wins(it: World) -> None:
    await it.profiles.create("gently", {}, intent=GOALS)
    await it.assignments.add(Target.DEFAULT, "", "gently")
    own = {"max_silence_ms": 1000, **LIMITED}
    record = await it.migrations.start(VM, "b", intent=own)
    assert record.intent is not None
    assert record.intent.intent == parse_intent(own)
    await it.until(lambda: it.store.migrations.get(record.id).state.ended)


async def test_an_assignments_intent_counts_instead_of_the_profiles(it: World) -> None:
    await it.profiles.create("gently", {}, intent={"max_silence_ms": 100, **LIMITED})
    with pytest.raises(InvalidInput):
        await it.assignments.add(Target.DEFAULT, "", "gently", {"deadline_s": 0})
    made = await it.assignments.add(Target.DEFAULT, "", "gently", GOALS)
    assert made.intent == parse_intent(GOALS)
    record = await it.migrations.start(VM, "b")
    assert record.intent is not None
    assert record.intent.intent == parse_intent(GOALS)
    await it.until(lambda: it.store.migrations.get(record.id).state.ended)


async def test_who_names_a_profile_gets_its_own_intent(it: World) -> None:
    tight = {"max_silence_ms": 100, **LIMITED}
    await it.profiles.create("gently", {}, intent=tight)
    await it.assignments.add(Target.DEFAULT, "", "gently", GOALS)
    record = await it.migrations.start(VM, "b", "gently")
    assert record.intent is not None
    assert record.intent.intent == parse_intent(tight)


async def test_an_assigned_profiles_intent_is_refused_like_any(it: World) -> None:
    it.source.ring.changed_mib_per_s = 1000
    tight = {"max_silence_ms": 20, "deadline_s": 60, **LIMITED}
    await it.profiles.create("tight", {}, intent=tight)
    await it.assignments.add(Target.DEFAULT, "", "tight")
    with pytest.raises(Blocked, match="could be kept with"):
        await it.migrations.start(VM, "b")
    assert not it.store.migrations.list(vm=VM).items


async def test_a_plan_tells_the_choices_and_the_nearest_intents(it: World) -> None:
    found = await it.migrations.intents.plan(GOALS, VM, "b")
    assert (found.kept, found.nearest, found.history) == (True, (), ())
    wanted = {item.tunable: item.wanted for item in found.planned.plan.items}
    assert wanted["downtime_limit_ms"] == 99
    assert set(found.stated.chosen) <= set(wanted)
    it.source.ring.changed_mib_per_s = 1000
    it.migrations.intents.forecasts._probes.clear()
    tight = {"max_silence_ms": 20, "deadline_s": 60, **LIMITED}
    refused = await it.migrations.intents.plan(tight, VM, "b")
    assert refused.kept is False
    words, nearest = refused.nearest[0]
    assert words
    again = await it.migrations.intents.plan(dump_intent(nearest), VM, "b")
    assert again.kept is True
    assert not it.store.migrations.list(vm=VM).items


async def test_a_plan_names_the_migrations_that_it_rests_on(it: World) -> None:
    past = await it.migrations.start(VM, "b")
    await it.until(lambda: it.store.migrations.get(past.id).state.ended)
    totals = it.store.migrations.get(past.id).totals
    assert totals is not None
    much = replace(totals, transferred_bytes=200 * MIB, total_time_ms=2000)
    it.store.migrations.update(past.id, totals=much)
    found = await it.migrations.intents.plan(GOALS, VM, "a")
    assert found.history == (past.id,)


@pytest.mark.parametrize(
    ("destination", "without_profile", "field"),
    [(None, False, "destination"), ("b", True, "without_profile")],
)
async def test_an_intent_is_planned_for_a_migration_alone(
    it: World, destination: str | None, without_profile: bool, field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        await it.migrations.intents.plan(GOALS, VM, destination, without_profile=without_profile)
    assert refused.value.problems[0].field == field


async def test_in_shadow_nothing_is_chosen_refused_or_steered(it: World) -> None:
    it.source.ring.changed_mib_per_s = 1000
    tight = {"max_silence_ms": 20, "deadline_s": 60, **LIMITED}
    record = await it.migrations.start(VM, "b", intent=tight, shadow=True)
    assert record.intent is not None
    assert record.intent.shadow
    assert record.intent.forecast.startswith("is not expected to be kept")
    assert "downtime_limit_ms" in record.intent.chosen
    assert record.wanted == {}
    await it.until(lambda: it.store.migrations.get(record.id).state.ended)
    assert it.store.migrations.get(record.id).state is MigrationState.COMPLETED


async def test_shadow_needs_an_intent(it: World) -> None:
    with pytest.raises(InvalidInput) as refused:
        await it.migrations.start(VM, "b", shadow=True)
    assert refused.value.problems[0].field == "shadow"


@pytest.mark.parametrize("whose", ["own", "profile"])
async def test_a_start_asks_the_hosts_no_more_than_twice(
    it: World, whose: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for what is to be judged, and once with what was chosen."""
    plans = it.migrations._plans
    asked = []
    plan = plans.plan

    async def counted(*what: Any, **more: Any) -> Planned:
        asked.append(what)
        return await plan(*what, **more)

    monkeypatch.setattr(plans, "plan", counted)
    if whose == "profile":
        await it.profiles.create("gently", {}, intent=GOALS)
        record = await it.migrations.start(VM, "b", "gently")
    else:
        record = await it.migrations.start(VM, "b", intent=GOALS)
    assert record.wanted["downtime_limit_ms"] == 99
    assert len(asked) == 2


def idle(it: World, monkeypatch: pytest.MonkeyPatch, cores: dict[str, float]) -> None:
    """Have so many cores of the hosts be free."""
    for host, free in cores.items():
        driver = it.drivers[host]

        async def facts(known: HostFacts = driver._facts, free: float = free) -> HostFacts:
            return replace(known, cpu_idle_s=free * time.monotonic())

        monkeypatch.setattr(driver, "host_facts", facts)


async def test_channels_are_chosen_by_the_cores_that_both_hosts_have_free(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of its 64 MiB takes longer than the deadline, unless it is compressed."""
    it.source.ring.changed_mib_per_s = 1
    del it.source.parameters["max-bandwidth"]
    monkeypatch.setattr(free_cores, "_LEAST_S", 0.01)
    tight = {"max_silence_ms": 500, "deadline_s": 3, "max_bandwidth_bytes_per_s": 20 * MIB}
    alone = await it.migrations.intents.plan(tight, VM, "b")
    assert "multifd" not in alone.stated.chosen, "nobody knows how many cores are free"
    idle(it, monkeypatch, {"a": 8, "b": 4})
    found = await it.migrations.intents.plan(tight, VM, "b")
    wanted = {item.tunable: item.wanted for item in found.planned.plan.items}
    assert wanted["multifd_compression"] == "zstd"
    assert wanted["multifd_channels"] in (2, 3)
    assert "cores are free" in found.stated.chosen["multifd_channels"]
    idle(it, monkeypatch, {"a": 8, "b": 1})
    busy = await it.migrations.intents.plan(tight, VM, "b")
    assert "multifd" not in busy.stated.chosen


@pytest.mark.parametrize("completes", [True, False])
async def test_nothing_that_steering_set_outlasts_its_migration(it: World, completes: bool) -> None:
    """QEMU takes its first throttle of before only once the bound is that of before. A source that
    the guest has left may be where it is to go back to."""
    before = dict(it.source.parameters)
    goals = {"max_silence_ms": 100, "deadline_s": 60, "max_slowdown_percent": 20}
    slow = {**goals, "max_bandwidth_bytes_per_s": MIB, "otherwise": "keep-trying"}
    record = await it.migrations.start(VM, "b", intent=slow)
    get = it.store.migrations.get
    await it.until(lambda: any(s.effect is StepEffect.DONE for s in get(record.id).step_records))
    assert it.source.parameters["max-cpu-throttle"] == 1
    if completes:
        it.source.parameters["max-bandwidth"] = 0
    else:
        await it.migrations.abort(record.id)
    await it.until(lambda: get(record.id).state.ended)
    ended = MigrationState.COMPLETED if completes else MigrationState.CANCELLED
    done = get(record.id)
    assert (done.state, done.problems) == (ended, ())
    assert it.source.parameters == before
    assert it.source.capabilities["return-path"] is False
