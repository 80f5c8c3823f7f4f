"""Which pages a reaper inside QEMU should compute its ratio from: a round's own, as in the source,
or all since the round before.

Simulated rings (vmtune/testing/reaper_simulation.py), the traces of reaper_sim but the one that no
policy can help, with a migration that empties the rings never, every 3 s, 1 s, 300 ms and 100 ms.
What a round finds is less than what the guest wrote wherever a full ring or the migration has
emptied the rings before it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from tests.data.dirty_rates.catalogue import HOPELESS, scenarios
from tests.perf.report import Check, environment, finish
from tests.perf.rings.reaper_sim import RANDOM_TRACES, SEED, drawn
from vmtune.engine.reaper.aimd import LEAST_MS, Aimd
from vmtune.engine.reaper.levels import FASTEST, Levels
from vmtune.engine.reaper.settings import Pace
from vmtune.testing.dirty_rate_traces import Trace
from vmtune.testing.reaper_simulation import Costs, Counted, simulate

SYNCHRONISED_MS = (0, 3000, 1000, 300, 100)
POLICIES: dict[str, Pace] = {"levels": Levels(FASTEST), "aimd": Aimd(LEAST_MS)}
INSIDE = Costs(round_ms=0.0)
"""A round inside QEMU takes no commands."""


@dataclass(frozen=True)
class Row:
    """One policy on all traces of a kind."""

    traces: str
    policy: str
    synchronised_ms: int
    counted: Counted
    ring_full: int
    rounds: int
    stalls_ms: float


def rows(which: str, scenes: Iterable[tuple[Trace, int]]) -> list[Row]:
    """Each policy with each way to count, by how often the migration empties the rings."""
    known = list(scenes)
    found = []
    for every_ms in SYNCHRONISED_MS:
        for policy, pace in POLICIES.items():
            for counted in Counted:
                ran = [simulate(t, pace, n, INSIDE, counted, every_ms) for t, n in known]
                found.append(
                    Row(which, policy, every_ms, counted, sum(r.ring_full for r in ran),
                        sum(r.rounds for r in ran), sum(r.stalls_ms for r in ran))
                )  # fmt: skip
    return found


def full(found: Iterable[Row], policy: str, counted: Counted) -> int:
    """Ring-full events of all traces."""
    return sum(r.ring_full for r in found if (r.policy, r.counted) == (policy, counted))


def main() -> None:
    """Simulate and report."""
    where = environment()
    chance = random.Random(SEED)
    found = rows("catalogue", (s for s in scenarios() if s[0].name != HOPELESS))
    found += rows("at random", [drawn(chance) for _ in range(RANDOM_TRACES)])
    print(f"{'traces':12}{'policy':8}{'emptied by the migration':>26}  "
          f"{'counted':28}{'full':>6}{'rounds':>8}{'stall ms':>10}")  # fmt: skip
    for row in found:
        every = f"every {row.synchronised_ms} ms" if row.synchronised_ms else "never"
        print(f"{row.traces:12}{row.policy:8}{every:>26}  {row.counted:28}"
              f"{row.ring_full:>6}{row.rounds:>8}{row.stalls_ms:>10.0f}")  # fmt: skip
    checks = [
        Check(f"{policy}: ring-full events, all pages counted", full(found, policy, Counted.ALL),
              "events", full(found, policy, Counted.OWN), "max")
        for policy in POLICIES
    ]  # fmt: skip
    finish("reaper_counted", checks, {"rows": [asdict(row) for row in found]}, where)


if __name__ == "__main__":
    main()
