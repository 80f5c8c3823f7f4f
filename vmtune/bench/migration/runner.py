"""One run of the migration benchmark, from two fresh QEMUs to a record."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from vmtune.bench.migration.direct_stage import direct_stage
from vmtune.bench.migration.guest_passes import stretches
from vmtune.bench.migration.libvirt_stage import libvirt_stage
from vmtune.bench.migration.measured import MeasuredMigration, Verdict, plan_run
from vmtune.bench.migration.order import DirectTestbed, Phase, RunOrder, RunProgress, RunResult
from vmtune.bench.migration.recorder import Recorder
from vmtune.bench.migration.stage import Stage
from vmtune.bench.model.runs.run import HostSide, RunState
from vmtune.bench.model.scenario.migration import Scenario
from vmtune.engine.watch import fraction
from vmtune.errors import SetupError, VmtuneError
from vmtune.lab.domain_xml import kvm_usable
from vmtune.lab.guest_serial import GuestStart
from vmtune.model.migration.record import Sample

LEAST_STRETCHES = 2
"""Of each worker in warm-up, for a median of its pace; what it reports first does not count."""
_STARTS_WITHIN_S = 60.0
_REPORTS_WITHIN = 4
"""Times the warm-up: a guest that has not reported by then is migrated all the same."""
_REPORTS_WITHIN_LEAST_S = 30.0
_LOOK_EVERY_S = 0.25
_DIES_WITHIN_S = 0.5
_GUESSED_MIGRATION_S = 20.0


async def run_migration(order: RunOrder, on_progress: Callable[[RunProgress], None]) -> RunResult:
    """Start source and destination, warm up, migrate, cool down, and take all down.

    A migration that fails or does not converge is a result, with all that was recorded.
    Cancelling the task ends the run: everything is taken down, and the cancellation is re-raised.

    :param on_progress: called several times a second, from the event loop.
    :raise VmtuneError: the run cannot be done here (no QEMU, no KVM where it is needed, no lab,
        contradicting values); nothing was left behind.
    """
    scenario = order.effective
    kvm = _choose_kvm(order, scenario)
    progress = _Progress(scenario, on_progress)
    progress.report(Phase.STARTING)
    async with _stage(order, scenario, kvm) as stage:
        recorder = Recorder(stage, await _guest_starts(stage))
        migration = MeasuredMigration(order, scenario, stage, recorder, progress.sample)
        recorder.start()
        try:
            verdict = await _run(order, stage, recorder, migration, progress)
            record = recorder.record(migration.controllers)
        finally:
            await recorder.stop()
        progress.report(Phase.CLEANING_UP)
    return RunResult(verdict.state, record, verdict.failure, kvm)


async def _run(
    order: RunOrder,
    stage: Stage,
    recorder: Recorder,
    migration: MeasuredMigration,
    progress: _Progress,
) -> Verdict:
    """The parts of a run, once the guest works. What goes wrong is its result."""
    scenario = order.effective
    try:
        progress.begins(recorder.origin)
        progress.report(Phase.WARM_UP)
        # Probing takes time, under libvirt seconds: then rather before the guest's pace is known.
        plan = await plan_run(stage, scenario.values, migration.overrides, order.testbed.consents)
        await _warm_up(order, stage, recorder, progress)
        verdict = await migration.run(plan)
    except VmtuneError as error:
        return Verdict(RunState.FAILED, await _with_last_words(str(error), stage))
    until = time.monotonic() + scenario.cooldown_s
    while (left := until - time.monotonic()) > 0 and _alive(stage):
        progress.report(Phase.COOL_DOWN)
        await asyncio.sleep(min(left, _LOOK_EVERY_S))
    if verdict.state is RunState.FAILED:
        return Verdict(verdict.state, await _with_last_words(verdict.failure, stage))
    return verdict


def _alive(stage: Stage) -> bool:
    return any(stage.pid(side) is not None for side in HostSide)


async def _with_last_words(failure: str, stage: Stage) -> str:
    # A killed QEMU lets go of its monitor first, and is dead a little later.
    await asyncio.sleep(_DIES_WITHIN_S)
    said = [f"{side.value}: {words}" for side in HostSide if (words := stage.last_words(side))]
    return "; ".join([failure, *said])


def _choose_kvm(order: RunOrder, scenario: Scenario) -> bool:
    usable = kvm_usable()
    kvm = usable if order.kvm is None else order.kvm
    if kvm and not usable:
        raise SetupError(
            "this machine has no usable /dev/kvm",
            field="kvm",
            code="no_kvm",
            remedy="leave it unset: the guest then runs by TCG",
        )
    if scenario.needs_kvm and not kvm:
        raise SetupError(
            f"the scenario {scenario.name} needs KVM: its dirty pages are tracked with KVM's "
            "dirty ring",
            field="scenario",
            code="needs_kvm",
            remedy="run it where /dev/kvm is usable",
        )
    return kvm


@asynccontextmanager
async def _stage(order: RunOrder, scenario: Scenario, kvm: bool) -> AsyncIterator[Stage]:
    if isinstance(order.testbed, DirectTestbed):
        async with direct_stage(order.testbed, scenario, kvm) as direct:
            yield direct
    else:
        async with libvirt_stage(order.testbed, scenario, kvm) as libvirt:
            yield libvirt


async def _guest_starts(stage: Stage) -> float:
    """When the guest began to work.

    :raise SetupError: it has not.
    """
    deadline = time.monotonic() + _STARTS_WITHIN_S
    while (start := stage.listener.start()) is None:
        fault = stage.listener.fault()
        ended = stage.pid(HostSide.SOURCE) is None
        if fault is not None or ended or time.monotonic() > deadline:
            reason = f"{fault.parameter}: {fault.reason}" if fault else "it says nothing"
            raise SetupError(
                await _with_last_words(f"the guest did not start: {reason}", stage),
                code="guest_did_not_start",
            )
        await stage.listener.wait_for_report(_LOOK_EVERY_S)
    return start.at


async def _warm_up(order: RunOrder, stage: Stage, recorder: Recorder, progress: _Progress) -> None:
    """Let the guest work, until its own pace is known where that is asked for.

    :raise SetupError: its QEMU has ended.
    """
    warmup_s = order.effective.warmup_s
    enough_ms = warmup_s * 1000
    longer_s = max(_REPORTS_WITHIN * warmup_s, _REPORTS_WITHIN_LEAST_S)
    max_ms = enough_ms + (longer_s * 1000 if order.knows_pace else 0)
    while (at_ms := recorder.at_ms()) < max_ms:
        progress.report(Phase.WARM_UP)
        if stage.pid(HostSide.SOURCE) is None:
            raise SetupError("the source's QEMU has ended in warm-up", code="qemu_ended")
        if at_ms >= enough_ms and _pace_is_known(stage, recorder):
            return
        left_s = (enough_ms - at_ms) / 1000
        await asyncio.sleep(min(left_s, _LOOK_EVERY_S) if left_s > 0 else 0.02)


def _pace_is_known(stage: Stage, recorder: Recorder) -> bool:
    start = stage.listener.start()
    if start is None or not isinstance(start.event, GuestStart):
        return False
    now_ms = recorder.at_ms()
    seen = stretches(stage.listener.passes(recorder.origin), now_ms)
    calm = Counter(s.worker for s in seen if s.ended and not s.first)
    workers = range(start.event.workers)
    return all(calm[worker] >= LEAST_STRETCHES for worker in workers)


class _Progress:
    """Reports where the run stands. The share never goes back."""

    def __init__(self, scenario: Scenario, to: Callable[[RunProgress], None]) -> None:
        self._to = to
        self._origin: float | None = None
        self._share = 0.0
        self._last: Sample | None = None
        migration_s = min(scenario.max_seconds, _GUESSED_MIGRATION_S)
        self._seconds = {
            Phase.STARTING: 1.0,
            Phase.WARM_UP: float(scenario.warmup_s),
            Phase.MIGRATING: migration_s,
            Phase.COOL_DOWN: float(scenario.cooldown_s),
            Phase.CLEANING_UP: 0.0,
        }
        self._phase = Phase.STARTING
        self._since = time.monotonic()

    def begins(self, origin: float) -> None:
        """The timeline begins at *origin*."""
        self._origin = origin

    def sample(self, sample: Sample) -> None:
        """A sample of the migration came."""
        self._last = sample
        self.report(Phase.MIGRATING, fraction(sample))

    def report(self, phase: Phase, done: float | None = None) -> None:
        """It is in *phase*, of which *done* is done: as its time goes where that is None."""
        now = time.monotonic()
        if phase is not self._phase:
            self._phase, self._since = phase, now
        phases = list(self._seconds)
        before = sum(self._seconds[p] for p in phases[: phases.index(phase)])
        lasts = self._seconds[phase]
        part = min(1.0, (now - self._since) / lasts if lasts else 1.0) if done is None else done
        share = (before + part * lasts) / sum(self._seconds.values())
        self._share = max(self._share, min(share, 1.0))
        at_ms = 0 if self._origin is None else round((now - self._origin) * 1000)
        self._to(RunProgress(phase, self._share, at_ms, self._last))
