"""Runs convergence steps when they are due, and changes that users request meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from uuid import UUID

from vmtune.engine.context import NoteStep
from vmtune.engine.steps.convergence import FiredStep, due, remembered
from vmtune.errors import CommandRefused, Conflict, InvalidInput, NotFound, VmtuneError
from vmtune.hypervisor.protocol import Controls
from vmtune.intent.steering import Act, Relax
from vmtune.model.host.facts import VmState
from vmtune.model.host.managers import Manager
from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.record import QemuStatus, Sample
from vmtune.model.migration.stated_intent import relaxing
from vmtune.model.migration.step_text import describe, values_of
from vmtune.model.migration.steps import Action, SetValues, Step, StepAction
from vmtune.model.plan.changes import Change, in_order, undo
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import Value

THROTTLE = SetValues(
    (
        ("max_cpu_throttle_percent", 99),
        ("cpu_throttle_initial_percent", 90),
        ("throttle_trigger_threshold_percent", 1),
    )
)
"""The hardest that auto-converge throttles; it begins at the next iteration."""
SHADOW = "shadow mode: vmtune would have done this, and changed nothing"
_SWITCH = "auto_converge"
_REFUSALS = (CommandRefused, Conflict, InvalidInput, NotFound)
_UNDER_WAY = (
    QemuStatus.SETUP,
    QemuStatus.WAIT_UNPLUG,
    QemuStatus.ACTIVE,
    QemuStatus.PRE_SWITCHOVER,
    QemuStatus.DEVICE,
)


def _left(action: Action, manager: Manager | None) -> str:
    """Why *action* is left to the VM's manager; empty where it is not."""
    if manager is None:
        return ""
    if isinstance(action, StepAction):
        return manager.left()
    return "; ".join(manager.left(name) for name, _ in action.values if name in manager.owns)


class StepExecutor:
    """The steps of one migration. What QEMU refuses is recorded, and the next step waits for its
    trigger; errors of QEMU or the connection are not raised.

    :ivar held: steps that come due wait.
    :ivar manager: who manages the VM: what is its own no step changes. None for nobody.
    :param past: the records of an earlier process. Where it may have died in the middle of the
        last of them, QEMU is queried for its effect before anything is done again.
    :param samples: what it has stored of the migration, in order.
    """

    def __init__(
        self,
        controls: Controls,
        vm: UUID,
        steps: Sequence[Step],
        past: Sequence[StepRecord] = (),
        note: NoteStep | None = None,
        samples: Sequence[Sample] = (),
    ) -> None:
        self._controls = controls
        self._vm = vm
        self._steps = steps
        self._note = note
        self.held = False
        self.manager: Manager | None = None
        self.records = list(past)
        fired = [
            (record.number, record.at_ms)
            for record in past
            if record.number is not None and not _is_of_copies(record.number, steps)
        ]
        self._history = remembered(steps, fired, samples)
        self._in_doubt = [record for record in past if _in_doubt(record, steps)]

    def memory_begins(self, at_ms: int) -> None:
        """Have times count from then: disks were copied before."""
        self._history = replace(self._history, begins_ms=at_ms)

    @property
    def paused(self) -> bool:
        """Whether a step has paused the guest, or may have."""
        return any(
            record.effect is not StepEffect.REFUSED and self._is_pause(record)
            for record in self.records
        )

    def _is_pause(self, record: StepRecord) -> bool:
        if record.number is None:
            return record.action == describe(StepAction.PAUSE)  # by steering
        return self._steps[record.number].action is StepAction.PAUSE

    async def on_sample(self, sample: Sample) -> None:
        """Run the steps that are due."""
        for record in self._in_doubt:
            await self._resolve(record, sample)
        self._in_doubt = []
        if self.held:
            return
        self._history, fired = due(self._steps, self._history, sample)
        for each in fired:
            await self._execute(each)

    async def throttle(self, sample: Sample, reason: str) -> None:
        """Have QEMU throttle the guest as hard as it can, once: its rings begin to fill, and a full
        one can end it. Only auto-converge can do that while a migration runs."""
        what = f"throttle the guest: {describe(THROTTLE)}"
        if any(record.number is None and record.action == what for record in self.records):
            return
        record = StepRecord(
            None,
            sample.at_ms,
            sample.iteration,
            what,
            reason,
            StepEffect.PENDING,
            values=values_of(THROTTLE),
        )
        try:
            able = (await self._controls.read(self._vm, [_SWITCH]))[_SWITCH].value is True
        except VmtuneError as error:
            self.records.append(record)
            await self._close(record, StepEffect.UNKNOWN, error.message)
            return
        if able:
            await self._do(record, THROTTLE)
            return
        self.records.append(record)
        why = f"{_SWITCH} is off, and cannot be set while a migration runs"
        await self._close(record, StepEffect.REFUSED, why)

    async def act(
        self, at_ms: int, iteration: int, act: Act, only_told: bool = False
    ) -> StepEffect:
        """Do what steering wants; giving up a goal is only recorded.

        :param only_told: everything is.
        :return: what became of it.
        """
        record = StepRecord(
            None,
            at_ms,
            iteration,
            relaxing(act.action.goal) if isinstance(act.action, Relax) else describe(act.action),
            act.reason,
            StepEffect.PENDING,
            forecast=act.forecast,
            steering=True,
            values={} if isinstance(act.action, Relax) else values_of(act.action),
        )
        if only_told:
            self.records.append(record)
            return await self._close(record, StepEffect.REFUSED, SHADOW)
        if not isinstance(act.action, Relax):
            return await self._do(record, act.action)
        self.records.append(record)
        return await self._close(record, StepEffect.DONE, "")

    async def is_done(self, action: Action, sample: Sample) -> bool | None:
        """Whether *action* has come about, by QEMU; None if it cannot be asked."""
        try:
            return await self._is_done(action, sample)
        except VmtuneError:
            return None

    async def _execute(self, fired: FiredStep) -> None:
        action = fired.step.action
        record = StepRecord(
            fired.number,
            fired.at_ms,
            fired.iteration,
            describe(action),
            fired.reason,
            StepEffect.PENDING,
            values=values_of(action),
        )
        left = _left(action, self.manager)
        if left:
            self.records.append(record)
            await self._close(record, StepEffect.REFUSED, left)
            return
        await self._do(record, action)

    async def _do(self, record: StepRecord, action: Action) -> StepEffect:
        before = await prior_values(self._controls, self._vm, action)
        try:
            await self._record(record, before)
        except VmtuneError as error:
            why = f"it could not be recorded beforehand, so it was not done: {error.message}"
            self.records.append(replace(record, effect=StepEffect.REFUSED, detail=why))
            return StepEffect.REFUSED
        self.records.append(record)
        return await self._close(record, *await execute(self._controls, self._vm, action))

    async def _resolve(self, record: StepRecord, sample: Sample) -> None:
        """What became of a step that was under way when vmtune died."""
        assert record.number is not None
        action = self._steps[record.number].action
        try:
            done = await self._is_done(action, sample)
        except VmtuneError as error:
            await self._close(record, StepEffect.UNKNOWN, error.message)
            return
        if done:
            await self._close(record, StepEffect.DONE, "found done when vmtune was started again")
        elif sample.status in _UNDER_WAY:
            await self._close(record, *await execute(self._controls, self._vm, action))
        else:
            why = "vmtune was started again too late to do it"
            await self._close(record, StepEffect.REFUSED, why)

    async def _is_done(self, action: Action, sample: Sample) -> bool:
        match action:
            case StepAction.POSTCOPY:
                return sample.status.in_postcopy
            case StepAction.ABORT:
                return sample.status in (QemuStatus.CANCELLING, QemuStatus.CANCELLED)
            case StepAction.PAUSE:
                return await self._controls.vm_state(self._vm) is VmState.PAUSED
            case SetValues(values):
                return not await _differing(self._controls, self._vm, values)

    async def _close(self, record: StepRecord, effect: StepEffect, detail: str) -> StepEffect:
        settled = replace(record, effect=effect, detail=detail)
        self.records[self.records.index(record)] = settled
        # Else it stays unknown in the record; the next process looks it up.
        with suppress(VmtuneError):
            await self._record(settled, ())
        return effect

    async def _record(self, record: StepRecord, before: Sequence[Change]) -> None:
        if self._note is not None:
            await self._note(record, before)


def _in_doubt(record: StepRecord, steps: Sequence[Step]) -> bool:
    number = record.number
    known = number is not None and number < len(steps) and not _is_of_copies(number, steps)
    return known and not record.effect.settled


def _is_of_copies(number: int, steps: Sequence[Step]) -> bool:
    """Whether a step is taken by :mod:`~vmtune.engine.steps.copy_steps`."""
    return number < len(steps) and steps[number].of_copies


async def prior_values(controls: Controls, vm: UUID, action: Action) -> list[Change]:
    """The changes that restore what *action* sets; empty if it cannot be read."""
    if not isinstance(action, SetValues):
        return []
    try:
        readings = await controls.read(vm, [name for name, _ in action.values])
    except VmtuneError:
        return []
    return undo((Change(name, value) for name, value in action.values), readings)


async def execute(controls: Controls, vm: UUID, action: Action) -> tuple[StepEffect, str]:
    """Do *action* on the source of a running migration: the effect, and QEMU's words where it is
    not as it should be."""
    try:
        match action:
            case SetValues(values):
                return await _set(controls, vm, values)
            case StepAction.PAUSE:
                state = await controls.vm_state(vm)
                if state is not VmState.RUNNING:
                    return StepEffect.REFUSED, f"the VM does not run: it is {state.value}"
                await controls.pause(vm)
            case StepAction.POSTCOPY:
                await controls.start_postcopy(vm)
            case StepAction.ABORT:
                await controls.abort_migration(vm)
    except _REFUSALS as refusal:
        return StepEffect.REFUSED, refusal.message
    except VmtuneError as error:
        return StepEffect.UNKNOWN, error.message
    return StepEffect.DONE, ""


async def _set(
    controls: Controls, vm: UUID, values: Sequence[tuple[str, Value]]
) -> tuple[StepEffect, str]:
    changes = [Change(name, value) for name, value in values]
    await controls.write(vm, in_order(changes, {}))
    differing = await _differing(controls, vm, values)
    if not differing:
        return StepEffect.DONE, ""
    seen = ", ".join(f"{name} is {value}" for name, value in differing.items())
    return StepEffect.UNKNOWN, f"it was set, and yet {seen}"


async def _differing(
    controls: Controls, vm: UUID, values: Sequence[tuple[str, Value]]
) -> Mapping[str, str]:
    """The values that differ, read back from QEMU, for display."""
    readings = await controls.read(vm, [name for name, _ in values])
    return {
        name: BUILT_IN[name].render(readings[name].value)
        for name, value in values
        if readings[name].value != value
    }
