"""What a migration has to keep, stated as goals: the intent.

An intent names goals and means, no settings. Written as in::

    {
      "max_silence_ms": "500ms", "deadline_s": "2min", "max_slowdown_percent": 20,
      "may": ["throttle", "postcopy"], "otherwise": "relax", "relax": ["deadline_s"]
    }

Numbers are in the unit of their name; a text may have another unit. A goal that is left out is
not a goal, which is not the same as 0. :mod:`vmtune.intent` chooses settings for it and steers
the migration.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

from vmtune import units
from vmtune.documents.strict import Reader, join, short
from vmtune.errors import Problem
from vmtune.units import Unit

MAX_SILENCE_MS = 2_000_000
"""The largest downtime limit that QEMU takes (MAX_MIGRATE_DOWNTIME in migration/options.c)."""
MAX_DEADLINE_S = 7 * 24 * 3600
MAX_SLOWDOWN_PERCENT = 99
"""QEMU's hardest throttle (max-cpu-throttle in migration/options.c)."""
TURN_MS = 12
"""QEMU lets a throttled vCPU run for 10 ms at a time (CPU_THROTTLE_TIMESLICE_NS in
system/cpu-throttle.c), and sleep for as long as its percentage says; some more for being late."""
MAX_BANDWIDTH = 1 << 62
_Word = TypeVar("_Word", bound=StrEnum)


class Goal(StrEnum):
    """A bound that an intent may name. The words are those of the intent's fields."""

    SILENCE = "max_silence_ms"
    DEADLINE = "deadline_s"
    SLOWDOWN = "max_slowdown_percent"
    BANDWIDTH = "max_bandwidth_bytes_per_s"


GOAL_UNITS = {
    Goal.SILENCE: Unit.MS,
    Goal.DEADLINE: Unit.S,
    Goal.SLOWDOWN: Unit.PERCENT,
    Goal.BANDWIDTH: Unit.BYTES_PER_S,
}
_RANGES = {
    Goal.SILENCE: (1, MAX_SILENCE_MS),
    Goal.DEADLINE: (1, MAX_DEADLINE_S),
    Goal.SLOWDOWN: (0, MAX_SLOWDOWN_PERCENT),
    Goal.BANDWIDTH: (1, MAX_BANDWIDTH),
}
assert set(GOAL_UNITS) == set(_RANGES) == set(Goal), "a goal without its unit or range"


class Means(StrEnum):
    """What may be used to keep the goals."""

    THROTTLE = "throttle"
    """Withhold CPU time from the guest, up to the slowdown that is allowed."""
    POSTCOPY = "postcopy"
    """Let the guest run on the destination before all of its memory is there. It then waits for
    pages, for how long cannot be promised."""
    PAUSE = "pause"
    """Stop the guest until the migration has ended."""
    COMPRESS = "compress"
    ZERO_COPY = "zero_copy"


HARMLESS = (Means.COMPRESS, Means.ZERO_COPY)
"""Means that cost the guest nothing but CPU time of its hosts."""


class Otherwise(StrEnum):
    """What to do where the goals cannot be kept."""

    REFUSE = "refuse"
    """Not start, or give up in time and leave the guest where it was."""
    KEEP_TRYING = "keep-trying"
    """Start, and continue beyond the deadline; the other goals hold."""
    RELAX = "relax"
    """Give up goals in the order of ``relax``, one after the other."""


@dataclass(frozen=True, slots=True)
class Intent:
    """Goals, each None where it is not one, and what may be used to keep them.

    :param max_silence_ms: the longest that the guest may stand still.
    :param deadline_s: from the migration's start to the guest's running on the destination.
    :param max_slowdown_percent: the most of the guest's CPU time that may be withheld.
    :param max_bandwidth_bytes_per_s: the most that may be sent while the guest runs.
    :param may: in the order of :class:`Means`, each once.
    :param relax: goals to give up, the first one first; empty unless *otherwise* is ``relax``.
    """

    max_silence_ms: int | None = None
    deadline_s: int | None = None
    max_slowdown_percent: int | None = None
    max_bandwidth_bytes_per_s: int | None = None
    may: tuple[Means, ...] = HARMLESS
    otherwise: Otherwise = Otherwise.REFUSE
    relax: tuple[Goal, ...] = ()

    def goal(self, goal: Goal) -> int | None:
        """The bound of *goal*; None where it is not one."""
        value: int | None = getattr(self, goal.value)
        return value

    def having(self, goal: Goal, bound: int | None) -> Intent:
        """This intent with another bound of *goal*; None removes it."""
        match goal:
            case Goal.SILENCE:
                return replace(self, max_silence_ms=bound)
            case Goal.DEADLINE:
                return replace(self, deadline_s=bound)
            case Goal.SLOWDOWN:
                return replace(self, max_slowdown_percent=bound)
            case Goal.BANDWIDTH:
                return replace(self, max_bandwidth_bytes_per_s=bound)

    def allows(self, means: Means) -> bool:
        """Whether *means* may be used."""
        return means in self.may

    @property
    def most_throttle_percent(self) -> int:
        """The hardest throttle of auto-converge that is allowed; 0 for none."""
        return self.most_throttled(TURN_MS)

    def most_throttled(self, turn_ms: float) -> int:
        """The hardest throttle that is allowed, in percent; 0 for none. A throttled guest stands
        still in turns, by auto-converge at 99 % for 990 ms at a time, which has to be within the
        silence.

        :param turn_ms: for how long it runs in between.
        """
        if not self.allows(Means.THROTTLE):
            return 0
        bound = self.max_slowdown_percent
        most = MAX_SLOWDOWN_PERCENT if bound is None else bound
        if self.max_silence_ms is None:
            return most
        return min(most, int(100 * self.max_silence_ms / (self.max_silence_ms + turn_ms)))


def still_ms(throttle_percent: int, turn_ms: float = TURN_MS) -> int:
    """How long a guest stands still at a time that is throttled by so much, and runs for *turn_ms*
    in between."""
    return round(turn_ms * throttle_percent / max(1, 100 - throttle_percent))


def parse_intent(raw: object, field: str = "intent") -> Intent:
    """An intent from JSON.

    Without ``may``, compression and zero-copy may be used, and throttling where a slowdown above 0
    is allowed; post-copy and pausing only where they are named.

    :param field: what problems call it; parts follow as in ``intent.deadline_s``.
    :raise InvalidInput: with a problem for each part that cannot be accepted, and for goals that
        contradict each other.
    """
    reader = Reader()
    names = (*(goal.value for goal in Goal), "may", "otherwise", "relax")
    parts = {k: v for k, v in reader.mapping(raw, field, names).items() if v is not None}
    intent = Intent()
    for goal in Goal:
        if goal.value in parts:
            where, (least, most) = join(field, goal.value), _RANGES[goal]
            given = reader.integer(parts[goal.value], where, least, most, unit=GOAL_UNITS[goal])
            intent = intent.having(goal, given)
    otherwise = Otherwise.REFUSE
    relax: tuple[Goal, ...] = ()
    if "otherwise" in parts:
        where = join(field, "otherwise")
        otherwise = reader.choice(parts["otherwise"], where, Otherwise, otherwise)
    if "relax" in parts:
        relax = _words(reader, parts["relax"], join(field, "relax"), Goal)
    if "may" in parts:
        may = _words(reader, parts["may"], join(field, "may"), Means)
    else:
        slower = (intent.max_slowdown_percent or 0) > 0
        may = ((Means.THROTTLE,) if slower else ()) + HARMLESS
    ordered = tuple(means for means in Means if means in may)
    intent = replace(intent, may=ordered, otherwise=otherwise, relax=relax)
    if not reader.refused:
        for problem in _contradictions(intent, field):
            reader.refuse(problem.field, problem.code, problem.message, problem.remedy)
    reader.done("the intent cannot be accepted")
    return intent


def dump_intent(intent: Intent) -> dict[str, object]:
    """*intent* as JSON that :func:`parse_intent` reads back to the same."""
    goals = {goal.value: intent.goal(goal) for goal in Goal if intent.goal(goal) is not None}
    return {
        **goals,
        "may": [means.value for means in intent.may],
        "otherwise": intent.otherwise.value,
        **({"relax": [goal.value for goal in intent.relax]} if intent.relax else {}),
    }


_BOUND_WORDS = {
    Goal.SILENCE: "silence at most {}",
    Goal.DEADLINE: "within {}",
    Goal.SLOWDOWN: "slowdown at most {}",
    Goal.BANDWIDTH: "bandwidth at most {}",
}
_GOAL_WORDS = {
    Goal.SILENCE: "silence",
    Goal.DEADLINE: "time",
    Goal.SLOWDOWN: "slowdown",
    Goal.BANDWIDTH: "bandwidth",
}
_MEANS_WORDS = {
    Means.THROTTLE: "throttle",
    Means.POSTCOPY: "post-copy",
    Means.PAUSE: "pause",
    Means.COMPRESS: "compress",
    Means.ZERO_COPY: "zero-copy",
}


def describe(intent: Intent) -> str:
    """*intent* in words: ``silence at most 500 ms, within 120 s, may throttle``."""
    said = [
        _BOUND_WORDS[goal].format(units.render(bound, GOAL_UNITS[goal]))
        for goal in Goal
        if (bound := intent.goal(goal)) is not None
    ]
    if intent.may:
        said.append(f"may {', '.join(_MEANS_WORDS[means] for means in intent.may)}")
    if intent.otherwise is Otherwise.RELAX:
        said.append(f"otherwise relax {', '.join(_GOAL_WORDS[goal] for goal in intent.relax)}")
    elif intent.otherwise is not Otherwise.REFUSE:
        said.append(f"otherwise {intent.otherwise}")
    return ", ".join(said)


def _words(reader: Reader, raw: object, field: str, words: type[_Word]) -> tuple[_Word, ...]:
    """A list of an enumeration's words, each at most once."""
    default = next(iter(words))

    def read(entry: object, where: str) -> _Word:
        return reader.choice(entry, where, words, default)

    before = reader.refused
    found = reader.sequence(raw, field, read, len(words))
    if reader.refused == before and len(set(found)) < len(found):
        reader.refuse(field, "repeated", f"{short(raw)} names one twice", "name each once")
    return found


def _contradictions(intent: Intent, field: str) -> Iterator[Problem]:
    silence, deadline = intent.max_silence_ms, intent.deadline_s
    if (silence, deadline, intent.max_slowdown_percent) == (None, None, None):
        yield Problem(
            field,
            "no_goal",
            "the intent names no silence, deadline or slowdown",
            "give max_silence_ms, deadline_s or max_slowdown_percent",
        )
    if silence is not None and deadline is not None and silence >= deadline * 1000:
        yield Problem(
            join(field, Goal.SILENCE.value),
            "longer_than_deadline",
            f"a silence of {silence:,} ms is allowed in a migration of at most {deadline:,} s",
            "allow less silence, or a later deadline",
        )
    if intent.max_slowdown_percent == 0 and intent.allows(Means.THROTTLE):
        yield Problem(
            join(field, "may"),
            "throttle_without_slowdown",
            "throttling may be used, and the guest must not be slowed down",
            "leave throttle out, or allow a slowdown",
        )
    if silence is not None and intent.allows(Means.PAUSE) and Goal.SILENCE not in intent.relax:
        yield Problem(
            join(field, "may"),
            "pause_with_silence",
            "a paused guest is silent, and its silence is bounded: the downtime limit does the same"
            " within that bound",
            f"leave pause out, drop {Goal.SILENCE}, or put {Goal.SILENCE} into relax",
        )
    yield from _wrong_order(intent, field)


def _wrong_order(intent: Intent, field: str) -> Iterator[Problem]:
    """What is wrong with the goals to give up."""
    where = join(field, "relax")
    relaxes = intent.otherwise is Otherwise.RELAX
    if relaxes and not intent.relax:
        yield Problem(
            where,
            "nothing_to_relax",
            "goals are to be relaxed, and none is named",
            f"name one or more of {_listed(intent)}, the first to give up first",
        )
    if intent.relax and not relaxes:
        yield Problem(
            where,
            "not_relaxing",
            f"goals to relax are named, and otherwise is {intent.otherwise}",
            "set otherwise to relax, or leave relax out",
        )
    for index, goal in enumerate(intent.relax):
        if intent.goal(goal) is None:
            yield Problem(
                f"{where}.{index}",
                "not_a_goal",
                f"{goal} is to be relaxed, and is not a goal of this intent",
                f"name one or more of {_listed(intent)}",
            )


def _listed(intent: Intent) -> str:
    return ", ".join(goal for goal in Goal if intent.goal(goal) is not None)
