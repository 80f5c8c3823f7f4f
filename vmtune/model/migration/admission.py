"""Which migrations may begin: limits per host and for all, order, fairness. Pure.

A migration takes one slot: one outgoing of its source, one incoming of its destination and
one of all, at once or not at all. So none ever waits for a slot while it keeps another, and
there is no deadlock.

The order is by priority, then by age. One that cannot begin yet does not hold up those behind
it that use other hosts; but it is overtaken, on the hosts that it needs, only by those requested at
most
:data:`OVERTAKEN_BY` migrations later. So what needs two hosts that are never free at
one moment gets its turn too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

OVERTAKEN_BY = 64
"""How many numbers later a migration may have been requested and still go first."""
MIN_PRIORITY, MAX_PRIORITY = -100, 100


@dataclass(frozen=True, slots=True)
class Limits:
    """How many migrations may be under way at once.

    :param outgoing: of one source. 2 is also KubeVirt's parallelOutboundMigrationsPerNode: one
        fills the link, the second uses it while the first one begins, ends or waits.
    :param incoming: of one destination; the same link, from the other side.
    :param all: of all hosts together. 40 lets twenty hosts be emptied at once. KubeVirt's 5
        would let hosts wait that share nothing.
    """

    outgoing: int = 2
    incoming: int = 2
    all: int = 40

    def __post_init__(self) -> None:
        assert min(self.outgoing, self.incoming, self.all) >= 1, "nothing could ever begin"


@dataclass(frozen=True, slots=True)
class Slot:
    """What one migration takes, or waits for.

    :param number: grows from migration to migration: its age.
    :param destination: empty if an observed migration's destination is unknown.
    :param running: it has its slot; otherwise it waits.
    :param held: it waits and may not begin: the evacuation that requested it is paused.
    """

    number: int
    migration: UUID
    source: str
    destination: str
    priority: int = 0
    running: bool = False
    held: bool = False

    @property
    def position(self) -> tuple[int, int]:
        """Slots that wait are served in ascending order of this."""
        return (-self.priority, self.number)


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """A position in the queue.

    :param ahead: how many are served before it, if nothing changes.
    :param why: what it waits for.
    """

    ahead: int
    why: str


class _Use:
    """How many slots are taken."""

    def __init__(self, running: Iterable[Slot], limits: Limits) -> None:
        self._limits = limits
        self._outgoing: Counter[str] = Counter()
        self._incoming: Counter[str] = Counter()
        self._all = 0
        for slot in running:
            self.take(slot)

    def take(self, slot: Slot) -> None:
        self._outgoing[slot.source] += 1
        self._incoming[slot.destination] += 1
        self._all += 1

    @property
    def full(self) -> bool:
        return self._all >= self._limits.all

    def short_of(self, slot: Slot) -> str:
        """What there is too little of; empty where it fits."""
        limits = self._limits
        if self._outgoing[slot.source] >= limits.outgoing:
            return f"{self._outgoing[slot.source]} of {limits.outgoing} leave {slot.source}"
        if self._incoming[slot.destination] >= limits.incoming:
            taken = self._incoming[slot.destination]
            return f"{taken} of {limits.incoming} arrive on {slot.destination}"
        return f"{self._all} of {limits.all} are under way on all hosts" if self.full else ""


def admit(waiting: Iterable[Slot], running: Iterable[Slot], limits: Limits) -> list[Slot]:
    """Those of *waiting* that may begin now, in the order in which they are served.

    Observed migrations among *running* can be more than the limits allow: they do not wait for
    slots. Nothing begins next to them until they have ended.
    """
    use = _Use(running, limits)
    admitted: list[Slot] = []
    leaving: dict[str, int] = {}  # the oldest that waits to leave each host, and
    arriving: dict[str, int] = {}  # to arrive there
    stuck: set[tuple[str, str]] = set()  # on the same way none is overtaken at all
    for slot in sorted((s for s in waiting if not s.held), key=lambda slot: slot.position):
        if use.full:
            break
        oldest = min(
            leaving.get(slot.source, slot.number), arriving.get(slot.destination, slot.number)
        )
        way = slot.source, slot.destination
        in_turn = way not in stuck and slot.number - oldest <= OVERTAKEN_BY
        if in_turn and not use.short_of(slot):
            use.take(slot)
            admitted.append(slot)
        else:
            stuck.add(way)
            leaving[slot.source] = min(slot.number, leaving.get(slot.source, slot.number))
            arriving[slot.destination] = min(
                slot.number, arriving.get(slot.destination, slot.number)
            )
    return admitted


def why_waiting(slot: Slot, running: Iterable[Slot], limits: Limits) -> str:
    """What a slot that waits waits for, in words."""
    if slot.held:
        return "its evacuation is paused"
    return _Use(running, limits).short_of(slot) or "those ahead of it are served first"
