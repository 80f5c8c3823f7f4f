"""A clock and a QEMU for the controllers' loops: nothing waits, and everything can go wrong."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from uuid import UUID

from vmtune.engine.reaper.settings import PAGES_PER_MIB
from vmtune.errors import CommandRefused, TooLate, VmtuneError
from vmtune.model.host.dirty_rates import DirtyRates, usable_entries
from vmtune.model.host.facts import Reading, VmState
from vmtune.model.migration.record import QemuStatus, Sample, Snapshot
from vmtune.model.plan.changes import Change
from vmtune.model.tunables.tunable import Value

VM = UUID("5f5b1f5e-6c0e-4c8f-9d1a-0d9f6a1c7e10")
RING = "dirty_ring_size_entries"
_YIELDS = 12
BUSY = CommandRefused("the dirty rate is already being measured", code="already_measuring")


def sample(
    status: QemuStatus = QemuStatus.ACTIVE,
    at_ms: int = 0,
    iteration: int = 1,
    remaining_bytes: int = 1 << 28,
) -> Sample:
    """A look at a migration."""
    known = {
        "at_ms": at_ms, "status": status, "iteration": iteration, "boundary": False,
        "remaining_bytes": remaining_bytes, "total_bytes": 1 << 29, "page_size_bytes": 4096,
        "expected_downtime_ms": None,
    }  # fmt: skip
    return Sample(**{field.name: known.get(field.name, 0) for field in fields(Sample)})  # type: ignore[arg-type] # each has its own type


class MadeTime:
    """A clock that moves only by :meth:`pass_`, and wakes who sleeps in order."""

    def __init__(self) -> None:
        self._now = 1000.0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), woken))
        await woken

    async def pass_(self, seconds: float) -> None:
        """Let so much time pass, and everybody do what is due in it."""
        end = self._now + seconds
        await _let_others_run()
        while self._sleepers and self._sleepers[0][0] <= end:
            self._now, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)
                await _let_others_run()
        self._now = end

    async def until(self, work: asyncio.Future[None] | asyncio.Task[None]) -> None:
        """Let time pass until *work* is done, at most a minute."""
        for _ in range(60_000):
            await _let_others_run()
            if work.done():
                return
            await self.pass_(0.001)
        raise AssertionError("it does not end")


async def _let_others_run() -> None:
    for _ in range(_YIELDS):
        await asyncio.sleep(0)


@dataclass
class MadeQemu:
    """What the controllers need of a driver, over :class:`MadeTime`.

    :param pages_per_s: what each vCPU dirties, while dirty pages are tracked.
    :param migrating: a migration tracks them all the time.
    :param slow_ms: how much longer than it was asked for each measurement takes.
    :param errors: what the next calls raise, by the call's name; None lets one pass.
    """

    time: MadeTime
    pages_per_s: tuple[float, ...] = (50_000.0,)
    entries: int = 65536
    migrating: bool = False
    slow_ms: float = 2.0
    state: VmState = VmState.RUNNING
    stuck: bool = False
    iteration: int = 1
    values: dict[str, Value | None] = field(default_factory=dict)
    errors: dict[str, list[VmtuneError | Exception | None]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    writes: list[tuple[str, Value]] = field(default_factory=list)
    keeps: Callable[[str, Value], Value] = field(default=lambda name, value: value)
    _emptied: float = 0.0
    _began: float | None = None
    _measured: DirtyRates = field(default=DirtyRates(measured=False))

    @property
    def measuring(self) -> bool:
        """Whether QEMU tracks dirty pages for a measurement right now."""
        self._look()
        return self._began is not None

    @property
    def measurements(self) -> int:
        return self.calls.count("measure_dirty_rates")

    def _called(self, name: str) -> None:
        self.calls.append(name)
        pending = self.errors.get(name, [])
        error = pending.pop(0) if pending else None
        if error is not None:
            raise error

    async def read(self, vm: UUID, tunables: Collection[str]) -> Mapping[str, Reading]:
        self._called("read")
        ring = Reading(self.entries) if self.entries >= 0 else Reading(None, why_unknown="hidden")
        return {n: ring if n == RING else Reading(self.values.get(n)) for n in tunables}

    async def write(self, vm: UUID, changes: Sequence[Change]) -> None:
        self._called("write")
        for change in changes:
            self.writes.append((change.tunable, change.value))
            self.values[change.tunable] = self.keeps(change.tunable, change.value)

    async def migration(self, vm: UUID, at_ms: int = 0) -> Snapshot:
        self._called("migration")
        return Snapshot(QemuStatus.ACTIVE, sample(iteration=self.iteration))

    async def measure_dirty_rates(self, vm: UUID, over_ms: int) -> None:
        self._called("measure_dirty_rates")
        if self.measuring:
            raise CommandRefused(
                "the dirty rate is already being measured", code="already_measuring"
            )
        if not self.migrating:
            self._emptied = self.time.now()  # nothing was tracked in between
        self._began, self._over_ms = self.time.now(), over_ms
        self._measured = DirtyRates(measured=False, measuring=True)

    async def dirty_rates(self, vm: UUID) -> DirtyRates:
        self._called("dirty_rates")
        self._look()
        return self._measured

    def _look(self) -> None:
        """Whether the measurement has ended by now."""
        if self._began is None or self.stuck:
            return
        ends = self._began + (self._over_ms + self.slow_ms) / 1000
        if self.time.now() < ends:
            return
        filling_s = ends - self._emptied
        most = usable_entries(self.entries)
        pages = [min(rate * filling_s, most) for rate in self.pages_per_s]
        over_s = (self._over_ms + self.slow_ms) / 1000
        rates = tuple(int(n / PAGES_PER_MIB / over_s + 1e-6) for n in pages)
        self._measured = DirtyRates(True, False, round(over_s * 1000), rates)
        self._emptied, self._began = ends, None

    async def vm_state(self, vm: UUID) -> VmState:
        self._called("vm_state")
        return self.state

    async def pause(self, vm: UUID) -> None:
        self._called("pause")
        self.state = VmState.PAUSED

    async def start_postcopy(self, vm: UUID) -> None:
        self._called("start_postcopy")

    async def abort_migration(self, vm: UUID) -> None:
        self._called("abort_migration")
        if not self.migrating:
            raise TooLate("no migration is active")
