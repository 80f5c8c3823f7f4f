"""In which order a campaign's runs take place: randomised blocks.

Each block runs every arm once, in an order of its own. What drifts over the hours (heat, caches,
neighbours) then falls on all arms alike, and within a block it is as often for an arm as against
it. On a host that becomes 15 % slower in the meantime, all of A and then all of B gives 11 to 33 %
false verdicts with 6 to 20 runs, blocks give 4 % (``tests/perf/verdicts/stats_sim.py``).

The order comes from SHA-256 alone, so the same seed gives the same order with every version of
Python, on every machine, and after a restart in the middle of a campaign.

Fisher, R. A. (1926). The arrangement of field experiments. J. Ministry of Agriculture 33.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from vmtune.errors import InvalidInput

MAX_BLOCKS = 1000


@dataclass(frozen=True, slots=True)
class Slot:
    """One run to be made.

    :param number: its place in the campaign, from 1.
    :param block: from 1; None for a warm-up, whose values are discarded.
    :param condition: under which it is made; empty where there is one.
    """

    number: int
    arm: str
    block: int | None
    condition: str = ""

    @property
    def warm_up(self) -> bool:
        """Its values are discarded."""
        return self.block is None


def schedule(
    arms: Sequence[str],
    blocks: int,
    seed: int | str,
    warm_ups: int = 1,
    conditions: Sequence[str] = ("",),
) -> tuple[Slot, ...]:
    """All runs of a campaign in their order, warm-ups first.

    :param arms: their names; in which order they are given makes no difference.
    :param warm_ups: runs to be discarded; more than one take the arms in turn.
    :param conditions: a block has every arm under each of them. Their order is drawn for each
        block, and within it that of the arms under each, so that the arms that are compared run
        side by side: on a host that wanders, intervals are half as wide as if all were shuffled.
    :raise InvalidInput: no arm, two of one name, or no number of blocks.
    """
    if not arms or any(len(set(names)) < len(names) for names in (arms, conditions)):
        raise InvalidInput(
            "a campaign has arms, all of different names",
            field="arms",
            code="arms",
            remedy="name at least one, each once",
        )
    if not 1 <= blocks <= MAX_BLOCKS or not 0 <= warm_ups <= MAX_BLOCKS:
        raise InvalidInput(
            f"a campaign has 1 to {MAX_BLOCKS:,} blocks and as many warm-ups at most",
            field="blocks",
            code="out_of_range",
            remedy="6 blocks are the fewest that can give a verdict, 10 are usual",
        )
    first = _block(arms, conditions, seed, 0)
    order: list[tuple[str, str, int | None]] = [
        (*first[n % len(first)], None) for n in range(warm_ups)
    ]
    for block in range(1, blocks + 1):
        order += [(*each, block) for each in _block(arms, conditions, seed, block)]
    return tuple(
        Slot(number, arm, block, condition)
        for number, (arm, condition, block) in enumerate(order, 1)
    )


def _block(
    arms: Sequence[str], conditions: Sequence[str], seed: int | str, block: int
) -> list[tuple[str, str]]:
    """Every arm under every condition, as arm and condition."""
    if len(conditions) == 1:
        return [(arm, conditions[0]) for arm in _shuffled(arms, seed, block)]
    return [
        (arm, condition)
        for condition in _shuffled(conditions, f"{seed}/conditions", block)
        for arm in _shuffled(arms, f"{seed}/{condition}", block)
    ]


def duration_s(slots: Sequence[Slot], run_s: Mapping[str, float]) -> float:
    """About how long *slots* take, from how long a run of each arm does, in seconds.

    A run's time is from the start of its fresh VMs to their end, with warm-up and cool-down.
    """
    return sum(run_s[slot.arm] for slot in slots)


def _shuffled(arms: Sequence[str], seed: int | str, block: int) -> list[str]:
    """The arms by a hash of each: every order is equally likely, and each block's its own."""
    return sorted(arms, key=lambda arm: sha256(f"{seed}/{block}/{arm}".encode()).digest())
