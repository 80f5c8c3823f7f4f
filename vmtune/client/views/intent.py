"""A migration's intent as text: what was stated, expected, and kept."""

from __future__ import annotations

from collections.abc import Iterator

import click

from vmtune import units
from vmtune.client.connection.http import Document
from vmtune.client.views import render
from vmtune.client.views.output import prose
from vmtune.units import Unit

_WORDS = {
    "max_silence_ms": "silence",
    "deadline_s": "time",
    "max_slowdown_percent": "slowdown",
    "max_bandwidth_bytes_per_s": "bandwidth",
}


def intent_fields(intent: Document | None) -> Iterator[tuple[str, str]]:
    """Names and texts; nothing without an intent."""
    if intent is None:
        return
    yield "intent", intent["text"]
    yield "forecast", intent["forecast"]
    if intent.get("shadow"):
        yield "shadow mode", "steps are shown, nothing was changed"
    if intent["pinned"]:
        yield "pinned", ", ".join(intent["pinned"])
    if (until_ms := intent.get("steered_until_ms")) is not None:
        yield "steered", f"until {render.milliseconds(until_ms)}, then vmtune lost sight of it"
    for goal in intent["goals"]:
        yield _WORDS[goal["goal"]], _kept(goal)


def intent_plan_lines(intent: Document | None) -> Iterator[str]:
    """An intent in a plan: what is expected, each choice with its reason, and else the nearest."""
    if intent is None:
        return
    yield ""
    yield from prose(f"intent: {intent['text']}")
    runs = intent["runs"]
    rests = "" if not runs else f" (by {runs} earlier migration{'' if runs == 1 else 's'})"
    yield from prose(f"{intent['forecast']}{rests}", "  ")
    for choice in intent["choices"]:
        yield from prose(
            f"{choice['tunable']} = {choice['value']['text']}: {choice['reason']}", "  "
        )
    if intent["pinned"]:
        yield from prose(f"pinned: {', '.join(intent['pinned'])}", "  ")
    for near in intent["nearest"]:
        yield from prose(f"could be kept with {near['difference']}", "  ")


def _kept(goal: Document) -> str:
    def said(value: float) -> str:
        match goal["goal"]:
            case "max_silence_ms":
                return render.milliseconds(round(value))
            case "deadline_s":
                return render.milliseconds(round(value * 1000))
            case "max_slowdown_percent":
                return f"{value:.0f} %"
        return units.approximate(value, Unit.BYTES_PER_S)

    bound = said(goal["bound"])
    if goal["measured"] is None:
        return f"not known, at most {bound} was asked for"
    took = said(goal["measured"])
    if goal.get("by") == "throttle" and goal["measured"] > 0:
        took = f"{took} by the hardest throttle"
    if goal["kept"]:
        return f"{took}, at most {bound}: kept"
    return click.style(f"{took}, at most {bound}: not kept", fg="yellow")
