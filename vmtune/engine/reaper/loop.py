"""The dirty-ring reaper's loop: empties a VM's rings from outside, whenever its policy says.

A round is: sleep until it is nearly due, have QEMU measure the dirty rates for 50 ms, which ends
with emptied rings, and wait until it has. QEMU tracks dirty pages while it measures; in between
only a migration's own tracking stays on. So before a migration a round sees what was dirtied
while it measured, and in it what was dirtied since the round before: the former is scaled to what
the whole time would have given. Around the migration's start it is unknown which applies, and the
policy gets a round only if a ring was full.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from uuid import UUID

from vmtune.engine.context import Clock
from vmtune.engine.reaper.policies import begin
from vmtune.engine.reaper.settings import Pace, ReaperSettings, Round, fill_ratios
from vmtune.errors import (
    CommandRefused,
    HostUnreachable,
    MonitorBusy,
    NotFound,
    OutcomeUnknown,
    VmtuneError,
)
from vmtune.hypervisor.protocol import Controls
from vmtune.model.host.dirty_rates import DirtyRates, usable_entries
from vmtune.model.migration.controller_record import ReaperEnd, ReaperReport, ReaperRound
from vmtune.model.tunables.rows.reaper import MIN_INTERVAL_MS

MEASURE_MS = MIN_INTERVAL_MS
"""How long a round measures: the least that QEMU can."""
FIRST_ROUND_WITHIN_S = 2.0
"""No migration waits longer for the first round, which over libvirt on a busy host is slow."""
FIRST_ROUND_NEEDED_WITHIN_S = 15.0
"""Likewise where a full ring can end the guest, so that the migration needs that round."""
FILLS_UP = 0.7
"""Share of a ring's usable entries from which it is called about to fill."""
LOST_AFTER_S = 30.0
"""The reaper gives up after a VM has not answered for this long."""

_FIRST = asyncio.FIRST_COMPLETED
_LOOK_EVERY_S = 0.005
_TRY_AGAIN_S = 0.5
_LAST_ROUND_WITHIN_S = 2.0
_RING = "dirty_ring_size_entries"
_LOST = (HostUnreachable, OutcomeUnknown, MonitorBusy)
# Codes of vmtune.hypervisor, which is above this layer.
_ALREADY_MEASURING = "already_measuring"
_NOT_RUNNING = "vm_not_running"


@dataclass(frozen=True, slots=True)
class _Done:
    """A round that has ended, by the clock's own time."""

    ended: float
    interval_ms: int
    elapsed_ms: float
    cost_ms: float
    fills: tuple[float, ...]


class Reaper:
    """Reaps one VM's rings from :meth:`start` to :meth:`stop`. Errors of QEMU or the connection are
    not raised: they are in :attr:`report`.

    :param past: the report of an earlier process, which is continued.
    :param unpaused: a full ring can end the guest: round follows round without a pause, and
        :meth:`start` waits for the first.
    """

    def __init__(
        self,
        controls: Controls,
        vm: UUID,
        settings: ReaperSettings,
        time: Clock,
        past: ReaperReport | None = None,
        *,
        unpaused: bool = False,
    ) -> None:
        self._controls = controls
        self._unpaused = unpaused
        self._vm = vm
        self._time = time
        self._pace: Pace = begin(settings, unpaused=unpaused)
        fresh = ReaperReport(settings.policy.value, 0, ReaperEnd.RUNNING)
        self._report = replace(past, rounds=()) if past else fresh
        self._resumes = past is not None
        self._origin: float | None = None
        self._tracked_since: float | None = None
        self._iteration = 0
        self._iteration_before = 0
        self._kept: list[_Done] = []
        self._latest: _Done | None = None
        self._stopping = asyncio.Event()
        self._first = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin; return when the rings have been emptied once, or soon after."""
        if self._resumes and self._report.end not in (ReaperEnd.RUNNING, ReaperEnd.INTERRUPTED):
            return  # it had ended, and for a reason
        if self._resumes:
            self._count_one("interruptions")
            self._ends(ReaperEnd.RUNNING)
        self._loop = asyncio.create_task(self._run(), name=f"reaper {self._vm}")
        within_s = FIRST_ROUND_NEEDED_WITHIN_S if self._unpaused else FIRST_ROUND_WITHIN_S
        await self._wait(within_s, self._first)

    def migration_starts(self, at: float) -> None:
        """What the rounds' times count from."""
        self._origin = at
        if not self._resumes:
            self._report = replace(self._report, rounds_before=self._report.round_count)

    def migration_is_active(self, iteration: int) -> None:
        """QEMU has said so: from now on it tracks dirty pages all the time."""
        self._iteration = max(self._iteration, iteration)
        if self._tracked_since is None:
            self._tracked_since = self._time.now()

    def finish(self) -> None:
        """Begin no more rounds."""
        self._stopping.set()

    async def stop(self) -> None:
        """End it, when a round that is under way has ended."""
        self._stopping.set()
        if self._loop is not None:
            if not self._loop.done():
                giving_up = asyncio.ensure_future(self._time.sleep(_LAST_ROUND_WITHIN_S))
                try:
                    await asyncio.wait({self._loop, giving_up}, return_when=_FIRST)
                finally:
                    giving_up.cancel()
            self._loop.cancel()
            await asyncio.wait([self._loop])
        if self._report.end is ReaperEnd.RUNNING:
            self._ends(ReaperEnd.MIGRATION_ENDED)

    def abandon(self) -> None:
        """Stop at once, without recording an end: the migration continues without vmtune."""
        if self._loop is not None:
            self._loop.cancel()

    @property
    def unprotected(self) -> bool:
        """Whether a full ring can end the guest, and no round was done yet."""
        report = self._report
        return self._unpaused and report.ring_entries > 0 and report.round_count == 0

    @property
    def fills_up(self) -> float:
        """How full the fullest ring was, of what can be used, where a full one can end the guest
        and it nearly was; else 0."""
        entries = self._report.ring_entries
        if not self._unpaused or not entries:
            return 0.0
        share = self._report.fullest * entries / usable_entries(entries)
        return share if share >= FILLS_UP else 0.0

    @property
    def report(self) -> ReaperReport:
        """The report so far, with the rounds not taken yet."""
        return replace(self._report, rounds=tuple(self._shown(self._kept)))

    @property
    def latest_round(self) -> ReaperRound | None:
        """The last round."""
        return next(iter(self._shown([self._latest])), None) if self._latest else None

    def take_rounds(self) -> list[ReaperRound]:
        """The rounds not taken yet; none before the migration is started."""
        if self._origin is None:
            return []
        kept, self._kept = self._kept, []
        return self._shown(kept)

    def _shown(self, rounds: list[_Done]) -> list[ReaperRound]:
        """*rounds* on the migration's timeline; one that never started begins now."""
        origin = self._time.now() if self._origin is None else self._origin
        return [
            ReaperRound(
                round((each.ended - origin) * 1000),
                each.interval_ms,
                each.elapsed_ms,
                each.cost_ms,
                each.fills,
            )
            for each in rounds
        ]

    async def _run(self) -> None:
        try:
            await self._reap()
        except asyncio.CancelledError:
            raise
        except VmtuneError as error:
            self._ends_badly(error.message)
        except Exception as error:
            # A fault of ours is no reason to disturb a migration either.
            self._ends_badly(f"internal error: {error!r}")
        finally:
            self._first.set()

    async def _reap(self) -> None:
        """Round after round. A failed one is started again, so that neither the policy nor the
        costs include its time."""
        interval_ms, last_ended = MEASURE_MS, self._time.now()
        lost_since: float | None = None
        while not self._stopping.is_set():
            until_due_s = last_ended + (interval_ms - MEASURE_MS) / 1000 - self._time.now()
            await self._wait(until_due_s, self._stopping)
            if self._stopping.is_set():
                return
            try:
                if not self._report.ring_entries:
                    await self._ask_ring()
                rates = await self._empty_rings()
            except NotFound:
                return  # it has left this host
            except CommandRefused as refusal:
                code = refusal.problems[0].code
                if code == _NOT_RUNNING:
                    return
                goes_on = self._unpaused and self._report.round_count > 0
                if code != _ALREADY_MEASURING and not goes_on:
                    raise
                self._count_one("skipped_rounds")
                await self._begin_anew_after(MEASURE_MS / 1000)
            except _LOST as error:
                lost_since = lost_since or self._time.now()
                if self._time.now() - lost_since > LOST_AFTER_S:
                    raise
                self._report = replace(self._report, reason=error.message)
                await self._begin_anew_after(_TRY_AGAIN_S)
            else:
                now = self._time.now()
                if lost_since is not None:
                    lost_since = None
                    self._report = replace(self._report, reason="")
                    self._count_one("interruptions")
                await self._learn(rates, now, last_ended, interval_ms)
                last_ended, interval_ms = now, self._pace.interval_ms
                self._first.set()
                continue
            last_ended, interval_ms = self._time.now(), MEASURE_MS

    async def _begin_anew_after(self, seconds: float) -> None:
        if not self._unpaused:
            self._first.set()  # a migration waits for no second try
        await self._wait(seconds, self._stopping)

    async def _ask_ring(self) -> None:
        """Read the size of the rings.
        :raise CommandRefused: there are none, or their size is unknown.
        """
        reading = (await self._controls.read(self._vm, [_RING]))[_RING]
        if not isinstance(reading.value, int) or reading.value <= 0:
            why = reading.why_unknown
            raise CommandRefused(
                f"the size of the dirty ring is unknown: {why}" if why else "there is no dirty ring"
            )
        self._report = replace(self._report, ring_entries=reading.value)

    async def _empty_rings(self) -> DirtyRates:
        """One measurement, whose end empties the rings."""
        began = self._time.now()
        await self._controls.measure_dirty_rates(self._vm, MEASURE_MS)
        await self._time.sleep(MEASURE_MS / 1000)
        while True:
            rates = await self._controls.dirty_rates(self._vm)
            if rates.measured:
                return rates
            if self._time.now() - began > LOST_AFTER_S:
                raise CommandRefused(f"QEMU has not ended a measurement in {LOST_AFTER_S:g} s")
            await self._time.sleep(_LOOK_EVERY_S)

    async def _learn(
        self, rates: DirtyRates, now: float, last_ended: float, interval_ms: int
    ) -> None:
        """Record a round, and pass it to the policy."""
        elapsed_ms = max(1.0, (now - last_ended) * 1000)
        cost_ms = max(0.0, elapsed_ms - interval_ms)
        entries = self._report.ring_entries
        fills = fill_ratios(rates.vcpu_mib_per_s, rates.measured_ms, entries)
        seen = Round(elapsed_ms, cost_ms, fills, entries)
        if seen.filled:
            seen = replace(seen, shared=await self._was_shared())
        self._iteration_before = self._iteration
        scale = self._scale(elapsed_ms, rates.measured_ms, last_ended)
        if scale is not None:
            self._pace = self._pace.after(replace(seen, fills=tuple(f * scale for f in fills)))
        elif seen.filled:
            self._pace = self._pace.after(seen)
        self._latest = _Done(now, interval_ms, elapsed_ms, cost_ms, fills)
        self._kept.append(self._latest)
        self._count(self._latest, seen)

    async def _was_shared(self) -> bool:
        """Whether the migration has synchronised since the round before. Only asked where the
        rings look full: then a lot hangs on it."""
        with suppress(VmtuneError):
            snapshot = await self._controls.migration(self._vm)
            if snapshot.sample is not None:
                self._iteration = max(self._iteration, snapshot.sample.iteration)
        return self._iteration > self._iteration_before

    def _scale(self, elapsed_ms: float, measured_ms: int, last_ended: float) -> float | None:
        """By how much more would have been collected, had tracking been on since the round
        before; None where that is not known."""
        if self._tracked_since is not None and self._tracked_since <= last_ended:
            return 1.0
        if self._origin is None and self._tracked_since is None:
            return elapsed_ms / min(max(1, measured_ms), elapsed_ms)
        return None

    def _count_one(self, what: str) -> None:
        counted = getattr(self._report, what) + 1
        self._report = replace(self._report, **{what: counted})

    def _count(self, done: _Done, seen: Round) -> None:
        before = self._report
        shortest = before.shortest_interval_ms or done.interval_ms
        self._report = replace(
            before,
            round_count=before.round_count + 1,
            filled_rounds=before.filled_rounds + seen.filled,
            fullest=max(before.fullest, round(seen.fullest, 3)),
            shortest_interval_ms=min(shortest, done.interval_ms),
            longest_interval_ms=max(before.longest_interval_ms, done.interval_ms),
            waits_ms=before.waits_ms + done.interval_ms,
            costs_ms=round(before.costs_ms + done.cost_ms, 1),
        )

    def _ends(self, end: ReaperEnd, reason: str = "") -> None:
        self._report = replace(self._report, end=end, reason=reason)

    def _ends_badly(self, reason: str) -> None:
        begun = self._report.round_count > 0
        self._ends(ReaperEnd.FAILED if begun else ReaperEnd.NOT_STARTED, reason)

    async def _wait(self, seconds: float, until: asyncio.Event) -> None:
        """Let *seconds* pass, but not beyond *until*."""
        if seconds <= 0 or until.is_set():
            return
        sleep = asyncio.ensure_future(self._time.sleep(seconds))
        event = asyncio.ensure_future(until.wait())
        try:
            await asyncio.wait({sleep, event}, return_when=_FIRST)
        finally:
            sleep.cancel()
            event.cancel()
