"""The benchmark of intents against the policies of others: what it draws, and how it counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.perf.intent import ALL, FEW, KINDS, MIB, OURS, Done, Found, checks_of, drawn, order
from vmtune.model.migration.intent import parse_intent
from vmtune.model.profile_templates import profile_templates

ONE = Done("steady", 0, OURS, "completed", 9000.0, 80.0, 95, 2.0, 1.0, True)


def test_a_seed_draws_the_same_workloads_each_time() -> None:
    some = [drawn("7", number) for number in range(6)]
    assert some == [drawn("7", number) for number in range(6)]
    assert [one.kind for one in some] == list(KINDS)
    assert some != [drawn("8", number) for number in range(6)]


@pytest.mark.parametrize("number", range(12))
def test_intents_can_be_accepted_and_one_of_them_cannot_be_kept(number: int) -> None:
    one = drawn("7", number)
    parse_intent(one.intent)
    deadline_s = parse_intent(one.infeasible).deadline_s
    assert deadline_s is not None
    sending_s = one.workload.region_bytes / MIB / one.link_mib_per_s
    assert sending_s >= 2 * deadline_s


def test_every_rival_is_a_shipped_profile() -> None:
    shipped = {each.name: {"values": each.values, "steps": []} for each in profile_templates()}
    assert set(FEW) <= set(ALL) <= set(shipped)
    one = drawn("7", 0)
    limit = {"max_bandwidth_bytes_per_s": one.link_mib_per_s * MIB}
    assert order(one, FEW[0], shipped) == {"values": limit, "steps": []}
    assert one.intent.items() >= limit.items()
    assert "values" not in order(drawn("7", 0), OURS, shipped)


def test_what_is_kept_and_what_is_not_is_counted() -> None:
    rival = replace(ONE, arm="auto-converge", lost_s=4.0, total_ms=10_000.0)
    found = Found([ONE, rival], {"feasible": [False], "infeasible": [True]})
    held = {check.metric: check for check in checks_of(found, (OURS, "auto-converge"))}
    assert all(check.holds for check in held.values()), held
    assert held["lost work by auto-converge's"].value == 0.5
    late = Found([replace(ONE, kept=False), rival], {"feasible": [True], "infeasible": [False]})
    assert not any(
        check.holds
        for check in checks_of(late, (OURS, "auto-converge"))
        if "lost" not in check.metric and "CPU" not in check.metric
    )
