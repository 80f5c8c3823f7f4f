"""Histories of which the truth is known: false changes, and changes that are found, side by side
with Apache Otava on the same series. Tables for ``stats_sim``; those of early signs are in
:mod:`tests.perf.verdicts.stats_signs`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.perf.report import Check
from tests.perf.verdicts.stats_histories import (
    CONFIRMED_WITHIN,
    HISTORIES,
    Row,
    all_seen,
    random_of,
    share,
)
from tests.perf.verdicts.stats_histories import otava as otava_share
from tests.perf.verdicts.stats_signs import attainable, false_signs, signs, worst_sign
from tests.support.benchmarks.histories import NOISES, history, normal, with_outliers
from vmtune.stats.changes import ChangeKind
from vmtune.stats.early import FALSE_AT_MOST, Strength


def false_changes() -> list[Row]:
    """Nothing changed."""
    rows: list[Row] = []
    for runs in (30, 100):
        for name, noise in NOISES.items():
            for again in (0.0, 0.3, 0.5, 0.7):
                random = random_of("false", runs, name, again)
                series = [history(random, noise, runs, again=again) for _ in range(HISTORIES)]
                seen = all_seen(series)
                rows.append(
                    {
                        "runs": runs,
                        "noise": name,
                        "autocorrelation": again,
                        "false": share([look.changes for look in seen]),
                        "otava": otava_share(series),
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
            seen = all_seen(series)
            rows.append(
                {
                    "noise": name,
                    "at": at,
                    "found": share([look.changes for look in seen]),
                    "found_near": share(
                        [
                            [p for p, _ in look.changes if abs(p - at) <= CONFIRMED_WITHIN]
                            for look in seen
                        ]
                    ),
                    "otava": otava_share(series),
                    "otava_near": otava_share(series, at),
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
        seen = [{name for _, name in look.changes} for look in all_seen(series)]
        rows.append(
            {
                "kind": kind.value,
                "named": share([names == {kind.value} for names in seen]),
                "missed": share([not names for names in seen]),
            }
        )
    return rows


_NO_SHARES = ("autocorrelation", "any_begin_per_100_runs", "clear_begin_per_100_runs")


def trend_tables() -> Iterator[tuple[str, list[Row]]]:
    """All of them, printed as they come."""
    for make in (false_changes, found_changes, signs, false_signs, attainable, kinds):
        rows = make()
        for row in rows:
            print(
                f"{make.__name__}: "
                + ", ".join(
                    f"{name} {100 * value:.1f} %"
                    if isinstance(value, float) and name not in _NO_SHARES
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
    return [
        Check("false changes, autocorrelation to 0.5", max(up_to_half), "", 0.05, "max"),
        Check("false signs at a look", worst_sign(tables["false_signs"], "any"), "",
              FALSE_AT_MOST[Strength.FAINT], "max"),
        Check("false clear signs at a look", worst_sign(tables["false_signs"], "clear"), "",
              FALSE_AT_MOST[Strength.CLEAR], "max"),
        Check("10 % step among 10 % outliers found in 100 runs, mean of three places",
              float(np.mean(figures("found_changes", "found", noise="outliers"))), "", 0.75,
              "min"),
        *(Check(f"20 % step signalled within 3 runs, spread {spread}",
                min(figures("signs", "signalled", spread=spread)), "", 0.9, "min")
          for spread in ("5 %", "10 %")),
        Check("20 % step signalled clearly within 3 runs, spread 5 %",
              min(figures("signs", "signalled_clearly", spread="5 %")), "", 0.9, "min"),
    ]  # fmt: skip
