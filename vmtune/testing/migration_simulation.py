"""A pre-copy migration in simulated time, as QEMU does it, steered or not.

Each tick of 50 ms sends what the throughput allows; what is dirty is a number of bytes, not a set
of pages. The bitmap is synchronised when less remains than throughput times the downtime limit
(migration/migration.c, migration_iteration_run). Auto-converge acts at a synchronisation at least
1 s after the last, every second time that more was dirtied than its trigger (migration/ram.c): it
begins at its first percentage, and then adds its increment up to the most. At the same moments the
dirty limit is taken over that was set; once a second a vCPU's wait for each full ring is then
changed by how far its dirty rate is from the limit (system/dirtylimit.c).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from vmtune.intent.choosing import DIRTY_LIMIT
from vmtune.intent.setbacks import came_of
from vmtune.intent.steering import Abilities, Act, Relax, Steering, steer
from vmtune.intent.throttling import TOLERANCE_BYTES_PER_S, UNLIMITED_MIB_PER_S
from vmtune.model.migration.controller_record import StepEffect
from vmtune.model.migration.record import QemuStatus, Sample
from vmtune.model.migration.steps import SetValues, StepAction
from vmtune.units import PAGE_BYTES

TICK_MS = 50
_SWINGS_MS = 250
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Guest:
    """Writes to a region, over and over.

    :param rate: bytes per second, by the seconds since the start.
    :param used_bytes: of its memory, what has to be sent; None: all of it.
    :param swing: by how much at most its rate, and half of that the path's, varies from one quarter
        of a second to the next, as a share.
    :param seed: of these swings.
    :param vcpus: that write, each as much as the others.
    :param ring_bytes: what the dirty ring of each holds.
    :param busy_share: of its CPU time, what it needs: auto-converge slows it only below that.
    """

    memory_bytes: float
    region_bytes: float
    rate: Callable[[float], float]
    used_bytes: float | None = None
    swing: float = 0.0
    seed: int = 0
    vcpus: int = 1
    ring_bytes: int = 4 << 20
    busy_share: float = 1.0

    def swings(self) -> Iterator[tuple[float, float]]:
        """The factors of its rate, and of the path's, one after the other."""
        drawn = random.Random(self.seed)  # noqa: S311  # a simulation
        while True:
            yield 1 + self.swing * drawn.uniform(-1, 1), 1 + self.swing / 2 * drawn.uniform(-1, 1)


@dataclass(frozen=True, slots=True)
class Simulated:
    """How it went.

    :param outcome: completed, postcopy, paused, aborted, or running at the end of the time.
    :param throttled: by tick, the percent that was withheld.
    :param limits: downtime limits that were in force, the first one first.
    """

    outcome: str
    total_ms: int
    silence_ms: float
    throttled: tuple[float, ...]
    limits: tuple[int, ...]
    acts: tuple[Act, ...]

    @property
    def lost_s(self) -> float:
        """Of the guest's work, what was withheld."""
        return sum(self.throttled) * TICK_MS / 100_000


@dataclass(slots=True)
class _Throttle:
    """Auto-converge. Percentages as QEMU's, *percent* in force; *trigger* of what was sent."""

    percent: float = 0
    first: int = 1
    step: int = 1
    most: int = 1
    trigger: int = 1
    judged_ms: int = 0
    judged_sent: float = 0.0
    high: int = 0

    def synchronised(self, at_ms: int, dirtied: float, sent: float) -> None:
        if at_ms - self.judged_ms < 1000:
            return
        self.high += dirtied > (sent - self.judged_sent) * self.trigger / 100
        self.judged_ms, self.judged_sent = at_ms, sent
        if self.high >= 2:
            self.high = 0
            self.triggered()

    def triggered(self) -> None:
        raised = self.percent + self.step if self.percent else self.first
        self.percent = min(raised, self.most)

    def does_share(self, guest: Guest) -> float:
        """How much the guest does of what it would do if it were not held back."""
        return min(1.0, (1 - self.percent / 100) / guest.busy_share)

    def writing(self, at_ms: int, bytes_per_s: float) -> None:
        """What the guest would write if it were not held back."""

    def set(self, values: Mapping[str, object]) -> None:
        self.first = int(str(values.get("cpu_throttle_initial_percent", self.first)))
        self.step = int(str(values.get("cpu_throttle_increment_percent", self.step)))
        self.most = int(str(values.get("max_cpu_throttle_percent", self.most)))

    def said(self, sample: Sample) -> Sample:
        return replace(sample, throttle_percent=round(self.percent))

    def taken_over(self, state: Steering) -> Steering:
        """*state*, that began, with what another process reads from QEMU."""
        return replace(state, throttle_percent=self.most, held=True)


@dataclass(slots=True)
class _Limit(_Throttle):
    """The dirty limit; rates in bytes per second, *waits_us* for each full ring of a vCPU."""

    vcpus: int = 1
    ring_bytes: float = 4 * MIB
    wanted: float = UNLIMITED_MIB_PER_S * MIB
    quota: float = UNLIMITED_MIB_PER_S * MIB
    waits_us: float = 0.0
    highest: float = 1.0
    fills_us: float = 1.0
    adjusted_ms: int = 0

    def triggered(self) -> None:
        self.quota = self.wanted

    def does_share(self, guest: Guest) -> float:
        """It withholds what the guest writes, however little CPU time that takes."""
        return 1 - self.percent / 100

    def writing(self, at_ms: int, bytes_per_s: float) -> None:
        each = bytes_per_s / self.vcpus
        if at_ms - self.adjusted_ms < 1000 or each <= 0:
            return
        self.adjusted_ms = at_ms
        self.fills_us = self.ring_bytes / each * 1e6
        now = each * (1 - self.percent / 100)
        self.highest = max(self.highest, now)
        full_us = self.ring_bytes / self.highest * 1e6
        off = abs(now - self.quota)
        if off > TOLERANCE_BYTES_PER_S:
            share = off / max(now, self.quota)
            change = full_us * min(share / (1.001 - share), 99) if share > 0.5 else full_us / 10
            self.waits_us += change if now > self.quota else -change
            self.waits_us = max(0.0, min(self.waits_us, 99 * full_us))
        # The rings are emptied once a second: a vCPU waits only if it fills its own before.
        waits = self.waits_us if self.fills_us < 1e6 else 0.0
        self.percent = 100 * waits / (waits + self.fills_us)

    def set(self, values: Mapping[str, object]) -> None:
        self.wanted = int(str(values.get(DIRTY_LIMIT, self.wanted // MIB))) * MIB

    def said(self, sample: Sample) -> Sample:
        waits, fills = round(self.waits_us), round(self.fills_us)
        return replace(sample, dirty_limit_throttle_us=waits, dirty_limit_ring_full_us=fills)

    def taken_over(self, state: Steering) -> Steering:
        limit = state.able.dirty_limit
        assert limit is not None
        most = limit.most_percent(state.intent)
        limit, percent = limit.in_force(round(self.wanted / MIB), most)
        able = replace(state.able, dirty_limit=limit)
        return replace(state, able=able, throttle_percent=percent)


def _throttle(guest: Guest, able: Abilities, auto_converge: bool) -> _Throttle:
    if able.dirty_limit is not None:
        return _Limit(vcpus=guest.vcpus, ring_bytes=guest.ring_bytes)
    return _Throttle(first=20, step=10, most=99, trigger=50) if auto_converge else _Throttle()


def run(
    guest: Guest,
    bytes_per_s: float,
    steering: Steering,
    most_s: int = 300,
    hand_over_ms: int = 0,
    estimated_share: float = 1.0,
    sampled_every_ms: int = TICK_MS,
    auto_converge: bool = False,
    effects: Mapping[int, StepEffect] | None = None,
) -> Simulated:
    """One migration.

    :param auto_converge: throttled by QEMU's own defaults, until *steering* sets others.

    :param estimated_share: QEMU holds what remains against this share of the throughput: its
        estimate may be lower than what samples show.
    :param sampled_every_ms: how often the policy looks: what it sees is as old as that.
    :param effects: of actions by their number, from 0, that are not done.
    :param hand_over_ms: when another process takes over, which knows only what is set; 0: never.
    """
    state, limit = steering, steering.limit_ms
    throttle = _throttle(guest, state.able, auto_converge)
    all_bytes = guest.memory_bytes if guest.used_bytes is None else guest.used_bytes
    remaining, unsynced, sent, count = all_bytes, 0.0, 0.0, 1
    swings, faster, wider = guest.swings(), 1.0, 1.0
    throttled: list[float] = []
    limits, acts = [limit], list[Act]()

    def fits(limit_ms: int) -> float:
        return bytes_per_s * estimated_share * limit_ms / 1000

    for at_ms in range(0, most_s * 1000, TICK_MS):
        tick_s = TICK_MS / 1000
        if at_ms % _SWINGS_MS == 0:
            faster, wider = next(swings)
        portion = min(remaining, bytes_per_s * wider * tick_s)
        remaining, sent = remaining - portion, sent + portion
        rate = guest.rate(at_ms / 1000) * faster
        throttle.writing(at_ms, rate)
        wrote = rate * tick_s * throttle.does_share(guest)
        unsynced = min(guest.region_bytes, unsynced + wrote)
        throttled.append(throttle.percent)
        if remaining <= fits(limit):
            dirtied = unsynced
            remaining = min(remaining + dirtied, max(guest.region_bytes, remaining))
            unsynced, count = 0.0, count + 1
            if remaining <= fits(limit):
                silence = remaining / bytes_per_s * 1000
                total = round(at_ms + silence)
                return Simulated(
                    "completed", total, silence, tuple(throttled), tuple(limits), tuple(acts)
                )
            if state.able.auto_converge or state.able.dirty_limit is not None:
                throttle.synchronised(at_ms, dirtied, sent)
        if at_ms % sampled_every_ms:
            continue
        sample = throttle.said(_sample(guest, at_ms, count, remaining, sent, bytes_per_s))
        if hand_over_ms and at_ms >= hand_over_ms:
            hand_over_ms = 0
            begun = replace(steering, limit_ms=limit, relaxed=state.relaxed)
            state = throttle.taken_over(begun)
        before = state
        state, fresh = steer(state, sample)
        acts += fresh
        state, done = _with_effects(before, state, fresh, effects or {}, len(acts), at_ms)
        for act in done:
            match act.action:
                case SetValues(values):
                    chosen = dict(values)
                    limit = int(chosen.get("downtime_limit_ms", limit))
                    throttle.set(chosen)
                    limits.append(limit)
                case StepAction() as action:
                    ended = _ended(action, at_ms, (remaining + unsynced) / bytes_per_s * 1000)
                    return Simulated(*ended, tuple(throttled), tuple(limits), tuple(acts))
                case Relax():
                    pass
    return Simulated("running", most_s * 1000, 0.0, tuple(throttled), tuple(limits), tuple(acts))


def _with_effects(
    before: Steering,
    state: Steering,
    fresh: list[Act],
    effects: Mapping[int, StepEffect],
    count: int,
    at_ms: int,
) -> tuple[Steering, list[Act]]:
    """The state after the last of *count* actions, and those that were done."""
    done: list[Act] = []
    for number, act in enumerate(fresh, count - len(fresh)):
        effect = effects.get(number, StepEffect.DONE)
        state = came_of(before, state, act, effect, at_ms)
        if effect is StepEffect.DONE:
            done.append(act)
    return state, done


def _ended(action: StepAction, at_ms: int, rest_ms: float) -> tuple[str, int, float]:
    """Outcome, total time and silence, where the rest takes *rest_ms*."""
    match action:
        case StepAction.ABORT:
            return "aborted", at_ms, 0.0
        case StepAction.POSTCOPY:
            return "postcopy", at_ms + round(rest_ms), 0.0
        case StepAction.PAUSE:
            return "paused", at_ms + round(rest_ms), rest_ms


def _sample(
    guest: Guest, at_ms: int, count: int, remaining: float, sent: float, rate: float
) -> Sample:
    return Sample(
        at_ms, QemuStatus.ACTIVE, count, False, round(sent), round(remaining),
        round(guest.memory_bytes), 0, round(sent / PAGE_BYTES), PAGE_BYTES, 0, round(rate),
        0, 0, None, 0, 0, 0, 0,
    )  # fmt: skip
