"""Histories of which the truth is known: false changes, changes that are found, and early signs,
side by side with Apache Otava on the same series. Tables for ``stats_sim``.

``HISTORIES=`` sets how many a cell has.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from tests.perf.otava import otava_changes
from tests.perf.report import Check
from tests.support.histories import NOISES, history, normal, quiet, with_outliers
from tests.support.stats_simulation import SEED
from vmtune.stats.changes import ChangeKind, changes, newest_sign
from vmtune.stats.model import Criterion, Observation
from vmtune.stats.ranks import Floats

HISTORIES = int(os.environ.get("HISTORIES", "1000"))
TIME = Criterion("total_time_ms", unit="ms")
CONFIRMED_WITHIN = 10  # runs from the true place
NEWEST = 3
Row = dict[str, object]


def random_of(*cell: object) -> np.random.Generator:
    """Each cell's own."""
    return np.random.default_rng([SEED, *repr(cell).encode()])


def _seen(values: Sequence[float]) -> tuple[list[tuple[int, str]], bool]:
    observed = [Observation(value) for value in values]
    found = changes(observed, TIME)
    return [(each.at, each.kind.value) for each in found], newest_sign(observed, found) is not None


def _all_seen(series: Sequence[Floats]) -> list[tuple[list[tuple[int, str]], bool]]:
    with ProcessPoolExecutor() as pool:
        return list(pool.map(_seen, [each.tolist() for each in series], chunksize=20))


def _share(flags: Sequence[object]) -> float:
    return sum(bool(flag) for flag in flags) / len(flags)


def _otava(series: Sequence[Floats], at: int | None = None) -> float | None:
    """The share in which it finds a change; near *at* if that is given."""
    found = otava_changes([each.tolist() for each in series])
    if found is None:
        return None
    return _share([[p for p in each if at is None or abs(p - at) <= CONFIRMED_WITHIN]
                   for each in found])  # fmt: skip


def false_changes() -> list[Row]:
    """Nothing changed."""
    rows: list[Row] = []
    for runs in (30, 100):
        for name, noise in NOISES.items():
            for again in (0.0, 0.3, 0.5, 0.7):
                random = random_of("false", runs, name, again)
                series = [history(random, noise, runs, again=again) for _ in range(HISTORIES)]
                seen = _all_seen(series)
                rows.append(
                    {
                        "runs": runs,
                        "noise": name,
                        "autocorrelation": again,
                        "false": _share([found for found, _ in seen]),
                        "false_sign": _share([sign for _, sign in seen]),
                        "otava": _otava(series),
                    }
                )
    return rows


def found_changes() -> list[Row]:
    """A step of 10 % in histories of 100 runs."""
    rows: list[Row] = []
    for name, noise in (("outliers", with_outliers), ("normal", normal)):
        for at in (30, 50, 70):
            random = random_of("found", name, at)
            series = [history(random, noise, 100, step=1.1, at=at) for _ in range(HISTORIES)]
            seen = _all_seen(series)
            rows.append(
                {
                    "noise": name,
                    "at": at,
                    "found": _share([found for found, _ in seen]),
                    "found_near": _share(
                        [[p for p, _ in f if abs(p - at) <= CONFIRMED_WITHIN] for f, _ in seen]
                    ),
                    "otava": _otava(series),
                    "otava_near": _otava(series, at),
                }
            )
    return rows


def signs() -> list[Row]:
    """A step of 20 %, looked at after 1, 2 and 3 runs: a sign, or a change, at any of them."""
    rows: list[Row] = []
    for name, noise in (("5 %", quiet), ("10 %", normal), ("10 %, outliers", with_outliers)):
        for before in (30, 50, 97):
            runs = before + NEWEST
            random = random_of("sign", name, before)
            series = [history(random, noise, runs, step=1.2, at=before) for _ in range(HISTORIES)]
            looks = [
                _all_seen([each[: before + seen] for each in series])
                for seen in range(1, NEWEST + 1)
            ]
            rows.append(
                {
                    "spread": name,
                    "before": before,
                    "signalled": _share(
                        [any(f or s for f, s in look) for look in zip(*looks, strict=True)]
                    ),
                    "otava": _otava(series, before),
                }
            )
    return rows


def kinds() -> list[Row]:
    """What is called what: the share of histories of 100 runs whose every change is of its kind."""
    rows: list[Row] = []
    time = np.arange(100)
    shapes = {
        ChangeKind.STEP: np.where(time >= 60, np.log(1.3), 0.0),
        ChangeKind.RAMP: np.clip((time - 30) / 40, 0, 1) * np.log(1.5),
        ChangeKind.SPREAD: None,
    }
    for kind, shape in shapes.items():
        random = random_of("kind", kind)
        series = []
        for _ in range(HISTORIES):
            logs = normal(random, 100, 0.0)
            logs = logs * np.where(time >= 50, 3.0, 1.0) if shape is None else logs + shape
            series.append(1000 * np.exp(logs))
        seen = [{name for _, name in found} for found, _ in _all_seen(series)]
        rows.append(
            {
                "kind": kind.value,
                "named": _share([names == {kind.value} for names in seen]),
                "missed": _share([not names for names in seen]),
            }
        )
    return rows


def trend_tables() -> Iterator[tuple[str, list[Row]]]:
    """All of them, printed as they come."""
    for make in (false_changes, found_changes, signs, kinds):
        rows = make()
        for row in rows:
            print(
                f"{make.__name__}: "
                + ", ".join(
                    f"{name} {100 * value:.1f} %"
                    if isinstance(value, float) and name != "autocorrelation"
                    else f"{name} {value}"
                    for name, value in row.items()
                )
            )
        yield make.__name__, rows


def trend_checks(tables: dict[str, list[Row]]) -> list[Check]:
    """What histories must reach."""

    def figures(table: str, name: str, **where: object) -> list[float]:
        rows = (row for row in tables[table] if all(row[key] == it for key, it in where.items()))
        return [float(str(row[name])) for row in rows]

    up_to_half = [
        figure
        for again in (0.0, 0.3, 0.5)
        for figure in figures("false_changes", "false", autocorrelation=again)
    ]
    any_sign = figures("false_changes", "false_sign")
    return [
        Check("false changes, autocorrelation to 0.5", max(up_to_half), "", 0.05, "max"),
        Check("false signs at a look", max(any_sign), "", 0.03, "max"),
        Check("10 % step among 10 % outliers found in 100 runs, mean of three places",
              float(np.mean(figures("found_changes", "found", noise="outliers"))), "", 0.75,
              "min"),
        Check("20 % step signalled within 3 runs",
              min(figures("signs", "signalled", spread="5 %")), "", 0.9, "min"),
    ]  # fmt: skip
