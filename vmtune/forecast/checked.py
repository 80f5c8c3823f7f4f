"""How good forecasts were: their errors, and how often their bounds held what happened."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from vmtune.forecast.held import HeldForecast
from vmtune.model.migration.forecast_basis import Figure

_LEAST = 1.0
"""What happened counts as this at least in a relative error: a silence of 0 ms has none."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Of one figure. Errors are shares of what happened, *off* is in the figure's unit.

    :param within: the share of what happened within the bounds; 0.9 is meant.
    :param others_count: how many have what users have without forecasts, with its errors; they are
        None where none has.
    """

    count: int
    median_error: float
    p90_error: float
    median_off: float
    p90_off: float
    within: float
    others_count: int = 0
    others_median_error: float | None = None
    others_p90_error: float | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """Some forecasts, compared with what happened.

    :param forecasts: all of them.
    :param ends_known: of how many it can be said whether their migration ended by itself.
    :param ends_right: the share of these that said so; None where there are none, or all were
        "may not".
    :param may_not: of these, how many said "may not", which is neither right nor wrong.
    """

    forecasts: int
    ends_known: int
    ends_right: float | None
    may_not: int
    figures: Mapping[Figure, Accuracy]


def check(held: Sequence[HeldForecast]) -> Checked:
    """How good *held* were, all together."""
    told = [each for each in held if each.happened.ended is not None]
    said = [each for each in told if each.figures.ends is not None]
    right = [each.figures.ends is each.happened.ended for each in said]
    found = ((figure, _accuracy(held, figure)) for figure in Figure)
    return Checked(
        len(held),
        len(told),
        statistics.fmean(right) if right else None,
        len(told) - len(said),
        {figure: accuracy for figure, accuracy in found if accuracy is not None},
    )


def check_by(
    held: Sequence[HeldForecast], key: Callable[[HeldForecast], str]
) -> list[tuple[str, Checked]]:
    """The same of those with each key, in the keys' order."""
    groups: dict[str, list[HeldForecast]] = {}
    for each in held:
        groups.setdefault(key(each), []).append(each)
    return [(name, check(groups[name])) for name in sorted(groups)]


def week_of(held: HeldForecast) -> str:
    """The Monday of the week in which its migration ended, in UTC: ``2026-11-23``."""
    day = held.held_at.date()
    return (day - timedelta(days=day.weekday())).isoformat()


def path_of(held: HeldForecast) -> str:
    """From where to where."""
    return f"{held.source} to {held.destination or 'an unknown host'}"


def nearest_rank(values: Sequence[float], share: float) -> float:
    """The least of *values*, at least one, that *share* of them do not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def _accuracy(held: Sequence[HeldForecast], figure: Figure) -> Accuracy | None:
    errors, off, within, others = [], [], [], []
    for each in held:
        said, happened = each.figures.of(figure), each.happened.of(figure)
        if said is None or happened is None:
            continue
        errors.append(_error(said.likely, happened))
        off.append(abs(said.likely - happened))
        within.append(said.holds(happened))
        instead = each.happened.others(figure)
        if instead is not None:
            others.append(_error(instead, happened))
    if not errors:
        return None
    return Accuracy(
        len(errors),
        statistics.median(errors),
        nearest_rank(errors, 0.9),
        statistics.median(off),
        nearest_rank(off, 0.9),
        statistics.fmean(within),
        len(others),
        statistics.median(others) if others else None,
        nearest_rank(others, 0.9) if others else None,
    )


def _error(said: float, happened: float) -> float:
    return abs(said - happened) / max(_LEAST, happened)
