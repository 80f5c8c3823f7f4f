"""Convergence steps: what to do when a migration does not end.

A profile may hold a list of steps, in the manner of oVirt's migration policies. Each is a trigger
and an action, written as in::

    [
      {"when": {"after_iterations": 4}, "then": {"set": {"downtime_limit_ms": 500}}},
      {"when": {"stalled_s": 10}, "then": {"set": {"max_cpu_throttle_percent": 80}}},
      {"when": {"after_s": 300}, "then": {"do": "postcopy"}}
    ]

:mod:`vmtune.engine.steps.convergence` decides when they are due.

Read by hand and not by field types: a trigger and an action are one of several forms, told by the
name that is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any

from vmtune.documents.strict import short
from vmtune.errors import MAX_PROBLEMS, InvalidInput, Problem, and_more
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.rows.storage import COPIES, COPY
from vmtune.model.tunables.rules import contradictions, unknown_tunable
from vmtune.model.tunables.tunable import Value

MAX_STEPS = 32
MAX_ITERATIONS = 10_000
MAX_SECONDS = 7 * 24 * 3600
LEAST_SHRINK_PERCENT = 1

SETTABLE = (
    "downtime_limit_ms",
    "max_bandwidth_bytes_per_s",
    "cpu_throttle_initial_percent",
    "cpu_throttle_increment_percent",
    "max_cpu_throttle_percent",
    "vcpu_dirty_limit_mib_per_s",
)
"""What a step may set: QEMU heeds these while it migrates, and they help to end."""
assert all(BUILT_IN[name].running for name in SETTABLE)
OF_COPIES = "copy_synchronous_writes"
"""What a step may switch on for the copies of disks, alone: they need it to end, too. Such a step
is taken while they are copied, and the others while the memory is sent."""


@dataclass(frozen=True, slots=True)
class AfterIterations:
    """Once *iterations* have been completed since the migration's start; 0: at once."""

    iterations: int


@dataclass(frozen=True, slots=True)
class AfterSeconds:
    """Once *seconds* have passed since the migration's start; where disks are copied, since its
    memory is sent."""

    seconds: int


@dataclass(frozen=True, slots=True)
class Later:
    """Once *seconds* have passed since the step before, or since the start for the first step."""

    seconds: int


@dataclass(frozen=True, slots=True)
class Stalled:
    """Once remaining bytes have stalled for *seconds*; see :mod:`vmtune.engine.steps.convergence`.

    :param shrink_percent: less than this is no progress.
    :param near_percent: and at the end of an iteration at which what remains exceeds the least so
        far by no more than this: a local minimum. None: at once.
    """

    seconds: int
    shrink_percent: int = LEAST_SHRINK_PERCENT
    near_percent: int | None = None


Trigger = AfterIterations | AfterSeconds | Later | Stalled


@dataclass(frozen=True, slots=True)
class SetValues:
    """Set tunables while the migration runs, by the ``running`` route."""

    values: tuple[tuple[str, Value], ...]


class StepAction(StrEnum):
    """An action that sets no value.

    ``pause`` stops the guest on the source until the migration has ended, one way or the other:
    it then dirties nothing, so that the rest fits through any network.
    """

    PAUSE = "pause"
    POSTCOPY = "postcopy"
    ABORT = "abort"

    @property
    def final(self) -> bool:
        """No step can follow."""
        return self is not StepAction.PAUSE


Action = SetValues | StepAction


@dataclass(frozen=True, slots=True)
class Step:
    """When *trigger* has come, do *action*: once."""

    trigger: Trigger
    action: Action

    @property
    def switches(self) -> frozenset[str]:
        """The tunables that have to be on for it to have an effect."""
        if isinstance(self.action, SetValues):
            names = (name for name, _ in self.action.values)
            return frozenset(_SWITCHES[name] for name in names if name in _SWITCHES)
        return frozenset({"postcopy"} if self.action is StepAction.POSTCOPY else ())

    @property
    def of_copies(self) -> bool:
        """Whether it is for the copies of disks."""
        return isinstance(self.action, SetValues) and OF_COPIES in dict(self.action.values)


def parse_steps(raw: object, field: str = "steps") -> tuple[Step, ...]:
    """Steps from JSON.

    :param field: what problems call the list; parts follow as in ``steps.0.when.after_s``.
    :raise InvalidInput: with a problem for each part that cannot be accepted, and for each step
        that could never fire in its place.
    """
    if not isinstance(raw, list | tuple):
        raise InvalidInput("the steps are no list", field=field, remedy=_FORM)
    if len(raw) > MAX_STEPS:
        raise InvalidInput(f"there are {len(raw)} steps, and {MAX_STEPS} are the most", field=field)
    reader = _Reader()
    steps = [reader.step(each, f"{field}.{index}") for index, each in enumerate(raw)]
    read = [step for step in steps if step is not None]
    problems = reader.all or _misplaced(read, field)
    if problems:
        raise InvalidInput("the steps cannot be accepted", problems=problems)
    return tuple(read)


def dump_steps(steps: Sequence[Step]) -> list[dict[str, object]]:
    """*steps* as JSON that :func:`parse_steps` reads back to the same."""
    return [{"when": _dump_trigger(s.trigger), "then": _dump_action(s.action)} for s in steps]


def load_steps(stored: Sequence[Mapping[str, Any]]) -> tuple[Step, ...]:  # any JSON
    """The steps that :func:`dump_steps` made, as they were accepted then: what may be set and
    how much of it can have changed since."""
    return tuple(Step(_load_trigger(s["when"]), _load_action(s["then"])) for s in stored)


def _load_trigger(when: Mapping[str, int]) -> Trigger:
    if "after_iterations" in when:
        return AfterIterations(when["after_iterations"])
    if "after_s" in when:
        return AfterSeconds(when["after_s"])
    if "later_s" in when:
        return Later(when["later_s"])
    return Stalled(when["stalled_s"], when["shrink_percent"], when.get("near_percent"))


def _load_action(then: Mapping[str, Any]) -> Action:  # any JSON
    return StepAction(then["do"]) if "do" in then else SetValues(tuple(then["set"].items()))


def accept_steps(
    raw: object, values: Mapping[str, Value], field: str = "steps"
) -> tuple[Step, ...]:
    """Steps from JSON that fit the profile's *values*.

    :raise InvalidInput: with a problem for each part that cannot be accepted, for what the
        profile lacks, and for values that contradict each other once a step has set its own.
    """
    steps = parse_steps(raw, field)
    problems = [*lacking(steps, values, field), *_contradicting(steps, values, field)]
    if problems:
        raise InvalidInput("the steps do not fit the profile", problems=problems)
    return steps


def _contradicting(
    steps: Sequence[Step], values: Mapping[str, Value], field: str
) -> Iterator[Problem]:
    """Rules that *values* break when the steps have set theirs, one after the other."""
    known = {(problem.field, problem.code) for problem in contradictions(values, "")}
    for index, step in enumerate(steps):
        if not isinstance(step.action, SetValues):
            continue
        values = {**values, **dict(step.action.values)}
        for problem in contradictions(values, ""):
            fresh = (problem.field, problem.code) not in known
            known.add((problem.field, problem.code))
            if fresh and not problem.code.startswith(_LACKS):
                where = f"{field}.{index}.then.set"
                yield Problem(where, problem.code, problem.message, problem.remedy)


def lacking(
    steps: Sequence[Step], values: Mapping[str, Value], field: str = "steps"
) -> list[Problem]:
    """What the profile's *values* lack for its steps to have an effect."""
    problems = []
    for index, step in enumerate(steps):
        if step.action is StepAction.POSTCOPY and values.get("postcopy") is not True:
            problems.append(_needs(f"{field}.{index}.then.do", "postcopy", "postcopy"))
        if step.of_copies and not any(values.get(name) is True for name in COPIES):
            problems.append(_needs(f"{field}.{index}.then.set.{OF_COPIES}", OF_COPIES, COPY))
        if isinstance(step.action, SetValues):
            for name, _ in step.action.values:
                switch = _SWITCHES.get(name)
                if switch and values.get(switch) is not True:
                    problems.append(_needs(f"{field}.{index}.then.set.{name}", name, switch))
    return problems


_LACKS = "needs_"
"""The prefix of the rules' codes that :func:`lacking` words for steps."""
_SWITCHES = {
    "cpu_throttle_initial_percent": "auto_converge",
    "cpu_throttle_increment_percent": "auto_converge",
    "max_cpu_throttle_percent": "auto_converge",
    "vcpu_dirty_limit_mib_per_s": "dirty_limit",
}
_FORM = 'write [{"when": {"after_iterations": 4}, "then": {"set": {"downtime_limit_ms": 500}}}]'
_SETTABLE = f"{', '.join(SETTABLE)}, or {OF_COPIES} alone"
_OF_STALLS = ("shrink_percent", "near_percent")
_KINDS = ("after_iterations", "after_s", "later_s", "stalled_s")
_TRIGGERS = "after_iterations, after_s, later_s or stalled_s"


def _needs(field: str, what: str, switch: str) -> Problem:
    return Problem(
        field,
        f"needs_{switch}",
        f"{what} has no effect unless the profile switches {switch} on",
        f"set {switch} to on in the profile, or remove the step",
    )


class _Reader:
    """Reads steps and gathers what is wrong with them."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._refused = 0

    @property
    def all(self) -> list[Problem]:
        """The problems, and how many more there are."""
        more = self._refused - len(self.problems)
        return self.problems + ([and_more(more)] if more else [])

    def step(self, raw: object, field: str) -> Step | None:
        parts = self._object(raw, field, ("when", "then"))
        if parts is None:
            return None
        for name in ("when", "then"):
            if name not in parts:
                self._refuse(f"{field}.{name}", "missing", f"{name} is missing", _FORM)
        trigger = self._trigger(parts["when"], f"{field}.when") if "when" in parts else None
        action = self._action(parts["then"], f"{field}.then") if "then" in parts else None
        step = Step(trigger, action) if trigger and action else None
        if step is not None and step.of_copies and not _fits_copies(step.trigger):
            self._refuse(f"{field}.when", "misplaced", "a copy of disks has no iterations",
                         "use after_s, later_s, or stalled_s alone")  # fmt: skip
            return None
        return step

    def _trigger(self, raw: object, field: str) -> Trigger | None:
        parts = self._object(raw, field, (*_KINDS, *_OF_STALLS))
        if parts is None:
            return None
        given = [kind for kind in _KINDS if kind in parts]
        if len(given) != 1:
            self._refuse(field, "not_one", f"a step has one trigger, not {len(given)}",
                         f"give one of {_TRIGGERS}")  # fmt: skip
            return None
        for name in _OF_STALLS:
            if name in parts and given != ["stalled_s"]:
                self._refuse(f"{field}.{name}", "misplaced",
                             f"{name} belongs to stalled_s alone", "remove it")  # fmt: skip
                return None
        most = MAX_ITERATIONS if given == ["after_iterations"] else MAX_SECONDS
        least = 0 if given == ["after_iterations"] else 1
        value = self._number(parts[given[0]], f"{field}.{given[0]}", most, least)
        raw_shrink = parts.get("shrink_percent", LEAST_SHRINK_PERCENT)
        shrink = self._number(raw_shrink, f"{field}.shrink_percent", 100)
        near = None
        if "near_percent" in parts:
            near = self._number(parts["near_percent"], f"{field}.near_percent", 100)
            if near is None:
                return None
        if value is None or shrink is None:
            return None
        match given[0]:
            case "after_iterations":
                return AfterIterations(value)
            case "after_s":
                return AfterSeconds(value)
            case "later_s":
                return Later(value)
            case _:
                return Stalled(value, shrink, near)

    def _action(self, raw: object, field: str) -> Action | None:
        parts = self._object(raw, field, ("set", "do"))
        if parts is None:
            return None
        if len(parts) != 1:
            self._refuse(field, "not_one", f"a step has one action, not {len(parts)}",
                         'give "set" or "do"')  # fmt: skip
            return None
        if "set" in parts:
            return self._values(parts["set"], f"{field}.set")
        try:
            return StepAction(parts["do"])  # type: ignore[arg-type]  # any JSON: refused if unknown
        except ValueError:
            self._refuse(f"{field}.do", "not_a_choice", f"{short(parts['do'])} cannot be done",
                         f"use {', '.join(StepAction)}; values go to set")  # fmt: skip
            return None

    def _values(self, raw: object, field: str) -> SetValues | None:
        if not isinstance(raw, Mapping) or not raw:
            self._refuse(field, "invalid_value", f"{short(raw)} names no value to set",
                         f"set one or more of {_SETTABLE}")  # fmt: skip
            return None
        values: list[tuple[str, Value]] = []
        before = self._refused
        for name, given in raw.items():
            where = f"{field}.{name}"
            if name not in BUILT_IN:
                # It may be a pack's, of which a step can set none.
                self._report(partial(_unknown_to_a_step, str(name), where))
            elif name not in SETTABLE and (name != OF_COPIES or len(raw) > 1):
                alone = " next to another value" if name == OF_COPIES else ""
                self._refuse(where, "not_settable", f"a step cannot set {name}{alone}",
                             f"it can set {_SETTABLE}")  # fmt: skip
            else:
                try:
                    values.append((name, BUILT_IN[name].accept(given)))
                except ValueError as error:
                    allowed = f"allowed: {BUILT_IN[name].allowed()}"
                    self._refuse(where, "invalid_value", str(error), allowed)
        if values == [(OF_COPIES, False)]:
            self._refuse(f"{field}.{OF_COPIES}", "not_settable",
                         "the writes cannot be let go again while the copy runs",
                         "switch it on, or remove the step")  # fmt: skip
        return None if self._refused > before else SetValues(tuple(values))

    def _object(
        self, raw: object, field: str, names: tuple[str, ...]
    ) -> Mapping[str, object] | None:
        if not isinstance(raw, Mapping):
            self._refuse(field, "invalid_value", f"{short(raw)} is not an object", _FORM)
            return None
        unknown = [str(name) for name in raw if name not in names]
        for name in unknown:
            where = f"{field}.{name[:100]}"
            self._refuse(where, "unknown_field", f"there is no {short(name)} here",
                         f"known are {', '.join(names)}")  # fmt: skip
        return None if unknown else raw

    def _number(self, raw: object, field: str, most: int, least: int = 1) -> int | None:
        if isinstance(raw, int) and not isinstance(raw, bool) and least <= raw <= most:
            return raw
        reach = f"{least} to {most}"
        self._refuse(field, "invalid_value", f"{short(raw)} is not a whole number from {reach}",
                     f"use {reach}")  # fmt: skip
        return None

    def _refuse(self, field: str, code: str, message: str, remedy: str) -> None:
        self._report(lambda: Problem(field, code, message, remedy))

    def _report(self, problem: Callable[[], Problem]) -> None:
        self._refused += 1
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem())


def _fits_copies(trigger: Trigger) -> bool:
    if isinstance(trigger, Stalled):
        return trigger == Stalled(trigger.seconds)
    return not isinstance(trigger, AfterIterations)


def _unknown_to_a_step(name: str, field: str) -> Problem:
    message = f"a step cannot set {short(name)}"
    return replace(unknown_tunable(name, field, BUILT_IN), message=message)


def _misplaced(steps: Sequence[Step], field: str) -> list[Problem]:
    """Steps behind a final one, and those whose trigger has always come before their turn."""
    problems = []
    most: dict[tuple[type[Trigger], bool], int] = {}
    for index, step in enumerate(steps):
        where = f"{field}.{index}"
        before = steps[index - 1].action if index else None
        if isinstance(before, StepAction) and before.final:
            problems.append(
                Problem(
                    where,
                    "never_due",
                    f"no step can follow {before}",
                    f"make {before} the last step",
                )
            )
        if step.action is StepAction.PAUSE and any(
            s.action is StepAction.PAUSE for s in steps[:index]
        ):
            problems.append(
                Problem(where, "never_due", "the guest is paused by then", "pause it once")
            )
        if isinstance(step.trigger, Stalled | Later):
            continue
        name, at = (
            ("after_iterations", step.trigger.iterations)
            if isinstance(step.trigger, AfterIterations)
            else ("after_s", step.trigger.seconds)
        )
        kind = type(step.trigger), step.of_copies
        if at < most.get(kind, 0):
            problems.append(
                Problem(
                    f"{where}.when.{name}",
                    "out_of_order",
                    f"{at} has passed when an earlier step's {most[kind]} has come",
                    "put the steps in the order of their triggers",
                )
            )
        most[kind] = max(at, most.get(kind, 0))
    return problems


def _dump_trigger(trigger: Trigger) -> dict[str, object]:
    match trigger:
        case AfterIterations():
            return {"after_iterations": trigger.iterations}
        case AfterSeconds():
            return {"after_s": trigger.seconds}
        case Later():
            return {"later_s": trigger.seconds}
        case Stalled():
            near = trigger.near_percent
            return {
                "stalled_s": trigger.seconds,
                "shrink_percent": trigger.shrink_percent,
                **({} if near is None else {"near_percent": near}),
            }


def _dump_action(action: Action) -> dict[str, object]:
    if isinstance(action, SetValues):
        return {"set": dict(action.values)}
    return {"do": action.value}
