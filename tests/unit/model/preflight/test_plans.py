"""What a plan makes of its findings: changes, routes, blockers lifted, differences."""

from dataclasses import replace

from tests.support.examples.facts import (
    host,
    migrating,
    situation,
    vm,
)
from tests.unit.model.preflight.situations import (
    REAPED,
    SLACKEN,
    ringed,
)
from vmtune.model.host.facts import VmState
from vmtune.model.plan.plan import TakesEffect, make_plan
from vmtune.model.tunables.tunable import Route
from vmtune.model.versions import Version


def test_what_an_old_libvirt_does_not_know_goes_through_the_monitor_on_the_source() -> None:
    values = {"avail_switchover_bandwidth_bytes_per_s": 1_000_001}
    old = make_plan(situation(values, host=host(libvirt=Version(9))), "a", "p", 1)
    new = make_plan(situation(values), "a", "p", 1)
    assert (old.items[0].route, new.items[0].route) == (Route.MONITOR, Route.MIGRATE)
    assert old.items[0].overwriter == ""
    assert "libvirt" in new.items[0].overwriter
    assert old.items[0].takes_effect is TakesEffect.NOW
    assert not old.blockers()


def test_a_blocked_tunable_is_planned_never_and_left_out_of_the_changes() -> None:
    values = {"dirty_limit": True, "downtime_limit_ms": 500}
    plan = make_plan(situation(values), "a", "p", 1)
    by_name = {item.tunable: item for item in plan.items}
    assert by_name["dirty_limit"].takes_effect is TakesEffect.NEVER
    assert [c.tunable for c in plan.changes(Route.MONITOR)] == ["downtime_limit_ms"]
    assert "ring" in plan.reason_against("dirty_limit")
    assert plan.reason_against("downtime_limit_ms") == ""


def test_overrides_lift_the_named_blocker_only() -> None:
    plan = make_plan(situation({"dirty_limit": True}, vm=vm(state=VmState.SHUT_OFF)), "a", "p", 1)
    assert {f.code for f in plan.blockers()} == {"vm_not_running", "dirty_limit_needs_ring"}
    lifted = plan.blockers(frozenset({"dirty_limit_needs_ring"}))
    assert [f.code for f in lifted] == ["vm_not_running"]


def test_a_plan_is_clean_when_everything_is_as_wanted() -> None:
    assert make_plan(situation({"downtime_limit_ms": 300}), "a", "p", 1).clean
    assert not make_plan(situation({"downtime_limit_ms": 301}), "a", "p", 1).clean


def test_one_differing_part_is_a_difference() -> None:
    facts = vm()
    reading = facts.readings["iothread_poll_grow"]
    mixed = replace(reading, value=None, parts={"iothread1": 0, "iothread2": 2})
    facts = replace(facts, readings={**facts.readings, "iothread_poll_grow": mixed})
    plan = make_plan(situation({"iothread_poll_grow": 0}, vm=facts), "a", "p", 1)
    assert plan.items[0].differs


def test_more_of_a_host_value_than_wanted_is_no_difference() -> None:
    assert make_plan(situation({"vm_max_map_count": 65530}), "a", "p", 1).clean


def test_what_vmtune_does_itself_is_planned_for_the_next_migration() -> None:
    plan = make_plan(migrating(REAPED, vm=ringed(65536), steps=(SLACKEN,)), "a", "p", 1)
    (item,) = plan.items
    assert (item.route, item.takes_effect) == (Route.CONTROL, TakesEffect.AT_MIGRATION)
    assert not item.differs
    assert plan.steps == (SLACKEN,)
    assert [c.tunable for c in plan.changes(Route.CONTROL)] == ["reaper_policy"]
