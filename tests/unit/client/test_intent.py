"""Options that state an intent, and its text."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from vmtune.client.intent_options import intent_options
from vmtune.client.views.intent import intent_fields


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
