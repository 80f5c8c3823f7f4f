"""What the statistics promise, as a table of 2,000 simulated experiments a cell.

Cells are sizes x shapes x designs. Of each: how often equal arms are called different without a
margin and with one of 5 %, how often arms at the margin's border are told wrong, how often
"equivalent" is said just beyond it, how often the interval holds the truth; and what is spared by
doing it in blocks. Then the traps of :mod:`tests.perf.verdicts.stats_traps`: what does not fit the
model. The tests hold the promises; this prints them. ``SEED=`` draws others, ``REPEATS=`` sets how
many experiments a cell of the traps has. Last come histories
(:mod:`tests.perf.verdicts.stats_trends`), side by side with Apache Otava.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np

from tests.perf.report import Check, environment, finish
from tests.perf.verdicts.stats_traps import tables
from tests.perf.verdicts.stats_trends import trend_checks, trend_tables
from tests.support.benchmarks.stats_simulation import (
    CONFIDENCE,
    EXPERIMENTS,
    SEED,
    SHAPES,
    SIZES,
    batch,
    covered,
    drifting,
    false_verdicts,
    limited,
)
from vmtune.stats.changes import changes
from vmtune.stats.compare import Contrast, compare, compare_many
from vmtune.stats.model import Criterion, Observation, Sample, Verdict
from vmtune.stats.modes import multimodal
from vmtune.stats.noise import calibrate
from vmtune.stats.shift import Spans, shift

MAX_FALSE = 0.06
LEAST_COVERED = 0.93
MARGIN = 0.05
BORDER = 1.05
BEYOND = 1.0501
TIME = Criterion("total_time_ms")
Row = dict[str, object]


def percent(value: float) -> str:
    """``4.3 %``."""
    return f"{100 * value:5.1f} %"


def cells() -> list[Row]:
    """The table of the promises."""
    print(
        f"{'shape':10}{'n':>4} {'design':9} |  false, no margin  false, 5 %"
        "  false at border  'equivalent' beyond  covered"
    )
    rows = []
    for shape in SHAPES:
        for size in SIZES:
            for paired in (True, False):
                equal = batch(shape, size, paired=paired).shift()
                border = batch(shape, size, paired=paired, ratio=BORDER).shift()
                beyond = batch(shape, size, paired=paired, ratio=BEYOND).shift()
                row: Row = {
                    "shape": shape,
                    "size": size,
                    "design": "paired" if paired else "unpaired",
                    "false": false_verdicts(equal, 1.0, 0.0),
                    "false_with_margin": false_verdicts(equal, 1.0, MARGIN),
                    "false_at_border": false_verdicts(border, BORDER, MARGIN),
                    "false_equivalent": false_verdicts(beyond, BEYOND, MARGIN),
                    "covered": min(covered(equal, 1.0), covered(border, BORDER)),
                }
                rows.append(row)
                figures = [percent(float(str(value))) for value in list(row.values())[3:]]
                print(
                    f"{shape:10}{size:4} {row['design']:9} | {figures[0]:>17}{figures[1]:>13}"
                    f"{figures[2]:>17}{figures[3]:>21}{figures[4]:>9}"
                )
    return rows


def drift() -> list[Row]:
    """Equal arms on a drifting host, in randomised blocks and one after the other."""
    rows: list[Row] = []
    for size in SIZES:
        for way in (0.15, 0.5):
            false = {
                name: false_verdicts(drifting(size, blocks=blocks, drift=way).shift(), 1.0, 0.0)
                for name, blocks in (("in_blocks", True), ("one_after_the_other", False))
            }
            rows.append({"size": size, "drift": way, **false})
            print(
                f"host drifts by {way:.0%}, n = {size}: false in blocks"
                f" {percent(false['in_blocks'])}, all of A and then all of B"
                f" {percent(false['one_after_the_other'])}"
            )
    return rows


def censored() -> list[Row]:
    """Equal arms of which some runs do not converge, through whole comparisons."""
    rows: list[Row] = []
    criterion = Criterion("total_time_ms", margin=0.0)
    for size in SIZES:
        for paired in (True, False):
            for share in (0.15, 0.3, 0.5, 0.8):
                experiments = batch("lognormal", size, paired=paired)
                limit = float(np.quantile(experiments.a, share))
                found = [
                    compare(*limited(experiments, limit, number), criterion)
                    for number in range(EXPERIMENTS)
                ]
                wrong = rate([c.verdict in (Verdict.BETTER, Verdict.WORSE) for c in found])
                rows.append({"size": size, "paired": paired, "converged": share, "false": wrong})
                print(
                    f"{share:.0%} converge, n = {size}, {'paired' if paired else 'unpaired'}:"
                    f" false {percent(wrong)}"
                )
    return rows


def modes() -> list[Row]:
    """How often one mode is taken for more, and two clear ones are found."""
    rows: list[Row] = []
    for size in SIZES:
        random = np.random.default_rng([SEED, size])
        flagged = {
            shape: rate([multimodal(row) for row in SHAPES[shape](random, (EXPERIMENTS, size))])
            for shape in SHAPES
        }
        rows.append({"size": size, **flagged})
        shown = ", ".join(f"{shape} {percent(share)}" for shape, share in flagged.items())
        print(f"more than one mode, n = {size}: {shown}")
    return rows


def histories() -> list[Row]:
    """How often a history without a change shows one."""
    rows: list[Row] = []
    for length in (20, 50, 100, 300):
        for shape in ("lognormal", "outliers", "rounds"):
            random = np.random.default_rng([SEED, length, *shape.encode()])
            values = SHAPES[shape](random, (EXPERIMENTS, length))
            wrong = rate([changes([Observation(float(v)) for v in row], TIME) for row in values])
            rows.append({"length": length, "shape": shape, "false": wrong})
            print(f"history of {length}, {shape}: a change where there is none {percent(wrong)}")
    return rows


def floors() -> list[Row]:
    """How often identical arms show more than a calibrated noise floor."""
    rows: list[Row] = []
    for size in SIZES:
        for paired in (True, False):
            random = np.random.default_rng([SEED, size, paired])
            known = []
            for _ in range(200):
                a, b = np.exp(0.1 * random.normal(size=(2, size))).tolist()
                arms = (Sample.of("a", a, blocks=paired), Sample.of("b", b, blocks=paired))
                known.append(np.log(calibrate(*arms, TIME, "here").effect))
            x, y = 0.1 * random.normal(size=(2, EXPERIMENTS, size))
            later = shift(Spans.known(x), Spans.known(y), paired=paired, confidence=CONFIDENCE)
            above = float((np.abs(later.estimate)[:, None] > np.array(known)).mean())
            rows.append({"size": size, "paired": paired, "above": above})
            print(
                f"noise floor from n = {size}, {'paired' if paired else 'unpaired'}:"
                f" identical arms above it {percent(above)}"
            )
    return rows


def speed_ms() -> float:
    """How long two arms of 50 runs over 20 metrics take; the first time does not count."""
    random = np.random.default_rng(1)
    values = np.round(random.lognormal(7, 0.2, (20, 2, 50)))
    many = [
        Contrast(
            Sample.of("a", a.tolist(), blocks=True),
            Sample.of("b", b.tolist(), blocks=True),
            Criterion(f"m{number}", primary=number == 0),
        )
        for number, (a, b) in enumerate(values)
    ]
    taken = []
    for _ in range(8):
        began = time.perf_counter()
        compare_many(many)
        taken.append((time.perf_counter() - began) * 1000)
    return float(np.median(taken[1:]))


def rate(flags: Sequence[object]) -> float:
    """The share of what is true."""
    return sum(bool(flag) for flag in flags) / len(flags)


def worst(rows: Sequence[Row], name: str) -> float:
    """The largest figure of a column."""
    return max(float(str(row[name])) for row in rows)


def least(rows: Sequence[Row], name: str) -> float:
    """The smallest figure of a column."""
    return min(float(str(row[name])) for row in rows)


def trap_checks(traps: Mapping[str, Sequence[Row]]) -> list[Check]:
    """What must hold where reality does not fit the model."""
    at_three_ms = [
        row for row in traps["resolution"] if row["size"] == 20 and row["spread"] == 0.15
    ]
    named = {
        "failing": "false verdicts where runs fail",
        "unblocked": "false verdicts without blocks",
        "unequal": "false verdicts of unequal arms",
        "shapes": "false verdicts of arms of other shape",
        "peeking": "false verdicts of campaigns that are looked at",
        "resolution": "false verdicts of whole milliseconds",
        "multiplicity": "'beyond the margin' among 20 metrics at its edge",
        "order": "false verdicts of four conditions on a wandering host",
    }
    return [
        *(Check(title, worst(traps[name], "false"), "", MAX_FALSE, "max")
          for name, title in named.items()),
        *(Check(f"interval coverage, {name}", least(traps[name], "covered"), "", LEAST_COVERED,
                "min")
          for name in ("unequal", "resolution", "order")),
        Check("verdicts shown before the end", worst(traps["peeking"], "shown_before_the_end"), "",
              0.0, "max"),
        Check("power for +50 % of 3 ms, 20 blocks or runs", least(at_three_ms, "power"), "", 0.9,
              "min"),
    ]  # fmt: skip


def main() -> None:
    """Simulate and report."""
    where = environment()
    table, host, limits = cells(), drift(), censored()
    aside = {"modes": modes(), "histories": histories(), "floors": floors()}
    traps = dict(tables())
    trends = dict(trend_tables())
    took = speed_ms()
    checks = [
        Check("false verdicts on equal arms", worst(table, "false"), "", MAX_FALSE, "max"),
        Check("false at the border", worst(table, "false_at_border"), "", MAX_FALSE, "max"),
        Check("false equivalent", worst(table, "false_equivalent"), "", MAX_FALSE, "max"),
        Check(
            "interval coverage",
            min(float(str(row["covered"])) for row in table),
            "",
            LEAST_COVERED,
            "min",
        ),
        Check("false in blocks under drift", worst(host, "in_blocks"), "", MAX_FALSE, "max"),
        Check("false with censored runs", worst(limits, "false"), "", MAX_FALSE, "max"),
        Check("changes where there are none", worst(aside["histories"], "false"), "", 0.05, "max"),
        *trap_checks(traps),
        *trend_checks(trends),
        Check("50 x 2 runs, 20 metrics", took, "ms", 100, "max"),
    ]
    finish(
        "stats_sim",
        checks,
        {"cells": table, "drift": host, "censored": limits, **aside, **traps, **trends},
        where,
    )


if __name__ == "__main__":
    main()
