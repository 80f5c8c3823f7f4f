"""Tries reaper policies on dirty-rate traces: rings that fill, rounds that empty them.

The model, in steps of a millisecond:

- Each vCPU dirties what the trace says into its ring. A page is in the ring once until the ring
  is emptied, so a ring holds no more than the working set.
- A vCPU whose ring has no usable entry left (:func:`vmtune.engine.reaper.settings.usable_entries`)
  makes a ring-full exit: QEMU empties **all** rings before it continues, as its handler does
  (accel/kvm/kvm-all.c, KVM_EXIT_DIRTY_RING_FULL). The vCPU stands still for the exit and for the
  pages that are collected, and does not make up for it.
- A round empties all rings at the end of the interval and of its own cost. All vCPUs are kicked
  out of the guest for it and stand still for a moment.
- The policy sees what a real round shows: MiB/s of each vCPU rounded down, which include the
  pages that were collected at ring-full exits in between.

Left out: QEMU's own reaper next to a policy and the migration's own synchronisations, which also
empty the rings (a policy does no worse with them); the livelock of some nested KVMs after a ring
has filled; the cost of write faults, the same in all arms.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from vmtune.engine.reaper.policies import begin
from vmtune.engine.reaper.settings import PAGES_PER_MIB, Pace, ReaperSettings, Round, fill_ratios
from vmtune.model.host.dirty_rates import usable_entries
from vmtune.model.tunables.rows.reaper import STOCK_INTERVAL_MS
from vmtune.testing.dirty_rate_traces import Row, Trace


@dataclass(frozen=True, slots=True)
class Costs:
    """What things cost, in milliseconds. Orders of magnitude, not measurements.

    :param round_ms: a round without its pages: two commands and their answers.
    :param per_page_ms: collecting one page and having KVM track it again.
    :param kick_ms: for each vCPU, being kicked out of the guest by a round.
    :param exit_ms: for the vCPU, a ring-full exit without its pages.
    """

    round_ms: float = 2.0
    per_page_ms: float = 0.0002
    kick_ms: float = 0.05
    exit_ms: float = 0.1


@dataclass(frozen=True, slots=True)
class Stock:
    """QEMU's own reaper: once a second, regardless of the load."""

    interval_ms: int = STOCK_INTERVAL_MS

    def after(self, observed: Round) -> Stock:
        """The same."""
        return self


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a policy on a trace.

    :param ring_full: ring-full exits, of all vCPUs.
    :param stalls_ms: how long vCPUs stood still for ring-full exits and rounds, all together.
    :param intervals_ms: the intervals that the policy requested, round by round.
    """

    ring_full: int
    rounds: int
    stalls_ms: float
    intervals_ms: tuple[int, ...] = field(repr=False)


class Counted(StrEnum):
    """Which pages a reaper inside QEMU computes its ratio from."""

    ALL = "all since the round before"
    """Those of ring-full exits and of the migration's synchronisations, too."""
    OWN = "the round's own"
    """As in the source."""


@dataclass(frozen=True, slots=True)
class Inside(Round):
    """A round of a reaper inside QEMU, which counts ring-full exits.

    :param exits: since the round before.
    """

    exits: int = 0

    @property
    def filled(self) -> bool:
        """Whether some ring was full."""
        return self.exits > 0


def simulate(
    trace: Trace,
    pace: Pace,
    ring_entries: int,
    costs: Costs | None = None,
    counted: Counted | None = None,
    synchronised_every_ms: int = 0,
) -> Result:
    """Run *trace* from its beginning to its end with rings of *ring_entries*.

    :param counted: the reaper is inside QEMU, and computes its ratio from these pages; None: it is
        outside, and sees what a measurement of dirty rates shows.
    :param synchronised_every_ms: how often the migration empties the rings; 0: never.
    """
    costs = costs or Costs()
    rings = _Rings(trace, ring_entries, costs)
    intervals = [pace.interval_ms]
    began = 0.0
    due = pace.interval_ms + costs.round_ms
    rounds = 0
    for now, pages in enumerate(trace.rows):
        rings.fill(pages)
        if synchronised_every_ms and (now + 1) % synchronised_every_ms == 0:
            rings.empty()
        if now + 1 < due:
            continue
        collecting_ms = rings.empty(own=True) * costs.per_page_ms
        rings.stall_all(costs.kick_ms)
        rounds += 1
        cost_ms = costs.round_ms + collecting_ms
        ended = due + collecting_ms
        seen = (
            rings.observed(ended - began, cost_ms)
            if counted is None
            else rings.seen_inside(ended - began, cost_ms, counted)
        )
        pace = pace.after(seen)
        began = ended
        intervals.append(pace.interval_ms)
        due = ended + pace.interval_ms + costs.round_ms
    return Result(rings.ring_full, rounds, rings.stalls_ms, tuple(intervals))


def compare(
    trace: Trace,
    policies: dict[str, ReaperSettings],
    ring_entries: int,
    costs: Costs | None = None,
) -> dict[str, Result]:
    """*trace* with each of the policies by its name, and with ``stock``.

    QEMU's own reaper is not guarded and costs no commands.
    """
    costs = costs or Costs()
    own = Costs(0.0, costs.per_page_ms, costs.kick_ms, costs.exit_ms)
    results = {"stock": simulate(trace, Stock(), ring_entries, own)}
    for name, settings in policies.items():
        results[name] = simulate(trace, begin(settings), ring_entries, costs)
    return results


class _Rings:
    """All vCPUs' rings, and what has happened to them."""

    def __init__(self, trace: Trace, ring_entries: int, costs: Costs) -> None:
        self._entries = ring_entries
        self._usable = float(usable_entries(ring_entries))
        self._most = trace.working_set_pages or float("inf")
        self._costs = costs
        self._used = [0.0] * trace.vcpus
        self._collected = [0.0] * trace.vcpus
        self._own = [0.0] * trace.vcpus
        self._exits_before = 0
        self._standing_ms = [0.0] * trace.vcpus
        self.ring_full = 0
        self.stalls_ms = 0.0

    def fill(self, pages_per_ms: Row) -> None:
        """One millisecond of each vCPU."""
        for vcpu, rate in enumerate(pages_per_ms):
            left_ms = 1.0
            if self._standing_ms[vcpu]:
                stood = min(left_ms, self._standing_ms[vcpu])
                self._standing_ms[vcpu] -= stood
                left_ms -= stood
            while left_ms > 0 and rate > 0:
                room = self._usable - self._used[vcpu]
                if rate * left_ms < room or self._most < self._usable:
                    self._used[vcpu] = min(self._used[vcpu] + rate * left_ms, self._most)
                    break
                left_ms = self._exit(vcpu, left_ms - room / rate)

    def _exit(self, vcpu: int, left_ms: float) -> float:
        """A ring-full exit; what is left of the millisecond after it."""
        self._used[vcpu] = self._usable
        self.ring_full += 1
        stall_ms = self._costs.exit_ms + self.empty() * self._costs.per_page_ms
        self.stalls_ms += stall_ms
        stood = min(stall_ms, left_ms)
        self._standing_ms[vcpu] += stall_ms - stood
        return left_ms - stood

    def empty(self, own: bool = False) -> float:
        """Empty all rings; how many pages they had.

        :param own: it is the reaper's round that does.
        """
        pages = sum(self._used)
        if own:
            self._own = list(self._used)
        for vcpu, used in enumerate(self._used):
            self._collected[vcpu] += used
            self._used[vcpu] = 0.0
        return pages

    def stall_all(self, each_ms: float) -> None:
        """Make all vCPUs stand still."""
        self.stalls_ms += each_ms * len(self._standing_ms)
        self._standing_ms = [standing + each_ms for standing in self._standing_ms]

    def observed(self, elapsed_ms: float, cost_ms: float) -> Round:
        """What the policy sees of the pages collected since it last looked."""
        # QEMU divides by the time it measured, which ends before the rings are emptied.
        measured_ms = max(1, int(elapsed_ms - cost_ms))
        mib_per_s = [n * 1000 / PAGES_PER_MIB / measured_ms for n in self._collected]
        self._collected = [0.0] * len(self._collected)
        # Rounded down, as QEMU does; the little that is added makes up for adding fractions.
        fills = fill_ratios([int(rate + 1e-6) for rate in mib_per_s], measured_ms, self._entries)
        return Round(elapsed_ms, cost_ms, fills, self._entries)

    def seen_inside(self, elapsed_ms: float, cost_ms: float, counted: Counted) -> Round:
        """What a reaper inside QEMU sees of them."""
        pages = self._own if counted is Counted.OWN else self._collected
        fills = tuple(each / self._entries for each in pages)
        exits = self.ring_full - self._exits_before
        self._exits_before = self.ring_full
        self._collected = [0.0] * len(self._collected)
        return Inside(elapsed_ms, cost_ms, fills, self._entries, exits=exits)
