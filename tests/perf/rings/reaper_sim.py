"""The reaper's policies on simulated rings: ring-full events, rounds and added stalls.

Every trace of tests/data/dirty_rates/catalogue.py, made and recorded, with QEMU's own second and
with the three policies; then traces drawn at random, on which nothing was tuned. What the model
holds and leaves out is in vmtune/testing/reaper_simulation.py: it compares policies, and predicts
no time of a real guest.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import asdict

from tests.data.dirty_rates.catalogue import HOPELESS, LARGE, MEDIUM, scenarios
from tests.perf.report import Check, environment, finish
from vmtune.engine.reaper.settings import ReaperSettings
from vmtune.model.tunables.rows.reaper import ReaperPolicy
from vmtune.testing import dirty_rate_traces as traces
from vmtune.testing.dirty_rate_traces import Trace
from vmtune.testing.reaper_simulation import Result, compare

POLICIES = {policy.value: ReaperSettings(policy) for policy in ReaperPolicy}
ARMS = ("stock", *POLICIES)
RANDOM_TRACES = 60
RANDOM_MS = 10_000
SEED = 20261121

Rows = list[tuple[str, int, dict[str, Result]]]


def drawn(chance: random.Random) -> tuple[Trace, int]:
    """A trace at random: rates that fill a ring in between 0.15 s and 100 s."""
    entries = chance.choice((MEDIUM, 16384, LARGE, LARGE))
    most = entries * chance.uniform(0.2, 6)
    rates = [most * chance.uniform(0.05, 1) for _ in range(chance.randint(1, 6))]
    shape = chance.choice(("constant", "ramp", "bursts", "bursts", "phases"))
    if shape == "constant":
        trace = traces.constant(shape, rates, RANDOM_MS)
    elif shape == "ramp":
        trace = traces.ramp(shape, rates, RANDOM_MS)
    else:
        every_ms = chance.randint(*((300, 3000) if shape == "bursts" else (4000, 8000)))
        trace = traces.bursts(
            shape,
            rates,
            RANDOM_MS,
            every_ms=every_ms,
            lasting_ms=int(every_ms * chance.uniform(0.1, 0.6)),
            out_of_phase=chance.random() < 0.5,
        )
    if chance.random() < 0.5:
        trace = traces.jitter(trace, chance.randrange(1 << 30))
    return trace, entries


def rows(scenes: Iterable[tuple[Trace, int]]) -> Rows:
    """Each trace with every arm."""
    return [(trace.name, entries, compare(trace, POLICIES, entries)) for trace, entries in scenes]


def total(table: Rows, arm: str, what: str) -> float:
    """A figure's sum over all traces."""
    return sum(float(getattr(results[arm], what)) for _, _, results in table)


def sums(table: Rows, arm: str) -> tuple[float, float, float]:
    """Ring-full events, rounds and stalls in ms, over all traces."""
    return (
        total(table, arm, "ring_full"),
        total(table, arm, "rounds"),
        total(table, arm, "stalls_ms"),
    )


def line(name: str, entries: object, cells: Iterable[tuple[float, float, float]]) -> str:
    """A row of the table."""
    return f"{name:28}{entries!s:>6}" + "".join(
        f" |{full:6.0f}{count:6.0f}{stalls:8.0f}" for full, count, stalls in cells
    )


def show(table: Rows) -> None:
    """The table, its sums, and where predict does worse than a policy of the source."""
    print(" " * 34 + "".join(f" |{arm:^20}" for arm in ARMS))
    print(f"{'trace':28}{'ring':>6}" + " |  full rounds stall ms" * len(ARMS))
    for name, entries, results in table:
        arms = [results[arm] for arm in ARMS]
        print(line(name, entries, [(a.ring_full, a.rounds, a.stalls_ms) for a in arms]))
    # One ring has nearly all events, and no policy can help it: the sum without it says more.
    helped = [row for row in table if row[0] != HOPELESS]
    print(line("all", "", [sums(table, arm) for arm in ARMS]))
    print(line("all but the one too fast", "", [sums(helped, arm) for arm in ARMS]))
    for name, entries, results in table:
        ours = results["predict"]
        worse = [
            f"{ours.ring_full} ring-full events, {arm} {results[arm].ring_full}"
            for arm in ("levels", "aimd")
            if ours.ring_full > results[arm].ring_full
        ]
        if ours.rounds > results["levels"].rounds:
            worse.append(f"{ours.rounds} rounds, levels {results['levels'].rounds}")
        if worse:
            print(f"predict does not hold on {name}, ring {entries}: {'; '.join(worse)}")


def checks(table: Rows, which: str) -> list[Check]:
    """Predict against the source's policies, in sum."""
    full = total(table, "predict", "ring_full")
    best = min(total(table, arm, "ring_full") for arm in ("levels", "aimd"))
    count, most = (total(table, arm, "rounds") for arm in ("predict", "levels"))
    return [
        Check(f"{which}: predict's ring-full events", full, "events", best, "max"),
        Check(f"{which}: predict's rounds", count, "rounds", most, "max"),
    ]


def raw(table: Rows) -> list[dict[str, object]]:
    """All figures."""
    return [
        {"trace": name, "ring_entries": entries, "arm": arm}
        | {key: value for key, value in asdict(result).items() if key != "intervals_ms"}
        for name, entries, results in table
        for arm, result in results.items()
    ]


def main() -> None:
    """Simulate and report."""
    where = environment()
    catalogue = rows(scenarios())
    show(catalogue)
    chance = random.Random(SEED)
    at_random = rows(drawn(chance) for _ in range(RANDOM_TRACES))
    print(line(f"{RANDOM_TRACES} traces at random", "", [sums(at_random, arm) for arm in ARMS]))
    results = [*checks(catalogue, "catalogue"), *checks(at_random, "at random")]
    finish("reaper_sim", results, {"catalogue": raw(catalogue), "random": raw(at_random)}, where)


if __name__ == "__main__":
    main()
