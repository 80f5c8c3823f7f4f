"""When a metric changed, over many runs of one scenario in the order of time.

Where the level takes a step is found by its likelihood among noise that remembers
(:mod:`~vmtune.stats.steps`). Steps that are one slow change together are told as a ramp
(:mod:`~vmtune.stats.ramps`). Then the values' distances from their level are searched likewise, by
a stricter limit: where they become larger or smaller but the level stays, the spread changed
alone. What the last few runs hint at is apart: an early sign (:mod:`~vmtune.stats.early`).

What lies before and after a change is then compared like two arms, unpaired, between the
neighbouring changes. That comparison says how large the change is and whether it matters; its test
is not to be read as one, for the cut was put where the difference is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

import numpy as np

from vmtune.errors import InvalidInput
from vmtune.stats.compare import compare
from vmtune.stats.early import EarlySign, early_sign
from vmtune.stats.model import (
    MAX_RUNS,
    Comparison,
    Criterion,
    Design,
    Direction,
    Observation,
    Sample,
)
from vmtune.stats.ramps import Level, levels
from vmtune.stats.ranks import Floats
from vmtune.stats.steps import LEAST_SEGMENT, steps

LEAST_POINTS = 20
SPREAD_STRICTER = 4.0
"""What the limits are raised by for changes of spread: below 1 % of histories show a false one."""


class ChangeKind(StrEnum):
    """How values changed."""

    STEP = "step"
    """From one run to the next."""
    RAMP = "ramp"
    """By and by, over ten runs or more."""
    SPREAD = "spread"
    """The level stayed; the runs lie wider apart, or less wide."""


@dataclass(frozen=True, slots=True)
class Change:
    """A place where the values changed.

    :param at: the index of the first value after it.
    :param comparison: what came after, compared with what was before, between the
        neighbouring changes.
    :param until: the index of the first value at the new level; *at* but for a ramp.
    :param spread: the spread since by the spread before (median distances from the level); None
        where there is no ratio.
    """

    at: int
    comparison: Comparison
    kind: ChangeKind = ChangeKind.STEP
    until: int = 0
    spread: float | None = None


def changes(observations: Sequence[Observation], criterion: Criterion) -> tuple[Change, ...]:
    """Where the values changed, in the order of time; those without a value do not count.

    :raise InvalidInput: too few values, or too many.
    """
    places, values = _usable(observations)
    usable = [observations[place] for place in places]
    scores = np.log(values) if values.min() > 0 else values
    cuts = steps(scores)
    level = levels(scores, cuts)
    found = [
        *(_level_change(usable, criterion, each, near) for each, near in _with_ends(level, usable)),
        *(() if criterion.share else _spread_changes(usable, criterion, scores, cuts, level)),
    ]
    return tuple(
        replace(each, at=places[each.at], until=places[min(each.until, len(places) - 1)])
        for each in sorted(found, key=lambda change: change.at)
    )


def completion_changes(succeeded: Sequence[bool]) -> tuple[Change, ...]:
    """Where the share of runs that succeed changed, in the order of time.

    :raise InvalidInput: too few runs, or too many.
    """
    return changes([Observation(float(each)) for each in succeeded], _COMPLETION)


def newest_sign(observations: Sequence[Observation], found: Sequence[Change]) -> EarlySign | None:
    """The sign that the last runs give of a change, since the last one of level.

    :raise InvalidInput: too few values, or too many.
    """
    places, values = _usable(observations)
    last = max((each.until for each in found if each.kind is not ChangeKind.SPREAD), default=0)
    since = sum(place < last for place in places)
    sign = early_sign(values[since:])
    return None if sign is None else replace(sign, at=places[since + sign.at])


_COMPLETION = Criterion("completed", Direction.HIGHER, share=True, success=True)


def _usable(observations: Sequence[Observation]) -> tuple[list[int], Floats]:
    """The indices of what has a value, and the values."""
    places = [place for place, o in enumerate(observations) if o.value is not None]
    if not LEAST_POINTS <= len(places) <= MAX_RUNS:
        raise InvalidInput(
            f"{len(places)} values; changes are looked for in {LEAST_POINTS} to {MAX_RUNS:,}",
            field="values",
            code="too_few" if len(places) < LEAST_POINTS else "too_many",
            remedy="run the scenario more often"
            if len(places) < LEAST_POINTS
            else "choose a shorter time",
        )
    return places, np.array([observations[place].value for place in places], dtype=np.float64)


def _with_ends(
    level: Sequence[Level], usable: Sequence[Observation]
) -> list[tuple[Level, tuple[int, int]]]:
    """Each change of level, with where the one before it ended and the next one begins."""
    begins = [0, *(each.until for each in level)]
    ends = [*(each.at for each in level[1:]), len(usable)]
    return [(each, (begin, end)) for each, begin, end in zip(level, begins, ends, strict=False)]


def _level_change(
    usable: Sequence[Observation], criterion: Criterion, level: Level, near: tuple[int, int]
) -> Change:
    begin, end = near
    # A ramp may have no runs before or after it: then its first and last third are compared.
    third = max(LEAST_SEGMENT, (end - begin) // 3)
    until = level.until if end - level.until >= LEAST_SEGMENT else end - third
    at = level.at if level.at - begin >= LEAST_SEGMENT else begin + third
    kind = ChangeKind.RAMP if level.until > level.at else ChangeKind.STEP
    compared = _compared(usable[begin:at], usable[until:end], criterion)
    return Change(level.at, compared, kind, level.until)


def _spread_changes(
    usable: Sequence[Observation],
    criterion: Criterion,
    scores: Floats,
    cuts: Sequence[int],
    level: Sequence[Level],
) -> list[Change]:
    """Where the distances from the level changed, but not at a change of level."""
    if any(each.until > each.at for each in level):
        return []  # about a ramp there is no level to be distant from
    ends = [0, *cuts, len(scores)]
    distances = np.concatenate(
        [np.abs(scores[a:b] - np.median(scores[a:b])) for a, b in pairwise(ends)]
    )
    at_level = [place for cut in cuts for place in range(cut - LEAST_SEGMENT, cut + LEAST_SEGMENT)]
    found = []
    spread = steps(distances, SPREAD_STRICTER)
    for (begin, cut), (_, end) in pairwise(pairwise([0, *spread, len(scores)])):
        if cut in at_level:
            continue
        before, after = (float(np.median(distances[part]))
                         for part in (slice(begin, cut), slice(cut, end)))  # fmt: skip
        found.append(
            Change(
                cut,
                _compared(usable[begin:cut], usable[cut:end], criterion),
                ChangeKind.SPREAD,
                cut,
                after / before if before else None,
            )
        )
    return found


def _compared(
    before: Sequence[Observation], after: Sequence[Observation], criterion: Criterion
) -> Comparison:
    return compare(
        Sample("before", tuple(before)),
        Sample("after", tuple(after)),
        criterion,
        design=Design.UNPAIRED,
    )
