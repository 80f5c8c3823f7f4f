"""What stands against a pack's tunable: consent, objects, the pack itself, libvirt's taint."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.support.examples.facts import direct_host, migrating, situation, vm
from vmtune.model.findings.pack_rows import PACK_ROWS
from vmtune.model.host.facts import Reading
from vmtune.model.plan.plan import Plan, make_plan
from vmtune.model.plan.situation import Permissions, Situation
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.packs.pack import read_toml

PACK = """
format = 1
name = "mine"
title = "x"
[[tunable]]
name = "gear"
title = "Gear"
why = "How hard it works."
type = "choice"
choices = ["low", "high"]
side = "both"
[tunable.command]
read = {execute = "x-query-gear"}
apply = {execute = "x-set-gear", arguments = {gear = "$value"}}
[[tunable]]
name = "rate_count"
title = "Rate"
why = "How fast."
type = "integer"
unit = "count"
minimum = 0
maximum = 100
[tunable.qom]
types = ["first", "second"]
property = "rate"
"""
ALLOWED = Permissions(
    pack_consents=frozenset({"x-query-gear", "x-set-gear", "qom:first.rate", "qom:second.rate"})
)
WANTED: dict[str, Any] = {"gear": "high", "rate_count": 7}


TUNABLES = BUILT_IN.with_packs(read_toml(PACK, "p").tunables)


def direct(values: dict[str, Any], **changes: Any) -> Situation:
    return situation(values, **{"host": direct_host(), "tunables": TUNABLES, **changes})


def having(where: Situation, *names: str, parts: bool = True) -> Situation:
    """The VM's QEMU has the named tunables."""
    readings = {
        **where.vm.readings,
        "gear": Reading("low"),
        "rate_count": Reading(3, {"f1": 3} if parts else {}),
    }
    return replace(where, vm=replace(where.vm, pack_offers=frozenset(names), readings=readings))


def planned(where: Situation) -> Plan:
    return make_plan(where, "a", "p", 1)


def codes(where: Situation) -> list[tuple[str, str]]:
    return [(f.code, f.tunable) for f in planned(where).findings]


def test_nothing_stands_against_what_is_there_and_allowed() -> None:
    where = having(direct(WANTED, permissions=ALLOWED), *WANTED)
    assert codes(where) == []
    assert [
        c.tunable for c in planned(where).changes(*{i.route for i in planned(where).items})
    ] == list(WANTED)


def test_consent_is_asked_for_by_setting_and_named_in_full() -> None:
    where = having(direct(WANTED), *WANTED)
    assert codes(where) == [("pack_needs_consent", "gear"), ("pack_needs_consent", "rate_count")]
    gear, rate = planned(where).findings
    assert gear.remedy.startswith("add x-query-gear, x-set-gear to the setting allow_qmp_commands")
    assert rate.remedy.startswith("add first.rate, second.rate to the setting allow_qom ")
    assert "mine" in gear.message
    assert "{" not in gear.message + gear.remedy


def test_what_qemu_does_not_have_is_told_once() -> None:
    assert codes(having(direct(WANTED), "gear")) == [
        ("pack_needs_consent", "gear"),
        ("not_offered_by_qemu", "rate_count"),
    ]


def test_a_property_needs_an_object_that_has_it() -> None:
    where = having(direct(WANTED, permissions=ALLOWED), *WANTED, parts=False)
    assert codes(where) == [("no_such_part", "rate_count")]
    assert planned(where).findings[0].evidence == {"part": "an object of the type first"}


def test_a_destination_that_waits_needs_what_is_for_both_sides() -> None:
    there = vm(pack_offers=frozenset({"rate_count"}))
    base = migrating(WANTED, permissions=ALLOWED, tunables=TUNABLES)
    assert base.destination is not None
    where = having(replace(base, destination=replace(base.destination, vm=there)), *WANTED)
    assert ("not_offered_by_qemu", "gear") in codes(where)
    assert ("not_offered_by_qemu", "rate_count") not in codes(where)


def test_under_libvirt_the_monitor_taints() -> None:
    assert ("monitor_taints", "") in codes(having(situation(WANTED, tunables=TUNABLES), *WANTED))
    assert ("monitor_taints", "") not in codes(having(direct(WANTED), *WANTED))


def test_what_is_of_no_loaded_pack_is_a_blocker_and_no_change() -> None:
    plan = planned(direct({"gone_count": 3, "downtime_limit_ms": 500}))
    (finding,) = plan.blockers()
    assert (finding.code, finding.tunable) == ("pack_not_loaded", "gone_count")
    assert "setting packs" in finding.remedy
    assert [item.tunable for item in plan.items] == ["downtime_limit_ms"]


def test_every_row_has_its_test() -> None:
    assert {row.code for row in PACK_ROWS} == {"pack_needs_consent", "pack_not_loaded"}
