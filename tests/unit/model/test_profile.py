"""Which profile a VM gets: VM before selector before host before default; ties are errors."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.errors import Conflict, InvalidInput
from vmtune.model.profile import (
    Assignment,
    Subject,
    Target,
    check_labels,
    check_name,
    could_tie,
    explain,
    matches,
    parse_selector,
)

VM = UUID("11111111-2222-3333-4444-555555555555")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def assignment(target: Target, key: str, profile: str, number: int = 1) -> Assignment:
    return Assignment(number, target, key, profile, NOW)


EVERY = [
    assignment(Target.DEFAULT, "", "everyone", 1),
    assignment(Target.HOST, "rack7", "rack", 2),
    assignment(Target.SELECTOR, "tier=db", "database", 3),
    assignment(Target.VM, str(VM), "mine", 4),
]


@pytest.mark.parametrize(
    ("kept", "winner"), [(4, "mine"), (3, "database"), (2, "rack"), (1, "everyone")]
)
def test_the_most_specific_wins(kept: int, winner: str) -> None:
    found = explain(EVERY[:kept], Subject(VM, "rack7", {"tier": "db", "zone": "a"}))
    assert found.winner is not None
    assert found.winner.profile == winner
    assert len(found.candidates) == kept
    assert winner in found.reason


def test_nothing_assigned_is_said_so() -> None:
    found = explain(EVERY[1:3], Subject(VM, "rack8", {"tier": "web"}))
    assert found.winner is None
    assert "no assignment" in found.reason


def test_two_selectors_that_tie_are_an_error() -> None:
    rivals = [EVERY[2], assignment(Target.SELECTOR, "zone=a", "zonal", 5)]
    with pytest.raises(Conflict, match="database, zonal"):
        explain(rivals, Subject(VM, "rack7", {"tier": "db", "zone": "a"}))


def test_two_selectors_of_one_profile_do_not_tie() -> None:
    rivals = [EVERY[2], assignment(Target.SELECTOR, "zone=a", "database", 5)]
    found = explain(rivals, Subject(VM, "rack7", {"tier": "db", "zone": "a"}))
    assert found.winner == EVERY[2]


labels = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"), max_size=3)


@given(labels.filter(bool), labels.filter(bool), labels)
def test_selectors_that_both_match_could_tie(
    one: dict[str, str], two: dict[str, str], has: dict[str, str]
) -> None:
    first, second = (",".join(f"{k}={v}" for k, v in s.items()) for s in (one, two))
    subject = Subject(VM, "h", has)
    both = [matches(assignment(Target.SELECTOR, key, "p"), subject) for key in (first, second)]
    if all(both):
        assert could_tie(first, second)
    merged = {**one, **two}
    if could_tie(first, second):
        everything = Subject(VM, "h", merged)
        assert matches(assignment(Target.SELECTOR, first, "p"), everything)
        assert matches(assignment(Target.SELECTOR, second, "p"), everything)


@pytest.mark.parametrize("text", ["", "tier", "=x", "a=1,a=2", "a=b c", "ä=1", "a==b,,"])
def test_what_is_no_selector_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_selector(text)


@pytest.mark.parametrize("name", ["", "A", "-a", "a-", "a b", "x" * 64, "a/b", "é"])
def test_bad_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="lower-case"):
        check_name(name)


def test_labels_are_checked() -> None:
    assert check_labels({"tier": "db", "a/b": ""}) == {"tier": "db", "a/b": ""}
    with pytest.raises(InvalidInput):
        check_labels({"tier": "d b"})
