"""Step records of before their values were stored, each as its words tell."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.documents.dataclass_json import to_json
from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.copy_changes import change_of_copies
from vmtune.model.migration.step_text import describe
from vmtune.model.migration.steps import SETTABLE, SetValues, StepAction
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import Value
from vmtune.storage.worded_steps import load_step_records

TIMES = st.integers(1, 2_000_000)
RATES = st.integers(0, 1 << 40)
PERCENT = st.integers(1, 99)


def stored(action: str) -> dict[str, Any]:
    """As it was stored."""
    raw = to_json(StepRecord(None, 5, 2, action, "as asked", StepEffect.DONE))
    assert isinstance(raw, dict)
    return {name: raw[name] for name in raw if name not in ("values", "of_copies")}


@given(TIMES, RATES, PERCENT)
def test_what_was_set_is_read_from_the_words(limit: int, rate: int, percent: int) -> None:
    values: dict[str, Value] = {
        "downtime_limit_ms": limit,
        "max_bandwidth_bytes_per_s": rate,
        "max_cpu_throttle_percent": percent,
    }
    words = describe(SetValues(tuple(values.items())))
    for action in (words, f"throttle the guest: {words}"):
        (found,) = load_step_records([stored(action)])
        assert (found.values, found.of_copies) == (values, False)
        assert found.action == action
    (found,) = load_step_records([stored(change_of_copies(values))])
    assert (found.values, found.of_copies) == (values, True)


@pytest.mark.parametrize("name", sorted(SETTABLE))
def test_each_value_that_a_step_can_set_is_read(name: str) -> None:
    row = BUILT_IN[name]
    for value in (0, 1, 7, 50, 1 << 20, True, False):
        try:
            accepted = row.accept(value)
        except ValueError:
            continue
        (found,) = load_step_records([stored(describe(SetValues(((name, accepted),))))])
        assert found.values == {name: accepted}
        assert type(found.values[name]) is type(accepted)


@pytest.mark.parametrize(
    "action",
    [*map(describe, StepAction), "recover post-copy over tcp:b:1", "set x to y", "set ", "x to y"],
)
def test_other_words_set_nothing(action: str) -> None:
    (found,) = load_step_records([stored(action)])
    assert (found.values, found.of_copies, found.action) == ({}, False, action)


def test_what_is_stored_wins_over_the_words() -> None:
    made = StepRecord(None, 5, 2, "set downtime_limit_ms to 9 ms", "", StepEffect.DONE)
    raw = to_json(made)
    assert isinstance(raw, dict)
    assert load_step_records([raw]) == (made,)
    assert load_step_records(None) == ()
