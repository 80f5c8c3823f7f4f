"""Tries a fault many times, each at a random moment of a fresh migration."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.fault.checks import Try, settings_of, wrong
from tests.fault.faults import Fault
from tests.fault.ground import Ground
from tests.support.live import wait_for
from vmtune.client.errors import ClientError, Refused
from vmtune.client.http import Document
from vmtune.domain.workload import Workload

PROFILE = "put-back"
VALUES = {
    "max_bandwidth_bytes_per_s": "24MiB/s",
    "downtime_limit_ms": 450,
    "multifd": True,
    "multifd_channels": 3,
}
WORKLOAD = Workload(region_bytes=64 << 20, idle_ms=60_000)
"""One pass over 64 MiB, then rest: at 24 MiB/s some three seconds, so that every phase is hit."""
_LONGEST_MOMENT_S = 3.5
_SETTLES_WITHIN_S = 120
_ASKED_WITHIN_S = 30


@dataclass
class Tried:
    """What came of all tries of a fault.

    :param outcomes: how often a migration ended how.
    :param wrong: what did not hold, by try.
    """

    fault: Fault
    seed: int
    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: dict[int, list[str]] = field(default_factory=dict)

    @property
    def tries(self) -> int:
        """How many there were."""
        return sum(self.outcomes.values())


def try_often(
    ground: Ground, fault: Fault, tries: int, seed: int, say: Callable[[str], None] = print
) -> Tried:
    """Try a fault; the moments follow from the seed.

    :param say: is told of each try.
    """
    chance = random.Random(seed)
    found = Tried(fault, seed)
    profiles = {each["name"] for each in ground.live.client.items("/profiles")}
    if PROFILE not in profiles:
        ground.live.profile(PROFILE, **VALUES)
    for number in range(1, tries + 1):
        begun = time.monotonic()
        with ground.live.vm(workload=WORKLOAD) as vm:
            tried = Try(number, vm, "", settings_of(ground, vm), dead=fault.dead)
            wait_s = chance.uniform(0, _LONGEST_MOMENT_S)
            tried.migration = ground.live.migrate(vm, "b", profile=PROFILE)["id"]
            time.sleep(wait_s)
            tried.note = fault.inject(ground, tried, chance)
            tried.record = _ended(ground, tried.migration)
            ground_state = tried.record["state"]
            broken = _twice_wrong(ground, tried)
        found.outcomes[ground_state] += 1
        if broken:
            found.wrong[number] = broken
        took = time.monotonic() - begun
        verdict = "; ".join(broken) or "nothing lost"
        say(
            f"  {number:3} at {wait_s:.2f} s {tried.note}: {ground_state} ({took:.0f} s): {verdict}"
        )
        ground.revive()
    return found


def _ended(ground: Ground, migration: str) -> Document:
    """The record once it is settled, or as it is after a long while."""
    seen: Document = {"state": "not to be had"}

    def settled() -> bool:
        nonlocal seen
        try:
            seen = ground.live.client.get(f"/migrations/{migration}")
        except ClientError:
            return False  # the service is busy starting, or its database is away
        return seen["state"] in ("completed", "failed", "cancelled")

    try:
        wait_for(settled, "the record to be settled", _SETTLES_WITHIN_S)
    except AssertionError:
        return seen
    return seen


def _twice_wrong(ground: Ground, tried: Try) -> list[str]:
    """What does not hold, and still does not a moment later: libvirt puts back what it set a
    moment after the migration's end."""
    broken: list[str] = []
    give_up = time.monotonic() + _ASKED_WITHIN_S
    while time.monotonic() < give_up:
        try:
            broken = wrong(ground, tried)
        except (ClientError, Refused) as error:
            broken = [f"the service does not say: {error}"]
        if not broken:
            return []
        time.sleep(1)
    return broken


def as_markdown(all_tried: list[Tried]) -> Iterator[str]:
    """The table."""
    yield "| fault | where | tries | outcome | nothing lost |"
    yield "|---|---|---:|---|---|"
    for tried in all_tried:
        outcome = ", ".join(f"{count} {state}" for state, count in tried.outcomes.most_common())
        lost = "yes" if not tried.wrong else f"NO, in {len(tried.wrong)}"
        fault = tried.fault
        yield f"| {fault.name} | {fault.kind.value} | {tried.tries} | {outcome} | {lost} |"
