"""Intents: read with units, contradictions refused by field, written back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.errors import InvalidInput, Problem
from vmtune.model.migration.intent import (
    HARMLESS,
    MAX_DEADLINE_S,
    MAX_SILENCE_MS,
    MAX_SLOWDOWN_PERCENT,
    Goal,
    Intent,
    Means,
    Otherwise,
    describe,
    dump_intent,
    parse_intent,
)


def problems(raw: object) -> list[Problem]:
    with pytest.raises(InvalidInput) as caught:
        parse_intent(raw)
    return list(caught.value.problems)


def refused(raw: object) -> list[tuple[str, str]]:
    found = problems(raw)
    assert all(each.message and each.remedy for each in found)
    return [(each.field, each.code) for each in found]


def test_goals_are_read_with_their_units() -> None:
    raw = {
        "max_silence_ms": "0.5s",
        "deadline_s": "2min",
        "max_slowdown_percent": "20%",
        "max_bandwidth_bytes_per_s": "1Gbit/s",
    }
    assert parse_intent(raw) == Intent(
        500, 120, 20, 125_000_000, (Means.THROTTLE, Means.COMPRESS, Means.ZERO_COPY)
    )


def test_numbers_are_in_the_unit_of_their_name() -> None:
    assert parse_intent({"max_silence_ms": 500, "deadline_s": 9}) == Intent(500, 9)


def test_null_is_no_goal() -> None:
    raw = {"max_silence_ms": None, "deadline_s": 9, "may": None, "relax": None}
    assert parse_intent(raw) == Intent(deadline_s=9)


@pytest.mark.parametrize("slowdown", [None, 0])
def test_a_guest_is_not_throttled_unless_it_may_become_slower(slowdown: int | None) -> None:
    intent = parse_intent({"deadline_s": 9, "max_slowdown_percent": slowdown})
    assert intent.may == HARMLESS
    assert intent.most_throttle_percent == 0


def test_postcopy_and_pause_have_to_be_named() -> None:
    raw = {"deadline_s": 9, "max_slowdown_percent": 30}
    assert not {Means.POSTCOPY, Means.PAUSE} & set(parse_intent(raw).may)
    intent = parse_intent({**raw, "may": ["pause", "postcopy"]})
    assert intent.may == (Means.POSTCOPY, Means.PAUSE)
    assert intent.most_throttle_percent == 0


def test_the_slowdown_bounds_the_throttle() -> None:
    raw = {"deadline_s": 9, "may": ["throttle"]}
    assert parse_intent(raw).most_throttle_percent == MAX_SLOWDOWN_PERCENT
    assert parse_intent({**raw, "max_slowdown_percent": 30}).most_throttle_percent == 30


@pytest.mark.parametrize(
    ("raw", "field", "code"),
    [
        (7, "intent", "not_an_object"),
        ({"max_silence": 7}, "intent.max_silence", "unknown_field"),
        ({"max_silence_ms": 0}, "intent.max_silence_ms", "invalid_value"),
        ({"max_silence_ms": "5MiB"}, "intent.max_silence_ms", "invalid_value"),
        ({"max_silence_ms": True}, "intent.max_silence_ms", "invalid_value"),
        ({"max_silence_ms": MAX_SILENCE_MS + 1}, "intent.max_silence_ms", "invalid_value"),
        ({"deadline_s": "500ms"}, "intent.deadline_s", "invalid_value"),
        ({"deadline_s": MAX_DEADLINE_S + 1}, "intent.deadline_s", "invalid_value"),
        ({"deadline_s": -3}, "intent.deadline_s", "invalid_value"),
        ({"max_slowdown_percent": 100}, "intent.max_slowdown_percent", "invalid_value"),
        (
            {"deadline_s": 3, "max_bandwidth_bytes_per_s": 0},
            "intent.max_bandwidth_bytes_per_s",
            "invalid_value",
        ),
        ({"deadline_s": 3, "may": "throttle"}, "intent.may", "not_a_list"),
        ({"deadline_s": 3, "may": ["throttle", "magic"]}, "intent.may.1", "not_a_choice"),
        ({"deadline_s": 3, "may": ["pause", "pause"]}, "intent.may", "repeated"),
        ({"deadline_s": 3, "otherwise": "pray"}, "intent.otherwise", "not_a_choice"),
    ],
)
def test_what_cannot_be_accepted_names_its_field(raw: object, field: str, code: str) -> None:
    assert (field, code) in refused(raw)


@pytest.mark.parametrize(
    ("raw", "field", "code"),
    [
        ({}, "intent", "no_goal"),
        ({"max_bandwidth_bytes_per_s": 5}, "intent", "no_goal"),
        (
            {"max_silence_ms": "2min", "deadline_s": "2min"},
            "intent.max_silence_ms",
            "longer_than_deadline",
        ),
        (
            {"max_slowdown_percent": 0, "may": ["throttle"]},
            "intent.may",
            "throttle_without_slowdown",
        ),
        ({"max_silence_ms": 9, "may": ["pause"]}, "intent.may", "pause_with_silence"),
        ({"deadline_s": 9, "otherwise": "relax"}, "intent.relax", "nothing_to_relax"),
        ({"deadline_s": 9, "relax": ["deadline_s"]}, "intent.relax", "not_relaxing"),
        (
            {"deadline_s": 9, "otherwise": "relax", "relax": ["deadline_s", "max_silence_ms"]},
            "intent.relax.1",
            "not_a_goal",
        ),
    ],
)
def test_goals_that_contradict_each_other_are_refused(raw: object, field: str, code: str) -> None:
    assert refused(raw) == [(field, code)]


def test_a_silence_that_may_be_relaxed_allows_a_pause() -> None:
    raw = {"max_silence_ms": 9, "may": ["pause"], "otherwise": "relax", "relax": ["max_silence_ms"]}
    assert parse_intent(raw).allows(Means.PAUSE)


def test_all_problems_come_at_once() -> None:
    assert len(refused({"deadline_s": 0, "max_silence_ms": -1, "may": [1], "no": 2})) == 4


@st.composite
def intents(draw: st.DrawFn) -> Intent:
    """Intents without contradictions."""
    silence = draw(st.none() | st.integers(1, MAX_SILENCE_MS))
    shortest = 1 if silence is None else silence // 1000 + 1
    deadline = draw(st.none() | st.integers(shortest, MAX_DEADLINE_S))
    slowdown = draw(st.none() | st.integers(0, MAX_SLOWDOWN_PERCENT))
    bandwidth = draw(st.none() | st.integers(1, 1 << 40))
    if silence is None and deadline is None and slowdown is None:
        deadline = 60
    goals = Intent(silence, deadline, slowdown, bandwidth)
    named = [goal for goal in Goal if goals.goal(goal) is not None]
    otherwise = draw(st.sampled_from(Otherwise))
    relax: list[Goal] = []
    if otherwise is Otherwise.RELAX:
        relax = draw(st.lists(st.sampled_from(named), min_size=1, unique=True))
    able = set(Means)
    if slowdown == 0:
        able.remove(Means.THROTTLE)
    if silence is not None and Goal.SILENCE not in relax:
        able.remove(Means.PAUSE)
    chosen = draw(st.sets(st.sampled_from(sorted(able))))
    may = tuple(means for means in Means if means in chosen)
    return Intent(silence, deadline, slowdown, bandwidth, may, otherwise, tuple(relax))


@given(intents())
def test_an_intent_is_written_and_read_back_to_the_same(intent: Intent) -> None:
    assert parse_intent(dump_intent(intent)) == intent


@given(intents(), st.sampled_from(Goal), st.integers(1, 90))
def test_a_goal_is_changed_alone(intent: Intent, goal: Goal, bound: int) -> None:
    changed = intent.having(goal, bound)
    assert changed.goal(goal) == bound
    assert changed.having(goal, intent.goal(goal)) == intent


@given(intents())
def test_an_intent_in_words_names_each_goal_and_means(intent: Intent) -> None:
    said, _, otherwise = describe(intent).partition(", otherwise")
    for goal, words in zip(Goal, ("silence at", "within", "slowdown", "bandwidth"), strict=True):
        assert (words in said) == (intent.goal(goal) is not None)
    plain = said.replace("-", "").replace(" ", "")
    assert all(means.replace("_", "") in plain for means in intent.may)
    assert "_" not in said + otherwise
    assert otherwise.count(",") == max(0, len(intent.relax) - 1)


ANY_JSON = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
FIELDS = st.sampled_from([*Goal, "may", "otherwise", "relax", "x"])


@given(st.dictionaries(FIELDS, ANY_JSON | st.lists(st.text())))
def test_any_json_is_an_intent_or_refused_by_field(raw: dict[str, object]) -> None:
    try:
        parse_intent(raw)
    except InvalidInput as error:
        assert error.problems
        assert all(each.field.startswith("intent") for each in error.problems)


@pytest.mark.parametrize(
    ("silence", "slowdown", "most"),
    [(None, None, 99), (None, 60, 60), (500, 99, 97), (500, 60, 60), (50, 99, 80), (2000, 99, 99)],
)
def test_a_throttled_guest_stands_still_no_longer_than_it_may(
    silence: int | None, slowdown: int | None, most: int
) -> None:
    intent = Intent(silence, 60, slowdown, may=(Means.THROTTLE,))
    assert intent.most_throttle_percent == most
