"""What a study is to reach, read from a text::

    minimise total_time_ms where guest_silence_ms <= 300 and completed
    maximise iops, minimise cpu_us_per_io

Names are those of the table of metrics. A bound may have a unit: ``<= 300ms``. ``completed`` holds
of a run that succeeded. Several goals have no common scale: what no other settings beat in all of
them is the Pareto front.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from vmtune import units
from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.metrics.metric import Metric
from vmtune.bench.model.metrics.table import METRICS_OF, SUCCESS, Direction, judged_metrics
from vmtune.documents.strict import short
from vmtune.errors import InvalidInput, Problem
from vmtune.units import UnitError

MAX_GOALS = 3
MAX_CONSTRAINTS = 10
MAX_CHARACTERS = 1000
COMPLETED = "completed"
EXAMPLE = "minimise total_time_ms where guest_silence_ms <= 300 and completed"

_FIELD = "objective"
_PARTS = re.compile(r"\s+where\s+", re.IGNORECASE)
_AND = re.compile(r"\s+and\s+", re.IGNORECASE)
_GOAL = re.compile(r"(minimi[sz]e|maximi[sz]e)\s+(\w+)", re.IGNORECASE)
_BOUND = re.compile(r"(\w+)\s*(<=|>=|<|>)\s*(\S.*)")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?", re.IGNORECASE)
_LONGEST_NAME = 100


class Sense(StrEnum):
    """Which way a goal goes."""

    MINIMISE = "minimise"
    MAXIMISE = "maximise"


class Relation(StrEnum):
    """How a metric is held against a bound."""

    AT_MOST = "<="
    AT_LEAST = ">="


@dataclass(frozen=True, slots=True)
class Goal:
    """A metric that is to become as small or as large as it can."""

    sense: Sense
    metric: str

    @property
    def sign(self) -> int:
        """What a value is multiplied by so that less is better."""
        return 1 if self.sense is Sense.MINIMISE else -1


@dataclass(frozen=True, slots=True)
class Constraint:
    """What has to hold of a run. ``<`` and ``>`` are read as ``<=`` and ``>=``: values are
    measured, and the border itself has no meaning.

    :param bound: in the metric's unit.
    """

    metric: str
    relation: Relation
    bound: float

    def excess(self, value: float) -> float:
        """By how much *value* is beyond the bound, in the metric's unit; above 0 breaks it."""
        beyond = value - self.bound
        return beyond if self.relation is Relation.AT_MOST else -beyond

    def __str__(self) -> str:
        return f"{self.metric} {self.relation} {self.bound:g}"


@dataclass(frozen=True, slots=True)
class Objective:
    """Goals, and what has to hold besides.

    :param completed: only settings whose runs succeed are acceptable. Runs that do not are the
        worst results in any case.
    """

    goals: tuple[Goal, ...]
    constraints: tuple[Constraint, ...] = ()
    completed: bool = False

    @property
    def primary(self) -> Goal:
        """The first goal: the one that a campaign confirms."""
        return self.goals[0]

    @property
    def metrics(self) -> tuple[str, ...]:
        """Every metric that it needs of a run, without repeats."""
        named = [goal.metric for goal in self.goals] + [one.metric for one in self.constraints]
        return tuple(dict.fromkeys(named))

    def broken_by(self, values: Mapping[str, float], *, succeeded: bool) -> bool:
        """Whether a run with these metrics breaks what has to hold.

        A run that did not succeed does, where anything has to: its metrics are of less than a whole
        run, and a time at which it was given up is below what it would have taken.
        """
        if not succeeded and (self.completed or self.constraints):
            return True
        return any(
            one.metric not in values or one.excess(values[one.metric]) > 0
            for one in self.constraints
        )

    def __str__(self) -> str:
        """As a text that :func:`parse_objective` reads back the same."""
        goals = ", ".join(f"{goal.sense} {goal.metric}" for goal in self.goals)
        rest = [str(one) for one in self.constraints] + [COMPLETED] * self.completed
        return f"{goals} where {' and '.join(rest)}" if rest else goals


def parse_objective(text: str, kind: ScenarioKind) -> Objective:
    """The objective that *text* says for scenarios of *kind*.

    :raise InvalidInput: with a problem for each part that cannot be accepted.
    """
    if len(text) > MAX_CHARACTERS or not text.strip():
        raise InvalidInput(
            "there is no objective" if not text.strip() else f"it has {len(text):,} characters",
            field=_FIELD,
            code="invalid_objective",
            remedy=f"write it like: {EXAMPLE}",
        )
    problems: list[Problem] = []
    first, *rest = _PARTS.split(text.strip())
    if len(rest) > 1:
        problems.append(_problem("invalid_objective", "there is more than one where",
                                 "join what has to hold with and"))  # fmt: skip
    goals = [_goal(part.strip(), kind, problems) for part in first.split(",")]
    conditions = [part.strip() for part in _AND.split(rest[0])] if rest else []
    constraints = [_constraint(part, kind, problems) for part in conditions if part != COMPLETED]
    problems += _too_many(goals, conditions)
    if problems:
        raise InvalidInput(f"the objective {short(text)} cannot be accepted", problems=problems)
    return Objective(
        tuple(goal for goal in goals if goal is not None),
        tuple(one for one in constraints if one is not None),
        COMPLETED in conditions,
    )


def _problem(code: str, message: str, remedy: str) -> Problem:
    return Problem(_FIELD, code, message, remedy)


def _too_many(goals: list[Goal | None], conditions: list[str]) -> list[Problem]:
    found = []
    if len(goals) > MAX_GOALS:
        found.append(_problem("too_many", f"there are {len(goals)} goals, and {MAX_GOALS} are the "
                              "most", "make bounds of some: where METRIC <= BOUND"))  # fmt: skip
    if len(conditions) > MAX_CONSTRAINTS:
        found.append(_problem("too_many", f"there are {len(conditions)} conditions, and "
                              f"{MAX_CONSTRAINTS} are the most", "leave some out"))  # fmt: skip
    named = [goal.metric for goal in goals if goal is not None]
    for name in sorted({name for name in named if named.count(name) > 1}):
        found.append(_problem("twice", f"{name} is a goal twice", "leave one out"))
    return found


def _goal(text: str, kind: ScenarioKind, problems: list[Problem]) -> Goal | None:
    match = _GOAL.fullmatch(text)
    if match is None:
        problems.append(_problem("invalid_objective", f"{short(text)} is not a goal",
                                 f"write it like: {EXAMPLE}"))  # fmt: skip
        return None
    word, name = match.groups()
    sense = Sense.MINIMISE if word.lower().startswith("min") else Sense.MAXIMISE
    metric = _metric(name, kind, problems)
    if metric is None:
        return None
    better = {Direction.LOWER: Sense.MINIMISE, Direction.HIGHER: Sense.MAXIMISE}
    if metric.direction not in better:
        problems.append(
            _problem(
                "no_direction",
                f"of {name} neither more nor less is better: no verdict can confirm it",
                f"use one of {', '.join(judged_metrics(kind))}, or bound it: where {name} <= ...",
            )
        )
        return None
    if better[metric.direction] is not sense:
        right = better[metric.direction]
        problems.append(_problem("wrong_direction", f"to {sense} {name} is to make it worse",
                                 f"write {right} {name}"))  # fmt: skip
        return None
    if name == SUCCESS[kind]:
        problems.append(_problem("success_is_no_goal", f"{name} only says whether a run succeeded",
                                 f"write: where {COMPLETED}"))  # fmt: skip
        return None
    return Goal(sense, name)


def _constraint(text: str, kind: ScenarioKind, problems: list[Problem]) -> Constraint | None:
    match = _BOUND.fullmatch(text)
    if match is None:
        problems.append(_problem("invalid_objective", f"{short(text)} is not a condition",
                                 f"write METRIC <= NUMBER, or {COMPLETED}"))  # fmt: skip
        return None
    name, sign, number = match.groups()
    metric = _metric(name, kind, problems)
    if metric is None:
        return None
    try:
        bound = _number(number.strip(), metric)
    except UnitError as error:
        problems.append(_problem("invalid_value", f"the bound of {name}: {error}",
                                 f"write {units.examples(metric.unit)}"))  # fmt: skip
        return None
    relation = Relation.AT_MOST if sign.startswith("<") else Relation.AT_LEAST
    return Constraint(name, relation, bound)


def _number(text: str, metric: Metric) -> float:
    if len(text) <= _LONGEST_NAME and _NUMBER.fullmatch(text):
        return float(text)
    return float(units.parse(text, metric.unit))


def _metric(name: str, kind: ScenarioKind, problems: list[Problem]) -> Metric | None:
    table: Mapping[str, Metric] = METRICS_OF[kind]
    if name in table:
        return table[name]
    near = difflib.get_close_matches(name[:_LONGEST_NAME], table, n=3, cutoff=0.5)
    problems.append(
        _problem(
            "invalid_metric",
            f"runs of the kind {kind} have no metric {short(name)}",
            f"did you mean {', '.join(near)}?" if near else "use one of " + ", ".join(table),
        )
    )
    return None
