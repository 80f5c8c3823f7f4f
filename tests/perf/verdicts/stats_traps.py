"""Experiments that do not fit the model, through whole comparisons: what reality does to verdicts.

Each function is a table for ``stats_sim``: of each cell, how often the verdict is false. Runs that
fail, arms that ran one after the other, arms of different shape, looks at a campaign that goes on,
whole milliseconds of a few, many metrics at the margin's edge, a host that wanders.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np

from vmtune.bench.model.metrics.metric import LEAST
from vmtune.stats.compare import Contrast, compare, compare_many
from vmtune.stats.judging import veil
from vmtune.stats.model import Comparison, Criterion, Direction, Observation, Sample, Verdict
from vmtune.stats.ranks import Floats
from vmtune.stats.schedule import schedule
from vmtune.units import Unit

SEED = int(os.environ.get("SEED", "0"))
REPEATS = int(os.environ.get("REPEATS", "1000"))
"""Experiments of a cell."""
TIME = Criterion("total_time_ms", unit="ms", primary=True)
SUCCESS = Criterion("converged", Direction.HIGHER, share=True, success=True)
CLAIMS = (Verdict.BETTER, Verdict.WORSE)
Row = dict[str, object]


def random_of(*cell: object) -> np.random.Generator:
    """Each cell's own."""
    return np.random.default_rng([SEED, *repr(cell).encode()])


def sample(
    name: str,
    values: Sequence[float],
    *,
    blocks: bool = True,
    at: Sequence[float] | None = None,
    fails: Sequence[bool] | None = None,
) -> Sample:
    """One arm; runs that fail have no value."""
    lost = fails if fails is not None else [False] * len(values)
    return Sample(
        name,
        tuple(
            Observation(
                None if lost[n] else float(value),
                block=n if blocks else None,
                failed=bool(lost[n]),
                at_s=None if at is None else float(at[n]),
            )
            for n, value in enumerate(values)
        ),
    )


def share(flags: Sequence[object]) -> float:
    """The share of what is true."""
    return sum(bool(flag) for flag in flags) / len(flags)


def failing() -> list[Row]:
    """Equal times, of which some fail: B's alone ("better" is false), or both arms' slowest."""
    rows: list[Row] = []
    for size, what in (
        (10, "all of B"),
        (10, "2 of B"),
        (40, "8 of B"),
        (10, "slowest 20 % of B"),
        (20, "slowest 20 % of B"),
        (10, "slowest 20 % of both"),
        (20, "slowest 20 % of both"),
    ):
        random = random_of("failing", size, what)
        wrong = []
        for _ in range(REPEATS):
            a, b = 1000 * np.exp(0.15 * random.normal(size=(2, size)))
            fails_a, fails_b = np.zeros(size, bool), np.zeros(size, bool)
            if what == "all of B":
                fails_b[:] = True
            elif what.endswith("of B") and what[0].isdigit():
                fails_b[: int(what[0])] = True
            else:
                limit = 1000 * np.exp(0.15 * 0.8416)
                fails_b = b > limit
                fails_a = a > limit if what.endswith("both") else fails_a
            found = compare(
                sample("a", a.tolist(), fails=fails_a.tolist()),
                sample("b", b.tolist(), fails=fails_b.tolist()),
                TIME,
            )
            both = what.endswith("both")
            wrong.append(found.verdict in CLAIMS if both else found.verdict is Verdict.BETTER)
        rows.append({"size": size, "fails": what, "false": share(wrong)})
    return rows


def _unblocked_order(random: np.random.Generator, size: int, order: str) -> np.ndarray:
    """Which runs are B's."""
    if order == "A then B":
        return np.arange(2 * size) >= size
    return random.permutation(np.arange(2 * size) % 2 == 1)


def _wander(random: np.random.Generator, runs: int, what: str, is_b: np.ndarray) -> Floats:
    """What the machine does meanwhile, as a logarithm."""
    if what == "drift 20 %":
        return np.log(1.2) * np.linspace(0, 1, runs)
    if what == "session 5 %":
        return 0.05 * random.normal() * is_b
    if what == "sessions of 4 runs, 5 %":
        return np.repeat(0.05 * random.normal(size=runs // 4 + 1), 4)[:runs]
    drawn = 0.1 * random.normal(size=runs)
    for n in range(1, runs):  # stationary, with a standard deviation of 10 %
        drawn[n] = 0.7 * drawn[n - 1] + np.sqrt(1 - 0.49) * drawn[n]
    return drawn


def unblocked() -> list[Row]:
    """Equal arms without blocks, one after the other and in random order; by the order of time."""
    rows: list[Row] = []
    for order in ("A then B", "random"):
        for what in ("drift 20 %", "session 5 %", "sessions of 4 runs, 5 %", "AR(1) 0.7"):
            if order == "random" and what == "session 5 %":
                continue  # in one session there is none
            for size in (6, 10, 20):
                random = random_of("unblocked", order, what, size)
                verdicts = []
                for _ in range(REPEATS):
                    is_b = _unblocked_order(random, size, order)
                    noise = 0.0 if what == "AR(1) 0.7" else 0.05 * random.normal(size=2 * size)
                    times = 1000 * np.exp(noise + _wander(random, 2 * size, what, is_b))
                    at = 60 * np.arange(2 * size)
                    if what == "sessions of 4 runs, 5 %":
                        at += 86_400 * (np.arange(2 * size) // 4)
                    a, b = (
                        sample(name, times[of].tolist(), blocks=False, at=at[of].tolist())
                        for name, of in (("a", ~is_b), ("b", is_b))
                    )
                    found = compare(a, b, Criterion("m", margin=0.0), in_time=True)
                    verdicts.append(found.verdict)
                rows.append(
                    {
                        "order": order,
                        "machine": what,
                        "size": size,
                        "false": share([v in CLAIMS for v in verdicts]),
                        "confounded": share([v is Verdict.CONFOUNDED for v in verdicts]),
                    }
                )
    return rows


def _bimodal(random: np.random.Generator, size: int) -> Floats:
    """Two modes of which the first is the more frequent one; the median is 1."""
    slow = random.random(size) < 0.4
    values: Floats = np.where(slow, 1.5, 1.0) * np.exp(0.02 * random.normal(size=size))
    middle = np.exp(0.02 * 0.967)  # of the first mode's 5/6 quantile: the whole's median
    return values / middle


def _skewed(random: np.random.Generator, size: int) -> Floats:
    """From 1 upwards, with a long tail; the median is 1."""
    return np.asarray(np.exp(0.3 * (random.exponential(size=size) - np.log(2))))


def shapes() -> list[Row]:
    """Arms of equal median and different shape, in blocks and in random order."""
    rows: list[Row] = []
    drawn = {"steady, bimodal": _bimodal, "deterministic, skewed": _skewed}
    for name, draw in drawn.items():
        for paired in (True, False):
            for size in (8, 10, 20):
                random = random_of("shapes", name, paired, size)
                wrong, noted = [], []
                for _ in range(REPEATS):
                    a = np.exp((0.02 if "steady" in name else 0.0001) * random.normal(size=size))
                    found = compare(
                        sample("a", (1000 * a).tolist(), blocks=paired),
                        sample("b", (1000 * draw(random, size)).tolist(), blocks=paired),
                        TIME,
                    )
                    wrong.append(found.verdict in CLAIMS)
                    noted.append(any("differ in shape" in note for note in found.notes))
                rows.append(
                    {
                        "shapes": name,
                        "paired": paired,
                        "size": size,
                        "false": share(wrong),
                        "noted": share(noted),
                    }
                )
    return rows


def unequal() -> list[Row]:
    """Arms of equal median without blocks, of other spread and size; without a margin."""
    rows: list[Row] = []
    for n, m in ((6, 6), (10, 10), (20, 20), (6, 20), (20, 6), (10, 40)):
        for spread in (1.0, 4.0, 0.25):
            random = random_of("unequal", n, m, spread)
            found = [
                compare(
                    sample("a", np.exp(0.05 * random.normal(size=n)).tolist(), blocks=False),
                    sample(
                        "b", np.exp(0.05 * spread * random.normal(size=m)).tolist(), blocks=False
                    ),
                    Criterion("m", margin=0.0),
                )
                for _ in range(REPEATS)
            ]
            rows.append(
                {
                    "a": n,
                    "b": m,
                    "spread": spread,
                    "false": share([c.verdict in CLAIMS for c in found]),
                    "covered": share([_holds(c, 1.0) for c in found]),
                }
            )
    return rows


def _holds(found: Comparison, truth: float) -> bool:
    effect = found.effect
    assert effect is not None
    low = -np.inf if effect.low is None else effect.low
    high = np.inf if effect.high is None else effect.high
    return bool(low <= truth <= high)


def peeking() -> list[Row]:
    """A look after each of 6 to 30 blocks, of arms at the margin's edge: what is let out."""
    rows: list[Row] = []
    for margin in (0.05, 0.01):
        random = random_of("peeking", margin)
        criterion = Criterion("m", margin=margin, primary=True)
        before, at_end, without = [], [], []
        for _ in range(max(1, REPEATS // 5)):
            block = 0.1 * random.normal(size=30)
            a, b = np.exp(0.1 * random.normal(size=(2, 30)) + block)
            b *= 1 + margin
            shown, seen = [], []
            for size in range(6, 31):
                found = compare(
                    sample("a", a[:size].tolist()), sample("b", b[:size].tolist()), criterion
                )
                seen.append(found.verdict)
                shown.append(veil(found, "it goes on") if size < 30 else found)
            before.append(any(c.verdict or c.effect or c.test for c in shown[:-1]))
            at_end.append(shown[-1].verdict in CLAIMS)
            without.append(any(verdict in CLAIMS for verdict in seen))
        rows.append(
            {
                "margin": margin,
                "shown_before_the_end": share(before),
                "false": share(at_end),
                "false_if_shown": share(without),
            }
        )
    return rows


def resolution() -> list[Row]:
    """Whole milliseconds of a median of 3 ms: power for +50 %, and how often the truth is held."""
    rows: list[Row] = []
    for spread in (0.05, 0.15, 0.3):
        for paired in (True, False):
            for size in (10, 20):
                random = random_of("resolution", spread, paired, size)
                found: dict[float, list[Comparison]] = {1.0: [], 1.5: []}
                criterion = Criterion(
                    "downtime_ms", resolution=1.0, least_difference=LEAST[Unit.MS]
                )
                for _ in range(REPEATS):
                    middle = random.uniform(2.5, 3.5)
                    for factor, those in found.items():
                        a, b = middle * np.exp(spread * random.normal(size=(2, size)))
                        those.append(
                            compare(
                                sample("a", np.rint(a).tolist(), blocks=paired),
                                sample("b", np.rint(b * factor).tolist(), blocks=paired),
                                criterion,
                            )
                        )
                rows.append(
                    {
                        "spread": spread,
                        "paired": paired,
                        "size": size,
                        "power": share([c.verdict is Verdict.WORSE for c in found[1.5]]),
                        "false": share([c.verdict in CLAIMS for c in found[1.0]]),
                        "covered": min(
                            share([_holds(c, factor) for c in those])
                            for factor, those in found.items()
                        ),
                    }
                )
    return rows


def multiplicity() -> list[Row]:
    """Twenty secondary metrics at the edge of the margin: is any "beyond" it?"""
    rows: list[Row] = []
    for paired in (True, False):
        for size in (10, 20):
            random = random_of("multiplicity", paired, size)
            wrong = []
            for _ in range(max(1, REPEATS // 2)):
                many = [Contrast(*_at_edge(random, size, paired=paired), TIME)]
                for number in range(20):
                    arms = _at_edge(random, size, paired=paired)
                    many.append(Contrast(*arms, Criterion(f"m{number}")))
                wrong.append(any(c.verdict in CLAIMS for c in compare_many(many)[1:]))
            rows.append({"paired": paired, "size": size, "false": share(wrong)})
    return rows


def _at_edge(random: np.random.Generator, size: int, *, paired: bool) -> tuple[Sample, Sample]:
    a, b = 1000 * np.exp(0.1 * random.normal(size=(2, size)))
    return (
        sample("a", a.tolist(), blocks=paired),
        sample("b", (1.05 * b).tolist(), blocks=paired),
    )


def order() -> list[Row]:
    """Four conditions in each block on a host that wanders: arms of one condition side by side."""
    rows: list[Row] = []
    for size in (6, 10, 20):
        random = random_of("order", size)
        conditions = ("w", "x", "y", "z")
        found = []
        for number in range(max(1, REPEATS // 2)):
            slots = schedule(["a", "b"], size, seed=number, warm_ups=0, conditions=conditions)
            wander = np.cumsum(0.05 * random.normal(size=len(slots)))
            times = 1000 * np.exp(wander + 0.02 * random.normal(size=len(slots)))
            of = [
                [t for slot, t in zip(slots, times, strict=True)
                 if (slot.condition, slot.arm) == ("w", arm)]
                for arm in ("a", "b")
            ]  # fmt: skip
            found.append(compare(sample("a", of[0]), sample("b", of[1]), TIME))
        widths = [
            np.log(c.effect.high / c.effect.low)
            for c in found
            if c.effect and c.effect.low and c.effect.high
        ]
        rows.append(
            {
                "size": size,
                "false": share([c.verdict in CLAIMS for c in found]),
                "covered": share([_holds(c, 1.0) for c in found]),
                "width": float(np.median(widths)),
            }
        )
    return rows


def tables() -> Iterator[tuple[str, list[Row]]]:
    """All of them, printed as they come."""
    for make in (failing, unblocked, unequal, shapes, peeking, resolution, multiplicity, order):
        rows = make()
        for row in rows:
            print(
                f"{make.__name__}: "
                + ", ".join(
                    f"{name} {100 * value:.1f} %" if isinstance(value, float) else f"{name} {value}"
                    for name, value in row.items()
                )
            )
        yield make.__name__, rows
