"""Options that state the intent of a migration."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from vmtune.model.migration.intent import Goal, Means, Otherwise

_Command = Callable[..., Any]  # any: what a command takes and gives
_GOALS = {
    "silence": (Goal.SILENCE, "TIME", "Longest time the guest may stand still, such as 500ms."),
    "within": (Goal.DEADLINE, "TIME", "Time by which it has to be done, such as 2min."),
    "slowdown": (Goal.SLOWDOWN, "PERCENT", "Most of the guest's CPU time that may be withheld."),
    "max_bandwidth": (Goal.BANDWIDTH, "RATE", "Most to send while the guest runs: 1Gbit/s."),
}


def intent_options(command: _Command) -> _Command:
    """The options; the command gets ``intent``, as the API takes it, or None without any."""

    @functools.wraps(command)
    def with_intent(*args: Any, **given: Any) -> Any:
        stated: dict[str, object] = {
            goal.value: text
            for name, (goal, _, _) in _GOALS.items()
            if (text := given.pop(name)) is not None
        }
        words = {name: given.pop(name) for name in ("may", "otherwise", "relax")}
        for name, said in words.items():
            if said:
                stated[name] = list(said) if isinstance(said, tuple) else said
        return command(*args, intent=_numbers(stated) or None, **given)

    options = [
        click.option(f"--{name.replace('_', '-')}", name, metavar=form, help=text)
        for name, (_, form, text) in _GOALS.items()
    ]
    options += [
        click.option(
            "--may",
            multiple=True,
            type=click.Choice([means.value for means in Means]),
            help="What may be used to keep the goals. May be repeated.",
        ),
        click.option(
            "--otherwise",
            type=click.Choice([word.value for word in Otherwise]),
            help="What to do if the goals cannot be kept; refuse by default.",
        ),
        click.option(
            "--relax",
            multiple=True,
            type=click.Choice([goal.value for goal in Goal]),
            help="Goal to give up first with --otherwise relax. May be repeated.",
        ),
    ]
    for option in reversed(options):
        with_intent = option(with_intent)
    return with_intent


def _numbers(stated: dict[str, object]) -> dict[str, object]:
    """A bare number stays in the unit of its field."""
    return {
        name: int(said) if isinstance(said, str) and said.isdecimal() else said
        for name, said in stated.items()
    }
