"""Migrations by intent over fake QEMUs: chosen, refused beforehand, recorded."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.fakes import VM
from tests.support.world import World, world
from vmtune.engine import dirty_probe
from vmtune.errors import Blocked, InvalidInput
from vmtune.model.migration.intent import Goal, parse_intent
from vmtune.model.migration.record import MigrationState
from vmtune.model.migration.stated_intent import goals_kept

MIB = 1 << 20
LIMITED = {"max_bandwidth_bytes_per_s": 100 * MIB}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dirty_probe, "WINDOWS_MS", (50, 60))


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


async def test_settings_are_chosen_and_recorded_with_their_reasons(it: World) -> None:
    intent = {"max_silence_ms": 500, "max_slowdown_percent": 20, **LIMITED}
    record = await it.migrations.start(VM, "b", intent=intent)
    assert record.wanted["downtime_limit_ms"] == 95
    assert record.wanted["auto_converge"] is True
    assert record.intent is not None
    assert record.intent.intent == parse_intent(intent)
    assert set(record.intent.chosen) == set(record.wanted)
    assert record.intent.forecast.startswith("will be kept")
    await it.until(lambda: it.store.migrations.get(record.id).state.ended)
    done = it.store.migrations.get(record.id)
    assert (done.state, done.intent) == (MigrationState.COMPLETED, record.intent)


async def test_explicit_values_win_and_are_pinned(it: World) -> None:
    values = {"downtime_limit_ms": 7}
    intent = {"max_silence_ms": 500, **LIMITED}
    record = await it.migrations.start(VM, "b", values=values, intent=intent)
    assert record.wanted["downtime_limit_ms"] == 7
    assert record.intent is not None
    assert record.intent.pinned == ("downtime_limit_ms",)


async def test_what_cannot_be_kept_is_refused_before_anything_is_recorded(it: World) -> None:
    it.source.ring.changed_mib_per_s = 1000
    intent = {"max_silence_ms": 20, "deadline_s": 60, **LIMITED}
    with pytest.raises(Blocked) as refused:
        await it.migrations.start(VM, "b", intent=intent)
    (problem,) = refused.value.problems
    assert (problem.field, problem.code) == ("intent", "intent_infeasible")
    assert "it could be kept with" in problem.remedy
    assert not it.store.migrations.list(vm=VM).items
    trying = {**intent, "otherwise": "keep-trying"}
    record = await it.migrations.start(VM, "b", intent=trying)
    assert record.intent is not None
    assert record.intent.forecast.startswith("is not expected to be kept")


async def test_a_path_that_nobody_knows_promises_nothing(it: World) -> None:
    del it.source.parameters["max-bandwidth"]
    record = await it.migrations.start(VM, "b", intent={"max_silence_ms": 500})
    assert record.intent is not None
    assert "nothing is promised" in record.intent.forecast


async def test_a_bad_intent_names_its_field(it: World) -> None:
    with pytest.raises(InvalidInput) as refused:
        await it.migrations.start(VM, "b", intent={"deadline_s": 0})
    assert refused.value.problems[0].field == "intent.deadline_s"


def test_goals_are_held_against_what_happened() -> None:
    intent = parse_intent({"max_silence_ms": 500, "deadline_s": 60})
    silence, deadline = goals_kept(intent, total_ms=61_000, downtime_ms=500)
    assert (silence.goal, silence.kept) == (Goal.SILENCE, True)
    assert (deadline.goal, deadline.kept) == (Goal.DEADLINE, False)
