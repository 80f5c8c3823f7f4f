"""The workloads of the benchmark of intents, and what is asked for them, drawn from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

from vmtune.model.workload import Workload

MIB = 1 << 20
KINDS = ("steady", "fast", "skewed", "bursts", "slow", "wide")
SLOWDOWNS_PERCENT = (70, 80, 90, 95)
BEAT_MS = 5


@dataclass(frozen=True, slots=True)
class Drawn:
    """A workload with its link and its intents."""

    kind: str
    workload: Workload
    link_mib_per_s: int
    intent: dict[str, Any]  # JSON
    infeasible: dict[str, Any]

    @property
    def first_pass_s(self) -> float:
        """How long the guest needs to write to all of its region. Before that there is less to
        send, and the arm for which the guest is measured first would have the most."""
        work = self.workload
        return work.region_bytes / (work.dirty_mb_per_s * 1e6) + work.idle_ms / 1000


def drawn(seed: str, number: int) -> Drawn:
    """Workload *number* of *seed*."""
    chance = random.Random(f"{seed}/{number}")
    kind = KINDS[number % len(KINDS)]
    link = chance.choice((24, 32, 48))
    region = round({"wide": 4.0}.get(kind, 2.6) * link * chance.uniform(0.8, 1.2))
    share = {"slow": 0.3, "steady": 1.2, "fast": 4.0, "wide": 0.9}.get(kind, 1.5)
    rate = max(1, round(link * share * chance.uniform(0.8, 1.2)))
    workload = Workload(
        region_bytes=region * MIB,
        dirty_mb_per_s=rate,
        idle_ms=chance.choice((200, 500)) if kind == "bursts" else 0,
        skew_percent=chance.choice((50, 80)) if kind == "skewed" else 0,
        beat_ms=BEAT_MS,
    )
    intent = {
        "max_bandwidth_bytes_per_s": link * MIB,
        "max_silence_ms": chance.choice((500, 800, 1200)),
        "deadline_s": chance.choice((20, 30, 40)),
        # Auto-converge exceeds it in time. A guest that writes 4 times as fast needs more.
        "max_slowdown_percent": 95 if kind == "fast" else chance.choice(SLOWDOWNS_PERCENT[:3]),
        "may": ["throttle"],
    }
    too_soon = {**intent, "max_silence_ms": 100, "deadline_s": max(1, region // link // 2)}
    return Drawn(kind, workload, link, intent, too_soon)


def with_slowdown(one: Drawn, percent: int) -> Drawn:
    """*one*, whose intents allow so much."""
    allowed = {"max_slowdown_percent": percent}
    return replace(one, intent=one.intent | allowed, infeasible=one.infeasible | allowed)
