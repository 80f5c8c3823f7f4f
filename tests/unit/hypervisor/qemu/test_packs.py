"""Packs over a monitor: which commands are sent, what is read of the answers, what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from vmtune.errors import CommandRefused, OutcomeUnknown
from vmtune.hypervisor.qemu.allowlist import NOT_ALLOWED, check
from vmtune.hypervisor.qemu.packs import NOT_OFFERED, PackProbe, set_values
from vmtune.hypervisor.qemu.write import write
from vmtune.model.host.facts import Reading
from vmtune.model.plan.changes import Change
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.packs.access import consent_to_qom
from vmtune.model.tunables.packs.pack import read_toml

PACK = """
format = 1
name = "p"
title = "x"
[[tunable]]
name = "gear"
title = "Gear"
why = "How hard it works."
type = "choice"
choices = ["low", "high"]
[tunable.command]
read = {execute = "x-query-gear", arguments = {of = "all"}, result = "now.gear"}
apply = {execute = "x-set-gear", arguments = {deep = {gear = "$value"}}}
[[tunable]]
name = "turns_count"
title = "Turns"
why = "How often it turned."
type = "integer"
unit = "count"
minimum = 0
maximum = 100
read_only = true
[tunable.command]
read = {execute = "x-query-turns"}
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
property = "limits"
member = "total"
"""
ALL = ("gear", "turns_count", "rate_count")


TUNABLES = BUILT_IN.with_packs(read_toml(PACK, "p").tunables)


class FakeMonitor:
    """Answers from a table; an error in it is raised."""

    def __init__(self, **answers: Any) -> None:
        self.sent: list[tuple[str, Any]] = []
        self.answers: dict[str, Any] = {
            "query-qmp-schema": [
                {"name": "x-query-gear", "meta-type": "command"},
                {"name": "x-set-gear", "meta-type": "command"},
                {"name": "x-query-turns", "meta-type": "command"},
                {"name": "7", "meta-type": "object"},
            ],
            "x-query-gear": {"now": {"gear": "low"}},
            "x-query-turns": 7,
            "qom-list-properties first": [{"name": "limits", "type": "x"}],
            "qom-list-properties second": CommandRefused("Class 'second' not found"),
            "qom-list /objects": [{"name": "f1", "type": "child<first>"},
                                  {"name": "other", "type": "child<third>"}],
            "qom-list /machine/peripheral": [{"name": "f2", "type": "child<first>"},
                                             {"name": "type", "type": "string"}],
            "qom-list /machine/peripheral-anon": CommandRefused("not found"),
            "qom-get /objects/f1": {"total": 3, "other": 1},
            "qom-get /machine/peripheral/f2": {"total": 3},
            **{name.replace("_", "-"): answer for name, answer in answers.items()},
        }  # fmt: skip

    async def execute(self, command: str, arguments: Mapping[str, Any] | None = None) -> Any:
        self.sent.append((command, arguments))
        key = (arguments or {}).get("typename") or (arguments or {}).get("path") or ""
        answer = self.answers.get(f"{command} {key}".strip(), self.answers.get(command, {}))
        if isinstance(answer, Exception):
            raise answer
        return answer


async def see(monitor: FakeMonitor, *names: str) -> Any:
    return await PackProbe(monitor).see([TUNABLES[name] for name in names or ALL])


async def test_all_is_found_and_read() -> None:
    monitor = FakeMonitor()
    seen = await see(monitor)
    assert seen.offered == set(ALL)
    assert seen.readings == {
        "gear": Reading("low"),
        "turns_count": Reading(7),
        "rate_count": Reading(3, {"f1": 3, "f2": 3}),
    }
    assert ("x-query-gear", {"of": "all"}) in monitor.sent
    assert ("x-query-turns", None) in monitor.sent


async def test_what_a_program_can_do_is_asked_once() -> None:
    monitor = FakeMonitor()
    probe = PackProbe(monitor)
    rows = [TUNABLES[name] for name in ALL]
    await probe.see(rows)
    monitor.sent.clear()
    await probe.see(rows)
    asked = {command for command, _ in monitor.sent}
    assert asked == {"x-query-gear", "x-query-turns", "qom-list", "qom-get"}
    monitor.sent.clear()
    await probe.see([])
    assert monitor.sent == []


async def test_parts_that_differ_are_told_as_such() -> None:
    monitor = FakeMonitor()
    monitor.answers["qom-get /objects/f1"] = {"total": 4}
    seen = await see(monitor, "rate_count")
    assert seen.readings["rate_count"] == Reading(None, {"f1": 4, "f2": 3}, "its parts differ")


async def test_what_this_qemu_does_not_have_is_not_offered_and_not_asked() -> None:
    monitor = FakeMonitor()
    monitor.answers["query-qmp-schema"] = [{"name": "x-query-gear", "meta-type": "command"}]
    monitor.answers["qom-list-properties first"] = [{"name": "limit", "type": "x"}]
    seen = await see(monitor)
    assert seen.offered == frozenset()
    assert {r.why_unknown for r in seen.readings.values()} == {NOT_OFFERED}
    assert not [c for c, _ in monitor.sent if c in ("x-query-gear", "qom-get", "qom-list")]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"now": {}}, "no such value"),
        ({"now": 3}, "no such value"),
        ([], "no such value"),
        (None, "no such value"),
        ({"now": {"gear": 3}}, "no such value"),
        ({"now": {"gear": True}}, "no such value"),
        (CommandRefused("not now"), "not now"),
    ],
)
async def test_answers_that_are_no_value_are_unknown(answer: Any, why: str) -> None:
    monitor = FakeMonitor()
    monitor.answers["x-query-gear"] = answer
    reading = (await see(monitor, "gear")).readings["gear"]
    assert reading.value is None
    assert why in reading.why_unknown


async def test_a_lost_connection_is_no_reading() -> None:
    monitor = FakeMonitor()
    monitor.answers["x-query-gear"] = OutcomeUnknown("gone")
    with pytest.raises(OutcomeUnknown):
        await see(monitor)


async def test_values_are_set_by_their_own_way_and_in_order() -> None:
    monitor = FakeMonitor()
    await write(
        monitor, [Change("gear", "high"), Change("rate_count", 9), Change("gear", "low")], TUNABLES
    )
    assert [(c, a) for c, a in monitor.sent if c in ("qom-set", "x-set-gear")] == [
        ("x-set-gear", {"deep": {"gear": "high"}}),
        (
            "qom-set",
            {"path": "/machine/peripheral/f2", "property": "limits", "value": {"total": 9}},
        ),
        ("qom-set", {"path": "/objects/f1", "property": "limits", "value": {"total": 9}}),
        ("x-set-gear", {"deep": {"gear": "low"}}),
    ]


async def test_one_part_alone_is_set() -> None:
    monitor = FakeMonitor()
    await set_values(monitor, [Change("rate_count", 9, "f2")], TUNABLES)
    (sent,) = [a for c, a in monitor.sent if c == "qom-set"]
    assert sent["path"] == "/machine/peripheral/f2"


@pytest.mark.parametrize(
    ("change", "answers", "message"),
    [
        (Change("gear", "high"), {"x-set-gear": CommandRefused("no gear")}, "no gear"),
        (Change("rate_count", 9), {"qom-set": CommandRefused("too fast")}, "too fast"),
        (Change("rate_count", 9, "f9"), {}, "the VM has no f9"),
        (Change("turns_count", 9), {}, "turns_count can only be read"),
    ],
)
async def test_a_refusal_names_its_tunable(
    change: Change, answers: dict[str, Any], message: str
) -> None:
    monitor = FakeMonitor()
    monitor.answers |= answers
    with pytest.raises(CommandRefused) as caught:
        await write(monitor, [change], TUNABLES)
    (problem,) = caught.value.problems
    assert (problem.field, problem.message) == (f"values.{change.tunable}", message)


SET = {"path": "/objects/f1", "property": "limits", "value": 1}
MAKE = {"qom-type": "first", "id": "x"}


@pytest.mark.parametrize(
    ("command", "arguments", "consents", "allowed"),
    [
        ("qom-set", SET, ("first.limits",), True),
        ("qom-set", {**SET, "path": "/machine/peripheral/f2"}, ("first.limits",), True),
        ("qom-set", {**SET, "path": "/machine/peripheral-anon/device[0]"}, ("a.limits",), True),
        ("qom-set", SET, (), False),
        ("qom-set", SET, ("limits",), False),
        ("qom-set", SET, ("first",), False),
        ("qom-set", SET, ("limits.first",), False),
        ("qom-set", {**SET, "path": "/machine"}, ("first.limits",), False),
        ("qom-set", {**SET, "path": "/machine/unattached/x"}, ("first.limits",), False),
        ("qom-set", {**SET, "path": "/objects/f1/more"}, ("first.limits",), False),
        ("object-add", MAKE, ("first",), True),
        ("object-add", MAKE, ("first.limits",), False),
        ("object-add", {**MAKE, "file": "/etc/shadow"}, ("first",), False),
        ("object-add", {"qom-type": "first"}, ("first",), False),
    ],
)
def test_only_what_the_operator_allows_is_sent(
    command: str, arguments: dict[str, Any], consents: tuple[str, ...], allowed: bool
) -> None:
    more = [consent_to_qom(name) for name in consents]
    if allowed:
        check(command, arguments, more)
        more.clear()
    with pytest.raises(CommandRefused) as caught:
        check(command, arguments, more)
    (problem,) = caught.value.problems
    assert problem.code == NOT_ALLOWED
    assert "allow_qom" in problem.remedy
