"""Convergence steps as people write and read them: ``after 4 iterations: downtime_limit_ms=500ms``.

A step is ``WHEN: WHAT``. WHEN is ``after N iterations``, ``after TIME``, ``TIME later`` than the
step before, or ``stalled TIME``, where less than 1 % or, with ``stalled TIME, less than P%``, less
than P % is no progress; ``, within P% of the least`` waits for a local minimum. WHAT is
``pause``, ``postcopy``, ``abort``, or values, joined by commas. A tunable's name may leave out its
unit: ``downtime_limit=500ms``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from vmtune import units
from vmtune.errors import InvalidInput
from vmtune.model.migration.steps import (
    LEAST_SHRINK_PERCENT,
    SETTABLE,
    Action,
    AfterIterations,
    AfterSeconds,
    Later,
    SetValues,
    Stalled,
    Step,
    StepAction,
    Trigger,
)
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import Tunable, Value
from vmtune.units import Unit, UnitError

_ITERATIONS = re.compile(r"after\s+([0-9]{1,9})\s+iterations?", re.ASCII)
_TIME = re.compile(r"after\s+(.+)")
_LATER = re.compile(r"(.+?)\s+later")
_STALLED = re.compile(
    r"stalled\s+(?:for\s+)?([^,]+?)(?:\s*,\s*less\s+than\s+([0-9]{1,3})\s*%)?"
    r"(?:\s*,\s*within\s+([0-9]{1,3})\s*%\s+of\s+the\s+least)?"
)
_FORM = (
    "write WHEN: WHAT, such as 'after 4 iterations: downtime_limit=500ms', "
    "'stalled 10s: max_bandwidth=1Gi' or 'after 300s: postcopy'"
)
_ACTIONS = {
    StepAction.PAUSE: "pause the guest",
    StepAction.POSTCOPY: "switch to post-copy",
    StepAction.ABORT: "abort the migration",
}
assert set(_ACTIONS) == set(StepAction), "an action without its words"


def describe(action: Action) -> str:
    """*action* in words: ``set downtime_limit_ms to 500 ms``."""
    if isinstance(action, StepAction):
        return _ACTIONS[action]
    shown = (f"{name} to {BUILT_IN[name].render(value)}" for name, value in action.values)
    return f"set {', '.join(shown)}"


def values_of(action: Action) -> Mapping[str, Value]:
    """What *action* sets; empty where it does something else."""
    return dict(action.values) if isinstance(action, SetValues) else {}


def spelled(step: Step) -> str:
    """*step* as :func:`read_step` reads it back to the same."""
    return f"{_spelled_trigger(step.trigger)}: {_spelled_action(step.action)}"


def _spelled_trigger(trigger: Trigger) -> str:
    match trigger:
        case AfterIterations(iterations):
            return f"after {iterations} iteration{'' if iterations == 1 else 's'}"
        case AfterSeconds(seconds):
            return f"after {seconds}s"
        case Later(seconds):
            return f"{seconds}s later"
        case Stalled(seconds, shrink, near):
            least = f", less than {shrink}%" if shrink != LEAST_SHRINK_PERCENT else ""
            minimum = f", within {near}% of the least" if near is not None else ""
            return f"stalled {seconds}s{least}{minimum}"


def _spelled_action(action: Action) -> str:
    if isinstance(action, StepAction):
        return action.value
    return ", ".join(f"{name}={_spelled_value(name, value)}" for name, value in action.values)


def _spelled_value(name: str, value: Value) -> str:
    if type(value) is int and value == 0:
        return "0"
    return BUILT_IN[name].render(value).replace(",", "").replace(" ", "")


def read_step(text: str, field: str = "step") -> Mapping[str, object]:
    """*text* as the JSON that :func:`vmtune.model.migration.steps.parse_steps` takes and checks.

    :raise InvalidInput: it has not the form of a step.
    """
    when, colon, what = text.partition(":")
    if not colon:
        raise InvalidInput(f"{text[:80]!r} is not a step", field=field, remedy=_FORM)
    return {"when": _read_trigger(when.strip(), field), "then": _read_action(what.strip(), field)}


def _read_trigger(text: str, field: str) -> Mapping[str, object]:
    lowered = text.lower()
    if match := _ITERATIONS.fullmatch(lowered):
        return {"after_iterations": int(match[1])}
    if match := _TIME.fullmatch(lowered):
        return {"after_s": _seconds(match[1], field)}
    if match := _STALLED.fullmatch(lowered):
        stalled: dict[str, object] = {"stalled_s": _seconds(match[1], field)}
        given = (("shrink_percent", match[2]), ("near_percent", match[3]))
        return stalled | {name: int(value) for name, value in given if value}
    if match := _LATER.fullmatch(lowered):
        return {"later_s": _seconds(match[1], field)}
    raise InvalidInput(f"{text[:80]!r} does not say when", field=field, remedy=_FORM)


def _seconds(text: str, field: str) -> int:
    try:
        milliseconds = units.parse(f"{text}s" if text.isdecimal() else text, Unit.MS)
    except UnitError as error:
        raise InvalidInput(
            f"{text[:60]!r} is neither a time nor a number of iterations",
            field=field,
            remedy="write a time such as 300s, or 4 iterations",
        ) from error
    if milliseconds % 1000:
        raise InvalidInput(
            f"{text} is not a whole number of seconds", field=field, remedy="write whole seconds"
        )
    return milliseconds // 1000


def _read_action(text: str, field: str) -> Mapping[str, object]:
    if "=" not in text:
        return {"do": text.lower().replace("-", "")}
    values: dict[str, object] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not name or not value:
            raise InvalidInput(f"{part.strip()[:80]!r} sets nothing", field=field, remedy=_FORM)
        values[_full_name(name)] = value
    return {"set": values}


def _full_name(name: str) -> str:
    """The tunable that *name* is without its unit, where there is one."""
    return next((known for known in SETTABLE if _without_unit(BUILT_IN[known]) == name), name)


def _without_unit(row: Tunable) -> str:
    return row.name.removesuffix(f"_{row.unit.value}")


assert len({_without_unit(BUILT_IN[name]) for name in SETTABLE}) == len(SETTABLE)
