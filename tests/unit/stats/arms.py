"""Arms of comparisons: values of runs of which each has the limit, and that do not vary much."""

from __future__ import annotations

from vmtune.stats.model import (
    Criterion,
    Observation,
    Sample,
)

TIME = Criterion("total_time_ms", unit="ms")
STEADY = [1000.0, 1004, 1011, 997, 990, 1002, 1008, 995, 1001, 1006]


def arm(name: str, values: list[float], *, blocks: bool = True) -> Sample:
    return Sample.of(name, values, blocks=blocks)


def times(values: list[float], factor: float) -> list[float]:
    return [value * factor for value in values]


def limited(name: str, values: list[float], limit: float) -> Sample:
    return Sample(
        name,
        tuple(
            Observation(min(value, limit), censored=value > limit, block=block)
            for block, value in enumerate(values, 1)
        ),
    )
