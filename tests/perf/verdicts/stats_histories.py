"""What vmtune and Apache Otava see in simulated histories, many at a time.

``HISTORIES=`` sets how many a cell has, ``PROCESSES=`` how many processes share the work.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

from tests.perf.verdicts.otava import otava_changes
from tests.support.benchmarks.stats_simulation import SEED
from vmtune.stats.changes import changes, newest_sign
from vmtune.stats.early import Strength
from vmtune.stats.model import Criterion, Observation
from vmtune.stats.ranks import Floats

HISTORIES = int(os.environ.get("HISTORIES", "1000"))
PROCESSES = int(os.environ.get("PROCESSES", "0")) or os.cpu_count()
TIME = Criterion("total_time_ms", unit="ms")
CONFIRMED_WITHIN = 10  # runs from the true place
Row = dict[str, object]


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look at a history shows.

    :param changes: the place and the kind of each.
    :param sign: the strength of the sign that the newest runs give.
    """

    changes: tuple[tuple[int, str], ...]
    sign: Strength | None


def random_of(*cell: object) -> np.random.Generator:
    """Each cell's own."""
    return np.random.default_rng([SEED, *repr(cell).encode()])


def all_seen(series: Sequence[Floats]) -> list[Seen]:
    """What is seen in each."""
    with ProcessPoolExecutor(PROCESSES) as pool:
        return list(pool.map(_seen, [each.tolist() for each in series], chunksize=20))


def _seen(values: Sequence[float]) -> Seen:
    observed = [Observation(value) for value in values]
    found = changes(observed, TIME)
    sign = newest_sign(observed, found)
    return Seen(
        tuple((each.at, each.kind.value) for each in found), None if sign is None else sign.strength
    )


def share(flags: Sequence[object]) -> float:
    """The share of what is true."""
    return sum(bool(flag) for flag in flags) / len(flags)


def otava(series: Sequence[Floats], at: int | None = None) -> float | None:
    """The share in which it finds a change; near *at* if that is given."""
    found = otava_changes([each.tolist() for each in series])
    if found is None:
        return None
    return share([[p for p in each if at is None or abs(p - at) <= CONFIRMED_WITHIN]
                  for each in found])  # fmt: skip
