"""Options that state an intent, and its text."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from tests.support.served.api import Api
from tests.unit.client.conftest import Vmtune
from vmtune.client.intent_options import intent_options
from vmtune.client.views.intent import intent_fields, intent_plan_lines


def stated(*options: str) -> object:
    @click.command()
    @intent_options
    def command(intent: object) -> None:
        seen.append(intent)

    seen: list[object] = []
    done = CliRunner().invoke(command, options, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return seen[0]


def test_no_option_is_no_intent() -> None:
    assert stated() is None


def test_options_are_the_fields_of_an_intent() -> None:
    goals = "--silence", "500ms", "--within", "120", "--slowdown", "20%", "--may", "postcopy"
    assert stated(*goals, "--otherwise", "relax", "--relax", "deadline_s") == {
        "max_silence_ms": "500ms",
        "deadline_s": 120,
        "max_slowdown_percent": "20%",
        "may": ["postcopy"],
        "otherwise": "relax",
        "relax": ["deadline_s"],
    }


@pytest.mark.parametrize(("kept", "word"), [(True, "300 ms: kept"), (False, "300 ms: not kept")])
def test_what_was_kept_is_said(kept: bool, word: str) -> None:
    goal = {"goal": "max_silence_ms", "bound": 300, "measured": 200, "kept": kept}
    found = {
        "text": "silence", "forecast": "will be kept", "pinned": ["tls"], "goals": [goal],
    }  # fmt: skip
    shown = dict(intent_fields(found))
    assert word in click.unstyle(shown["silence"])
    assert shown["pinned"] == "tls"
    assert dict(intent_fields(None)) == {}


def goal(name: str, bound: int, measured: float | None, by: str) -> dict[str, object]:
    kept = None if measured is None else measured <= bound
    return {"goal": name, "bound": bound, "measured": measured, "kept": kept, "by": by}


def test_a_slowdown_says_by_what_it_is_known() -> None:
    goals = [
        goal("max_slowdown_percent", 20, 15.0, "throttle"),
        goal("max_bandwidth_bytes_per_s", 8 << 20, None, "unknown"),
    ]
    told = {
        "text": "slowdown", "forecast": "will be kept", "pinned": [], "goals": goals,
        "steered_until_ms": 4900,
    }  # fmt: skip
    shown = dict(intent_fields(told))
    assert shown["steered"] == "until 4,900 ms, then vmtune lost sight of it"
    assert shown["slowdown"] == "15 % by the hardest throttle, at most 20 %: kept"
    assert shown["bandwidth"] == "not known, at most 8 MiB/s was asked for"


def test_a_plan_says_choices_reasons_and_the_nearest() -> None:
    choice = {"tunable": "downtime_limit_ms", "value": {"text": "95 ms"}, "reason": "begins low"}
    found = {
        "text": "silence at most 500 ms", "forecast": "is not expected to be kept: too slow",
        "runs": 3, "choices": [choice], "pinned": ["multifd"],
        "nearest": [{"difference": "a deadline of 95 s", "intent": {}}],
    }  # fmt: skip
    assert list(intent_plan_lines(found)) == [
        "",
        "intent: silence at most 500 ms",
        "  is not expected to be kept: too slow (by 3 earlier migrations)",
        "  downtime_limit_ms = 95 ms: begins low",
        "  pinned: multifd",
        "  could be kept with a deadline of 95 s",
    ]
    assert list(intent_plan_lines(None)) == []


def test_profiles_and_evacuations_take_an_intent(real: Api, vmtune: Vmtune) -> None:
    made = vmtune("profile", "create", "gently", "--silence", "500ms", "--within", "2min")
    assert made.code == 0, made.err
    assert "silence at most 500 ms" in made.out
    changed = vmtune("profile", "set", "gently", "--silence", "100ms", "--json")
    assert changed.document["intent"]["stated"]["max_silence_ms"] == 100
    bad = vmtune("evacuate", "a", "--silence", "1 parsec", "--no-wait")
    assert bad.code == 1
    assert "intent.max_silence_ms" in bad.err
