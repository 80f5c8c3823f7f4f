from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from vmtune.errors import Problem
from vmtune.model.evacuation.evacuation import EvacuationState
from vmtune.model.host.contact import NEVER
from vmtune.model.migration.record import MigrationState, Trigger
from vmtune.model.overview import (
    Activity,
    ActivityKind,
    Concern,
    HostLoad,
    Move,
    Standing,
    Stopped,
    TunedVm,
    attention,
    in_order,
    recent,
)
from vmtune.model.plan.tuning_state import TuningState

NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=3)


def move(state: MigrationState, name: str = "web1", **fields: object) -> Move:
    made = Move(
        uuid4(), uuid4(), name, "a", "b", Trigger.VMTUNE, state, "", NOW - timedelta(hours=1),
        None, NOW if state.ended else None, None, None, False,
    )  # fmt: skip
    return replace(made, **fields)


def standing(*moves: Move, **fields: object) -> Standing:
    made = Standing((), moves, False, dict.fromkeys(TuningState, 0), {})
    return replace(made, **fields)


def stopped(state: EvacuationState, **fields: object) -> Stopped:
    made = Stopped(uuid4(), "rack7", state, "", 2, NOW)
    return replace(made, **fields)


def test_nothing_needs_attention_where_all_went_well() -> None:
    done = move(MigrationState.COMPLETED), move(MigrationState.ACTIVE)
    assert attention(standing(*done), {}, NOW, 5) == []


def test_the_most_urgent_comes_first() -> None:
    silent = NEVER.silent(NOW, Problem("host", "unreachable", "no route", ""))
    moves = (
        move(MigrationState.FAILED, failure="QEMU says: no"),
        move(MigrationState.POSTCOPY_PAUSED),
        move(MigrationState.UNKNOWN, ended_at=LONG_AGO),
        move(MigrationState.COMPLETED, exceeded=True, downtime_ms=1694),
        move(MigrationState.COMPLETED, intent_broken=True, downtime_ms=9),
    )
    vm = TunedVm(uuid4(), "db1", "a", NOW, ("downtime_limit_ms",))
    found = attention(
        standing(
            *moves,
            hosts=(HostLoad("a", None, 3), HostLoad("b", None, 0)),
            tunings={TuningState.DRIFTED: 7, TuningState.TUNED: 9},
            worst={TuningState.DRIFTED: (vm,)},
            stopped=(stopped(EvacuationState.FAILED, reason="3 migrations failed"),),
        ),
        {"b": silent},
        NOW,
        5,
    )
    assert [(each.concern, each.count) for each in found] == [
        (Concern.POSTCOPY_PAUSED, 1),
        (Concern.HOST_UNREACHABLE, 1),
        (Concern.UNKNOWN_END, 1),
        (Concern.EVACUATION_STOPPED, 1),
        (Concern.FAILED, 1),
        (Concern.INTENT_BROKEN, 1),
        (Concern.DOWNTIME_EXCEEDED, 1),
        (Concern.DRIFTED, 7),
    ]
    texts = [each.subjects[0].text for each in found]
    assert texts == [
        "a to b", "no route", "a to b", "failed, 2 VMs left: 3 migrations failed",
        "a to b: QEMU says: no", "a to b", "a to b, downtime 1,694 ms", "downtime_limit_ms",
    ]  # fmt: skip
    assert found[1].subjects[0].name == "b"
    assert found[3].subjects[0].name == "rack7"


def test_what_failed_long_ago_needs_none_any_more() -> None:
    old = move(MigrationState.FAILED, ended_at=LONG_AGO)
    exceeded = move(MigrationState.COMPLETED, ended_at=LONG_AGO, exceeded=True)
    assert attention(standing(old, exceeded), {}, NOW, 5) == []
    running = move(MigrationState.ACTIVE, created_at=LONG_AGO)
    assert list(recent([old, running], NOW)) == [running]


def test_an_evacuation_needs_attention_as_long_as_it_is_paused() -> None:
    over = stopped(EvacuationState.INCOMPLETE, since=LONG_AGO)
    assert attention(standing(stopped=(over,)), {}, NOW, 5) == []
    paused = stopped(EvacuationState.PAUSED, since=LONG_AGO, left=1)
    (found,) = attention(standing(stopped=(over, paused)), {}, NOW, 5)
    assert [each.text for each in found.subjects] == ["paused, 1 VM left"]


def test_all_are_counted_and_some_shown() -> None:
    failed = [move(MigrationState.FAILED, f"vm{number}") for number in range(8)]
    (found,) = attention(standing(*failed), {}, NOW, 3)
    assert (found.count, len(found.subjects)) == (8, 3)


def test_what_runs_comes_before_what_has_ended() -> None:
    def activity(title: str, ended_h: int | None) -> Activity:
        at = None if ended_h is None else NOW - timedelta(hours=ended_h)
        return Activity(ActivityKind.RUN, uuid4(), title, "", "x", at is not None, "", LONG_AGO, at)

    told = [activity("older", 2), activity("newer", 1), activity("runs", None)]
    assert [each.title for each in in_order(told, 2)] == ["runs", "newer"]
