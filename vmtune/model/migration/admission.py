"""Which migrations may begin: limits per host and for all, order, fairness. Pure.

A migration takes one slot: one outgoing of its source, one incoming of its destination and
one of all, at once or not at all. So none ever waits for a slot while it keeps another, and
there is no deadlock.

The order is by priority, then by age. One that cannot begin yet does not hold up those behind
it that use other hosts; but it is overtaken, on the hosts that it needs, only by those requested at
most
:data:`OVERTAKEN_BY` migrations later. So what needs two hosts that are never free at
one moment gets its turn too.

Of those that copy disks fewer may be under way on a host. One that only waits for another's copy
holds up those that copy, and none else.
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
    :param copies: of one host, leaving and arriving together, that copy disks. A copy fills the
        link and keeps the storage of both hosts busy for long: two at once take as long as one
        after the other, and each has more of the guest's writes to copy again.
    """

    outgoing: int = 2
    incoming: int = 2
    all: int = 40
    copies: int = 1

    def __post_init__(self) -> None:
        fewest = min(self.outgoing, self.incoming, self.all, self.copies)
        assert fewest >= 1, "nothing could ever begin"


@dataclass(frozen=True, slots=True)
class Slot:
    """What one migration takes, or waits for.

    :param number: grows from migration to migration: its age.
    :param destination: empty if an observed migration's destination is unknown.
    :param running: it has its slot; otherwise it waits.
    :param held: it waits and may not begin: the evacuation that requested it is paused.
    :param copies: it copies disks.
    """

    number: int
    migration: UUID
    source: str
    destination: str
    priority: int = 0
    running: bool = False
    held: bool = False
    copies: bool = False

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
        self._copying: Counter[str] = Counter()
        self._all = 0
        for slot in running:
            self.take(slot)

    def take(self, slot: Slot) -> None:
        self._outgoing[slot.source] += 1
        self._incoming[slot.destination] += 1
        self._all += 1
        if slot.copies:
            self._copying.update((slot.source, slot.destination))

    @property
    def full(self) -> bool:
        return self._all >= self._limits.all

    def short_of(self, slot: Slot) -> str:
        """What there is too little of; empty where it fits."""
        return self.short_of_slots(slot) or self._short_of_copies(slot)

    def _short_of_copies(self, slot: Slot) -> str:
        most = self._limits.copies
        for host in (slot.source, slot.destination) if slot.copies else ():
            if self._copying[host] >= most:
                return f"{self._copying[host]} of {most} copy disks from or to {host}"
        return ""

    def short_of_slots(self, slot: Slot) -> str:
        """The same, whatever it copies."""
        limits = self._limits
        if self._outgoing[slot.source] >= limits.outgoing:
            return f"{self._outgoing[slot.source]} of {limits.outgoing} leave {slot.source}"
        if self._incoming[slot.destination] >= limits.incoming:
            taken = self._incoming[slot.destination]
            return f"{taken} of {limits.incoming} arrive on {slot.destination}"
        return f"{self._all} of {limits.all} are under way on all hosts" if self.full else ""


class _Held:
    """What waits, and holds up others that come after it."""

    def __init__(self) -> None:
        self._leaving: dict[str, int] = {}  # the oldest that waits to leave each host, and
        self._arriving: dict[str, int] = {}  # to arrive there
        self._ways: set[tuple[str, str]] = set()  # on the same way none is overtaken at all

    def lets(self, slot: Slot) -> bool:
        """Whether it may go first."""
        number = slot.number
        oldest = min(
            self._leaving.get(slot.source, number), self._arriving.get(slot.destination, number)
        )
        way = slot.source, slot.destination
        return way not in self._ways and number - oldest <= OVERTAKEN_BY

    def hold(self, slot: Slot) -> None:
        """Let it hold up those after it."""
        number, source, destination = slot.number, slot.source, slot.destination
        self._ways.add((source, destination))
        self._leaving[source] = min(number, self._leaving.get(source, number))
        self._arriving[destination] = min(number, self._arriving.get(destination, number))


def admit(waiting: Iterable[Slot], running: Iterable[Slot], limits: Limits) -> list[Slot]:
    """Those of *waiting* that may begin now, in the order in which they are served.

    Observed migrations among *running* can be more than the limits allow: they do not wait for
    slots. Nothing begins next to them until they have ended.
    """
    use = _Use(running, limits)
    admitted: list[Slot] = []
    held, held_copies = _Held(), _Held()
    for slot in sorted((s for s in waiting if not s.held), key=lambda slot: slot.position):
        if use.full:
            break
        has_slots = held.lets(slot) and not use.short_of_slots(slot)
        in_turn = not slot.copies or held_copies.lets(slot)
        if has_slots and in_turn and not use.short_of(slot):
            use.take(slot)
            admitted.append(slot)
        else:
            (held_copies if has_slots else held).hold(slot)
    return admitted


def why_waiting(slot: Slot, running: Iterable[Slot], limits: Limits) -> str:
    """What a slot that waits waits for, in words."""
    if slot.held:
        return "its evacuation is paused"
    return _Use(running, limits).short_of(slot) or "those ahead of it are served first"
