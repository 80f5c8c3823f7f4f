"""Rounds of the reaper as a real migration of a busy guest gives them."""

from __future__ import annotations

import random

from vmtune.model.migration.controller_record import ReaperEnd, ReaperReport, ReaperRound


def make_rounds(number: int, seed: int = 1, vcpus: int = 2) -> list[ReaperRound]:
    """*number* rounds, the first three before the migration; always the same for one *seed*."""
    chance = random.Random(seed)
    rounds: list[ReaperRound] = []
    at_ms = -400
    for _ in range(number):
        interval_ms = chance.randint(50, 400)
        cost_ms = chance.randint(10, 600) / 10
        at_ms += interval_ms + int(cost_ms)
        fills = tuple(chance.randint(0, 700) / 1000 for _ in range(vcpus))
        rounds.append(ReaperRound(at_ms, interval_ms, interval_ms + cost_ms, cost_ms, fills))
    return rounds


REPORT = ReaperReport(
    policy="predict",
    ring_entries=65536,
    end=ReaperEnd.MIGRATION_ENDED,
    filled_rounds=1,
    round_count=400,
    rounds_before=2,
    skipped_rounds=3,
    interruptions=1,
    fullest=0.61,
    shortest_interval_ms=50,
    longest_interval_ms=400,
    waits_ms=90_000,
    costs_ms=12_000.5,
)
