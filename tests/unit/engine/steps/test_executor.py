"""Steps carried out: noted before, read back after, never raised, never repeated blindly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.support.simulated.control import VM, MadeQemu, MadeTime, sample
from vmtune.engine.controllers import Controllers, Past
from vmtune.engine.steps.executor import StepExecutor
from vmtune.errors import (
    CommandRefused,
    HostUnreachable,
    InvalidInput,
    NotFound,
    OutcomeUnknown,
    SetupError,
    TooLate,
    VmtuneError,
)
from vmtune.intent.steering import Act
from vmtune.model.host.facts import VmState
from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.record import QemuStatus, Sample
from vmtune.model.migration.steps import (
    AfterIterations,
    AfterSeconds,
    SetValues,
    Stalled,
    Step,
    StepAction,
)
from vmtune.model.plan.changes import Change

SLACK = Step(AfterIterations(2), SetValues((("downtime_limit_ms", 900),)))
HURRY = Step(Stalled(4), SetValues((("max_bandwidth_bytes_per_s", 0), ("downtime_limit_ms", 1500))))
PAUSE = Step(AfterSeconds(8), StepAction.PAUSE)
POSTCOPY = Step(AfterSeconds(10), StepAction.POSTCOPY)
ABORT = Step(AfterSeconds(12), StepAction.ABORT)
Told = list[tuple[StepRecord, Sequence[Change]]]


class Trial:
    """Steps of a migration of a made QEMU."""

    def __init__(
        self,
        *steps: Step,
        past: Sequence[StepRecord] = (),
        samples: Sequence[Sample] = (),
        **qemu: object,
    ) -> None:
        values = {"downtime_limit_ms": 300, "max_bandwidth_bytes_per_s": 1 << 20}
        self.qemu = MadeQemu(MadeTime(), migrating=True, values={**values}, **qemu)  # type: ignore[arg-type] # as the dataclass has them
        self.told: Told = []
        self.note_fails: VmtuneError | None = None
        self.controllers = Controllers(
            self.qemu, VM, steps=steps, past=Past(None, past, samples), note_step=self._note
        )

    async def _note(self, record: StepRecord, before: Sequence[Change]) -> None:
        if self.note_fails is not None:
            raise self.note_fails
        # What is told is there before QEMU is.
        self.told.append((record, list(before)))
        self.qemu.calls.append(f"note {record.effect.value}")

    async def at(
        self, at_s: float, iteration: int = 1, status: QemuStatus = QemuStatus.ACTIVE
    ) -> None:
        await self.controllers.on_sample(sample(status, round(at_s * 1000), iteration))

    @property
    def records(self) -> tuple[StepRecord, ...]:
        return self.controllers.step_records


async def test_a_step_is_noted_then_done_then_read_back_and_noted() -> None:
    t = Trial(SLACK)
    await t.at(1)
    await t.at(2, iteration=3)
    assert t.qemu.calls == ["read", "note pending", "write", "read", "note done"]
    (first, undo), (second, nothing) = t.told
    assert first.effect is StepEffect.PENDING
    assert undo == [Change("downtime_limit_ms", 300)]
    assert (second.effect, nothing) == (StepEffect.DONE, [])
    assert t.records == (second,)
    assert second == StepRecord(
        0, 2000, 3, "set downtime_limit_ms to 900 ms",
        "2 iterations completed, and 2 were to be waited for", StepEffect.DONE,
        values={"downtime_limit_ms": 900},
    )  # fmt: skip
    assert t.qemu.writes == [("downtime_limit_ms", 900)]


async def test_times_count_from_when_the_memory_is_sent() -> None:
    t = Trial(PAUSE)
    t.controllers.memory_begins(400_000)
    await t.at(407)
    assert t.records == ()
    await t.at(408)
    assert [r.at_ms for r in t.records] == [408_000]


@pytest.mark.parametrize("effect", [StepEffect.DONE, StepEffect.PENDING])
async def test_what_was_done_for_the_copies_of_disks_is_no_step_of_the_memorys(
    effect: StepEffect,
) -> None:
    waits = Step(AfterSeconds(60), SetValues((("copy_synchronous_writes", True),)))
    past = StepRecord(1, 60_000, 0, "set copy_synchronous_writes to on", "", effect)
    t = Trial(PAUSE, waits, past=[past])
    await t.at(100)
    assert [(r.number, r.effect) for r in t.records] == [(1, effect), (0, StepEffect.DONE)]


async def test_each_step_is_done_once_and_in_its_turn() -> None:
    t = Trial(SLACK, HURRY, PAUSE, POSTCOPY)
    for second in range(1, 20):
        await t.at(second, iteration=3)
    assert [(r.number, r.at_ms) for r in t.records] == [(0, 1000), (1, 5000), (2, 8000), (3, 10000)]
    assert [r.effect for r in t.records] == [StepEffect.DONE] * 4
    assert (t.qemu.state, t.controllers.paused) == (VmState.PAUSED, True)
    done = [c for c in t.qemu.calls if c in ("write", "pause", "start_postcopy")]
    assert done == ["write", "write", "pause", "start_postcopy"]


@pytest.mark.parametrize(
    ("step", "call"),
    [(SLACK, "write"), (PAUSE, "pause"), (POSTCOPY, "start_postcopy"), (ABORT, "abort_migration")],
    ids=["set", "pause", "postcopy", "abort"],
)
@pytest.mark.parametrize(
    ("error", "effect"),
    [
        (CommandRefused("Parameter 'downtime_limit' expects a value"), StepEffect.REFUSED),
        (TooLate("it has ended"), StepEffect.REFUSED),
        (NotFound("it is gone"), StepEffect.REFUSED),
        (InvalidInput("cannot be set"), StepEffect.REFUSED),
        (OutcomeUnknown("the connection was lost"), StepEffect.UNKNOWN),
        (HostUnreachable("no connection"), StepEffect.UNKNOWN),
    ],
    ids=lambda e: type(e).__name__,
)
async def test_what_does_not_succeed_is_recorded_in_qemus_words_and_the_next_step_has_its_turn(
    step: Step, call: str, error: VmtuneError, effect: StepEffect
) -> None:
    last = Step(AfterSeconds(20), SetValues((("downtime_limit_ms", 1234),)))
    t = Trial(step, last, errors={call: [error]})
    await t.at(15, iteration=9)
    assert [(r.effect, r.detail) for r in t.records] == [(effect, error.message)]
    await t.at(21, iteration=9)
    assert t.records[1].effect is StepEffect.DONE
    assert t.controllers.paused is (step is PAUSE and effect is StepEffect.UNKNOWN)


async def test_a_value_that_reads_back_otherwise_is_not_called_done() -> None:
    t = Trial(SLACK, keeps=lambda name, value: 300)
    await t.at(2, iteration=3)
    (record,) = t.records
    assert record.effect is StepEffect.UNKNOWN
    assert record.detail == "it was set, and yet downtime_limit_ms is 300 ms"


async def test_what_was_there_may_be_unreadable() -> None:
    t = Trial(SLACK, errors={"read": [OutcomeUnknown("lost")]})
    await t.at(2, iteration=3)
    assert t.told[0][1] == []
    assert t.records[0].effect is StepEffect.DONE


async def test_a_step_that_cannot_be_recorded_is_not_done() -> None:
    t = Trial(SLACK)
    t.note_fails = SetupError("the disk is full")
    await t.at(2, iteration=3)
    assert t.qemu.writes == []
    (record,) = t.records
    assert record.effect is StepEffect.REFUSED
    assert "the disk is full" in record.detail


async def test_a_guest_that_somebody_else_paused_is_left_alone() -> None:
    t = Trial(PAUSE, state=VmState.PAUSED)
    await t.at(9)
    assert t.records[0].effect is StepEffect.REFUSED
    assert t.records[0].detail == "the VM does not run: it is paused"
    assert not t.controllers.paused
    assert "pause" not in t.qemu.calls


RECORD = StepRecord(0, 9000, 3, "x", "because", StepEffect.PENDING)


@pytest.mark.parametrize(
    ("step", "seen", "status", "effect", "does"),
    [
        (SLACK, {"values": {"downtime_limit_ms": 900}}, "active", StepEffect.DONE, ""),
        (SLACK, {}, "active", StepEffect.DONE, "write"),
        (SLACK, {}, "completed", StepEffect.REFUSED, ""),
        (PAUSE, {"state": VmState.PAUSED}, "active", StepEffect.DONE, ""),
        (PAUSE, {}, "active", StepEffect.DONE, "pause"),
        (POSTCOPY, {}, "postcopy-active", StepEffect.DONE, ""),
        (POSTCOPY, {}, "active", StepEffect.DONE, "start_postcopy"),
        (POSTCOPY, {}, "completed", StepEffect.REFUSED, ""),
        (ABORT, {}, "cancelling", StepEffect.DONE, ""),
        (ABORT, {}, "cancelled", StepEffect.DONE, ""),
        (ABORT, {}, "device", StepEffect.DONE, "abort_migration"),
    ],
)
async def test_what_was_under_way_when_vmtune_died_is_looked_up(
    step: Step, seen: dict[str, object], status: str, effect: StepEffect, does: str
) -> None:
    t = Trial(step, past=[RECORD])
    for name, value in seen.items():
        setattr(t.qemu, name, value)
    for second in (20, 21):
        await t.at(second, 5, QemuStatus(status))
    assert [r.effect for r in t.records] == [effect]
    deeds = [
        c for c in t.qemu.calls if c in ("write", "pause", "start_postcopy", "abort_migration")
    ]
    assert deeds == ([does] if does else [])
    assert t.told == [(t.records[0], [])]
    assert (t.records[0].number, t.records[0].at_ms) == (RECORD.number, RECORD.at_ms)


async def test_what_cannot_be_looked_up_stays_unknown_and_is_not_repeated() -> None:
    t = Trial(SLACK, past=[RECORD], errors={"read": [OutcomeUnknown("lost again")]})
    await t.at(20)
    await t.at(21)
    assert [(r.effect, r.detail) for r in t.records] == [(StepEffect.UNKNOWN, "lost again")]
    assert t.qemu.writes == []


async def test_what_was_done_before_is_not_done_again() -> None:
    done = replace(RECORD, effect=StepEffect.DONE)
    asked = replace(done, number=None, effect=StepEffect.UNKNOWN)
    t = Trial(SLACK, PAUSE, POSTCOPY, past=[done, asked, replace(done, number=1)])
    assert t.controllers.paused
    await t.at(20, 9)
    assert [r.number for r in t.records] == [0, None, 1, 2]
    assert (t.qemu.calls.count("start_postcopy"), t.qemu.writes) == (1, [])


async def test_only_while_precopy_runs() -> None:
    t = Trial(SLACK, PAUSE)
    for status in (QemuStatus.SETUP, QemuStatus.DEVICE, QemuStatus.COMPLETED):
        await t.at(50, 9, status)
    assert (t.records, t.qemu.calls) == ((), [])


async def test_iterations_that_an_earlier_process_has_seen_count() -> None:
    seen = [sample(QemuStatus.ACTIVE, 1000, 1), sample(QemuStatus.ACTIVE, 2000, 2)]
    t = Trial(HURRY, samples=seen)
    await t.at(7, iteration=2)
    (hurried,) = t.records
    assert "for 5.0 s" in hurried.reason


@pytest.mark.parametrize("shadow", [False, True])
async def test_what_steering_does_is_recorded_with_its_forecast(shadow: bool) -> None:
    qemu = MadeQemu(MadeTime(), migrating=True, values={"downtime_limit_ms": 300})
    executor = StepExecutor(qemu, VM, ())
    act = Act(SetValues((("downtime_limit_ms", 500),)), "it would not end", "ends in about 2 s")
    effect = await executor.act(900, 3, act, only_told=shadow)
    (record,) = executor.records
    assert record.effect is effect
    assert (record.reason, record.forecast) == ("it would not end", "ends in about 2 s")
    assert record.steering
    assert record.effect is (StepEffect.REFUSED if shadow else StepEffect.DONE)
    assert qemu.writes == ([] if shadow else [("downtime_limit_ms", 500)])
